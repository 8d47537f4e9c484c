package coretest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/outgoing"
	"github.com/porteira/porteira/internal/payin"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/payout"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/transition"
	"github.com/porteira/porteira/internal/write"
)

// Memory decides operations without a database.
type Memory struct {
	T        *testing.T
	Clock    *env.VirtualClock
	Env      env.Env
	Merchant store.Merchant
	Opening  money.Cents // available before the postings
	Node     payment.ID  // which claims
	Rows     store.Given
	Store    *store.Store // without a database
	Payins   *payin.Service
	Payouts  *payout.Service
}

// NewMemory returns rows with one merchant, which has an amount of available money.
func NewMemory(t *testing.T, opening money.Cents) *Memory {
	t.Helper()
	e, clock := env.Virtual(Start, 1)
	m := &Memory{T: t, Clock: clock, Env: e, Opening: opening}
	m.Merchant = store.Merchant{ID: m.NewID(), Number: 1, Name: "Loja", City: "SAO PAULO", Routes: payment.AllRoutes(BankName)}
	m.Node = m.NewID()
	m.Rows = store.Given{
		NewID: m.NewID, Nodes: []store.Node{{ID: m.Node}}, Merchants: []store.Merchant{m.Merchant},
		Balances: map[payment.ID]ledger.Balances{m.Merchant.ID: {ledger.Available: opening}},
	}
	m.Store = m.Rows.Store()
	m.Payins = payin.New(payin.Options{Store: m.Store, Env: e, Links: func(*payment.Payin) payment.Links { return payment.Links{} }})
	m.Payouts = payout.New(payout.Options{Store: m.Store, Env: e, RestoredAt: zeroTime, ProvedAt: func() time.Time { return m.Rows.Installation.ProvedAt }, Epoch: zero, History: zero, Frozen: func(string) bool { return false }})
	return m
}

// NewID makes an id of now.
func (m *Memory) NewID() payment.ID { return m.Env.IDs.NewID(m.Clock.Now()) }

// Must ends the test if err is not nil.
func (m *Memory) Must(err error) {
	m.T.Helper()
	if err != nil {
		m.T.Fatal(err)
	}
}

func (m *Memory) apply(n *store.Needs, decide func(*store.Loaded, *store.Changes) error) error {
	m.Rows.Now = m.Clock.Now()
	after, err := m.Rows.Decide(n, decide)
	m.Rows = after
	return err
}

// Commit commits an operation.
func (m *Memory) Commit(op write.Operation) error { return m.CommitAll([]write.Operation{op})[0] }

// CommitAll commits operations as one batch, and returns the refusal of each.
func (m *Memory) CommitAll(ops []write.Operation) []error {
	m.T.Helper()
	var n store.Needs
	for _, op := range ops {
		op.Needs(&n)
	}
	refusals := make([]error, len(ops))
	m.Must(m.apply(&n, func(l *store.Loaded, c *store.Changes) error {
		for i, op := range ops {
			refusals[i] = store.Problem(op.Decide(l, c))
		}
		return nil
	}))
	return refusals
}

// Apply makes changes, or none if change returns an error, which is returned.
func (m *Memory) Apply(needs func(n *store.Needs), change func(l *store.Loaded, c *store.Changes) error) error {
	var n store.Needs
	needs(&n)
	return m.apply(&n, change)
}

// Change makes changes that no operation makes.
func (m *Memory) Change(needs func(n *store.Needs), change func(l *store.Loaded, c *store.Changes) error) {
	m.T.Helper()
	m.Must(m.Apply(needs, change))
}

func (m *Memory) snapshot() snapshot {
	all := newSnapshot()
	for i, table := range tables {
		for _, stored := range m.Rows.Rows(table.name) {
			all.add(i, stored, m.Clock.Now(), m.Node)
		}
	}
	return all
}

// Decide is [Gateway.Decide].
func (m *Memory) Decide(op write.Operation) Decision { m.T.Helper(); return decide(m.T, m, op) }

// WantDecision is [Gateway.WantDecision].
func (m *Memory) WantDecision(op write.Operation, changes, again string) {
	m.T.Helper()
	wantDecision(m.T, m, op, changes, again)
}

// WantRefusal is [Gateway.WantRefusal].
func (m *Memory) WantRefusal(op write.Operation, kind problem.Kind) {
	m.T.Helper()
	wantRefusal(m.T, m, op, kind)
}

// Balances are the merchant's accounts.
func (m *Memory) Balances() ledger.Balances { return m.Rows.Balances[m.Merchant.ID] }

// Payin adds a Pix pay-in of 100.00 that expires in an hour, with its charge.
func (m *Memory) Payin(reference, webhookURL string) payment.Payin {
	now := m.Clock.Now()
	p := payment.Payin{
		Merchant: m.Merchant.ID, ID: m.NewID(), ReferenceID: reference, ExternalID: m.ExternalID(payment.OperationPayin, reference),
		Method: payment.PIX, Amount: 100_00, Status: payment.PayinPending, Version: 2, Processor: BankName, WebhookURL: webhookURL,
		Details:   payment.PayinDetails{PIX: &payment.PIXDetail{QRCode: "code"}},
		ExpiresAt: now.Add(time.Hour), CreatedAt: now, UpdatedAt: now,
	}
	m.Rows.Payins = append(m.Rows.Payins, store.GivenPayin(p, []byte(reference)))
	return p
}

// ExternalID is the external id of an order of the merchant.
func (m *Memory) ExternalID(op payment.Operation, reference string) string {
	return m.Store.ExternalID(&m.Merchant, op, reference)
}

// StoredPayin is the row of a pay-in.
func (m *Memory) StoredPayin(id payment.ID) *payment.Payin {
	i := slices.IndexFunc(m.Rows.Payins, func(v store.NewPayin) bool { return v.Payin.ID == id })
	return &m.Rows.Payins[i].Payin
}

// Payout adds a payout whose money is held.
func (m *Memory) Payout(reference string, amount money.Cents) payment.Payout {
	m.T.Helper()
	now := m.Clock.Now()
	p := payment.Payout{
		Merchant: m.Merchant.ID, ID: m.NewID(), ReferenceID: reference, ExternalID: m.ExternalID(payment.OperationPayout, reference),
		Amount: amount, Status: payment.PayoutPending, Step: payment.StepQueued, Version: 1, Processor: BankName, PIXKeyType: "EMAIL",
		Approval: payment.ApprovalNone, Beneficiary: payment.Beneficiary{Name: "Maria", Document: "52998224725", PIXKey: "maria@example.com"},
		NextAt: now, CreatedAt: now, UpdatedAt: now,
	}
	in := store.GivenPayout(p, fmt.Appendf(nil, "%s %d", reference, amount))
	m.Change(func(n *store.Needs) { n.InsertPayout(&in); n.Balances(p.Merchant) }, func(_ *store.Loaded, c *store.Changes) error {
		return c.Post(p.Merchant, p.ID, ledger.HoldPayout(amount, 0))
	})
	return p
}

// StoredPayout is the row of a payout.
func (m *Memory) StoredPayout(id payment.ID) *payment.Payout {
	i := slices.IndexFunc(m.Rows.Payouts, func(v store.NewPayout) bool { return v.Payout.ID == id })
	return &m.Rows.Payouts[i].Payout
}

// MovePayout moves a payout through a cell of its table, to a step.
func (m *Memory) MovePayout(id payment.ID, on payment.Trigger, step payment.PayoutStep, entries ...ledger.Entry) {
	m.T.Helper()
	merchant := m.Merchant.ID
	m.Change(func(n *store.Needs) { n.Payout(merchant, id); n.Balances(merchant) }, func(l *store.Loaded, c *store.Changes) error {
		p, _ := l.Payout(merchant, id)
		if outgoing.Finish(&p); step != payment.StepDone {
			p.Step = step
		}
		moved, err := transition.Payout(l, c, &p, on, entries...)
		if !moved {
			m.T.Errorf("a payout does not move from %s by %s", p.Status, on)
		}
		return err
	})
}

// Spend pays available money out.
func (m *Memory) Spend(amount money.Cents) {
	m.T.Helper()
	p := m.Payout(fmt.Sprint("spend ", amount), amount)
	m.MovePayout(p.ID, payment.OnSend, payment.StepIntent)
	m.MovePayout(p.ID, payment.OnComplete, payment.StepDone, ledger.PayPayout(BankName, amount, 0))
}

func zeroTime() time.Time { return time.Time{} }

func zero() int64 { return 0 }
