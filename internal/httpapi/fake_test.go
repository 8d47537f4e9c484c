package httpapi_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/limits"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// gateway is a simple gateway in memory: orders and their references, without
// ledger, processors and disk.
type gateway struct {
	env env.Env

	mu            sync.Mutex
	merchants     map[payment.ID]store.Merchant
	credentials   map[string]store.Credential
	payinRows     []storedPayin // oldest first
	charges       map[payment.ID][]store.Charge
	payoutRows    []storedPayout
	refundRows    []storedRefund
	disputeRows   []store.DefendedDispute
	disputeFilter store.DisputeFilter
	batchRows     []storedBatch
	scanned       payment.ID // the answer of ScanFrom
	scannedOf     payment.Operation
	refundFilter  store.Filter // of the last list of refunds
	events        []payment.Event
	attempts      map[int64][]store.Attempt
	available     money.Cents
	statement     int64         // rows
	history       int64         // of the database
	kept          int64         // rows, by the last restore
	reads         int           // of credentials
	err           error         // if set, the error of every operation and read
	begun         chan struct{} // if set, each operation sends to it at its start, and waits for proceed
	proceed       chan struct{} // to be closed
	panics        bool
	full          time.Duration // if set, no new work is admitted, with this Retry-After
}

type storedPayin struct {
	payment.Payin
	personal    payment.PersonalData
	fingerprint wire.Fingerprint
}

type storedPayout struct {
	payment.Payout
	err         error // of reading it by its id
	fingerprint wire.Fingerprint
}

func newGateway(w env.Env) *gateway {
	return &gateway{
		env: w, merchants: map[payment.ID]store.Merchant{}, credentials: map[string]store.Credential{},
		attempts: map[int64][]store.Attempt{}, available: 100_000,
	}
}

func (g *gateway) enter() error {
	if g.begun != nil {
		g.begun <- struct{}{}
		<-g.proceed
	}
	if g.panics {
		panic("a bug that knows 529.982.247-25")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

func (g *gateway) Admit(payment.ID) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.full == 0 {
		return nil
	}
	return problem.New(problem.Overloaded, "Full.").WithRetryAfter(g.full)
}

func (g *gateway) ExternalID(m *store.Merchant, op payment.Operation, reference string) string {
	return (&payment.ExternalIDs{}).New(m.Number, m.ID, op, reference)
}

// compare is the error of the use cases for two requests under one reference.
func compare(a, b wire.Fingerprint) error {
	differing := a.Differing(b)
	if len(differing) == 0 {
		return nil
	}
	e := problem.New(problem.ReferenceConflict, "Used.")
	for _, name := range differing {
		e = e.WithFields(problem.FieldError{Field: name, Code: problem.CodeNotAllowed, Detail: "differs"})
	}
	return e
}

// payins is the gateway's use cases of pay-ins.
type payins struct{ *gateway }

func (g payins) Create(ctx context.Context, m store.Merchant, r *wire.PayinRequest) (payment.Payin, bool, error) {
	if err := g.enter(); err != nil {
		return payment.Payin{}, false, err
	}
	if p, found, err := g.Replay(ctx, m, r); found {
		return p, true, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.env.Clock.Now().Truncate(time.Millisecond)
	p := storedPayin{personal: r.Personal, fingerprint: r.Fingerprint, Payin: payment.Payin{
		Merchant: m.ID, ID: g.env.IDs.NewID(now), ExternalID: g.ExternalID(&m, r.Operation(), r.ReferenceID.V),
		ReferenceID: r.ReferenceID.V, Method: payment.Method(r.Method.V), Amount: money.Cents(r.Amount.V),
		Status: payment.PayinPending, Version: 1, WebhookURL: r.WebhookURL.V,
		Details: payment.PayinDetails{
			Origin: r.Origin(), Description: r.Description.V, Metadata: r.Metadata.V, ReturnURL: r.ReturnURL.V, IdempotencyKey: r.IdempotencyKey,
			DueDate: r.Due(now), Card: &payment.CardDetail{},
		},
		ExpiresAt: r.ExpiresAt(now), CreatedAt: now, UpdatedAt: now,
	}}
	if p.Method == payment.PIX {
		p.Details.PIX = &payment.PIXDetail{QRCode: "000201", TxID: p.ExternalID, ExpiresAt: p.ExpiresAt}
	}
	g.payinRows = append(g.payinRows, p)
	return p.Payin, false, nil
}

func (g payins) Replay(_ context.Context, m store.Merchant, r *wire.PayinRequest) (payment.Payin, bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range g.payinRows {
		if p.Merchant == m.ID && p.ReferenceID == r.ReferenceID.V && p.Details.Origin == r.Origin() {
			return p.Payin, true, compare(r.Fingerprint, p.fingerprint)
		}
	}
	return payment.Payin{}, false, nil
}

func (g payins) Cancel(_ context.Context, merchant, id payment.ID) (payment.Payin, error) {
	if err := g.enter(); err != nil {
		return payment.Payin{}, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range g.payinRows {
		p := &g.payinRows[i]
		switch {
		case p.Merchant != merchant || p.ID != id:
			continue
		case p.Status == payment.PayinPending:
			p.Status, p.Version = payment.PayinCanceled, p.Version+1
		case p.Status != payment.PayinCanceled:
			return payment.Payin{}, problem.New(problem.InvalidState, "No.")
		}
		return p.Payin, nil
	}
	return payment.Payin{}, problem.New(problem.NotFound, "None.")
}

// payouts is the gateway's use cases of payouts.
type payouts struct{ *gateway }

func (g payouts) Request(ctx context.Context, m store.Merchant, r *wire.PayoutRequest) (payment.Payout, bool, error) {
	if err := g.enter(); err != nil {
		return payment.Payout{}, false, err
	}
	if p, found, err := g.Replay(ctx, m, r.ReferenceID.V, r.Fingerprint); found {
		return p, true, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	amount := money.Cents(r.Amount.V)
	if amount > g.available {
		return payment.Payout{}, false, problem.New(problem.InsufficientBalance, "Not enough.")
	}
	g.available -= amount
	now := g.env.Clock.Now().Truncate(time.Millisecond)
	p := storedPayout{fingerprint: r.Fingerprint, Payout: payment.Payout{
		Merchant: m.ID, ID: g.env.IDs.NewID(now), ExternalID: g.ExternalID(&m, payment.OperationPayout, r.ReferenceID.V),
		ReferenceID: r.ReferenceID.V, Amount: amount, Status: payment.PayoutPending, Version: 1, PIXKeyType: r.PIXKeyType.V,
		WebhookURL: r.WebhookURL.V, Approval: payment.ApprovalNone, CreatedAt: now, UpdatedAt: now,
		Beneficiary: payment.Beneficiary{Name: r.BeneficiaryName.V, Document: r.BeneficiaryDocument.V, PIXKey: r.PIXKey.V},
	}}
	g.payoutRows = append(g.payoutRows, p)
	return p.Payout, false, nil
}

func (g payouts) Replay(_ context.Context, m store.Merchant, reference string, fp wire.Fingerprint) (payment.Payout, bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range g.payoutRows {
		if p.Merchant == m.ID && p.ReferenceID == reference {
			return p.Payout, true, compare(fp, p.fingerprint)
		}
	}
	return payment.Payout{}, false, nil
}

func (g payouts) Cancel(ctx context.Context, merchant, id payment.ID) (payment.Payout, error) {
	p, err := g.Payout(ctx, merchant, id)
	if err != nil {
		return p, problem.New(problem.NotFound, "None.")
	}
	p.Status = payment.PayoutCanceled
	return p, nil
}

func (g payouts) Approve(ctx context.Context, merchant, id payment.ID, _ actor.Author) (payment.Payout, error) {
	return g.Cancel(ctx, merchant, id)
}

func (g payouts) Reject(ctx context.Context, merchant, id payment.ID, _ actor.Author) (payment.Payout, error) {
	return g.Cancel(ctx, merchant, id)
}

func (g *gateway) LimitsUsed(context.Context, payment.ID, time.Time) (limits.Usage, error) {
	return limits.Usage{}, g.err
}

func (g *gateway) Redeliver(_ context.Context, _, _ payment.ID) error { return g.enter() }

func (g *gateway) Credential(_ context.Context, keyID string) (store.Credential, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reads++
	if c, ok := g.credentials[keyID]; ok {
		return c, g.err
	}
	return store.Credential{}, store.ErrNotFound
}

func (g *gateway) Merchant(_ context.Context, id payment.ID) (store.Merchant, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if m, ok := g.merchants[id]; ok {
		return m, nil
	}
	return store.Merchant{}, store.ErrNotFound
}

func (g *gateway) payin(merchant, id payment.ID) (storedPayin, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range g.payinRows {
		if p.Merchant == merchant && p.ID == id {
			return p, g.err
		}
	}
	return storedPayin{}, store.ErrNotFound
}

func (g *gateway) Payin(_ context.Context, merchant, id payment.ID) (payment.Payin, error) {
	p, err := g.payin(merchant, id)
	return p.Payin, err
}

func (g *gateway) PayinPersonal(_ context.Context, merchant, id payment.ID) (payment.PersonalData, error) {
	p, err := g.payin(merchant, id)
	return p.personal, err
}

func (g *gateway) PersonalOf(_ context.Context, merchant payment.ID, payins []payment.ID) (map[payment.ID]payment.PersonalData, error) {
	list := map[payment.ID]payment.PersonalData{}
	for _, id := range payins {
		p, err := g.payin(merchant, id)
		if err != nil {
			return nil, err
		}
		list[id] = p.personal
	}
	return list, nil
}

func (g *gateway) Charges(_ context.Context, _, payin payment.ID) ([]store.Charge, error) {
	return g.charges[payin], g.err
}

// selects reports whether a filter selects an order.
func selects(f store.Filter, id payment.ID, status, externalID string, at time.Time) bool {
	return (f.Status == "" || f.Status == status) && (len(f.Statuses) == 0 || slices.Contains(f.Statuses, status)) && (f.ExternalID == "" || f.ExternalID == externalID || f.PublicExternalID == externalID) &&
		!at.Before(f.CreatedFrom) && (f.CreatedTo.IsZero() || at.Before(f.CreatedTo)) &&
		(f.Before.IsZero() || slices.Compare(id[:], f.Before[:]) < 0)
}

func (g *gateway) Payins(_ context.Context, merchant payment.ID, f store.Filter) (list []payment.Payin, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range slices.Backward(g.payinRows) {
		if p.Merchant == merchant && selects(f, p.ID, string(p.Status), p.ExternalID, p.CreatedAt) &&
			(f.Method == "" || f.Method == p.Method) && len(list) < f.Limit {
			list = append(list, p.Payin)
		}
	}
	return list, g.err
}

func (g *gateway) Payout(_ context.Context, merchant, id payment.ID) (payment.Payout, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range g.payoutRows {
		if p.Merchant == merchant && p.ID == id {
			return p.Payout, p.err
		}
	}
	return payment.Payout{}, store.ErrNotFound
}

func (g *gateway) Payouts(_ context.Context, merchant payment.ID, f store.Filter) (list []payment.Payout, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range slices.Backward(g.payoutRows) {
		if p.Merchant == merchant && selects(f, p.ID, string(p.Status), p.ExternalID, p.CreatedAt) && len(list) < f.Limit {
			list = append(list, p.Payout)
		}
	}
	return list, g.err
}

func (g *gateway) ApprovalsOf(_ context.Context, _ payment.ID, payouts []payment.ID) (map[payment.ID]payment.Approvals, error) {
	counts := map[payment.ID]payment.Approvals{}
	for _, id := range payouts {
		counts[id] = payment.Approvals{Given: 1, Needed: 2}
	}
	return counts, g.err
}

func (g *gateway) ReceivableDays(_ context.Context, _ payment.ID, from, to time.Time) (list []store.ReceivableDay, err error) {
	for i, day := range []string{"2026-11-24T09:00:00Z", "2026-11-25T09:00:00Z"} {
		if at, _ := time.Parse(time.RFC3339, day); !at.Before(from) && at.Before(to) {
			list = append(list, store.ReceivableDay{SettlesAt: at, Amount: 9891, Count: int64(i + 1)})
		}
	}
	return list, nil
}

func (g *gateway) ReceivablesAt(_ context.Context, _ payment.ID, at time.Time, after payment.ID, limit int) (list []store.ReceivableOf, err error) {
	for i := byte(1); i <= 3 && len(list) < limit; i++ {
		if id := (payment.ID{i}); payment.CompareIDs(id, after) > 0 {
			r := store.Receivable{ID: id, Payin: payment.ID{9}, Installment: int(i), Gross: 100, Fee: 3, Taken: 2, SettlesAt: at}
			list = append(list, store.ReceivableOf{Receivable: r, ReferenceID: "r"})
		}
	}
	return list, nil
}

func (g *gateway) Balances(context.Context, payment.ID) (ledger.Balances, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return ledger.Balances{ledger.Available: g.available, ledger.Owed: -7}, g.err
}

// BalancesBefore implements [httpapi.BalanceReader]: before 2000 there was nothing.
func (g *gateway) BalancesBefore(_ context.Context, _ payment.ID, t time.Time) (ledger.Balances, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if t.Year() < 2000 {
		return ledger.Balances{}, g.err
	}
	return ledger.Balances{ledger.Available: g.available, ledger.Owed: -7}, g.err
}

// Statement implements [httpapi.StatementReader]: row i was posted at second i of the year
// 2000.
func (g *gateway) Statement(_ context.Context, _ payment.ID, f store.StatementFilter) (list []store.StatementRow, err error) {
	for n := f.After + 1; n <= f.To && len(list) < f.Limit; n++ {
		p, err := g.StatementNumber(context.Background(), payment.ID{}, n)
		if err != nil {
			return list, err
		}
		list = append(list, store.StatementRow{Posting: p, OrderType: payment.OperationPayin, ReferenceID: fmt.Sprintf("pedido %d, \"ção\"", n)})
	}
	return list, g.err
}

// StatementEnd implements [httpapi.StatementReader].
func (g *gateway) StatementEnd(context.Context, payment.ID) (int64, error) { return g.statement, g.err }

// StatementNumber implements [httpapi.StatementReader].
func (g *gateway) StatementNumber(_ context.Context, _ payment.ID, n int64) (store.Posting, error) {
	if n > g.statement {
		return store.Posting{}, store.ErrNotFound
	}
	return store.Posting{
		Entry: payment.ID{15: byte(n)}, Kind: ledger.Received, Account: ledger.Available, Amount: 5, BalanceAfter: money.Cents(5 * n),
		Subject: payment.ID{1}, CreatedAt: time.Date(2000, 1, 1, 0, 0, int(n), 0, time.UTC), Number: n,
	}, g.err
}

// StatementBefore implements [httpapi.StatementReader].
func (g *gateway) StatementBefore(_ context.Context, _ payment.ID, t time.Time) (n int64, err error) {
	for ; n < g.statement; n++ {
		p, err := g.StatementNumber(context.Background(), payment.ID{}, n+1)
		if err != nil || !p.CreatedAt.Before(t) {
			return n, err
		}
	}
	return n, g.err
}

// ContinueStatement implements [httpapi.StatementReader], for a database that was restored
// g.history times and kept g.kept rows.
func (g *gateway) ContinueStatement(_ context.Context, _ payment.ID, at store.EventPosition) (store.EventPosition, error) {
	if at.History != g.history {
		at.Number = min(at.Number, g.kept)
	}
	return store.EventPosition{History: g.history, Number: at.Number}, g.err
}

// Continue implements [EventReader] for a database that was never restored.
func (g *gateway) Continue(_ context.Context, _ payment.ID, at store.EventPosition) (store.EventPosition, error) {
	return at, nil
}

func (g *gateway) Events(_ context.Context, merchant payment.ID, after int64, limit int) (list []payment.Event, err error) {
	for _, e := range g.events {
		if e.Merchant == merchant && e.Number > after && len(list) < limit {
			list = append(list, e)
		}
	}
	return list, nil
}

func (g *gateway) Event(_ context.Context, merchant, id payment.ID) (payment.Event, error) {
	for _, e := range g.events {
		if e.Merchant == merchant && e.ID == id {
			return e, nil
		}
	}
	return payment.Event{}, store.ErrNotFound
}

func (g *gateway) Attempts(_ context.Context, _ payment.ID, number int64) ([]store.Attempt, error) {
	return g.attempts[number], nil
}

func (g *gateway) WebhookSecret(context.Context, payment.ID) (string, error) {
	return "whsec_c2VjcmV0", nil
}

// strict is a processor that requires valid check digits.
type strict struct{}

func (strict) Profile() processor.Profile {
	return processor.Profile{Name: "strict", ChecksDocuments: true}
}

// RedeliverRange implements [Events] for a gateway without events to send again.
func (g *gateway) RedeliverRange(context.Context, actor.Actor, payment.ID, *wire.RedeliverRequest) (int, error) {
	return 0, g.enter()
}

// EndpointOf implements [EndpointReader] for a gateway without endpoints.
func (g *gateway) EndpointOf(context.Context, payment.ID, payment.ID) (store.Endpoint, error) {
	return store.Endpoint{}, store.ErrNotFound
}

func (g *gateway) EndpointsOf(context.Context, payment.ID) ([]store.Endpoint, error) {
	return nil, g.err
}
