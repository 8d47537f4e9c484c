package review_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// The processor refused the first part of a refund, and later reports it with another amount. The
// second part waits under that case: once it is dismissed, the second part has a case of its own.
func TestDismissedCaseLeavesNoPartBehind(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		r := g.Refund(g.PaidPayin("p", 40_00, 60_00), "r", 100_00)
		g.Bank.Refunds.Answer = func(_ *coretest.Bank, v processor.RefundRequest) processor.TransferAnswer {
			if v.Amount == 40_00 {
				return processor.TransferAnswer{Outcome: processor.Refused}
			}
			return processor.TransferAnswer{Outcome: processor.Later}
		}
		work := func() {
			for range 3 {
				g.Send()
				g.LookUp()
				g.Jump(time.Minute)
			}
		}
		g.Bank.Refunds.AnswerQuery = func(*coretest.Bank, string) processor.TransferReport { return processor.TransferReport{} }
		g.Send() // the second one is looked up first
		g.Bank.Refunds.AnswerQuery = nil
		parts, err := g.Store.RefundParts(t.Context(), r.Merchant, r.ID)
		g.Must(err)
		if parts[0].Outcome != payment.PartFailed || parts[1].Sends != 0 {
			t.Fatalf("parts %+v", parts)
		}
		report := processor.TransferReport{Lookup: processor.Found, State: processor.TransferPaid, Amount: 99_00}
		g.Must(g.Outgoing.RecordRefundReport(t.Context(), parts[0], report, nil))
		v := d.only(store.CaseRefundUnknown)
		work()
		d.resolve(request(&v, store.ResolvedDismiss))
		work()
		v = d.only(store.CaseRefundUnknown)
		if v.Params["cause"] != string(store.ReasonOtherPart) || v.Amount != 60_00 {
			t.Fatalf("case of the second part: %+v", v)
		}
		d.agree(&v, store.ResolvedRelease)
		g.WantRefund(r, payment.RefundFailed, 0, payment.PayinPaid, 0)
		g.WantCases()
		g.WantProven()
	})
}

// The third part of a refund waits under the cases of both others. It is not sent because the second
// one is sent again, while the case about the first one is open.
func TestResendOfOnePartSendsNoOther(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		g.Bank.Profiled.Refund.Repeat = processor.RepeatUnsafe
		r := g.Refund(g.PaidPayin("p", 20_00, 30_00, 50_00), "r", 100_00)
		g.Bank.Refunds.Answer = func(_ *coretest.Bank, v processor.RefundRequest) processor.TransferAnswer {
			if v.Amount == 20_00 {
				return processor.TransferAnswer{Outcome: processor.Refused}
			}
			return processor.TransferAnswer{Outcome: processor.Unknown}
		}
		work := func() {
			for range 6 {
				g.Send()
				g.LookUp()
				g.Send()
				g.Jump(2 * time.Minute)
			}
		}
		work()
		second := d.only(store.CaseRefundUnknown)
		parts, err := g.Store.RefundParts(t.Context(), r.Merchant, r.ID)
		g.Must(err)
		report := processor.TransferReport{Lookup: processor.Found, State: processor.TransferPaid, Amount: 99_00}
		g.Must(g.Outgoing.RecordRefundReport(t.Context(), parts[0], report, nil))
		g.Bank.Refunds.Answer = nil
		d.agree(&second, store.ResolvedResend)
		work()
		for _, v := range g.Bank.Refunds.Calls {
			if v.Amount == 50_00 {
				t.Fatal("the third part was sent")
			}
		}
		g.WantRefund(r, payment.RefundProcessing, 30_00, payment.PayinPartiallyRefunded, 30_00)
		for _, v := range d.openOf(store.CaseRefundUnknown) {
			if v.Params["cause"] == string(store.ReasonOtherAmount) {
				d.resolve(request(&v, store.ResolvedDismiss))
			}
		}
		v := d.only(store.CaseRefundUnknown)
		d.agree(&v, store.ResolvedResend)
		work()
		g.WantRefund(r, payment.RefundFailed, 80_00, payment.PayinPartiallyRefunded, 80_00)
		g.WantCases()
		g.WantProven()
	})
}

// A part of a refund that was damaged as the processor reported the first part with another amount
// waits under that case too, once it is repaired.
func TestRepairedPartWaitsUnderTheOtherCase(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		r := g.Refund(g.PaidPayin("p", 40_00, 60_00), "r", 100_00)
		g.Bank.Refunds.Answer = func(_ *coretest.Bank, v processor.RefundRequest) processor.TransferAnswer {
			return processor.TransferAnswer{Outcome: processor.Refused}
		}
		g.Bank.Refunds.AnswerQuery = func(*coretest.Bank, string) processor.TransferReport { return processor.TransferReport{} }
		g.Run(g.Outgoing.Send) // the second one is looked up first
		g.Bank.Refunds.AnswerQuery = nil
		parts, err := g.Store.RefundParts(t.Context(), r.Merchant, r.ID)
		g.Must(err)
		if parts[0].Outcome != payment.PartFailed || parts[1].Sends != 0 {
			t.Fatalf("parts %+v", parts)
		}
		g.Bank.Refunds.Answer = nil
		g.Execute("UPDATE refund_parts SET taken_from = '{' WHERE number = 2")
		work := func() {
			for range 4 {
				g.Jump(2 * time.Minute)
				g.LookUp()
				g.Send()
			}
		}
		work()
		damaged := d.only(store.CaseDamaged)
		g.Execute("UPDATE refund_parts SET taken_from = '' WHERE number = 2")
		report := processor.TransferReport{Lookup: processor.Found, State: processor.TransferPaid, Amount: 99_00}
		g.Must(g.Outgoing.RecordRefundReport(t.Context(), parts[0], report, nil))
		v := d.openOf(store.CaseRefundUnknown)[0]
		calls := len(g.Bank.Refunds.Calls)
		d.resolve(request(&damaged, store.ResolvedRetry)) // by one person
		work()
		if n := len(g.Bank.Refunds.Calls) - calls; n != 0 {
			t.Fatalf("the second part was sent %d times beside the case of another amount", n)
		}
		d.resolve(request(&v, store.ResolvedDismiss))
		v = d.only(store.CaseRefundUnknown)
		if v.Params["cause"] != string(store.ReasonOtherPart) || v.Amount != 60_00 {
			t.Fatalf("case of the second part: %+v", v)
		}
		d.agree(&v, store.ResolvedRelease)
		g.WantRefund(r, payment.RefundFailed, 0, payment.PayinPaid, 0)
		g.WantCases()
		g.WantProven()
	})
}

// A part of a refund that the processor does not take now waits under the case of another amount too.
func TestPartToSendLaterWaitsUnderTheOtherCase(t *testing.T) {
	for name, during := range map[string]bool{"before the report": false, "in flight as it comes": true} {
		t.Run(name, func(t *testing.T) {
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				d := newDesk(g)
				r := g.Refund(g.PaidPayin("p", 40_00, 60_00), "r", 100_00)
				contradict := func() {
					parts, err := g.Store.RefundParts(t.Context(), r.Merchant, r.ID)
					g.Must(err)
					report := processor.TransferReport{Lookup: processor.Found, State: processor.TransferPaid, Amount: 99_00}
					g.Must(g.Outgoing.RecordRefundReport(t.Context(), parts[0], report, nil))
				}
				g.Bank.Refunds.Answer = func(_ *coretest.Bank, v processor.RefundRequest) processor.TransferAnswer {
					if v.Amount == 40_00 {
						return processor.TransferAnswer{Outcome: processor.Refused}
					}
					if during {
						contradict()
					}
					return processor.TransferAnswer{Outcome: processor.Later}
				}
				for range 3 {
					g.Run(g.Outgoing.Send)
					g.LookUp()
				}
				if !during {
					contradict()
				}
				g.Bank.Refunds.Answer = nil
				calls := len(g.Bank.Refunds.Calls)
				for range 4 {
					g.Jump(2 * time.Hour)
					g.LookUp()
					g.Send()
				}
				if n := len(g.Bank.Refunds.Calls) - calls; calls != 2 || n != 0 {
					t.Fatalf("the second part was sent %d times beside the case of another amount, after %d calls", n, calls)
				}
				v := d.only(store.CaseRefundUnknown)
				d.resolve(request(&v, store.ResolvedDismiss))
				v = d.only(store.CaseRefundUnknown)
				d.agree(&v, store.ResolvedResend)
				g.Send()
				g.LookUp()
				g.Send()
				g.WantRefund(r, payment.RefundFailed, 60_00, payment.PayinPartiallyRefunded, 60_00)
				g.WantCases()
				g.WantProven()
			})
		})
	}
}
