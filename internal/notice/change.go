package notice

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/dispute"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// changeKey identifies a change of a feed: it is the id of its notice.
func changeKey(c *processor.Change) string {
	key := fmt.Sprint("change ", c.Subject, " ", c.ExternalID, " ", int64(c.Returned))
	if c.Dispute != nil {
		if key += " " + c.Dispute.ID + " " + string(c.Dispute.State); c.Dispute.Blocked {
			key += " blocked"
		}
		if c.Dispute.Lost > 0 {
			key += " " + c.Dispute.Lost.String()
		}
	}
	return key
}

// bookChange queries and books a change that is not booked yet. The answer may be older than the
// list, or fail. Then the change becomes a notice of its own, which is applied later, and delays no
// other.
func (s *Service) bookChange(ctx context.Context, account string, c processor.Change) error {
	known, _, err := s.isBooked(ctx, account, c)
	if known || err != nil && (!store.Lasting(err) || ctx.Err() != nil) {
		return err
	}
	if err == nil {
		err = s.confirmChange(ctx, account, c, nil)
	}
	if err == nil {
		return nil
	}
	body, err := json.Marshal(&processor.Fact{Change: &c})
	if err != nil {
		return err
	}
	return s.Writer.Do(ctx, &record{s.Store.NewNotice(store.Notice{Processor: account, ID: changeKey(&c), Source: store.FromFeed, Body: body})})
}

var errUnbooked = errors.New("notice: the processor lists a change but does not confirm it")

// confirmChange queries and books a change; it finishes the notice, if any.
func (s *Service) confirmChange(ctx context.Context, account string, c processor.Change, notice *store.Notice) error {
	proc := s.Processors.Find(account)
	if proc == nil {
		return errNotOpen(account)
	}
	hint := processor.Hint{Subject: c.Subject, ExternalID: c.ExternalID}
	var incomplete, err error
	if c.Subject == processor.SubjectCharge {
		incomplete, err = s.applyCharge(ctx, proc, account, hint, nil)
	} else {
		err = s.applyHint(ctx, proc, account, hint, nil)
	}
	if err != nil {
		return err
	}
	known, ours, err := s.isBooked(ctx, account, c)
	if c.Dispute != nil && c.Dispute.Current { // the present state is booked; the change stays listed until it has ended
		known = true
	}
	if err == nil && !known && ours {
		err = fmt.Errorf("%w: %s", errUnbooked, c.ExternalID)
	}
	if err != nil && incomplete != nil {
		err = fmt.Errorf("%w: %w: %w", errUnanswered, incomplete, err)
	}
	if err != nil || notice == nil {
		return err
	}
	return s.Writer.Do(ctx, &end{notice: *notice})
}

// applyFact applies the notice of an entry that a feed listed.
func (s *Service) applyFact(ctx context.Context, n store.Notice) error {
	var fact processor.Fact
	switch err := json.Unmarshal(n.Body, &fact); {
	case err == nil && fact.Payment != nil:
		return s.applyPayment(ctx, n, *fact.Payment)
	case err == nil && fact.Change != nil:
		return s.confirmChange(ctx, n.Processor, *fact.Change, &n)
	case err == nil && fact.Refund != nil:
		return s.applyListedRefund(ctx, n, *fact.Refund)
	default:
		return s.deadLetter(ctx, n, payment.ID{}, store.ReasonUnreadable, "")
	}
}

// isBooked reports whether a listed change is booked, and whether it concerns an
// order of ours at all.
func (s *Service) isBooked(ctx context.Context, name string, c processor.Change) (known, ours bool, err error) {
	merchant, err := s.Store.MerchantOf(ctx, c.ExternalID)
	if err != nil {
		return false, false, store.Problem(err)
	}
	if c.Subject == processor.SubjectTransfer {
		known, err = s.isReturned(ctx, merchant, &c)
		if errors.Is(err, store.ErrNotFound) {
			return false, false, nil
		}
		return known, true, store.Problem(err)
	}
	if c.Dispute == nil {
		return false, false, nil
	}
	reported := *c.Dispute
	d, known, err := s.findDispute(ctx, merchant, name, c.ExternalID, &reported)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return false, false, nil
	case err != nil:
		return false, true, store.Problem(err)
	case !known:
		ours, err := s.isOfOrder(ctx, name, c.Dispute.PaymentID)
		return false, ours, store.Problem(err)
	}
	return dispute.Shows(&d, &reported), true, nil
}

// findDispute is [dispute.Find] of a stored pay-in; ErrNotFound if there is none.
func (s *Service) findDispute(ctx context.Context, merchant payment.ID, name, externalID string, r *processor.Dispute) (d payment.Dispute, known bool, err error) {
	p, _, err := s.Store.PayinByExternalID(ctx, merchant, externalID)
	if err != nil {
		return d, false, err
	}
	list, err := s.Store.DisputesOfPayin(ctx, merchant, p.ID)
	if err != nil {
		return d, false, err
	}
	d, known = dispute.Find(list, name, r)
	return d, known, nil
}

// isOfOrder reports whether a payment is booked for an order, or not booked at all.
func (s *Service) isOfOrder(ctx context.Context, name, paymentID string) (bool, error) {
	merchant, receipt, err := s.Store.ReceiptClaim(ctx, name, paymentID)
	if errors.Is(err, store.ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	r, err := s.Store.Receipt(ctx, merchant, receipt)
	return !r.Payin.IsZero(), err
}

// isReturned reports whether the return that a change lists is booked; ErrNotFound if no payout has
// its id. If the payout left after its hold was released, the return is booked once an operator has
// decided who bears the payout.
func (s *Service) isReturned(ctx context.Context, merchant payment.ID, c *processor.Change) (bool, error) {
	p, _, err := s.Store.PayoutByExternalID(ctx, merchant, c.ExternalID)
	switch {
	case err != nil:
		return false, err
	case p.Step == payment.StepPaidLate:
		f, err := s.Store.FoundTransfer(ctx, merchant, c.ExternalID)
		return f.Total-f.Amount >= c.Returned, err
	case p.Status == payment.PayoutFailed || p.Status == payment.PayoutCanceled:
		return s.Store.HasOpenCase(ctx, merchant, p.ID, store.CaseContradiction)
	default:
		back, twice, err := s.Store.DuplicateReturned(ctx, merchant, p.ID)
		if twice { // a change does not name the transfer
			return p.ReturnedAmount == c.Returned || back == c.Returned, err
		}
		return p.ReturnedAmount >= c.Returned, err
	}
}

// giveUpFact dead-letters the notice of an entry that a feed listed. If it is a change that its
// processor does not confirm, the case is about its order.
func (s *Service) giveUpFact(ctx context.Context, n store.Notice) error {
	var fact processor.Fact
	if err := json.Unmarshal(n.Body, &fact); err != nil || fact.Change == nil {
		return s.deadLetter(ctx, n, payment.ID{}, store.ReasonNotConfirmed, "")
	}
	c := fact.Change
	merchant, err := s.Store.MerchantOf(ctx, c.ExternalID)
	if err != nil {
		return store.Problem(err)
	}
	v := store.Case{
		ID: s.Env.IDs.NewID(s.Env.Clock.Now()), Merchant: merchant, Kind: store.CaseContradiction, Amount: c.Returned,
		Params: store.ReasonUnconfirmedChange.With(store.Params{"processor": n.Processor, "notice": n.ID, "externalId": c.ExternalID}),
	}
	if c.Subject == processor.SubjectTransfer {
		p, _, err := s.Store.PayoutByExternalID(ctx, merchant, c.ExternalID)
		if err != nil {
			return s.giveUpDamaged(ctx, n, c, merchant, err)
		}
		v.Subject = p.ID
	} else {
		p, _, err := s.Store.PayinByExternalID(ctx, merchant, c.ExternalID)
		if err != nil {
			return s.giveUpDamaged(ctx, n, c, merchant, err)
		}
		v.Subject = p.ID
	}
	if c.Dispute != nil {
		v.Amount = c.Dispute.Amount
	}
	s.Log.ErrorContext(ctx, "change not confirmed: compare the processor's statement", "processor", n.Processor, "externalId", c.ExternalID)
	return s.Writer.Do(ctx, &end{notice: n, lastError: string(store.ReasonUnconfirmedChange), review: &v})
}

// giveUpDamaged dead-letters the notice of a change whose order cannot be opened.
func (s *Service) giveUpDamaged(ctx context.Context, n store.Notice, c *processor.Change, merchant payment.ID, err error) error {
	if !store.Lasting(err) {
		return store.Problem(err)
	}
	return s.deadLetter(ctx, n, merchant, store.ReasonNotConfirmed, c.ExternalID)
}
