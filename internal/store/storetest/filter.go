package storetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

var listTests = []test{
	{"filters select by each member", func(s *suite) {
		m, other := s.merchant(), s.merchant()
		orders := []any{s.payin(other, "theirs")}
		var all []payment.Payin
		for _, status := range payment.PayinStatuses {
			for _, method := range payment.Methods {
				p := s.payin(m, fmt.Sprint(status, method), func(p *payment.Payin) { p.Status, p.Method = status, method })
				orders, all = append(orders, p), append(all, p.Payin)
			}
		}
		s.add(orders...)
		for i := range all {
			p := &all[i]
			f := store.Filter{Status: string(p.Status), Method: p.Method}
			s.equal("by status and method", s.payins(m, f), []string{p.ReferenceID})
			f.ExternalID = p.ExternalID
			s.equal("and external id", s.payins(m, f), []string{p.ReferenceID})
			f.ExternalID, f.PublicExternalID = "unused", p.ExternalID
			s.equal("and the other external id", s.payins(m, f), []string{p.ReferenceID})
			f.Method = "OTHER"
			s.equal("and another method", s.payins(m, f), "[]")
			s.equal("of another merchant", s.payins(other, store.Filter{ExternalID: p.ExternalID}), "[]")
		}
		s.equal("newest first", s.payins(m, store.Filter{Limit: 1}), []string{all[len(all)-1].ReferenceID})
		s.equal("of a status that does not exist", s.payins(m, store.Filter{Status: "paid"}), "[]")
		count := func(f store.Filter) int { return len(s.payins(m, f)) }
		s.equal("of several statuses", count(store.Filter{Statuses: []string{"PAID", "PENDING", "paid"}}), 2*len(payment.Methods))
		s.equal("all, by status, by method, and before the third",
			values(count(store.Filter{}), count(store.Filter{Status: "PAID"}), count(store.Filter{Method: payment.PIX}), count(store.Filter{Before: all[2].ID})),
			values(len(all), len(payment.Methods), len(payment.PayinStatuses), 2))
	}},
	{"times of payment select by the microsecond", func(s *suite) {
		m, at := s.merchant(), s.now().Truncate(time.Microsecond)
		s.add(s.payin(m, "open"), s.payin(m, "paid", func(p *payment.Payin) { p.PaidAt = at }))
		just := at.Add(time.Microsecond)
		for _, r := range []struct {
			from, to time.Time
			want     string
		}{{at, just, "[paid]"}, {at, at, "[]"}, {just, time.Time{}, "[]"}, {time.Time{}, at, "[]"}, {time.Time{}, just, "[paid]"}, {time.Unix(0, 0), time.Time{}, "[paid]"}} {
			s.equal(fmt.Sprintf("from %v to %v", r.from, r.to), s.payins(m, store.Filter{PaidFrom: r.from, PaidTo: r.to}), r.want)
		}
	}},
	{"creation times select by the millisecond", func(s *suite) {
		m := s.merchant()
		start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		for i := range 5 {
			s.add(s.payin(m, fmt.Sprint(i), func(p *payment.Payin) {
				p.CreatedAt = start.Add(time.Duration(i) * time.Millisecond)
				p.ID = payment.MinIDAt(p.CreatedAt) // the first of its millisecond
			}))
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
			s.equal(fmt.Sprintf("from %v to %v", r.from, r.to), s.payins(m, store.Filter{CreatedFrom: r.from, CreatedTo: r.to}), r.want)
		}
	}},
	// A reader pages through orders while others are created: below its cursor nothing
	// is seen twice and nothing is left out.
	{"pages neither repeat nor skip orders while others are created", func(s *suite) {
		const before, during = 40, 60
		m := s.merchant()
		var want, got []string
		for i := range before {
			want = append(want, fmt.Sprint("before ", i))
			s.add(s.payin(m, want[i]))
		}
		slices.Reverse(want)
		written := make(chan error)
		go func() {
			var err error
			for i := 0; i < during && err == nil; i++ {
				err = s.try(s.create(s.payin(m, fmt.Sprint("during ", i)), new(bool)))
			}
			written <- err
		}()
		for f := (store.Filter{Limit: 7}); ; {
			page := must(s.store.Payins(s.Context(), m.ID, f))
			if len(page) == 0 {
				break
			}
			for i := range page {
				if strings.HasPrefix(page[i].ReferenceID, "before") {
					got = append(got, page[i].ReferenceID)
				}
			}
			f.Before = page[len(page)-1].ID
		}
		s.must(<-written)
		s.equal("seen", got, want)
	}},
	{"payouts are listed the same way", func(s *suite) {
		m := s.merchant()
		one, two := s.payout(m, "1"), s.payout(m, "2", func(p *payment.Payout) { p.Status = payment.PayoutFailed })
		s.add(one, two, s.payout(m, "3", func(p *payment.Payout) { p.Status = payment.PayoutCompleted }))
		for _, q := range []struct {
			f    store.Filter
			want string
		}{
			{store.Filter{Limit: 9}, "[3 2 1]"},
			{store.Filter{Limit: 2}, "[3 2]"},
			{store.Filter{Limit: 9, Status: "FAILED"}, "[2]"},
			{store.Filter{Limit: 9, Status: "COMPLETED"}, "[3]"},
			{store.Filter{Limit: 9, ExternalID: one.Payout.ExternalID}, "[1]"},
			{store.Filter{Limit: 9, Before: two.Payout.ID}, "[1]"},
		} {
			list := must(s.store.Payouts(s.Context(), m.ID, q.f))
			var references []string
			for i := range list {
				references = append(references, list[i].ReferenceID)
			}
			s.equal(fmt.Sprintf("%+v", q.f), references, q.want)
		}
	}},
}

// payins lists the references of a merchant's pay-ins.
func (s *suite) payins(m store.Merchant, f store.Filter) (references []string) {
	s.Helper()
	if f.Limit == 0 {
		f.Limit = 100
	}
	list := must(s.store.Payins(s.Context(), m.ID, f))
	for i := range list {
		references = append(references, list[i].ReferenceID)
	}
	return references
}
