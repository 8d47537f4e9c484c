package storetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

var payoutTests = []test{
	{"two nodes never share a payout", payoutsClaimedOnce},
	{"payouts are claimed by processor and step, when due", payoutsDue},
	{"a backlog hides nobody", backlogHidesNobody},
	{"at most one send of a payout is undecided", oneLiveSend},
	{"a transfer is found after all", foundAfterAll},
	{"sends of many payouts are all recorded or none", sendsTogether},
	{"a send that ended stays as it ended", endedSend},
}

func (b *bench) claimPayouts(due store.Due, node payment.ID, steps store.StepFilter, limit int) (list []payment.Payout) {
	b.Helper()
	b.write(func(tx *store.Tx) (err error) {
		list, err = tx.ClaimPayouts(b.Context(), due, node, steps, limit)
		return err
	})
	return list
}

func payoutsClaimedOnce(b *bench) {
	const n = 60
	m := b.merchant()
	for i := range n {
		b.storePayouts(b.payout(m, fmt.Sprint(i)))
	}
	due := store.Due{Merchant: m.ID, Processor: "bank"}
	var mu sync.Mutex
	claimed := map[payment.ID]payment.ID{}
	take := func(list []payment.Payout, node payment.ID) error {
		mu.Lock()
		defer mu.Unlock()
		for i := range list {
			if other, ok := claimed[list[i].ID]; ok {
				return fmt.Errorf("%s was claimed by %s and %s", list[i].ID, other, node)
			}
			claimed[list[i].ID] = node
		}
		return nil
	}
	b.together(4, func(ctx context.Context, _ int) error {
		node := b.id()
		for {
			var list []payment.Payout
			err := b.s.Write(ctx, func(tx *store.Tx) (err error) {
				list, err = tx.ClaimPayouts(ctx, due, node, store.ToSend, 5)
				return err
			})
			if err != nil || len(list) == 0 {
				return err
			}
			if err := take(list, node); err != nil { // for ever, perhaps
				return err
			}
		}
	})
	last := b.id()
	b.must(take(b.claimPayouts(due, last, store.ToSend, n), last))
	equal(b, "payouts claimed", len(claimed), n)
	for id, node := range claimed {
		got, err := b.s.Payout(b.Context(), m.ID, id)
		b.must(err)
		if got.ClaimedBy != node || !got.NextAt.IsZero() {
			b.Errorf("%s is in the hands of %s and due at %v, want %s and never", id, got.ClaimedBy, got.NextAt, node)
		}
	}
}

func payoutsDue(b *bench) {
	m := b.merchant()
	queued, unknown, accepted := b.payout(m, "q"), b.payout(m, "u"), b.payout(m, "a")
	person, future, other := b.payout(m, "p"), b.payout(m, "f"), b.payout(m, "o")
	now := b.w.Clock.Now()
	unknown.Step, accepted.Step, person.Step = payment.StepUnknown, payment.StepAccepted, payment.StepPerson
	future.NextAt, other.Processor = now.Add(time.Hour), "other"
	queued.NextAt, other.NextAt = now.Add(-time.Second), now.Add(-time.Millisecond)
	b.storePayouts(queued, unknown, accepted, person, future, other)
	dues := func(steps store.StepFilter) (mine []store.Due) {
		list, err := b.s.PayoutsDue(b.Context(), now, steps)
		b.must(err)
		for _, d := range list {
			if d.Merchant == m.ID {
				mine = append(mine, d)
			}
		}
		return mine
	}
	due := func(processor string, since time.Time) string {
		return fmt.Sprint([]store.Due{{Merchant: m.ID, Processor: processor, Since: since.UTC().Truncate(time.Microsecond)}})
	}
	equal(b, "to send, the oldest first", fmt.Sprint(dues(store.ToSend)), due("bank", queued.NextAt))
	equal(b, "to ask", fmt.Sprint(dues(store.ToAsk)), due("bank", unknown.NextAt))
	sent := b.claimPayouts(dues(store.ToSend)[0], b.id(), store.ToSend, 10)
	if len(sent) != 1 || sent[0].ID != queued.ID || sent[0].Beneficiary != queued.Beneficiary {
		b.Errorf("claimed to send: %+v", sent)
	}
	equal(b, "to send next", fmt.Sprint(dues(store.ToSend)), due("other", other.NextAt))
	equal(b, "claimed to ask", len(b.claimPayouts(dues(store.ToAsk)[0], b.id(), store.ToAsk, 10)), 2)
	equal(b, "to ask when all are claimed", len(dues(store.ToAsk)), 0)
}

// However many payouts one merchant has waiting, another's are due beside them.
func backlogHidesNobody(b *bench) {
	crowd, lone := b.merchant(), b.merchant()
	var list []*store.NewPayout
	for i := range 600 {
		p := b.payout(crowd, fmt.Sprint("c", i))
		p.NextAt = b.w.Clock.Now().Add(-time.Hour)
		list = append(list, p)
	}
	b.storePayouts(append(list, b.payout(lone, "l"))...)
	due, err := b.s.PayoutsDue(b.Context(), b.w.Clock.Now(), store.ToSend)
	b.must(err)
	if !slices.ContainsFunc(due, func(d store.Due) bool { return d.Merchant == lone.ID }) {
		b.Error("a backlog of another merchant hides the payout")
	}
}

// send is an intent to hand a payout to its processor.
func (b *bench) send(p *store.NewPayout, number int64, node payment.ID) store.Send {
	return store.Send{
		Merchant: p.Merchant, Payout: p.ID, Number: number, Processor: "bank", BodyHash: []byte{1, 2}, Node: node,
		Deadline: b.now().Add(time.Second), Outcome: store.SendIntent,
	}
}

func (b *bench) insertSends(list ...store.Send) error {
	return b.s.Write(b.Context(), func(tx *store.Tx) error { return tx.InsertSends(b.Context(), list) })
}

func (b *bench) endSend(p *store.NewPayout, outcome, evidence string) {
	b.Helper()
	b.write(func(tx *store.Tx) error { return tx.EndSend(b.Context(), p.Merchant, p.ID, outcome, evidence) })
}

func oneLiveSend(b *bench) {
	m, node := b.merchant(), b.id()
	p := b.payout(m, "r")
	b.storePayouts(p)
	number := int64(0)
	for _, undecided := range []string{store.SendIntent, store.SendAccepted, store.SendUnknown} {
		for _, decided := range []string{store.SendNotFound, store.SendNotSent, store.SendRefused, store.SendPaid, store.SendFailed} {
			number++
			b.must(b.insertSends(b.send(p, number, node)))
			b.endSend(p, undecided, "")
			b.wantError(b.insertSends(b.send(p, number+1, node)), store.ErrConflict)
			b.endSend(p, decided, "because")
		}
	}
	list, err := b.s.Sends(b.Context(), m.ID, p.ID)
	b.must(err)
	equal(b, "sends", len(list), 15)
	for i := range list {
		if list[i].Number != int64(i+1) || list[i].Evidence != "because" || list[i].EndedAt.IsZero() || list[i].Node != node || len(list[i].BodyHash) != 2 {
			b.Errorf("%+v", list[i])
		}
	}
	// Two at the same instant: the unique index lets one through.
	var mu sync.Mutex
	taken := 0
	b.together(8, func(_ context.Context, i int) error {
		if b.insertSends(b.send(p, 100+int64(i), node)) == nil {
			mu.Lock()
			taken++
			mu.Unlock()
		}
		return nil
	})
	equal(b, "sends at once", taken, 1)
}

func sendsTogether(b *bench) {
	m, node := b.merchant(), b.id()
	one, two := b.payout(m, "1"), b.payout(m, "2")
	b.storePayouts(one, two)
	b.must(b.insertSends(b.send(one, 1, node)))
	b.wantError(b.insertSends(b.send(two, 1, node), b.send(one, 2, node)), store.ErrConflict)
	list, err := b.s.Sends(b.Context(), m.ID, two.ID)
	b.must(err)
	equal(b, "sends of the other", len(list), 0)
	b.refused("a send of no payout", b.insertSends(b.send(b.payout(m, "never stored"), 1, node)))
}

// A fact may come by two ways; the first one stands.
func endedSend(b *bench) {
	m := b.merchant()
	p := b.payout(m, "r")
	b.storePayouts(p)
	b.must(b.insertSends(b.send(p, 1, b.id())))
	b.endSend(p, store.SendPaid, "notice")
	b.endSend(p, store.SendFailed, "look-up")
	b.write(func(tx *store.Tx) error {
		list, err := tx.Sends(b.Context(), m.ID, p.ID)
		if len(list) != 1 || list[0].Outcome != store.SendPaid || list[0].Evidence != "notice" {
			b.Errorf("%+v", list)
		}
		return err
	})
}

// What was not found when it was asked about may be found later: the proof is
// kept with the send that brought it there, not with one that never left, and
// nothing comes after the end.
func foundAfterAll(b *bench) {
	m, node := b.merchant(), b.id()
	p := b.payout(m, "r")
	b.storePayouts(p)
	for number, outcome := range []string{store.SendNotFound, store.SendNotFound, store.SendNotSent} {
		b.must(b.insertSends(b.send(p, int64(number+1), node)))
		b.endSend(p, outcome, "asked")
	}
	for _, outcome := range []string{store.SendAccepted, store.SendPaid, store.SendFailed} {
		b.endSend(p, outcome, "a notice")
	}
	list, err := b.s.Sends(b.Context(), m.ID, p.ID)
	b.must(err)
	for i, want := range []string{store.SendNotFound, store.SendPaid, store.SendNotSent} {
		equal(b, "outcome", list[i].Outcome, want)
	}
	equal(b, "evidence", list[1].Evidence, "a notice")
}
