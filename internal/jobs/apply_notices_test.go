package jobs_test

import (
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// A notice that comes twice, under one id or two, moves money once.
func TestNoticeToldTwice(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		p := g.order(g.merchant, "r", "")
		g.bank.receive(p.ExternalID, "pay-1", 100_00)
		g.notify("n-1", "charge "+p.ExternalID)
		g.notify("n-1", "charge "+p.ExternalID)
		g.apply()
		if g.bank.questions != 1 {
			t.Errorf("one notice, told twice, led to %d questions", g.bank.questions)
		}
		g.notify("n-1", "charge "+p.ExternalID)
		g.notify("n-2", "charge "+p.ExternalID, "charge "+p.ExternalID)
		g.apply()
		g.wantPayin(p, payment.PayinPaid, 100_00, 1)
		g.wantBalances(opening+100_00, 0)
		g.wantEvents(payment.EventPayinPaid)
		g.wantExceptions()
	})
}

// Notices may overtake each other, and the answers that they are about.
func TestNoticesReordered(t *testing.T) {
	t.Run("payments", func(t *testing.T) {
		each(t, func(t *testing.T, g *gateway) {
			p := g.order(g.merchant, "r", "")
			g.bank.receive(p.ExternalID, "pay-1", 60_00)
			g.bank.receive(p.ExternalID, "pay-2", 40_00)
			g.notify("about pay-2", "charge "+p.ExternalID)
			g.apply()
			g.wantPayin(p, payment.PayinPaid, 100_00, 2)
			g.notify("about pay-1", "charge "+p.ExternalID)
			g.apply()
			g.wantPayin(p, payment.PayinPaid, 100_00, 2)
			g.wantBalances(opening+100_00, 0)
			g.wantExceptions()
		})
	})
	t.Run("a transfer's, before its answer", func(t *testing.T) {
		each(t, func(t *testing.T, g *gateway) {
			p := g.payout("r", 10_00)
			g.bank.transfer = func(b *bank, r processor.TransferRequest) processor.TransferAnswer {
				early := b.pay(r, processor.TransferProcessing) // on its way when all is over
				b.transfers[r.ExternalID].state = processor.TransferPaid
				b.mu.Unlock()
				defer b.mu.Lock()
				g.notify("n-1", p.ExternalID)
				g.apply()
				g.want(p, payment.PayoutCompleted, payment.StepDone)
				return processor.TransferAnswer{Outcome: processor.Done, Report: early}
			}
			g.submit()
			g.want(p, payment.PayoutCompleted, payment.StepDone)
			g.notify("n-0", p.ExternalID)
			g.apply()
			g.wantBalances(opening-10_00, 0)
			g.wantEvents(payment.EventPayoutProcessing, payment.EventPayoutCompleted)
			g.wantExceptions()
		})
	})
}

// What a notice names and nobody knows is for a person, once.
func TestNoticeOfAnUnknownOrder(t *testing.T) {
	unknownTo := func(g *gateway, op payment.Operation) string {
		return payment.ExternalID(g.store.Installation(), g.merchant.Number, g.merchant.ID, op, "never asked for")
	}
	t.Run("a payment", func(t *testing.T) {
		each(t, func(t *testing.T, g *gateway) {
			id := unknownTo(g, payment.OperationPayin)
			g.bank.receive(id, "pay-1", 55_00)
			g.notify("n-1", "charge "+id)
			g.notify("n-2", "charge "+id)
			g.apply()
			g.wantUnapplied(55_00)
			g.wantExceptions(store.ExceptionUnmatched)
		})
	})
	t.Run("a transfer", func(t *testing.T) {
		each(t, func(t *testing.T, g *gateway) {
			id := unknownTo(g, payment.OperationPayout)
			g.bank.pay(processor.TransferRequest{ExternalID: id, Amount: 10_00}, processor.TransferPaid)
			g.notify("n-1", id)
			g.apply()
			g.leap(100 * time.Hour)
			g.apply()
			g.wantExceptions(store.ExceptionNotice)
			g.wantBalances(opening, 0)
		})
	})
	t.Run("a charge that the bank does not know either", func(t *testing.T) {
		each(t, func(t *testing.T, g *gateway) {
			g.notify("n-1", "charge "+unknownTo(g, payment.OperationPayin))
			for range 8 {
				g.apply()
				g.wantExceptions() // it may have been told too early
				g.leap(3 * time.Hour)
			}
			g.apply()
			g.wantExceptions(store.ExceptionNotice)
			asked := g.bank.questions
			g.leap(100 * time.Hour)
			g.apply()
			if g.bank.questions != asked || asked != 9 {
				t.Errorf("asked %d times, and %d times after it was given up", asked, g.bank.questions-asked)
			}
		})
	})
}

func TestNoticeThatCannotBeRead(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		p := g.order(g.merchant, "r", "")
		g.bank.receive(p.ExternalID, "pay-1", 100_00)
		g.notify("n-1", "maria@example.com did pay")
		g.notify("n-2", "charge "+p.ExternalID)
		g.apply()
		g.wantExceptions(store.ExceptionNotice)
		g.wantPayin(p, payment.PayinPaid, 100_00, 1) // the one behind it is not held up
		list, err := g.store.OpenExceptions(t.Context(), 10)
		g.must(err)
		if !strings.Contains(list[0].Detail, bankName+"/n-1") {
			t.Errorf("it is not told which: %q", list[0].Detail)
		}
		if text := list[0].Detail + g.log.String(); strings.Contains(text, "maria") {
			t.Errorf("the notice's words are shown: %s", text)
		}
		g.leap(100 * time.Hour)
		g.apply()
		g.wantExceptions(store.ExceptionNotice)
	})
}

// A bug of the processor's package delays the notice; the process lives on.
func TestNoticeThatPanics(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		g.notify("n-1", "panic")
		for range 9 {
			g.wantExceptions()
			g.apply()
			g.leap(3 * time.Hour)
		}
		g.wantExceptions(store.ExceptionNotice)
	})
}

// While the bank answers no question nothing is believed; what it said is
// applied when it answers again.
func TestNoticeWhileTheBankIsDown(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		p := g.order(g.merchant, "r", "")
		out := g.payout("out", 10_00)
		g.bank.transfer = func(b *bank, r processor.TransferRequest) processor.TransferAnswer {
			return processor.TransferAnswer{Outcome: processor.Done, Report: b.pay(r, processor.TransferProcessing)}
		}
		g.submit()
		g.bank.transfers[out.ExternalID].state = processor.TransferPaid
		g.bank.receive(p.ExternalID, "pay-1", 100_00)
		g.bank.down = true
		g.notify("n-1", "charge "+p.ExternalID)
		g.notify("n-2", out.ExternalID)
		for range 10 {
			g.apply()
			g.pass(time.Second)
		}
		g.wantPayin(p, payment.PayinPending, 0, 0)
		g.want(out, payment.PayoutProcessing, payment.StepAccepted)
		if g.bank.questions < 4 || g.bank.questions > 10 {
			t.Errorf("asked %d times in 10 s about two notices", g.bank.questions)
		}
		g.wantExceptions()
		g.bank.down = false
		g.pass(17 * time.Second)
		g.apply()
		g.wantPayin(p, payment.PayinPaid, 100_00, 1)
		g.want(out, payment.PayoutCompleted, payment.StepDone)
		g.wantBalances(opening+90_00, 0)
	})
}
