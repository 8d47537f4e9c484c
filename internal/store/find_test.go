package store_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/processor/processortest"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// Pages that examine only a few orders each find, together, every order that the filters
// select, once, newest first; and no page examines more.
func TestPagesThatScan(t *testing.T) {
	defer store.SetScanMost(7)()
	coretest.EachEngine(t, func(t *testing.T, g *coretest.Gateway) {
		random := rand.New(rand.NewPCG(1, 2))
		m := g.Merchant.ID
		g.Bank.AnswerCharge = func(b *coretest.Bank, r processor.ChargeRequest) processor.ChargeAnswer {
			b.Charges[r.ExternalID] = &processor.ChargeReport{Lookup: processor.Found, State: processor.ChargeOpen}
			if r.Method == payment.CreditCard {
				return processor.ChargeAnswer{Outcome: processor.Done, Charge: processor.Charge{Card: &payment.CardDetail{}}}
			}
			return processor.ChargeAnswer{Outcome: processor.Done, Charge: processor.Charge{PIX: processortest.PIX(r)}}
		}
		documents := []string{"52998224725", "11144477735"}
		type known struct {
			payment.Payin
			document string
		}
		var all []known
		for i := range 60 {
			r := coretest.PayinRequest(fmt.Sprint(i), "")
			document := documents[random.IntN(2)]
			r.Amount = wire.Some(1 + random.Int64N(9))
			if random.IntN(3) == 0 {
				r.Method, r.ExpiresIn = wire.Some(string(payment.CreditCard)), wire.Field[int64]{}
			}
			r.Personal.Customer = fmt.Appendf(nil, `{"document":%q,"email":"m@example.com"}`, document)
			p, _, err := g.Payins.Create(t.Context(), g.Merchant, r)
			g.Must(err)
			if random.IntN(3) == 0 {
				p, err = g.Payins.Cancel(t.Context(), m, p.ID)
				g.Must(err)
			}
			all = append(all, known{p, document})
			g.Clock.Advance(time.Duration(random.IntN(3)) * time.Millisecond)
		}
		slices.SortFunc(all, func(a, b known) int { return payment.CompareIDs(b.ID, a.ID) })
		_, err := g.Search.Index(t.Context())
		g.Must(err)
		for range 60 {
			var f store.Filter
			f.MinAmount, f.MaxAmount = money.Cents(random.IntN(6)), money.Cents(random.IntN(10))
			document := ""
			if random.IntN(2) == 0 {
				document = documents[random.IntN(2)]
				f.Terms = append(f.Terms, []store.SearchTerm{g.Store.SearchTerm(m, store.SearchCustomerDocument, document)})
			}
			if random.IntN(3) == 0 {
				f.Terms = append(f.Terms, []store.SearchTerm{{1}, g.Store.SearchTerm(m, store.SearchCustomerEmail, "m@example.com")})
			}
			if random.IntN(3) == 0 {
				f.Status = string(payment.PayinCanceled)
			}
			f.Method = []payment.Method{"", payment.PIX, payment.CreditCard}[random.IntN(3)]
			var want []string
			for _, p := range all {
				if (f.MinAmount == 0 || p.Amount >= f.MinAmount) && (f.MaxAmount == 0 || p.Amount <= f.MaxAmount) &&
					(document == "" || p.document == document) && (f.Method == "" || p.Method == f.Method) && (f.Status == "" || p.Status == payment.PayinStatus(f.Status)) {
					want = append(want, p.ReferenceID)
				}
			}
			got := payinPages(t, g, f, 1+random.IntN(5))
			if !slices.Equal(got, want) {
				t.Fatalf("%+v: found %v, want %v", f, got, want)
			}
		}
	})
}

// listed is an order of a page.
type listed struct {
	id        payment.ID
	reference string
}

// payinPages reads all pages of a list of pay-ins.
func payinPages(t *testing.T, g *coretest.Gateway, f store.Filter, limit int) (references []string) {
	t.Helper()
	return pages(t, g, payment.OperationPayin, f, limit, func(f store.Filter) (page []listed) {
		list, err := g.Store.Payins(t.Context(), g.Merchant.ID, f)
		g.Must(err)
		for i := range list {
			page = append(page, listed{list[i].ID, list[i].ReferenceID})
		}
		return page
	})
}

// pages reads all pages of a list, as the API does.
func pages(t *testing.T, g *coretest.Gateway, op payment.Operation, f store.Filter, limit int, read func(store.Filter) []listed) (references []string) {
	t.Helper()
	for range 100 {
		f.From = payment.ID{}
		if f.Limit = limit; f.Scans() {
			from, err := g.Store.ScanFrom(t.Context(), g.Merchant.ID, op, f)
			g.Must(err)
			f.From = from
		}
		f.Limit++
		list := read(f)
		next := f.From
		if len(list) > limit {
			list = list[:limit]
			next = list[limit-1].id
		}
		for i := range list {
			references = append(references, list[i].reference)
		}
		if next.IsZero() {
			return references
		}
		f.Before = next
	}
	t.Fatal("the list has no end")
	return nil
}

// A page is bounded if no index has just the orders that its filters select.
func TestFiltersThatScan(t *testing.T) {
	t.Parallel()
	term := [][]store.SearchTerm{{{1}}}
	for _, f := range []store.Filter{
		{Statuses: []string{"PAID", "PENDING"}}, {PaidFrom: time.Unix(1, 0)}, {PaidTo: time.Unix(1, 0)}, {MinAmount: 1}, {MaxAmount: 1}, {Method: payment.PIX}, {Method: payment.PIX, CreatedFrom: time.Unix(1, 0)}, {Status: "COMPLETED"},
		{Status: "PAID", Method: payment.Boleto}, {Status: "PAID", Method: payment.PIX}, {Terms: term, Status: "PAID"}, {Terms: term, Method: payment.Boleto}, {Terms: append(term, term...)},
	} {
		if !f.Scans() {
			t.Errorf("%+v may read all orders", f)
		}
		if f.ExternalID = "x"; f.Scans() {
			t.Errorf("%+v selects one order", f)
		}
	}
	for _, f := range []store.Filter{{}, {Status: "PAID"}, {Method: payment.Boleto}, {Terms: term}, {Status: "COMPLETED", Payin: payment.ID{1}}, {Status: "COMPLETED", Batch: payment.ID{1}}} {
		if f.Scans() {
			t.Errorf("%+v has an index", f)
		}
	}
}
