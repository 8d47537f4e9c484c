package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"pgregory.net/rapid"

	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

var groupTests = []test{
	// Operations need an order by its id, by its external id, and by a part of that;
	// and both of two orders. Each change counts.
	{"they share the rows that they need", func(s *suite) {
		m, other := s.merchant(), s.merchant()
		one, two, third, q := s.payin(m, "1"), s.payin(m, "2"), s.payin(other, "1"), s.storedPayouts(m, "1", "2")
		s.add(one, two, third)
		paid := func(p *store.NewPayin, length int) operation {
			of, name := p.Payin.Merchant, p.Payin.ExternalID[:length]
			return set(func(n *needs) { n.PayinByExternalID(of, name) }, func(l *loaded) (payment.Payin, bool) {
				v, _, ok := l.PayinByExternalID(of, name)
				return v, ok
			}, func(c *changes, v payment.Payin) { c.SetPayin(v) }, func(v *payment.Payin) { v.PaidAmount, v.Version = v.PaidAmount+1, v.Version+1 })
		}
		id := q[0].Payout.ExternalID
		byExternal := set(func(n *needs) { n.PayoutByExternalID(m.ID, id) }, func(l *loaded) (payment.Payout, bool) {
			v, _, ok := l.PayoutByExternalID(m.ID, id)
			return v, ok
		}, func(c *changes, v payment.Payout) { c.SetPayout(v) }, func(v *payment.Payout) { v.Lookups *= 10 })
		add := func(p *payment.Payout) { p.Lookups++ }
		s.commit(pay(one, 1), paid(one, 32), paid(two, 32), pay(third, 7), paid(one, payment.ExternalIDStaticLength), setPayout(q[0], add), setPayout(q[1], add),
			byExternal, setPayout(q[0], add), pay(one, 1), paid(two, payment.ExternalIDStaticLength), paid(one, payment.ExternalIDLength-2), pay(two, 1))
		for p, want := range map[*store.NewPayin][]any{one: {5, 6}, two: {3, 4}, third: {7, 2}} {
			got := s.storedPayin(p)
			s.equal("paid and version", values(got.PaidAmount, got.Version), want)
		}
		s.equal("look-ups", values(s.storedPayout(q[0]).Lookups, s.storedPayout(q[1]).Lookups), values(11, 1))
	}},
	{"a send ends and the next one begins", func(s *suite) {
		p, node := s.storedPayouts(s.merchant(), "r")[0], s.id()
		s.commit(addSends(s.send(p, 1, node)))
		s.commit(setSend(p, store.SendUnknown, "no answer"), setSend(p, store.SendNotSent, "not sent"),
			addSends(s.send(p, 2, node)), setSend(p, store.SendNotFound, "looked up"), addSends(s.send(p, 3, node)), setSend(p, store.SendAccepted, "a notice"))
		var got []string
		for _, v := range s.sends(p) {
			got = append(got, fmt.Sprint(v.Number, " ", v.Outcome, " ", v.Evidence))
		}
		s.equal("sends", got, []string{"1 not_sent not sent", "2 not_found looked up", "3 accepted a notice"})
		s.wantError(s.try(addSends(s.send(p, 4, node))), store.ErrConflict)
	}},
	{"together they store the same rows as one by one", func(s *suite) {
		draw := rapid.Custom(func(r *rapid.T) drawn {
			return drawn{rapid.IntRange(0, len(operations)-1).Draw(r, "kind"), rapid.IntRange(0, 1).Draw(r, "of"), rapid.Int64Range(1, 60).Draw(r, "amount")}
		})
		rapid.Check(s.T, func(r *rapid.T) {
			together, single := s.world(), s.world()
			var ops []operation
			for _, d := range rapid.SliceOfN(draw, 1, 12).Draw(r, "operations") {
				ops = append(ops, operations[d.kind](together, d))
				s.commit(operations[d.kind](single, d))
			}
			s.commit(ops...)
			if a, b := together.rows(), single.rows(); a != b {
				r.Errorf("together:\n%s\none by one:\n%s", a, b)
			}
		})
	}},
}

// world is the rows of a merchant on which drawn operations work.
type world struct {
	*suite

	m          store.Merchant
	payins     []*store.NewPayin
	payouts    []*store.NewPayout
	deliveries []store.Delivery // claimed
	node       payment.ID
}

func (s *suite) world() *world {
	m := s.merchant()
	w := &world{suite: s, m: m, node: s.id(), payouts: s.storedPayouts(m, "0", "1"), payins: []*store.NewPayin{s.payin(m, "0"), s.payin(m, "1")}}
	s.add(w.payins[0], w.payins[1])
	s.commit(addEvents(m, w.payins[0].Payin.ID, 2, hook), addEvents(m, w.payins[1].Payin.ID, 1, hook), post(m, ledger.Fund("bank", 100)))
	w.deliveries = s.claimDeliveries(m, w.node, 10)
	return w
}

// drawn is an operation on some of the rows.
type drawn struct {
	kind   int
	of     int // 0 or 1
	amount int64
}

// operations are all that can be drawn. A refused operation adds nothing.
var operations = []func(w *world, d drawn) operation{
	func(w *world, d drawn) operation {
		p := w.payins[d.of]
		return all(pay(p, d.amount), post(w.m, ledger.Receive("bank", cents(d.amount), 1)), addOrderEvent(p))
	},
	func(w *world, d drawn) operation { return allowed(post(w.m, ledger.HoldPayout(cents(d.amount), 1))) },
	func(w *world, d drawn) operation {
		return w.create(w.payin(w.m, d.name()), new(bool))
	},
	func(w *world, d drawn) operation {
		return setPayout(w.payouts[d.of], func(p *payment.Payout) { p.Lookups = p.Lookups*2 + int(d.amount) })
	},
	func(w *world, d drawn) operation { return w.nextSend(w.payouts[d.of]) },
	func(w *world, d drawn) operation {
		outcomes := []store.SendOutcome{store.SendUnknown, store.SendAccepted, store.SendNotSent, store.SendPaid}
		return allowed(setSend(w.payouts[d.of], outcomes[d.amount%4], d.name()))
	},
	func(w *world, d drawn) operation {
		var id payment.ID
		opened := openCase(w.m, store.CaseOverpaid, w.payins[d.of].Payin.ID, &id)
		if d.amount%3 == 0 {
			return all(opened, closeCase(w.m, &id))
		}
		return opened
	},
	func(w *world, d drawn) operation { return closeCases(w.m, w.payins[d.of].Payin.ID, store.CaseOverpaid) },
	func(w *world, d drawn) operation {
		states := []store.DeliveryState{store.DeliveryPending, store.DeliveryDone, store.DeliveryExhausted}
		return endAttempt(w.deliveries[d.amount%3], int(d.amount), states[d.amount/3%3], w.past())
	},
	func(w *world, d drawn) operation {
		return setDelivery(w.deliveries[d.amount%3], func(d *store.Delivery) {
			if d.ClaimedBy == w.node {
				returned(w.past())(d)
			}
		})
	},
	func(w *world, d drawn) operation { return disable(w.m, w.payins[d.of].Payin.ID, hook) },
	func(w *world, d drawn) operation {
		states := []payment.DisputeStatus{payment.DisputeOpen, payment.DisputeWon, payment.DisputeLost}
		return moveDispute(w.dispute(w.m, fmt.Sprint(d.of)), states[d.amount%3], states[(d.amount+1)%3], &atomic.Int32{})
	},
	func(w *world, d drawn) operation {
		var fresh []bool
		return receive(&fresh, w.receipt(w.m, w.m.Name+d.name()), w.receipt(w.m, w.m.Name+"each"))
	},
	func(w *world, d drawn) operation {
		return does(nil, func(_ *loaded, c *changes) { c.SetSetting(w.m.Name, d.name()) })
	},
}

// name is a reference or text of its own for some of the drawn ones.
func (d drawn) name() string { return fmt.Sprint("name ", d.of, d.amount%3) }

// allowed is an operation whose error refuses it alone.
func allowed(op operation) operation {
	return does(op.needs, func(l *loaded, c *changes) { _ = op.decide(l, c) })
}

// nextSend records a send, unless one is undecided.
func (w *world) nextSend(p *store.NewPayout) operation {
	return does(addSends(w.send(p, 0, w.node)).needs, func(l *loaded, c *changes) {
		sends := l.Sends(w.m.ID, p.Payout.ID)
		if !slices.ContainsFunc(sends, func(v store.Send) bool { return v.Outcome.Undecided() }) {
			c.AddSend(w.send(p, int64(len(sends))+1, w.node))
		}
	})
}

// rows are the merchant's stored rows, without ids and times.
func (w *world) rows() string {
	var lines []string
	add := func(values ...any) { lines = append(lines, fmt.Sprintln(values...)) }
	for i, p := range w.payins {
		v, q := w.storedPayin(p), w.storedPayout(w.payouts[i])
		add("orders", i, v.Version, v.PaidAmount, v.WebhookDisabled, q.Version, q.Lookups)
		for _, v := range w.sends(w.payouts[i]) {
			add("send of", i, v.Number, v.Outcome, v.Evidence)
		}
		d, err := w.store.DisputeByExternalID(w.Context(), w.m.ID, "bank", fmt.Sprint(i))
		add("dispute", i, d.Status, errors.Is(err, store.ErrNotFound))
	}
	for _, v := range w.postings(w.m) {
		add("posting", v.Kind, v.Account, v.Amount, v.BalanceAfter)
	}
	for _, v := range w.openCases(w.m) {
		add("case of the first", v.Subject == w.payins[0].Payin.ID)
	}
	for _, e := range w.events(w.m) {
		add("event", e.Number, e.Subject == w.payins[0].Payin.ID, e.Version)
		for _, a := range w.attempts(w.m, e.Number) {
			add("attempt of", e.Number, a.Number, a.Status, a.EndedAt.IsZero())
		}
	}
	for _, d := range slices.Concat(w.claimDeliveries(w.m, w.node, 100), w.deliveries) {
		v := w.delivery(d)
		add("delivery", v.EventNumber, v.State, v.Attempts, v.ScheduleStep, v.ClaimedBy.IsZero())
	}
	for _, v := range w.receipts(w.m.ID, payment.ID{}) {
		add("receipt", strings.TrimPrefix(v.ExternalID, w.m.Name))
	}
	setting, err := w.store.Setting(w.Context(), w.m.Name)
	balances, errOfBalances := w.store.Balances(w.Context(), w.m.ID)
	add("setting", setting, err, "balances", balances, errOfBalances, "orders", len(w.suite.payins(w.m, store.Filter{})))
	slices.Sort(lines)
	return strings.Join(lines, "")
}
