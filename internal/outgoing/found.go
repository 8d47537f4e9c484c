package outgoing

import (
	"context"

	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/transition"
)

// Adopt gives a new payout the found transfer. The payout is looked up, and never sent by rule, as
// the processor has its id.
func Adopt(l *store.Loaded, c *store.Changes, p *payment.Payout, found *store.FoundTransfer) error {
	p.Step, p.NextAt, p.SentAt = payment.StepUnknown, l.Now(), found.CreatedAt
	c.AddSend(store.Send{
		Merchant: p.Merchant, Payout: p.ID, Number: 1, Processor: p.Processor, BodyHash: []byte{},
		Deadline: found.CreatedAt, Outcome: store.SendUnknown, Evidence: idInUse,
	})
	_, err := transition.Payout(l, c, p, payment.OnSend)
	return err
}

// LookUpUnapproved schedules the look-up of a payout that was not approved: the payout may have
// been sent before the database was restored. It is not sent, and fails if no transfer is found.
func LookUpUnapproved(l *store.Loaded, c *store.Changes, p *payment.Payout) error {
	p.Step, p.NextAt = payment.StepUnknown, l.Now()
	_, err := transition.Payout(l, c, p, payment.OnSend)
	return err
}

// recordFound records a processor's report about a transfer without a payout. known is
// false if it was not found in a list either.
func (e *Executor) recordFound(ctx context.Context, key store.FoundTransfer, report processor.TransferReport, notice *store.Notice) (known bool, err error) {
	if key.Merchant.IsZero() || report.Lookup != processor.Found {
		return false, nil
	}
	op := &recordFound{key: key, report: report, notice: notice}
	if err := e.Writer.Do(ctx, op); err != nil { // the commit may still be running, if ctx has ended
		return false, err
	}
	return op.known, nil
}

// recordFound gives a merchant the money of a found transfer that came back.
type recordFound struct {
	key    store.FoundTransfer
	report processor.TransferReport
	notice *store.Notice

	known bool
}

// Merchant implements [write.Operation].
func (v *recordFound) Merchant() payment.ID { return v.key.Merchant }

// Class implements [write.Operation].
func (v *recordFound) Class() commit.Class { return commit.Background }

// Needs implements [write.Operation].
func (v *recordFound) Needs(n *store.Needs) { n.FoundTransfer(v.key.Merchant, v.key.ExternalID) }

// Decide implements [write.Operation]. If the payout was requested again meanwhile, the reports
// about the payout count instead.
func (v *recordFound) Decide(l *store.Loaded, c *store.Changes) error {
	f, ok := l.FoundTransfer(v.key.Merchant, v.key.ExternalID)
	v.known = ok && f.Processor == v.key.Processor
	if !v.known {
		return nil
	}
	if v.notice != nil {
		c.FinishNotice(*v.notice)
	}
	if !f.AdoptedAt.IsZero() {
		return nil
	}
	return giveBack(l, c, f, v.left(f.Amount), isFinal(v.report))
}

// left is the amount that has not come back, by the report; known is the same amount by earlier
// reports.
func (v *recordFound) left(known money.Cents) money.Cents {
	switch r := &v.report; {
	case r.State == processor.TransferFailed:
		return 0
	case r.Amount <= 0 || r.Returned < 0 || r.Returned > r.Amount:
		return known // it proves nothing
	default:
		return r.Amount - r.Returned
	}
}
