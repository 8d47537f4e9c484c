package payin_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/write"
)

// story is a sequence of events of one pay-in, of its own merchant, which has no
// money.
type story struct {
	*coretest.Gateway

	payin  payment.Payin
	events int // before the story
	cases  int
}

func newStory(t *testing.T, g *coretest.Gateway) *story {
	t.Helper()
	s := &story{Gateway: g.For(t)}
	s.spend(coretest.Opening)
	s.payin = s.Payin(s.Merchant, "order", "")
	last, err := s.Store.LastEvent(t.Context(), s.Merchant.ID)
	s.Must(err)
	s.events = int(last)
	open, err := s.Store.OpenCases(t.Context(), 1000)
	s.Must(err)
	s.cases = len(open)
	return s
}

func (s *story) happens(list string) {
	s.T.Helper()
	for what := range strings.SplitSeq(list, ", ") {
		if what == "" {
			continue
		}
		s.step(strings.Fields(what))
	}
}

func (s *story) step(words []string) {
	s.T.Helper()
	externalID := s.payin.ExternalID
	report, ok := s.report(words)
	switch words[0] {
	case "cancel":
		_, err := s.Payins.Cancel(s.T.Context(), s.Merchant.ID, s.payin.ID)
		s.Must(err)
		return
	case "spend":
		s.spend(cents(words[1]))
		return
	case "refund": // as no operation does yet
		status := payment.PayinPartiallyRefunded
		if cents(words[1]) == s.payin.Amount {
			status = payment.PayinRefunded
		}
		s.Execute(fmt.Sprintf("UPDATE payins SET status = '%s', refunded_amount = %d WHERE external_id = '%s'", status, cents(words[1]), externalID))
		return
	case "unmatched":
		externalID = s.Store.ExternalID(&s.Merchant, payment.OperationPayin, "never requested")
	}
	if !ok {
		s.T.Fatalf("unknown step %q", words)
	}
	s.Must(s.Payins.Receive(s.T.Context(), coretest.BankName, externalID, report, nil))
}

// report is what the processor reports in a step.
func (s *story) report(words []string) (report processor.ChargeReport, ok bool) {
	s.T.Helper()
	report.Lookup = processor.Found
	switch words[0] {
	case "pay":
		report.Payments = []processor.Payment{{
			ID: s.T.Name() + words[1], EndToEndID: "E" + words[1], Amount: cents(words[2]), PaidAt: s.Clock.Now(),
		}}
	case "unmatched":
		report.Payments = []processor.Payment{{ID: s.T.Name() + "unmatched", Amount: cents(words[1]), PaidAt: s.Clock.Now()}}
	case "expire":
		report.State = processor.ChargeExpired
	case "fail":
		report.State, report.Failure = processor.ChargeFailed, &payment.Failure{Code: "x", Message: "y"}
	case "refuse":
		report.State, report.Failure = processor.ChargeOpen, &payment.Failure{Code: "do_not_honor", Message: "y"}
	case "analyze":
		report.State = processor.ChargeAnalysis
	case "nothing":
		report.State = processor.ChargeOpen
	case "dispute":
		report.Disputes = []processor.Dispute{{ID: "D", Amount: 100_00, State: processor.DisputeState(words[1])}}
	default:
		return report, false
	}
	return report, true
}

// cents reads an amount in reais.
func cents(text string) money.Cents {
	var reais, rest money.Cents
	if n, _ := fmt.Sscanf(text, "%d.%02d", &reais, &rest); n == 0 {
		panic("not an amount: " + text)
	}
	return reais*100 + rest
}

// spend pays money out.
func (s *story) spend(amount money.Cents) {
	s.T.Helper()
	p := s.Payout(fmt.Sprint("spend ", amount), int64(amount))
	s.Send()
	s.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
}

// decision is a row of a table of decisions: the pay-in's history, and what an
// operation then changes, or how it is refused.
type decision struct {
	name, given string
	op          func(s *story) write.Operation
	changes     string
	again       string // what it changes when it is committed once more
	refused     problem.Kind
}

// testDecisions runs a table. Each operation decides three times, see
// [coretest.Gateway.Decide].
func testDecisions(t *testing.T, table []decision) {
	t.Helper()
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		for _, row := range table {
			t.Run(row.name, func(t *testing.T) {
				s := newStory(t, g)
				s.happens(row.given)
				op := row.op(s)
				if row.refused != "" {
					s.WantRefusal(op, row.refused)
				} else {
					s.WantDecision(op, row.changes, row.again)
				}
			})
		}
	})
}
