package jobs

import (
	"context"
	"errors"
	"fmt"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// ApplyNotices reads notices that processors sent, asks the processor whether
// they are true, and applies what it answers.
func (j *Jobs) ApplyNotices(ctx context.Context) (int, error) {
	if !j.lease.Valid() {
		return 0, nil
	}
	born := j.notices.takeBorn()
	j.startNotices(ctx, born)
	kept := j.noticing.reserve(j.notices.wants(j.noticing.free()))
	if kept == 0 {
		return len(born), nil
	}
	list, err := j.Flow.ClaimNotices(ctx, kept)
	if err != nil { // whatever it read: it is not in hand
		j.noticing.giveBack(kept)
		return len(born), err
	}
	j.noticing.giveBack(kept - len(list))
	j.notices.note(kept, len(list))
	j.startNotices(ctx, list)
	return len(born) + len(list), nil
}

// startNotices applies notices, each of which has a place.
func (j *Jobs) startNotices(ctx context.Context, list []store.Notice) {
	for i := range list {
		j.noticing.runKept(func() { j.applyNotice(ctx, list[i]) })
	}
}

// applyNotice follows each hint of a notice. The notice is finished with the
// last of them; those before are harmless to repeat.
func (j *Jobs) applyNotice(ctx context.Context, n store.Notice) {
	err := guarded(func() error { return j.followHints(context.WithoutCancel(ctx), n) }, func(cause error) error { return cause })
	if err == nil {
		return
	}
	j.Log.WarnContext(ctx, "notice not applied yet", "processor", n.Processor, "notice", n.ID, "cause", err)
	j.record(ctx, "notice's delay", func(ctx context.Context) error { return j.Flow.DelayNotice(ctx, n, "not applied yet") })
}

func (j *Jobs) followHints(ctx context.Context, n store.Notice) error {
	proc := j.Processors[n.Processor]
	notifier, ok := proc.(processor.Notifier)
	if !ok {
		return j.Flow.StickNotice(ctx, n, payment.ID{}, "The processor is not configured any more.")
	}
	hints, err := notifier.ParseNotice(n.Body)
	if err != nil {
		return j.Flow.StickNotice(ctx, n, payment.ID{}, "The notice cannot be read.")
	}
	if len(hints) == 0 {
		return j.Flow.FinishNotice(ctx, n)
	}
	for i := range hints {
		var last *store.Notice
		if i == len(hints)-1 {
			last = &n
		}
		if err := j.applyHint(ctx, proc, n.Processor, hints[i], last); err != nil {
			return err
		}
	}
	return nil
}

// applyHint asks about what a hint names. Money moves on the answer, not on
// the hint; only a payment that the processor confirms without knowing its
// order is booked on its own.
func (j *Jobs) applyHint(ctx context.Context, proc processor.Processor, name string, h processor.Hint, notice *store.Notice) error {
	switch h.Subject {
	case processor.SubjectCharge:
		charger, ok := proc.(processor.Charger)
		if !ok {
			return fmt.Errorf("jobs: processor %s takes no payments", name)
		}
		report := ask(ctx, j, func(ctx context.Context) processor.ChargeReport { return charger.QueryCharge(ctx, h.ExternalID) })
		if report.Lookup != processor.Found {
			return fmt.Errorf("jobs: charge not confirmed: %w", orUnconfirmed(report.Cause))
		}
		return j.Flow.ApplyCharge(ctx, name, h.ExternalID, report, notice)
	case processor.SubjectTransfer:
		transferrer, ok := proc.(processor.Transferrer)
		if !ok {
			return fmt.Errorf("jobs: processor %s sends no money", name)
		}
		report := ask(ctx, j, func(ctx context.Context) processor.TransferReport {
			return transferrer.QueryTransfer(ctx, h.ExternalID)
		})
		if report.Lookup != processor.Found {
			return fmt.Errorf("jobs: transfer not confirmed: %w", orUnconfirmed(report.Cause))
		}
		if notice == nil {
			notice = &store.Notice{}
		}
		return j.Flow.ApplyTransferNotice(ctx, name, h.ExternalID, report, notice)
	default:
		if notice == nil {
			return nil
		}
		return j.Flow.FinishNotice(ctx, *notice)
	}
}

// ask asks a processor once there is a place for one more question.
func ask[R any](ctx context.Context, j *Jobs, question func(context.Context) R) R {
	j.asking <- struct{}{}
	defer func() { <-j.asking }()
	limited, cancel := j.Env.Clock.WithTimeout(ctx, questionTimeout)
	defer cancel()
	return question(limited)
}

var errUnconfirmed = errors.New("the processor does not know it")

func orUnconfirmed(err error) error {
	if err == nil {
		return errUnconfirmed
	}
	return err
}
