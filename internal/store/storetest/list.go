package storetest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

var listTests = []test{
	{"filters select what they say", filters},
	{"creation times select by the millisecond", createdRange},
	{"pages neither repeat nor skip while rows are inserted", pagesUnderInserts},
	{"payouts are listed alike", payoutList},
}

func (b *bench) list(m store.Merchant, f store.Filter) (references []string) {
	b.Helper()
	if f.Limit == 0 {
		f.Limit = 100
	}
	list, err := b.s.Payins(b.Context(), m.ID, f)
	b.must(err)
	for i := range list {
		references = append(references, list[i].ReferenceID)
	}
	return references
}

func filters(b *bench) {
	m, other := b.merchant(), b.merchant()
	var all []*store.NewPayin
	for i, status := range payment.PayinStatuses {
		for j, method := range payment.Methods {
			p := b.payin(m, fmt.Sprintf("%d%d", i, j))
			p.Status, p.Method = status, method
			all = append(all, p)
		}
	}
	b.storePayins(append(slices.Clone(all), b.payin(other, "theirs"))...)
	equal(b, "all", len(b.list(m, store.Filter{})), len(all))
	equal(b, "newest first", b.list(m, store.Filter{Limit: 2})[0], all[len(all)-1].ReferenceID)
	for _, p := range all {
		one := store.Filter{Status: string(p.Status), Method: p.Method}
		equal(b, "by status and method", fmt.Sprint(b.list(m, one)), fmt.Sprint([]string{p.ReferenceID}))
		one.ExternalID = p.ExternalID
		equal(b, "and external id", len(b.list(m, one)), 1)
		one.Method = "OTHER"
		equal(b, "and another method", len(b.list(m, one)), 0)
		equal(b, "of another merchant", len(b.list(other, store.Filter{ExternalID: p.ExternalID})), 0)
	}
	equal(b, "by status", len(b.list(m, store.Filter{Status: "PAID"})), len(payment.Methods))
	equal(b, "by method", len(b.list(m, store.Filter{Method: payment.PIX})), len(payment.PayinStatuses))
	equal(b, "before the third", len(b.list(m, store.Filter{Before: all[2].ID})), 2)
	equal(b, "of a status that is none", len(b.list(m, store.Filter{Status: "paid"})), 0)
}

func createdRange(b *bench) {
	m := b.merchant()
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for i := range 5 {
		p := b.payin(m, fmt.Sprint(i))
		p.CreatedAt = start.Add(time.Duration(i) * time.Millisecond)
		p.ID = payment.MinIDAt(p.CreatedAt) // the first of its millisecond
		b.storePayins(p)
	}
	at := func(us int64) time.Time { return start.Add(time.Duration(us) * time.Microsecond) }
	for _, r := range []struct {
		from, to time.Time
		want     string
	}{
		{at(0), at(5000), "[4 3 2 1 0]"},
		{at(1000), at(3000), "[2 1]"},
		{at(1000), at(1000), "[]"},
		{at(1001), at(3001), "[3 2]"},
		{at(999), at(1001), "[1]"},
		{time.Time{}, at(2000), "[1 0]"},
		{at(3000), time.Time{}, "[4 3]"},
		{at(3000), at(1000), "[]"},
		{at(1000).In(time.FixedZone("", -3*3600)), at(2000), "[1]"},
	} {
		got := b.list(m, store.Filter{CreatedFrom: r.from, CreatedTo: r.to})
		equal(b, fmt.Sprintf("from %v to %v", r.from, r.to), fmt.Sprint(got), r.want)
	}
}

// A reader pages through orders that others go on creating: below its cursor
// nothing is seen twice and nothing is left out.
func pagesUnderInserts(b *bench) {
	const before, during = 40, 60
	m := b.merchant()
	var want []string
	for i := range before {
		p := b.payin(m, fmt.Sprint("before ", i))
		b.storePayins(p)
		want = append(want, p.ReferenceID)
	}
	slices.Reverse(want)
	writing := make(chan struct{})
	go func() {
		defer close(writing)
		for i := range during {
			p := b.payin(m, fmt.Sprint("during ", i))
			if err := b.s.Write(context.WithoutCancel(b.Context()), func(tx *store.Tx) error {
				_, err := tx.InsertPayins(b.Context(), []*store.NewPayin{p})
				return err
			}); err != nil {
				b.Error(err)
				return
			}
		}
	}()
	var got []string
	f := store.Filter{Limit: 7}
	for {
		page, err := b.s.Payins(b.Context(), m.ID, f)
		b.must(err)
		if len(page) == 0 {
			break
		}
		for i := range page {
			if page[i].ReferenceID[:6] == "before" {
				got = append(got, page[i].ReferenceID)
			}
		}
		f.Before = page[len(page)-1].ID
	}
	<-writing
	equal(b, "seen", fmt.Sprint(got), fmt.Sprint(want))
}

func payoutList(b *bench) {
	m := b.merchant()
	one, two := b.payout(m, "1"), b.payout(m, "2")
	two.Status = payment.PayoutFailed
	b.storePayouts(one, two)
	for _, q := range []struct {
		f    store.Filter
		want int
	}{{store.Filter{}, 2}, {store.Filter{Status: "FAILED"}, 1}, {store.Filter{ExternalID: one.ExternalID}, 1}, {store.Filter{Before: two.ID}, 1}} {
		q.f.Limit = 10
		list, err := b.s.Payouts(b.Context(), m.ID, q.f)
		b.must(err)
		equal(b, fmt.Sprintf("%+v", q.f), len(list), q.want)
	}
}
