package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// sound are books that agree: a pay-in that was paid with too much, a payout
// that arrived, one that was canceled, and one that was refused for want of
// money. Their news arrived, some of it twice.
func sound(t *testing.T) *books {
	t.Helper()
	paid := order{
		ID: "id-in", ExternalID: "ext-in", ReferenceID: "in", Status: "PAID", Amount: 500, Currency: "BRL", PaymentMethod: "PIX",
		WebhookURL: "http://receiver/hook/in", CreatedAt: "then", PaidAmount: 500, EndToEndID: "E1", Version: 3,
	}
	paid.PIX.QRCode = "code"
	sent := order{
		ID: "id-out", ExternalID: "ext-out", ReferenceID: "out", Status: "COMPLETED", Amount: 70, Currency: "BRL",
		PIXKey: "a@b.example", PIXKeyType: "EMAIL", WebhookURL: "http://receiver/hook/out", CreatedAt: "then", EndToEndID: "E2", Version: 3,
	}
	kept := order{
		ID: "id-no", ExternalID: "ext-no", ReferenceID: "no", Status: "CANCELED", Amount: 9, Currency: "BRL",
		PIXKey: "a@b.example", PIXKeyType: "EMAIL", CreatedAt: "then", Version: 2,
	}
	b := &books{
		orders:    map[string][]order{payin: {paid}, payout: {sent, kept}},
		read:      map[string]reading{},
		again:     map[string]echo{},
		balance:   balance{Available: funds + 500 - 70, Unapplied: 20},
		transfers: []transfer{{ExternalID: "ext-out", Amount: 70, PIXKey: "a@b.example", EndToEndID: "E2", Status: "paid"}},
		payments:  []payment{{ID: "1", ExternalID: "ext-in", EndToEndID: "E1", Amount: 300}, {ID: "2", ExternalID: "ext-in", EndToEndID: "E3", Amount: 220}},
	}
	for kind, list := range b.orders {
		for i := range list {
			o := list[i]
			b.read[kind+" "+o.ID] = reading{200, o}
			b.again[kind+" "+o.ReferenceID] = echo{status: 201, replayed: true, order: o, otherStatus: 409, otherCode: "reference_conflict", otherFields: []string{"amount"}}
			first := o
			first.Status, first.Version, first.EndToEndID, first.PaidAmount = "PENDING", 1, "", 0
			a := &asked{Kind: kind, Reference: o.ReferenceID, Body: text(t, o), Acked: text(t, first), Canceled: o.Status == "CANCELED"}
			b.asked = append(b.asked, a)
			for version := 2; version <= o.Version; version++ {
				e := event{ID: fmt.Sprintf("evt-%s-%d", o.ReferenceID, version), Type: kind + ".moved", Version: version, Data: o, digest: "digest"}
				e.Data.Version, e.Data.whole = version, nil
				e.Data.whole = text(t, e.Data)
				b.events = append(b.events, e)
				if o.WebhookURL != "" {
					d := delivery{Path: "/hook/" + o.ReferenceID, EventID: e.ID, Digest: "digest", Signed: true, Reference: o.ReferenceID, Version: version}
					b.deliveries = append(b.deliveries, d)
					d.Status = 204
					b.deliveries = append(b.deliveries, d)
				}
			}
			list[i].whole = text(t, list[i])
		}
	}
	b.asked = append(b.asked, &asked{Kind: payout, Reference: "poor", Body: json.RawMessage(`{"amount":1}`), Refused: "insufficient_balance"})
	slices.SortFunc(b.asked, func(x, y *asked) int { return strings.Compare(x.Reference, y.Reference) })
	return b
}

func text(t *testing.T, v any) json.RawMessage {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestSoundBooksAgree(t *testing.T) {
	t.Parallel()
	for _, v := range compare(sound(t)) {
		t.Error(v)
	}
}

// in and out find the orders of the sound books.
func (b *books) in() *order  { return &b.orders[payin][0] }
func (b *books) out() *order { return &b.orders[payout][0] }

// about finds what the clients know of an order.
func (b *books) about(reference string) *asked {
	return b.asked[slices.IndexFunc(b.asked, func(a *asked) bool { return a.Reference == reference })]
}

func (b *books) echo(key string, change func(*echo)) {
	e := b.again[key]
	change(&e)
	b.again[key] = e
}

// differences are the ways in which books can differ: what is then found, and
// of which order.
var differences = []struct {
	kind, reference string
	spoil           func(b *books)
}{
	{"acknowledged but lost", "in", func(b *books) { b.read["payin id-in"] = reading{status: 404} }},
	{"acknowledged but lost", "out", func(b *books) { delete(b.read, "payout id-out") }},
	{"acknowledged but not listed", "no", func(b *books) { b.orders[payout] = b.orders[payout][:1] }},
	{"acknowledged but made anew", "out", func(b *books) { b.echo("payout out", func(e *echo) { e.replayed = false }) }},
	{"acknowledged but changed", "out", func(b *books) { b.echo("payout out", func(e *echo) { e.order.ID = "another" }) }},
	{"acknowledged but changed", "in", func(b *books) { b.in().PIX.QRCode = "another" }},
	{"acknowledged but changed", "in", func(b *books) { b.in().CreatedAt = "now" }},
	{"acknowledged but changed", "no", func(b *books) { b.orders[payout][1].Version = 0 }},
	{"acknowledged otherwise than asked", "out", func(b *books) {
		b.about("out").Body = json.RawMessage(strings.Replace(string(b.about("out").Body), `"amount":70`, `"amount":71`, 1))
	}},
	{"canceled but not so", "out", func(b *books) { b.about("out").Canceled = true }},
	{"refused but made", "out", func(b *books) { b.about("out").Refused = "insufficient_balance" }},
	{"not asked again", "in", func(b *books) { delete(b.again, "payin in") }},
	{"not repeatable", "in", func(b *books) { b.echo("payin in", func(e *echo) { e.status = 503 }) }},
	{"other order under a used reference", "in", func(b *books) { b.echo("payin in", func(e *echo) { e.otherStatus, e.otherCode = 201, "" }) }},
	{"other order under a used reference", "in", func(b *books) { b.echo("payin in", func(e *echo) { e.otherFields = nil }) }},
	{"made twice", "out", func(b *books) { b.orders[payout] = append(b.orders[payout], *b.out()) }},
	{"made unasked", "out", func(b *books) {
		b.asked = slices.DeleteFunc(b.asked, func(a *asked) bool { return a.Reference == "out" })
	}},
	{"left open", "out", func(b *books) { b.out().Status = "PROCESSING" }},
	{"left open", "no", func(b *books) { b.orders[payout][1].Status = "PENDING" }},
	{"without a code", "in", func(b *books) { b.in().Status, b.in().PIX.QRCode = "PENDING", "" }},

	{"paid twice", "out", func(b *books) { b.transfers = append(b.transfers, b.transfers[0]) }},
	{"paid but not transferred", "out", func(b *books) { b.transfers = nil }},
	{"transferred but not so", "out", func(b *books) { b.out().Status = "FAILED" }},
	{"transferred but not so", "out", func(b *books) { b.transfers[0].Status = "failed" }},
	{"transferred but not so", "no", func(b *books) {
		b.transfers = append(b.transfers, transfer{ExternalID: "ext-no", Amount: 9, PIXKey: "a@b.example", Status: "paid"})
	}},
	{"transferred in another amount", "out", func(b *books) { b.transfers[0].Amount++ }},
	{"transferred to another", "out", func(b *books) { b.transfers[0].PIXKey = "x@b.example" }},
	{"another transfer's id", "out", func(b *books) { b.transfers[0].EndToEndID = "E9" }},
	{"returned in another amount", "out", func(b *books) {
		b.transfers[0].Status, b.out().Status, b.out().ReturnedAmount = "returned", "RETURNED", 69
	}},
	{"transferred unasked", "", func(b *books) {
		b.transfers = append(b.transfers, transfer{ExternalID: "ext-in", Amount: 1, Status: "failed"})
	}},

	{"payment lost", "in", func(b *books) { b.in().PaidAmount-- }},
	{"payment booked twice", "in", func(b *books) { b.in().PaidAmount++ }},
	{"paid without money", "in", func(b *books) { b.payments, b.in().PaidAmount = b.payments[:1], 300 }},
	{"money without being paid", "in", func(b *books) { b.in().Status = "EXPIRED" }},
	{"another payment's id", "in", func(b *books) { b.in().EndToEndID = "E9" }},
	{"payment on no order", "", func(b *books) { b.payments[1].ExternalID = "ext-out" }},
	{"balance", "", func(b *books) { b.balance.Available-- }},
	{"balance", "", func(b *books) { b.balance.Held = 1 }},
	{"balance", "", func(b *books) { b.payments[1].Amount++ }},
	{"books unsound", "", func(b *books) { b.verify = "FAULTY" }},

	{"news missing", "out", func(b *books) { b.drop("evt-out-2") }},
	{"news missing", "out", func(b *books) { b.drop("evt-out-3") }},
	{"news missing", "in", func(b *books) { b.drop("evt-in-2"); b.drop("evt-in-3") }},
	{"news out of order", "in", func(b *books) { b.event("evt-in-3").Version = 2 }},
	{"news of something else", "in", func(b *books) { b.event("evt-in-3").Type = "payout.moved" }},
	{"news of something else", "in", func(b *books) { b.event("evt-in-2").Data.Version = 1 }},
	{"news not true", "in", func(b *books) { b.event("evt-in-3").Data.whole = json.RawMessage(`{}`) }},
	{"news not true", "in", func(b *books) { b.event("evt-in-3").Data.Status = "EXPIRED" }},
	{"event listed twice", "in", func(b *books) { b.events = append(b.events, *b.event("evt-in-3")) }},
	{"news not delivered", "in", func(b *books) {
		b.deliveries = slices.DeleteFunc(b.deliveries, func(d delivery) bool { return d.EventID == "evt-in-3" && d.Status == 204 })
	}},
	{"false delivery", "in", func(b *books) { b.delivery("in").Signed = false }},
	{"false delivery", "in", func(b *books) { b.delivery("in").Digest = "another" }},
	{"false delivery", "in", func(b *books) { b.delivery("in").EventID = "evt-unknown" }},
	{"false delivery", "in", func(b *books) { b.delivery("in").Path = "/followed" }},
}

// Each is found, by its name and with its order.
func TestDifferencesAreFound(t *testing.T) {
	t.Parallel()
	for _, test := range differences {
		t.Run(test.kind, func(t *testing.T) {
			t.Parallel()
			b := sound(t)
			test.spoil(b)
			found := compare(b)
			if !slices.ContainsFunc(found, func(v violation) bool { return v.kind == test.kind && v.reference == test.reference }) {
				t.Errorf("not found; what was: %v", found)
			}
		})
	}
}

func (b *books) drop(id string) {
	b.events = slices.DeleteFunc(b.events, func(e event) bool { return e.ID == id })
}

func (b *books) event(id string) *event {
	return &b.events[slices.IndexFunc(b.events, func(e event) bool { return e.ID == id })]
}

func (b *books) delivery(reference string) *delivery {
	return &b.deliveries[slices.IndexFunc(b.deliveries, func(d delivery) bool { return d.Reference == reference })]
}

// A violation tells what each book says of its order.
func TestViolationTellsEachBook(t *testing.T) {
	t.Parallel()
	b := sound(t)
	b.transfers = append(b.transfers, b.transfers[0])
	told := fmt.Sprint(compare(b))
	for _, want := range []string{"PAID TWICE", `"out"`, "id-out", "ext-out", "clients", "gateway", "bank", "E2", "evt-out-3", "Signed:true"} {
		if !strings.Contains(told, want) {
			t.Errorf("says nothing of %s:\n%s", want, told)
		}
	}
}
