package outgoing_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// answers makes the bank answer refunds with an outcome, without an effect.
func answers(g *coretest.Gateway, outcome processor.Outcome) {
	g.Bank.Refunds.Answer = func(*coretest.Bank, processor.RefundRequest) processor.TransferAnswer {
		return processor.TransferAnswer{Outcome: outcome, Evidence: "answer", Cause: errors.New("answer")}
	}
}

// accepts makes the bank make each refund in a state, and answer with an outcome.
func accepts(g *coretest.Gateway, state processor.TransferState, outcome processor.Outcome) {
	g.Bank.Refunds.Answer = func(b *coretest.Bank, r processor.RefundRequest) processor.TransferAnswer {
		return processor.TransferAnswer{Outcome: outcome, Report: b.GiveBack(r, state), Cause: errors.New("answer")}
	}
}

// wantPart compares the only part of a refund.
func wantPart(g *coretest.Gateway, r payment.Refund, step payment.PayoutStep, outcome payment.RefundPartOutcome) payment.RefundPart {
	g.T.Helper()
	parts, err := g.Store.RefundParts(g.T.Context(), r.Merchant, r.ID)
	g.Must(err)
	if len(parts) != 1 || parts[0].State != step || parts[0].Outcome != outcome {
		g.T.Fatalf("parts %+v, want one that is %s, %q\n%s", parts, step, outcome, g.Log)
	}
	return parts[0]
}

// wantCalls compares the number of requests at the bank, and of refunds made.
func wantCalls(g *coretest.Gateway, calls, made int) {
	g.T.Helper()
	if len(g.Bank.Refunds.Calls) != calls || len(g.Bank.Refunds.Made) != made {
		g.T.Fatalf("%d calls made %d refunds, want %d and %d", len(g.Bank.Refunds.Calls), len(g.Bank.Refunds.Made), calls, made)
	}
}

// wantCause compares the cause of the only case.
func wantCause(g *coretest.Gateway, cause store.CaseReason) {
	g.T.Helper()
	list, err := g.Store.OpenCases(g.T.Context(), 5)
	g.Must(err)
	if len(list) != 1 || list[0].Kind != store.CaseRefundUnknown || list[0].Params["cause"] != string(cause) {
		g.T.Errorf("cases %+v, want one about a refund: %s", list, cause)
	}
}

// begun is a refund of 40.00 of a pay-in of 100.00.
func begun(g *coretest.Gateway) payment.Refund {
	g.T.Helper()
	return g.Refund(g.PaidPayin("p", 100_00), "r", 40_00)
}

const afterRefund = coretest.Opening + 100_00 - 40_00

func wantCompleted(g *coretest.Gateway, r payment.Refund) {
	g.T.Helper()
	got := g.WantRefund(r, payment.RefundCompleted, 40_00, payment.PayinPartiallyRefunded, 40_00)
	if got.EndToEndID == "" || got.CompletedAt.IsZero() || got.Failure != nil {
		g.T.Errorf("completed: %+v", got)
	}
	g.WantBalances(afterRefund, 0)
	g.WantProven()
}

func wantFailed(g *coretest.Gateway, r payment.Refund) {
	g.T.Helper()
	got := g.WantRefund(r, payment.RefundFailed, 0, payment.PayinPaid, 0)
	if got.Failure == nil || !got.CompletedAt.IsZero() {
		g.T.Errorf("failed: %+v", got)
	}
	g.WantBalances(afterRefund+40_00, 0)
	g.WantProven()
}

func wantInFlight(g *coretest.Gateway, r payment.Refund) {
	g.T.Helper()
	g.WantRefund(r, payment.RefundProcessing, 0, payment.PayinPaid, 0)
	g.WantBalances(afterRefund, 40_00)
	g.WantProven()
}

func TestRefundIsSent(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		r := begun(g)
		g.Send()
		wantCalls(g, 1, 1)
		if call := g.Bank.Refunds.Calls[0]; call.ExternalID != r.ExternalID || call.PaymentID != "p 1" || call.Amount != 40_00 {
			t.Errorf("sent %+v", call)
		}
		wantCompleted(g, r)
		g.WantEvents(payment.EventPayinPaid, payment.EventRefundCompleted, payment.EventPayinPartiallyRefunded)
		g.Send()
		g.LookUp()
		wantCalls(g, 1, 1)
	})
}

func TestRefundIsRefused(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		r := begun(g)
		answers(g, processor.Refused)
		g.Send()
		wantFailed(g, r)
		g.WantEvents(payment.EventPayinPaid, payment.EventRefundFailed)
		wantCalls(g, 1, 0)
		g.Bank.Refunds.Answer = nil
		g.Refund(payment.Payin{ID: r.Payin}, "again", 100_00) // everything is left
	})
}

// An accepted refund is looked up until its result is known, or reported by a notice.
func TestAcceptedRefund(t *testing.T) {
	for name, end := range map[string]func(g *coretest.Gateway, r payment.Refund){
		"looked up": func(g *coretest.Gateway, _ payment.Refund) { g.Jump(time.Minute); g.LookUp() },
		"notified":  func(g *coretest.Gateway, r payment.Refund) { g.Notify("n", "refund "+r.ExternalID); g.Apply() },
		"listed":    func(g *coretest.Gateway, _ payment.Refund) { g.ReadFeeds() },
	} {
		t.Run(name, func(t *testing.T) {
			coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
				r := begun(g)
				accepts(g, processor.TransferProcessing, processor.Done)
				g.Send()
				wantInFlight(g, r)
				wantPart(g, r, payment.StepAccepted, "accepted")
				g.Bank.EndRefund(r.ExternalID, processor.TransferPaid)
				end(g, r)
				wantCompleted(g, r)
				g.WantCases()
			})
		})
	}
}

// A refund that fails at the processor, and one that fails after it was completed.
func TestRefundFails(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		r := begun(g)
		accepts(g, processor.TransferProcessing, processor.Done)
		g.Send()
		g.Bank.EndRefund(r.ExternalID, processor.TransferFailed)
		g.Jump(time.Minute)
		g.LookUp()
		wantFailed(g, r)
	})
}

func TestRefundFailsAfterCompletion(t *testing.T) {
	for name, report := range map[string]func(g *coretest.Gateway, r payment.Refund){
		"notified": func(g *coretest.Gateway, r payment.Refund) { g.Notify("n", "refund "+r.ExternalID); g.Apply() },
		"listed":   func(g *coretest.Gateway, _ payment.Refund) { g.ReadFeeds() },
	} {
		t.Run(name, func(t *testing.T) {
			coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
				r := begun(g)
				g.Send()
				wantCompleted(g, r)
				g.Bank.EndRefund(r.ExternalID, processor.TransferFailed)
				report(g, r)
				report(g, r)
				wantFailed(g, r)
				wantPart(g, r, payment.StepDone, payment.PartTakenBack)
				g.WantEvents(payment.EventPayinPaid, payment.EventRefundCompleted, payment.EventPayinPartiallyRefunded,
					payment.EventRefundFailed, payment.EventPayinUpdated)
				g.WantCases()
			})
		})
	}
}

// A refund that was refused and is paid after all takes its money again.
func TestRefundPaidAfterRefusal(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		r := begun(g)
		answers(g, processor.Refused)
		g.Send()
		wantFailed(g, r)
		g.Bank.Mu.Lock()
		g.Bank.GiveBack(processor.RefundRequest{ExternalID: r.ExternalID, PaymentID: "p 1", Amount: 40_00}, processor.TransferPaid)
		g.Bank.Mu.Unlock()
		g.Notify("n", "refund "+r.ExternalID)
		g.Apply()
		wantCompleted(g, r)
	})
}

// An unknown outcome keeps the money held. The refund is looked up, and sent again, under the
// same id, only after "not found" beyond the quiet period.
func TestRefundOfUnknownOutcome(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		r := begun(g)
		answers(g, processor.Unknown)
		g.Send()
		wantInFlight(g, r)
		g.Bank.Refunds.Answer = nil
		g.Jump(10 * time.Second)
		g.LookUp()
		g.Send()
		wantInFlight(g, r)
		wantCalls(g, 1, 0)
		g.Jump(2 * time.Minute)
		g.LookUp()
		g.Send()
		wantCalls(g, 2, 1)
		wantCompleted(g, r)
	})
}

// A repeat of our id that the processor rejects is looked up at once.
func TestRefundWithoutAnswerIsFound(t *testing.T) {
	for outcome, wait := range map[processor.Outcome]time.Duration{processor.Unknown: time.Second, processor.Known: 0} {
		coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
			r := begun(g)
			accepts(g, processor.TransferPaid, outcome)
			g.Send()
			wantInFlight(g, r)
			g.Pass(wait)
			g.LookUp()
			wantCalls(g, 1, 1)
			wantCompleted(g, r)
		})
	}
}

// The log names a refund that could not be looked up, with the attributes of a payout.
func TestLogNamesWhatIsLookedUp(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		answers(g, processor.Unknown)
		r := begun(g)
		g.Send()
		g.Bank.Down = true
		g.Jump(time.Minute)
		g.LookUp()
		want := `msg="refund could not be looked up" processor=bank externalId=` + r.ExternalID + ` cause="bank: connection refused"`
		if log := g.Log.String(); !strings.Contains(log, want) || strings.Contains(log, "payout could not") {
			t.Errorf("the log lacks %s\n%s", want, log)
		}
	})
}

// A send without an effect is repeated later; the processor's own wait counts.
func TestRefundWithoutEffect(t *testing.T) {
	for outcome, wait := range map[processor.Outcome]time.Duration{processor.NotSent: 2 * time.Second, processor.Later: 10 * time.Second} {
		t.Run(outcome.String(), func(t *testing.T) {
			coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
				r := begun(g)
				answers(g, outcome)
				g.Send()
				wantInFlight(g, r)
				if p := wantPart(g, r, payment.StepQueued, payment.RefundPartOutcome(outcome.String())); p.Possible() {
					g.T.Error("it may exist")
				}
				g.Bank.Refunds.Answer = nil
				g.Send()
				wantCalls(g, 1, 0)
				g.Jump(wait)
				g.Send()
				wantCompleted(g, r)
			})
		})
	}
}

// After several sends that the processor did not take, or an hour without reaching it, there is a
// case; the sends go on.
func TestRefundWaits(t *testing.T) {
	for _, outcome := range []processor.Outcome{processor.Later, processor.NotSent} {
		coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
			r := begun(g)
			answers(g, outcome)
			g.Send()
			g.WantCases()
			for range 10 {
				g.Send()
				g.Jump(time.Hour)
			}
			g.WantCases(store.CaseRefundWaiting)
			g.Bank.Refunds.Answer = nil
			g.Send()
			g.WantCases()
			wantCompleted(g, r)
		})
	}
}

// A processor that would pay twice: the refund is looked up before its first send, and after
// "not found" of an unknown one a person decides.
func TestRefundIsNotRepeatedIfUnsafe(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		g.Bank.Profiled.Refund.Repeat = processor.RepeatUnsafe
		r := begun(g)
		answers(g, processor.Unknown)
		g.Bank.Refunds.AnswerQuery = func(*coretest.Bank, string) processor.TransferReport { return processor.TransferReport{} }
		g.Send()
		wantCalls(g, 0, 0)
		wantPart(g, r, payment.StepQueued, "")
		g.Bank.Refunds.AnswerQuery = nil
		g.Jump(10 * time.Second)
		g.Send()
		wantCalls(g, 1, 0)
		g.Jump(2 * time.Minute)
		g.LookUp()
		g.Send()
		wantCalls(g, 1, 0)
		wantInFlight(g, r)
		wantPart(g, r, payment.StepReview, "unknown")
		wantCause(g, store.ReasonNotIdempotent)
	})
}

// A report with another amount moves no money.
func TestRefundOfAnotherAmount(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		r := begun(g)
		g.Bank.Refunds.Answer = func(b *coretest.Bank, r processor.RefundRequest) processor.TransferAnswer {
			r.Amount = 41_00
			return processor.TransferAnswer{Outcome: processor.Done, Report: b.GiveBack(r, processor.TransferPaid)}
		}
		g.Send()
		g.WantRefund(r, payment.RefundProcessing, 0, payment.PayinPaid, 0)
		g.WantBalances(afterRefund, 40_00)
		wantCause(g, store.ReasonOtherAmount)
	})
}

// After a restore a refund that the database does not show as sent is looked up first, and
// under the same id it is paid once.
func TestRefundAfterARestore(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		r := begun(g)
		g.Bank.Mu.Lock()
		g.Bank.GiveBack(processor.RefundRequest{ExternalID: r.ExternalID, PaymentID: "p 1", Amount: 40_00}, processor.TransferPaid)
		g.Bank.Mu.Unlock()
		g.Execute("UPDATE installation SET epoch = epoch - 3")
		g.Heartbeat()
		g.Send()
		wantCalls(g, 0, 1) // the account is frozen
		g.ClearAccount()
		g.Send()
		g.LookUp()
		wantCalls(g, 0, 1)
		wantCompleted(g, r)
	})
}

// Parts that end differently: paid parts count, and the money of the others is available again.
func TestRefundWhosePartsEndDifferently(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		r := g.Refund(g.PaidPayin("p", 30_00, 70_00), "r", 0)
		g.Bank.Refunds.Answer = func(b *coretest.Bank, r processor.RefundRequest) processor.TransferAnswer {
			if r.PaymentID == "p 1" {
				return processor.TransferAnswer{Outcome: processor.Refused, Evidence: "no"}
			}
			return processor.TransferAnswer{Outcome: processor.Done, Report: b.GiveBack(r, processor.TransferPaid)}
		}
		g.Send()
		got := g.WantRefund(r, payment.RefundFailed, 70_00, payment.PayinPartiallyRefunded, 70_00)
		if got.Failure == nil {
			t.Error("no failure")
		}
		g.WantBalances(coretest.Opening+30_00, 0)
		g.WantProven()
		g.Bank.Refunds.Answer = nil
		again := g.Refund(payment.Payin{ID: r.Payin}, "again", 0)
		g.Send()
		g.WantRefund(again, payment.RefundCompleted, 30_00, payment.PayinRefunded, 100_00)
		g.WantProven()
	})
}

// A processor that is gone, or has an open breaker, delays no refund at another processor.
func TestRefundsAtOtherAccounts(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		r := begun(g)
		answers(g, processor.NotSent)
		for range 5 {
			g.Send()
			g.Jump(10 * time.Minute)
		}
		wantInFlight(g, r)
		if calls := len(g.Bank.Refunds.Calls); calls < 3 {
			g.T.Errorf("%d calls", calls)
		}
		p := g.Payout("payouts go on", 1_00)
		g.Send()
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
	})
}

// A dispute of a pay-in with a refund in flight: both are booked.
func TestRefundInFlightUnderADispute(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		p := g.PaidPayin("p", 100_00)
		r := g.Refund(p, "r", 40_00)
		accepts(g, processor.TransferProcessing, processor.Done)
		g.Send()
		g.Bank.Dispute(p.ExternalID, "d", 70_00, processor.DisputeOpen) // 60.00 are left
		g.ReadFeeds()
		g.WantCases(store.CaseDispute)
		g.Bank.EndRefund(r.ExternalID, processor.TransferPaid)
		g.Jump(time.Minute)
		g.LookUp()
		g.WantRefund(r, payment.RefundCompleted, 40_00, payment.PayinDisputed, 40_00)
		g.Bank.Dispute(p.ExternalID, "d", 70_00, processor.DisputeWon)
		g.ReadFeeds()
		g.WantRefund(r, payment.RefundCompleted, 40_00, payment.PayinPartiallyRefunded, 40_00)
		g.WantProven()
	})
}

// A refund failed, was replaced by a second refund and was paid after all: more was given back than
// the order was paid. The money of the first refund is taken, and a person compares the statement.
func TestReplacedRefundIsPaidAfterAll(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		p := g.PaidPayin("p", 100_00)
		first := g.Refund(p, "first", 60_00)
		answers(g, processor.Refused)
		g.Send()
		g.WantRefund(first, payment.RefundFailed, 0, payment.PayinPaid, 0)
		g.Bank.Refunds.Answer = nil
		second := g.Refund(p, "second", 60_00)
		g.Send()
		g.WantRefund(second, payment.RefundCompleted, 60_00, payment.PayinPartiallyRefunded, 60_00)
		g.Bank.Mu.Lock()
		g.Bank.GiveBack(processor.RefundRequest{ExternalID: first.ExternalID, PaymentID: "p 1", Amount: 60_00}, processor.TransferPaid)
		g.Bank.Mu.Unlock()
		g.Notify("n", "refund "+first.ExternalID)
		g.Apply()
		g.WantRefund(first, payment.RefundCompleted, 60_00, payment.PayinPartiallyRefunded, 60_00)
		g.WantBalances(coretest.Opening+100_00-120_00, 0)
		g.WantCases(store.CaseRefundUnexpected)
	})
}
