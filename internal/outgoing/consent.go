package outgoing

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// The rule of consent. Some processors that pay a repeated request twice ask before they
// execute a transfer. Consent is given to one transfer per external id: its row is committed
// before the answer, under the lock of the payout. So at most one transfer of a payout is
// executed, even if others were requested by mistake, and a payout that was not found beyond
// the quiet period may be sent again. Therefore:
//
//   - It is sent again only while the account is proved to ask: its newest row in consents is
//     a consent. A payout that was paid without a question adds a row that is none, and then
//     two people decide, until the processor asks again. The account must have been proved to
//     ask before the payout was first sent too: else its first transfer may be executed without
//     a question.
//   - After a restore the consents of a lost past are unknown: a payout that was sent before it
//     gets none. A cold start that is not proved to be a restore is no obstacle within the quiet
//     period of the send: no past can have sent the payout again meanwhile.
//   - Money that is released cannot leave: a payout that has ended gets no consent. In turn,
//     once consent is given, only the failure of that same transfer releases the money.

// AnswerQuestion decides about a question of a processor. why is the reason of a refusal, or "" for
// our consent, which is then durable. After an error the processor gets no answer, and asks again.
func (e *Executor) AnswerQuestion(ctx context.Context, account string, q processor.Question) (why string, err error) {
	why, err = e.answerQuestion(ctx, account, q)
	if err == nil && why != "" {
		id := q.ExternalID
		if why == noSuchPayout { // it is another program's, and may be anything
			id = ""
		}
		e.Log.WarnContext(ctx, "consent to a transfer refused", "processor", account, "externalId", id, "transfer", q.Transfer, "reason", why)
	}
	return why, err
}

// noSuchPayout is the refusal of a transfer that is not ours.
const noSuchPayout = "no payout of this account has the id"

func (e *Executor) answerQuestion(ctx context.Context, account string, q processor.Question) (why string, err error) {
	merchant, err := e.Store.MerchantOf(ctx, q.ExternalID)
	if err != nil {
		return "", store.Problem(err)
	}
	p, _, err := e.Store.PayoutByExternalID(ctx, merchant, q.ExternalID)
	switch {
	case errors.Is(err, store.ErrNotFound) || err == nil && p.Processor != account || q.Transfer == "":
		return noSuchPayout, nil
	case errors.Is(err, db.ErrSealed):
		return "the payout cannot be read", nil
	case err != nil:
		return "", store.Problem(err)
	}
	op := e.newConsent(p, q)
	err = e.Writer.Do(ctx, op)
	return op.refusal, err
}

// newConsent is the operation of AnswerQuestion.
func (e *Executor) newConsent(p payment.Payout, q processor.Question) *giveConsent {
	v := &giveConsent{
		payout: p, question: q,
		process: e.process(), restoredAt: e.Node.RestoredAt(), provedAt: e.Node.ProvedAt(),
	}
	if proc := e.Processors.Find(p.Processor); proc != nil {
		v.quiet = proc.Profile().Transfer.QuietPeriod
	}
	return v
}

// giveConsent is the operation that answers a question.
type giveConsent struct {
	process

	payout   payment.Payout // as it was read
	question processor.Question
	// restoredAt is the time of the last cold start, provedAt that of the last proved restore.
	restoredAt, provedAt time.Time
	quiet                time.Duration // of the account's transfers

	refusal string // "" if we consent
}

// Merchant implements [write.Operation].
func (v *giveConsent) Merchant() payment.ID { return v.payout.Merchant }

// Class implements [write.Operation].
func (v *giveConsent) Class() commit.Class { return commit.Interactive }

// Needs implements [write.Operation].
func (v *giveConsent) Needs(n *store.Needs) {
	n.ClaimingNode(v.node)
	n.Payout(v.payout.Merchant, v.payout.ID)
	n.Sends(v.payout.Merchant, v.payout.ID)
	n.Consent(v.payout.Processor, v.payout.ExternalID)
	if v.history > 0 {
		n.Feed(store.Transfers(v.payout.Processor))
	}
}

// Decide implements [write.Operation].
func (v *giveConsent) Decide(l *store.Loaded, c *store.Changes) error {
	v.refusal = ""
	if err := v.mayAct(l); err != nil {
		return err
	}
	p, ok := l.Payout(v.payout.Merchant, v.payout.ID)
	if !ok {
		return store.ErrNotFound
	}
	given, asked := l.Consent(p.Processor, p.ExternalID)
	switch {
	case isFrozen(l, p.Processor, v.history) && !v.sentOnce(l, &p):
		v.refusal = "the account's payouts wait after a restore"
	case p.Status == payment.PayoutFailed || p.Status == payment.PayoutCanceled:
		v.refusal = "the payout has ended"
	case isPaid(&p) && p.ProcessorID != v.question.Transfer: // also if this one had our consent before
		v.refusal = "another transfer has paid the payout"
	case asked && given.Transfer != v.question.Transfer:
		v.refusal = "another transfer of the payout has our consent"
	case asked: // again, because our answer was lost
	case !isUnderWay(l, &p):
		v.refusal = "no send of the payout is under way"
	case sentBefore(l, &p, v.restoredAt) && !v.sentOnce(l, &p):
		v.refusal = "the payout was sent before a restore, which may have lost our consent to another transfer"
	case p.ProcessorID != "" && p.ProcessorID != v.question.Transfer:
		v.refusal = "another transfer of the payout is known"
	case v.question.Amount != p.Amount || !v.question.IsTo(p.Beneficiary.Key()):
		v.refusal = "the amount or the key is not that of the payout"
	default:
		c.AddConsent(store.Consent{Account: p.Processor, ExternalID: p.ExternalID, Transfer: v.question.Transfer, State: store.ConsentGiven})
	}
	return nil
}

// isUnderWay reports whether the last send of a payout may have made a transfer, with the
// contents of the payout.
func isUnderWay(l *store.Loaded, p *payment.Payout) bool {
	sends := l.Sends(p.Merchant, p.ID)
	if len(sends) == 0 || p.Status != payment.PayoutProcessing || p.Step == payment.StepReview || l.PayoutDamaged(p.Merchant, p.ID) {
		return false
	}
	last := &sends[len(sends)-1]
	return last.Outcome.Undecided() && bytes.Equal(last.BodyHash, bodyHash(transferRequest(p)))
}

// sentBefore reports whether the last send of a payout is, or may be, older than a restore. A clock
// that was ahead leaves that open.
func sentBefore(l *store.Loaded, p *payment.Payout, restoredAt time.Time) bool {
	sends := l.Sends(p.Merchant, p.ID)
	if restoredAt.IsZero() || len(sends) == 0 {
		return false
	}
	at := sends[len(sends)-1].CreatedAt
	return !at.After(restoredAt) || at.After(l.Now())
}

// sentOnce reports whether a payout can have no later send than the last one, in whatever past: its
// quiet period has not ended. After a proved restore the result is false, because people act after
// it.
func (v *giveConsent) sentOnce(l *store.Loaded, p *payment.Payout) bool {
	sends := l.Sends(p.Merchant, p.ID)
	if len(sends) == 0 || !v.provedAt.Before(v.restoredAt) {
		return false
	}
	last := &sends[len(sends)-1]
	return !last.CreatedAt.After(l.Now()) && l.Now().Before(last.Deadline.Add(v.quiet))
}

// AskedBefore reports whether the payout's account was proved to ask for our consent before the
// payout was first sent. Rows are never changed, so the result stays true.
func AskedBefore(ctx context.Context, s *store.Store, p *payment.Payout) (bool, error) {
	sends, err := s.Sends(ctx, p.Merchant, p.ID)
	if err != nil || len(sends) == 0 {
		return false, err
	}
	return s.AskedConsent(ctx, p.Processor, sends[0].CreatedAt)
}

// needConsent reads the consent to a payout of a processor that would pay it twice, whether
// or not its account declares now that it asks.
func (v *resolution) needConsent(n *store.Needs, p *payment.Payout) {
	if !v.effect.Repeat.Safe() {
		n.Consent(p.Processor, p.ExternalID)
	}
}

// ofConsented is the proof that a report contains about a payout. If our consent was to one
// transfer, a report about another transfer proves only that the processor asked, unless the other
// transfer was paid.
func ofConsented(l *store.Loaded, p *payment.Payout, r processor.TransferReport) processor.TransferReport {
	given, asked := l.Consent(p.Processor, p.ExternalID)
	if !asked || r.State == processor.TransferPaid || r.ProcessorID == given.Transfer {
		return r
	}
	return processor.TransferReport{
		Lookup: processor.Found, State: processor.TransferProcessing, ProcessorID: given.Transfer, Evidence: "consent given to " + given.Transfer,
	}
}

// noteNotAsked records that a payout was paid without a question at an account that was
// proved to ask.
func noteNotAsked(l *store.Loaded, c *store.Changes, p *payment.Payout) {
	if _, asked := l.Consent(p.Processor, p.ExternalID); !asked && l.AsksConsent(p.Processor) {
		c.AddConsent(store.Consent{Account: p.Processor, ExternalID: p.ExternalID, State: store.ConsentNotAsked})
	}
}
