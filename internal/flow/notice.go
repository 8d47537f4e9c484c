package flow

import (
	"context"
	"errors"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// noticeAgainAfter is the schedule on which a notice that cannot be applied
// yet is tried again; after the last one a person reads it.
var noticeAgainAfter = []time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour,
}

type recordedNotice struct{ notice store.Notice }

var recordNoticeVerb = &verb{name: "record_notice", run: func(ctx context.Context, tx *store.Tx, tasks []*task) error {
	return byProcessor(tasks, func(t *task) string { return t.arg.(*recordedNotice).notice.Processor }, func(tasks []*task) error {
		list := make([]store.Notice, len(tasks))
		for i, t := range tasks {
			list[i] = t.arg.(*recordedNotice).notice
		}
		_, err := tx.RecordNotices(ctx, list)
		return err
	})
}}

// byProcessor runs tasks that follow each other and are of the same processor
// together.
func byProcessor(tasks []*task, of func(*task) string, run func([]*task) error) error {
	for len(tasks) > 0 {
		end := 1
		for end < len(tasks) && of(tasks[end]) == of(tasks[0]) {
			end++
		}
		if err := run(tasks[:end]); err != nil {
			return err
		}
		tasks = tasks[end:]
	}
	return nil
}

// RecordNotice stores a verified notice as it came, before it is answered. One
// that came before is not stored again.
func (f *Flow) RecordNotice(ctx context.Context, name, noticeID, headers string, body []byte) error {
	v := &recordedNotice{store.Notice{Processor: name, ID: noticeID, Headers: headers, Body: body}}
	if err := f.submit(ctx, recordNoticeVerb, payment.ID{}, v); err != nil {
		return err
	}
	f.wake(WakeNotices)
	return nil
}

// ClaimNotices takes up to limit notices in hand that are to be applied.
func (f *Flow) ClaimNotices(ctx context.Context, limit int) (list []store.Notice, err error) {
	err = f.claim(ctx, payment.ID{}, func(tx *store.Tx, node payment.ID) error {
		list, err = tx.ClaimNotices(ctx, node, limit)
		return err
	})
	return list, err
}

// ApplyTransferNotice books what a processor says of a transfer, on notice. A
// transfer whose payout nobody knows is for a person: money left, and no order
// asked for it.
func (f *Flow) ApplyTransferNotice(ctx context.Context, name, externalID string, report processor.TransferReport, notice *store.Notice) error {
	merchant, err := f.merchantOf(ctx, externalID)
	if err != nil {
		return public(err)
	}
	p, _, err := f.store.PayoutByExternalID(ctx, merchant, externalID)
	if errors.Is(err, store.ErrNotFound) || err == nil && p.Processor != name {
		return f.StickNotice(ctx, *notice, merchant, "The processor speaks of a transfer that this gateway did not order: "+externalID+".")
	}
	if err != nil {
		return public(err)
	}
	return f.submit(ctx, answerVerb, merchant, &answered{flow: f, ref: store.Ref{Merchant: merchant, ID: p.ID}, report: report, notice: notice})
}

// endedNotice is one that was not applied: there was nothing to apply, or it is
// to be tried again.
type endedNotice struct {
	notice  store.Notice
	again   time.Duration // from now; 0 where it is done with
	problem string
}

var endNoticeVerb = &verb{name: "end_notice", duty: true, still: true, run: func(ctx context.Context, tx *store.Tx, tasks []*task) (err error) {
	for _, t := range tasks {
		if v := t.arg.(*endedNotice); v.again > 0 {
			err = tx.DelayNotice(ctx, v.notice, tx.Now.Add(v.again), v.problem)
		} else {
			err = tx.FinishNotice(ctx, v.notice, store.NoticeApplied, "")
		}
		if err != nil {
			return err
		}
	}
	return nil
}}

// DelayNotice gives a notice back that cannot be applied yet; after the last
// try of its schedule it is stuck.
func (f *Flow) DelayNotice(ctx context.Context, n store.Notice, why string) error {
	if n.Tries > len(noticeAgainAfter) {
		return f.StickNotice(ctx, n, payment.ID{}, why)
	}
	again := f.env.Random.Jitter(step(noticeAgainAfter, n.Tries-1), 10)
	return f.submit(ctx, endNoticeVerb, payment.ID{}, &endedNotice{notice: n, again: again, problem: why})
}

// FinishNotice marks a notice as read that had nothing to apply.
func (f *Flow) FinishNotice(ctx context.Context, n store.Notice) error {
	return f.submit(ctx, endNoticeVerb, payment.ID{}, &endedNotice{notice: n})
}

// StickNotice gives a notice up: a person reads it.
func (f *Flow) StickNotice(ctx context.Context, n store.Notice, merchant payment.ID, why string) error {
	f.log.Error("notice cannot be applied", "processor", n.Processor, "notice", n.ID, "why", why)
	return f.write(ctx, func(tx *store.Tx) error {
		if err := tx.OpenException(ctx, store.Exception{Merchant: merchant, Kind: store.ExceptionNotice, Detail: why + " Notice " + n.Processor + "/" + n.ID + "."}); err != nil {
			return err
		}
		return tx.FinishNotice(ctx, n, store.NoticeStuck, why)
	})
}

// SaveCursor remembers how far a processor's list of payments has been read.
func (f *Flow) SaveCursor(ctx context.Context, name, cursor string) error {
	return f.beside(ctx, func(tx *store.Tx) error { return tx.SetSetting(ctx, store.SettingCursor+name, cursor) })
}

// SaveChanges remembers how far a processor's list of changes has been read.
func (f *Flow) SaveChanges(ctx context.Context, name, cursor string) error {
	return f.beside(ctx, func(tx *store.Tx) error { return tx.SetSetting(ctx, store.SettingChanges+name, cursor) })
}

// KnowsChange says whether a change that a processor lists is booked already,
// and whether it concerns an order of ours at all.
func (f *Flow) KnowsChange(ctx context.Context, name string, c processor.Change) (known, ours bool, err error) {
	merchant, err := f.merchantOf(ctx, c.ExternalID)
	if err != nil {
		return false, false, public(err)
	}
	if c.Subject == processor.SubjectTransfer {
		p, _, err := f.store.PayoutByExternalID(ctx, merchant, c.ExternalID)
		if errors.Is(err, store.ErrNotFound) {
			return false, false, nil
		}
		return p.ReturnedAmount >= c.Returned, true, public(err)
	}
	order, _, err := f.store.PayinByExternalID(ctx, merchant, c.ExternalID)
	if errors.Is(err, store.ErrNotFound) || c.Dispute == nil {
		return false, false, nil
	}
	if err != nil {
		return false, true, public(err)
	}
	state, err := f.store.DisputeState(ctx, merchant, name, c.Dispute.ID)
	if errors.Is(err, store.ErrNotFound) { // one that cannot be posted is a person's
		known, err := f.store.HasException(ctx, merchant, order.ID, store.ExceptionDispute)
		return known, true, public(err)
	}
	// Of what was listed as open, any state is a later one.
	return state == string(c.Dispute.State) || c.Dispute.State == processor.DisputeOpen || state == string(processor.DisputeReversed), true, public(err)
}

// DoubtChange leaves a change that its processor lists, and does not confirm,
// to a person.
func (f *Flow) DoubtChange(ctx context.Context, name string, c processor.Change) error {
	merchant, err := f.merchantOf(ctx, c.ExternalID)
	if err != nil {
		return public(err)
	}
	e := store.Exception{
		Merchant: merchant, Kind: store.ExceptionContradiction, Amount: c.Returned,
		Detail: "The processor " + name + " lists money that moved again, and does not show it when it is asked: " + c.ExternalID + ". Nothing was posted; compare with its statement.",
	}
	if c.Subject == processor.SubjectTransfer {
		p, _, err := f.store.PayoutByExternalID(ctx, merchant, c.ExternalID)
		if err != nil {
			return public(err)
		}
		e.Subject = p.ID
	} else {
		p, _, err := f.store.PayinByExternalID(ctx, merchant, c.ExternalID)
		if err != nil {
			return public(err)
		}
		e.Subject = p.ID
	}
	if c.Dispute != nil {
		e.Amount = c.Dispute.Amount
	}
	return f.write(ctx, func(tx *store.Tx) error { return tx.OpenException(ctx, e) })
}
