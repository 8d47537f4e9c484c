package storetest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

var nodeTests = []test{
	{"heartbeats advance their nodes and the epoch", func(s *suite) {
		nodes := []payment.ID{s.node(), s.node(), s.node(), s.node()}
		before := s.installation().Epoch
		s.concurrently(len(nodes), func(i int) (err error) {
			for n := 0; n < 10 && err == nil; n++ {
				err = s.try(heartbeat(nodes[i]))
			}
			return err
		})
		s.commit(heartbeat(nodes[0]), heartbeat(nodes[1]))
		s.equal("epoch, and heartbeats", values(s.installation().Epoch, s.seen(nodes[0]).Heartbeat, s.seen(nodes[2]).Heartbeat), values(before+42, 12, 11))
	}},
	{"a dead node's payouts are looked up, not sent again", func(s *suite) {
		m, dead, other := s.merchant(), s.node(), s.node()
		list := s.storedPayouts(m, "sending", "claimed", "looked-up")
		sending, claimed, lookedUp := list[0], list[1], list[2]
		s.commit(setPayout(lookedUp, func(p *payment.Payout) { p.Step = payment.StepUnknown }))
		s.equal("claimed", values(len(s.claimPayouts(toSend(m, 10), dead)), len(s.claimPayouts(toLookUp(m, 10), dead))), values(2, 1))
		theirs := s.storedPayouts(m, "theirs")[0]
		s.commit(s.startSend(sending, dead), s.startSend(theirs, other))

		s.equal("released", s.release(dead), 3)
		for p, want := range map[*store.NewPayout]payment.PayoutStep{
			sending: payment.StepUnknown, claimed: payment.StepQueued, lookedUp: payment.StepUnknown,
		} {
			got := s.storedPayout(p)
			s.equal(p.Payout.ReferenceID, values(got.Step, got.ClaimedBy.IsZero(), got.NextAt.IsZero()), values(want, true, false))
		}
		s.equal("outcomes of the sends", values(s.sends(sending)[0].Outcome, s.sends(theirs)[0].Outcome), values(store.SendUnknown, store.SendIntent))
		s.equal("the other's payout is claimed by", s.storedPayout(theirs).ClaimedBy, other)
		s.equal("to send, and to look up", values(len(s.claimPayouts(toSend(m, 10), other)), len(s.claimPayouts(toLookUp(m, 10), other))), values(1, 2))
		s.wantError(s.try(addSends(s.send(sending, 2, other))), store.ErrConflict) // the unknown send is undecided
	}},
	{"a node is released once, if it is dead, and then claims nothing", func(s *suite) {
		node, other := s.node(), s.node()
		before := s.seen(node)
		s.commit(heartbeat(node))
		s.wantError(errorOf(s.tryRelease(s.Context(), before)), store.ErrConflict) // it lives
		s.equal("heartbeat", s.seen(node).Heartbeat, 2)
		before = s.seen(node)
		s.release(node)
		s.wantError(errorOf(s.tryRelease(s.Context(), before)), store.ErrConflict)
		s.equal("heartbeat", s.seen(node).Heartbeat, 0)
		s.wantError(s.try(heartbeat(node)), store.ErrNotFound)
		var alive, otherAlive bool
		s.commit(nodeAlive(node, &alive), nodeAlive(other, &otherAlive), nodeAlive(other, &otherAlive))
		s.equal("may claim", values(alive, otherAlive), values(false, true))
	}},
	// A claim that is committed after its node was released would be lost: the release
	// waits for it, so that it sees all claims of the node.
	{"a node is not released before its claim is committed", func(s *suite) {
		m, slow := s.merchant(), s.node()
		s.storedPayouts(m, "r")
		var claimed []payment.Payout
		var alive bool
		s.commit(nodeAlive(slow, &alive), claimPayouts(toSend(m, 1), slow, &claimed), s.releaseMustWait(slow))
		s.equal("alive, claimed, and released", values(alive, len(claimed), s.release(slow)), values(true, 1, 1))
		s.commit(nodeAlive(slow, &alive))
		s.equal("is alive", alive, false)
	}},
	{"a restored copy continues from the latest epoch", func(s *suite) {
		at := s.env.Clock.Now()
		s.write(func(tx *store.AdminTx) error {
			return tx.SetInstallation(s.Context(), store.Installation{Epoch: 1_000_000, RestoredAt: at})
		})
		s.commit(heartbeat(s.node()))
		s.equal("installation", s.installation(), store.Installation{ID: s.store.Installation(), Epoch: 1_000_001, RestoredAt: at})
	}},
	{"work scheduled by a clock that was ahead is due now", func(s *suite) {
		m, bank, now := s.merchant(), s.Name(), s.env.Clock.Now()
		ahead := now.AddDate(1, 0, 0)
		list := s.storedPayouts(m, "ahead", "looked-up", "soon")
		s.commit(addEvents(m, s.id(), 1, hook), s.addNotices(bank, "n"))
		s.commit(setPayout(list[0], func(p *payment.Payout) { p.NextAt = ahead }), setPayout(list[1], func(p *payment.Payout) { p.NextAt, p.Step = ahead, payment.StepAccepted }),
			setPayout(list[2], func(p *payment.Payout) { p.NextAt = now.Add(time.Hour) }),
			endAttempt(s.claimDeliveries(m, s.id(), 1)[0], 500, store.DeliveryPending, ahead), delay(s.claimNotices(bank, s.id())[0], ahead))
		for due, latest := range []time.Time{now.AddDate(2, 0, 0), now.Add(27 * time.Hour)} {
			s.write(func(tx *store.AdminTx) error {
				s.must(tx.SetInstallation(s.Context(), store.Installation{Epoch: 2_000_000, RestoredAt: ahead}))
				return tx.RescheduleFuture(s.Context(), latest, 0)
			})
			s.equal("due", values(len(s.claimPayouts(toSend(m, 10), s.id())), len(s.claimPayouts(toLookUp(m, 10), s.id())),
				len(s.claimDeliveries(m, s.id(), 10)), len(s.claimNotices(bank, s.id()))), values(due, due, due, 1-due)) // notices at once, with any latest
			s.equal("the restore is in the future", s.installation().RestoredAt.After(s.env.Clock.Now()), false)
		}
		s.equal("still due later", s.storedPayout(list[2]).NextAt, now.Add(time.Hour))
	}},
}

// node registers a process.
func (s *suite) node() payment.ID {
	s.Helper()
	id := s.id()
	s.write(func(tx *store.AdminTx) error { return tx.RegisterNode(s.Context(), id) })
	return id
}

// heartbeat advances a node and the epoch; ErrNotFound if it was declared dead.
func heartbeat(id payment.ID) operation {
	moved := func(l *loaded, c *changes) {
		v := l.Installation()
		v.Epoch++
		c.SetInstallation(v)
	}
	return all(set(func(n *needs) { n.Heartbeat(id) }, func(l *loaded) (store.Node, bool) { return l.Node(id) },
		(*changes).SetNode, func(n *store.Node) { n.Heartbeat++ }), does(nil, moved))
}

// seen is a node as others see it; its heartbeat is 0 if it is not registered.
func (s *suite) seen(id payment.ID) store.Node {
	s.Helper()
	list := must(s.store.Nodes(s.Context()))
	if i := slices.IndexFunc(list, func(n store.Node) bool { return n.ID == id }); i >= 0 {
		return list[i]
	}
	return store.Node{ID: id}
}

func (s *suite) tryRelease(ctx context.Context, n store.Node) (released int64, err error) {
	err = s.store.Administer(ctx, Operator, func(tx *store.AdminTx) (err error) {
		released, err = tx.ReleaseNode(ctx, n)
		return err
	})
	return released, err
}

// release declares a node dead, and returns how much work it had claimed.
func (s *suite) release(id payment.ID) int64 {
	s.Helper()
	released, err := s.tryRelease(s.Context(), s.seen(id))
	s.must(err)
	return released
}

func (s *suite) installation() store.Installation {
	s.Helper()
	v := must(s.store.ReadInstallation(s.Context()))
	s.equal("installation", v.ID, s.store.Installation())
	return v
}

// startSend records the intent to send a payout.
func (s *suite) startSend(p *store.NewPayout, node payment.ID) operation {
	return all(addSends(s.send(p, 1, node)), setPayout(p, func(p *payment.Payout) {
		p.Step, p.ClaimedBy, p.NextAt = payment.StepIntent, node, time.Time{}
	}))
}

// nodeAlive reports whether a node may claim.
func nodeAlive(id payment.ID, alive *bool) operation {
	return does(func(n *needs) { n.ClaimingNode(id) }, func(l *loaded, _ *changes) { *alive = l.NodeAlive(id) })
}

// releaseMustWait expects that a node can write a heartbeat and cannot be released during
// the commit. SQLite has one writer: nothing else can happen during a commit.
func (s *suite) releaseMustWait(node payment.ID) operation {
	return operation{decide: func(*loaded, *changes) error {
		if s.store.Engine() == "sqlite" {
			return nil
		}
		s.must(s.try(heartbeat(node)))
		brief, cancel := context.WithTimeout(s.Context(), 200*time.Millisecond)
		defer cancel()
		if _, err := s.tryRelease(brief, s.seen(node)); brief.Err() == nil {
			return fmt.Errorf("the release did not wait: %w", err)
		}
		return nil
	}}
}
