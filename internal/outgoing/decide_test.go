package outgoing_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/outgoing"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

// amount is the amount of each payout of the tables.
const amount money.Cents = 10_00

// given is the state of a payout before an operation, named by its history.
type given string

const (
	queued    given = "queued"        // requested
	intent    given = "intent"        // claimed by this process
	released  given = "released"      // claimed by this process, which was then declared dead
	sentAgain given = "sent again"    // claimed a second time, after a first send that was not sent
	unknown   given = "unknown"       // sent, without an answer
	accepted  given = "accepted"      // the processor has it
	completed given = "completed"     // paid
	failed    given = "failed"        // refused
	canceled  given = "canceled"      // by the merchant
	inReview  given = "manual review" // the processor reported another amount
)

// give makes a payout that is in a state, and the send of it that began first, if any.
func give(g *coretest.Gateway, state given) (payment.Payout, outgoing.ClaimedSend) {
	t := g.T
	t.Helper()
	p := request(g, string(state))
	var s outgoing.ClaimedSend
	switch state {
	case queued, canceled:
	default:
		s = claimed(g, p)
	}
	switch state {
	case released:
		g.DeclareDead(g)
		g.Heartbeat()
	case sentAgain:
		answered(g, s, notSent)
		g.Jump(2 * time.Second)
		claimed(g, p)
	case unknown:
		answered(g, s, processor.TransferAnswer{})
	case accepted:
		answered(g, s, done(processor.TransferProcessing))
	case completed:
		answered(g, s, done(processor.TransferPaid))
	case failed:
		answered(g, s, refused)
	case inReview:
		answered(g, s, doneOther)
	case canceled:
		_, err := g.Payouts.Cancel(t.Context(), p.Merchant, p.ID)
		g.Must(err)
	}
	return stateOf(g, p).Payout, s
}

// claimed claims a payout to send it.
func claimed(g *coretest.Gateway, p payment.Payout) outgoing.ClaimedSend {
	t := g.T
	t.Helper()
	op := claimSends(g)
	g.Must(g.Commit(op))
	sends, _, _ := op.Result()
	for _, s := range sends {
		if s.Payout.ID == p.ID {
			return s
		}
	}
	t.Fatal("the payout was not claimed")
	return outgoing.ClaimedSend{}
}

// answered records an answer to a send.
func answered(g *coretest.Gateway, s outgoing.ClaimedSend, answer processor.TransferAnswer) {
	g.T.Helper()
	g.Must(g.Commit(g.Outgoing.NewRecordSendOp(s, answer)))
}

// claimOf claims a payout to send it.
func claimOf(g *coretest.Gateway, p payment.Payout) outgoing.ClaimedSend {
	g.T.Helper()
	sends, _, err := g.Outgoing.Claim(g.T.Context(), store.Due{Merchant: p.Merchant, Processor: p.Processor}, 100)
	g.Must(err)
	for _, s := range sends {
		if s.Payout.ID == p.ID {
			return s
		}
	}
	g.T.Fatal("the payout was not claimed")
	return outgoing.ClaimedSend{}
}

// report is a report of a transfer that the processor has.
func report(state processor.TransferState) processor.TransferReport {
	return processor.TransferReport{
		Lookup: processor.Found, State: state, Amount: amount, EndToEndID: "E1", ProcessorID: "P1", Evidence: "the processor's records",
	}
}

func done(state processor.TransferState) processor.TransferAnswer {
	return processor.TransferAnswer{Outcome: processor.Done, Report: report(state)}
}

// doneOther is the answer of a processor that paid another amount.
var doneOther = processor.TransferAnswer{
	Outcome: processor.Done, Report: processor.TransferReport{State: processor.TransferPaid, Lookup: processor.Found, Amount: amount + 1, EndToEndID: "E1"},
}

// funds is the accounts of a payout's money.
type funds string

const (
	held      funds = "held"
	available funds = "available" // it did not leave, or came back
	gone      funds = "gone"
)

// wanted is the effect of an operation on the payout.
type wanted struct {
	status        payment.PayoutStatus
	step          payment.PayoutStep
	sends         []store.SendOutcome
	funds         funds
	next          time.Duration // until it is due, ±10 %; 0 if it is not
	contradiction string        // the reason of the case, if proofs contradict
}

func outcomes(list ...store.SendOutcome) []store.SendOutcome { return list }

// state is all that is stored about a payout.
type state struct {
	payment.Payout

	Sends    []store.Send
	Balances ledger.Balances
	Events   int64
	Cases    []store.Case
}

func stateOf(g *coretest.Gateway, p payment.Payout) (s state) {
	g.T.Helper()
	ctx := g.T.Context()
	var err error
	s.Payout = g.ReadPayout(p)
	s.Sends, err = g.Store.Sends(ctx, p.Merchant, p.ID)
	g.Must(err)
	s.Balances = balancesOf(g)
	s.Events, err = g.Store.LastEvent(ctx, p.Merchant)
	g.Must(err)
	all, err := g.Store.OpenCases(ctx, 1000)
	g.Must(err)
	for _, v := range all {
		if v.ID = (payment.ID{}); v.Subject == p.ID { // a case may be replaced by one that says the same
			s.Cases = append(s.Cases, v)
		}
	}
	return s
}

// wantSame compares two states, and names the fields that differ.
func wantSame(t *testing.T, when string, got, want any) {
	t.Helper()
	if reflect.DeepEqual(got, want) {
		return
	}
	a, b := reflect.ValueOf(got), reflect.ValueOf(want)
	if a.Kind() != reflect.Struct || !a.Type().Field(0).IsExported() {
		t.Errorf("%s: %+v, want %+v", when, got, want)
		return
	}
	for i := range a.NumField() {
		wantSame(t, when+", "+a.Type().Field(i).Name, a.Field(i).Interface(), b.Field(i).Interface())
	}
}

// decide commits an operation, after which check is called, and checks that it may be
// decided again: after its transaction was rolled back, as by a conflict, with the same
// result; and after it was committed, as if that was unknown, without a further change.
// It returns the error of the first commit.
func decide(g *coretest.Gateway, op write.Operation, p payment.Payout, result func() any, check func()) error {
	t := g.T
	t.Helper()
	before := stateOf(g, p)
	rollBack(g, op)
	first := result()
	wantSame(t, "rolled back", stateOf(g, p), before)
	err := g.Commit(op)
	wantSame(t, "decided after a rollback", result(), first)
	check()
	if err != nil {
		return err
	}
	after := stateOf(g, p)
	g.Must(g.Commit(op))
	again := stateOf(g, p)
	if again.Step == payment.StepAccepted { // it is only looked up later
		again.NextAt, again.Lookups = after.NextAt, after.Lookups
	}
	wantSame(t, "committed again", again, after)
	return nil
}

// wantSends compares the outcomes of a payout's sends.
func wantSends(g *coretest.Gateway, p payment.Payout, want ...store.SendOutcome) {
	t := g.T
	t.Helper()
	var got []store.SendOutcome
	for i, s := range stateOf(g, p).Sends {
		if got = append(got, s.Outcome); s.Number != int64(i)+1 {
			t.Errorf("send %d has number %d", i+1, s.Number)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("sends %v, want %v", got, want)
	}
}

// wantState compares the stored state of a payout. before is the available and held money before
// its request.
func wantState(g *coretest.Gateway, p payment.Payout, before ledger.Balances, want wanted) {
	t := g.T
	t.Helper()
	got := stateOf(g, p)
	if got.Status != want.status || got.Step != want.step {
		t.Errorf("it is %s/%s, want %s/%s", got.Status, got.Step, want.status, want.step)
	}
	wantSends(g, p, want.sends...)
	taken := map[funds][2]money.Cents{held: {amount, amount}, available: {0, 0}, gone: {amount, 0}}[want.funds]
	if a, h := before[ledger.Available]-got.Balances[ledger.Available], got.Balances[ledger.Held]-before[ledger.Held]; a != taken[0] || h != taken[1] {
		t.Errorf("%d taken from available, %d held; the money should be %s", a, h, want.funds)
	}
	switch wait := got.NextAt.Sub(g.Clock.Now()); {
	case want.next == 0:
		if !got.NextAt.IsZero() {
			t.Errorf("due after %v, want never", wait)
		}
	case (wait - want.next).Abs() > want.next.Abs()/10+1:
		t.Errorf("due after %v, want about %v", wait, want.next)
	}
	reason := ""
	for _, v := range got.Cases {
		if v.Kind == store.CaseContradiction {
			reason = v.Params["reason"]
		}
	}
	if reason != want.contradiction {
		t.Errorf("case of a contradiction %q, want %q", reason, want.contradiction)
	}
}

// balancesOf are the merchant's accounts.
func balancesOf(g *coretest.Gateway) ledger.Balances {
	g.T.Helper()
	b, err := g.Store.Balances(g.T.Context(), g.Merchant.ID)
	g.Must(err)
	return b
}

// eachRow runs the rows of a table, each on a gateway of its own.
func eachRow[R any](t *testing.T, rows []R, name func(R) string, run func(g *coretest.Gateway, row R)) {
	t.Helper()
	for _, row := range rows {
		t.Run(name(row), func(t *testing.T) {
			coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
				run(g, row)
				g.WantProven()
			})
		})
	}
}
