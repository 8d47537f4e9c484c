package outgoing_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/cluster"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/outgoing"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/transition"
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

func (g onGateway) restore() { g.T.Helper(); g.Execute(rewind); g.Heartbeat() }

func (g onGateway) restoredLongAgo() {
	g.T.Helper()
	g.Execute("UPDATE installation SET restored_at = 1")
}

// memory decides without a database.
type memory struct {
	t          *testing.T
	clock      *env.VirtualClock
	env        env.Env
	b          *coretest.Bank
	e          *outgoing.Executor
	merchant   payment.ID
	process    payment.ID
	restoredAt time.Time
	opening    money.Cents // available before the postings
	rows       store.Given
}

func newMemory(t *testing.T) *memory {
	t.Helper()
	e, clock := env.Virtual(coretest.Start, 1)
	m := &memory{t: t, clock: clock, env: e, b: coretest.NewBank(), opening: coretest.Opening}
	m.e = outgoing.New(outgoing.Options{Env: e, Node: cluster.NewNode(clock), Processors: processor.Registry{coretest.BankName: m.b}})
	m.merchant, m.process = m.newID(), m.newID()
	m.rows = store.Given{
		NewID: m.newID, Nodes: []store.Node{{ID: m.process}},
		Balances: map[payment.ID]ledger.Balances{m.merchant: {ledger.Available: m.opening}},
	}
	return m
}

func (m *memory) newID() payment.ID { return m.env.IDs.NewID(m.clock.Now()) }

func (m *memory) test() *testing.T             { return m.t }
func (m *memory) now() time.Time               { return m.clock.Now() }
func (m *memory) pass(d time.Duration)         { m.clock.Advance(d) }
func (m *memory) node() payment.ID             { return m.process }
func (m *memory) bank() *coretest.Bank         { return m.b }
func (m *memory) executor() *outgoing.Executor { return m.e }

func (m *memory) claimSends() *outgoing.ClaimSends {
	return m.e.NewClaimSends(store.Due{Merchant: m.merchant, Processor: coretest.BankName}, claimLimit).By(m.process, m.restoredAt)
}

func (m *memory) claimLookUps() *outgoing.ClaimLookUps {
	return m.e.NewClaimLookUps(store.Due{Merchant: m.merchant, Processor: coretest.BankName}, claimLimit).By(m.process)
}

func (m *memory) decide(needs func(n *store.Needs), decide func(l *store.Loaded, c *store.Changes) error) error {
	m.t.Helper()
	var n store.Needs
	needs(&n)
	m.rows.Now = m.clock.Now()
	after, err := m.rows.Decide(&n, decide)
	m.rows = after
	return err
}

func (m *memory) commit(op write.Operation) error {
	m.t.Helper()
	return m.decide(op.Needs, op.Decide)
}

// commitAll commits operations as one batch.
func (m *memory) commitAll(ops []write.Operation) []error {
	m.t.Helper()
	errs := make([]error, len(ops))
	must(m, m.decide(func(n *store.Needs) {
		for _, op := range ops {
			op.Needs(n)
		}
	}, func(l *store.Loaded, c *store.Changes) error {
		for i, op := range ops {
			errs[i] = op.Decide(l, c)
		}
		return nil
	}))
	return errs
}

func (m *memory) rollBack(op write.Operation) {
	m.t.Helper()
	if err := m.decide(op.Needs, func(l *store.Loaded, c *store.Changes) error {
		decideOnly(m.t, op, l, c)
		return errRolledBack
	}); !errors.Is(err, errRolledBack) {
		m.t.Errorf("rolled back: %v", err)
	}
}

// row is the stored payout.
func (m *memory) row(p payment.Payout) *payment.Payout {
	i := slices.IndexFunc(m.rows.Payouts, func(v store.NewPayout) bool { return v.Payout.ID == p.ID })
	return &m.rows.Payouts[i].Payout
}

func (m *memory) state(p payment.Payout) state {
	s := state{Payout: *m.row(p), Balances: m.balances(), Events: int64(len(m.rows.Events))}
	for _, send := range m.rows.Sends {
		if send.Payout == p.ID {
			s.Sends = append(s.Sends, send)
		}
	}
	for _, v := range m.rows.Cases {
		if v.ID = (payment.ID{}); v.Subject == p.ID && v.ClosedAt.IsZero() {
			s.Cases = append(s.Cases, v)
		}
	}
	return s
}

func (m *memory) balances() ledger.Balances { return m.rows.Balances[m.merchant] }

func (m *memory) lastEvent() payment.Event {
	if len(m.rows.Events) == 0 {
		return payment.Event{}
	}
	return m.rows.Events[len(m.rows.Events)-1].Event
}

func (m *memory) fund(amount money.Cents) {
	m.opening += amount
	m.balances()[ledger.Available] += amount
	for i := range m.rows.Postings {
		if p := &m.rows.Postings[i]; p.Account == ledger.Available {
			p.BalanceAfter += amount
		}
	}
}

func (m *memory) request(reference string) payment.Payout {
	m.t.Helper()
	now := m.clock.Now()
	in := &store.NewPayout{Payout: payment.Payout{
		Merchant: m.merchant, ID: m.newID(), ReferenceID: reference, ExternalID: fmt.Sprint(reference, len(m.rows.Payouts)),
		Amount: amount, Status: payment.PayoutPending, Step: payment.StepQueued, Version: 1, Processor: coretest.BankName, PIXKeyType: "EMAIL",
		Approval: payment.ApprovalNone, Beneficiary: payment.Beneficiary{Name: "Maria", Document: "52998224725", PIXKey: "maria@example.com"},
		NextAt: now, CreatedAt: now, UpdatedAt: now,
	}}
	must(m, m.decide(func(n *store.Needs) { n.NewPayout(in); n.Balances(m.merchant) }, func(_ *store.Loaded, c *store.Changes) error {
		return c.Post(m.merchant, in.Payout.ID, ledger.HoldPayout(in.Payout.Amount, in.Payout.Fee))
	}))
	return in.Payout
}

func (m *memory) cancel(p payment.Payout) {
	m.t.Helper()
	must(m, m.decide(func(n *store.Needs) { n.Payout(p.Merchant, p.ID); n.Balances(p.Merchant) }, func(l *store.Loaded, c *store.Changes) error {
		p, _ := l.Payout(p.Merchant, p.ID)
		outgoing.Finish(&p)
		_, err := transition.Payout(l, c, &p, payment.OnCancel, ledger.ReleasePayout(p.Amount, p.Fee))
		return err
	}))
}

func (m *memory) change(p payment.Payout, to func(p *payment.Payout)) payment.Payout {
	m.t.Helper()
	must(m, m.decide(func(n *store.Needs) { n.Payout(p.Merchant, p.ID) }, func(l *store.Loaded, c *store.Changes) error {
		stored, _ := l.Payout(p.Merchant, p.ID)
		to(&stored)
		c.SetPayout(stored)
		return nil
	}))
	return *m.row(p)
}

func (m *memory) addSend(s store.Send) {
	m.t.Helper()
	must(m, m.decide(func(n *store.Needs) {}, func(_ *store.Loaded, c *store.Changes) error {
		c.AddSend(s)
		return nil
	}))
}

func (m *memory) moveAway(p payment.Payout) { m.row(p).Processor = "other" }

// declareDead does as [store.Tx.ReleaseNode].
func (m *memory) declareDead() {
	for i := range m.rows.Payouts {
		p := &m.rows.Payouts[i].Payout
		if p.ClaimedBy != m.process {
			continue
		}
		p.ClaimedBy, p.NextAt = payment.ID{}, m.clock.Now()
		if p.Step == payment.StepIntent {
			p.Step = payment.StepUnknown
		}
		for j := range m.rows.Sends {
			if s := &m.rows.Sends[j]; s.Payout == p.ID && s.Outcome == store.SendIntent {
				s.Outcome = store.SendUnknown
			}
		}
	}
	m.process = m.newID()
	m.rows.Nodes = []store.Node{{ID: m.process}}
}

func (m *memory) restore() { m.restoredAt = m.clock.Now() }

func (m *memory) restoredLongAgo() {}

// wantProven checks that the rows are consistent, as the command verify does.
func (m *memory) wantProven() {
	m.t.Helper()
	sums := ledger.Balances{ledger.Available: m.opening}
	for _, p := range m.rows.Postings {
		if sums[p.Account] += p.Amount; sums[p.Account] != p.BalanceAfter {
			m.t.Errorf("posting %+v: the balance is %d", p, sums[p.Account])
		}
	}
	var hold money.Cents
	for _, v := range m.rows.Payouts {
		p, undecided := v.Payout, 0
		final := p.Status != payment.PayoutPending && p.Status != payment.PayoutProcessing
		if !final {
			hold += p.Amount + p.Fee
		}
		if final != (p.Step == payment.StepDone) {
			m.t.Errorf("it is %s/%s", p.Status, p.Step)
		}
		for _, s := range m.rows.Sends {
			if s.Payout == p.ID && s.Outcome.Undecided() {
				undecided++
			}
		}
		if undecided > 1 {
			m.t.Errorf("%d undecided sends", undecided)
		}
	}
	for _, account := range m.balances().Accounts() {
		if got := m.balances()[account]; got != sums[account] {
			m.t.Errorf("%s is %d, and its postings sum up to %d", account, got, sums[account])
		}
	}
	if got := m.balances()[ledger.Held]; got != hold {
		m.t.Errorf("%d held, want %d", got, hold)
	}
}
