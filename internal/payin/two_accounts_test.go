package payin_test

import (
	"errors"
	"testing"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payin"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

func pix(id string, amount money.Cents) processor.Payment {
	return processor.Payment{ID: id, EndToEndID: "E" + id, Amount: amount}
}

func paidBy(list ...processor.Payment) processor.ChargeReport {
	return processor.ChargeReport{Lookup: processor.Found, Payments: list}
}

// An endToEndId names one Pix to one account. If two accounts that an order was tried at report
// the same one, neither the order nor its merchant gets it twice, whichever comes first.
func TestOnePixAtTwoAccounts(t *testing.T) {
	for name, row := range map[string]struct {
		first, again string
		amount       money.Cents
		status       payment.PayinStatus
	}{
		"all of it, first at the account that the order has left": {coretest.BankName, "second", 100_00, payment.PayinPaid},
		"all of it, first at the order's account":                 {"second", coretest.BankName, 100_00, payment.PayinPaid},
		"half of it": {coretest.BankName, "second", 50_00, payment.PayinPending},
	} {
		t.Run(name, func(t *testing.T) {
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				threeAccounts(g, "refused, done, done")
				p, _, err := g.Payins.Create(t.Context(), g.Merchant, coretest.PayinRequest("order", ""))
				g.Must(err)
				g.Must(g.Payins.Receive(t.Context(), row.first, p.ExternalID, paidBy(pix("1", row.amount)), nil))
				for range 2 {
					g.Must(g.Payins.Receive(t.Context(), row.again, p.ExternalID, paidBy(pix("1", row.amount)), nil))
				}
				g.WantPayin(p, row.status, row.amount, 1)
				g.WantBalances(coretest.Opening+row.amount, 0)
				wantUnidentified(g, row.amount)
				g.WantCases(store.CaseUnmatchedReceipt)
				g.WantReason(store.CaseUnmatchedReceipt, store.ReasonSamePix)
				g.WantProven()
			})
		})
	}
}

// The other payments of a report with a Pix of another account are booked, and finish its notice.
func TestOnePixAtTwoAccountsAmongOthers(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		threeAccounts(g, "refused, done, done")
		p, _, err := g.Payins.Create(t.Context(), g.Merchant, coretest.PayinRequest("order", ""))
		g.Must(err)
		g.Must(g.Payins.Receive(t.Context(), coretest.BankName, p.ExternalID, paidBy(pix("1", 40_00)), nil))
		n := store.Notice{Processor: "second", ID: "all", Attempts: 1}
		g.Must(g.Notices.Record(t.Context(), n.Processor, n.ID, "", []byte("body")))
		g.Must(g.Payins.Receive(t.Context(), "second", p.ExternalID, paidBy(pix("1", 40_00), pix("2", 60_00), pix("3", 5_00)), &n))
		g.WantPayin(p, payment.PayinPaid, 100_00, 3)
		if applied := g.Count("notices", "state = 'applied'"); applied != 1 {
			t.Errorf("%d notices are finished", applied)
		}
		for owner, want := range map[payment.ID]ledger.Balances{
			{}:            {ledger.Unidentified: 40_00},
			g.Merchant.ID: {ledger.Available: coretest.Opening + 100_00, ledger.Unapplied: 5_00},
		} {
			b, err := g.Store.Balances(t.Context(), owner)
			g.Must(err)
			for account, amount := range want {
				if b[account] != amount {
					t.Errorf("%s of %s is %s, want %s", account, owner, b[account], amount)
				}
			}
		}
		g.WantCases(store.CaseUnmatchedReceipt, store.CaseOverpaid)
		g.WantProven()
	})
}

// The reports of both accounts may be in one batch.
func TestOnePixAtTwoAccountsInOneBatch(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		threeAccounts(g, "refused, done, done")
		p, _, err := g.Payins.Create(t.Context(), g.Merchant, coretest.PayinRequest("order", ""))
		g.Must(err)
		own, err := g.Payins.NewReceive(t.Context(), "second", p.ExternalID, paidBy(pix("1", 100_00)), nil)
		g.Must(err)
		earlier, err := g.Payins.NewReceive(t.Context(), coretest.BankName, p.ExternalID, paidBy(pix("1", 100_00)), nil)
		g.Must(err)
		earlier.ReadElsewhere()
		if errs := g.Writer.All(t.Context(), []write.Operation{own, earlier}); errs[0] != nil || !errors.Is(errs[1], payin.ErrSamePix) {
			t.Errorf("committed: %v", errs)
		}
		g.WantPayin(p, payment.PayinPaid, 100_00, 1)
		g.WantProven()
	})
}

// Two payments without an endToEndId, as of cards, are two: nothing says that they are one.
func TestTwoPaymentsAtTwoAccounts(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		threeAccounts(g, "refused, done, done")
		p, _, err := g.Payins.Create(t.Context(), g.Merchant, coretest.PayinRequest("order", ""))
		g.Must(err)
		for _, account := range []string{coretest.BankName, "second"} {
			g.Must(g.Payins.Receive(t.Context(), account, p.ExternalID, paidBy(processor.Payment{ID: "1", Amount: 100_00}), nil))
		}
		g.WantPayin(p, payment.PayinPaid, 100_00, 2)
		g.WantCases(store.CaseOverpaid)
		g.WantProven()
	})
}

// A restored backup lacks that an order was charged at another account, and the order is charged again:
// the payer can pay both. All of it is booked: what comes at the order's account is the order's, and
// what comes at the other one is the platform's, with a case that names the order's external id.
func TestChargedAtAnotherAccountInALostPast(t *testing.T) {
	for name, paid := range map[string][]string{
		"only there":        {"second"},
		"there, then here":  {"second", coretest.BankName},
		"here, then there":  {coretest.BankName, "second"},
		"there, once again": {"second", "second"},
	} {
		t.Run(name, func(t *testing.T) {
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				threeAccounts(g, "done, done, done")
				p, _, err := g.Payins.Create(t.Context(), g.Merchant, coretest.PayinRequest("order", ""))
				g.Must(err)
				here := money.Cents(0)
				for _, account := range paid {
					if account == p.Processor {
						here = p.Amount
					}
					g.Must(g.Payins.Receive(t.Context(), account, p.ExternalID, paidBy(pix(account, p.Amount)), nil))
				}
				if here > 0 {
					g.WantPayin(p, payment.PayinPaid, here, 1)
				} else {
					g.WantPayin(p, payment.PayinPending, 0, 0)
				}
				g.WantBalances(coretest.Opening+here, 0)
				wantUnidentified(g, p.Amount)
				g.WantCases(store.CaseUnmatchedReceipt)
				list, err := g.Store.OpenCases(t.Context(), 2)
				g.Must(err)
				if c := list[0]; c.Params["processor"] != "second" || c.Params["externalId"] != p.ExternalID || c.Amount != p.Amount {
					t.Errorf("%+v", c)
				}
				g.WantProven()
			})
		})
	}
}
