package outgoing

import (
	"context"
	"errors"
	"time"

	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/effect"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/worker"
)

// Answers to disputes take the same steps as payouts, with one row each, as the parts of refunds
// do. An answer moves no money. An answer that may have been sent is looked up; after "not found"
// beyond the quiet period it is sent again, if a repeat is safe. An answer that the processor does
// not take gets a case: a person gives the answer at the processor's panel.

// Calls about answers in flight at once, and answers that one run claims, per account.
const (
	answerSlots      = 4
	answersPerWorker = 4
)

// Why a person must give an answer.
const (
	causeNotTaken      = "not_taken" // the processor takes no answers
	causeRefused       = "refused"   // by the processor
	causeNoAnswer      = string(store.ReasonNoAnswer)
	causeNotIdempotent = string(store.ReasonNotIdempotent)
	causeAccountWaits  = "account_waits" // it is suspended, its credentials are refused, or it is frozen after a restore
)

// accountWait is how long an answer waits until its account is looked at again.
const accountWait = time.Minute

// SendAnswers is the step of the worker that sends answers to disputes, and looks them up.
func (e *Executor) SendAnswers(ctx context.Context) (did int, err error) {
	if !e.Node.Lease.Valid() {
		return 0, nil
	}
	accounts, err := e.Store.AccountsWithAnswers(ctx, e.Env.Clock.Now())
	errs := []error{err}
	for _, account := range accounts {
		proc := e.Processors.Find(account)
		if proc == nil {
			continue // another process may open the account
		}
		pool := e.answers.Of(account, 0)
		n := min(answersPerWorker, pool.Free())
		if n > 0 {
			n = e.answerBreakers.Allow(account, n)
		}
		if n == 0 {
			continue
		}
		defender, _ := proc.(processor.Defender)
		op := e.newClaimAnswers(account, n, proc.Profile().Defense, defender != nil)
		op.refused = e.Processors.Refused(account)
		op.waits = op.refused || e.Processors.Allows(account, payment.UseTransfer) != nil
		op.frozen = !op.waits && e.Node.Frozen(account)
		if err := e.Writer.DoWithoutCancel(ctx, op); err != nil { // the claim of Decide may not be committed
			errs = append(errs, err)
			continue
		}
		did += op.count
		for _, a := range op.claimed {
			pool.Run(func() { e.runAnswer(ctx, a, op, defender) })
		}
	}
	return did, errors.Join(errs...)
}

// claimAnswers claims due answers, to be sent or to be looked up.
type claimAnswers struct {
	process

	due                  store.DueAnswers
	restoredAt, provedAt time.Time
	effect               processor.Effect
	takes                bool // the processor takes answers
	waits                bool // nothing is sent from the account now
	frozen               bool // only because its lists are not read since a cold start
	refused              bool // nor is anything looked up: the processor refuses its credentials

	claimed []payment.DisputeAnswer
	count   int
}

func (e *Executor) newClaimAnswers(account string, limit int, effect processor.Effect, takes bool) *claimAnswers {
	return &claimAnswers{
		process: e.process(), due: store.DueAnswers{Account: account, Limit: limit}, restoredAt: e.Node.RestoredAt(), provedAt: e.Node.ProvedAt(),
		effect: effect, takes: takes,
	}
}

// Merchant implements [write.Operation].
func (v *claimAnswers) Merchant() payment.ID { return payment.ID{} }

// Class implements [write.Operation].
func (v *claimAnswers) Class() commit.Class { return commit.Claim }

// Needs implements [write.Operation].
func (v *claimAnswers) Needs(n *store.Needs) {
	n.ClaimingNode(v.node)
	n.DueAnswers(v.due)
}

// Decide records the intent to send each due answer, before a byte leaves, or claims it to be
// looked up. An answer that may have been sent before the database was restored is looked up first.
func (v *claimAnswers) Decide(l *store.Loaded, c *store.Changes) error {
	v.claimed, v.count = nil, 0
	if err := v.mayAct(l); err != nil {
		return err
	}
	for _, a := range l.DueAnswers(v.due) {
		v.count++
		if !v.takes {
			reviewAnswer(c, &a, causeNotTaken)
			continue
		}
		if a.Step == payment.StepQueued && LookUpFirst(&payment.Payout{UpdatedAt: a.UpdatedAt, Lookups: a.Lookups}, v.restoredAt, v.provedAt, l.Now()) {
			a.Step = payment.StepUnknown
		}
		switch {
		case (v.waits || v.frozen) && a.Step == payment.StepQueued:
			waitForAccount(l, c, &a, v.waits || v.frozenLong(l.Now()))
			continue
		case v.refused:
			a.NextAt = l.Now().Add(accountWait)
			c.SetAnswer(a)
			continue
		}
		a.ClaimedBy, a.NextAt = v.node, time.Time{}
		if a.Step == payment.StepQueued {
			a.Step, a.Sends, a.SentAt, a.Lookups = payment.StepIntent, a.Sends+1, l.Now(), 0
			if a.FirstSentAt.IsZero() {
				a.FirstSentAt = l.Now()
			}
		}
		v.claimed = append(v.claimed, c.SetAnswer(a))
	}
	return nil
}

// frozenBeforeCase is how long an answer waits after a cold start before it gets a case: the wait ends
// by itself once the account's lists were read.
const frozenBeforeCase = time.Hour

// frozenLong reports whether an account may be frozen for long: after a proved restore, or because the
// wait after a cold start has not ended soon.
func (v *claimAnswers) frozenLong(now time.Time) bool {
	return !v.provedAt.Before(v.restoredAt) || now.Sub(v.restoredAt) >= frozenBeforeCase
}

// waitForAccount leaves an answer queued, with a case if that may last: its deadline may pass before
// the account sends again.
func waitForAccount(l *store.Loaded, c *store.Changes, a *payment.DisputeAnswer, lasts bool) {
	a.NextAt = l.Now().Add(accountWait)
	c.SetAnswer(*a)
	if !lasts {
		return
	}
	review := answerCase(a, causeAccountWaits)
	review.ID = store.CaseID("answer waits %s %d %d", a.Dispute, a.Number, a.Sends) // one, no matter how often it is looked at
	c.OpenCase(review)
}

// reviewAnswer ends the executor's work on an answer, with a case: a person gives it at the
// processor's panel.
func reviewAnswer(c *store.Changes, a *payment.DisputeAnswer, cause string) {
	a.Step, a.NextAt, a.ClaimedBy = payment.StepReview, time.Time{}, payment.ID{}
	*a = c.SetAnswer(*a)
	openAnswerCase(c, a, cause)
}

func openAnswerCase(c *store.Changes, a *payment.DisputeAnswer, cause string) {
	c.CloseCases(a.Merchant, a.Dispute, store.CaseDisputeAnswer, store.ResolvedByNewCase)
	c.OpenCase(answerCase(a, cause))
}

func answerCase(a *payment.DisputeAnswer, cause string) store.Case {
	return store.Case{
		Merchant: a.Merchant, Kind: store.CaseDisputeAnswer, Subject: a.Dispute,
		Params: store.Params{"processor": a.Processor, "externalId": a.ExternalID, "action": string(a.Action), "cause": cause},
	}
}

// answerCall is an answer as a transfer: both are sent under the same guard.
type answerCall struct {
	defender processor.Defender
	request  processor.DefenseRequest
}

// Transfer implements [processor.Transferrer].
func (v answerCall) Transfer(ctx context.Context, _ processor.TransferRequest, guard func() error) processor.TransferAnswer {
	return v.defender.Defend(ctx, v.request, guard)
}

// QueryTransfer implements [processor.Transferrer].
func (v answerCall) QueryTransfer(ctx context.Context, _ string) processor.TransferReport {
	return v.defender.QueryDefense(ctx, v.request)
}

// runAnswer sends one answer, or looks it up.
func (e *Executor) runAnswer(ctx context.Context, a payment.DisputeAnswer, claimed *claimAnswers, defender processor.Defender) {
	op := &recordAnswer{answer: a, effect: claimed.effect, restoredAt: e.Node.RestoredAt(), jitter: worker.NewJitter(e.Env.Random)}
	call := answerCall{defender, processor.DefenseRequest{DisputeID: a.ExternalID, Accept: a.Action == payment.AnswerAccept}}
	if a.Step == payment.StepIntent {
		op.sent = e.sendAnswer(ctx, &a, claimed, &call)
	} else {
		op.report = e.query(ctx, a.Processor, processor.Ref{ExternalID: a.ExternalID}, call, lookedUp{"answer to a dispute", e.answerBreakers, asReported})
	}
	e.Recorder.Record(ctx, "answer to a dispute", func(ctx context.Context) error { return e.Writer.Do(ctx, op) })
}

// sendAnswer sends one answer, as transfer sends a payout. A defense that does not open cannot be
// sent.
func (e *Executor) sendAnswer(ctx context.Context, a *payment.DisputeAnswer, claimed *claimAnswers, call *answerCall) *processor.TransferAnswer {
	if a.Action == payment.AnswerDefend {
		defense, contents, err := e.Store.DefenseFiles(ctx, a)
		switch {
		case errors.Is(err, db.ErrSealed), errors.Is(err, store.ErrNotFound):
			e.Log.ErrorContext(ctx, "defense of a dispute cannot be opened", "processor", a.Processor, "dispute", a.Dispute, "error", err)
			return &processor.TransferAnswer{Outcome: processor.Refused, Evidence: "it cannot be opened"}
		case err != nil:
			return &processor.TransferAnswer{Outcome: processor.NotSent, Cause: err}
		}
		call.request.Text = defense.Text
		for i, f := range defense.Files {
			call.request.Files = append(call.request.Files, processor.DefenseFile{Name: f.Name, Type: f.Type, Content: contents[i]})
		}
	}
	answer := e.callOnce(ctx, guardedCall{
		account: a.Processor, claimedBy: a.ClaimedBy, history: claimed.history, deadline: a.SentAt.Add(claimed.effect.Timeout), timeout: claimed.effect.Timeout,
		breakers: e.answerBreakers, transferrer: call,
	})
	if answer.Outcome != processor.Done {
		e.Log.WarnContext(ctx, "answer to a dispute not confirmed", "processor", a.Processor, "dispute", a.Dispute,
			"outcome", answer.Outcome.String(), "cause", answer.Cause)
	}
	return &answer
}

// recordAnswer is the operation that records how a send or a look-up of an answer ended.
type recordAnswer struct {
	answer     payment.DisputeAnswer // as it was claimed
	effect     processor.Effect
	restoredAt time.Time
	jitter     worker.Jitter
	sent       *processor.TransferAnswer // nil for a look-up
	report     processor.TransferReport
}

// Merchant implements [write.Operation].
func (v *recordAnswer) Merchant() payment.ID { return v.answer.Merchant }

// Class implements [write.Operation].
func (v *recordAnswer) Class() commit.Class { return commit.Background }

// Needs implements [write.Operation].
func (v *recordAnswer) Needs(n *store.Needs) { n.DisputesOfPayin(v.answer.Merchant, v.answer.Payin) }

// Decide implements [write.Operation].
func (v *recordAnswer) Decide(l *store.Loaded, c *store.Changes) error {
	list, _ := l.Answers(v.answer.Merchant, v.answer.Dispute)
	if int64(len(list)) < v.answer.Number {
		return store.ErrNotFound
	}
	a := list[v.answer.Number-1]
	if a.Sends != v.answer.Sends || a.Lookups != v.answer.Lookups || a.Step != v.answer.Step || a.ClaimedBy != v.answer.ClaimedBy ||
		v.sent != nil && v.sent.Outcome != processor.Done && !a.SentAt.Equal(v.answer.SentAt) {
		return nil // recorded already, another process has it, or it is about a send that this database lacks
	}
	a.ClaimedBy = payment.ID{}
	needed := a.Action == payment.AnswerAccept
	for _, d := range l.DisputesOf(a.Merchant, a.Payin) {
		needed = needed || d.ID == a.Dispute && d.Live()
	}
	if v.sent != nil {
		v.recordSent(l, c, &a, needed)
	} else {
		v.recordLookUp(l, c, &a, needed)
	}
	return nil
}

// end ends the executor's work on an answer.
func (v *recordAnswer) end(c *store.Changes, a *payment.DisputeAnswer, outcome string) {
	a.Step, a.NextAt, a.Outcome = payment.StepDone, time.Time{}, outcome
	c.SetAnswer(*a)
	c.CloseCases(a.Merchant, a.Dispute, store.CaseDisputeAnswer, store.ResolvedByProof)
}

// The outcomes of answers that have ended.
const (
	answerTaken     = "taken"
	answerNotNeeded = "not_needed" // the dispute was decided before
)

func (v *recordAnswer) recordSent(l *store.Loaded, c *store.Changes, a *payment.DisputeAnswer, needed bool) {
	a.Outcome, a.Evidence = v.sent.Outcome.String(), worker.Short(v.sent.Evidence)
	switch outcome := v.sent.Outcome; {
	case outcome == processor.Done:
		v.end(c, a, answerTaken)
	case outcome == processor.Known || outcome == processor.Unknown:
		a.Step, a.MayExist, a.Lookups = payment.StepUnknown, true, 0
		a.NextAt = l.Now().Add(worker.After(effect.LookUpAfter, 0))
		c.SetAnswer(*a)
	case !needed:
		v.end(c, a, answerNotNeeded)
	case outcome == processor.Refused:
		reviewAnswer(c, a, causeRefused)
	default:
		a.Step, a.Lookups = payment.StepQueued, 0
		a.NextAt = l.Now().Add(max(v.jitter.Of(worker.After(effect.LaterAfter, a.Sends-1)), min(v.sent.Wait, effect.LongestLater)))
		c.SetAnswer(*a)
		if a.Sends == latersBeforeCase {
			openAnswerCase(c, a, causeNoAnswer)
		}
	}
}

func (v *recordAnswer) recordLookUp(l *store.Loaded, c *store.Changes, a *payment.DisputeAnswer, needed bool) {
	a.Lookups++
	last := a.SentAt.Add(v.effect.Timeout) // until then it may have left
	if last.Before(v.restoredAt) {
		last = v.restoredAt
	}
	quiet := last.Add(v.effect.QuietPeriod)
	switch {
	case v.report.Lookup == processor.Found:
		v.end(c, a, answerTaken)
		return
	case !needed:
		v.end(c, a, answerNotNeeded)
		return
	case v.report.Lookup == processor.NotFound && !l.Now().Before(quiet):
		if a.MayExist && !v.effect.Repeatable(a.FirstSentAt, l.Now()) {
			reviewAnswer(c, a, causeNotIdempotent)
			return
		}
		a.Step, a.NextAt = payment.StepQueued, l.Now()
	default:
		a.NextAt = l.Now().Add(v.jitter.Of(worker.After(effect.LookUpAfter, a.Lookups)))
	}
	c.SetAnswer(*a)
	if a.Lookups == lookUpsBeforeCase {
		openAnswerCase(c, a, causeNoAnswer)
	}
}
