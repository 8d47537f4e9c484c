package review_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// Unapplied money is given back as a refund of the payment that exceeded the order, which stays
// as it is.
func TestReturnUnapplied(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		p := g.PaidPayin("p", 100_00, 30_00)
		v := d.only(store.CaseOverpaid)
		d.wantUnapplied(received, 30_00, 0)
		d.resolve(request(&v, store.ResolvedReturn))
		g.WantBalances(coretest.Opening+100_00, 30_00)
		d.refused(request(&v, store.ResolvedReturn), problem.InvalidState)
		g.Send()
		list, err := g.Store.Refunds(t.Context(), p.Merchant, store.Filter{Limit: 5})
		g.Must(err)
		if len(list) != 1 || list[0].Origin != payment.RefundByCase || g.Bank.Refunds.Calls[0].PaymentID != "p 2" || g.Bank.Refunds.Calls[0].Amount != 30_00 {
			t.Fatalf("refunds %+v, calls %+v", list, g.Bank.Refunds.Calls)
		}
		g.WantRefund(list[0], payment.RefundCompleted, 30_00, payment.PayinPaid, 0)
		g.WantBalances(coretest.Opening+100_00, 0)
		g.WantCases()
		g.Refund(p, "all of the order", 100_00)
		g.Send()
		g.WantPayin(p, payment.PayinRefunded, 100_00, 2)
		g.WantProven()
	})
}

// Money that the payer disputes is not returned, also if the status of the order does not show the
// dispute: all that was paid for it was refunded.
func TestReturnOfDisputedUnappliedMoney(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		p := g.PaidPayin("p", 100_00, 30_00)
		v := d.only(store.CaseOverpaid)
		g.Refund(p, "all of the order", 100_00)
		g.Send()
		g.WantPayin(p, payment.PayinRefunded, 100_00, 2)
		for _, state := range []processor.DisputeState{processor.DisputeOpen, processor.DisputeLost, processor.DisputeReversed} {
			g.Bank.Disputes(p.ExternalID, processor.Dispute{ID: "D", PaymentID: "p 2", Amount: 30_00, State: state})
			g.Notify(string(state), "charge "+p.ExternalID)
			g.Apply()
			if state != processor.DisputeReversed {
				d.refused(request(&v, store.ResolvedReturn), problem.InvalidState)
			}
		}
		d.resolve(request(&v, store.ResolvedReturn))
		g.WantProven()
	})
}

// If it does not reach the payer, it is unapplied again, with a case.
func TestReturnOfUnappliedFails(t *testing.T) {
	for _, after := range []bool{false, true} {
		coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
			d := newDesk(g)
			p := g.PaidPayin("p", 130_00)
			v := d.only(store.CaseOverpaid)
			if !after {
				g.Bank.Refunds.Answer = func(*coretest.Bank, processor.RefundRequest) processor.TransferAnswer {
					return processor.TransferAnswer{Outcome: processor.Refused}
				}
			}
			d.resolve(request(&v, store.ResolvedReturn))
			g.Send()
			if after {
				g.Bank.EndRefund(g.Bank.Refunds.Calls[0].ExternalID, processor.TransferFailed)
				g.ReadFeeds()
			}
			again := d.only(store.CaseOverpaid)
			d.wantUnapplied(received, 30_00, 0)
			g.WantPayin(p, payment.PayinPaid, 100_00, 1)
			g.WantProven()
			d.agree(&again, store.ResolvedWriteOff)
			g.WantProven()
		})
	}
}

// If it reaches the payer after all, while a dispute has the money, it is taken of what is available,
// with a case.
func TestReturnOfUnappliedPaidAfterADispute(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		p := g.PaidPayin("p", 150_00)
		v := d.only(store.CaseOverpaid)
		g.Bank.Refunds.Answer = func(*coretest.Bank, processor.RefundRequest) processor.TransferAnswer {
			return processor.TransferAnswer{Outcome: processor.Refused}
		}
		d.resolve(request(&v, store.ResolvedReturn))
		g.Send()
		lost := processor.Dispute{ID: "D", PaymentID: "p 1", Amount: 150_00, State: processor.DisputeLost}
		g.Bank.Disputes(p.ExternalID, lost)
		g.Pass(10 * time.Second)
		g.ReadFeeds()
		g.WantPayin(p, payment.PayinChargeback, 100_00, 1)
		g.WantBalances(coretest.Opening-50_00, 0)
		g.Bank.RefundAtPanel(g.Bank.Refunds.Calls[0].ExternalID, "p 1", 50_00)
		g.ReadFeeds()
		g.WantBalances(coretest.Opening-100_00, 0)
		d.wantUnapplied(int64(coretest.Opening-100_00), 50_00, 0)
		g.WantCases(store.CaseOverpaid, store.CaseRefundUnexpected)
		g.WantProven()
	})
}

// The outcome of a refund is declared by two people; a refund that waits is given up by one.
func TestDeclareRefund(t *testing.T) {
	for how, want := range map[store.Resolution]payment.RefundStatus{
		store.ResolvedPaid: payment.RefundCompleted, store.ResolvedRelease: payment.RefundFailed, store.ResolvedResend: payment.RefundCompleted,
	} {
		t.Run(string(how), func(t *testing.T) {
			coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
				d := newDesk(g)
				g.Bank.Profiled.Refund.Repeat = processor.RepeatUnsafe
				r := g.Refund(g.PaidPayin("p", 100_00), "r", 100_00)
				g.Bank.Refunds.Answer = func(*coretest.Bank, processor.RefundRequest) processor.TransferAnswer {
					return processor.TransferAnswer{Cause: errors.New("timeout")}
				}
				work := func() { g.Send(); g.LookUp(); g.Send(); g.Jump(2 * time.Minute); g.LookUp() }
				work()
				v := d.only(store.CaseRefundUnknown)
				g.Bank.Refunds.Answer = nil
				d.agree(&v, how)
				work()
				refunded, of := r.Amount, payment.PayinRefunded
				if want == payment.RefundFailed {
					refunded, of = 0, payment.PayinPaid
				}
				g.WantRefund(r, want, refunded, of, refunded)
				g.WantCases()
				g.WantProven()
			})
		})
	}
}

// Two people decide while the time of the last send is in the future, because a clock was ahead.
func TestDeclareAfterAClockThatWasAhead(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		ahead := coretest.Start.Add(time.Hour).UnixMicro()
		t.Run("payout", func(t *testing.T) {
			d := newDesk(g.For(t))
			p, v := d.unknownPayout()
			d.Execute(fmt.Sprint("UPDATE payout_sends SET deadline = ", ahead))
			d.agree(&v, store.ResolvedRelease)
			d.WantPayout(p, payment.PayoutFailed, payment.StepDone)
			d.WantProven()
		})
		t.Run("refund", func(t *testing.T) {
			d := newDesk(g.For(t))
			d.Bank.Profiled.Refund.Repeat = processor.RepeatUnsafe
			r := d.Refund(d.PaidPayin("p", 100_00), "r", 100_00)
			d.Bank.Refunds.Answer = func(*coretest.Bank, processor.RefundRequest) processor.TransferAnswer {
				return processor.TransferAnswer{Cause: errors.New("timeout")}
			}
			d.Send()
			d.LookUp() // at such a processor before the first send too
			d.Send()
			d.Jump(2 * time.Minute)
			d.LookUp()
			v := d.only(store.CaseRefundUnknown)
			d.Execute(fmt.Sprint("UPDATE refund_parts SET until_at = ", ahead))
			d.agree(&v, store.ResolvedRelease)
			d.WantRefund(r, payment.RefundFailed, 0, payment.PayinPaid, 0)
			d.WantProven()
		})
	})
}

func TestGiveARefundUp(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		r := g.Refund(g.PaidPayin("p", 100_00), "r", 100_00)
		g.Bank.Refunds.Answer = func(*coretest.Bank, processor.RefundRequest) processor.TransferAnswer {
			return processor.TransferAnswer{Outcome: processor.Later}
		}
		for range 9 {
			g.Send()
			g.Jump(time.Hour)
		}
		v := d.only(store.CaseRefundWaiting)
		d.resolve(request(&v, store.ResolvedRelease))
		g.WantRefund(r, payment.RefundFailed, 0, payment.PayinPaid, 0)
		g.WantCases()
		g.WantProven()
	})
}

// The processor knows a refund with other parts than a copy of the database. Two people decide
// about the first part, and then about the second one, which waited under its case.
func TestDeclareRefundOfOtherParts(t *testing.T) {
	for name, row := range map[string]struct {
		first, second store.Resolution
		status        payment.RefundStatus
		refunded      money.Cents
	}{
		"all of it was given back":     {store.ResolvedPaid, store.ResolvedPaid, payment.RefundCompleted, 100_00},
		"only as much as one":          {store.ResolvedPaid, store.ResolvedRelease, payment.RefundFailed, 40_00},
		"the rest is to be given back": {store.ResolvedPaid, store.ResolvedResend, payment.RefundCompleted, 100_00},
		"nothing of this order":        {store.ResolvedRelease, store.ResolvedRelease, payment.RefundFailed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				d := newDesk(g)
				r := g.Refund(g.PaidPayin("p", 40_00, 60_00), "r", 100_00)
				g.Bank.RefundAtPanel(r.ExternalID, "before", 99_00)
				work := func() {
					for range 3 {
						g.Send()
						g.LookUp()
						g.Jump(time.Minute)
					}
				}
				work()
				v := d.only(store.CaseRefundUnknown)
				d.refused(request(&v, store.ResolvedDismiss), problem.InvalidState)
				d.agree(&v, row.first)
				work()
				v = d.only(store.CaseRefundUnknown)
				if v.Params["cause"] != string(store.ReasonOtherPart) || v.Amount != 60_00 {
					t.Fatalf("case of the second part: %+v", v)
				}
				d.agree(&v, row.second)
				work()
				of := map[money.Cents]payment.PayinStatus{0: payment.PayinPaid, 40_00: payment.PayinPartiallyRefunded, 100_00: payment.PayinRefunded}[row.refunded]
				g.WantRefund(r, row.status, row.refunded, of, row.refunded)
				g.WantCases()
				g.WantProven()
				g.Notify("n", "refund "+r.ExternalID) // the bank's report again: compared, and dismissed
				g.Apply()
				v = d.only(store.CaseRefundUnknown)
				d.refused(request(&v, store.ResolvedRelease), problem.InvalidState)
				d.resolve(request(&v, store.ResolvedDismiss))
				g.WantCases()
				g.WantProven()
			})
		})
	}
}

// A report of another payment came before the first send. The decision about that part does not
// end the refund: another part waits for its own.
func TestDeclareRefundThatWasNotSent(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		r := g.Refund(g.PaidPayin("p", 30_00, 70_00), "r", 100_00)
		parts, err := g.Store.RefundParts(t.Context(), r.Merchant, r.ID)
		g.Must(err)
		part := parts[0]
		report := processor.TransferReport{Lookup: processor.Found, State: processor.TransferPaid, Amount: part.Amount, PaymentID: "another"}
		g.Must(g.Outgoing.RecordRefundReport(t.Context(), part, report, nil))
		g.WantRefund(r, payment.RefundProcessing, 0, payment.PayinPaid, 0)
		for range 2 {
			v := d.only(store.CaseRefundUnknown)
			g.WantRefund(r, payment.RefundProcessing, 0, payment.PayinPaid, 0)
			d.agree(&v, store.ResolvedRelease)
		}
		g.WantRefund(r, payment.RefundFailed, 0, payment.PayinPaid, 0)
		g.WantCases()
		g.WantProven()
	})
}

// If the first part is sent again, the second one waits for it again.
func TestResendOfOtherParts(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		r := g.Refund(g.PaidPayin("p", 40_00, 60_00), "r", 100_00)
		g.Bank.RefundAtPanel(r.ExternalID, "before", 99_00)
		g.Send()
		v := d.only(store.CaseRefundUnknown)
		delete(g.Bank.Refunds.Made, r.ExternalID)
		g.Jump(2 * time.Minute)
		d.agree(&v, store.ResolvedResend)
		for range 3 {
			g.Send()
			g.LookUp()
			g.Jump(time.Minute)
		}
		g.WantRefund(r, payment.RefundCompleted, 100_00, payment.PayinRefunded, 100_00)
		g.WantCases()
		g.WantProven()
	})
}
