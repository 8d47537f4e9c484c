package storetest

import (
	"context"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

var nodeTests = []test{
	{"a beat moves its node and the installation on", beats},
	{"a dead node's payouts are asked about, not sent again", deadNodesPayouts},
	{"a node that lives is not released", livingNode},
	{"a node given up for dead cannot beat", deadNodeBeats},
	{"a node is not released before its claim has ended", releaseWaits},
	{"a restored copy knows how far the first one had come", restored},
}

func (b *bench) beat(node payment.ID) (installation int64, err error) {
	err = b.s.Write(b.Context(), func(tx *store.Tx) (err error) {
		v, err := tx.Beat(b.Context(), node)
		installation = v.Beat
		return err
	})
	return installation, err
}

func (b *bench) release(n store.Node) (released int64, err error) {
	err = b.s.Write(b.Context(), func(tx *store.Tx) (err error) {
		released, err = tx.ReleaseNode(b.Context(), n)
		return err
	})
	return released, err
}

// seen is a node as another one sees it, if it is on the list.
func (b *bench) seen(id payment.ID) (store.Node, bool) {
	b.Helper()
	list, err := b.s.Nodes(b.Context())
	b.must(err)
	for _, n := range list {
		if n.ID == id {
			return n, true
		}
	}
	return store.Node{ID: id}, false
}

func beats(b *bench) {
	node := b.node()
	first, err := b.beat(node)
	b.must(err)
	second, err := b.beat(node)
	b.must(err)
	equal(b, "installation's beat", second, first+1)
	n, ok := b.seen(node)
	equal(b, "is on the list", ok, true)
	equal(b, "node's beat", n.Beat, 3)
	installation, err := b.s.ReadInstallation(b.Context())
	b.must(err)
	equal(b, "installation's beat", installation.Beat, second)
	equal(b, "installation", installation.ID, b.s.Installation())
}

func deadNodesPayouts(b *bench) {
	m, dead, other := b.merchant(), b.node(), b.node()
	sending, fresh, asked, theirs := b.payout(m, "sending"), b.payout(m, "fresh"), b.payout(m, "asked"), b.payout(m, "theirs")
	asked.Step = payment.StepUnknown
	b.storePayouts(sending, fresh, asked)
	due := store.Due{Merchant: m.ID, Processor: "bank"}
	equal(b, "claimed", len(b.claimPayouts(due, dead, store.ToSend, 10)), 2)
	equal(b, "claimed", len(b.claimPayouts(due, dead, store.ToAsk, 10)), 1)
	b.storePayouts(theirs)
	equal(b, "claimed by another", len(b.claimPayouts(due, other, store.ToSend, 10)), 1)
	b.must(b.insertSends(b.send(sending, 1, dead)))
	sending.Step, sending.Version, sending.ClaimedBy = payment.StepIntent, 2, dead
	sending.NextAt = sending.SentAt // never, while it is in hand
	b.write(func(tx *store.Tx) error { return tx.UpdatePayout(b.Context(), &sending.Payout, 1) })

	n, _ := b.seen(dead)
	released, err := b.release(n)
	b.must(err)
	equal(b, "released", released, 3)
	for p, want := range map[*store.NewPayout]payment.PayoutStep{
		sending: payment.StepUnknown, fresh: payment.StepQueued, asked: payment.StepUnknown,
	} {
		got, err := b.s.Payout(b.Context(), m.ID, p.ID)
		b.must(err)
		equal(b, "step of "+p.ReferenceID, got.Step, want)
		equal(b, "is in hand", !got.ClaimedBy.IsZero(), false)
		equal(b, "is due", !got.NextAt.IsZero(), true)
	}
	sends, err := b.s.Sends(b.Context(), m.ID, sending.ID)
	b.must(err)
	equal(b, "outcome of the send", sends[0].Outcome, store.SendUnknown)
	got, err := b.s.Payout(b.Context(), m.ID, theirs.ID)
	b.must(err)
	equal(b, "another's payout is in its hands", got.ClaimedBy, other)
	equal(b, "to send again", len(b.claimPayouts(due, other, store.ToSend, 10)), 1)
	equal(b, "to ask", len(b.claimPayouts(due, other, store.ToAsk, 10)), 2)
	// The unknown send still blocks another one.
	b.wantError(b.insertSends(b.send(sending, 2, other)), store.ErrConflict)
}

func livingNode(b *bench) {
	node := b.node()
	n, _ := b.seen(node)
	_, err := b.beat(node)
	b.must(err)
	_, err = b.release(n)
	b.wantError(err, store.ErrConflict)
	_, ok := b.seen(node)
	equal(b, "is on the list", ok, true)
}

func deadNodeBeats(b *bench) {
	node := b.node()
	n, _ := b.seen(node)
	_, err := b.release(n)
	b.must(err)
	_, ok := b.seen(node)
	equal(b, "is on the list", ok, false)
	_, err = b.beat(node)
	b.wantError(err, store.ErrConflict)
	_, err = b.release(n)
	b.wantError(err, store.ErrConflict)
}

// A claim that is committed after its node was released would be nobody's: who
// releases waits, so that it sees all that the node has in hand.
func releaseWaits(b *bench) {
	m, slow := b.merchant(), b.node()
	b.storePayouts(b.payout(m, "r"))
	n, _ := b.seen(slow)
	b.write(func(tx *store.Tx) error {
		if err := tx.StayNode(b.Context(), slow); err != nil {
			return err
		}
		list, err := tx.ClaimPayouts(b.Context(), store.Due{Merchant: m.ID, Processor: "bank"}, slow, store.ToSend, 1)
		if equal(b, "claimed", len(list), 1); err != nil || b.s.Engine() == "sqlite" {
			return err // SQLite has one writer
		}
		if _, err := b.beat(slow); err != nil { // must not wait
			return err
		}
		n, _ = b.seen(slow)
		brief, cancel := context.WithTimeout(b.Context(), 200*time.Millisecond)
		defer cancel()
		err = b.s.Write(brief, func(tx *store.Tx) error {
			_, err := tx.ReleaseNode(brief, n)
			return err
		})
		if brief.Err() == nil {
			b.Errorf("a node was released in the middle of its claim: %v", err)
		}
		return nil
	})
	released, err := b.release(n)
	b.must(err)
	equal(b, "released", released, 1)
	b.wantError(b.s.Write(b.Context(), func(tx *store.Tx) error { return tx.StayNode(b.Context(), slow) }), store.ErrConflict)
}

func restored(b *bench) {
	b.write(func(tx *store.Tx) error { return tx.MarkRestored(b.Context(), 1_000_000) })
	got, err := b.s.ReadInstallation(b.Context())
	b.must(err)
	equal(b, "beat", got.Beat, 1_000_000)
	equal(b, "is marked", !got.RestoredAt.IsZero(), true)
}
