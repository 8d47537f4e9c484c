package payout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
	"github.com/porteira/porteira/internal/write"
)

// RequestBatch holds the money of all payouts of a batch and queues them for sending, or does so
// for none. Or it finds the batch that the same request created before (replayed). r has been
// validated. Errors: as of Request, naming one item of the batch.
//
// One commit holds the complete batch. It is a transaction of its own: on PostgreSQL only the
// merchant's own payouts wait for it.
func (s *Service) RequestBatch(ctx context.Context, m store.Merchant, r *wire.PayoutBatchRequest) (b payment.PayoutBatch, replayed bool, err error) {
	if b, replayed, err = s.ReplayBatch(ctx, m, r); err != nil || replayed {
		return b, replayed, err
	}
	b, payouts, err := s.newBatch(&m, r)
	if err != nil {
		return b, false, err
	}
	if err = s.refuseEarly(ctx, &m, payouts); err != nil {
		// The same request may have taken the money and the references just now.
		if b, replayed, other := s.ReplayBatch(ctx, m, r); other != nil || replayed {
			return b, replayed, other
		}
		return b, false, err
	}
	op, err := s.newBatchOp(m, r, b, payouts)
	if err != nil {
		return b, false, err
	}
	err = s.Writer.All(ctx, []write.Operation{op})[0]
	if errors.Is(err, errElsewhere) {
		if err = s.moveItems(m, r, op); err == nil {
			err = s.Writer.All(ctx, []write.Operation{op})[0]
		}
	}
	if errors.Is(err, errBatchExists) { // another request with the reference was faster
		return s.ReplayBatch(ctx, m, r)
	}
	if err != nil {
		return b, false, err
	}
	s.Requested()
	return op.batch, false, nil
}

// ReplayBatch finds the batch of an earlier request. Errors: problem kind
// reference_conflict.
func (s *Service) ReplayBatch(ctx context.Context, m store.Merchant, r *wire.PayoutBatchRequest) (b payment.PayoutBatch, found bool, err error) {
	b, first, err := s.Store.PayoutBatchByExternalID(ctx, m.ID, s.batchExternalID(&m, r))
	found, err = r.Fingerprint.Replay(first, store.Problem(err))
	return b, found, err
}

func (s *Service) batchExternalID(m *store.Merchant, r *wire.PayoutBatchRequest) string {
	return s.Store.ExternalID(m, payment.OperationPayoutBatch, r.ReferenceID.V)
}

// batchOp is the operation that stores a batch with its payouts.
type batchOp struct {
	batch       payment.PayoutBatch
	fingerprint []byte
	items       []*RequestOp
	// elsewhere are the accounts of found transfers of items, by their position.
	elsewhere map[int]string
}

// newBatch is the batch of r with its payouts.
func (s *Service) newBatch(m *store.Merchant, r *wire.PayoutBatchRequest) (payment.PayoutBatch, []payment.Payout, error) {
	if m.Damaged != nil { // its limits may have been lifted
		return payment.PayoutBatch{}, nil, store.Problem(m.Damaged)
	}
	now := s.Env.Clock.Now().Truncate(time.Millisecond)
	b := payment.PayoutBatch{
		Merchant: m.ID, ID: s.Env.IDs.NewID(now), ExternalID: s.batchExternalID(m, r), ReferenceID: r.ReferenceID.V,
		Count: int64(len(r.Items)), Version: 1, CreatedAt: now, UpdatedAt: now,
		Counts: map[payment.PayoutStatus]int64{payment.PayoutPending: int64(len(r.Items))},
	}
	payouts := make([]payment.Payout, len(r.Items))
	for i, item := range r.Items {
		at := identity{batch: b.ID, id: s.Env.IDs.NewID(now), created: now}
		account, _, err := processor.Choose(s.Processors, m.Routes, s.newOrder(m, item))
		if err != nil {
			return b, nil, ofItem(i, err)
		}
		payouts[i] = s.newPayout(m, item, account, at)
		if b.First.IsZero() || payment.CompareIDs(at.id, b.First) < 0 {
			b.First = at.id
		}
		if payment.CompareIDs(at.id, b.Last) > 0 {
			b.Last = at.id
		}
		b.Amount += payouts[i].Amount
	}
	return b, payouts, nil
}

// newBatchOp builds the operation that stores a batch with its payouts.
func (s *Service) newBatchOp(m store.Merchant, r *wire.PayoutBatchRequest, b payment.PayoutBatch, payouts []payment.Payout) (*batchOp, error) {
	op := &batchOp{batch: b, fingerprint: r.Fingerprint, items: make([]*RequestOp, len(payouts))}
	for i := range payouts {
		item, err := s.newRequestOp(m, r.Items[i], payouts[i])
		if err != nil {
			return nil, ofItem(i, err)
		}
		op.items[i] = item
	}
	return op, nil
}

// moveItems builds the items again whose transfers were found at another account, after a restore,
// for that account.
func (s *Service) moveItems(m store.Merchant, r *wire.PayoutBatchRequest, op *batchOp) error {
	for i, account := range op.elsewhere {
		p := &op.items[i].in.Payout
		item, err := s.newRequestOp(m, r.Items[i], s.newPayout(&m, r.Items[i], account, identity{p.Batch, p.ID, p.CreatedAt}))
		if err != nil {
			return ofItem(i, err)
		}
		op.items[i] = item
	}
	return nil
}

// refuseEarly refuses a batch that the commit would refuse at present, before its rows are sealed
// and inserted: that work would be lost, and would delay others. After a restore it refuses none,
// because found transfers give money back, which only the commit knows.
func (s *Service) refuseEarly(ctx context.Context, m *store.Merchant, payouts []payment.Payout) error {
	if !s.ProvedAt().IsZero() || len(AwaitedAccounts(s.Processors, m, s.RestoredAt(), s.Frozen)) > 0 {
		return nil
	}
	ids := make([]store.ExternalRef, len(payouts))
	for i := range payouts {
		ids[i] = store.ExternalRef{Merchant: m.ID, ExternalID: payouts[i].ExternalID}
	}
	taken, err := s.Store.PayoutsTaken(ctx, ids)
	if err != nil {
		return store.Problem(err)
	}
	if err := conflict(len(ids), func(i int) bool { return taken[ids[i]] }); err != nil {
		return err
	}
	balances, err := s.Store.Balances(ctx, m.ID)
	if err != nil {
		return store.Problem(err)
	}
	counters, err := s.Store.CountersUsed(ctx, payouts)
	if err != nil {
		return store.Problem(err)
	}
	available := balances[ledger.Available]
	for i := range payouts {
		p := &payouts[i]
		used := counters.Usage(p)
		if exceeded := m.Limits.Payout.Exceeded(p.Amount, p.CreatedAt, &used); exceeded != "" {
			return ofItem(i, limitExceeded(exceeded))
		}
		if available -= p.Amount + p.Fee; available < 0 {
			return ofItem(i, insufficientBalance())
		}
		counters.Add(p, p.CreatedAt)
	}
	return nil
}

// Merchant implements [write.Operation].
func (v *batchOp) Merchant() payment.ID { return v.batch.Merchant }

// Class implements [write.Operation].
func (v *batchOp) Class() commit.Class { return commit.Interactive }

// Needs implements [write.Operation].
func (v *batchOp) Needs(n *store.Needs) {
	n.PayoutBatchByExternalID(v.batch.Merchant, v.batch.ExternalID)
	for _, item := range v.items {
		item.Needs(n)
	}
}

// Decide accepts every item as if it were requested alone, one after another, or refuses all. Then
// the commit fails, and undoes the payouts that it has inserted.
func (v *batchOp) Decide(l *store.Loaded, c *store.Changes) error {
	v.elsewhere = nil
	if b, _, ok := l.PayoutBatchByExternalID(v.batch.Merchant, v.batch.ExternalID); ok {
		if b.ID == v.batch.ID { // an earlier run whose commit was unknown has stored it
			return nil
		}
		c.UndoKeys()
		return errBatchExists
	}
	if err := v.unused(l); err != nil {
		c.UndoKeys()
		return err
	}
	for i, item := range v.items {
		err := item.Decide(l, c)
		if errors.Is(err, errElsewhere) {
			v.addElsewhere(i, item.elsewhere)
			continue
		}
		if err != nil {
			c.UndoKeys()
			return ofItem(i, err)
		}
	}
	if len(v.elsewhere) > 0 {
		c.UndoKeys()
		return errElsewhere
	}
	c.AddPayoutBatch(v.batch, v.fingerprint)
	return nil
}

func (v *batchOp) addElsewhere(item int, account string) {
	if v.elsewhere == nil {
		v.elsewhere = map[int]string{}
	}
	v.elsewhere[item] = account
}

// conflictsMost is how many items with used references are listed.
const conflictsMost = 100

// unused refuses a batch if the reference of an item is used, even by a payout of the same
// content: that payout belongs to no batch, or to another batch.
func (v *batchOp) unused(l *store.Loaded) error {
	return conflict(len(v.items), func(i int) bool {
		in := &v.items[i].in.Payout
		p, _, ok := l.PayoutByExternalID(in.Merchant, in.ExternalID)
		return ok && p.ID != in.ID
	})
}

// conflict lists the items whose references are used; nil if there are none.
func conflict(items int, used func(item int) bool) error {
	var fields []problem.FieldError
	for i := 0; i < items && len(fields) <= conflictsMost; i++ {
		if used(i) {
			fields = append(fields, problem.FieldError{Field: field(i, "referenceId"), Code: problem.CodeNotAllowed, Detail: "was already used by another payout"})
		}
	}
	if len(fields) == 0 {
		return nil
	}
	e := problem.New(problem.ReferenceConflict, "The referenceId of an item was already used. No payout of the batch was accepted.")
	e.Truncated = len(fields) > conflictsMost
	e.Fields = fields[:min(len(fields), conflictsMost)]
	return e
}

func field(item int, name string) string { return fmt.Sprintf("items[%d].%s", item, name) }

// errBatchExists means that another request stored a batch with the reference first.
var errBatchExists = errors.New("payout: the batch exists")

// ofItem is the refusal of a batch because of one item.
func ofItem(item int, err error) error {
	var e *problem.Error
	switch {
	case !errors.As(err, &e):
		return err
	case e.Kind == problem.InsufficientBalance:
		return problem.New(problem.InsufficientBalance, "The available balance does not cover this batch. No payout of it was accepted, and all references remain unused.").
			WithFields(tooMuch(item, "exceeds the available balance"))
	case e.Kind == problem.LimitExceeded:
		return problem.New(problem.LimitExceeded, "An item of the batch exceeds a limit of the merchant. No payout was accepted, and all references remain unused.").
			WithLimit(e.Limit).WithFields(tooMuch(item, "exceeds the limit "+e.Limit))
	case e.Kind == problem.Unavailable:
		return err
	default:
		return e.WithFields(problem.FieldError{Field: fmt.Sprintf("items[%d]", item), Code: problem.CodeNotAllowed, Detail: e.Detail})
	}
}

// tooMuch is the error of the first item whose amount is not covered after those before it.
func tooMuch(item int, exceeds string) problem.FieldError {
	return problem.FieldError{Field: field(item, "amount"), Code: problem.CodeOutOfRange, Detail: exceeds + ", with the items before it"}
}

// Ends of batches are looked for in passes over the open ones, by their ids.
// It is a variable for tests.
var openBatches = 500

// CompleteBatches is the step of the worker that records the end of batches whose payouts are all
// final, with its event. It queries the database in each run, so no state is kept, and no commit of
// a payout waits for its batch.
func (s *Service) CompleteBatches(ctx context.Context) (int, error) {
	after := s.batches
	list, err := s.Store.OpenPayoutBatches(ctx, after, openBatches)
	if err != nil {
		return 0, store.Problem(err)
	}
	s.batches = payment.ID{} // the next run begins with the oldest one again
	if len(list) == openBatches {
		s.batches = list[len(list)-1].ID
	}
	did := 0
	var errs []error
	for _, b := range list {
		if !b.Ended {
			continue
		}
		err := s.Writer.Do(ctx, &completeBatch{b.Ref})
		if errs = append(errs, err); err == nil {
			did++
		}
	}
	return did, errors.Join(errs...)
}

// completeBatch records the end of one batch.
type completeBatch struct{ ref store.Ref }

// Merchant implements [write.Operation].
func (v *completeBatch) Merchant() payment.ID { return v.ref.Merchant }

// Class implements [write.Operation].
func (v *completeBatch) Class() commit.Class { return commit.Background }

// Needs implements [write.Operation].
func (v *completeBatch) Needs(n *store.Needs) { n.PayoutBatch(v.ref.Merchant, v.ref.ID) }

// Decide implements [write.Operation]. The lock of the batch makes it happen once.
func (v *completeBatch) Decide(l *store.Loaded, c *store.Changes) error {
	b, ok := l.PayoutBatch(v.ref.Merchant, v.ref.ID)
	if !ok || !b.CompletedAt.IsZero() || b.InFlight() > 0 { // another process was faster
		return nil
	}
	b.CompletedAt = l.Now()
	b.Touch(b.CompletedAt)
	b.Version++
	data, err := wire.PayoutBatch(&b)
	if err != nil {
		return fmt.Errorf("batch event: %w", err)
	}
	b = c.SetPayoutBatch(b)
	c.AddEvent(payment.Event{Merchant: b.Merchant, Type: payment.EventPayoutBatchCompleted, Subject: b.ID, Version: b.Version}, data, "")
	return nil
}
