package outgoing_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/effect"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// livesPerPolicy is how many payouts are compared with the table, per policy.
const livesPerPolicy = 25

// TestTableDecidesAsTheExecutor leads payouts through random lives, in the executor and in the table
// of package effect: after each step both are in the same state.
func TestTableDecidesAsTheExecutor(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]processor.Effect{
		"safe":                  {Repeat: processor.RepeatReturnsFirst},
		"safe, looked up first": {Repeat: processor.RepeatRejected, LookUpFirst: true},
		"safe, for a life":      {Repeat: processor.RepeatReturnsFirst, Life: 5 * time.Minute, LookBack: 8 * time.Minute},
		"unsafe":                {Repeat: processor.RepeatUnsafe, LookUpFirst: true, Confirm: 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			of.QuietPeriod, of.Timeout = time.Minute, 5*time.Second
			g := coretest.New(t, "sqlite")
			g.Bank.Profiled.Transfer = of
			r := rand.New(rand.NewPCG(1, 2))
			for n := range livesPerPolicy {
				v := &life{
					g: g, r: r, order: g.Payout(fmt.Sprint("r", n), 1_00), e: effect.Effect{State: effect.Queued},
					p: effect.Policy{
						Safe: of.Repeat.Safe(), Life: of.Life, LookBack: of.LookBack, Quiet: of.QuietPeriod, Confirm: of.Confirm,
						Timeout: of.Timeout, AskFirst: of.LookUpFirst,
					},
				}
				v.run(t)
				g.Execute("UPDATE payouts SET next_at = 0")
			}
		})
	}
}

// life is the life of one payout.
type life struct {
	g     *coretest.Gateway
	r     *rand.Rand
	order payment.Payout
	p     effect.Policy
	e     effect.Effect // by the table
	trace []string

	send *answerOf[processor.TransferAnswer]
	look *answerOf[processor.TransferReport]
}

// answerOf is an answer of the processor, and the event that it is.
type answerOf[T any] struct {
	on effect.Event
	as T
}

func (v *life) run(t *testing.T) {
	t.Helper()
	v.g.Bank.AnswerTransfer = func(*coretest.Bank, processor.TransferRequest) processor.TransferAnswer { return v.send.as }
	v.g.Bank.AnswerQuery = func(*coretest.Bank, string) processor.TransferReport { return v.look.as }
	for range 9 {
		if v.e.State == effect.Done || v.e.State == effect.Review {
			return
		}
		v.choose()
		// Breakers close within 11 s.
		v.g.Pass([]time.Duration{11 * time.Second, 20 * time.Second, 70 * time.Second, 131 * time.Second, 4 * time.Minute}[v.r.IntN(5)])
		if !v.step() {
			return
		}
		now := v.g.ReadPayout(v.order)
		if got, want := fmt.Sprint(now.Status, " ", now.Step), v.want(&now); got != want {
			t.Fatalf("the payout is %s, by the table %s, after %q", got, want, v.trace)
		}
	}
}

// choose chooses the next answers of the processor.
func (v *life) choose() {
	none := errors.New("no answer")
	found := func(state processor.TransferState) processor.TransferReport {
		return processor.TransferReport{Lookup: processor.Found, State: state, EndToEndID: "E" + v.order.ExternalID[:31], Amount: v.order.Amount, Evidence: "x"}
	}
	notFound := answerOf[processor.TransferReport]{effect.NotFound, processor.TransferReport{Lookup: processor.NotFound}}
	looks := []answerOf[processor.TransferReport]{
		notFound, notFound, notFound, {effect.NoAnswer, processor.TransferReport{Cause: none}},
		{effect.ReportAccepted, found(processor.TransferProcessing)}, {effect.ReportPaid, found(processor.TransferPaid)}, {effect.ReportFailed, found(processor.TransferFailed)},
	}
	noResult := answerOf[processor.TransferAnswer]{effect.NoResult, processor.TransferAnswer{Cause: none}}
	sends := []answerOf[processor.TransferAnswer]{
		noResult, noResult, noResult, {effect.Refused, refused}, {effect.NotSent, notSent}, {effect.Later, processor.TransferAnswer{Outcome: processor.Later}},
		{effect.Known, processor.TransferAnswer{Outcome: processor.Known}},
		{effect.ReportAccepted, processor.TransferAnswer{Outcome: processor.Done, Report: found(processor.TransferProcessing)}},
	}
	v.look, v.send = &looks[v.r.IntN(len(looks))], &sends[v.r.IntN(len(sends))]
}

// on lets the table take an event.
func (v *life) on(event effect.Event) effect.Action {
	v.trace = append(v.trace, string(event))
	var out effect.Out
	v.e, out = effect.Step(v.p, v.e, effect.Input{On: event, Now: v.g.Clock.Now(), Send: v.e.Sends, Wanted: true, All: true})
	return out.Action
}

// runNow runs a worker after making the payout due.
func (v *life) runNow(worker func()) {
	v.g.Execute(fmt.Sprintf("UPDATE payouts SET next_at = %d WHERE next_at > 0 AND step <> 'done'", v.g.Clock.Now().UnixMicro()))
	worker()
}

// step lets the executor and the table do the due work. It returns false where the two differ on
// purpose: without an answer to the look-up before a send the table queues again; and the table
// counts the life of an id until the end of the call.
func (v *life) step() bool {
	if end := v.e.FirstAt.Add(v.p.Life); v.p.Life > 0 && !v.g.Clock.Now().Before(end.Add(-v.p.Timeout)) && v.g.Clock.Now().Before(end) {
		return false
	}
	asked := v.e.State != effect.Queued
	if asked {
		v.on(effect.Due)
		v.runNow(v.g.LookUp)
		v.on(v.look.on)
		return true
	}
	v.runNow(v.g.Send)
	action := v.on(effect.Due)
	if action == effect.Ask {
		v.runNow(v.g.LookUp)
		if action = v.on(v.look.on); v.look.on == effect.NoAnswer {
			return false
		}
		if action == effect.Send {
			v.runNow(v.g.Send)
		}
	}
	if action == effect.Send {
		v.on(v.send.on)
	}
	return true
}

// want is the status and the step of the payout by the table.
func (v *life) want(now *payment.Payout) string {
	step := v.e.State
	if v.e.State == effect.Sending {
		step = payment.StepIntent
	}
	status := payment.PayoutProcessing
	switch {
	case v.e.Released():
		status = payment.PayoutFailed
	case v.e.State == effect.Done:
		status = payment.PayoutCompleted
	case v.e.State == effect.Queued && now.Status == payment.PayoutPending: // it was looked up first
		status = payment.PayoutPending
	}
	return fmt.Sprint(status, " ", step)
}
