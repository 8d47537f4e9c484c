package payin_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payin"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/write"
)

// story is a sequence of events of one pay-in. Its merchant has no money.
type story struct {
	*coretest.Gateway

	payin payment.Payin
}

func newStory(t *testing.T) *story {
	t.Helper()
	g := coretest.NewWith(t, 0)
	return &story{g, g.Payin(g.Merchant, "order", "")}
}

func (s *story) happens(list string) {
	s.T.Helper()
	for what := range strings.SplitSeq(list, ", ") {
		if what != "" {
			s.step(strings.Fields(what))
		}
	}
}

func (s *story) step(words []string) {
	s.T.Helper()
	switch words[0] {
	case "cancel":
		s.Must(s.Commit(s.Payins.NewCancel(s.Merchant.ID, s.payin.ID)))
	case "spend":
		s.Spend(cents(words[1]))
	case "refund":
		s.Refund(s.payin, "refund", int64(cents(words[1])))
		s.Send()
	case "unmatched":
		order := s.payin
		s.payin.ExternalID = s.Store.ExternalID(&s.Merchant, payment.OperationPayin, "never requested")
		op := s.receive(coretest.BankName, s.report("pay", "unmatched", words[1]))
		s.Must(s.Commit(op.(*payin.Receive).ToPlatform()))
		s.payin = order
	default:
		s.Must(s.Commit(s.receive(coretest.BankName, s.report(words...))))
	}
}

// receive builds the operation that books a report.
func (s *story) receive(processorName string, report processor.ChargeReport) write.Operation {
	s.T.Helper()
	op, err := s.Payins.NewReceive(s.T.Context(), processorName, s.payin.ExternalID, report, nil)
	s.Must(err)
	return op
}

func (s *story) report(words ...string) processor.ChargeReport {
	return reported(s.Clock.Now(), words...)
}

// reported is what the processor reports in a step.
func reported(now time.Time, words ...string) processor.ChargeReport {
	report := processor.ChargeReport{Lookup: processor.Found}
	switch words[0] {
	case "pay":
		report.Payments = []processor.Payment{{ID: words[1], EndToEndID: "E" + words[1], Amount: cents(words[2]), PaidAt: now}}
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
		panic("unknown step " + words[0])
	}
	return report
}

// cents reads an amount in reais.
func cents(text string) money.Cents {
	var reais, rest money.Cents
	if n, _ := fmt.Sscanf(text, "%d.%02d", &reais, &rest); n == 0 {
		panic("not an amount: " + text)
	}
	return reais*100 + rest
}

// decision is a row of a table of decisions: the pay-in's history, and what an
// operation then changes, or how it is refused.
type decision struct {
	name, given string
	op          func(s *story) write.Operation
	changes     string // {externalId} is the pay-in's, {receipt} the id of the first new payment
	again       string // what it changes when it is committed once more
	refused     problem.Kind
}

// testDecisions runs a table. Each operation decides three times, see
// [coretest.Gateway.Decide].
func testDecisions(t *testing.T, table []decision) {
	t.Helper()
	for _, row := range table {
		t.Run(row.name, func(t *testing.T) {
			s := newStory(t)
			s.happens(row.given)
			op := row.op(s)
			if row.refused != "" {
				s.WantRefusal(op, row.refused)
			} else {
				receipt := ""
				if v, ok := op.(*payin.Receive); ok {
					receipt = v.FirstReceipt()
				}
				s.WantDecision(op, strings.NewReplacer("{externalId}", s.payin.ExternalID, "{receipt}", receipt).Replace(row.changes), row.again)
			}
			s.WantProven()
		})
	}
}
