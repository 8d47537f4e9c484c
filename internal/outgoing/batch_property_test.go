package outgoing_test

import (
	"cmp"
	"fmt"
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
	*coretest.Gateway

	commit   func(ops []write.Operation) []error
	payouts  []payment.Payout
	sends    []outgoing.ClaimedSend // claimed, perhaps answered
	lookedUp []payment.Payout       // claimed to be looked up, perhaps answered
}

// pair is two gateways that do the same: one commits operations in batches, the other
// one by one.
type pair struct {
	batches, single line
	count           int
}

func newPair(t *testing.T) *pair {
	t.Helper()
	batches, single := coretest.New(t, "sqlite"), coretest.New(t, "sqlite")
	v := &pair{batches: line{Gateway: batches}, single: line{Gateway: single}}
	v.batches.commit = func(ops []write.Operation) []error { return batches.Writer.All(t.Context(), ops) }
	v.single.commit = func(ops []write.Operation) []error {
		var errs []error
		for _, op := range ops {
			errs = append(errs, single.Commit(op))
		}
		return errs
	}
	return v
}

func (v *pair) both(do func(l *line)) { do(&v.batches); do(&v.single) }

func (v *pair) request(*rapid.T) {
	v.count++
	v.both(func(l *line) {
		l.Must(l.Merchants.Fund(l.T.Context(), l.Merchant, amount))
		l.Execute("UPDATE cases SET stops_payouts = 0") // which a contradiction had stopped
		l.payouts = append(l.payouts, request(l.Gateway, fmt.Sprint(v.count)))
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
			return l.Outgoing.NewRecordSendOp(l.sends[i%len(l.sends)], processor.TransferAnswer{Outcome: outcome, Report: found})
		case kind < 5 && len(l.lookedUp) > 0:
			return l.Outgoing.NewRecordLookUp(l.lookedUp[i%len(l.lookedUp)], report)
		case len(l.payouts) > 0:
			return l.Outgoing.NewRecordNotice(l.payouts[i%len(l.payouts)], report)
		default:
			return nil
		}
	}
}

// claims returns two operations: one claims payouts that are due to be sent, the other those due for
// a look-up.
func (l *line) claims() []write.Operation {
	return []write.Operation{claimSends(l.Gateway), claimLookUps(l.Gateway)}
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

// run commits operations and keeps the claimed rows.
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

// numberOf is the number at the beginning of a request's reference.
func numberOf(p *payment.Payout) (n int) {
	_, _ = fmt.Sscan(p.ReferenceID, &n)
	return n
}

// text describes the stored payouts of the sequence.
func (l *line) text() (text string) {
	for _, p := range l.payouts {
		s := stateOf(l.Gateway, p)
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
	return text + fmt.Sprint(balancesOf(l.Gateway))
}

// sequences is how many sequences of operations are committed.
const sequences = 10

// A batch has the effect of its operations one by one, and the records stay
// consistent.
func TestBatchDoesWhatItsOperationsDo(t *testing.T) {
	v, left := newPair(t), sequences
	rapid.Check(t, func(r *rapid.T) {
		if left--; left < 0 {
			return
		}
		v.both(func(l *line) { l.payouts, l.sends, l.lookedUp = nil, nil, nil })
		r.Repeat(map[string]func(*rapid.T){
			"request": v.request,
			"batch":   v.batch,
			"again":   v.batch, // more often
			"time passes": func(r *rapid.T) {
				d := time.Duration(rapid.IntRange(1, 3000).Draw(r, "seconds")) * time.Second
				v.both(func(l *line) { l.Jump(d) })
			},
		})
		if batches, single := v.batches.text(), v.single.text(); batches != single {
			r.Fatalf("in batches:\n%s\none by one:\n%s", batches, single)
		}
	})
	g := v.batches.Gateway
	g.Execute("UPDATE installation SET restored_at = 1") // some are reported as paid and were not sent
	g.WantProven()
}
