package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// matching are records without a difference: a pay-in that was overpaid, a payout that
// was completed, one that was canceled, one whose acknowledgement was lost, and one that
// was refused because of the balance. Their events arrived, some of them twice.
func matching(t *testing.T) *records {
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
	unanswered := order{
		ID: "id-un", ExternalID: "ext-un", ReferenceID: "un", Status: "COMPLETED", Amount: 4, Currency: "BRL",
		PIXKey: "a@b.example", PIXKeyType: "EMAIL", CreatedAt: "then", EndToEndID: "E4", Version: 3,
	}
	b := &records{
		orders:  map[string][]order{payin: {paid}, payout: {sent, kept, unanswered}},
		read:    map[string]readBack{},
		repeats: map[string]repeat{},
		balance: balance{Available: funds + 500 - 70 - 4, Unapplied: 20},
		transfers: []transfer{
			{ExternalID: "ext-out", Amount: 70, PIXKey: "a@b.example", EndToEndID: "E2", Status: "paid"},
			{ExternalID: "ext-un", Amount: 4, PIXKey: "a@b.example", EndToEndID: "E4", Status: "paid"},
		},
		payments: []payment{{ID: "1", ExternalID: "ext-in", EndToEndID: "E1", Amount: 300}, {ID: "2", ExternalID: "ext-in", EndToEndID: "E3", Amount: 220}},
	}
	for kind, list := range b.orders {
		for i := range list {
			o := list[i]
			b.repeats[kind+" "+o.ReferenceID] = repeat{status: 201, replayed: true, order: o, otherStatus: 409, otherCode: "reference_conflict", otherFields: []string{"amount"}}
			first := o
			first.Status, first.Version, first.EndToEndID, first.PaidAmount = "PENDING", 1, "", 0
			a := &placement{Kind: kind, Reference: o.ReferenceID, Body: text(t, o)}
			if o.Status == "CANCELED" {
				a.Action, a.Canceled = actionCancel, true
			}
			if o.ID != unanswered.ID {
				a.Acked, b.read[kind+" "+o.ID] = text(t, first), readBack{200, o}
			}
			b.placements = append(b.placements, a)
			for version := 2; version <= o.Version; version++ {
				e := event{ID: fmt.Sprintf("evt-%s-%d", o.ReferenceID, version), Type: kind + ".moved", Version: version, Data: o, digest: "digest"}
				e.Data.Version, e.Data.raw = version, nil
				e.Data.raw = text(t, e.Data)
				b.events = append(b.events, e)
				if o.WebhookURL != "" {
					d := delivery{Path: "/hook/" + o.ReferenceID, EventID: e.ID, Digest: "digest", Signed: true, Reference: o.ReferenceID, Version: version}
					b.deliveries = append(b.deliveries, d)
					d.Status = 204
					b.deliveries = append(b.deliveries, d)
				}
			}
			list[i].raw = text(t, list[i])
		}
	}
	b.placements = append(b.placements, &placement{Kind: payout, Reference: "poor", Body: json.RawMessage(`{"amount":1}`), Refused: "insufficient_balance"})
	slices.SortFunc(b.placements, func(x, y *placement) int { return strings.Compare(x.Reference, y.Reference) })
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

func TestMatchingRecords(t *testing.T) {
	t.Parallel()
	for _, v := range compare(matching(t)) {
		t.Error(v)
	}
}

// in and out find the orders of the matching records.
func (b *records) in() *order  { return &b.orders[payin][0] }
func (b *records) out() *order { return &b.orders[payout][0] }

// placement finds the clients' record of an order.
func (b *records) placement(reference string) *placement {
	return b.placements[slices.IndexFunc(b.placements, func(a *placement) bool { return a.Reference == reference })]
}

func (b *records) repeat(key string, change func(*repeat)) {
	r := b.repeats[key]
	change(&r)
	b.repeats[key] = r
}

// differences are changes of one record: the violation that each must cause, and its
// order.
var differences = []struct {
	kind, reference string
	change          func(b *records)
}{
	{"acknowledged but lost", "in", func(b *records) { b.read["payin id-in"] = readBack{status: 404} }},
	{"acknowledged but lost", "out", func(b *records) { delete(b.read, "payout id-out") }},
	{"acknowledged but not listed", "no", func(b *records) { b.orders[payout] = b.orders[payout][:1] }},
	{"acknowledged but created again", "out", func(b *records) { b.repeat("payout out", func(r *repeat) { r.replayed = false }) }},
	{"acknowledged but changed", "out", func(b *records) { b.repeat("payout out", func(r *repeat) { r.order.ID = "another" }) }},
	{"acknowledged but changed", "in", func(b *records) { b.in().PIX.QRCode = "another" }},
	{"acknowledged but changed", "in", func(b *records) { b.in().CreatedAt = "now" }},
	{"acknowledged but changed", "no", func(b *records) { b.orders[payout][1].Version = 0 }},
	{"acknowledged otherwise than requested", "out", func(b *records) {
		b.placement("out").Body = json.RawMessage(strings.Replace(string(b.placement("out").Body), `"amount":70`, `"amount":71`, 1))
	}},
	{"cancellation lost", "out", func(b *records) { b.placement("out").Canceled = true }},
	{"refused but created", "out", func(b *records) { b.placement("out").Refused = "insufficient_balance" }},
	{"not repeated", "in", func(b *records) { delete(b.repeats, "payin in") }},
	{"not repeatable", "in", func(b *records) { b.repeat("payin in", func(r *repeat) { r.status = 503 }) }},
	{"another order under a used reference", "in", func(b *records) { b.repeat("payin in", func(r *repeat) { r.otherStatus, r.otherCode = 201, "" }) }},
	{"another order under a used reference", "in", func(b *records) { b.repeat("payin in", func(r *repeat) { r.otherFields = nil }) }},
	{"created twice", "out", func(b *records) { b.orders[payout] = append(b.orders[payout], *b.out()) }},
	{"created without a request", "out", func(b *records) {
		b.placements = slices.DeleteFunc(b.placements, func(a *placement) bool { return a.Reference == "out" })
	}},
	{"not final", "out", func(b *records) { b.out().Status = "PROCESSING" }},
	{"not final", "no", func(b *records) { b.orders[payout][1].Status = "PENDING" }},
	{"without a code", "in", func(b *records) { b.in().Status, b.in().PIX.QRCode = "PENDING", "" }},

	{"paid twice", "out", func(b *records) { b.transfers = append(b.transfers, b.transfers[0]) }},
	{"paid but not transferred", "out", func(b *records) { b.transfers = nil }},
	{"transferred but not reported", "out", func(b *records) { b.out().Status = "FAILED" }},
	{"transferred but not reported", "out", func(b *records) { b.transfers[0].Status = "failed" }},
	{"transferred but not reported", "no", func(b *records) {
		b.transfers = append(b.transfers, transfer{ExternalID: "ext-no", Amount: 9, PIXKey: "a@b.example", Status: "paid"})
	}},
	{"transferred another amount", "out", func(b *records) { b.transfers[0].Amount++ }},
	{"transferred to another key", "out", func(b *records) { b.transfers[0].PIXKey = "x@b.example" }},
	{"another transfer's id", "out", func(b *records) { b.transfers[0].EndToEndID = "E9" }},
	{"returned another amount", "out", func(b *records) {
		b.transfers[0].Status, b.out().Status, b.out().ReturnedAmount = "returned", "RETURNED", 69
	}},
	{"transferred without a payout", "", func(b *records) {
		b.transfers = append(b.transfers, transfer{ExternalID: "ext-in", Amount: 1, Status: "failed"})
	}},

	{"acknowledged but changed", "out", func(b *records) { b.change("payout id-out", func(r *readBack) { r.order.Amount++ }) }},
	{"acknowledged but changed", "in", func(b *records) { b.change("payin id-in", func(r *readBack) { r.order.PIX.QRCode = "x" }) }},
	{"not repeatable", "un", func(b *records) { b.repeat("payout un", func(r *repeat) { r.status = 500 }) }},
	{"paid twice", "un", func(b *records) { b.transfers = append(b.transfers, b.transfers[1]) }},

	{"canceled without a request", "no", func(b *records) { b.placement("no").Action = "" }},
	{"canceled without a request", "no", func(b *records) { b.placement("no").Action = actionFail }},
	{"not completed", "out", func(b *records) { b.transfers[0].Status, b.out().Status = "failed", "FAILED" }},
	{"not completed", "un", func(b *records) { b.orders[payout][2].Status = "PROCESSING" }},
	{"another order after the restore", "out", func(b *records) {
		b.restore()
		b.repeat("payout out", func(r *repeat) { r.order.ExternalID = "x" })
	}},
	{"another order after the restore", "out", func(b *records) {
		b.restore()
		b.repeat("payout out", func(r *repeat) { r.order.Amount++ })
	}},

	{"payment lost", "in", func(b *records) { b.in().PaidAmount-- }},
	{"payment booked twice", "in", func(b *records) { b.in().PaidAmount++ }},
	{"paid without money", "in", func(b *records) { b.payments, b.in().PaidAmount = b.payments[:1], 300 }},
	{"money without being paid", "in", func(b *records) { b.in().Status = "EXPIRED" }},
	{"another payment's id", "in", func(b *records) { b.in().EndToEndID = "E9" }},
	{"payment without an order", "", func(b *records) { b.payments[1].ExternalID = "ext-out" }},
	{"balance", "", func(b *records) { b.balance.Available-- }},
	{"balance", "", func(b *records) { b.balance.Held = 1 }},
	{"balance", "", func(b *records) { b.payments[1].Amount++ }},
	{"verify failed", "", func(b *records) { b.verify = "DEFECT" }},

	{"event missing", "out", func(b *records) { b.drop("evt-out-2") }},
	{"event missing", "out", func(b *records) { b.drop("evt-out-3") }},
	{"event missing", "in", func(b *records) { b.drop("evt-in-2"); b.drop("evt-in-3") }},
	{"event out of order", "in", func(b *records) { b.event("evt-in-3").Version = 2 }},
	{"event of another order", "in", func(b *records) { b.event("evt-in-3").Type = "payout.moved" }},
	{"event of another order", "in", func(b *records) { b.event("evt-in-2").Data.Version = 1 }},
	{"event differs", "in", func(b *records) { b.event("evt-in-3").Data.raw = json.RawMessage(`{}`) }},
	{"event differs", "in", func(b *records) { b.event("evt-in-3").Data.Status = "EXPIRED" }},
	{"event listed twice", "in", func(b *records) { b.events = append(b.events, *b.event("evt-in-3")) }},
	{"event not delivered", "in", func(b *records) {
		b.deliveries = slices.DeleteFunc(b.deliveries, func(d delivery) bool { return d.EventID == "evt-in-3" && d.Status == 204 })
	}},
	{"false delivery", "in", func(b *records) { b.delivery("in").Signed = false }},
	{"false delivery", "in", func(b *records) { b.delivery("in").Digest = "another" }},
	{"false delivery", "in", func(b *records) { b.delivery("in").EventID = "evt-unknown" }},
	{"false delivery", "in", func(b *records) { b.delivery("in").Path = "/followed" }},
}

// Each causes its violation, with its order.
func TestDifferencesAreFound(t *testing.T) {
	t.Parallel()
	for _, test := range differences {
		t.Run(test.kind, func(t *testing.T) {
			t.Parallel()
			b := matching(t)
			test.change(b)
			found := compare(b)
			if !slices.ContainsFunc(found, func(v violation) bool { return v.kind == test.kind && v.reference == test.reference }) {
				t.Errorf("found only %v", found)
			}
		})
	}
}

// A restored gateway creates orders again that were acknowledged after the backup, with
// the same identity at the bank.
func TestRestoredRecords(t *testing.T) {
	t.Parallel()
	b := matching(t)
	b.restore()
	for _, v := range compare(b) {
		t.Error(v)
	}
}

// restore changes the payout of the matching records to one that a restored gateway lacked
// and that its repeated request created again.
func (b *records) restore() {
	b.restored = true
	b.read["payout id-out"] = readBack{status: 404}
	b.repeat("payout out", func(r *repeat) { r.replayed, r.order.ID = false, "id-again" })
}

// A payout that the bank refused is no violation if the bank had faults.
func TestRefusingBank(t *testing.T) {
	t.Parallel()
	b := matching(t)
	b.bankFaults = true
	b.transfers[0].Status, b.out().Status = "failed", "FAILED"
	if found := compare(b); slices.ContainsFunc(found, func(v violation) bool { return v.kind == "not completed" }) {
		t.Error(found)
	}
}

func (b *records) change(key string, change func(*readBack)) {
	r := b.read[key]
	change(&r)
	b.read[key] = r
}

func (b *records) drop(id string) {
	b.events = slices.DeleteFunc(b.events, func(e event) bool { return e.ID == id })
}

func (b *records) event(id string) *event {
	return &b.events[slices.IndexFunc(b.events, func(e event) bool { return e.ID == id })]
}

func (b *records) delivery(reference string) *delivery {
	return &b.deliveries[slices.IndexFunc(b.deliveries, func(d delivery) bool { return d.Reference == reference })]
}

// A violation contains what each record contains about its order.
func TestViolation(t *testing.T) {
	t.Parallel()
	b := matching(t)
	b.transfers = append(b.transfers, b.transfers[0])
	text := fmt.Sprint(compare(b))
	for _, want := range []string{"PAID TWICE", `"out"`, "id-out", "ext-out", "clients", "gateway", "bank", "E2", "evt-out-3", "Signed:true"} {
		if !strings.Contains(text, want) {
			t.Errorf("it lacks %s:\n%s", want, text)
		}
	}
}
