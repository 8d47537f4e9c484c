package flow

import (
	"context"
	"errors"
	"fmt"

	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// chargeNews is what a processor said of a charge, on its way into the store.
type chargeNews struct {
	flow       *Flow
	merchant   payment.ID
	processor  string
	externalID string
	report     processor.ChargeReport
	notice     *store.Notice
	receipts   []*payment.Receipt
}

var receiveVerb = &verb{name: "receive_payment", duty: true, run: receivePayments}

// ErrFaultyPayment says that a processor reports a payment without an id, by
// which it could be told from another, or without an amount.
var ErrFaultyPayment = errors.New("flow: payment without an id or an amount")

// FileFaultyPayment gives up a payment that cannot be booked: a person asks the
// processor what it is.
func (f *Flow) FileFaultyPayment(ctx context.Context, name, externalID string) error {
	merchant, err := f.merchantOf(ctx, externalID)
	if err != nil {
		return public(err)
	}
	return f.write(ctx, func(tx *store.Tx) error {
		return tx.OpenException(ctx, store.Exception{
			Merchant: merchant, Kind: store.ExceptionNotice,
			Detail: "The processor " + name + " lists a payment of " + externalID + " without an id or an amount. Nothing was posted; compare with its statement.",
		})
	})
}

// ApplyCharge books what a processor says of a charge: its payments, each
// exactly once, whoever tells of them and however often; then its disputes and
// its state. notice, if any, is finished in the same commit. A report with a
// faulty payment is ErrFaultyPayment, and nothing of it is booked.
func (f *Flow) ApplyCharge(ctx context.Context, name, externalID string, report processor.ChargeReport, notice *store.Notice) error {
	v, err := f.newsOf(ctx, name, externalID, report, notice)
	if err != nil {
		return err
	}
	return f.submit(ctx, receiveVerb, v.merchant, v)
}

// newsOf makes a report one that can be booked.
func (f *Flow) newsOf(ctx context.Context, name, externalID string, report processor.ChargeReport, notice *store.Notice) (*chargeNews, error) {
	merchant, err := f.merchantOf(ctx, externalID)
	if err != nil {
		return nil, public(err)
	}
	v := &chargeNews{flow: f, merchant: merchant, processor: name, externalID: externalID, report: report, notice: notice}
	now := f.env.Clock.Now()
	for i := range report.Payments {
		pay := &report.Payments[i]
		if pay.ID == "" || pay.Amount <= 0 { // without an id it could not be told from another
			return nil, fmt.Errorf("%w: %s, of %s", ErrFaultyPayment, name, externalID)
		}
		v.receipts = append(v.receipts, &payment.Receipt{
			Merchant: merchant, ID: f.env.IDs.NewID(now), Processor: name, ExternalID: pay.ID,
			OrderID: externalID, EndToEndID: pay.EndToEndID, Amount: pay.Amount, PaidAt: pay.PaidAt, CreatedAt: now,
		})
	}
	return v, nil
}

// receivePayments books the news of one merchant's charges. The receipts of a
// processor are claimed in one statement; only new ones reach an order.
func receivePayments(ctx context.Context, tx *store.Tx, tasks []*task) error {
	return byProcessor(tasks, func(t *task) string { return t.arg.(*chargeNews).processor }, func(tasks []*task) error {
		return receiveFromOne(ctx, tx, tasks)
	})
}

// receiveFromOne is receivePayments for one processor's news.
func receiveFromOne(ctx context.Context, tx *store.Tx, tasks []*task) error {
	var all []*payment.Receipt
	for _, t := range tasks {
		all = append(all, t.arg.(*chargeNews).receipts...)
	}
	fresh, err := tx.ClaimReceipts(ctx, all)
	if err != nil {
		return err
	}
	ids := make([]string, len(tasks))
	for i, t := range tasks {
		ids[i] = t.arg.(*chargeNews).externalID
	}
	if err := tx.PayinsAhead(ctx, tasks[0].merchant, ids); err != nil {
		return err
	}
	var booked []*payment.Receipt
	next := 0
	for _, t := range tasks {
		v := t.arg.(*chargeNews)
		isNew := fresh[next : next+len(v.receipts)]
		next += len(v.receipts)
		receipts, err := v.apply(ctx, tx, isNew)
		if err != nil {
			return err
		}
		booked = append(booked, receipts...)
		if v.notice != nil {
			if err := tx.FinishNotice(ctx, *v.notice, store.NoticeApplied, ""); err != nil {
				return err
			}
		}
	}
	return tx.InsertReceipts(ctx, booked)
}

// apply books one charge's news and returns the receipts that were new.
func (v *chargeNews) apply(ctx context.Context, tx *store.Tx, isNew []bool) (booked []*payment.Receipt, err error) {
	p, _, err := tx.PayinByExternalID(ctx, v.merchant, v.externalID)
	known := err == nil && p.Processor == v.processor
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	for i, r := range v.receipts {
		if !isNew[i] {
			continue
		}
		booked = append(booked, r)
		if !known {
			err = bookUnmatched(ctx, tx, r)
		} else {
			err = v.flow.bookPayment(ctx, tx, &p, r, v.report.Payments[i].Card)
		}
		if err != nil {
			return nil, fmt.Errorf("receipt: %w", err)
		}
	}
	if !known {
		return booked, nil
	}
	for _, d := range v.report.Disputes {
		if err := v.flow.applyDispute(ctx, tx, &p, v.processor, d); err != nil {
			return nil, fmt.Errorf("dispute: %w", err)
		}
	}
	return booked, v.applyState(ctx, tx, &p)
}

// bookPayment gives a receipt to its order as far as the order still asks for
// it; the rest is kept as money that fits no order, and a person is told.
func (f *Flow) bookPayment(ctx context.Context, tx *store.Tx, p *payment.Payin, r *payment.Receipt, card *payment.CardDetail) error {
	on, applied := receiptTrigger(p, r.Amount)
	r.Payin, r.Applied = p.ID, applied
	if applied > 0 {
		p.PaidAmount += applied
		if p.EndToEndID == "" {
			p.EndToEndID = r.EndToEndID
		}
		if card != nil {
			known := *card
			if p.Details.Card != nil {
				known.HostedURL = p.Details.Card.HostedURL
			}
			p.Details.Card = &known
		}
		if on == payment.OnPay {
			p.Late = p.Status == payment.PayinExpired || p.Status == payment.PayinCanceled
			p.PaidAt, p.Failure = r.PaidAt, nil
		}
		if _, err := f.movePayin(ctx, tx, p, on, ledger.Receive(r.Processor, applied, 0)); err != nil {
			return err
		}
	}
	surplus := r.Amount - applied
	if surplus == 0 {
		return nil
	}
	moved, err := f.movePayin(ctx, tx, p, payment.OnPayMore, ledger.ReceiveUnapplied(r.Processor, surplus))
	if err != nil {
		return err
	}
	if !moved {
		return fmt.Errorf("flow: no cell for surplus in %s", p.Status)
	}
	return tx.OpenException(ctx, store.Exception{
		Merchant: p.Merchant, Kind: store.ExceptionOverpaid, Subject: p.ID, Amount: surplus,
		Detail: "More came than the order asked for; it is in the merchant's unapplied account. Give it back or assign it.",
	})
}

// receiptTrigger decides how much of a receipt an order takes, and what that
// does to it.
func receiptTrigger(p *payment.Payin, amount money.Cents) (payment.Trigger, money.Cents) {
	due := p.Amount - p.PaidAmount
	if _, payable := payment.PayinTable.Next(p.Status, payment.OnPay); !payable || due <= 0 {
		return payment.OnPayMore, 0
	}
	if amount < due {
		return payment.OnPayShort, amount
	}
	return payment.OnPay, due
}

// bookUnmatched keeps money that names no order of ours: with the merchant
// whose number it names, or with the platform itself.
func bookUnmatched(ctx context.Context, tx *store.Tx, r *payment.Receipt) error {
	r.Payin, r.Applied = payment.ID{}, 0
	if err := tx.Post(ctx, r.Merchant, r.ID, ledger.ReceiveUnapplied(r.Processor, r.Amount)); err != nil {
		return err
	}
	return tx.OpenException(ctx, store.Exception{
		Merchant: r.Merchant, Kind: store.ExceptionUnmatched, Subject: r.ID, Amount: r.Amount,
		Detail: "Money came that names no order of this gateway; it is in the unapplied account. Find out whose it is.",
	})
}

// applyState follows the charge's own state. What comes late meets an illegal
// cell and changes nothing: a receipt outweighs any state.
func (v *chargeNews) applyState(ctx context.Context, tx *store.Tx, p *payment.Payin) error {
	var on payment.Trigger
	switch v.report.State {
	case processor.ChargeAnalysis:
		on = payment.OnProcess
	case processor.ChargeExpired:
		on = payment.OnExpire
	case processor.ChargeFailed:
		on = payment.OnFail
	case processor.ChargeOpen:
		if !v.attemptIsNew(p) {
			return nil
		}
		on = payment.OnAttemptRefused
	default:
		return nil
	}
	if _, legal := payment.PayinTable.Next(p.Status, on); !legal {
		return nil
	}
	if v.report.Failure != nil {
		p.Failure = v.report.Failure
	}
	if on == payment.OnAttemptRefused && v.report.Attempt > 0 {
		p.Details.CardAttempts = v.report.Attempt
	}
	_, err := v.flow.movePayin(ctx, tx, p, on)
	return err
}

// attemptIsNew says whether the charge tells of a refused attempt that the
// order does not know: by its number, or, of processors that do not count, by
// its reason.
func (v *chargeNews) attemptIsNew(p *payment.Payin) bool {
	switch {
	case v.report.Failure == nil:
		return false
	case v.report.Attempt > 0:
		return v.report.Attempt > p.Details.CardAttempts
	default:
		return p.Failure == nil || *p.Failure != *v.report.Failure
	}
}
