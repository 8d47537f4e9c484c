package jobs_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/flow"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// The rules by which a payout cannot be paid twice, one test each. Their
// numbers are those of docs/payouts.md.

// Rule 1: a payout is claimed, under a guard, before it is sent; whoever comes
// second does not send.
func TestRule01ClaimBeforeSend(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		const payouts = 40
		var list []payment.Payout
		for i := range payouts {
			list = append(list, g.payout("r-"+string(rune('A'+i)), 10_00))
		}
		other := g.second()
		var both sync.WaitGroup
		for _, process := range []*gateway{g, other} {
			both.Go(func() {
				for {
					did, err := process.jobs.SubmitPayouts(context.Background())
					if err != nil {
						t.Error(err)
					}
					if did == 0 || err != nil {
						return
					}
				}
			})
		}
		both.Wait()
		g.wantPaid(payouts, payouts)
		for _, p := range list {
			g.want(p, payment.PayoutCompleted, payment.StepDone)
			g.wantSends(p, store.SendPaid)
		}
		g.wantBalances(opening-payouts*10_00, 0)
	})
}

// Rule 2: the intent is durable before a byte leaves, and a crash after it
// means unknown, not unsent.
func TestRule02IntentBeforeBytes(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		p := g.payout("r", 10_00)
		other := g.second()
		g.bank.transfer = func(b *bank, r processor.TransferRequest) processor.TransferAnswer {
			// What another process sees while the request is on its way.
			other.want(p, payment.PayoutProcessing, payment.StepIntent)
			other.wantSends(p, store.SendIntent)
			return processor.TransferAnswer{Outcome: processor.Done, Report: b.pay(r, processor.TransferPaid)}
		}
		g.submit()
		g.want(p, payment.PayoutCompleted, payment.StepDone)
		g.wantEvents(payment.EventPayoutProcessing, payment.EventPayoutCompleted)
	})
	each(t, func(t *testing.T, g *gateway) {
		p := g.payout("r", 10_00)
		due, err := g.store.PayoutsDue(t.Context(), g.clock.Now(), store.ToSend)
		g.must(err)
		sends, _, err := g.flow.BeginSends(t.Context(), due[0], 10)
		g.must(err)
		// The process dies here: nobody knows whether the bytes left. They did.
		g.bank.pay(sends[0].Request, processor.TransferPaid)
		heir := g.second()
		heir.pass(10 * time.Second)
		heir.want(p, payment.PayoutProcessing, payment.StepUnknown)
		heir.wantSends(p, store.SendUnknown)
		heir.submit()
		heir.wantPaid(0, 1) // not sent again
		heir.resolve()
		heir.want(p, payment.PayoutCompleted, payment.StepDone)
		heir.wantBalances(opening-10_00, 0)
	})
}

// Rule 3: at most one send of a payout is undecided.
func TestRule03OneLiveAttempt(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		p := g.payout("r", 10_00)
		g.bank.transfer = unknown
		g.submit()
		g.want(p, payment.PayoutProcessing, payment.StepUnknown)
		err := g.store.Write(t.Context(), func(tx *store.Tx) error {
			return tx.InsertSends(t.Context(), []store.Send{{Merchant: p.Merchant, Payout: p.ID, Number: 2, Processor: bankName, Outcome: store.SendIntent}})
		})
		if !errors.Is(err, store.ErrConflict) {
			t.Fatalf("a second live send: %v, want ErrConflict", err)
		}
		g.wantSends(p, store.SendUnknown)
	})
}

// Rule 4: a payout has one id for its whole life, which follows from who asked
// for what: every send carries it, and the same bytes.
func TestRule04DeterministicID(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		answers := []processor.TransferAnswer{
			{Outcome: processor.NotSent, Cause: errors.New("connection refused")}, {Cause: errors.New("reset")},
			{Outcome: processor.NotSent, Cause: errors.New("connection refused")},
		}
		g.bank.transfer = func(b *bank, r processor.TransferRequest) processor.TransferAnswer {
			if n := len(b.calls); n <= len(answers) {
				return answers[n-1]
			}
			return processor.TransferAnswer{Outcome: processor.Done, Report: b.pay(r, processor.TransferPaid)}
		}
		p := g.payout("r", 10_00)
		if want := payment.ExternalID(g.store.Installation(), g.merchant.Number, g.merchant.ID, payment.OperationPayout, "r"); p.ExternalID != want {
			t.Fatalf("external id %s, want %s", p.ExternalID, want)
		}
		for range 20 {
			g.submit()
			g.resolve()
			g.pass(20 * time.Second)
		}
		g.want(p, payment.PayoutCompleted, payment.StepDone)
		g.wantSends(p, store.SendNotSent, store.SendNotFound, store.SendNotSent, store.SendPaid)
		g.wantPaid(4, 1)
		for _, r := range g.bank.calls {
			if r.ExternalID != p.ExternalID || bytesOf(r) != bytesOf(g.bank.calls[0]) {
				t.Fatalf("sent %+v after %+v", r, g.bank.calls[0])
			}
		}
	})
}

// Rule 5: an answer proves that it was done, proves that it was not, or proves
// nothing; what is not known to be either is unknown.
func TestRule05ThreeAnswersOnly(t *testing.T) {
	for _, tt := range []struct {
		name      string
		answer    processor.TransferAnswer
		status    payment.PayoutStatus
		step      payment.PayoutStep
		send      string
		available bool // the money is back
	}{
		{"zero value", processor.TransferAnswer{}, payment.PayoutProcessing, payment.StepUnknown, store.SendUnknown, false},
		{"outcome of tomorrow", processor.TransferAnswer{Outcome: 99}, payment.PayoutProcessing, payment.StepUnknown, store.SendUnknown, false},
		{"timeout", processor.TransferAnswer{Cause: context.DeadlineExceeded}, payment.PayoutProcessing, payment.StepUnknown, store.SendUnknown, false},
		{"not sent", processor.TransferAnswer{Outcome: processor.NotSent}, payment.PayoutProcessing, payment.StepQueued, store.SendNotSent, false},
		{"refused", processor.TransferAnswer{Outcome: processor.Refused, Evidence: "AC03"}, payment.PayoutFailed, payment.StepDone, store.SendRefused, true},
		{"taken", processor.TransferAnswer{Outcome: processor.Done, Report: processor.TransferReport{State: processor.TransferProcessing}}, payment.PayoutProcessing, payment.StepAccepted, store.SendAccepted, false},
		{"taken, no state", processor.TransferAnswer{Outcome: processor.Done}, payment.PayoutProcessing, payment.StepAccepted, store.SendAccepted, false},
		{"failed at once", processor.TransferAnswer{Outcome: processor.Done, Report: processor.TransferReport{State: processor.TransferFailed}}, payment.PayoutFailed, payment.StepDone, store.SendFailed, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			each(t, func(t *testing.T, g *gateway) {
				g.bank.transfer = func(*bank, processor.TransferRequest) processor.TransferAnswer { return tt.answer }
				p := g.payout("r", 10_00)
				g.submit()
				g.want(p, tt.status, tt.step)
				g.wantSends(p, tt.send)
				if tt.available {
					g.wantBalances(opening, 0)
				} else {
					g.wantBalances(opening-10_00, 10_00)
				}
			})
		})
	}
	t.Run("panic", func(t *testing.T) {
		each(t, func(t *testing.T, g *gateway) {
			g.bank.transfer = func(*bank, processor.TransferRequest) processor.TransferAnswer {
				panic("a bug of the processor's package")
			}
			p := g.payout("r", 10_00)
			g.submit()
			g.want(p, payment.PayoutProcessing, payment.StepUnknown)
			g.wantBalances(opening-10_00, 10_00)
		})
	})
}

// Rule 6: what is unknown is asked about, not sent; it is sent again, same id
// and same bytes, only after a "not found" that can be trusted, and only to a
// processor that is idempotent on our id; else a person decides.
func TestRule06PaidAfterAll(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		g.bank.transfer = func(b *bank, r processor.TransferRequest) processor.TransferAnswer {
			b.pay(r, processor.TransferPaid)
			return processor.TransferAnswer{Cause: context.DeadlineExceeded}
		}
		p := g.payout("r", 10_00)
		g.submit()
		g.want(p, payment.PayoutProcessing, payment.StepUnknown)
		g.pass(2 * time.Second)
		g.submit()
		g.resolve()
		g.want(p, payment.PayoutCompleted, payment.StepDone)
		g.wantPaid(1, 1)
		g.wantBalances(opening-10_00, 0)
	})
}

func TestRule06SentAgainToAnIdempotentProcessor(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		g.bank.transfer = unknown
		p := g.payout("r", 10_00)
		g.submit()
		for range 30 { // within the quiet period nothing is concluded
			g.pass(time.Second)
			g.submit()
			g.resolve()
		}
		if g.want(p, payment.PayoutProcessing, payment.StepUnknown); g.bank.questions < 3 {
			t.Fatalf("asked %d times in 30 s", g.bank.questions)
		}
		g.wantPaid(1, 0)
		g.bank.transfer = nil
		g.pass(2 * time.Minute)
		g.resolve()
		g.submit()
		g.want(p, payment.PayoutCompleted, payment.StepDone)
		g.wantSends(p, store.SendNotFound, store.SendPaid)
		g.wantPaid(2, 1)
	})
}

func TestRule06LeftToAPersonElse(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		g.bank.profile.IdempotentByOurID = false
		g.bank.transfer = unknown
		p := g.payout("r", 10_00)
		g.submit()
		for range 20 {
			g.pass(10 * time.Second)
			g.resolve()
			g.submit()
		}
		g.want(p, payment.PayoutProcessing, payment.StepPerson)
		g.wantPaid(1, 0)
		g.wantBalances(opening-10_00, 10_00)
		g.wantExceptions(store.ExceptionPayoutUnknown)
	})
}

func TestRule06AskedForAsLongAsItTakes(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		g.bank.transfer = unknown
		g.bank.query = func(*bank, string) processor.TransferReport { return processor.TransferReport{} }
		p := g.payout("r", 10_00)
		g.submit()
		for range 200 {
			g.leap(time.Hour)
			g.resolve()
			g.submit()
		}
		g.want(p, payment.PayoutProcessing, payment.StepUnknown)
		g.wantPaid(1, 0)
		g.wantBalances(opening-10_00, 10_00)
		g.wantExceptions(store.ExceptionPayoutUnknown) // one, however long it lasts
		g.bank.query = nil
		g.bank.pay(g.bank.calls[0], processor.TransferPaid)
		g.leap(27 * time.Hour)
		g.resolve()
		g.want(p, payment.PayoutCompleted, payment.StepDone)
		g.wantExceptions() // it resolved itself
	})
}

// Rule 7: a process that comes too late, or was stopped while others took
// over, does not send.
func TestRule07StaleWorker(t *testing.T) {
	begin := func(g *gateway, p payment.Payout) flow.Sending {
		due, err := g.store.PayoutsDue(g.t.Context(), g.clock.Now(), store.ToSend)
		g.must(err)
		sends, _, err := g.flow.BeginSends(g.t.Context(), due[0], 10)
		g.must(err)
		if len(sends) != 1 || sends[0].Payout.ID != p.ID {
			g.t.Fatalf("began %v", sends)
		}
		return sends[0]
	}
	t.Run("past the deadline", func(t *testing.T) {
		each(t, func(t *testing.T, g *gateway) {
			s := begin(g, g.payout("r", 10_00))
			g.pass(5 * time.Second)
			if err := g.flow.Guard(&s, g.jobs.Lease())(); !errors.Is(err, flow.ErrStale) {
				t.Fatalf("guard: %v, want ErrStale", err)
			}
		})
	})
	t.Run("stopped and given up", func(t *testing.T) {
		each(t, func(t *testing.T, g *gateway) {
			p := g.payout("r", 10_00)
			s := begin(g, p)
			heir := g.second()
			heir.pass(4 * time.Second) // g is stopped: it does not beat
			heir.want(p, payment.PayoutProcessing, payment.StepUnknown)
			if err := g.flow.Guard(&s, g.jobs.Lease())(); !errors.Is(err, flow.ErrStale) {
				t.Fatalf("guard: %v, want ErrStale", err)
			}
			// Its late word changes nothing: the heir asks.
			g.must(g.flow.EndSend(t.Context(), s, processor.TransferAnswer{Outcome: processor.NotSent, Cause: flow.ErrStale}))
			heir.want(p, payment.PayoutProcessing, payment.StepUnknown)
			// It beats again, under another name, and its old claim is still not its own.
			g.beat()
			g.beat()
			if err := g.flow.Guard(&s, g.jobs.Lease())(); !errors.Is(err, flow.ErrStale) {
				t.Fatalf("guard after joining anew: %v, want ErrStale", err)
			}
			heir.wantPaid(0, 0)
		})
	})
}

// Rule 8: held money is given back on proof only, never by a clock.
func TestRule08ReleaseNeedsProof(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		g.bank.transfer = unknown
		g.bank.query = func(*bank, string) processor.TransferReport { return processor.TransferReport{} }
		p := g.payout("r", 10_00)
		g.submit()
		for range 60 {
			g.leap(24 * time.Hour)
			g.resolve()
			g.submit()
		}
		g.want(p, payment.PayoutProcessing, payment.StepUnknown)
		g.wantBalances(opening-10_00, 10_00)
		if _, err := g.flow.CancelPayout(t.Context(), p.Merchant, p.ID); !problem.Is(err, problem.InvalidState) {
			t.Fatalf("cancel of an unknown payout: %v", err)
		}
		g.bank.query = func(*bank, string) processor.TransferReport {
			return processor.TransferReport{Lookup: processor.Found, State: processor.TransferFailed, Evidence: "statement line 4711"}
		}
		g.leap(27 * time.Hour)
		g.resolve()
		g.want(p, payment.PayoutFailed, payment.StepDone)
		g.wantBalances(opening, 0)
		sends, err := g.store.Sends(t.Context(), p.Merchant, p.ID)
		g.must(err)
		if len(sends) != 1 || sends[0].Outcome != store.SendFailed || sends[0].Evidence != "statement line 4711" {
			t.Fatalf("evidence is not kept: %+v", sends)
		}
	})
}

// Rule 9: what is held is not available.
func TestRule09HoldsCount(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		g.flow.Start()
		t.Cleanup(g.flow.Stop)
		var wait sync.WaitGroup
		var mu sync.Mutex
		accepted, refused := 0, 0
		for i := range 200 { // asks for twice what there is
			wait.Go(func() {
				_, _, err := g.flow.RequestPayout(context.Background(), g.merchant, payoutOf("r-"+time.Duration(i).String(), int64(opening)/100))
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					accepted++
				case problem.Is(err, problem.InsufficientBalance):
					refused++
				default:
					t.Error(err)
				}
			})
		}
		wait.Wait()
		if accepted != 100 || refused != 100 {
			t.Fatalf("%d accepted, %d refused, want 100 and 100", accepted, refused)
		}
		g.wantBalances(0, opening)
		list, err := g.store.Payouts(t.Context(), g.merchant.ID, store.Filter{Limit: 500})
		g.must(err)
		if len(list) != 100 {
			t.Fatalf("%d payouts are stored; a refused one leaves its reference unused", len(list))
		}
	})
}

// Rule 13: a notice alone completes nothing: the processor is asked.
func TestRule13NoticeIsNoProof(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		g.bank.transfer = func(b *bank, r processor.TransferRequest) processor.TransferAnswer {
			return processor.TransferAnswer{Outcome: processor.Done, Report: b.pay(r, processor.TransferProcessing)}
		}
		p := g.payout("r", 10_00)
		g.submit()
		g.must(g.flow.RecordNotice(t.Context(), bankName, "n-1", "", []byte(p.ExternalID))) // says: paid
		g.run(g.jobs.ApplyNotices)
		g.want(p, payment.PayoutProcessing, payment.StepAccepted)
		g.bank.transfers[p.ExternalID].state = processor.TransferPaid
		g.must(g.flow.RecordNotice(t.Context(), bankName, "n-2", "", []byte(p.ExternalID)))
		g.run(g.jobs.ApplyNotices)
		g.want(p, payment.PayoutCompleted, payment.StepDone)
		g.wantEvents(payment.EventPayoutProcessing, payment.EventPayoutCompleted)
	})
}
