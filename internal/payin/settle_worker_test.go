package payin_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// paid creates a pay-in of 100.00 of a merchant, which is paid.
func paid(g *coretest.Gateway, m store.Merchant, reference string) payment.Payin {
	g.T.Helper()
	p := g.Payin(m, reference, "")
	g.Must(g.Payins.Receive(g.T.Context(), coretest.BankName, p.ExternalID, processor.ChargeReport{
		Payments: []processor.Payment{{ID: p.ExternalID, Amount: p.Amount, PaidAt: g.Clock.Now()}},
	}, nil))
	return p
}

// wantMoney compares the available and pending balances of the merchant, in cents.
func wantMoney(g *coretest.Gateway, when string, available, pending int64) {
	g.T.Helper()
	b, err := g.Store.Balances(g.T.Context(), g.Merchant.ID)
	g.Must(err)
	if int64(b[ledger.Available]) != available || int64(b[ledger.Pending]) != pending {
		g.T.Errorf("%s: available %d and pending %d, want %d and %d", when, b[ledger.Available], b[ledger.Pending], available, pending)
	}
	var sum int64
	for _, day := range g.Receivables(g.Merchant) {
		sum += int64(day.Amount)
	}
	if sum != pending {
		g.T.Errorf("%s: receivables of %d, want %d", when, sum, pending)
	}
	g.WantProven()
}

// An order keeps the price of its creation; pending money settles once, when its time has come,
// also if the clock jumps.
func TestSettleWorker(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		old := g.Payin(g.Merchant, "before the price", "")
		g.SetPrice(payment.PIX, payment.Terms{BasisPoints: 99, Fixed: 10, Days: 2})
		g.Must(g.Payins.Receive(t.Context(), coretest.BankName, old.ExternalID, processor.ChargeReport{
			Payments: []processor.Payment{{ID: "old", Amount: old.Amount, PaidAt: g.Clock.Now()}},
		}, nil))
		wantMoney(g, "without a price", 1_100_00, 0)
		paid(g, g.Merchant, "first")
		g.SetPrice(payment.PIX, payment.Terms{Days: 3})
		paid(g, g.Merchant, "second")
		wantMoney(g, "paid", 1_100_00, 198_91)

		g.Clock.SetOffset(-30 * 24 * time.Hour)
		defer g.Clock.SetOffset(0)
		g.Heartbeat()
		g.Settle()
		wantMoney(g, "the clock is behind", 1_100_00, 198_91)
		g.Clock.SetOffset(48 * time.Hour)
		g.Heartbeat()
		g.Settle()
		wantMoney(g, "the clock is ahead", 1_198_91, 100_00)
		g.Clock.SetOffset(0)
		g.Heartbeat()
		g.Settle()
		wantMoney(g, "the clock was set right", 1_198_91, 100_00)
		g.Jump(30 * 24 * time.Hour)
		other := g.Second()
		other.Settle()
		g.Settle()
		wantMoney(g, "settled by another process", 1_298_91, 0)
	})
}

// A receivable that cannot settle gets a case, and delays no other, nor another merchant's.
// Due money settles in the order of its times, in more than one batch.
func TestSettleParksADamagedReceivable(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		other := g.For(t)
		g.SetPrice(payment.PIX, payment.Terms{Days: 1})
		other.SetPrice(payment.PIX, payment.Terms{Days: 2})
		bad := paid(g, g.Merchant, "bad")
		for i := range 5 {
			paid(g, g.Merchant, fmt.Sprint("good ", i))
		}
		paid(other, other.Merchant, "other")
		g.Execute("UPDATE receivables SET gross = gross + 600000 WHERE installment = 1 AND payin_id IN (SELECT id FROM payins WHERE external_id = '" + bad.ExternalID + "')")
		g.Jump(48 * time.Hour)
		g.Settle()
		g.Settle()
		b, err := g.Store.Balances(t.Context(), g.Merchant.ID)
		g.Must(err)
		if b[ledger.Available] != coretest.Opening+500_00 || b[ledger.Pending] != 100_00 {
			t.Errorf("balances %v", b)
		}
		wantMoney(other, "the other", int64(coretest.Opening)+100_00, 0)
		g.WantCases(store.CaseDamaged)
		if due, err := g.Store.ReceivablesDue(t.Context(), g.Clock.Now(), 10); err != nil || len(due) != 0 {
			t.Errorf("due: %v, %v", due, err)
		}
	})
}

// A payout's fee is held with it, paid with it, and given back if it fails.
func TestFeeOfPayouts(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.SetPrice(payment.PayoutPrice, payment.Terms{Fixed: 50, BasisPoints: 100})
		p := g.Payout("paid", 100_00)
		if p.Fee != 1_50 {
			t.Errorf("the fee is %d", p.Fee)
		}
		g.WantBalances(coretest.Opening-101_50, 101_50)
		g.Send()
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		g.WantBalances(coretest.Opening-101_50, 0)
		if _, _, err := g.Payouts.Request(t.Context(), g.Merchant, coretest.PayoutRequest("all", int64(coretest.Opening-101_50))); err == nil {
			t.Error("the fee of a payout was not needed")
		}
		g.Bank.AnswerTransfer = func(*coretest.Bank, processor.TransferRequest) processor.TransferAnswer {
			return processor.TransferAnswer{Outcome: processor.Refused}
		}
		failed := g.Payout("fails", 100_00)
		g.Send()
		g.WantPayout(failed, payment.PayoutFailed, payment.StepDone)
		g.WantBalances(coretest.Opening-101_50, 0)
		if p := g.Payout("small", 20); p.Fee != 20 {
			t.Errorf("the fee of 20 cents is %d", p.Fee)
		}
		g.WantProven()
		b, err := g.Store.Balances(t.Context(), g.Merchant.ID)
		g.Must(err)
		if b[ledger.Fees] != 1_50 {
			t.Errorf("fees %d", b[ledger.Fees])
		}
	})
}
