package outgoing_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/outgoing"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

// A claim sees the decisions of earlier operations of its batch: a payout that the
// processor reports is not sent.
func TestClaimAfterAReportInTheSameBatch(t *testing.T) {
	for _, state := range []processor.TransferState{processor.TransferPaid, processor.TransferProcessing, processor.TransferFailed} {
		t.Run(string(state), func(t *testing.T) {
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				p := g.Payout("r", 10_00)
				due := store.Due{Merchant: p.Merchant, Processor: p.Processor}
				report := g.Outgoing.NewRecordNotice(p, processor.TransferReport{Lookup: processor.Found, State: state, Amount: p.Amount})
				claim := g.Outgoing.NewClaimSends(due, 10)
				for _, err := range g.Writer.All(t.Context(), []write.Operation{report, claim}) {
					g.Must(err)
				}
				if sends, _, claimed := claim.Result(); len(sends) != 0 || claimed != 0 {
					t.Errorf("%d claimed, %d to be sent", claimed, len(sends))
				}
				if step := g.ReadPayout(p).Step; step == payment.StepIntent {
					t.Errorf("it is at step %s", step)
				}
				var want []store.SendOutcome
				if state == processor.TransferPaid {
					want = []store.SendOutcome{store.SendPaid} // which the database lacked
				}
				g.WantSends(p, want...)
			})
		})
	}
}

// Two claims of one batch claim each payout once.
func TestClaimsOfOneBatch(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		for _, reference := range []string{"a", "b", "c"} {
			g.Payout(reference, 10_00)
		}
		due := store.Due{Merchant: g.Merchant.ID, Processor: coretest.BankName}
		first, second := g.Outgoing.NewClaimSends(due, 2), g.Outgoing.NewClaimSends(due, 10)
		for _, err := range g.Writer.All(t.Context(), []write.Operation{first, second}) {
			g.Must(err)
		}
		seen := map[payment.ID]bool{}
		for _, op := range []*outgoing.ClaimSends{first, second} {
			sends, _, _ := op.Result()
			for _, s := range sends {
				if seen[s.Payout.ID] {
					t.Error("a payout was claimed twice")
				}
				seen[s.Payout.ID] = true
			}
		}
		if len(seen) != 3 {
			t.Errorf("%d claimed", len(seen))
		}
	})
}

// If the commit of a claim is unknown, payouts that only its first run claimed are
// not sent: they are released under the next id of the process, and looked up.
func TestUnknownCommitOfAClaim(t *testing.T) {
	for _, at := range []env.Failpoint{env.BeforeCommit, env.AfterCommit} {
		t.Run(string(at), func(t *testing.T) {
			var cut *atomic.Int64
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				p := g.Payout("r", 10_00)
				node := g.Node.ID()
				cut.Store(1)
				g.Until(g.Send)
				if at == env.BeforeCommit { // it was not committed: the second run claimed it
					g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
				} else {
					g.WantPayout(p, payment.PayoutProcessing, payment.StepIntent)
					g.WantBank(0, 0)
				}
				g.Heartbeat()
				if g.Node.ID() == node {
					t.Error("it goes on under the id of an unknown claim")
				}
				for range 30 {
					g.Pass(5 * time.Second)
					g.LookUp()
					g.Send()
				}
				g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
				g.WantBank(1, 1)
			}, func(e *env.Env) { cut = coretest.CutCommits(e, at) })
		})
	}
}

// If it is unknown whether an answer was recorded, it is recorded again, and once.
func TestUnknownCommitOfAnAnswer(t *testing.T) {
	for _, at := range []env.Failpoint{env.BeforeCommit, env.AfterCommit} {
		for _, answer := range []processor.TransferAnswer{refused, notSent, done(processor.TransferPaid), done(processor.TransferProcessing), {}} {
			t.Run(string(at)+" "+answer.Outcome.String()+" "+string(answer.Report.State), func(t *testing.T) {
				var cut *atomic.Int64
				coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
					p := g.Payout("r", int64(amount))
					send := claim(g)
					cut.Store(3)
					g.Until(func() { record(g, send, answer) })
					want := stateOf(g, p)
					clean := g.Payout("without a cut", int64(amount))
					record(g, claimOf(g, clean), answer)
					got := stateOf(g, clean)
					if got.Status != want.Status || got.Step != want.Step || got.Version != want.Version || got.Sends[0].Outcome != want.Sends[0].Outcome {
						g.T.Errorf("%s/%s, version %d, %s; without a cut %s/%s, version %d, %s", want.Status, want.Step, want.Version,
							want.Sends[0].Outcome, got.Status, got.Step, got.Version, got.Sends[0].Outcome)
					}
					g.WantProven()
				}, func(e *env.Env) { cut = coretest.CutCommits(e, at) })
			})
		}
	}
}
