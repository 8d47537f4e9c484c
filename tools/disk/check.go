package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// books are what is compared when nothing fails any more.
type books struct {
	asked     []*asked
	read      map[string]reading    // by kind and id: what was acknowledged, read back
	again     map[string]reading    // by kind and reference: what asking again gets
	payouts   []order               // all that the gateway lists
	transfers map[string][]transfer // the bank's, by external id
	verify    string                // what porteira verify objects to
	// forgets says that an older backup was restored: what was acknowledged
	// after it may be made anew, and be nothing but itself.
	forgets bool
}

// order is a pay-in or payout as the API shows it.
type order struct {
	ID          string `json:"id"`
	ExternalID  string `json:"externalId"`
	ReferenceID string `json:"referenceId"`
	Status      string `json:"status"`
	Amount      cents  `json:"amount"`
	CreatedAt   string `json:"createdAt"`
	PIXKey      string `json:"pixKey"`
	EndToEndID  string `json:"endToEndId"`
	PIX         struct {
		QRCode string `json:"qrcode"`
	} `json:"pix"`
}

// cents are an amount: pay-ins show a number, payouts a string of digits.
type cents int64

// UnmarshalJSON implements [json.Unmarshaler].
func (c *cents) UnmarshalJSON(text []byte) error {
	n, err := strconv.ParseInt(strings.Trim(string(text), `"`), 10, 64)
	*c = cents(n)
	return err
}

// reading is what a request got.
type reading struct {
	status   int
	replayed bool
	order    order
}

// transfer is money that the bank sent out.
type transfer struct {
	ExternalID string `json:"externalId"`
	Amount     cents  `json:"amount"`
	PIXKey     string `json:"pixKey"`
	EndToEndID string `json:"endToEndId"`
	Status     string `json:"status"`
}

func orderOf(body []byte) (o order) {
	_ = json.Unmarshal(body, &o) // what cannot be read has no id
	return o
}

// compare returns everything in which the books differ.
func compare(b *books) (found []string) {
	blame := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	for _, a := range b.asked {
		again := b.again[a.Kind+" "+a.Reference]
		if again.status != 201 {
			blame("%s %s asked again is answered %d", a.Kind, a.Reference, again.status)
			continue
		}
		if len(a.Acked) == 0 {
			continue
		}
		acked := orderOf(a.Acked)
		read := b.read[a.Kind+" "+acked.ID]
		if b.forgets && read.status == 404 {
			if again.order.ExternalID != acked.ExternalID || again.order.Amount != acked.Amount {
				blame("%s %s was acknowledged as %+v, and is another after the restore: %+v", a.Kind, a.Reference, acked, again.order)
			}
			continue
		}
		if read.status != 200 {
			blame("%s %s was acknowledged as %s, and is lost: GET answers %d", a.Kind, a.Reference, acked.ID, read.status)
			continue
		}
		if !again.replayed {
			blame("%s %s was acknowledged, and asking again makes it anew", a.Kind, a.Reference)
		}
		for _, now := range []order{read.order, again.order} {
			if told, shown := identity(acked), identity(now); told != shown {
				blame("%s %s was acknowledged as %+v, and is %+v", a.Kind, a.Reference, told, shown)
			}
		}
	}
	compareBank(b, blame)
	if b.verify != "" {
		blame("porteira verify: %s", b.verify)
	}
	return found
}

// identity is what never changes of an order.
func identity(o order) order {
	o.Status, o.EndToEndID = "", ""
	return o
}

// compareBank holds payouts against transfers, both ways.
func compareBank(b *books, blame func(string, ...any)) {
	known := map[string]bool{}
	for i := range b.payouts {
		p := &b.payouts[i]
		list := b.transfers[p.ExternalID]
		known[p.ExternalID] = true
		switch {
		case len(list) > 1:
			blame("payout %s has %d transfers: %+v", p.ReferenceID, len(list), list)
		case len(list) == 0 && p.Status == "COMPLETED":
			blame("payout %s is COMPLETED, and the bank has no transfer for it", p.ReferenceID)
		case len(list) == 1 && (p.Status != "COMPLETED" || list[0].Status != "paid"):
			blame("payout %s is %s, its transfer is %s", p.ReferenceID, p.Status, list[0].Status)
		case len(list) == 1 && (list[0].Amount != p.Amount || list[0].PIXKey != p.PIXKey || list[0].EndToEndID != p.EndToEndID):
			blame("payout %s is %+v, its transfer is %+v", p.ReferenceID, *p, list[0])
		case p.Status != "COMPLETED":
			blame("payout %s is still %s", p.ReferenceID, p.Status)
		}
	}
	for id, list := range b.transfers {
		if !known[id] {
			blame("the bank has %d transfers under %s, and there is no such payout", len(list), id)
		}
	}
}
