package payout_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/limits"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// requestTo requests a payout to a key, and returns the name of the limit that refuses it.
func requestTo(g *coretest.Gateway, key, reference string, amount int64) (payment.Payout, string) {
	g.T.Helper()
	r := coretest.PayoutRequest(reference, amount)
	r.PIXKey, r.NormalKey = wire.Some(key), key
	p, _, err := g.Payouts.Request(g.T.Context(), g.Merchant, r)
	var refused *problem.Error
	if errors.As(err, &refused) && refused.Kind == problem.LimitExceeded {
		return p, refused.Limit
	}
	g.Must(err)
	return p, ""
}

func cents(c money.Cents) *money.Cents { return &c }

// refuse makes the bank refuse each transfer.
func refuse(*coretest.Bank, processor.TransferRequest) processor.TransferAnswer {
	return processor.TransferAnswer{Outcome: processor.Refused, Failure: &payment.Failure{Code: "no"}}
}

// Each step is a request at a time of the clock in São Paulo, 12:00 on the first day being
// hour 12, and the limit that refuses it.
func TestLimits(t *testing.T) {
	type step struct {
		hour   int
		key    string
		amount int64
		want   string
	}
	for _, row := range []struct {
		name   string
		limits limits.Payout
		steps  []step
	}{
		{"none", limits.Payout{}, []step{{12, "a", 1000_00, ""}}},
		{"an amount", limits.Payout{Range: limits.Range{Minimum: cents(2_00), Maximum: cents(5_00)}}, []step{
			{12, "a", 1_99, limits.Minimum}, {12, "a", 2_00, ""}, {12, "a", 5_00, ""}, {12, "a", 5_01, limits.Maximum}}},
		{"a day", limits.Payout{PerDay: cents(10_00)}, []step{
			{12, "a", 6_00, ""}, {12, "b", 4_01, limits.PerDay}, {23, "b", 4_00, ""}, {23, "c", 1, limits.PerDay}, {24, "c", 10_00, ""}, {47, "c", 1, limits.PerDay}}},
		{"a night", limits.Payout{PerNight: cents(10_00)}, []step{
			{19, "a", 50_00, ""}, {20, "a", 6_00, ""}, {25, "b", 4_01, limits.PerNight}, {29, "b", 4_00, ""}, {29, "c", 1, limits.PerNight},
			{30, "c", 50_00, ""}, {44, "c", 10_00, ""}, {44, "c", 1, limits.PerNight}}},
		{"a key and day", limits.Payout{PerKeyPerDay: cents(10_00), CountPerKeyPerDay: new(int64(3))}, []step{
			{12, "a", 10_00, ""}, {12, "a", 1, limits.PerKeyPerDay}, {12, "b", 1, ""}, {12, "b", 1, ""}, {12, "b", 1, ""}, {12, "b", 1, limits.CountPerKeyPerDay},
			{24, "a", 10_00, ""}, {24, "b", 1, ""}}},
		{"a new key", limits.Payout{NewKeyMaximum: cents(10_00)}, []step{
			{12, "a", 10_01, limits.NewKeyMaximum}, {12, "a", 6_00, ""}, {35, "a", 4_01, limits.NewKeyMaximum}, {35, "a", 4_00, ""}, {35, "a", 1, limits.NewKeyMaximum},
			{36, "a", 100_00, ""}, {36, "b", 10_01, limits.NewKeyMaximum}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				g.SetLimits(limits.Limits{Payout: row.limits})
				hour := 9 // [coretest.Start]
				for i, s := range row.steps {
					g.Jump(time.Duration(s.hour-hour) * time.Hour)
					hour = s.hour
					var got string
					changes := g.Changes(func() { _, got = requestTo(g, s.key, fmt.Sprint(i), s.amount) })
					if got != s.want || (changes == "") != (got != "") {
						t.Errorf("step %d: limit %q, want %q; changes\n%s", i, got, s.want, changes)
					}
					if got != "" { // its reference is unused
						g.SetLimits(limits.Limits{})
						p, _ := requestTo(g, s.key, fmt.Sprint(i), 1)
						if p.Status != payment.PayoutPending {
							t.Errorf("step %d: the reference is used: %+v", i, p)
						}
						_, err := g.Payouts.Cancel(t.Context(), p.Merchant, p.ID) // it would count
						g.Must(err)
						g.SetLimits(limits.Limits{Payout: row.limits})
					}
				}
				g.WantProven()
			})
		})
	}
}

// A limit of a day or a night that is set during it counts what was requested before.
func TestLimitCountsWhatWasBefore(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Jump(12 * time.Hour) // 21:00
		requestTo(g, "a", "before", 8_00)
		for _, row := range []struct {
			name   string
			limits limits.Payout
		}{
			{limits.PerDay, limits.Payout{PerDay: cents(10_00)}},
			{limits.PerNight, limits.Payout{PerNight: cents(14_00)}},
		} {
			g.SetLimits(limits.Limits{Payout: row.limits})
			if _, got := requestTo(g, "b", row.name, 2_00); got != "" {
				t.Errorf("%s refuses what is below it", got)
			}
			g.SetLimits(limits.Limits{})
			requestTo(g, "b", row.name+" lifted", 2_00)
			g.SetLimits(limits.Limits{Payout: row.limits})
			if _, got := requestTo(g, "b", row.name+" again", 1); got != row.name {
				t.Errorf("limit %q, want %s", got, row.name)
			}
		}
		g.WantProven()
	})
}

// Payouts that fail or are canceled give their amounts back, also if their day has ended.
func TestLimitsOfPayoutsThatEnd(t *testing.T) {
	all := limits.Payout{PerDay: cents(10_00), PerKeyPerDay: cents(10_00), CountPerKeyPerDay: new(int64(1)), NewKeyMaximum: cents(10_00)}
	for _, row := range []struct {
		name string
		end  func(g *coretest.Gateway, p payment.Payout)
		want string // the limit that refuses another payout of the same amount
	}{
		{"is canceled", func(g *coretest.Gateway, p payment.Payout) {
			_, err := g.Payouts.Cancel(g.T.Context(), p.Merchant, p.ID)
			g.Must(err)
		}, ""},
		{"fails", func(g *coretest.Gateway, p payment.Payout) {
			g.Bank.AnswerTransfer = refuse
			g.Send()
			g.WantPayout(p, payment.PayoutFailed, payment.StepDone)
		}, ""},
		{"completes", func(g *coretest.Gateway, p payment.Payout) {
			g.Send()
			g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		}, limits.PerDay},
		{"is in flight", func(*coretest.Gateway, payment.Payout) {}, limits.PerDay},
	} {
		t.Run(row.name, func(t *testing.T) {
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				g.SetLimits(limits.Limits{Payout: all})
				first, _ := requestTo(g, "a", "r", 10_00)
				row.end(g, first)
				if _, got := requestTo(g, "a", "again", 10_00); got != row.want {
					t.Errorf("limit %q, want %q", got, row.want)
				}
				g.WantProven()
			})
		})
	}
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.SetLimits(limits.Limits{Payout: all})
		old, _ := requestTo(g, "a", "yesterday", 10_00)
		g.Jump(24 * time.Hour)
		requestTo(g, "b", "today", 10_00)
		_, err := g.Payouts.Cancel(t.Context(), old.Merchant, old.ID)
		g.Must(err)
		if _, got := requestTo(g, "c", "more", 1); got != limits.PerDay {
			t.Errorf("limit %q: yesterday's payout was given back to today", got)
		}
		g.WantProven()
	})
}

// Two gateways together never pass a limit, in any order of their commits, and use all of it.
func TestLimitsUnderConcurrency(t *testing.T) {
	const clients, each = 8, 12
	coretest.EachEngine(t, func(t *testing.T, g *coretest.Gateway) {
		g.SetLimits(limits.Limits{Payout: limits.Payout{PerDay: cents(60_00), PerKeyPerDay: cents(25_00), CountPerKeyPerDay: new(int64(25))}})
		gateways := []*coretest.Gateway{g}
		if g.Engine == "postgres" {
			gateways = append(gateways, g.Second())
		}
		for _, v := range gateways {
			v.Writer.Start()
			t.Cleanup(v.Writer.Stop)
		}
		var wg sync.WaitGroup
		for client := range clients {
			wg.Go(func() {
				v := gateways[client%len(gateways)]
				for i := range each {
					key := fmt.Sprint((client + i) % 3)
					r := coretest.PayoutRequest(fmt.Sprintf("%d %d", client, i), 1_00)
					r.PIXKey, r.NormalKey = wire.Some(key), key
					p, _, err := v.Payouts.Request(context.Background(), g.Merchant, r)
					if err == nil && i%4 == 3 {
						_, err = v.Payouts.Cancel(context.Background(), p.Merchant, p.ID)
					}
					if err != nil && !problem.Is(err, problem.LimitExceeded) {
						t.Error(err)
					}
				}
			})
		}
		g.Until(wg.Wait)
		used, perKey := heldByKey(g)
		for key, sum := range perKey {
			if sum > 25_00 {
				t.Errorf("%d cents to key %s", sum, key)
			}
		}
		if used > 60_00 {
			t.Errorf("%d cents in all", used)
		}
		for i := range clients * each { // what was given back is free
			requestTo(g, fmt.Sprint(i%3), fmt.Sprint("last ", i), 1_00)
		}
		if used, _ = heldByKey(g); used != 60_00 {
			t.Errorf("%d cents in the end", used)
		}
		g.WantProven()
	})
}

// heldByKey adds up the payouts that were not canceled.
func heldByKey(g *coretest.Gateway) (sum money.Cents, byKey map[string]money.Cents) {
	g.T.Helper()
	list, err := g.Store.Payouts(g.T.Context(), g.Merchant.ID, store.Filter{Limit: 1000})
	g.Must(err)
	byKey = map[string]money.Cents{}
	for i := range list {
		if list[i].Status != payment.PayoutCanceled {
			sum += list[i].Amount
			byKey[list[i].Beneficiary.Key()] += list[i].Amount
		}
	}
	return sum, byKey
}

// The counters always equal those of a recomputation from the payouts.
func TestCountersProperty(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		random := rand.New(rand.NewPCG(1, 2))
		wide := limits.Payout{PerDay: cents(100_00), PerNight: cents(40_00), PerKeyPerDay: cents(45_00), NewKeyMaximum: cents(40_00), ApprovalAbove: cents(12_00)}
		g.SetLimits(limits.Limits{Payout: wide})
		g.Bank.AnswerTransfer = func(b *coretest.Bank, r processor.TransferRequest) processor.TransferAnswer {
			if random.IntN(3) == 0 {
				return refuse(b, r)
			}
			return processor.TransferAnswer{Outcome: processor.Done, Report: b.Pay(r, processor.TransferPaid)}
		}
		refusals := map[string]int{}
		var last payment.Payout
		for i := range 240 {
			switch random.IntN(10) {
			case 0:
				g.Send()
			case 1:
				if !last.ID.IsZero() {
					if _, err := g.Payouts.Cancel(t.Context(), last.Merchant, last.ID); err != nil && !problem.Is(err, problem.InvalidState) {
						t.Fatal(err)
					}
				}
			case 2:
				g.Jump(time.Duration(random.IntN(600)) * time.Minute)
			case 3, 4:
				decide := g.Payouts.Approve
				if random.IntN(3) == 0 {
					decide = g.Payouts.Reject
				}
				if _, err := decide(t.Context(), g.Merchant.ID, last.ID, actor.Author{Actor: "credential:boss", Reason: "no"}); !decidable(err) {
					t.Fatal(err)
				}
			case 5:
				g.Must(g.Merchants.Fund(t.Context(), g.Merchant, 50_00))
			default:
				p, limit := requestTo(g, fmt.Sprint(random.IntN(4)), fmt.Sprint(i), 1+random.Int64N(20_00))
				refusals[limit]++
				if limit == "" {
					last = p
				}
			}
		}
		if len(refusals) < 5 {
			t.Errorf("too few limits refused: %v", refusals)
		}
		g.WantProven()
	})
}

// decidable reports whether a decision about any payout may be answered so.
func decidable(err error) bool {
	return err == nil || problem.Is(err, problem.InvalidState) || problem.Is(err, problem.LimitExceeded) || problem.Is(err, problem.NotFound)
}

// Old counters of days are removed; those of keys stay.
func TestRemoveCounters(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.SetLimits(limits.Limits{Payout: limits.Payout{PerDay: cents(10_00), PerKeyPerDay: cents(10_00), NewKeyMaximum: cents(10_00)}})
		requestTo(g, "a", "old", 1_00)
		g.Jump(store.CountersKept - 24*time.Hour)
		requestTo(g, "a", "new", 2_00)
		if got := g.Changes(func() { g.Must(remove(g)) }); got != "" {
			t.Errorf("removed too soon:\n%s", got)
		}
		g.Jump(48 * time.Hour)
		if got := g.Changes(func() { g.Must(remove(g)) }); strings.Count(got, "-limit_counters") != 2 || strings.Count(got, "\n") != 1 {
			t.Errorf("removed:\n%s", got)
		}
		g.WantProven()
		g.Jump(61 * 24 * time.Hour)
		g.Must(remove(g))
		g.Must(remove(g))
		g.WantProven()
	})
}

func remove(g *coretest.Gateway) error {
	_, err := g.Payouts.RemoveCounters(g.T.Context())
	return err
}

// The limit of a Pix key counts it in all its forms.
func TestFormsOfOneKeyShareALimit(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.SetLimits(limits.Limits{Payout: limits.Payout{PerKeyPerDay: cents(10_00)}})
		for i, forms := range [][][2]string{
			{{"PHONE", "+5511987654321"}, {"PHONE", "11987654321"}},
			{{"EMAIL", "a.b@example.com"}, {"EMAIL", "A.B@Example.COM"}},
			{{"EVP", "123E4567-E89B-12D3-A456-426655440000"}, {"EVP", "123e4567-e89b-12d3-a456-426655440000"}},
		} {
			for j, f := range forms {
				r := coretest.PayoutRequest(fmt.Sprint(i, j), 6_00)
				r.PIXKeyType, r.PIXKey, r.NormalKey = wire.Some(f[0]), wire.Some(f[1]), ""
				var errs wire.Errors
				r.Check(wire.Rules{}, &errs)
				_, _, err := g.Payouts.Request(t.Context(), g.Merchant, r)
				if (j == 0) != (err == nil) || j > 0 && !problem.Is(err, problem.LimitExceeded) {
					t.Errorf("%v: %v", f, err)
				}
			}
		}
	})
}
