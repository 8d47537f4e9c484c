package refund_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// inProcess is the answer of a bank that accepts a refund and pays it later.
func inProcess(b *coretest.Bank, r processor.RefundRequest) processor.TransferAnswer {
	return processor.TransferAnswer{Outcome: processor.Done, Report: b.GiveBack(r, processor.TransferProcessing)}
}

// refused requests a refund that must be refused without any change.
func refused(t *testing.T, g *coretest.Gateway, payin payment.ID, amount int64, kind problem.Kind, detail string) {
	t.Helper()
	changes := g.Changes(func() {
		_, _, err := g.Refunds.Create(t.Context(), g.Merchant, payin, coretest.RefundRequest("refused", amount))
		e, ok := errors.AsType[*problem.Error](err)
		if !problem.Is(err, kind) || detail != "" && (!ok || !strings.Contains(fmt.Sprint(e.Detail, e.Fields), detail)) {
			t.Errorf("%d of %s: %v, want %s, %q", amount, payin, err, kind, detail)
		}
	})
	if changes != "" {
		t.Errorf("a refused refund changes %s", changes)
	}
}

func TestCreate(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.PaidPayin("p", 100_00)
		g.WantBalances(coretest.Opening+100_00, 0)
		changes := g.Changes(func() { g.Refund(p, "half", 40_00) })
		const want = `
			+refunds PENDING merchant 4000
			+refund_parts 1 queued 4000
			+postings refund_held available -4000
			+postings refund_held held 4000`
		if got := strings.Join(strings.Fields(changes), " "); got != strings.Join(strings.Fields(want), " ") {
			t.Errorf("changes %s", changes)
		}
		refused(t, g, p.ID, 60_01, problem.ValidationFailed, "at most 6000")
		rest := g.Refund(p, "rest", 0)
		if rest.Amount != 60_00 || rest.ExternalID == "" || rest.ReferenceID != "rest" {
			t.Errorf("the rest is %+v", rest)
		}
		refused(t, g, p.ID, 0, problem.ValidationFailed, "nothing is left")
		refused(t, g, p.ID, 1, problem.ValidationFailed, "nothing is left")
		g.WantBalances(coretest.Opening, 100_00)
		g.WantProven()
	})
}

func TestCreateAgain(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p, other := g.PaidPayin("p", 100_00), g.PaidPayin("other", 100_00)
		first := g.Refund(p, "r", 40_00)
		again := func(of payment.Payin, amount int64, field string) {
			t.Helper()
			got, replayed, err := g.Refunds.Create(t.Context(), g.Merchant, of.ID, coretest.RefundRequest("r", amount))
			e, _ := errors.AsType[*problem.Error](err)
			switch {
			case field == "" && (err != nil || !replayed || got.ID != first.ID):
				t.Errorf("the same again: %v, %t, %s", err, replayed, got.ID)
			case field != "" && (!problem.Is(err, problem.ReferenceConflict) || len(e.Fields) == 0):
				t.Errorf("another request: %v", err)
			}
		}
		changes := g.Changes(func() {
			again(p, 40_00, "")
			again(p, 41_00, "amount")
			again(other, 40_00, "payinId")
		})
		if changes != "" {
			t.Errorf("changes %s", changes)
		}
		g.Send()
		again(p, 40_00, "")
		g.WantRefund(first, payment.RefundCompleted, 40_00, payment.PayinPartiallyRefunded, 40_00)
	})
}

func TestCreateRefused(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		refused(t, g, payment.ID{1}, 1, problem.NotFound, "")
		open := g.Payin(g.Merchant, "open", "")
		refused(t, g, open.ID, 1, problem.InvalidState, "PENDING")
		short := g.PaidPayin("short", 40_00)
		refused(t, g, short.ID, 40_01, problem.ValidationFailed, "at most 4000")
		p := g.PaidPayin("p", 100_00)
		foreign := g.Merchant
		foreign.ID, foreign.Number = payment.ID{9}, 99
		if _, _, err := g.Refunds.Create(t.Context(), foreign, p.ID, coretest.RefundRequest("r", 1)); !problem.Is(err, problem.NotFound) {
			t.Errorf("another merchant's pay-in: %v", err)
		}

		g.Bank.Profiled.RefundWindows = map[payment.Method]time.Duration{payment.CreditCard: 0}
		refused(t, g, p.ID, 1, problem.RefundNotPossible, "cannot give a PIX payment back")
		g.Bank.Profiled.RefundWindows = map[payment.Method]time.Duration{payment.PIX: 90 * 24 * time.Hour}
		g.Payout("everything", int64(coretest.Opening)+100_00)
		refused(t, g, p.ID, 40_01, problem.InsufficientBalance, "")
		g.Jump(90*24*time.Hour + time.Second)
		refused(t, g, p.ID, 1, problem.RefundNotPossible, "within 90 days")

		g.Refund(g.PaidPayinAt("last day", g.Clock.Now().Add(-90*24*time.Hour), 10_00, 90_00), "just in time", 5_00)
		g.WantProven()
	})
}

// Several partial refunds at once never exceed the paid amount, nor the available money.
func TestConcurrentRefunds(t *testing.T) {
	coretest.EachEngine(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.PaidPayin("p", 30_00, 70_00)
		g.Writer.Start()
		t.Cleanup(g.Writer.Stop)
		var done sync.WaitGroup
		var mu sync.Mutex
		var held money.Cents
		for i := range 40 {
			done.Go(func() {
				r, _, err := g.Refunds.Create(t.Context(), g.Merchant, p.ID, coretest.RefundRequest(fmt.Sprint(i%30), int64(700+i%30)))
				if err != nil && !problem.Is(err, problem.ValidationFailed) {
					t.Errorf("refund %d: %v", i, err)
				}
				mu.Lock()
				defer mu.Unlock()
				if i < 30 && err == nil {
					held += r.Amount
				}
			})
		}
		g.Until(done.Wait)
		if held > 100_00 || held < 90_00 {
			t.Errorf("%d of 10000 is held", held)
		}
		g.WantBalances(coretest.Opening+100_00-held, held)
		g.WantProven()
	})
}

// A refund takes one payment if it suffices, else as many as it needs.
func TestRefundOfSeveralPayments(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.PaidPayin("p", 30_00, 70_00)
		r := g.Refund(p, "r", 60_00)
		parts := func(r payment.Refund, want string) {
			t.Helper()
			list, err := g.Store.RefundParts(t.Context(), r.Merchant, r.ID)
			g.Must(err)
			var got []string
			ids := map[string]bool{}
			for _, p := range list {
				got = append(got, fmt.Sprintf("%s:%d", p.PaymentID, p.Amount))
				ids[p.ExternalID] = true
			}
			if strings.Join(got, ", ") != want || len(ids) != len(list) || list[0].ExternalID != r.ExternalID {
				t.Errorf("parts %v, %v; want %s", got, ids, want)
			}
		}
		parts(r, "p 2:6000")
		rest := g.Refund(p, "rest", 0)
		parts(rest, "p 1:3000, p 2:1000")
		g.Send()
		g.LookUp() // the second part waited, and is looked up first
		g.Send()
		g.WantRefund(r, payment.RefundCompleted, 60_00, payment.PayinRefunded, 100_00)
		g.WantRefund(rest, payment.RefundCompleted, 40_00, payment.PayinRefunded, 100_00)
		g.WantBalances(coretest.Opening, 0)
		g.WantEvents(payment.EventPayinUnderpaid, payment.EventPayinPaid,
			payment.EventRefundCompleted, payment.EventPayinPartiallyRefunded, payment.EventPayinPartiallyRefunded,
			payment.EventRefundCompleted, payment.EventPayinRefunded)
		g.WantProven()
	})
}

// A listed refund of the same payment and amount as one of unknown outcome may be that one, under
// another id: it is booked only when the other is decided, or the merchant would bear it twice.
func TestListedRefundMayBeOurs(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.PaidPayin("p", 100_00)
		g.Bank.Refunds.Answer = func(b *coretest.Bank, r processor.RefundRequest) processor.TransferAnswer {
			b.GiveBack(processor.RefundRequest{ExternalID: "anotherid", PaymentID: r.PaymentID, Amount: r.Amount}, processor.TransferPaid)
			return processor.TransferAnswer{Cause: errors.New("the connection broke")}
		}
		g.Refund(p, "ours", 40_00)
		g.Send()
		for range 2 {
			g.ReadFeeds()
			g.Pass(10 * time.Second)
		}
		list, err := g.Store.Refunds(t.Context(), g.Merchant.ID, store.Filter{Limit: 5})
		g.Must(err)
		if len(list) != 1 || list[0].Origin == payment.RefundByProcessor {
			t.Errorf("refunds %+v", list)
		}
		g.WantBalances(coretest.Opening+60_00, 40_00)
		g.WantProven()
	})
}

// A refund from the processor's own panel is found by the list, once, and takes available money; a
// shortfall is owed.
func TestRefundAtThePanel(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.PaidPayin("p", 100_00)
		g.Bank.RefundAtPanel("panel1", "p 1", 40_00)
		for range 2 {
			g.ReadFeeds()
			g.Pass(10 * time.Second)
		}
		list, err := g.Store.Refunds(t.Context(), g.Merchant.ID, store.Filter{Limit: 5})
		g.Must(err)
		if len(list) != 1 || list[0].Origin != payment.RefundByProcessor || list[0].ReferenceID != "" || len(list[0].ExternalID) != payment.ExternalIDLength {
			t.Fatalf("refunds %+v", list)
		}
		g.WantRefund(list[0], payment.RefundCompleted, 40_00, payment.PayinPartiallyRefunded, 40_00)
		g.WantBalances(coretest.Opening+60_00, 0)
		refused(t, g, p.ID, 60_01, problem.ValidationFailed, "at most 6000")
		g.Payout("everything", int64(coretest.Opening)+60_00)
		g.Bank.RefundAtPanel("panel2", "p 1", 60_00)
		g.ReadFeeds()
		g.WantPayin(p, payment.PayinRefunded, 100_00, 1)
		b, err := g.Store.Balances(t.Context(), g.Merchant.ID)
		g.Must(err)
		if b[ledger.Owed] != -60_00 {
			t.Errorf("owed %d", b[ledger.Owed])
		}
		g.WantCases()
		g.Bank.EndRefund("panel2", processor.TransferFailed)
		g.Pass(10 * time.Second)
		g.ReadFeeds()
		g.WantRefund(list[0], payment.RefundCompleted, 40_00, payment.PayinPartiallyRefunded, 40_00)
		g.WantProven()
	})
}

// A listed refund of a payment that is not booked waits for it, and delays no other.
func TestRefundBeforeItsPayment(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		late, p := g.Payin(g.Merchant, "late", ""), g.PaidPayin("p", 100_00)
		g.Bank.FeedsDown = map[processor.Feed]bool{processor.FeedPayments: true}
		g.Bank.Receive(late.ExternalID, "late 1", 100_00)
		g.Bank.RefundAtPanel("panel1", "late 1", 40_00)
		g.Bank.RefundAtPanel("panel2", "p 1", 10_00)
		g.ReadFeeds()
		g.WantPayin(p, payment.PayinPartiallyRefunded, 100_00, 1)
		g.WantPayin(late, payment.PayinPending, 0, 0)
		g.Bank.FeedsDown = nil
		for range 3 {
			g.Pass(10 * time.Second)
			g.ReadFeeds()
			g.Apply()
		}
		g.WantPayin(late, payment.PayinPartiallyRefunded, 100_00, 1)
		g.WantCases()
		g.WantProven()
	})
}

// A listed refund that waits for its payment may come back meanwhile: then it moves no money.
func TestRefundCameBackBeforeItsPayment(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		late := g.Payin(g.Merchant, "late", "")
		g.Bank.FeedsDown = map[processor.Feed]bool{processor.FeedPayments: true}
		g.Bank.Receive(late.ExternalID, "late 1", 100_00)
		g.Bank.RefundAtPanel("panel", "late 1", 40_00)
		g.ReadFeeds()
		g.Bank.FeedsDown = nil
		g.Bank.EndRefund("panel", processor.TransferFailed)
		for range 3 {
			g.Pass(10 * time.Second)
			g.ReadFeeds()
		}
		g.WantPayin(late, payment.PayinPaid, 100_00, 1)
		for range 3 {
			g.Pass(time.Minute)
			g.Apply()
		}
		g.WantPayin(late, payment.PayinPaid, 100_00, 1)
		g.WantBalances(coretest.Opening+100_00, 0)
		g.WantCases()
		g.WantProven()
	})
}

// A refund that fails while an answer that it was paid is on its way stays failed; one that the
// processor reports as paid when it is asked again is paid.
func TestAnswerFromBeforeTheFailure(t *testing.T) {
	for _, last := range []processor.TransferState{processor.TransferFailed, processor.TransferPaid} {
		coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
			p := g.PaidPayin("p", 100_00)
			g.Bank.Refunds.Answer = inProcess
			r := g.Refund(p, "r", 40_00)
			g.Send()
			g.Bank.EndRefund(r.ExternalID, processor.TransferPaid)
			g.Bank.Refunds.AnswerQuery = func(b *coretest.Bank, externalID string) processor.TransferReport {
				early := b.RefundReport(externalID)
				b.Refunds.AnswerQuery = nil
				b.Mu.Unlock() // the answer is on its way
				defer b.Mu.Lock()
				b.EndRefund(r.ExternalID, processor.TransferFailed)
				g.Notify("failed", "refund "+r.ExternalID)
				g.Apply()
				g.WantRefund(r, payment.RefundFailed, 0, payment.PayinPaid, 0)
				b.EndRefund(r.ExternalID, last)
				return early
			}
			g.Jump(time.Minute)
			g.LookUp()
			want, back, version, status := payment.RefundFailed, money.Cents(0), int64(3), payment.PayinPaid
			if last == processor.TransferPaid {
				want, back, version, status = payment.RefundCompleted, 40_00, 4, payment.PayinPartiallyRefunded
			}
			if got := g.WantRefund(r, want, back, status, back); got.Version != version {
				g.T.Errorf("the refund is in version %d, want %d", got.Version, version)
			}
			g.WantBalances(coretest.Opening+100_00-back, 0)
			g.WantProven()
		})
	}
}

// A refund that failed after it was paid, before either was known here: the list's older entry
// does not make it paid again.
func TestListedRefundThatHasFailed(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.PaidPayin("p", 100_00)
		g.Bank.Refunds.Answer = inProcess
		r := g.Refund(p, "r", 40_00)
		g.Send()
		g.Bank.EndRefund(r.ExternalID, processor.TransferPaid)
		g.Bank.EndRefund(r.ExternalID, processor.TransferFailed)
		g.Notify("failed", "refund "+r.ExternalID)
		g.Apply()
		g.WantRefund(r, payment.RefundFailed, 0, payment.PayinPaid, 0)
		for range 2 {
			g.Pass(10 * time.Second)
			g.ReadFeeds()
		}
		after, err := g.Store.Refund(t.Context(), r.Merchant, r.ID)
		g.Must(err)
		if after.Status != payment.RefundFailed || after.Version != 3 {
			t.Errorf("the refund is %s in version %d", after.Status, after.Version)
		}
		g.WantBalances(coretest.Opening+100_00, 0)
		g.WantProven()
	})
}

// A refund of the processor of an order that was not paid in full is shown; one beyond what is left of
// the order has a case.
func TestUnexpectedRefund(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		short := g.PaidPayin("short", 40_00)
		g.Refund(short, "r", 10_00)
		g.Bank.RefundAtPanel("panel", "short 1", 30_00)
		g.ReadFeeds()
		g.WantPayin(short, payment.PayinPending, 40_00, 1)
		if got := g.ReadPayin(short).RefundedAmount; got != 30_00 {
			t.Errorf("%s is refunded", got)
		}
		g.WantBalances(coretest.Opening, 10_00)
		var none []store.CaseKind
		g.WantCases(none...)
		g.Bank.RefundAtPanel("more", "short 1", 1_00)
		g.Pass(10 * time.Second)
		g.ReadFeeds()
		g.WantCases(store.CaseRefundUnexpected)
		g.WantProven()
	})
}

// A refund at the processor's panel may exceed the rest that a refund in flight leaves. If the
// refund in flight fails, the order shows the other.
func TestUnexpectedRefundThatFitsLater(t *testing.T) {
	for _, state := range []processor.TransferState{processor.TransferProcessing, processor.TransferPaid} {
		coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
			p := g.PaidPayin("p", 100_00)
			g.Bank.Refunds.Answer = inProcess
			r := g.Refund(p, "r", 60_00)
			g.Send()
			if state == processor.TransferPaid { // and it is taken back later
				g.Bank.EndRefund(r.ExternalID, processor.TransferPaid)
				g.ReadFeeds()
			}
			g.Bank.RefundAtPanel("panel", "p 1", 50_00)
			g.Bank.RefundAtPanel("more", "p 1", 45_00)
			g.Pass(10 * time.Second)
			g.ReadFeeds()
			g.WantCases(store.CaseRefundUnexpected, store.CaseRefundUnexpected)
			if got, err := g.Store.Payin(t.Context(), p.Merchant, p.ID); err != nil || got.RefundedAmount > 60_00 {
				t.Errorf("while it is under way %s is shown, %v", got.RefundedAmount, err)
			}
			g.Bank.EndRefund(r.ExternalID, processor.TransferFailed)
			g.Notify("failed", "refund "+r.ExternalID)
			g.Apply()
			got, err := g.Store.Payin(t.Context(), p.Merchant, p.ID)
			if err != nil || got.RefundedAmount != 95_00 || got.Status != payment.PayinPartiallyRefunded {
				t.Errorf("it is %s, refunded %s, %v", got.Status, got.RefundedAmount, err)
			}
			g.WantBalances(coretest.Opening+5_00, 0)
			g.WantCases(store.CaseRefundUnexpected, store.CaseRefundUnexpected)
			g.WantProven()
		})
	}
}

// After a restore the list shows refunds that the database lacks. The same request again is
// one of them, and pays nothing more.
func TestRefundOfALostPast(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.PaidPayin("p", 100_00)
		lost := g.Store.ExternalID(&g.Merchant, payment.OperationRefund, "lost")
		g.Bank.RefundAtPanel(lost, "p 1", 40_00)
		g.ReadFeeds()
		g.WantPayin(p, payment.PayinPartiallyRefunded, 100_00, 1)
		r, replayed, err := g.Refunds.Create(t.Context(), g.Merchant, p.ID, coretest.RefundRequest("lost", 40_00))
		g.Must(err)
		if !replayed || r.Status != payment.RefundCompleted || r.ReferenceID != "lost" || r.ExternalID != lost {
			t.Errorf("%t %+v", replayed, r)
		}
		g.Refund(p, "lost", 40_00)
		if _, _, err := g.Refunds.Create(t.Context(), g.Merchant, p.ID, coretest.RefundRequest("lost", 41_00)); !problem.Is(err, problem.ReferenceConflict) {
			t.Errorf("another amount: %v", err)
		}
		g.Send()
		g.WantBalances(coretest.Opening+60_00, 0)
		if len(g.Bank.Refunds.Calls) != 0 {
			t.Errorf("%d refunds were sent", len(g.Bank.Refunds.Calls))
		}
		g.WantProven()
	})
}

// A refund of several payments that a copy of the database lacks is found as several refunds.
// Its repeated request is refused, also if only a later part of it is listed.
func TestRefundOfWhichAPartWasFound(t *testing.T) {
	for name, listed := range map[string][]int{"all parts": {0, 1, 2}, "the second part": {1}, "the last part": {2}} {
		t.Run(name, func(t *testing.T) {
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				p := g.PaidPayin("p", 30_00, 30_00, 40_00)
				r := g.Refund(p, "r", 0)
				parts, err := g.Store.RefundParts(t.Context(), r.Merchant, r.ID)
				g.Must(err)
				g.Execute("DELETE FROM refund_parts", "DELETE FROM refunds", "DELETE FROM postings WHERE kind = 'refund_held'",
					"UPDATE balances SET balance = balance + 10000 WHERE account = 'available'", "UPDATE balances SET balance = 0 WHERE account = 'held'")
				for _, i := range listed {
					g.Bank.RefundAtPanel(parts[i].ExternalID, parts[i].PaymentID, parts[i].Amount)
				}
				g.ReadFeeds()
				for _, amount := range []int64{100_00, 60_00} {
					if _, _, err := g.Refunds.Create(t.Context(), g.Merchant, p.ID, coretest.RefundRequest("r", amount)); !problem.Is(err, problem.ReferenceConflict) {
						t.Errorf("repeated with %d: %v", amount, err)
					}
				}
				g.Send()
				if len(g.Bank.Refunds.Made) != len(listed) {
					t.Errorf("the bank made %d refunds, want %d", len(g.Bank.Refunds.Made), len(listed))
				}
			})
		})
	}
}

// A node that cannot open the account of a payment does not know the limits of its processor: the
// request is to be sent again, and another node can refund.
func TestRefundAtAnAccountThatIsNotOpen(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.PaidPayin("p", 100_00)
		g.NoProcessor(coretest.BankName)
		_, _, err := g.Refunds.Create(t.Context(), g.Merchant, p.ID, coretest.RefundRequest("r", 40_00))
		if !problem.Is(err, problem.Unavailable) {
			t.Errorf("%v, want %v", err, problem.Unavailable)
		}
		g.Processor(coretest.BankName, g.Bank)
		g.Refund(p, "r", 40_00)
		g.WantProven()
	})
}
