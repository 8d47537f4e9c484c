package notice

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/worker"
	"github.com/porteira/porteira/internal/write"
)

// applyAgainAfter is the retry schedule of a notice that cannot be applied yet;
// after the last retry it is a dead letter.
var applyAgainAfter = []time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour,
}

// unansweredRetries is the number of further retries, at the last interval, while the processor
// does not answer: three days. An outage is no proof that a notice is wrong.
const unansweredRetries = 36

// Apply is the step of the worker that applies notices: it queries the processor to confirm them,
// and books the answer.
func (s *Service) Apply(ctx context.Context) (int, error) {
	if !s.Queue.node.Lease.Valid() {
		return 0, nil
	}
	list := s.Queue.take()
	s.start(ctx, list)
	accounts, err := s.openAccounts(ctx)
	if err != nil {
		return len(list), err
	}
	op := &claim{node: s.Queue.node.ID(), shares: s.Queue.reserveClaim(accounts, claimMax)}
	if len(op.shares) == 0 {
		return len(list), nil
	}
	if err := s.Writer.DoWithoutCancel(ctx, op); err != nil {
		for _, v := range op.shares {
			s.Queue.pool(v.account).Release(v.limit)
		}
		return len(list), err
	}
	for i := range op.damaged {
		s.Log.ErrorContext(ctx, "notice cannot be opened", "processor", op.damaged[i].Processor, "notice", op.damaged[i].ID, "error", op.damaged[i].Damaged)
	}
	s.Queue.endClaim(op.shares)
	s.start(ctx, op.claimed)
	return len(list) + len(op.claimed) + len(op.damaged), nil
}

// openAccounts lists the accounts with due notices that this process can open. Other processes
// apply the notices of the others. It lists none if no account has slots for a claim.
func (s *Service) openAccounts(ctx context.Context) ([]string, error) {
	if !slices.ContainsFunc(s.Processors.IDs(), s.Queue.ready) {
		return nil, nil
	}
	list, err := s.Store.AccountsWithNotices(ctx, s.Env.Clock.Now())
	list = slices.DeleteFunc(list, func(id string) bool { return s.Processors.Find(id) == nil || s.Processors.Refused(id) })
	if len(list) > 1 { // a small limit does not always leave out the same ones
		s.turn++
		first := s.turn % len(list)
		list = slices.Concat(list[first:], list[:first])
	}
	return list, err
}

// claim claims due notices to apply them, an equal share of each account, so that a backlog of one
// delays no other.
type claim struct {
	node    payment.ID
	shares  []share
	claimed []store.Notice
	damaged []store.Notice // whose body cannot be decrypted
}

// Merchant implements [write.Operation].
func (v *claim) Merchant() payment.ID { return payment.ID{} }

// Class implements [write.Operation].
func (v *claim) Class() commit.Class { return commit.Claim }

// Needs implements [write.Operation].
func (v *claim) Needs(n *store.Needs) {
	n.ClaimingNode(v.node)
	for _, a := range v.shares {
		if a.limit > 0 {
			n.DueNotices(a.account, a.limit)
		}
	}
}

// Decide implements [write.Operation].
func (v *claim) Decide(l *store.Loaded, c *store.Changes) error {
	v.claimed, v.damaged = nil, nil
	if !l.NodeAlive(v.node) {
		return write.ErrNodeDead
	}
	for i := range v.shares {
		a, before := &v.shares[i], len(v.claimed)
		list := l.DueNotices(a.account)
		a.found = min(a.limit, len(list)) // others in this commit may claim too
		v.claim(l, c, list[:a.found])
		a.claimed = len(v.claimed) - before
	}
	return nil
}

func (v *claim) claim(l *store.Loaded, c *store.Changes, list []store.Notice) {
	for _, n := range list {
		if n.Damaged != nil {
			n.State, n.NextAt, n.LastError, n.AppliedAt = store.NoticeDeadLetter, time.Time{}, string(store.ReasonUnreadable), l.Now()
			c.SetNotice(n)
			c.OpenCase(store.Case{
				Kind: store.CaseNotice, Params: store.ReasonUnreadable.With(store.Params{"processor": n.Processor, "notice": n.ID}),
			})
			v.damaged = append(v.damaged, n)
			continue
		}
		n.NextAt, n.ClaimedBy, n.Attempts = time.Time{}, v.node, n.Attempts+1
		c.SetNotice(n)
		v.claimed = append(v.claimed, n)
	}
}

// start applies notices, each of which has a slot.
func (s *Service) start(ctx context.Context, list []store.Notice) {
	for i := range list {
		s.Queue.pool(list[i].Processor).RunReserved(func() { s.apply(ctx, list[i]) })
	}
}

// apply follows each hint of a notice. The last hint finishes the notice; the others are harmless
// to repeat.
func (s *Service) apply(ctx context.Context, n store.Notice) {
	err := worker.Call(func() error { return s.followHints(context.WithoutCancel(ctx), n) }, func(cause error) error { return cause })
	if err == nil {
		return
	}
	s.Log.WarnContext(ctx, "notice not applied yet", "processor", n.Processor, "notice", n.ID, "cause", err)
	s.Recorder.Record(ctx, "postponed notice", func(ctx context.Context) error { return s.delay(ctx, n, errors.Is(err, errUnanswered)) })
}

// errNotOpen means that this process has claimed work of an account that it can no longer open.
func errNotOpen(account string) error { return fmt.Errorf("notice: account %s is not open", account) }

func (s *Service) followHints(ctx context.Context, n store.Notice) error {
	if n.Source == store.FromFeed {
		return s.applyFact(ctx, n)
	}
	proc := s.Processors.Find(n.Processor)
	notifier, ok := proc.(processor.Notifier)
	if !ok { // any more
		return errNotOpen(n.Processor)
	}
	hints, err := notifier.ParseNotice(n.Body)
	if err != nil {
		return s.deadLetter(ctx, n, payment.ID{}, store.ReasonUnreadable, "")
	}
	if len(hints) == 0 {
		return s.Writer.Do(ctx, &end{notice: n})
	}
	unsupported := slices.IndexFunc(hints, func(h processor.Hint) bool {
		return h.Subject != processor.SubjectCharge && h.Subject != processor.SubjectTransfer && h.Subject != processor.SubjectRefund
	})
	var errs []error // one that cannot be confirmed stops no other
	for i := range hints {
		var last *store.Notice
		if i == len(hints)-1 && unsupported < 0 && len(errs) == 0 {
			last = &n
		}
		if err := s.applyHint(ctx, proc, n.Processor, hints[i], last); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	if unsupported >= 0 {
		return s.deadLetter(ctx, n, payment.ID{}, store.ReasonUnsupportedSubject, hints[unsupported].ExternalID)
	}
	return nil
}

// errLags means that a notice is applied again because the answer does not show the change that the
// notice reports.
var errLags = errors.New("notice: the processor's answer does not show what its notice reports")

// showsPayment reports whether a report has the payment of a hint, if it names one.
func showsPayment(r *processor.ChargeReport, claimed *processor.Payment) bool {
	return claimed == nil || slices.ContainsFunc(r.Payments, func(p processor.Payment) bool { return p.ID == claimed.ID })
}

// showsState reports whether a transfer is at least in the state that a hint names.
func showsState(r *processor.TransferReport, claimed processor.TransferState) bool {
	final := r.State == processor.TransferPaid || r.State == processor.TransferFailed
	return final || claimed != processor.TransferPaid && claimed != processor.TransferFailed
}

// applyHint queries the subject of a hint. Money moves on the answer, not on the hint. If the
// answer does not show the reported change, the answer is applied nevertheless, and the notice
// stays.
func (s *Service) applyHint(ctx context.Context, proc processor.Processor, name string, h processor.Hint, notice *store.Notice) error {
	ref := processor.Ref{ExternalID: h.ExternalID, ProcessorID: h.ProcessorID}
	switch h.Subject {
	case processor.SubjectCharge:
		_, err := s.applyCharge(ctx, proc, name, h, notice)
		return err
	case processor.SubjectTransfer:
		transferrer, ok := proc.(processor.Transferrer)
		if !ok {
			return fmt.Errorf("notice: processor %s does not support payouts", name)
		}
		var err error
		if ref.Since, err = s.transferSince(ctx, transferrer, h.ExternalID); err != nil {
			return err
		}
		report := query(ctx, s, name, func(ctx context.Context) processor.TransferReport {
			return processor.FindTransfer(ctx, transferrer, ref)
		})
		if report.Lookup != processor.Found {
			return unconfirmed("transfer", report.Lookup, report.Cause)
		}
		if report.State == processor.TransferFailed && report.Failure != nil { // queries do not show the reason
			report.Failure = report.Failure.Because(h.Reason)
		}
		if !showsState(&report, h.Transfer) {
			_, err := s.Transfers.RecordNotice(ctx, name, h.ExternalID, report, nil)
			return errors.Join(err, errLags)
		}
		known, err := s.Transfers.RecordNotice(ctx, name, h.ExternalID, report, notice)
		if err != nil || known || notice == nil {
			return err
		}
		return s.unknownTransfer(ctx, *notice, h.ExternalID)
	case processor.SubjectRefund:
		return s.applyRefund(ctx, proc, name, &h, notice)
	default: // its notice is a dead letter
		return nil
	}
}

// applyCharge applies the answer to the query of a charge. incomplete is why it may lack disputes.
func (s *Service) applyCharge(ctx context.Context, proc processor.Processor, name string, h processor.Hint, notice *store.Notice) (incomplete, err error) {
	charger, ok := proc.(processor.Charger)
	if !ok {
		return nil, fmt.Errorf("notice: processor %s does not support payments", name)
	}
	ref := processor.Ref{ExternalID: h.ExternalID, ProcessorID: h.ProcessorID}
	report := query(ctx, s, name, func(ctx context.Context) processor.ChargeReport { return processor.FindCharge(ctx, charger, ref) })
	if report.Lookup != processor.Found {
		return nil, unconfirmed("charge", report.Lookup, report.Cause)
	}
	if !showsPayment(&report, h.Payment) {
		return report.Incomplete, errors.Join(s.receive(ctx, name, h.ExternalID, report, nil), errLags)
	}
	return report.Incomplete, s.receive(ctx, name, h.ExternalID, report, notice)
}

// A transfer is searched for from a day before its payout, as the database may lack an earlier
// payout; a transfer without a payout for the last 31 days.
const (
	searchBefore = 24 * time.Hour
	searchBack   = 31 * 24 * time.Hour
)

// transferSince is the time from which the transfer of a notice is searched for; zero if the
// processor does not use it.
func (s *Service) transferSince(ctx context.Context, t processor.Transferrer, externalID string) (time.Time, error) {
	if _, ok := t.(processor.TransferFinder); !ok {
		return time.Time{}, nil
	}
	merchant, err := s.Store.MerchantOf(ctx, externalID)
	if err != nil {
		return time.Time{}, store.Problem(err)
	}
	p, _, err := s.Store.PayoutByExternalID(ctx, merchant, externalID)
	switch {
	case err == nil:
		return p.CreatedAt.Add(-searchBefore), nil
	case errors.Is(err, store.ErrNotFound) || store.Lasting(err):
		return s.Env.Clock.Now().Add(-searchBack), nil
	default:
		return time.Time{}, store.Problem(err)
	}
}

// unknownTransfer dead-letters a notice of a transfer without a payout: money left
// without an order.
func (s *Service) unknownTransfer(ctx context.Context, n store.Notice, externalID string) error {
	merchant, err := s.Store.MerchantOf(ctx, externalID)
	if err != nil {
		return store.Problem(err)
	}
	return s.deadLetter(ctx, n, merchant, store.ReasonUnknownTransfer, externalID)
}

// query queries an account's processor once one of its slots is free.
func query[R any](ctx context.Context, s *Service, account string, call func(context.Context) R) R {
	if s.Spawn == nil { // else a test, which runs one goroutine at a time: none would free a slot
		slot := s.queries.get(account)
		slot <- struct{}{}
		defer func() { <-slot }()
	}
	limited, cancel := s.Env.Clock.WithTimeout(ctx, queryTimeout)
	defer cancel()
	return call(limited)
}

// errUnanswered means that a look-up did not show whether the processor confirms a notice.
var errUnanswered = errors.New("no answer of the processor")

// unconfirmed returns why a notice is applied again.
func unconfirmed(subject string, l processor.Lookup, cause error) error {
	err := fmt.Errorf("notice: %s not confirmed by the processor", subject)
	if cause != nil {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	if l == processor.LookupUnknown {
		err = fmt.Errorf("%w: %w", errUnanswered, err)
	}
	return err
}

// notApplied is the last error of a notice that is tried again; the log has the cause.
const notApplied = "not_applied"

// delay schedules a notice that cannot be applied yet; after the last retry it is a
// dead letter.
func (s *Service) delay(ctx context.Context, n store.Notice, unanswered bool) error {
	retries := len(applyAgainAfter)
	if unanswered {
		retries += unansweredRetries
	}
	switch tried := n.Attempts > retries; {
	case tried && n.Source == store.FromFeed:
		return s.giveUpFact(ctx, n)
	case tried:
		return s.deadLetter(ctx, n, payment.ID{}, store.ReasonNotConfirmed, "")
	}
	wait := applyAgainAfter[min(max(0, n.Attempts-1), len(applyAgainAfter)-1)]
	return s.Writer.Do(ctx, &end{notice: n, again: s.Env.Random.Jitter(wait, 10), lastError: notApplied})
}

// deadLetter gives a notice up, with a case. externalID "" omits the parameter.
func (s *Service) deadLetter(ctx context.Context, n store.Notice, merchant payment.ID, reason store.CaseReason, externalID string) error {
	s.Log.ErrorContext(ctx, "notice cannot be applied", "processor", n.Processor, "notice", n.ID, "reason", reason)
	params := reason.With(store.Params{"processor": n.Processor, "notice": n.ID})
	if externalID != "" {
		params["externalId"] = externalID
	}
	v := store.Case{ID: s.Env.IDs.NewID(s.Env.Clock.Now()), Merchant: merchant, Kind: store.CaseNotice, Params: params}
	return s.Writer.Do(ctx, &end{notice: n, lastError: string(reason), review: &v})
}

// end ends an attempt to apply a notice that moved no money: the notice is finished,
// tried again, or given up with a case.
type end struct {
	notice    store.Notice
	again     time.Duration // from now; 0 if it is over
	lastError string
	review    *store.Case
}

// Merchant implements [write.Operation].
func (v *end) Merchant() payment.ID { return payment.ID{} }

// Class implements [write.Operation].
func (v *end) Class() commit.Class { return commit.Background }

// Needs implements [write.Operation].
func (v *end) Needs(*store.Needs) {}

// Decide implements [write.Operation].
func (v *end) Decide(l *store.Loaded, c *store.Changes) error {
	n := v.notice
	n.LastError = v.lastError
	switch {
	case v.review != nil:
		n.State, n.NextAt, n.ClaimedBy, n.AppliedAt = store.NoticeDeadLetter, time.Time{}, payment.ID{}, l.Now()
		c.SetNotice(n)
		c.OpenCase(*v.review)
	case v.again > 0:
		n.NextAt, n.ClaimedBy = l.Now().Add(v.again), payment.ID{}
		c.SetNotice(n)
	default:
		c.FinishNotice(n)
	}
	return nil
}
