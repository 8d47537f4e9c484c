package notice

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

// Refunds finds refunds that processors list.
type Refunds interface {
	Find(ctx context.Context, account string, listed *processor.ListedRefund) (part payment.RefundPart, ok bool, err error)
	FindDispute(ctx context.Context, account string, d *processor.Dispute) error
}

// receive books a report about a charge, and its disputes of money that names no order. It finishes
// the notice, if any.
func (s *Service) receive(ctx context.Context, name, externalID string, report processor.ChargeReport, notice *store.Notice) error {
	foreign, err := s.mayBeForeign(ctx, name, externalID, report.Disputes)
	if err != nil {
		return store.Problem(err)
	}
	if len(foreign) == 0 {
		return s.Payins.Receive(ctx, name, externalID, report, notice)
	}
	err = s.Payins.Receive(ctx, name, externalID, report, nil) // of which an order may follow some
	if err == nil {
		foreign, err = s.mayBeForeign(ctx, name, externalID, report.Disputes)
	}
	for i := range foreign {
		err = errors.Join(err, s.Refunds.FindDispute(ctx, name, &foreign[i]))
	}
	if err != nil || notice == nil {
		return err
	}
	return s.Writer.Do(ctx, &end{notice: *notice})
}

// mayBeForeign are disputes that no order follows, of payments that the processor has decided.
func (s *Service) mayBeForeign(ctx context.Context, name, externalID string, disputes []processor.Dispute) (list []processor.Dispute, err error) {
	for _, d := range disputes {
		over := d.State == processor.DisputeLost || d.State == processor.DisputeReversed || d.Current && d.State == processor.DisputeWon
		if !over || d.PaymentID == "" {
			continue
		}
		merchant, err := s.Store.MerchantOf(ctx, externalID)
		if err != nil {
			return nil, err
		}
		reported := d
		switch _, known, err := s.findDispute(ctx, merchant, name, externalID, &reported); {
		case err != nil && !errors.Is(err, store.ErrNotFound):
			return nil, err
		case !known:
			list = append(list, d)
		}
	}
	return list, nil
}

// applyRefund queries the refund of a notice. A refund that nobody requested here is booked from
// the list of refunds, which names its payment.
func (s *Service) applyRefund(ctx context.Context, proc processor.Processor, name string, h *processor.Hint, notice *store.Notice) error {
	refunder, ok := proc.(processor.Refunder)
	externalID := h.ExternalID
	if !ok {
		return fmt.Errorf("notice: processor %s does not support refunds", name)
	}
	merchant, err := s.Store.MerchantOf(ctx, externalID)
	if err != nil {
		return store.Problem(err)
	}
	part, err := s.Store.RefundPart(ctx, merchant, name, externalID)
	if errors.Is(err, store.ErrNotFound) && h.PaymentID != "" {
		return s.foreignRefund(ctx, refunder, name, h, notice)
	}
	if errors.Is(err, store.ErrNotFound) {
		return s.unknownRefund(ctx, proc, name, externalID, notice)
	}
	if err != nil {
		return store.Problem(err)
	}
	report := query(ctx, s, name, func(ctx context.Context) processor.TransferReport {
		return refunder.QueryRefund(ctx, part.PaymentID, externalID)
	})
	if report.Lookup != processor.Found {
		return unconfirmed("refund", report.Lookup, report.Cause)
	}
	return s.Transfers.RecordRefundReport(ctx, part, report, notice)
}

// foreignRefund books a refund that nobody requested here, and whose notice names the payment, on
// the processor's answer. If it is not paid yet, it is then looked up as ours are: its end may have
// no notice.
func (s *Service) foreignRefund(ctx context.Context, refunder processor.Refunder, name string, h *processor.Hint, notice *store.Notice) error {
	report := query(ctx, s, name, func(ctx context.Context) processor.TransferReport {
		return refunder.QueryRefund(ctx, h.PaymentID, h.ExternalID)
	})
	if report.Lookup != processor.Found {
		return unconfirmed("refund", report.Lookup, report.Cause)
	}
	return s.recordRefund(ctx, name, &processor.ListedRefund{
		ExternalID: h.ExternalID, PaymentID: h.PaymentID, EndToEndID: report.EndToEndID, State: report.State,
		Amount: report.Amount, Failure: report.Failure,
	}, notice)
}

// unknownRefund ends a notice of a refund that nobody requested here. It is booked from the
// processor's list of refunds; without a list it has a case, once.
func (s *Service) unknownRefund(ctx context.Context, proc processor.Processor, name, externalID string, notice *store.Notice) error {
	listed := false
	if feeder, ok := proc.(processor.Feeder); ok {
		_, listed = feeder.Feeds()[processor.FeedRefunds]
	}
	if !listed {
		err := s.Writer.Do(ctx, write.OpenCase{Case: store.Case{
			ID: store.CaseID("unknown refund %s %s", name, externalID), Kind: store.CaseNotice,
			Params: store.ReasonUnknownRefund.With(store.Params{"processor": name, "externalId": externalID}),
		}})
		if err != nil {
			return err
		}
	}
	if notice == nil {
		return nil
	}
	return s.Writer.Do(ctx, &end{notice: *notice})
}

// bookRefund books a listed refund that is not booked yet. If it cannot be booked, for example
// because its payment is not booked either, it becomes a notice of its own, which is applied later,
// and delays no other.
func (s *Service) bookRefund(ctx context.Context, account string, listed *processor.ListedRefund) error {
	err := s.recordRefund(ctx, account, listed, nil)
	if err == nil || !store.Lasting(err) || ctx.Err() != nil {
		return store.Problem(err)
	}
	body, err := json.Marshal(&processor.Fact{Refund: listed})
	if err != nil {
		return err
	}
	id := fmt.Sprint("refund ", listed.State, " ", listed.ExternalID)
	return s.Writer.Do(ctx, &record{s.Store.NewNotice(store.Notice{Processor: account, ID: id, Source: store.FromFeed, Body: body})})
}

// applyListedRefund records a listed refund that waited, for example for its payment. Later entries
// did not wait for it, so its state may be outdated.
func (s *Service) applyListedRefund(ctx context.Context, n store.Notice, listed processor.ListedRefund) error {
	if err := s.updateListed(ctx, n.Processor, &listed); err != nil {
		return err
	}
	return s.recordRefund(ctx, n.Processor, &listed, &n)
}

// updateListed queries a listed refund, as it may have failed since it was paid. If the processor
// does not find it, its listed state counts.
func (s *Service) updateListed(ctx context.Context, account string, listed *processor.ListedRefund) error {
	refunder, ok := s.Processors.Find(account).(processor.Refunder)
	if !ok {
		return errNotOpen(account)
	}
	report := query(ctx, s, account, func(ctx context.Context) processor.TransferReport {
		return refunder.QueryRefund(ctx, listed.PaymentID, listed.ExternalID)
	})
	switch {
	case report.Lookup == processor.LookupUnknown:
		return unconfirmed("refund", report.Lookup, report.Cause)
	case report.Lookup == processor.Found && report.State == processor.TransferFailed:
		listed.State, listed.Failure = report.State, report.Failure
	}
	return nil
}

// recordRefund records a listed refund, and finishes the notice, if any. The list is
// sufficient proof.
func (s *Service) recordRefund(ctx context.Context, account string, listed *processor.ListedRefund, notice *store.Notice) error {
	part, ok, err := s.Refunds.Find(ctx, account, listed)
	if err == nil && part.Outcome == payment.PartFailed && listed.State == processor.TransferPaid {
		now := *listed // it was paid after all, or this is an entry from before its failure
		err, listed = s.updateListed(ctx, account, &now), &now
	}
	if err != nil {
		return err
	}
	if !ok && listed.State == processor.TransferProcessing { // of money without an order, which is booked at its end
		return errLags
	}
	if !ok || part.Ended() && showsEnd(&part, listed.State) {
		if notice == nil {
			return nil
		}
		return s.Writer.Do(ctx, &end{notice: *notice})
	}
	report := processor.TransferReport{
		Lookup: processor.Found, State: listed.State, PaymentID: listed.PaymentID, EndToEndID: listed.EndToEndID, Amount: listed.Amount, Failure: listed.Failure,
		Evidence: "list of refunds",
	}
	return s.Transfers.RecordRefundReport(ctx, part, report, notice)
}

// showsEnd reports whether a part that has ended agrees with the listed refund.
func showsEnd(p *payment.RefundPart, listed processor.TransferState) bool {
	if listed == processor.TransferPaid {
		return p.Outcome == payment.PartPaid || p.Outcome == payment.PartTakenBack
	}
	return p.Outcome != payment.PartPaid
}
