package outgoing_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// made makes a refund at the bank, of which the database shows nothing.
func made(g *coretest.Gateway, externalID, of string, amount money.Cents) {
	g.Bank.Mu.Lock()
	defer g.Bank.Mu.Unlock()
	g.Bank.GiveBack(processor.RefundRequest{ExternalID: externalID, PaymentID: of, Amount: amount}, processor.TransferPaid)
}

// wantSteps fails the test if the parts of a refund have other steps, and returns the parts.
func wantSteps(g *coretest.Gateway, r payment.Refund, want ...payment.PayoutStep) []payment.RefundPart {
	g.T.Helper()
	parts, err := g.Store.RefundParts(g.T.Context(), r.Merchant, r.ID)
	g.Must(err)
	var got []payment.PayoutStep
	for _, p := range parts {
		got = append(got, p.State)
	}
	if !slices.Equal(got, want) {
		g.T.Fatalf("steps %v, want %v\n%s", got, want, g.Log)
	}
	return parts
}

// onlyCase is the only open case.
func onlyCase(g *coretest.Gateway) store.Case {
	g.T.Helper()
	list, err := g.Store.OpenCases(g.T.Context(), 5)
	g.Must(err)
	if len(list) != 1 {
		g.T.Fatalf("cases %+v, want one", list)
	}
	return list[0]
}

// workForHours lets the workers do everything for hours.
func workForHours(g *coretest.Gateway) {
	for range 5 {
		g.Send()
		g.LookUp()
		g.Send()
		g.Jump(time.Hour)
	}
}

// A copy of the database lacks a refund, and the merchant requests the refund again. Its parts
// differ now: the processor knows the first part with another amount. Nothing more is sent, and one
// case waits for a person.
func TestRefundKnownWithOtherParts(t *testing.T) {
	for name, of := range map[string]struct {
		repeat  processor.Repeat
		restore bool
		known   int // the part that the processor knows
		steps   []payment.PayoutStep
	}{
		"repeated safely":              {repeat: processor.RepeatReturnsFirst, known: 1, steps: []payment.PayoutStep{payment.StepReview, payment.StepReview, payment.StepReview}},
		"looked up first":              {repeat: processor.RepeatUnsafe, known: 1, steps: []payment.PayoutStep{payment.StepReview, payment.StepReview, payment.StepReview}},
		"after a restore":              {repeat: processor.RepeatReturnsFirst, restore: true, known: 1, steps: []payment.PayoutStep{payment.StepReview, payment.StepReview, payment.StepReview}},
		"the second part is the other": {repeat: processor.RepeatUnsafe, known: 2, steps: []payment.PayoutStep{payment.StepDone, payment.StepReview, payment.StepReview}},
	} {
		t.Run(name, func(t *testing.T) {
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				g.Bank.Profiled.Refund.Repeat = of.repeat
				p := g.PaidPayin("p", 30_00, 30_00, 40_00)
				if of.restore {
					g.Execute("UPDATE installation SET epoch = epoch - 3")
					g.Heartbeat()
					g.ClearAccount()
				}
				r := g.Refund(p, "r", 100_00)
				parts := wantSteps(g, r, payment.StepQueued, payment.StepQueued, payment.StepQueued)
				lost := money.Cents(100_00)
				if of.known == 2 { // the first one is the same
					made(g, parts[0].ExternalID, "p 1", 30_00)
					lost = 70_00
				}
				made(g, parts[of.known-1].ExternalID, "before", lost)
				workForHours(g)
				wantSteps(g, r, of.steps...)
				if len(g.Bank.Refunds.Made) != of.known {
					t.Errorf("the bank made %d refunds, want %d", len(g.Bank.Refunds.Made), of.known)
				}
				v := onlyCase(g)
				if v.Params["cause"] != string(store.ReasonOtherAmount) || v.Params["externalId"] != parts[of.known-1].ExternalID || v.Params["reported"] != lost.String() {
					t.Errorf("case %+v", v)
				}
				g.WantProven()
			})
		})
	}
}

// The parts of a refund are sent one after the other: the next one once the one before was
// accepted or has ended.
func TestPartsAreSentInOrder(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		r := g.Refund(g.PaidPayin("p", 30_00, 70_00), "r", 100_00)
		answers(g, processor.Unknown)
		workForHours(g)
		first := g.Bank.Refunds.Calls[0]
		if slices.ContainsFunc(g.Bank.Refunds.Calls, func(v processor.RefundRequest) bool { return v != first }) || first.PaymentID != "p 1" {
			t.Errorf("calls %+v, want only the first part", g.Bank.Refunds.Calls)
		}
		accepts(g, processor.TransferProcessing, processor.Done)
		workForHours(g)
		wantSteps(g, r, payment.StepAccepted, payment.StepAccepted)
		for id := range g.Bank.Refunds.Made {
			g.Bank.EndRefund(id, processor.TransferPaid)
		}
		workForHours(g)
		g.WantRefund(r, payment.RefundCompleted, 100_00, payment.PayinRefunded, 100_00)
		g.WantCases()
		g.WantProven()
	})
}

// The case about a part stays as it is when another part ends.
func TestCaseOfAPartIsKept(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		r := g.Refund(g.PaidPayin("p", 30_00, 70_00), "r", 100_00)
		accepts(g, processor.TransferProcessing, processor.Done)
		parts := wantSteps(g, r, payment.StepQueued, payment.StepQueued)
		made(g, parts[1].ExternalID, "before", 69_00)
		g.Send()
		wantSteps(g, r, payment.StepAccepted, payment.StepReview) // the next one is looked up first
		before := onlyCase(g)
		g.Bank.EndRefund(parts[0].ExternalID, processor.TransferPaid)
		g.Jump(time.Minute)
		g.LookUp()
		wantSteps(g, r, payment.StepDone, payment.StepReview)
		if after := onlyCase(g); after.ID != before.ID || after.Params["cause"] != string(store.ReasonOtherAmount) {
			t.Errorf("case %+v, before %+v", after, before)
		}
		g.WantRefund(r, payment.RefundProcessing, 30_00, payment.PayinPartiallyRefunded, 30_00)
		g.WantProven()
	})
}

// A part without an answer has its own case, and only that one closes when it is found.
func TestPartWithoutAnAnswer(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		r := g.Refund(g.PaidPayin("p", 30_00, 70_00), "r", 100_00)
		answers(g, processor.Unknown)
		g.Send()
		g.Bank.Refunds.AnswerQuery = func(*coretest.Bank, string) processor.TransferReport {
			return processor.TransferReport{Cause: errors.New("no answer")}
		}
		for range 12 {
			g.Jump(24 * time.Hour)
			g.LookUp()
			g.Send()
		}
		wantSteps(g, r, payment.StepUnknown, payment.StepQueued)
		if v := onlyCase(g); v.Params["cause"] != string(store.ReasonNoAnswer) {
			t.Errorf("case %+v", v)
		}
		made(g, r.ExternalID, "p 1", 30_00)
		g.Bank.Refunds.Answer, g.Bank.Refunds.AnswerQuery = nil, nil
		for range 3 {
			g.Jump(24 * time.Hour)
			g.LookUp()
			g.Send()
		}
		g.WantRefund(r, payment.RefundCompleted, 100_00, payment.PayinRefunded, 100_00)
		g.WantCases()
		g.WantProven()
	})
}

// A report of another payment moves no money, and a second one leaves the case as it is: the
// refund may be one that a restored backup lacks.
func TestRefundOfAnotherPayment(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		r := begun(g)
		g.Bank.Refunds.Answer = func(b *coretest.Bank, r processor.RefundRequest) processor.TransferAnswer {
			report := b.GiveBack(r, processor.TransferPaid)
			report.PaymentID = "lost"
			return processor.TransferAnswer{Outcome: processor.Done, Report: report}
		}
		g.Send()
		wantCause(g, store.ReasonOtherPayment)
		before := onlyCase(g)
		part := wantSteps(g, r, payment.StepReview)[0]
		report := processor.TransferReport{Lookup: processor.Found, State: processor.TransferPaid, Amount: part.Amount, PaymentID: "lost"}
		if err := g.Outgoing.RecordRefundReport(t.Context(), part, report, nil); err != nil {
			t.Fatal(err)
		}
		if after := onlyCase(g); after.ID != before.ID || after.Params["reported"] != "lost" {
			t.Errorf("case %+v, before %+v", after, before)
		}
		g.WantRefund(r, payment.RefundProcessing, 0, payment.PayinPaid, 0)
		g.WantBalances(afterRefund, 40_00)
		g.WantProven()
	})
}
