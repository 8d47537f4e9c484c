package outgoing_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/outgoing"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// The rules by which a payout cannot be paid twice, one test each. Their numbers are
// those of docs/payouts.md.

// Rule 1: a payout is claimed, under a guard, before it is sent; the second process to
// claim it does not send it.
func TestRule01ClaimBeforeSend(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		const payouts = 40
		var list []payment.Payout
		for i := range payouts {
			list = append(list, g.Payout("r-"+strconv.Itoa(i), 10_00))
		}
		other := g.Second()
		var both sync.WaitGroup
		for _, process := range []*coretest.Gateway{g, other} {
			both.Go(func() {
				for {
					did, err := process.Outgoing.Send(context.Background())
					if err != nil {
						t.Error(err)
					}
					if did == 0 || err != nil {
						return
					}
				}
			})
		}
		g.UntilWithin(raceWithin, both.Wait)
		g.WantBank(payouts, payouts)
		for _, p := range list {
			g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
			g.WantSends(p, store.SendPaid)
		}
		g.WantBalances(coretest.Opening-payouts*10_00, 0)
	})
}

// Rule 2: the intent is durable before a byte leaves.
func TestRule02IntentBeforeBytes(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.Payout("r", 10_00)
		other := g.Second()
		g.Bank.AnswerTransfer = func(b *coretest.Bank, r processor.TransferRequest) processor.TransferAnswer {
			// The rows that another process sees while the request is under way.
			other.WantPayout(p, payment.PayoutProcessing, payment.StepIntent)
			other.WantSends(p, store.SendIntent)
			return processor.TransferAnswer{Outcome: processor.Done, Report: b.Pay(r, processor.TransferPaid)}
		}
		g.Send()
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		g.WantEvents(payment.EventPayoutProcessing, payment.EventPayoutCompleted)
	})
}

// Rule 2, after a crash: an intent without an end means unknown, not unsent.
func TestRule02CrashAfterIntent(t *testing.T) {
	coretest.EachEngine(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.Payout("r", 10_00)
		s := claim(g)
		paid(g, s.Request) // the bytes had left; then the process dies
		other := g.Second()
		other.Pass(10 * time.Second)
		other.WantPayout(p, payment.PayoutProcessing, payment.StepUnknown)
		other.WantSends(p, store.SendUnknown)
		other.Send()
		other.WantBank(0, 1) // not sent again
		other.LookUp()
		other.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		other.WantBalances(coretest.Opening-10_00, 0)
	})
}

// The look-ups of a send begin anew after a crash too: those of the sends before it, of which
// there were many, do not delay them.
func TestRule02LookUpsAfterACrash(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.Payout("r", 10_00)
		g.Bank.AnswerTransfer, g.Bank.AnswerQuery = coretest.Unknown, noAnswer
		g.Send()
		for g.ReadPayout(p).Lookups < 7 {
			g.Jump(max(0, g.ReadPayout(p).NextAt.Sub(g.Clock.Now())))
			g.LookUp()
		}
		g.Bank.AnswerQuery = nil // it is not found
		g.Jump(time.Hour)
		g.LookUp()
		g.WantPayout(p, payment.PayoutProcessing, payment.StepQueued)
		paid(g, claim(g).Request) // then the process dies
		other := g.Second()
		other.Pass(10 * time.Second)
		other.Bank.AnswerQuery = noAnswer
		other.LookUp()
		other.WantPayout(p, payment.PayoutProcessing, payment.StepUnknown)
		other.Bank.AnswerQuery = nil
		other.Pass(5 * time.Second)
		other.LookUp()
		other.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		other.WantSends(p, store.SendNotFound, store.SendPaid)
		other.WantProven()
	})
}

// Rule 3: at most one send of a payout is undecided.
func TestRule03OneUndecidedSend(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Bank.AnswerTransfer = coretest.Unknown
		p := g.Payout("r", 10_00)
		g.Send()
		g.WantPayout(p, payment.PayoutProcessing, payment.StepUnknown)
		err := g.Store.Transact(t.Context(), func(tx *store.Tx) error {
			return tx.Apply(t.Context(), &store.Needs{}, func(_ *store.Loaded, c *store.Changes) error {
				c.AddSend(store.Send{Merchant: p.Merchant, Payout: p.ID, Number: 2, Processor: coretest.BankName, Outcome: store.SendIntent})
				return nil
			})
		})
		if !errors.Is(err, store.ErrConflict) {
			t.Fatalf("a second undecided send: %v, want ErrConflict", err)
		}
		g.WantSends(p, store.SendUnknown)
	})
}

// Rule 4: a payout has one id for life, derived from its request: every send
// carries it, and the same bytes.
func TestRule04OneIDForLife(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		answers := []processor.TransferAnswer{notSent, {Cause: errors.New("reset")}, notSent}
		g.Bank.AnswerTransfer = func(b *coretest.Bank, r processor.TransferRequest) processor.TransferAnswer {
			if n := len(b.Calls); n <= len(answers) {
				return answers[n-1]
			}
			return processor.TransferAnswer{Outcome: processor.Done, Report: b.Pay(r, processor.TransferPaid)}
		}
		p := g.Payout("r", 10_00)
		if want := g.Store.ExternalID(&g.Merchant, payment.OperationPayout, "r"); p.ExternalID != want {
			t.Fatalf("external id %s, want %s", p.ExternalID, want)
		}
		for range 20 {
			g.Send()
			g.LookUp()
			g.Pass(20 * time.Second)
		}
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		g.WantSends(p, store.SendNotSent, store.SendNotFound, store.SendNotSent, store.SendPaid)
		g.WantBank(4, 1)
		for _, r := range g.Bank.Calls {
			if r.ExternalID != p.ExternalID || bytesOf(t, r) != bytesOf(t, g.Bank.Calls[0]) {
				t.Fatalf("sent %+v after %+v", r, g.Bank.Calls[0])
			}
		}
	})
}

// bytesOf is a request in its sent form.
func bytesOf(t *testing.T, r processor.TransferRequest) string {
	t.Helper()
	text, err := json.Marshal(&r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Rule 5: an answer proves that the transfer was made, proves that it was not, or proves
// nothing; an answer that proves neither is unknown.
func TestRule05OnlyProofCounts(t *testing.T) {
	const processing, failed = payment.PayoutProcessing, payment.PayoutFailed
	done := func(state processor.TransferState) processor.TransferAnswer {
		return processor.TransferAnswer{Outcome: processor.Done, Report: processor.TransferReport{State: state}}
	}
	for _, tt := range []struct {
		name      string
		answer    processor.TransferAnswer
		status    payment.PayoutStatus
		step      payment.PayoutStep
		send      store.SendOutcome
		available bool // the money is available again
	}{
		{"zero value", processor.TransferAnswer{}, processing, payment.StepUnknown, store.SendUnknown, false},
		{"an outcome that does not exist", processor.TransferAnswer{Outcome: 99}, processing, payment.StepUnknown, store.SendUnknown, false},
		{"timeout", processor.TransferAnswer{Cause: context.DeadlineExceeded}, processing, payment.StepUnknown, store.SendUnknown, false},
		{"not sent", processor.TransferAnswer{Outcome: processor.NotSent}, processing, payment.StepQueued, store.SendNotSent, false},
		{"refused", refused, failed, payment.StepDone, store.SendRefused, true},
		{"accepted", done(processor.TransferProcessing), processing, payment.StepAccepted, store.SendAccepted, false},
		{"accepted, no state", done(""), processing, payment.StepAccepted, store.SendAccepted, false},
		{"failed at once", done(processor.TransferFailed), failed, payment.StepDone, store.SendFailed, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
				g.Bank.AnswerTransfer = always(tt.answer)
				p := g.Payout("r", 10_00)
				g.Send()
				g.WantPayout(p, tt.status, tt.step)
				g.WantSends(p, tt.send)
				if tt.available {
					g.WantBalances(coretest.Opening, 0)
				} else {
					g.WantBalances(coretest.Opening-10_00, 10_00)
				}
			})
		})
	}
}

// Rule 5, for a bug in a processor's package: a panic proves nothing either.
func TestRule05Panic(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		g.Bank.AnswerTransfer = func(*coretest.Bank, processor.TransferRequest) processor.TransferAnswer {
			panic("a bug of the processor's package")
		}
		p := g.Payout("r", 10_00)
		g.Send()
		g.WantPayout(p, payment.PayoutProcessing, payment.StepUnknown)
		g.WantSends(p, store.SendUnknown)
		g.WantBalances(coretest.Opening-10_00, 10_00)
	})
}

// Rule 7: a process that is too late, or was suspended while others took over, does
// not send.
func TestRule07TooLate(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Payout("r", 10_00)
		s := claim(g)
		if err := g.Outgoing.Guard(&s)(); err != nil {
			t.Fatalf("guard before the deadline: %v", err)
		}
		g.Pass(5 * time.Second)
		if err := g.Outgoing.Guard(&s)(); !errors.Is(err, outgoing.ErrStale) {
			t.Fatalf("guard at the deadline: %v, want ErrStale", err)
		}
	})
}

func TestRule07DeclaredDead(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.Payout("r", 10_00)
		s := claim(g)
		other := g.Second()
		other.Pass(4 * time.Second) // g is stopped: it has no heartbeat
		other.WantPayout(p, payment.PayoutProcessing, payment.StepUnknown)
		if err := g.Outgoing.Guard(&s)(); !errors.Is(err, outgoing.ErrStale) {
			t.Fatalf("guard: %v, want ErrStale", err)
		}
		// Its late answer is proof: this send, the last one, did not leave.
		record(g, s, processor.TransferAnswer{Outcome: processor.NotSent, Cause: outgoing.ErrStale})
		other.WantPayout(p, payment.PayoutProcessing, payment.StepQueued)
		other.WantSends(p, store.SendNotSent)
		// Its heartbeat goes on, under another id, and the old claim is still not its own.
		g.Heartbeat()
		g.Heartbeat()
		if err := g.Outgoing.Guard(&s)(); !errors.Is(err, outgoing.ErrStale) {
			t.Fatalf("guard under a new id: %v, want ErrStale", err)
		}
		other.WantBank(0, 0)
	})
}

// Rule 8: held money is released on proof only, never after a time.
func TestRule08ReleaseNeedsProof(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Bank.AnswerTransfer, g.Bank.AnswerQuery = coretest.Unknown, noAnswer
		p := g.Payout("r", 10_00)
		g.Send()
		for range 60 {
			g.Jump(24 * time.Hour)
			g.LookUp()
			g.Send()
		}
		g.WantPayout(p, payment.PayoutProcessing, payment.StepUnknown)
		g.WantBalances(coretest.Opening-10_00, 10_00)
		if _, err := g.Payouts.Cancel(t.Context(), p.Merchant, p.ID); !problem.Is(err, problem.InvalidState) {
			t.Fatalf("cancel of an unknown payout: %v", err)
		}
		g.Bank.AnswerQuery = func(*coretest.Bank, string) processor.TransferReport {
			return processor.TransferReport{Lookup: processor.Found, State: processor.TransferFailed, Evidence: "statement line 4711"}
		}
		g.Jump(27 * time.Hour)
		g.LookUp()
		g.WantPayout(p, payment.PayoutFailed, payment.StepDone)
		g.WantBalances(coretest.Opening, 0)
		sends, err := g.Store.Sends(t.Context(), p.Merchant, p.ID)
		g.Must(err)
		if len(sends) != 1 || sends[0].Outcome != store.SendFailed || sends[0].Evidence != "statement line 4711" {
			t.Fatalf("evidence is not kept: %+v", sends)
		}
	})
}

// Rule 9: held money is not available.
func TestRule09HoldsCount(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Writer.Start()
		t.Cleanup(g.Writer.Stop)
		var wait sync.WaitGroup
		var mu sync.Mutex
		accepted, refused := 0, 0
		for i := range 200 { // they request twice what is available
			wait.Go(func() {
				_, _, err := g.Payouts.Request(context.Background(), g.Merchant, coretest.PayoutRequest("r-"+strconv.Itoa(i), int64(coretest.Opening)/100))
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
		g.Until(wait.Wait)
		if accepted != 100 || refused != 100 {
			t.Fatalf("%d accepted, %d refused, want 100 and 100", accepted, refused)
		}
		g.WantBalances(0, coretest.Opening)
		list, err := g.Store.Payouts(t.Context(), g.Merchant.ID, store.Filter{Limit: 500})
		g.Must(err)
		if len(list) != 100 {
			t.Fatalf("%d payouts are stored; a refused one leaves its reference unused", len(list))
		}
	})
}

// Rule 11: a payout keeps its processor, also if its merchant's routes name another one between two
// of its sends.
func TestRule11OneProcessorForLife(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Bank.AnswerTransfer = always(notSent)
		p := g.Payout("r", 10_00)
		g.Send()
		g.WantSends(p, store.SendNotSent)

		other := coretest.NewBank()
		g.Processor("other", other)
		g.Execute("UPDATE routes SET account = 'other' WHERE account <> ''")
		g.Bank.AnswerTransfer = func(b *coretest.Bank, r processor.TransferRequest) processor.TransferAnswer {
			return processor.TransferAnswer{Outcome: processor.Done, Report: b.Pay(r, processor.TransferPaid)}
		}
		g.Pass(time.Minute)
		g.Send()
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		g.WantBank(2, 1)
		if len(other.Calls) != 0 {
			t.Errorf("the merchant's new processor was called: %v", other.Calls)
		}
	})
}

// Rule 13: a notice alone completes nothing: the processor is queried.
func TestRule13NoticeIsNoProof(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		g.Bank.AnswerTransfer = func(b *coretest.Bank, r processor.TransferRequest) processor.TransferAnswer {
			return processor.TransferAnswer{Outcome: processor.Done, Report: b.Pay(r, processor.TransferProcessing)}
		}
		p := g.Payout("r", 10_00)
		g.Send()
		g.Notify("n-1", p.ExternalID) // as of a transfer that was paid
		g.Apply()
		g.WantPayout(p, payment.PayoutProcessing, payment.StepAccepted)
		g.Bank.Transfers[p.ExternalID].State = processor.TransferPaid
		g.Notify("n-2", p.ExternalID)
		g.Apply()
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		g.WantEvents(payment.EventPayoutProcessing, payment.EventPayoutCompleted)
	})
}
