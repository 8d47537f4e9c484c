package sim

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
	"github.com/porteira/porteira/test/sim/checker"
)

// transfers reads the bank's transfers.
func (b *bank) transfers() (list []checker.BankTransfer, err error) {
	for _, c := range b.sim.contracts {
		for cursor := ""; ; {
			page, next, err := c.control.Transfers(b.sim.ctx, "", cursor)
			if err != nil {
				return list, err
			}
			if len(page) == 0 {
				break
			}
			for i := range page {
				list = append(list, transferOf(&page[i]))
			}
			cursor = next
		}
	}
	return list, nil
}

// transferOf is an entry of the bank's list of transfers.
func transferOf(t *bankapi.TransferEntry) checker.BankTransfer {
	state := t.Status
	if state == "returned" {
		state = "paid"
	}
	return checker.BankTransfer{
		ID: t.ID, ExternalID: t.ExternalID, Amount: int64(t.Amount), Returned: int64(t.Returned), State: state, EndToEndID: t.EndToEndID,
	}
}

// payments reads the bank's payments.
func (b *bank) payments() (list []checker.BankPayment, err error) {
	for _, c := range b.sim.contracts {
		some, err := b.paymentsOf(c)
		if err != nil {
			return list, err
		}
		list = append(list, some...)
	}
	return list, nil
}

func (b *bank) paymentsOf(c *contract) (list []checker.BankPayment, err error) {
	for cursor := ""; ; {
		var page struct {
			Data []struct {
				ID         string      `json:"id"`
				ExternalID string      `json:"externalId"`
				Amount     money.Cents `json:"amount"`
				EndToEndID string      `json:"endToEndId"`
			} `json:"data"`
			NextCursor string `json:"nextCursor"`
		}
		if err := b.get(c.path()+"/payments?cursor="+cursor, &page); err != nil || len(page.Data) == 0 {
			return list, err
		}
		for _, p := range page.Data {
			list = append(list, checker.BankPayment{ID: p.ID, ExternalID: p.ExternalID, Amount: int64(p.Amount), EndToEndID: p.EndToEndID})
		}
		cursor = page.NextCursor
	}
}

// noteCharge records what a call did to a charge.
func (b *bank) noteCharge(method, path string, body []byte, status int) {
	if status != http.StatusOK {
		return
	}
	parts := strings.Split(path, "/") // "", "charges", id, action; "", "control", "charges", id, action
	switch {
	case method == http.MethodPut && len(parts) == 3 && parts[1] == "charges":
		var terms struct {
			Amount money.Cents `json:"amount"`
		}
		if err := json.Unmarshal(body, &terms); err != nil {
			b.sim.fail(err)
		}
		if b.charges[parts[2]] == nil {
			b.charges[parts[2]] = &checker.BankCharge{ExternalID: parts[2], Amount: int64(terms.Amount), Account: b.sim.contracts[0].id}
			b.chargeIDs = append(b.chargeIDs, parts[2])
		}
	case method == http.MethodPost && len(parts) == 4 && parts[1] == "charges" && parts[3] == "cancel":
		b.endCharge(parts[2])
	case method == http.MethodPost && len(parts) == 5 && parts[2] == "charges" && (parts[4] == "expire" || parts[4] == "fail" && !bytes.Contains(body, []byte(`"attempt":true`))):
		b.endCharge(parts[3])
	}
}

func (b *bank) endCharge(externalID string) {
	if c := b.charges[externalID]; c != nil {
		c.Ended = true
	}
}

// registered lists the bank's charges.
func (b *bank) registered() []checker.BankCharge {
	list := make([]checker.BankCharge, len(b.chargeIDs))
	for i, id := range b.chargeIDs {
		list[i] = *b.charges[id]
	}
	return list
}

func (b *bank) get(path string, into any) error {
	r, err := http.NewRequestWithContext(b.sim.ctx, http.MethodGet, bankURL+path, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+bankSecret)
	answer, err := b.serve(r, nil)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("sim: bank answered %d to %s", answer.StatusCode, path)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(body, into)
}
