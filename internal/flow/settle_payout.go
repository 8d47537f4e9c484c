package flow

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// askAfter is the schedule of questions about a payout that is under way or
// unknown: seconds, then minutes, hours, days.
var askAfter = []time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second,
	time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour,
}

// askWorry is the number of questions without an answer after which a person
// is told; the questions go on.
const askWorry = 9

// sendAgainAfter is the schedule of further sends of what definitely was not sent.
var sendAgainAfter = []time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute,
}

// step picks the nth wait of a schedule, whose last one repeats.
func step(schedule []time.Duration, n int) time.Duration {
	return schedule[min(max(n, 0), len(schedule)-1)]
}

// sent is how a send ended, on its way into the store.
type sent struct {
	flow    *Flow
	payout  payment.Payout // as it was claimed
	number  int64          // of the send
	answer  processor.TransferAnswer
	settled payment.Payout
}

var endSendVerb = dutyOf(eachPayout("end_send", func(v *sent) payment.ID { return v.payout.ID }, endSend))

// eachPayout is each, for tasks that are about a payout: all are read together.
func eachPayout[T any](name string, of func(T) payment.ID, decide func(ctx context.Context, tx *store.Tx, arg T) error) *verb {
	v := each(name, decide)
	run := v.run
	v.run = func(ctx context.Context, tx *store.Tx, tasks []*task) error {
		ids := make([]payment.ID, len(tasks))
		for i, t := range tasks {
			ids[i] = of(t.arg.(T))
		}
		if err := tx.PayoutsAhead(ctx, tasks[0].merchant, ids); err != nil {
			return err
		}
		return run(ctx, tx, tasks)
	}
	return v
}

// EndSend records how a send ended. Done follows the processor's report,
// Refused gives the money back, NotSent queues it again, and Unknown keeps the
// hold and is asked about: it is never sent blindly.
func (f *Flow) EndSend(ctx context.Context, s Sending, answer processor.TransferAnswer) error {
	v := &sent{flow: f, payout: s.Payout, number: s.Number, answer: answer}
	if err := f.submit(ctx, endSendVerb, s.Payout.Merchant, v); err != nil {
		return err
	}
	if v.settled.Step == payment.StepUnknown || v.settled.Step == payment.StepAccepted {
		f.wake(WakeResolve) // it looks when the next question is due
	}
	return nil
}

func endSend(ctx context.Context, tx *store.Tx, v *sent) error {
	f := v.flow
	p, err := tx.Payout(ctx, v.payout.Merchant, v.payout.ID)
	if err != nil {
		return err
	}
	defer func() { v.settled = p }()
	if v.answer.Outcome == processor.Done {
		return f.applyTransfer(ctx, tx, &p, v.answer.Report)
	}
	sends, err := tx.Sends(ctx, p.Merchant, p.ID)
	if err != nil {
		return err
	}
	if int64(len(sends)) != v.number {
		return nil // sent again since then: this answer says nothing of that
	}
	mine := p.Step == payment.StepIntent && p.ClaimedBy == v.payout.ClaimedBy
	if !mine && v.answer.Outcome != processor.Refused {
		return nil // somebody has taken it over and asks, or this is recorded already
	}
	switch v.answer.Outcome {
	case processor.Refused:
		return f.transferFailed(ctx, tx, &p, store.SendRefused, v.answer.Failure, v.answer.Evidence)
	case processor.NotSent:
		if err := tx.EndSend(ctx, p.Merchant, p.ID, store.SendNotSent, cause(v.answer.Cause)); err != nil {
			return err
		}
		p.Step, p.ClaimedBy = payment.StepQueued, payment.ID{}
		p.NextAt = tx.Now.Add(f.env.Random.Jitter(step(sendAgainAfter, len(sends)-1), 10))
		return tx.UpdatePayout(ctx, &p, p.Version)
	default:
		if err := tx.EndSend(ctx, p.Merchant, p.ID, store.SendUnknown, cause(v.answer.Cause)); err != nil {
			return err
		}
		p.Step, p.ClaimedBy, p.Lookups = payment.StepUnknown, payment.ID{}, 0
		p.NextAt = tx.Now.Add(step(askAfter, 0))
		return tx.UpdatePayout(ctx, &p, p.Version)
	}
}

// cause is an operator's short text of an error, fit for a column.
func cause(err error) string {
	if err == nil {
		return ""
	}
	return short(err.Error())
}

// short is the beginning of a text that somebody else wrote, as every database
// takes it: whole characters, and no NUL.
func short(text string) string {
	text = strings.ReplaceAll(text[:min(len(text), 500)], "\x00", "")
	return strings.ToValidUTF8(text, "")
}

// ClaimQuestions takes up to limit payouts in hand that are to be
// asked about: accepted ones whose news is late, and unknown ones.
func (f *Flow) ClaimQuestions(ctx context.Context, due store.Due, limit int) (list []payment.Payout, err error) {
	err = f.claim(ctx, due.Merchant, func(tx *store.Tx, node payment.ID) error {
		list, err = tx.ClaimPayouts(ctx, due, node, store.ToAsk, limit)
		return err
	})
	return list, err
}

// answered is a processor's word on a payout, on its way into the store.
type answered struct {
	flow   *Flow
	ref    store.Ref
	report processor.TransferReport
	asked  payment.ID // the process that had it in hand to ask; zero for a notice
	notice *store.Notice
	again  bool
}

var answerVerb = dutyOf(eachPayout("settle_payout", func(v *answered) payment.ID { return v.ref.ID }, settlePayout))

// SettlePayout applies what a processor says of a payout when it is asked.
func (f *Flow) SettlePayout(ctx context.Context, p payment.Payout, report processor.TransferReport) error {
	v := &answered{flow: f, ref: store.Ref{Merchant: p.Merchant, ID: p.ID}, report: report, asked: p.ClaimedBy}
	if err := f.submit(ctx, answerVerb, p.Merchant, v); err != nil {
		return err
	}
	if v.again {
		f.wake(WakeSubmit)
	}
	return nil
}

func settlePayout(ctx context.Context, tx *store.Tx, v *answered) error {
	f := v.flow
	p, err := tx.Payout(ctx, v.ref.Merchant, v.ref.ID)
	if err != nil {
		return err
	}
	if v.notice != nil {
		if err := tx.FinishNotice(ctx, *v.notice, store.NoticeApplied, ""); err != nil {
			return err
		}
	}
	if v.report.Lookup == processor.Found {
		return f.applyTransfer(ctx, tx, &p, v.report)
	}
	if v.asked.IsZero() || p.ClaimedBy != v.asked {
		return nil // only who has it in hand may conclude from silence
	}
	p.Lookups++
	p.ClaimedBy, p.NextAt = payment.ID{}, tx.Now.Add(f.env.Random.Jitter(step(askAfter, p.Lookups), 10))
	if v.report.Lookup == processor.NotFound && p.Step == payment.StepUnknown {
		v.again, err = f.notFound(ctx, tx, &p)
		return err
	}
	if err := tx.UpdatePayout(ctx, &p, p.Version); err != nil || p.Lookups < askWorry {
		return err
	}
	if err := tx.CloseExceptions(ctx, p.Merchant, p.ID, store.ExceptionPayoutUnknown); err != nil {
		return err
	}
	return tx.OpenException(ctx, store.Exception{
		Merchant: p.Merchant, Kind: store.ExceptionPayoutUnknown, Subject: p.ID, Amount: p.Amount,
		Detail: "The processor does not say what became of it. Its money stays held, and it goes on being asked about; ask the processor's support with the externalId.",
	})
}

// notFound concludes from a processor's "not found" about an unknown payout:
// nothing within the quiet period; then it is sent again, same id and same
// bytes, if the processor is idempotent on our id; else a person decides.
func (f *Flow) notFound(ctx context.Context, tx *store.Tx, p *payment.Payout) (again bool, err error) {
	proc, err := f.processorOf(p.Processor)
	if err != nil {
		return false, err
	}
	profile := proc.Profile()
	last := p.SentAt
	sends, err := tx.Sends(ctx, p.Merchant, p.ID)
	if err != nil {
		return false, err
	}
	if len(sends) > 0 {
		if last, err = f.sentUntil(ctx, tx, sends[len(sends)-1], profile.TransferTimeout); err != nil {
			return false, err
		}
	}
	if restored := f.RestoredAt(); last.Before(restored) {
		last = restored // it may have been sent right before the backup was restored
	}
	if quiet := last.Add(profile.QuietPeriod); tx.Now.Before(quiet) {
		if p.NextAt.After(quiet) {
			p.NextAt = quiet
		}
		return false, tx.UpdatePayout(ctx, p, p.Version)
	}
	if err := tx.EndSend(ctx, p.Merchant, p.ID, store.SendNotFound, "look-up after the quiet period: not found"); err != nil {
		return false, err
	}
	if !profile.IdempotentByOurID {
		return false, f.needsPerson(ctx, tx, p, "The processor may or may not have paid it, does not find it, and cannot be trusted with a second request. Check its statement.")
	}
	p.Step, p.NextAt = payment.StepQueued, tx.Now
	return true, tx.UpdatePayout(ctx, p, p.Version)
}

// sentUntil is when the last byte of a send can have left. One whose deadline a
// clock dated that ran ahead counts from now: nobody sends it any more.
func (f *Flow) sentUntil(ctx context.Context, tx *store.Tx, s store.Send, within time.Duration) (time.Time, error) {
	if s.Deadline.Before(tx.Now.Add(longestWait)) {
		return s.Deadline, nil
	}
	until := tx.Now.Add(within)
	return until, tx.RedateSend(ctx, s.Merchant, s.Payout, s.Number, until)
}

// applyTransfer follows what a processor proved about a transfer of ours.
func (f *Flow) applyTransfer(ctx context.Context, tx *store.Tx, p *payment.Payout, r processor.TransferReport) error {
	if r.Amount != 0 && r.Amount != p.Amount {
		return f.contradiction(ctx, tx, p, fmt.Sprintf("The processor reports %s for a payout of %s.", r.Amount.English(), p.Amount.English()))
	}
	if r.ProcessorID != "" {
		p.ProcessorID = r.ProcessorID
	}
	if p.Status == payment.PayoutPending && r.State != processor.TransferFailed {
		p.SentAt = tx.Now // at the latest: in a past that the database has forgotten
		if _, err := movePayout(ctx, tx, p, payment.OnSend); err != nil {
			return err
		}
	}
	switch r.State {
	case processor.TransferPaid:
		if err := f.transferPaid(ctx, tx, p, r); err != nil {
			return err
		}
		return f.transferReturned(ctx, tx, p, r.Returned)
	case processor.TransferFailed:
		return f.transferFailed(ctx, tx, p, store.SendFailed, r.Failure, r.Evidence)
	default:
		return f.transferUnderWay(ctx, tx, p, r.Evidence)
	}
}

// transferUnderWay notes that the processor has the transfer: its end is
// announced, and asked for in case the news gets lost.
func (f *Flow) transferUnderWay(ctx context.Context, tx *store.Tx, p *payment.Payout, evidence string) error {
	if p.Status != payment.PayoutProcessing {
		return nil
	}
	if p.Step == payment.StepAccepted {
		p.Lookups++
	} else {
		p.Lookups = 2 // the first questions can wait for the notice
	}
	p.Step, p.ClaimedBy = payment.StepAccepted, payment.ID{}
	p.NextAt = tx.Now.Add(f.env.Random.Jitter(step(askAfter, p.Lookups), 10))
	if err := tx.EndSend(ctx, p.Merchant, p.ID, store.SendAccepted, short(evidence)); err != nil {
		return err
	}
	return tx.UpdatePayout(ctx, p, p.Version)
}

func (f *Flow) transferPaid(ctx context.Context, tx *store.Tx, p *payment.Payout, r processor.TransferReport) error {
	switch p.Status {
	case payment.PayoutCompleted, payment.PayoutReturned:
		return nil // known
	case payment.PayoutProcessing:
	default:
		return f.contradiction(ctx, tx, p, "The processor says that it paid, but its money had been given back: status "+string(p.Status)+".")
	}
	finish(p)
	p.EndToEndID, p.CompletedAt, p.Failure = r.EndToEndID, tx.Now, nil
	if err := tx.EndSend(ctx, p.Merchant, p.ID, store.SendPaid, short(r.Evidence)); err != nil {
		return err
	}
	if err := tx.CloseExceptions(ctx, p.Merchant, p.ID, store.ExceptionPayoutUnknown); err != nil {
		return err
	}
	_, err := movePayout(ctx, tx, p, payment.OnComplete, ledger.PayPayout(p.Processor, p.Amount, p.Fee))
	return err
}

func (f *Flow) transferReturned(ctx context.Context, tx *store.Tx, p *payment.Payout, returned money.Cents) error {
	back := returned - p.ReturnedAmount
	if back <= 0 {
		return nil
	}
	if returned > p.Amount {
		return f.contradiction(ctx, tx, p, "The processor says that more came back than was sent.")
	}
	p.ReturnedAmount = returned
	on := payment.OnReturnPart
	if returned == p.Amount {
		on = payment.OnReturn
	}
	_, err := movePayout(ctx, tx, p, on, ledger.ReturnPayout(p.Processor, back))
	return err
}

// transferFailed gives the money of a payout back, on the processor's proof
// that it will not leave.
func (f *Flow) transferFailed(ctx context.Context, tx *store.Tx, p *payment.Payout, outcome string, why *payment.Failure, evidence string) error {
	switch p.Status {
	case payment.PayoutFailed, payment.PayoutCanceled:
		return nil // known
	case payment.PayoutCompleted, payment.PayoutReturned:
		return f.contradiction(ctx, tx, p, "The processor says that it failed, after it had said that it paid.")
	}
	if why == nil {
		why = &payment.Failure{Code: "transfer_failed", Message: "The processor did not pay it."}
	}
	finish(p)
	p.Failure = why
	if err := tx.EndSend(ctx, p.Merchant, p.ID, outcome, short(evidence)); err != nil {
		return err
	}
	if err := tx.CloseExceptions(ctx, p.Merchant, p.ID, store.ExceptionPayoutUnknown); err != nil {
		return err
	}
	_, err := movePayout(ctx, tx, p, payment.OnFail, ledger.ReleasePayout(p.Amount, p.Fee))
	return err
}

// contradiction keeps the books as they are and asks a person: money moves on
// proof only, and here are two proofs.
func (f *Flow) contradiction(ctx context.Context, tx *store.Tx, p *payment.Payout, what string) error {
	if p.Status == payment.PayoutProcessing && p.Step != payment.StepPerson {
		p.Step, p.NextAt, p.ClaimedBy = payment.StepPerson, time.Time{}, payment.ID{}
		if err := tx.UpdatePayout(ctx, p, p.Version); err != nil {
			return err
		}
	}
	f.log.Error("processor contradicts itself", "payout", p.ID, "externalId", p.ExternalID, "what", what)
	if err := tx.CloseExceptions(ctx, p.Merchant, p.ID, store.ExceptionContradiction); err != nil {
		return err
	}
	return tx.OpenException(ctx, store.Exception{
		Merchant: p.Merchant, Kind: store.ExceptionContradiction, Subject: p.ID, Amount: p.Amount,
		Detail: what + " Nothing was posted; compare with its statement.",
	})
}
