package apipix

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// readAll reads a feed from a cursor to its end.
func (h *harness) readAll(t *testing.T, feed processor.Feed, cursor string) (facts []processor.Fact, next string, pages int) {
	t.Helper()
	for {
		page, err := h.driver.(processor.Feeder).Read(t.Context(), feed, cursor)
		if err != nil {
			t.Fatalf("%s at %q: %v", feed, cursor, err)
		}
		facts, pages = append(facts, page.Facts...), pages+1
		if page.More && page.Next == cursor {
			t.Fatalf("%s: the cursor %q does not move", feed, cursor)
		}
		if cursor = page.Next; !page.More {
			if page.Missing == nil && !page.Through.Equal(h.clock.Now().Truncate(time.Millisecond)) {
				t.Errorf("%s: complete through %v", feed, page.Through)
			}
			return facts, cursor, pages
		}
	}
}

// TestListBehindOurClock: a clock that runs ahead does not move the cursor beyond the bank's time,
// so entries that come before our time are in the next page.
func TestListBehindOurClock(t *testing.T) {
	h := newHarness(t, ProfileEfi)
	behind := open(t, h.clock, &changed{handlerTransport{h.face.Handler()}, nil, -26 * time.Hour}, ProfileEfi, testBase).(*Efi)
	page, err := behind.Read(t.Context(), processor.FeedPayments, "")
	for err == nil && page.More {
		page, err = behind.Read(t.Context(), processor.FeedPayments, page.Next)
	}
	bank := start.Add(-26 * time.Hour)
	if err != nil || !page.Through.Equal(bank) {
		t.Fatalf("complete through %v, %v; the bank's time is %v", page.Through, err, bank)
	}
	if c, err := parseCursor(page.Next); err != nil || !c.from.Equal(bank.Add(-overlap)) {
		t.Errorf("the next page begins at %v, %v", c.from, err)
	}
}

func (h *harness) paidCharge(t *testing.T, amount int64) processor.Payment {
	t.Helper()
	r := processor.ChargeRequest{ExternalID: h.newID(), Method: payment.PIX, Amount: 12_345, ExpiresAt: h.clock.Now().Add(time.Hour), MerchantName: "Loja", MerchantCity: "Recife"}
	if a := h.driver.(processor.Charger).Charge(t.Context(), r, willing); a.Outcome != processor.Done {
		t.Fatalf("charge: %+v", a)
	}
	h.control(t, "/control/charges/"+r.ExternalID+"/pay", map[string]int64{"amount": amount})
	return h.driver.(processor.Charger).QueryCharge(t.Context(), r.ExternalID).Payments[0]
}

// TestReturnsAreFound: returns that were requested here and at the panel are in the list of
// refunds, and those of the MED are disputes of the charge.
func TestReturnsAreFound(t *testing.T) {
	h := newHarness(t, ProfileEfi)
	p := h.paidCharge(t, 12_345)
	q := h.paidCharge(t, 500)
	h.clock.Advance(40 * 24 * time.Hour) // the returns are listed at their payment's time
	ours := processor.RefundRequest{ExternalID: h.newID(), PaymentID: p.ID, Amount: 1_000}
	if a := h.driver.(processor.Refunder).Refund(t.Context(), ours, willing); a.Outcome != processor.Done {
		t.Fatalf("refund: %+v", a)
	}
	h.control(t, "/control/refunds", bankapi.RefundRequest{PaymentID: p.ID, Amount: 234})
	h.elapse(t)
	h.control(t, "/control/charges/"+q.ExternalID+"/dispute", bankapi.ForceCharge{})

	facts, next, pages := h.readAll(t, processor.FeedRefunds, "")
	if len(facts) != 2 || next != "" || pages < 2 {
		t.Fatalf("%d facts on %d pages, then %q", len(facts), pages, next)
	}
	sum := int64(0)
	for _, f := range facts {
		r := f.Refund
		if r == nil || r.PaymentID != p.ID || r.State != processor.TransferPaid || len(r.ExternalID) != payment.ExternalIDLength || r.EndToEndID == "" {
			t.Fatalf("fact %+v", f)
		}
		if sum += int64(r.Amount); (r.ExternalID == ours.ExternalID) != (r.Amount == ours.Amount) {
			t.Errorf("refund %+v", r)
		}
	}
	if sum != 1_234 {
		t.Errorf("%d returned", sum)
	}
	again, _, _ := h.readAll(t, processor.FeedRefunds, next)
	if len(again) != 2 || again[0].Refund.ExternalID != facts[0].Refund.ExternalID || again[1].Refund.ExternalID != facts[1].Refund.ExternalID {
		t.Errorf("read again: %+v", again)
	}

	for state, action := range map[processor.DisputeState]string{processor.DisputeOpen: "", processor.DisputeLost: "lose"} {
		if action != "" {
			h.control(t, "/control/charges/"+q.ExternalID+"/"+action, bankapi.ForceCharge{})
		}
		changes, _, _ := h.readAll(t, processor.FeedChanges, "")
		report := h.driver.(processor.Charger).QueryCharge(t.Context(), q.ExternalID)
		if len(changes) != 1 || len(report.Disputes) != 1 || *changes[0].Change.Dispute != report.Disputes[0] || changes[0].Change.ExternalID != q.ExternalID {
			t.Fatalf("changes %+v, report %+v", changes, report)
		}
		if d := report.Disputes[0]; d.Amount != 500 || action == "" && d.State != processor.DisputeOpen || action != "" && d.State != state {
			t.Errorf("dispute %+v, want %s", d, state)
		}
		if action == "" {
			continue
		}
		break
	}
}

// TestReturnedTransfer: what a receiver's bank sends back is a change.
func TestReturnedTransfer(t *testing.T) {
	h := newHarness(t, ProfileEfi)
	r := transferRequest()
	if a := h.driver.(processor.Transferrer).Transfer(t.Context(), r, willing); a.Outcome != processor.Done {
		t.Fatalf("transfer: %+v", a)
	}
	h.elapse(t)
	h.control(t, "/control/transfers/"+r.ExternalID+"/return", bankapi.ForceTransfer{Amount: 100})
	changes, _, _ := h.readAll(t, processor.FeedChanges, "")
	if len(changes) != 1 || changes[0].Change.Subject != processor.SubjectTransfer || changes[0].Change.Returned != 100 || changes[0].Change.ExternalID != r.ExternalID {
		t.Errorf("changes %+v", changes)
	}
	if report := h.driver.(processor.Transferrer).QueryTransfer(t.Context(), r.ExternalID); report.Returned != 100 || report.State != processor.TransferPaid {
		t.Errorf("report %+v", report)
	}
	if b, err := h.driver.(processor.BalanceReader).Balance(t.Context()); err != nil || b.Amount != 100-r.Amount {
		t.Errorf("balance %+v, %v", b, err)
	}
}

// TestPaymentsOverlap: a list is read a bit before the last window's end, page after page, and
// from years ago in windows.
func TestPaymentsOverlap(t *testing.T) {
	h := newHarness(t, ProfileBacen)
	feeder := h.driver.(processor.Feeder)
	h.paidCharge(t, 100)
	facts, next, _ := h.readAll(t, processor.FeedPayments, feeder.Feeds()[processor.FeedPayments].From(start.Add(-time.Hour)))
	if len(facts) != 1 {
		t.Fatalf("facts %+v", facts)
	}
	h.clock.Advance(time.Minute)
	h.paidCharge(t, 200)
	if facts, _, _ = h.readAll(t, processor.FeedPayments, next); len(facts) != 2 {
		t.Errorf("a minute later: %+v", facts)
	}
	h.clock.Advance(70 * 24 * time.Hour)
	facts, _, pages := h.readAll(t, processor.FeedPayments, next)
	if len(facts) != 2 || pages != 3 {
		t.Errorf("70 days later: %d facts on %d pages", len(facts), pages)
	}
}

// list is an answer about a list.
func listOf(page, pages int, entries string) *foreign {
	return &foreign{status: 200, contentType: jsonType, body: fmt.Sprintf(
		`{"parametros":{"inicio":"2026-11-20T18:00:00Z","fim":"2026-11-20T18:30:00Z","paginacao":{"paginaAtual":%d,"itensPorPagina":500,"quantidadeDePaginas":%d,"quantidadeTotalDeItens":1}},"pix":[%s]}`,
		page, pages, entries)}
}

// TestListAnswers: a page that does not say which one it is may lack entries, so it is none;
// an invalid entry hides no other.
func TestListAnswers(t *testing.T) {
	at := (&cursor{list: listReceived, from: start.Add(-time.Hour)}).String()
	read := func(f *foreign) (processor.Page, error) {
		return newHostile(t, f).Read(t.Context(), processor.FeedPayments, at)
	}
	for name, f := range map[string]*foreign{
		"other page":     listOf(1, 2, goodPayment),
		"no end":         listOf(0, pagesMax+1, goodPayment),
		"empty, of more": listOf(0, 2, ""),
		"no paging":      {status: 200, contentType: jsonType, body: `{"parametros":{},"pix":[` + goodPayment + `]}`},
		"no parameters":  {status: 200, contentType: jsonType, body: `{"pix":[` + goodPayment + `]}`},
	} {
		if page, err := read(f); err == nil {
			t.Errorf("%s: %+v", name, page)
		}
	}
	invalid := []string{`17`, `{}`, `{"endToEndId":"E1","txid":"` + hostileID + `","valor":"1","horario":"2026-11-20T18:31:00Z"}`}
	cut := strings.Replace(goodPayment, "{", `{"infoPagador":"obrigado \ud83d","x":"`+"\xc3"+`",`, 1) // within a character
	page, err := read(listOf(0, 1, strings.Join(append(invalid, cut), ",")))
	if err != nil || len(page.Facts) != 4 || page.More {
		t.Fatalf("page %+v, %v", page, err)
	}
	ids := map[string]bool{}
	for i, f := range page.Facts {
		switch {
		case i < 3 && (f.Unreadable == nil || ids[f.Unreadable.ID] || f.Unreadable.Cause != processor.InvalidValues):
			t.Errorf("fact %d: %+v", i, f)
		case i < 3:
			ids[f.Unreadable.ID] = true
		case f.Payment == nil || f.Payment.ID != hostileE2E:
			t.Errorf("fact %d: %+v", i, f)
		}
	}
	if page.Facts[2].Unreadable.ExternalID != hostileID {
		t.Errorf("unreadable %+v", page.Facts[2].Unreadable)
	}
	for _, text := range []string{"x", "pix", "pix 2026", "other 2026-11-20T18:30:00.000Z", "pix 2026-11-20T18:30:00.000Z 2026-11-20T18:00:00.000Z 0", "pix 2026-11-20T18:30:00.000Z 2026-11-20T19:00:00.000Z -1"} {
		if _, err := newHostile(t, listOf(0, 1, "")).Read(t.Context(), processor.FeedPayments, text); err == nil {
			t.Errorf("cursor %q is accepted", text)
		}
	}
}

// TestDisputeOfNoOrder: what the MED took of a payment that names no order is a refund; of one
// that names an order it is a change.
func TestDisputeOfNoOrder(t *testing.T) {
	at := (&cursor{list: listReceived, from: start.Add(-time.Hour)}).String()
	returned := func(txid, status string) string {
		return `{"endToEndId":"` + hostileE2E + `",` + txid + `"valor":"123.45","horario":"2026-11-20T18:31:00.000Z","devolucoes":[
			{"id":"med1","rtrId":"D1","valor":"10.00","natureza":"MED_FRAUDE","status":"` + status + `","horario":{"solicitacao":"2026-11-20T18:32:00.000Z"}}]}`
	}
	for name, c := range map[string]struct {
		entry            string
		refunds, changes int
		state            processor.TransferState
	}{
		"taken":            {returned("", statusReturned), 1, 0, processor.TransferPaid},
		"not taken":        {returned("", statusFailed), 1, 0, processor.TransferFailed},
		"undecided":        {returned("", statusProcessing), 0, 0, ""},
		"of a static code": {returned(`"txid":"PEDIDO123",`, statusReturned), 1, 0, processor.TransferPaid},
		"of an order":      {returned(`"txid":"`+hostileID+`",`, statusReturned), 0, 1, ""},
	} {
		d := newHostile(t, listOf(0, 1, c.entry))
		for feed, want := range map[processor.Feed]int{processor.FeedRefunds: c.refunds, processor.FeedChanges: c.changes} {
			page, err := d.Read(t.Context(), feed, at)
			if err != nil || len(page.Facts) != want {
				t.Errorf("%s, %s: %+v, %v", name, feed, page, err)
				continue
			}
			if feed == processor.FeedChanges && want == 1 && page.Facts[0].Change.Dispute.PaymentID != hostileE2E {
				t.Errorf("%s: %+v", name, page.Facts[0].Change.Dispute) // of its payment it is booked if the order is not known
			}
			if feed == processor.FeedRefunds && want == 1 {
				if r := page.Facts[0].Refund; r == nil || r.State != c.state || r.Amount != 10_00 || r.PaymentID != hostileE2E || r.ExternalID == "" {
					t.Errorf("%s: %+v", name, page.Facts[0])
				}
			}
		}
	}
}
