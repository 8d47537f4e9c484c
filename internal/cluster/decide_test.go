package cluster_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/cluster"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

func TestHeartbeatDecisions(t *testing.T) {
	for _, row := range []struct {
		name    string
		seen    int64 // beyond the epoch in the database
		changes string
		again   string
		rewound bool
	}{
		{"the epoch that was seen", 0, `
			installation epoch:10→11
			nodes clock:0→1795176000000000 heartbeat:5→6`, `
			installation epoch:11→12
			nodes heartbeat:6→7`, false},
		{"an older epoch was seen", -3, `
			installation epoch:10→11
			nodes clock:0→1795176000000000 heartbeat:5→6`, `
			installation epoch:11→12
			nodes heartbeat:6→7`, false},
		{"a later epoch was seen: the database is an older copy", 1, `
			installation epoch:10→12 history:0→1795176000 proved_at:-→now restored_at:-→now restored_from:0→1795176000000000
			nodes clock:0→1795176000000000 heartbeat:5→6`, `
			installation epoch:12→13
			nodes heartbeat:6→7`, true},
		{"a much later epoch was seen", 90, `
			installation epoch:10→101 history:0→1795176000 proved_at:-→now restored_at:-→now restored_from:0→1795176000000000
			nodes clock:0→1795176000000000 heartbeat:5→6`, `
			installation epoch:101→102
			nodes heartbeat:6→7`, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := newNode(t)
			op, _ := cluster.NewHeartbeat(m.Node.ID(), 10+row.seen)
			m.WantDecision(op, row.changes, row.again)
			m = newNode(t)
			op, result := cluster.NewHeartbeat(m.Node.ID(), 10+row.seen)
			m.Must(m.Commit(op))
			if after, rewound := result(); rewound != row.rewound || after != installation(m) || !after.RestoredAt.IsZero() != row.rewound {
				t.Errorf("rewound %v, %+v; stored %+v", rewound, after, installation(m))
			}
		})
	}
}

// newNode is a gateway whose node has written five heartbeats, of an installation with epoch 10.
func newNode(t *testing.T) *coretest.Gateway {
	t.Helper()
	g := coretest.NewWith(t, 0)
	g.Execute("UPDATE installation SET epoch = 10", "UPDATE nodes SET heartbeat = 5, clock = 0")
	return g
}

// The heartbeat of a node that was declared dead changes nothing: others own its claims.
func TestHeartbeatOfADeadNode(t *testing.T) {
	op, _ := cluster.NewHeartbeat(payment.ID{1}, 0)
	if v := newNode(t).Decide(op); v.Refusal == nil || v.Changes+v.Again != "" {
		t.Errorf("refusal %v, changes %s", v.Refusal, v.Changes)
	}
}

// registered is the current row of a node.
func registered(g *coretest.Gateway, id payment.ID) store.Node {
	g.T.Helper()
	nodes, err := g.Store.Nodes(g.T.Context())
	g.Must(err)
	for _, n := range nodes {
		if n.ID == id {
			return n
		}
	}
	g.T.Fatalf("node %s is not registered", id)
	return store.Node{}
}

// dies claims work under an id that is then declared dead; this process continues under
// another one.
func dies(g *coretest.Gateway, claim func()) store.Node {
	g.T.Helper()
	claim()
	dead := registered(g, g.Node.ID())
	g.Restart(nil)
	return dead
}

func TestReleaseDecisions(t *testing.T) {
	due := store.Due{Processor: coretest.BankName}
	for _, row := range []struct {
		name    string
		claim   func(g *coretest.Gateway)
		changes string
	}{
		{"nothing", func(*coretest.Gateway) {}, ""},
		{"a payout that it may have sent", func(g *coretest.Gateway) {
			g.Payout("r", 10_00)
			due.Merchant = g.Merchant.ID
			_, _, err := g.Outgoing.Claim(g.T.Context(), due, 10)
			g.Must(err)
		}, `
			payouts claimed_by:other→- next_at:-→now step:intent→unknown
			payout_sends outcome:intent→unknown`},
		{"a payout that it looked up", func(g *coretest.Gateway) {
			g.Payout("r", 10_00)
			g.Bank.AnswerTransfer = coretest.Unknown
			g.Send()
			g.Pass(10 * time.Second)
			due.Merchant = g.Merchant.ID
			_, err := g.Outgoing.ClaimLookUps(g.T.Context(), due, 10)
			g.Must(err)
		}, "payouts claimed_by:other→- next_at:-→now"},
		{"a payout that its processor has", func(g *coretest.Gateway) {
			g.Payout("r", 10_00)
			g.Bank.AnswerTransfer = func(b *coretest.Bank, r processor.TransferRequest) processor.TransferAnswer {
				return processor.TransferAnswer{Outcome: processor.Done, Report: b.Pay(r, processor.TransferProcessing)}
			}
			g.Send()
		}, ""},
		{"a notice", func(g *coretest.Gateway) { g.Notify("n-1", "x") }, "notices claimed_by:other→- next_at:-→now"},
		{"a delivery", func(g *coretest.Gateway) {
			p := g.Payin(g.Merchant, "r", "https://shop.example/hook")
			_, err := g.Payins.Cancel(g.T.Context(), p.Merchant, p.ID)
			g.Must(err)
		}, `
			deliveries claimed_by:other→- next_at:-→now
			+delivery_attempts 0`},
	} {
		t.Run(row.name, func(t *testing.T) {
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				dead := dies(g, func() { row.claim(g) })
				g.Heartbeat() // releases nothing of a node that was just seen
				early := dead
				early.Heartbeat--
				release := func(n store.Node) string {
					return g.Changes(func() {
						_, err := g.Cluster.Release(t.Context(), n)
						g.Must(err)
					})
				}
				if got := release(early); got != "" {
					t.Errorf("a node whose heartbeat has changed since: %s", got)
				}
				want := "-nodes"
				if row.changes != "" {
					want += "\n" + coretest.Lines(row.changes)
				}
				if got := release(dead); got != want {
					t.Errorf("changes\n%s\nwant\n%s", got, want)
				}
				if got := release(dead); got != "" {
					t.Errorf("released already: %s", got)
				}
			})
		})
	}
}

// Work beyond MaxSchedule was scheduled by a clock that was ahead: it is due now.
func TestScheduleDecisions(t *testing.T) {
	const limit = cluster.MaxSchedule
	at := func(d time.Duration) int64 { return coretest.Start.Add(d).UnixMicro() }
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Payout("r", 10_00)
		p := g.Payin(g.Merchant, "r", "https://shop.example/hook")
		g.Node.Lease.Drop() // due work is not claimed
		_, err := g.Payins.Cancel(t.Context(), p.Merchant, p.ID)
		g.Must(err)
		g.Notify("n-1", "x")
		pull := func() string {
			return g.Changes(func() {
				g.Must(g.Store.Transact(t.Context(), func(tx *store.Tx) error {
					return tx.RescheduleFuture(t.Context(), tx.Now.Add(limit), 0)
				}))
			})
		}
		g.Execute(
			fmt.Sprint("UPDATE installation SET restored_at = ", at(time.Minute)), // it may not be ahead for longer
			fmt.Sprint("UPDATE payouts SET next_at = ", at(limit)),
			fmt.Sprint("UPDATE deliveries SET next_at = ", at(limit)),
			fmt.Sprint("UPDATE notices SET next_at = ", at(time.Minute)))
		if got := pull(); got != "" {
			t.Errorf("scheduled at the limit: %s", got)
		}
		g.Execute(
			fmt.Sprint("UPDATE installation SET restored_at = ", at(limit+time.Second)),
			fmt.Sprint("UPDATE payouts SET next_at = ", at(limit+time.Second)),
			fmt.Sprint("UPDATE deliveries SET next_at = ", at(limit+time.Second)),
			fmt.Sprint("UPDATE notices SET next_at = ", at(time.Minute+time.Second)))
		want := coretest.Lines(`
			installation restored_at:in 27h0m1s→now
			payouts next_at:in 27h0m1s→now
			notices next_at:in 1m1s→now
			deliveries next_at:in 27h0m1s→now`)
		if got := pull(); got != want {
			t.Errorf("changes\n%s\nwant\n%s", got, want)
		}
		for step, changed := range map[string]bool{"unknown": true, "accepted": true, "manual_review": false, "done": false} {
			g.Execute(fmt.Sprintf("UPDATE payouts SET step = '%s', next_at = %d", step, at(limit+time.Second)))
			if got := pull(); (got != "") != changed {
				t.Errorf("a payout at step %s: %q", step, got)
			}
		}
	})
}

// A clock that was set back by some hours, after it was ahead for longer, left rows that look like
// others: all work that waits is due earlier by as much. The end of an approval is not moved.
func TestScheduleAfterAStep(t *testing.T) {
	const step = 3 * time.Hour
	after := func(d time.Duration) string { return fmt.Sprint("next_at = ", coretest.Start.Add(d).UnixMicro()) }
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Payout("r", 10_00)
		p := g.Payin(g.Merchant, "r", "https://shop.example/hook")
		g.Node.Lease.Drop() // due work is not claimed
		_, err := g.Payins.Cancel(t.Context(), p.Merchant, p.ID)
		g.Must(err)
		pull := func() string {
			return g.Changes(func() {
				g.Must(g.Store.Transact(t.Context(), func(tx *store.Tx) error {
					return tx.RescheduleFuture(t.Context(), tx.Now.Add(cluster.MaxSchedule), step)
				}))
			})
		}
		g.Execute("UPDATE payouts SET "+after(9*time.Hour), "UPDATE deliveries SET "+after(step+time.Second))
		for _, want := range []string{`
			payouts next_at:in 9h0m0s→in 6h0m0s
			deliveries next_at:in 3h0m1s→in 1s`, `
			payouts next_at:in 6h0m0s→in 3h0m0s
			deliveries next_at:in 1s→now`, `
			payouts next_at:in 3h0m0s→now`, ``} {
			if got := pull(); got != coretest.Lines(want) {
				t.Errorf("changes\n%s\nwant\n%s", got, coretest.Lines(want))
			}
		}
		for name, moved := range map[string]bool{"unknown": true, "accepted": true, "approval": false, "manual_review": false, "done": false} {
			g.Execute(fmt.Sprintf("UPDATE payouts SET step = '%s', %s", name, after(time.Hour)))
			if got := pull(); (got != "") != moved {
				t.Errorf("a payout at step %s: %q", name, got)
			}
		}
	})
}
