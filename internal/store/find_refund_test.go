package store_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/effect"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// addRefunds stores refunds, each of one or two payments; a part has an id in Pix if it is paid.
// returns are the ids of the returns of each refund.
func addRefunds(g *coretest.Gateway, random *rand.Rand, count int) (all []payment.Refund, returns map[payment.ID][]string) {
	returns = map[payment.ID][]string{}
	payins := []payment.ID{{1}, {2}, {3}}
	for i := range count {
		now := g.Clock.Now().Truncate(time.Millisecond)
		r := payment.Refund{
			Merchant: g.Merchant.ID, ID: g.Env.IDs.NewID(now), Payin: payins[random.IntN(3)], ExternalID: fmt.Sprint("refund ", i), ReferenceID: fmt.Sprint(i), Origin: payment.RefundByMerchant,
			Amount: money.Cents(1 + random.IntN(9)), Status: payment.RefundStatuses[random.IntN(len(payment.RefundStatuses))], Version: 1, CreatedAt: now, UpdatedAt: now,
		}
		var parts []payment.RefundPart
		for j := range 1 + random.IntN(2) {
			p := payment.RefundPart{
				Merchant: r.Merchant, Refund: r.ID, Number: int64(j + 1), Payin: r.Payin, Processor: coretest.BankName, ExternalID: fmt.Sprint("part ", i, " ", j), Amount: 1, Effect: effect.Effect{State: effect.Done},
			}
			if random.IntN(3) > 0 {
				p.EndToEndID = fmt.Sprintf("D%dx%d", i, j)
				returns[r.ID] = append(returns[r.ID], p.EndToEndID)
			}
			parts = append(parts, p)
		}
		if len(parts) == 1 {
			r.EndToEndID = parts[0].EndToEndID
		}
		_, err := g.Store.Commit(g.T.Context(), &store.Needs{}, store.Capacity{}, func(_ *store.Loaded, c *store.Changes) error {
			c.AddRefund(r, nil, parts...)
			return nil
		})
		g.Must(err)
		all = append(all, r)
		g.Clock.Advance(time.Duration(random.IntN(3)) * time.Millisecond)
	}
	slices.SortFunc(all, func(a, b payment.Refund) int { return payment.CompareIDs(b.ID, a.ID) })
	return all, returns
}

// Refunds are found by amount, external id, and the id of any of their returns, in pages that
// examine only a few, once, newest first.
func TestPagesOfRefundsThatScan(t *testing.T) {
	defer store.SetScanMost(7)()
	coretest.EachEngine(t, func(t *testing.T, g *coretest.Gateway) {
		random := rand.New(rand.NewPCG(3, 4))
		all, returns := addRefunds(g, random, 60)
		read := func(f store.Filter) (page []listed) {
			list, err := g.Store.Refunds(t.Context(), g.Merchant.ID, f)
			g.Must(err)
			for i := range list {
				page = append(page, listed{list[i].ID, list[i].ReferenceID})
			}
			return page
		}
		for range 80 {
			var f store.Filter
			one := all[random.IntN(len(all))]
			f.MinAmount, f.MaxAmount = money.Cents(random.IntN(6)), money.Cents(random.IntN(10))
			switch random.IntN(6) {
			case 0:
				f.Status = string(one.Status)
			case 1:
				f.Payin = one.Payin
			case 2:
				f.Identified = one.ExternalID
			case 3:
				f.EndToEndID = "D0x9" // of none
				if list := returns[one.ID]; len(list) > 0 {
					f.EndToEndID = list[random.IntN(len(list))]
				}
			}
			var want []string
			for _, r := range all {
				if (f.MinAmount == 0 || r.Amount >= f.MinAmount) && (f.MaxAmount == 0 || r.Amount <= f.MaxAmount) && (f.Status == "" || r.Status == payment.RefundStatus(f.Status)) &&
					(f.Payin.IsZero() || r.Payin == f.Payin) && (f.Identified == "" || r.ExternalID == f.Identified) &&
					(f.EndToEndID == "" || slices.Contains(returns[r.ID], f.EndToEndID)) {
					want = append(want, r.ReferenceID)
				}
			}
			if got := pages(t, g, payment.OperationRefund, f, 1+random.IntN(5), read); !slices.Equal(got, want) {
				t.Fatalf("%+v: found %v, want %v", f, got, want)
			}
		}
	})
}

// No page of refunds examines more than it may, also if it finds none.
func TestScanOfRefundsIsBounded(t *testing.T) {
	defer store.SetScanMost(7)()
	coretest.EachEngine(t, func(t *testing.T, g *coretest.Gateway) {
		all, _ := addRefunds(g, rand.New(rand.NewPCG(3, 4)), 10)
		f := store.Filter{MinAmount: 100, Limit: 5}
		from, err := g.Store.ScanFrom(t.Context(), g.Merchant.ID, payment.OperationRefund, f)
		g.Must(err)
		if !f.Scans() || from != all[6].ID {
			t.Errorf("the page begins with %v and ends with %v, want %v", all[0].ID, from, all[6].ID)
		}
		if f.Payin = all[0].Payin; f.Scans() {
			t.Error("the refunds of one pay-in are few")
		}
	})
}
