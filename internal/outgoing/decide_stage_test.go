package outgoing_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/cluster"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/outgoing"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

// claimLimit is more payouts than are ever due.
const claimLimit = 1000

// stage is where operations are decided: in memory, or on the database of a gateway.
type stage interface {
	test() *testing.T
	now() time.Time
	pass(d time.Duration)
	node() payment.ID // which claims
	bank() *coretest.Bank
	executor() *outgoing.Executor
	claimSends() *outgoing.ClaimSends
	claimLookUps() *outgoing.ClaimLookUps

	commit(op write.Operation) error
	rollBack(op write.Operation) // after its decision
	state(p payment.Payout) state
	balances() ledger.Balances
	lastEvent() payment.Event

	fund(amount money.Cents)
	allowPayouts() // which a contradiction had stopped
	request(reference string) payment.Payout
	cancel(p payment.Payout)
	change(p payment.Payout, to func(p *payment.Payout)) payment.Payout
	addSend(s store.Send)
	moveAway(p payment.Payout) // to another processor
	declareDead()              // the node, which joins again
	restore()                  // the database, to an older copy
	restoredLongAgo()          // only for the check of consistency
}

// onGateway decides on the database of a gateway.
type onGateway struct{ *coretest.Gateway }

func (g onGateway) test() *testing.T             { return g.T }
func (g onGateway) now() time.Time               { return g.Clock.Now() }
func (g onGateway) pass(d time.Duration)         { g.Jump(d) }
func (g onGateway) node() payment.ID             { return g.Node.ID() }
func (g onGateway) bank() *coretest.Bank         { return g.Bank }
func (g onGateway) executor() *outgoing.Executor { return g.Outgoing }

func (g onGateway) claimSends() *outgoing.ClaimSends {
	return g.Outgoing.NewClaimSends(g.due(), claimLimit)
}

func (g onGateway) claimLookUps() *outgoing.ClaimLookUps {
	return g.Outgoing.NewClaimLookUps(g.due(), claimLimit)
}

func (g onGateway) due() store.Due {
	return store.Due{Merchant: g.Merchant.ID, Processor: coretest.BankName}
}

func (g onGateway) commit(op write.Operation) error { return g.Writer.Do(g.T.Context(), op) }

// errRolledBack rolls a transaction back.
var errRolledBack = errors.New("rolled back")

func (g onGateway) rollBack(op write.Operation) {
	g.T.Helper()
	var needs store.Needs
	op.Needs(&needs)
	_, err := g.Store.Commit(g.T.Context(), &needs, store.Capacity{}, func(l *store.Loaded, c *store.Changes) error {
		decideOnly(g.T, op, l, c)
		return errRolledBack
	})
	if !errors.Is(err, errRolledBack) {
		g.T.Errorf("rolled back: %v", err)
	}
}

// decideOnly decides an operation, which adds nothing if it is refused.
func decideOnly(t *testing.T, op write.Operation, l *store.Loaded, c *store.Changes) {
	t.Helper()
	if err := op.Decide(l, c); err != nil && c.Len() > 0 {
		t.Errorf("%d changes of an operation that was refused", c.Len())
	}
}

func (g onGateway) state(p payment.Payout) state { g.T.Helper(); return stateOf(g.Gateway, p) }

func (g onGateway) balances() ledger.Balances { g.T.Helper(); return balancesOf(g.Gateway) }

func (g onGateway) lastEvent() payment.Event {
	g.T.Helper()
	last, err := g.Store.LastEvent(g.T.Context(), g.Merchant.ID)
	g.Must(err)
	list, err := g.Store.Events(g.T.Context(), g.Merchant.ID, last-1, 1)
	g.Must(err)
	if len(list) != 1 {
		return payment.Event{}
	}
	return list[0]
}

func (g onGateway) fund(amount money.Cents) {
	g.T.Helper()
	g.Must(g.Merchants.Fund(g.T.Context(), g.Merchant, amount))
}

func (g onGateway) allowPayouts() {
	g.T.Helper()
	g.Execute("UPDATE cases SET stops_payouts = 0")
}

func (g onGateway) request(reference string) payment.Payout {
	g.T.Helper()
	return g.Payout(fmt.Sprint(reference, " ", g.Env.Random.Int64N(1<<62)), int64(amount))
}

func (g onGateway) cancel(p payment.Payout) {
	g.T.Helper()
	_, err := g.Payouts.Cancel(g.T.Context(), p.Merchant, p.ID)
	g.Must(err)
}

func (g onGateway) change(p payment.Payout, to func(p *payment.Payout)) payment.Payout {
	g.T.Helper()
	g.Must(g.Store.Transact(g.T.Context(), func(tx *store.Tx) error {
		var needs store.Needs
		needs.Payout(p.Merchant, p.ID)
		return tx.Apply(g.T.Context(), &needs, func(l *store.Loaded, c *store.Changes) error {
			stored, _ := l.Payout(p.Merchant, p.ID)
			to(&stored)
			c.SetPayout(stored)
			return nil
		})
	}))
	return g.ReadPayout(p)
}

func (g onGateway) addSend(s store.Send) {
	g.T.Helper()
	g.Must(g.Store.Transact(g.T.Context(), func(tx *store.Tx) error {
		return tx.Apply(g.T.Context(), &store.Needs{}, func(_ *store.Loaded, c *store.Changes) error {
			c.AddSend(s)
			return nil
		})
	}))
}

func (g onGateway) moveAway(p payment.Payout) {
	g.T.Helper()
	g.Execute("UPDATE payouts SET processor = 'other' WHERE external_id = '" + p.ExternalID + "'")
}

func (g onGateway) declareDead() { g.T.Helper(); g.DeclareDead(g.Gateway); g.Heartbeat() }

func (g onGateway) restore() { g.T.Helper(); g.Execute(rewind); g.Heartbeat(); g.ClearAccount() }

func (g onGateway) restoredLongAgo() {
	g.T.Helper()
	g.Execute("UPDATE installation SET restored_at = 1")
}

// memory decides without a database.
type memory struct {
	*coretest.Memory

	b          *coretest.Bank
	e          *outgoing.Executor
	restoredAt time.Time
}

func newMemory(t *testing.T) *memory {
	t.Helper()
	m := &memory{Memory: coretest.NewMemory(t, coretest.Opening), b: coretest.NewBank()}
	m.e = outgoing.New(outgoing.Options{Env: m.Env, Node: cluster.NewNode(m.Clock), Processors: processor.Registry{coretest.BankName: m.b}})
	return m
}

func (m *memory) test() *testing.T             { return m.T }
func (m *memory) now() time.Time               { return m.Clock.Now() }
func (m *memory) pass(d time.Duration)         { m.Clock.Advance(d) }
func (m *memory) node() payment.ID             { return m.Node }
func (m *memory) bank() *coretest.Bank         { return m.b }
func (m *memory) executor() *outgoing.Executor { return m.e }

func (m *memory) claimSends() *outgoing.ClaimSends {
	return m.e.NewClaimSends(store.Due{Merchant: m.Merchant.ID, Processor: coretest.BankName}, claimLimit).By(m.Node, m.restoredAt)
}

func (m *memory) claimLookUps() *outgoing.ClaimLookUps {
	return m.e.NewClaimLookUps(store.Due{Merchant: m.Merchant.ID, Processor: coretest.BankName}, claimLimit).By(m.Node)
}

func (m *memory) commit(op write.Operation) error { m.T.Helper(); return m.Commit(op) }

func (m *memory) rollBack(op write.Operation) {
	if err := m.Apply(op.Needs, func(l *store.Loaded, c *store.Changes) error {
		decideOnly(m.T, op, l, c)
		return errRolledBack
	}); !errors.Is(err, errRolledBack) {
		m.T.Errorf("rolled back: %v", err)
	}
}

func (m *memory) state(p payment.Payout) state {
	s := state{Payout: *m.StoredPayout(p.ID), Balances: m.balances(), Events: int64(len(m.Rows.Events))}
	for _, send := range m.Rows.Sends {
		if send.Payout == p.ID {
			s.Sends = append(s.Sends, send)
		}
	}
	for _, v := range m.Rows.Cases {
		if v.ID = (payment.ID{}); v.Subject == p.ID && v.ClosedAt.IsZero() {
			s.Cases = append(s.Cases, v)
		}
	}
	return s
}

func (m *memory) balances() ledger.Balances { return m.Balances() }

func (m *memory) lastEvent() payment.Event {
	if len(m.Rows.Events) == 0 {
		return payment.Event{}
	}
	return m.Rows.Events[len(m.Rows.Events)-1].Event
}

func (m *memory) fund(amount money.Cents) {
	m.Opening += amount
	m.Balances()[ledger.Available] += amount
	for i := range m.Rows.Postings {
		if p := &m.Rows.Postings[i]; p.Account == ledger.Available {
			p.BalanceAfter += amount
		}
	}
}

func (m *memory) allowPayouts() {
	for i := range m.Rows.Cases {
		m.Rows.Cases[i].StopsPayouts = false
	}
}

func (m *memory) request(reference string) payment.Payout {
	m.T.Helper()
	return m.Payout(fmt.Sprint(reference, len(m.Rows.Payouts)), amount)
}

func (m *memory) cancel(p payment.Payout) {
	m.T.Helper()
	m.MovePayout(p.ID, payment.OnCancel, payment.StepDone, ledger.ReleasePayout(p.Amount, p.Fee))
}

func (m *memory) change(p payment.Payout, to func(p *payment.Payout)) payment.Payout {
	m.T.Helper()
	m.Change(func(n *store.Needs) { n.Payout(p.Merchant, p.ID) }, func(l *store.Loaded, c *store.Changes) error {
		stored, _ := l.Payout(p.Merchant, p.ID)
		to(&stored)
		c.SetPayout(stored)
		return nil
	})
	return *m.StoredPayout(p.ID)
}

func (m *memory) addSend(s store.Send) {
	m.T.Helper()
	m.Change(func(*store.Needs) {}, func(_ *store.Loaded, c *store.Changes) error {
		c.AddSend(s)
		return nil
	})
}

func (m *memory) moveAway(p payment.Payout) { m.StoredPayout(p.ID).Processor = "other" }

// declareDead does as [store.Tx.ReleaseNode].
func (m *memory) declareDead() {
	for i := range m.Rows.Payouts {
		p := &m.Rows.Payouts[i].Payout
		if p.ClaimedBy != m.Node {
			continue
		}
		p.ClaimedBy, p.NextAt = payment.ID{}, m.Clock.Now()
		if p.Step == payment.StepIntent {
			p.Step = payment.StepUnknown
		}
		for j := range m.Rows.Sends {
			if s := &m.Rows.Sends[j]; s.Payout == p.ID && s.Outcome == store.SendIntent {
				s.Outcome = store.SendUnknown
			}
		}
	}
	m.Node = m.NewID()
	m.Rows.Nodes = []store.Node{{ID: m.Node}}
}

func (m *memory) restore() { m.restoredAt = m.Clock.Now() }

func (m *memory) restoredLongAgo() {}
