package notice_test

import (
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// A notice that arrives twice, under one id or two, moves money once.
func TestNoticeComesTwice(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.Payin(g.Merchant, "r", "")
		g.Bank.Receive(p.ExternalID, "pay-1", 100_00)
		g.Notify("n-1", "charge "+p.ExternalID)
		g.Notify("n-1", "charge "+p.ExternalID)
		g.Apply()
		if g.Bank.Queries != 1 {
			t.Errorf("one notice that came twice led to %d queries", g.Bank.Queries)
		}
		g.Notify("n-1", "charge "+p.ExternalID)
		g.Notify("n-2", "charge "+p.ExternalID, "charge "+p.ExternalID)
		g.Apply()
		g.WantPayin(p, payment.PayinPaid, 100_00, 1)
		g.WantBalances(coretest.Opening+100_00, 0)
		g.WantEvents(payment.EventPayinPaid)
		g.WantCases()
	})
}

// Notices may overtake each other.
func TestReorderedNoticesOfPayments(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.Payin(g.Merchant, "r", "")
		g.Bank.Receive(p.ExternalID, "pay-1", 60_00)
		g.Bank.Receive(p.ExternalID, "pay-2", 40_00)
		g.Notify("about pay-2", "charge "+p.ExternalID)
		g.Apply()
		g.WantPayin(p, payment.PayinPaid, 100_00, 2)
		g.Notify("about pay-1", "charge "+p.ExternalID)
		g.Apply()
		g.WantPayin(p, payment.PayinPaid, 100_00, 2)
		g.WantBalances(coretest.Opening+100_00, 0)
		g.WantCases()
	})
}

// The notice of a transfer may arrive before the answer to its request.
func TestNoticeBeforeTheAnswer(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.Payout("r", 10_00)
		g.Bank.AnswerTransfer = func(b *coretest.Bank, r processor.TransferRequest) processor.TransferAnswer {
			early := b.Pay(r, processor.TransferProcessing) // read when all is over
			b.Transfers[r.ExternalID].State = processor.TransferPaid
			b.Mu.Unlock()
			defer b.Mu.Lock()
			g.Notify("n-1", p.ExternalID)
			g.Apply()
			g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
			return processor.TransferAnswer{Outcome: processor.Done, Report: early}
		}
		g.Send()
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		g.Notify("n-0", p.ExternalID)
		g.Apply()
		g.WantBalances(coretest.Opening-10_00, 0)
		g.WantEvents(payment.EventPayoutProcessing, payment.EventPayoutCompleted)
		g.WantCases()
	})
}

// unknownTo is the external id of an order that was never requested.
func unknownTo(g *coretest.Gateway, op payment.Operation) string {
	return g.Store.ExternalID(&g.Merchant, op, "never requested")
}

// wantUnidentified compares the platform's unidentified money; the merchant gets none.
func wantUnidentified(g *coretest.Gateway, amount money.Cents) {
	g.T.Helper()
	b, err := g.Store.Balances(g.T.Context(), payment.ID{})
	g.Must(err)
	if b[ledger.Unidentified] != amount {
		g.T.Fatalf("unidentified %d, want %d", b[ledger.Unidentified], amount)
	}
	g.WantBalances(coretest.Opening, 0)
}

// A notice of an order that is unknown gets a case, once.
func TestNoticeOfAnUnknownPayment(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		id := unknownTo(g, payment.OperationPayin)
		g.Bank.Receive(id, "pay-1", 55_00)
		g.Notify("n-1", "charge "+id)
		g.Notify("n-2", "charge "+id)
		g.Apply()
		wantUnidentified(g, 55_00)
		g.WantCases(store.CaseUnmatchedReceipt)
	})
}

func TestNoticeOfAnUnknownTransfer(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		id := unknownTo(g, payment.OperationPayout)
		g.Bank.Pay(processor.TransferRequest{ExternalID: id, Amount: 10_00}, processor.TransferPaid)
		g.Notify("n-1", id)
		g.Apply()
		g.Jump(100 * time.Hour)
		g.Apply()
		g.WantCases(store.CaseNotice)
		g.WantBalances(coretest.Opening, 0)
		list, err := g.Store.OpenCases(t.Context(), 10)
		g.Must(err)
		if v := list[0]; v.Merchant != g.Merchant.ID || v.Params["reason"] != "unknown_transfer" || v.Params["externalId"] != id || v.Params["notice"] != "n-1" {
			t.Errorf("case %+v", v)
		}
	})
}

// A charge that the bank does not have may have been reported too early: it is looked
// up again, on a schedule, before the notice is a dead letter.
func TestNoticeOfAChargeThatTheBankDoesNotKnow(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Notify("n-1", "charge "+unknownTo(g, payment.OperationPayin))
		for range 8 {
			g.Apply()
			g.WantCases()
			g.Jump(3 * time.Hour)
		}
		g.Apply()
		g.WantCases(store.CaseNotice)
		queries := g.Bank.Queries
		g.Jump(100 * time.Hour)
		g.Apply()
		if g.Bank.Queries != queries || queries != 9 {
			t.Errorf("%d queries, and %d after it was given up", queries, g.Bank.Queries-queries)
		}
	})
}

func TestUnreadableNotice(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.Payin(g.Merchant, "r", "")
		g.Bank.Receive(p.ExternalID, "pay-1", 100_00)
		g.Notify("n-1", "maria@example.com did pay")
		g.Notify("n-2", "charge "+p.ExternalID)
		g.Apply()
		g.WantCases(store.CaseNotice)
		g.WantPayin(p, payment.PayinPaid, 100_00, 1) // the one behind it does not wait
		list, err := g.Store.OpenCases(t.Context(), 10)
		g.Must(err)
		text := g.Log.String()
		for name, value := range list[0].Params {
			text += name + "=" + value + " "
		}
		if !strings.Contains(text, "processor="+coretest.BankName+" ") || !strings.Contains(text, "notice=n-1 ") || !strings.Contains(text, "reason=unreadable ") {
			t.Errorf("the case does not name the notice: %v", list[0].Params)
		}
		if strings.Contains(text, "maria") {
			t.Errorf("the contents of the notice are shown: %s", text)
		}
		g.Jump(100 * time.Hour)
		g.Apply()
		g.WantCases(store.CaseNotice)
	})
}

// A bug of the processor's package delays the notice; the process continues.
func TestNoticeThatPanics(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Notify("n-1", "panic")
		for range 9 {
			g.WantCases()
			g.Apply()
			g.Jump(3 * time.Hour)
		}
		g.WantCases(store.CaseNotice)
	})
}

// A notice of an account that this process cannot open is left to others, without a case,
// however long it takes.
func TestNoticeOfAnAccountThatIsNotOpen(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Must(g.Notices.Record(t.Context(), "elsewhere", "n-1", "", []byte("charge x")))
		for range 12 {
			g.Apply()
			g.Jump(100 * time.Hour)
		}
		g.WantCases()
		if g.Bank.Queries != 0 {
			t.Errorf("%d queries", g.Bank.Queries)
		}
		g.Processor("elsewhere", g.Bank)
		g.Apply()
		if g.Bank.Queries != 1 {
			t.Errorf("%d queries by a process that can open the account", g.Bank.Queries)
		}
	})
}

// A notice without a hint is finished.
func TestNoticeOfNothing(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Notify("n-1")
		changes := g.Changes(g.Apply)
		if changes != "notices applied_at:-→now claimed_by:this→- state:received→applied" {
			t.Errorf("changes %s", changes)
		}
	})
}

// While the bank answers no query no notice is applied; they are once it answers again.
func TestNoticesWhileTheBankIsDown(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.Payin(g.Merchant, "r", "")
		out := g.Payout("out", 10_00)
		g.Bank.AnswerTransfer = func(b *coretest.Bank, r processor.TransferRequest) processor.TransferAnswer {
			return processor.TransferAnswer{Outcome: processor.Done, Report: b.Pay(r, processor.TransferProcessing)}
		}
		g.Send()
		g.Bank.Transfers[out.ExternalID].State = processor.TransferPaid
		g.Bank.Receive(p.ExternalID, "pay-1", 100_00)
		g.Bank.Down = true
		g.Notify("n-1", "charge "+p.ExternalID)
		g.Notify("n-2", out.ExternalID)
		for range 10 {
			g.Apply()
			g.Pass(time.Second)
		}
		g.WantPayin(p, payment.PayinPending, 0, 0)
		g.WantPayout(out, payment.PayoutProcessing, payment.StepAccepted)
		if g.Bank.Queries < 4 || g.Bank.Queries > 10 {
			t.Errorf("%d queries in 10 s about two notices", g.Bank.Queries)
		}
		g.WantCases()
		g.Bank.Down = false
		g.Pass(17 * time.Second)
		g.Apply()
		g.WantPayin(p, payment.PayinPaid, 100_00, 1)
		g.WantPayout(out, payment.PayoutCompleted, payment.StepDone)
		g.WantBalances(coretest.Opening+90_00, 0)
	})
}
