package asaasface

import (
	"errors"
	"slices"
	"strings"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// newTransfer is the request of a transfer.
type newTransfer struct {
	Value         reais  `json:"value"`
	Key           string `json:"pixAddressKey"`
	KeyType       string `json:"pixAddressKeyType"`
	OperationType string `json:"operationType"`
	Description   string `json:"description"`
	Reference     string `json:"externalReference"`
}

// transfer is a transfer.
type transfer struct {
	Object        string      `json:"object"`
	ID            string      `json:"id"`
	Type          string      `json:"type"`
	OperationType string      `json:"operationType"`
	DateCreated   string      `json:"dateCreated"`
	Value         reais       `json:"value"`
	NetValue      reais       `json:"netValue"`
	TransferFee   reais       `json:"transferFee"`
	Status        string      `json:"status"`
	EffectiveDate *string     `json:"effectiveDate"`
	ScheduleDate  *string     `json:"scheduleDate"`
	EndToEndID    *string     `json:"endToEndIdentifier"`
	Authorized    bool        `json:"authorized"`
	FailReason    *string     `json:"failReason"`
	Reference     *string     `json:"externalReference"`
	Description   *string     `json:"description"`
	BankAccount   bankAccount `json:"bankAccount"`
}

type bankAccount struct {
	Key string `json:"pixAddressKey"`
}

// keyTypes are the types of Pix keys.
var keyTypes = []string{"CPF", "CNPJ", "EMAIL", "PHONE", "EVP"}

func (f *Face) postTransfer(c *call) (any, error) {
	var r newTransfer
	if err := c.decode(&r); err != nil {
		return nil, err
	}
	switch {
	case f.critical.Load():
		return nil, errCritical
	case r.Value < 1:
		return nil, refuse("invalid_value", "O valor da transferência é inválido.")
	case !slices.Contains(keyTypes, r.KeyType) || r.Key == "" || r.KeyType == "PHONE" && (len(r.Key) != 11 || strings.Trim(r.Key, "0123456789") != ""):
		return nil, refuse("invalid_action", "A chave Pix informada é inválida.")
	}
	id := r.Reference
	if !bankapi.IsExternalID(id) {
		id = strings.ReplaceAll(f.handlers.NewID(), "-", "")
		if err := f.book.write(note{Transfer: &transferNote{id, r.Reference}}); err != nil {
			return nil, err
		}
	}
	o, err := f.handlers.PutTransfer(bankapi.TransferRequest{
		ExternalID: id, Amount: money.Cents(r.Value), KeyType: r.KeyType, Key: r.Key, Name: "-", Document: "-",
	}, c.fault)
	if err != nil {
		return nil, err
	}
	return f.showTransfer(&bankapi.TransferEntry{
		ID: o.ID, ExternalID: id, Amount: o.Amount, PIXKey: r.Key, EndToEndID: o.EndToEndID, Status: string(o.State), CreatedAt: o.CreatedAt,
	}), nil
}

func (f *Face) showTransfer(e *bankapi.TransferEntry) *transfer {
	v := &transfer{
		Object: "transfer", ID: e.ID, Type: "PIX", OperationType: "PIX", DateCreated: dayOf(e.CreatedAt), Value: reais(e.Amount), NetValue: reais(e.Amount), TransferFee: reais(transferFee),
		Status: "PENDING", Reference: orNull(f.book.reference(e.ExternalID)), BankAccount: bankAccount{e.PIXKey},
	}
	day := v.DateCreated
	switch e.Status {
	case "paid", "returned":
		v.Status, v.Authorized, v.EffectiveDate, v.EndToEndID = "DONE", true, &day, &e.EndToEndID
	case "failed":
		v.Status, v.FailReason = "FAILED", orNull(f.failReason(e))
		if v.FailReason == nil {
			v.Status = "CANCELLED"
		}
	}
	return v
}

// failReason is why a transfer failed; "" if it was not authorised.
func (f *Face) failReason(e *bankapi.TransferEntry) string {
	o, err := f.handlers.Order(bankapi.SubjectTransfer, e.ExternalID)
	if err != nil || o.ID != e.ID || o.Failure == nil || o.Failure.Code == string(bankapi.CodeConsentRefused) || o.Failure.Code == string(bankapi.CodeConsentMissing) {
		return ""
	}
	return o.Failure.Message
}

// transfersOf lists transfers, the newest first.
func (f *Face) transfersOf(externalID string) (list []bankapi.TransferEntry, err error) {
	for cursor := ""; ; {
		page, err := f.handlers.Transfers(externalID, cursor)
		if err != nil {
			return nil, err
		}
		list = append(list, page.Data...)
		if cursor = page.NextCursor; !page.More {
			slices.Reverse(list)
			return list, nil
		}
	}
}

// listTransfers ignores unknown filters, such as one by reference, as Asaas does.
func (f *Face) listTransfers(c *call) (any, error) {
	entries, err := f.transfersOf("")
	if err != nil {
		return nil, err
	}
	from := c.URL.Query().Get("dateCreated[ge]")
	rows := []*transfer{}
	for i := range entries {
		if dayOf(entries[i].CreatedAt) >= from {
			rows = append(rows, f.showTransfer(&entries[i]))
		}
	}
	return pageOf(c, rows)
}

func (f *Face) findTransfer(id string) (bankapi.TransferEntry, error) {
	entries, err := f.transfersOf("")
	if err != nil {
		return bankapi.TransferEntry{}, err
	}
	i := slices.IndexFunc(entries, func(e bankapi.TransferEntry) bool { return e.ID == id })
	if i < 0 {
		return bankapi.TransferEntry{}, errNotFound
	}
	return entries[i], nil
}

func (f *Face) getTransfer(c *call) (any, error) {
	e, err := f.findTransfer(c.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return f.showTransfer(&e), nil
}

// panelTransfer forces what happens to a transfer: complete or fail.
func (f *Face) panelTransfer(c *call) (any, error) {
	e, err := f.findTransfer(c.PathValue("id"))
	if err != nil {
		return nil, err
	}
	if _, err := f.handlers.ForceTransfer(e.ExternalID, c.PathValue("action")); err != nil {
		if errors.Is(err, bankapi.CodeNotFound) {
			return nil, errNotFound
		}
		return nil, err
	}
	return struct{}{}, nil
}
