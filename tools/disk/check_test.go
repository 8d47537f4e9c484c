package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// sound are books in which nothing is wrong: a pay-in and a payout that were
// acknowledged, and a payout that was not.
func sound() *books {
	b := &books{read: map[string]reading{}, again: map[string]reading{}, transfers: map[string][]transfer{}}
	for i, kind := range []string{payin, payout, payout} {
		o := order{
			ID: fmt.Sprintf("id-%d", i), ExternalID: fmt.Sprintf("ext-%d", i), ReferenceID: fmt.Sprintf("ref-%d", i),
			Status: "PENDING", Amount: 100, CreatedAt: "2026-11-20T18:30:00.000Z",
		}
		a := &asked{Kind: kind, Reference: o.ReferenceID}
		if i < 2 {
			a.Acked = acknowledgement(o)
		}
		if kind == payout {
			o.Status, o.PIXKey, o.EndToEndID = "COMPLETED", "a@b.example", "E1"
			if i < 2 {
				told := o
				told.Status, told.EndToEndID = "PENDING", ""
				a.Acked = acknowledgement(told)
			}
			b.payouts = append(b.payouts, o)
			b.transfers[o.ExternalID] = []transfer{{o.ExternalID, 100, "a@b.example", "E1", "paid"}}
		}
		b.asked = append(b.asked, a)
		b.read[kind+" "+o.ID] = reading{200, false, o}
		b.again[kind+" "+o.ReferenceID] = reading{201, i < 2, o}
	}
	return b
}

func acknowledgement(o order) json.RawMessage {
	return fmt.Appendf(nil, `{"id":%q,"externalId":%q,"referenceId":%q,"status":%q,"amount":"%d","createdAt":%q,"pixKey":%q}`,
		o.ID, o.ExternalID, o.ReferenceID, o.Status, o.Amount, o.CreatedAt, o.PIXKey)
}

// Whatever is wrong with one book is found, and what is right is not.
func TestCompare(t *testing.T) {
	t.Parallel()
	if found := compare(sound()); len(found) > 0 {
		t.Fatalf("sound books: %v", found)
	}
	change := func(m map[string]reading, key string, f func(*reading)) {
		r := m[key]
		f(&r)
		m[key] = r
	}
	for name, c := range map[string]struct {
		spoil func(*books)
		says  string
	}{
		"lost":             {func(b *books) { change(b.read, "payin id-0", func(r *reading) { r.status = 404 }) }, "payin ref-0 was acknowledged as id-0, and is lost: GET answers 404"},
		"another amount":   {func(b *books) { change(b.read, "payout id-1", func(r *reading) { r.order.Amount++ }) }, "payout ref-1 was acknowledged as"},
		"another code":     {func(b *books) { change(b.read, "payin id-0", func(r *reading) { r.order.PIX.QRCode = "x" }) }, "payin ref-0 was acknowledged as"},
		"another order":    {func(b *books) { change(b.again, "payin ref-0", func(r *reading) { r.order.ID = "x" }) }, "payin ref-0 was acknowledged as"},
		"made anew":        {func(b *books) { change(b.again, "payin ref-0", func(r *reading) { r.replayed = false }) }, "asking again makes it anew"},
		"not repeatable":   {func(b *books) { change(b.again, "payout ref-2", func(r *reading) { r.status = 500 }) }, "payout ref-2 asked again is answered 500"},
		"paid twice":       {func(b *books) { b.transfers["ext-2"] = append(b.transfers["ext-2"], b.transfers["ext-2"][0]) }, "payout ref-2 has 2 transfers"},
		"not paid":         {func(b *books) { delete(b.transfers, "ext-1") }, "the bank has no transfer for it"},
		"not final":        {func(b *books) { delete(b.transfers, "ext-1"); b.payouts[0].Status = "PROCESSING" }, "payout ref-1 is still PROCESSING"},
		"failed, and paid": {func(b *books) { b.payouts[0].Status = "FAILED" }, "payout ref-1 is FAILED, its transfer is paid"},
		"paid otherwise":   {func(b *books) { b.transfers["ext-1"][0].Amount = 99 }, "its transfer is"},
		"paid to another":  {func(b *books) { b.transfers["ext-1"][0].PIXKey = "x" }, "its transfer is"},
		"unasked":          {func(b *books) { b.transfers["ext-9"] = []transfer{{}} }, "there is no such payout"},
		"unsound":          {func(b *books) { b.verify = "balances FAULTY" }, "porteira verify: balances FAULTY"},
		"another after a restore": {func(b *books) {
			b.forgets = true
			change(b.read, "payout id-1", func(r *reading) { r.status = 404 })
			change(b.again, "payout ref-1", func(r *reading) { r.order.ExternalID = "x" })
		}, "is another after the restore"},
	} {
		b := sound()
		c.spoil(b)
		if found := strings.Join(compare(b), "\n"); !strings.Contains(found, c.says) {
			t.Errorf("%s: found %q, want %q", name, found, c.says)
		}
	}
	b := sound()
	b.forgets = true
	change(b.read, "payout id-1", func(r *reading) { r.status = 404 })
	change(b.again, "payout ref-1", func(r *reading) { r.replayed, r.order.ID = false, "new" })
	if found := compare(b); len(found) > 0 {
		t.Errorf("made anew after a restore: %v", found)
	}
}

// A refusal says when to come again, in the form of the contract.
func TestObjection(t *testing.T) {
	t.Parallel()
	const json, doc = "application/problem+json", `{"code":"unavailable"}`
	for _, c := range []struct {
		kind string
		got  answer
		fine bool
	}{
		{payin, answer{status: 503, kind: json, retryAfter: "1", body: []byte(doc)}, true},
		{payin, answer{status: 504, kind: json, body: []byte(`{"code":"processor_timeout"}`)}, true},
		{payout, answer{status: 504, kind: json, body: []byte(`{"code":"processor_timeout"}`)}, false},
		{payin, answer{status: 503, kind: json, body: []byte(doc)}, false},
		{payin, answer{status: 503, kind: json, retryAfter: "0", body: []byte(doc)}, false},
		{payin, answer{status: 503, kind: json, retryAfter: "soon", body: []byte(doc)}, false},
		{payin, answer{status: 503, kind: "text/plain", retryAfter: "1", body: []byte(doc)}, false},
		{payin, answer{status: 503, kind: json, retryAfter: "1"}, false},
		{payin, answer{status: 500, kind: json, body: []byte(doc)}, false},
		{payin, answer{status: 200}, false},
	} {
		if says := objection(&asked{Kind: c.kind}, c.got); (says == "") != c.fine {
			t.Errorf("%s answered %+v: %q", c.kind, c.got, says)
		}
	}
}

// What was first asked for while nothing could be written, and acknowledged
// while that lasted, is blamed; what began before or ended after is not.
func TestImpossible(t *testing.T) {
	t.Parallel()
	tr := &trial{crowd: &crowd{}}
	for _, times := range [][2]time.Duration{{5, 15}, {12, 18}, {15, 25}} {
		tr.crowd.orders = append(tr.crowd.orders, &asked{Reference: fmt.Sprint(times), Acked: []byte("{}"), first: times[0], acked: times[1]})
	}
	tr.crowd.orders = append(tr.crowd.orders, &asked{Reference: "never", first: 12})
	tr.impossible(10, 20)
	if len(tr.found) != 1 || !strings.Contains(tr.found[0], "[12ns 18ns]") {
		t.Errorf("found %v", tr.found)
	}
}
