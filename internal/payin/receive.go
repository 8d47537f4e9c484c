package payin

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/dispute"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/receivable"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/transition"
	"github.com/porteira/porteira/internal/write"
)

// ErrInvalidPayment means that a processor reports a payment without an amount, with an invalid
// cost, or without an id, which would make it unique.
var ErrInvalidPayment = errors.New("payin: payment without an id or an amount, or with a wrong cost")

// Receive books a processor's report about a charge: its payments, each exactly
// once, no matter how often and by which path they are reported; then its disputes
// and its state. notice, if any, is finished in the same commit. A report with an
// invalid payment is ErrInvalidPayment, and nothing of it is booked.
func (s *Service) Receive(ctx context.Context, processorName, externalID string, report processor.ChargeReport, notice *store.Notice) error {
	op, err := s.NewReceive(ctx, processorName, externalID, report, notice)
	if err != nil {
		return err
	}
	err = s.Writer.Do(ctx, op)
	if errors.Is(err, errElsewhere) {
		op.elsewhere = true
		err = s.Writer.Do(ctx, op)
	}
	if errors.Is(err, errSamePix) { // then op has nothing new of it
		if err = s.Writer.Do(ctx, op.samePix()); err == nil {
			err = s.Writer.Do(ctx, op)
		}
	}
	if errors.Is(err, errUnidentified) {
		op.toPlatform()
		err = s.Writer.Do(ctx, op)
	}
	return err
}

// errElsewhere means that the order is at another account now. It may have been tried at the
// account that reports.
var errElsewhere = errors.New("payin: the order is at another account")

// errSamePix means that a reported Pix is booked already, for the same order at another account.
var errSamePix = errors.New("payin: another account has the same Pix")

// errUnidentified refuses to book money on a merchant's accounts, as it names none of the
// merchant's orders at that processor.
var errUnidentified = errors.New("payin: payment of no order")

// Receive is the operation that books a report.
type Receive struct {
	merchant   payment.ID
	processor  string
	externalID string
	report     processor.ChargeReport
	notice     *store.Notice
	receipts   []*payment.Receipt // of report.Payments
	disputes   []payment.ID       // of report.Disputes, if they are new
	links      transition.Links
	elsewhere  bool              // the order is at another account now
	bookedAt   map[string]string // the other account that has the Pix, as errSamePix, by the endToEndId
}

// NewReceive builds the operation that books a report. Errors: ErrInvalidPayment,
// and those of the store.
func (s *Service) NewReceive(ctx context.Context, processorName, externalID string, report processor.ChargeReport, notice *store.Notice) (*Receive, error) {
	merchant, err := s.Store.MerchantOf(ctx, externalID)
	if err != nil {
		return nil, store.Problem(err)
	}
	v := &Receive{merchant: merchant, processor: processorName, externalID: externalID, report: report, notice: notice, links: s.Links}
	now := s.Env.Clock.Now()
	for i := range report.Payments {
		pay := &report.Payments[i]
		if pay.ID == "" || pay.Amount <= 0 || pay.Cost < 0 || pay.Cost > money.Max {
			return nil, fmt.Errorf("%w: %s, of %s", ErrInvalidPayment, processorName, externalID)
		}
		v.receipts = append(v.receipts, &payment.Receipt{
			Merchant: merchant, ID: s.Env.IDs.NewID(now), Processor: processorName, ExternalID: pay.ID,
			OrderID: externalID, EndToEndID: pay.EndToEndID, Amount: pay.Amount, Cost: pay.Cost, PaidAt: pay.PaidAt,
		})
	}
	for range report.Disputes {
		v.disputes = append(v.disputes, s.Env.IDs.NewID(now))
	}
	return v, nil
}

// toPlatform makes the platform the owner of the receipts: they name no order.
func (v *Receive) toPlatform() {
	v.merchant = payment.ID{}
	for _, r := range v.receipts {
		r.Merchant = v.merchant
	}
}

// Merchant implements [write.Operation].
func (v *Receive) Merchant() payment.ID { return v.merchant }

// Class implements [write.Operation].
func (v *Receive) Class() commit.Class { return commit.Background }

// Needs claims the receipts, and returns only new ones. It reads the rows that a new receipt or a
// dispute changes.
func (v *Receive) Needs(n *store.Needs) {
	n.PayinByExternalID(v.merchant, v.externalID)
	n.Receipts(v.receipts...)
	n.RefundsIfPaidAgain(v.merchant, v.externalID, v.receipts...) // for its receipts
	for i := range v.report.Disputes {
		n.Dispute(v.merchant, v.processor, v.report.Disputes[i].ID)
	}
	if len(v.report.Disputes) > 0 {
		n.DisputesOf(v.merchant, v.externalID)
		n.ReceivablesByExternalID(v.merchant, v.externalID)
	}
	if len(v.receipts)+len(v.report.Disputes) > 0 {
		n.Balances(v.merchant)
	}
	if v.elsewhere || v.report.State == processor.ChargeAnalysis || v.showsCurrent() {
		n.ChargeByExternalID(v.merchant, v.externalID)
	}
	n.ExpectDeliveries(v.merchant, 1) // nearly always one; any node may claim more
}

// Decide applies new receipts to their order, follows its disputes and the state of
// the charge, and finishes the notice. It is errUnidentified if a new receipt names no
// order and the platform is not its owner.
func (v *Receive) Decide(l *store.Loaded, c *store.Changes) error {
	p, _, known := l.PayinByExternalID(v.merchant, v.externalID)
	if known && p.Processor != v.processor {
		if !v.elsewhere {
			c.UndoKeys()
			return errElsewhere
		}
		known = l.ChargedAt(p.Merchant, p.ID, v.processor)
	}
	if known && v.findSamePix(l, &p) {
		c.UndoKeys()
		return errSamePix
	}
	if err := v.applyReceipts(l, c, &p, known); err != nil {
		return err
	}
	if known {
		for i, reported := range v.report.Disputes {
			if v.isOfOtherMoney(l, &p, &reported) {
				continue
			}
			if err := dispute.Apply(l, c, &p, v.links, v.processor, v.disputes[i], reported); err != nil {
				return fmt.Errorf("dispute: %w", err)
			}
		}
		if v.showsCurrent() {
			followDisputes(l, c, &p)
		}
		if p.Processor == v.processor {
			if err := v.applyState(l, c, &p); err != nil {
				return err
			}
		}
	}
	if v.notice != nil {
		c.FinishNotice(*v.notice)
	}
	return nil
}

// applyReceipts books the new receipts: for their order or, if it is not known, on the
// platform's accounts.
func (v *Receive) applyReceipts(l *store.Loaded, c *store.Changes, p *payment.Payin, known bool) error {
	for i, r := range v.receipts {
		if !l.Inserted(r.ID) {
			continue
		}
		var err error
		switch {
		case known:
			err = v.applyReceipt(l, c, p, *r, v.report.Payments[i].Card)
		case !v.merchant.IsZero():
			c.UndoKeys()
			return errUnidentified
		default:
			err = v.bookUnidentified(c, *r)
		}
		if err == nil && r.Cost > 0 {
			err = c.Post(v.merchant, costSubject(p, r), ledger.BookCost(r.Processor, r.Cost))
		}
		if err != nil {
			return fmt.Errorf("receipt: %w", err)
		}
	}
	return nil
}

// isOfOtherMoney reports whether a new dispute is of a reported payment that is not booked for the
// order. Such a payment came before the order, which a copy of the database lacked, was requested
// again, so it names no order. Its dispute is booked with it.
func (v *Receive) isOfOtherMoney(l *store.Loaded, p *payment.Payin, d *processor.Dispute) bool {
	if _, known := l.Dispute(p.Merchant, v.processor, d.ID); known || p.PaidAmount > l.Received(p.Merchant, p.ID) { // such money may be applied to it
		return false
	}
	reported := slices.ContainsFunc(v.report.Payments, func(r processor.Payment) bool { return r.ID == d.PaymentID })
	booked := slices.ContainsFunc(l.ReceiptsOf(p.Merchant, p.ID), func(r payment.Receipt) bool {
		return r.Processor == v.processor && r.ExternalID == d.PaymentID
	})
	return reported && !booked
}

// showsCurrent reports whether the processor shows present disputes only: then their ends are in no
// list.
func (v *Receive) showsCurrent() bool {
	return slices.ContainsFunc(v.report.Disputes, func(d processor.Dispute) bool { return d.Current })
}

// costSubject is the order of a receipt, or the receipt itself if it names none.
func costSubject(p *payment.Payin, r *payment.Receipt) payment.ID {
	if r.Merchant.IsZero() {
		return r.ID
	}
	return p.ID
}

// applyReceipt applies a receipt to its order, up to the amount still unpaid; the
// rest is kept as unapplied, with a case.
func (v *Receive) applyReceipt(l *store.Loaded, c *store.Changes, p *payment.Payin, r payment.Receipt, card *payment.CardDetail) error {
	on, applied := receiptTrigger(p, r.Amount)
	r.Payin, r.Applied = p.ID, applied
	c.AddReceipt(r)
	if applied > 0 {
		p.PaidAmount += applied
		if p.EndToEndID == "" {
			p.EndToEndID = r.EndToEndID
		}
		setCard(p, card)
		if on == payment.OnPay {
			p.Late = p.LateAt(r.PaidAt)
			p.PaidAt, p.Failure = r.PaidAt, nil
		}
		credit := receivable.Book(l, c, p, applied, r.PaidAt)
		if _, err := transition.Payin(l, c, p, v.links, on, credit.Received(r.Processor)...); err != nil {
			return err
		}
		if err := dispute.ShowBefore(l, c, p, v.links); err != nil {
			return err
		}
	}
	surplus := r.Amount - applied
	if surplus == 0 {
		return nil
	}
	p.UnappliedAmount += surplus
	moved, err := transition.Payin(l, c, p, v.links, payment.OnPayMore, ledger.ReceiveUnapplied(r.Processor, surplus))
	if err != nil {
		return err
	}
	if !moved {
		return fmt.Errorf("payin: no cell for surplus in %s", p.Status)
	}
	c.OpenCase(store.Case{Merchant: p.Merchant, Kind: store.CaseOverpaid, Subject: p.ID, Amount: surplus, Params: store.OfReceipt(r.ID)})
	return nil
}

// setCard stores the known data of the card that paid.
func setCard(p *payment.Payin, card *payment.CardDetail) {
	if card == nil {
		return
	}
	known := *card
	if p.Details.Card != nil {
		known.HostedURL = p.Details.Card.HostedURL
	}
	p.Details.Card = &known
}

// receiptTrigger decides how much of a receipt is applied to an order, and its
// trigger.
func receiptTrigger(p *payment.Payin, amount money.Cents) (payment.Trigger, money.Cents) {
	lacking := p.Lacking()
	if _, payable := payment.PayinTable.Next(p.Status, payment.OnPay); !payable || lacking <= 0 {
		return payment.OnPayMore, 0
	}
	if amount < lacking {
		return payment.OnPayShort, amount
	}
	return payment.OnPay, lacking
}

// bookUnidentified books money that names no order on the platform's accounts, never on a
// merchant's. The text that names an order proves nothing here: the payer of a static code, or
// another program at the same processor, chooses it.
func (v *Receive) bookUnidentified(c *store.Changes, r payment.Receipt) error {
	r.Payin, r.Applied = payment.ID{}, 0
	c.AddReceipt(r)
	params := store.Params{"processor": r.Processor, "externalId": r.OrderID}
	if account := v.bookedAt[r.EndToEndID]; account != "" {
		params["bookedAt"] = account
		params = store.ReasonSamePix.With(params)
	}
	c.OpenCase(store.Case{Merchant: r.Merchant, Kind: store.CaseUnmatchedReceipt, Subject: r.ID, Amount: r.Amount, Params: params})
	return c.Post(r.Merchant, r.ID, ledger.ReceiveUnidentified(r.Processor, r.Amount))
}

// applyState follows the charge's own state. A late state has no transition and changes nothing: a
// receipt outweighs any state.
func (v *Receive) applyState(l *store.Loaded, c *store.Changes, p *payment.Payin) error {
	on, reported := v.stateTrigger(p)
	if !reported {
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
	moved, err := transition.Payin(l, c, p, v.links, on)
	if moved && p.Status == payment.PayinProcessing {
		followCharge(l, c, p)
	}
	return err
}

func (v *Receive) stateTrigger(p *payment.Payin) (on payment.Trigger, reported bool) {
	switch v.report.State {
	case processor.ChargeAnalysis:
		return payment.OnProcess, true
	case processor.ChargeExpired:
		return payment.OnExpire, true
	case processor.ChargeFailed:
		return payment.OnFail, true
	case processor.ChargeOpen:
		return payment.OnAttemptRefused, v.newAttempt(p)
	default:
		return "", false
	}
}

// newAttempt reports whether the charge has a refused attempt that the order
// lacks: by its number or, for processors that do not count, by its reason.
func (v *Receive) newAttempt(p *payment.Payin) bool {
	switch {
	case v.report.Failure == nil:
		return false
	case v.report.Attempt > 0:
		return v.report.Attempt > p.Details.CardAttempts
	default:
		return p.Failure == nil || *p.Failure != *v.report.Failure
	}
}

// ReportInvalidPayment opens a case for a listed payment that cannot be booked: an operator
// clarifies it with the processor. The payment has one case, even if it is listed again after the
// case was closed.
func (s *Service) ReportInvalidPayment(ctx context.Context, processorName string, p *processor.Payment) error {
	merchant, err := s.Store.MerchantOf(ctx, p.ExternalID)
	if err != nil {
		return store.Problem(err)
	}
	return s.Writer.Do(ctx, write.OpenCase{Case: store.Case{
		ID:       store.CaseID("invalid payment %q %q %q %q %d", processorName, p.ExternalID, p.ID, p.EndToEndID, p.Amount),
		Merchant: merchant, Kind: store.CaseNotice,
		Params: store.ReasonInvalidPayment.With(store.Params{"processor": processorName, "externalId": p.ExternalID}),
	}})
}
