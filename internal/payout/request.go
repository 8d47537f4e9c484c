package payout

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/limits"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/outgoing"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/pricing"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// Request holds the money of a payout and queues it for sending, or finds the one
// that the same request created before (replayed). r has been validated. Errors:
// problem kinds reference_conflict, method_not_enabled, limit_exceeded, insufficient_balance,
// overloaded, and unavailable, also while a case stops the merchant's payouts.
func (s *Service) Request(ctx context.Context, m store.Merchant, r *wire.PayoutRequest) (p payment.Payout, replayed bool, err error) {
	op, err := s.NewRequestOp(m, r)
	if err != nil { // a payout that exists has its account already
		p, found, other := s.Replay(ctx, m, r.ReferenceID.V, r.Fingerprint)
		if other != nil || found {
			return p, found, other
		}
		return p, false, err
	}
	err = s.Writer.Do(ctx, op)
	if errors.Is(err, errElsewhere) {
		if op, err = s.newRequestOp(m, r, s.newPayout(&m, r, op.elsewhere, s.newIdentity())); err == nil {
			err = s.Writer.Do(ctx, op)
		}
	}
	if err != nil {
		return p, false, err
	}
	if !op.Fresh {
		return op.Payout, true, r.Fingerprint.Conflict(op.fingerprint)
	}
	s.Requested()
	return op.Payout, false, nil
}

// RequestOp is the operation that stores a new payout.
type RequestOp struct {
	in       *store.NewPayout
	limits   *limits.Payout
	approval store.Approval // its request, if the payout needs one
	frozen   *problem.Error // why new payouts are refused after a cold start; nil if they are not
	history  int64          // of the database, as of this process's last heartbeat; 0 if no start was cold
	proved   bool           // it was once proved to be a copy: transfers may have been found
	// elsewhere is the account of the found transfer, if it is not the payout's.
	elsewhere string
	announced []byte // the data of its event payout.created; nil if no endpoint asks for it

	// Payout is the order as it is stored: the new one, or the one that has its reference.
	// Fresh is false for the latter.
	Payout      payment.Payout
	Fresh       bool
	fingerprint wire.Fingerprint
}

// NewRequestOp builds the operation that stores the payout of r.
func (s *Service) NewRequestOp(m store.Merchant, r *wire.PayoutRequest) (*RequestOp, error) {
	if m.Damaged != nil { // its limits may have been lifted
		return nil, store.Problem(m.Damaged)
	}
	account, _, err := processor.Choose(s.Processors, m.Routes, s.newOrder(&m, r))
	if err != nil {
		return nil, err
	}
	return s.newRequestOp(m, r, s.newPayout(&m, r, account, s.newIdentity()))
}

// newOrder has the data of a payout by which its account is chosen.
func (s *Service) newOrder(m *store.Merchant, r *wire.PayoutRequest) processor.NewOrder {
	return processor.NewOrder{
		Merchant: m.ID, Operation: payment.OperationPayout, Method: payment.PIX, Amount: money.Cents(r.Amount.V),
		ExternalID: s.Store.ExternalID(m, payment.OperationPayout, r.ReferenceID.V),
	}
}

// identity is the part of a new payout that is set before its contents: its batch, which is zero if
// it has none, its id and its time.
type identity struct {
	batch, id payment.ID
	created   time.Time
}

// newIdentity is the identity of a new payout without a batch.
func (s *Service) newIdentity() identity {
	now := s.Env.Clock.Now().Truncate(time.Millisecond)
	return identity{id: s.Env.IDs.NewID(now), created: now}
}

func (s *Service) newRequestOp(m store.Merchant, r *wire.PayoutRequest, p payment.Payout) (*RequestOp, error) {
	in, err := s.Store.NewPayout(p, r.Fingerprint, r.IdempotencyKey)
	op := &RequestOp{in: in, limits: &m.Limits.Payout, approval: approvalRequest(&m, &p, r), frozen: s.frozen(&m, p.Processor), history: s.History(), proved: !s.ProvedAt().IsZero(), Payout: p}
	if err == nil && s.Wanted != nil && s.Wanted(m.ID, payment.EventPayoutCreated) {
		op.announced = wire.UndecidedPayout(&p, payment.Approvals{Needed: op.approval.Needed}, false)
	}
	return op, err
}

// approvalRequest is the first row of the record of a payout that needs approval.
func approvalRequest(m *store.Merchant, p *payment.Payout, r *wire.PayoutRequest) store.Approval {
	return store.Approval{
		Merchant: p.Merchant, Payout: p.ID, Action: store.ApprovalRequested, Actor: r.Actor, Needed: m.Limits.Payout.ApprovalsOf(p.Amount),
	}
}

// frozen is the refusal of a new payout because of AwaitedAccounts, or because its account is frozen;
// nil if nothing is.
func (s *Service) frozen(m *store.Merchant, account string) *problem.Error {
	if s.History() == 0 {
		return nil
	}
	list := AwaitedAccounts(s.Processors, m, s.RestoredAt(), s.Frozen)
	if s.Frozen(account) && !slices.Contains(list, account) {
		list = append(list, account)
	}
	if len(list) == 0 {
		return nil
	}
	return processor.ErrFrozen("Payouts", s.Processors, list, s.RestoredAt(), s.Env.Clock.Now())
}

// AwaitedAccounts are the accounts, sorted, because of which new payouts of a merchant are refused
// after a restore: their transfers have not been read, and the same request may have been paid
// there. All accounts from before the restore count, because the merchant's routes may have
// changed. The accounts of its routes always count: the backup may lack an account that was added
// again since.
func AwaitedAccounts(processors processor.Accounts, m *store.Merchant, restoredAt time.Time, frozen func(account string) bool) []string {
	accounts := processors.AddedUntil(restoredAt, m.ID)
	for _, r := range payment.RoutesOf(m.Routes, payment.OperationPayout, payment.PIX) {
		accounts = append(accounts, r.Account)
	}
	slices.Sort(accounts)
	return slices.DeleteFunc(slices.Compact(accounts), func(id string) bool { return !frozen(id) })
}

func (s *Service) newPayout(m *store.Merchant, r *wire.PayoutRequest, account string, at identity) payment.Payout {
	now := at.created
	p := payment.Payout{
		Merchant: m.ID, ID: at.id, Batch: at.batch, ReferenceID: r.ReferenceID.V,
		ExternalID: s.Store.ExternalID(m, payment.OperationPayout, r.ReferenceID.V),
		Amount:     money.Cents(r.Amount.V), Status: payment.PayoutPending, Step: payment.StepQueued, Version: 1,
		Processor: account, PIXKeyType: r.PIXKeyType.V, WebhookURL: r.WebhookURL.V, Approval: payment.ApprovalNone,
		Beneficiary: payment.Beneficiary{Name: r.BeneficiaryName.V, Document: r.BeneficiaryDocument.V, PIXKey: r.PIXKey.V},
		NextAt:      now, CreatedAt: now, UpdatedAt: now,
	}
	if terms := payment.PricesOf(m.Prices, payment.PayoutPrice); terms != nil {
		p.Fee = pricing.Fee(payment.TermsFor(terms, 1), p.Amount)
	}
	if r.NormalKey != r.PIXKey.V {
		p.Beneficiary.NormalKey = r.NormalKey
	}
	if m.Limits.Payout.ApprovalsOf(p.Amount) > 0 {
		p.Approval, p.Step, p.NextAt = payment.ApprovalRequired, payment.StepApproval, payment.ApprovalEnds(&p)
	}
	if p.Counters = m.Limits.Payout.Counters(now); p.Counters&payment.ByKey != 0 {
		p.KeyHash = s.Store.KeyHash(m.ID, p.Beneficiary.Key())
	}
	return p
}

// Merchant implements [write.Operation].
func (v *RequestOp) Merchant() payment.ID { return v.in.Payout.Merchant }

// Class implements [write.Operation].
func (v *RequestOp) Class() commit.Class { return commit.Interactive }

// Needs implements [write.Operation].
func (v *RequestOp) Needs(n *store.Needs) {
	n.InsertPayout(v.in)
	n.Balances(v.in.Payout.Merchant)
	n.Counters(&v.in.Payout)
	if v.proved {
		n.FoundTransfer(v.in.Payout.Merchant, v.in.Payout.ExternalID)
		n.ExpectDeliveries(v.in.Payout.Merchant, 1)
	}
}

// Decide picks the payout that has the reference: this one, or an earlier one. If a new one's money
// is available, it is held.
func (v *RequestOp) Decide(l *store.Loaded, c *store.Changes) error {
	in := &v.in.Payout
	var ok bool
	if v.Payout, v.fingerprint, ok = l.PayoutByExternalID(in.Merchant, in.ExternalID); !ok {
		v.Fresh, v.elsewhere = false, ""
		why := c.Refusal(in.Merchant, in.ExternalID) // of the same request, in the same commit
		if errors.Is(why, errElsewhere) {
			found, _ := l.FoundTransfer(in.Merchant, in.ExternalID)
			v.elsewhere = found.Processor
		}
		return cmp.Or(why, notFound(in.Merchant, in.ID))
	}
	// An earlier run whose commit was unknown may have stored this payout. Then v.Fresh is
	// true, so the merchant gets "created", and l.Inserted is false, so the money is not
	// held twice.
	v.Fresh, v.elsewhere = v.Payout.ID == in.ID, ""
	found, adopts := l.FoundTransfer(in.Merchant, in.ExternalID)
	adopts = adopts && found.AdoptedAt.IsZero()
	balances := l.Balances(in.Merchant)
	available := balances[ledger.Available]
	if adopts && !found.WrittenOff {
		available += max(0, found.Amount+balances[ledger.Owed])
	}
	refuse := func(why error) error {
		c.ReleaseReference(v.in, why)
		return why
	}
	switch {
	case !l.Inserted(in.ID): // stored earlier, with its hold
		return nil
	case l.PayoutsStopped(in.Merchant):
		return refuse(problem.New(problem.Unavailable, "The operator has stopped this merchant's payouts until a case is resolved. The referenceId remains unused.").
			WithRetryAfter(stoppedRetryAfter))
	case v.frozen != nil:
		return refuse(v.frozen)
	case l.HistoryOf(in.Merchant).Number > v.history: // another process has found that it was restored
		return refuse(errBegun)
	case adopts && found.Processor != in.Processor:
		v.elsewhere = found.Processor
		return refuse(errElsewhere)
	case adopts && in.Amount != found.Total: // only money that left is exempt from limits and approval
		return refuse(errAmountMismatch)
	}
	used := l.Usage(in)
	switch exceeded := v.limits.Exceeded(in.Amount, in.CreatedAt, &used); {
	case exceeded != "" && !adopts: // else its money has left
		return refuse(limitExceeded(exceeded))
	case available < in.Amount+in.Fee:
		return refuse(insufficientBalance())
	}
	if v.announced != nil { // to endpoints only: its creator has the answer
		c.AddEvent(payment.Event{Merchant: in.Merchant, Type: payment.EventPayoutCreated, Subject: in.ID, Version: in.Version}, v.announced, "")
	}
	if adopts {
		return v.adopt(l, c, found)
	}
	c.CountPayout(in)
	if in.Approval == payment.ApprovalRequired {
		c.AddApproval(v.approval)
	}
	return c.Post(in.Merchant, in.ID, ledger.HoldPayout(in.Amount, in.Fee))
}

// stoppedRetryAfter is the Retry-After of a request while payouts are stopped: a case must
// be resolved first.
const stoppedRetryAfter = 5 * time.Minute

// adopt takes back the entry of a found transfer. The payout that now holds its money is looked up,
// and completes with that transfer. It is PROCESSING from the beginning, so that it cannot be
// canceled: its money has left.
func (v *RequestOp) adopt(l *store.Loaded, c *store.Changes, found store.FoundTransfer) error {
	if found.Amount > 0 { // else it came back
		e := ledger.AdoptPayout(found.Processor, l.Balances(found.Merchant)[ledger.Owed], found.Amount)
		if found.WrittenOff { // the merchant has its money already
			e = ledger.RecoverPayout(found.Processor, found.Amount)
		}
		if err := c.Post(found.Merchant, found.ID, e); err != nil {
			return err
		}
	}
	found.WrittenOff = false
	c.AdoptFoundTransfer(found)
	c.CloseCases(found.Merchant, found.ID, store.CasePayoutFound, store.ResolvedByRequest)
	p := v.in.Payout
	p.Approval = payment.ApprovalNone // its money has left
	c.CountPayout(&p)
	if err := c.Post(p.Merchant, p.ID, ledger.HoldPayout(p.Amount, p.Fee)); err != nil {
		return err
	}
	if err := outgoing.Adopt(l, c, &p, &found); err != nil {
		return err
	}
	v.Payout = p // the answer shows the stored payout
	return nil
}

// errBegun means that another process has found a restore, since this one's last heartbeat.
var errBegun = problem.New(problem.Unavailable, "The database was just restored from a backup. The referenceId remains unused. Send the same request again later.").WithRetryAfter(begunRetry)

// begunRetry is the Retry-After of a request that comes before this process knows of a restore.
const begunRetry = 10 * time.Second

var errAmountMismatch = problem.New(problem.ReferenceConflict, "This referenceId was used before the database was restored from a backup, for a payout of another amount.")

// errElsewhere means that the request was paid before the restore, at another account.
var errElsewhere = errors.New("payout: its transfer was found at another account")

func insufficientBalance() error {
	return problem.New(problem.InsufficientBalance, "The available balance does not cover this payout. The referenceId remains unused.")
}

func limitExceeded(limit string) error {
	return problem.New(problem.LimitExceeded, "This payout exceeds a limit of the merchant. The referenceId remains unused.").WithLimit(limit)
}

// Replay finds the payout of a reference if the repeated request has a form that would be rejected
// today. Errors: problem kind reference_conflict.
func (s *Service) Replay(ctx context.Context, m store.Merchant, reference string, f wire.Fingerprint) (p payment.Payout, found bool, err error) {
	p, first, err := s.Store.PayoutByExternalID(ctx, m.ID, s.Store.ExternalID(&m, payment.OperationPayout, reference))
	found, err = f.Replay(first, store.Problem(err))
	return p, found, err
}
