package outgoing_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/outgoing"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/write"
)

// line is where a sequence of operations runs, with its results.
type line struct {
	stage

	commit   func(ops []write.Operation) []error
	payouts  []payment.Payout
	sends    []outgoing.ClaimedSend // claimed, perhaps answered
	lookedUp []payment.Payout       // claimed to be looked up, perhaps answered
}

// pair is two stages that do the same: one commits operations in batches, the other
// one by one.
type pair struct {
	batches, single line
	count           int
}

func newPair(batches, single stage, all func(ops []write.Operation) []error) *pair {
	v := &pair{batches: line{stage: batches, commit: all}, single: line{stage: single}}
	v.single.commit = func(ops []write.Operation) []error {
		var errs []error
		for _, op := range ops {
			errs = append(errs, single.commit(op))
		}
		return errs
	}
	return v
}

func (v *pair) both(do func(l *line)) { do(&v.batches); do(&v.single) }

func (v *pair) request(*rapid.T) {
	v.count++
	v.both(func(l *line) {
		l.fund(amount)
		l.allowPayouts()
		l.payouts = append(l.payouts, l.request(fmt.Sprint(v.count)))
	})
}

// draw builds an operation for each line from the same numbers.
func (v *pair) draw(r *rapid.T) func(l *line) write.Operation {
	kind, i := rapid.IntRange(0, 5).Draw(r, "operation"), rapid.IntRange(0, 9).Draw(r, "of")
	outcome := rapid.SampledFrom([]processor.Outcome{processor.Done, processor.Done, processor.Refused, processor.NotSent, processor.Unknown}).Draw(r, "outcome")
	found := report(rapid.SampledFrom([]processor.TransferState{
		processor.TransferPaid, processor.TransferPaid, processor.TransferProcessing, processor.TransferFailed,
	}).Draw(r, "state"))
	found.Returned = rapid.SampledFrom([]money.Cents{0, 0, 0, 3_00, amount}).Draw(r, "returned")
	lookup := rapid.SampledFrom([]processor.Lookup{processor.Found, processor.NotFound, processor.NotFound, processor.LookupUnknown}).Draw(r, "look-up")
	return func(l *line) write.Operation {
		report := found
		if lookup != processor.Found {
			report = processor.TransferReport{Lookup: lookup}
		}
		switch {
		case kind < 3 && len(l.sends) > 0:
			return l.executor().NewRecordSendOp(l.sends[i%len(l.sends)], processor.TransferAnswer{Outcome: outcome, Report: found})
		case kind < 5 && len(l.lookedUp) > 0:
			return l.executor().NewRecordLookUp(l.lookedUp[i%len(l.lookedUp)], report)
		case len(l.payouts) > 0:
			return l.executor().NewRecordNotice(l.payouts[i%len(l.payouts)], report)
		default:
			return nil
		}
	}
}

// claims are a claim of all payouts to send, and one of all to look up.
func (l *line) claims() []write.Operation {
	return []write.Operation{l.claimSends(), l.claimLookUps()}
}

// batch commits up to eight operations, and then perhaps claims, at once or one by one.
// A claim does not see payouts that became due within its batch: so the claims run once
// more separately.
func (v *pair) batch(r *rapid.T) {
	draws := make([]func(l *line) write.Operation, rapid.IntRange(1, 8).Draw(r, "operations"))
	for i := range draws {
		draws[i] = v.draw(r)
	}
	claims := rapid.Bool().Draw(r, "claims")
	v.both(func(l *line) {
		var ops []write.Operation
		for _, draw := range draws {
			if op := draw(l); op != nil {
				ops = append(ops, op)
			}
		}
		if claims {
			ops = append(ops, l.claims()...)
		}
		l.run(r, ops)
		if claims {
			l.run(r, l.claims())
		}
	})
}

// run commits operations, and keeps what they claimed.
func (l *line) run(r *rapid.T, ops []write.Operation) {
	for _, err := range l.commit(ops) {
		if err != nil {
			r.Errorf("%v", err)
		}
	}
	for _, op := range ops {
		switch op := op.(type) {
		case *outgoing.ClaimSends:
			sends, _, _ := op.Result()
			l.sends = append(l.sends, sends...)
		case *outgoing.ClaimLookUps:
			l.lookedUp = append(l.lookedUp, op.Result()...)
		}
	}
	// Payouts that became due at the same time may be claimed in any order.
	slices.SortStableFunc(l.sends, func(a, b outgoing.ClaimedSend) int { return inOrder(&a.Payout, &b.Payout) })
	slices.SortStableFunc(l.lookedUp, func(a, b payment.Payout) int { return inOrder(&a, &b) })
}

// inOrder compares two payouts by when they were requested.
func inOrder(a, b *payment.Payout) int {
	return cmp.Compare(numberOf(a), numberOf(b))
}

// numberOf is the number of a request, which begins its reference.
func numberOf(p *payment.Payout) (n int) {
	_, _ = fmt.Sscan(p.ReferenceID, &n)
	return n
}

// text is what is stored about the payouts of the sequence.
func (l *line) text() (text string) {
	for _, p := range l.payouts {
		s := l.state(p)
		text += fmt.Sprintf("%d %s/%s version %d, %d look-ups, returned %d, claimed %v, sends", numberOf(&p), s.Status, s.Step, s.Version, s.Lookups,
			s.ReturnedAmount, !s.ClaimedBy.IsZero())
		for _, send := range s.Sends {
			text += " " + string(send.Outcome)
		}
		for _, v := range s.Cases {
			text += fmt.Sprint(", ", v.Kind, " ", v.Params)
		}
		text += "\n"
	}
	return text + fmt.Sprint(l.balances())
}

// checkSequences runs sequences of operations on both stages of a pair; limit bounds their
// number.
func checkSequences(t *testing.T, limit int, pair func() *pair) {
	t.Helper()
	rapid.Check(t, func(r *rapid.T) {
		if limit--; limit < 0 {
			return
		}
		v := pair()
		v.both(func(l *line) { l.payouts, l.sends, l.lookedUp = nil, nil, nil })
		r.Repeat(map[string]func(*rapid.T){
			"request": v.request,
			"batch":   v.batch,
			"again":   v.batch, // more often
			"time passes": func(r *rapid.T) {
				d := time.Duration(rapid.IntRange(1, 3000).Draw(r, "seconds")) * time.Second
				v.both(func(l *line) { l.pass(d) })
			},
		})
		if batches, single := v.batches.text(), v.single.text(); batches != single {
			r.Fatalf("in batches:\n%s\none by one:\n%s", batches, single)
		}
		if m, ok := v.batches.stage.(*memory); ok {
			m.WantProven()
		}
	})
}

// sequencesOnEngine is how many sequences also run on a database.
const sequencesOnEngine = 10

// A batch has the effect of its operations one by one, and the records stay
// consistent.
func TestBatchDoesWhatItsOperationsDo(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		checkSequences(t, math.MaxInt, func() *pair {
			batches := newMemory(t)
			return newPair(batches, newMemory(t), batches.CommitAll)
		})
	})
	t.Run("sqlite", func(t *testing.T) {
		batches := coretest.New(t, "sqlite")
		all := func(ops []write.Operation) []error { return batches.Writer.All(t.Context(), ops) }
		v := newPair(onGateway{batches}, onGateway{coretest.New(t, "sqlite")}, all)
		checkSequences(t, sequencesOnEngine, func() *pair { return v })
		batches.Execute("UPDATE installation SET restored_at = 1") // some are reported as paid and were not sent
		batches.WantProven()
	})
}
