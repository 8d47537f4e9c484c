package review_test

import (
	"errors"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// A refund that two people send again, at a processor that would pay it twice, is looked up
// before each send: the first one may have appeared since their check.
func TestRefundIsLookedUpBeforeItIsSentAgain(t *testing.T) {
	for name, row := range map[string]struct {
		first   processor.Outcome // of the send that was decided
		appears bool
		sends   int
	}{
		"it has not appeared":                       {processor.Done, false, 2},
		"it has appeared":                           {processor.Done, true, 1},
		"not taken, and it has not appeared":        {processor.Later, false, 3},
		"not taken, and it has appeared":            {processor.Later, true, 2},
		"did not leave, and it has appeared":        {processor.NotSent, true, 2},
		"no answer: it is for two people once more": {processor.Unknown, false, 2},
	} {
		t.Run(name, func(t *testing.T) {
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				d := newDesk(g)
				r := d.refundToSendAgain()
				switch row.first {
				case processor.Done:
					g.Bank.Refunds.Answer = nil
				case processor.Unknown:
				default:
					g.Bank.Refunds.Answer = func(*coretest.Bank, processor.RefundRequest) processor.TransferAnswer {
						return processor.TransferAnswer{Outcome: row.first}
					}
					d.sendAgain()
					g.Bank.Refunds.Answer = nil
					g.Jump(2 * time.Minute) // the quiet period of that send
				}
				if row.appears {
					g.Bank.Mu.Lock()
					g.Bank.GiveBack(g.Bank.Refunds.Calls[0], processor.TransferPaid)
					g.Bank.Mu.Unlock()
				}
				d.sendAgain()
				if n := len(g.Bank.Refunds.Calls); n != row.sends {
					t.Errorf("%d requests, want %d", n, row.sends)
				}
				if row.first == processor.Unknown {
					g.Jump(2 * time.Minute)
					g.LookUp()
					g.WantRefund(r, payment.RefundProcessing, 0, payment.PayinPaid, 0)
					d.only(store.CaseRefundUnknown)
					return
				}
				g.WantRefund(r, payment.RefundCompleted, 40_00, payment.PayinPartiallyRefunded, 40_00)
				g.WantCases()
				g.WantProven()
			})
		})
	}
}

// A process dies while it sends such a refund again. The decision was about one send: whether there
// is another one is for two people once more.
func TestProcessDiesWhileItSendsARefundAgain(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		r := d.refundToSendAgain()
		other := g.Second()
		g.Bank.Refunds.Answer = func(b *coretest.Bank, r processor.RefundRequest) processor.TransferAnswer {
			other.Pass(4 * time.Second) // g is declared dead
			return refundTimeout(b, r)
		}
		d.sendAgain()
		for range 3 {
			other.Jump(2 * time.Minute)
			other.LookUp()
			other.Send()
		}
		if n := len(g.Bank.Refunds.Calls); n != 2 {
			t.Errorf("%d requests, want 2", n)
		}
		g.WantRefund(r, payment.RefundProcessing, 0, payment.PayinPaid, 0)
		d.only(store.CaseRefundUnknown)
	})
}

// refundToSendAgain is a refund at a processor that would pay it twice: its request got no answer and
// was not found, and two people have decided that it is sent again. The next requests get no answer
// either.
func (d *desk) refundToSendAgain() payment.Refund {
	d.T.Helper()
	d.Bank.Profiled.Refund.Repeat = processor.RepeatUnsafe
	r := d.Refund(d.PaidPayin("p", 100_00), "r", 40_00)
	d.Bank.Refunds.Answer = refundTimeout
	d.sendAgain()
	d.Jump(2 * time.Minute)
	d.LookUp()
	v := d.only(store.CaseRefundUnknown)
	d.agree(&v, store.ResolvedResend)
	return r
}

func refundTimeout(*coretest.Bank, processor.RefundRequest) processor.TransferAnswer {
	return processor.TransferAnswer{Cause: errors.New("timeout")}
}
