package payin

import (
	"context"
	"errors"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

// withholdCharge opens a case, once per order, for a charge that differs from its
// order. Nothing of the charge is stored: the order stays without one, and a
// repeated request is sent to the processor again.
func (s *Service) withholdCharge(ctx context.Context, processorName string, p *payment.Payin, differs error) error {
	s.Log.ErrorContext(ctx, "charge is not the order's and is not shown", "processor", processorName, "externalId", p.ExternalID, "cause", differs)
	open, err := s.Store.HasOpenCase(ctx, p.Merchant, p.ID, store.CaseCharge)
	if err != nil {
		return store.Problem(err)
	}
	if !open {
		params := store.Params{"processor": processorName, "externalId": p.ExternalID, "field": "", "problem": ""}
		if e, ok := errors.AsType[*processor.ChargeError](differs); ok {
			params["field"], params["problem"] = e.Field, e.Reason
		}
		return s.Writer.DoWithoutCancel(ctx, write.OpenCase{Case: store.Case{
			ID: s.Env.IDs.NewID(s.Env.Clock.Now()), Merchant: p.Merchant, Kind: store.CaseCharge, Subject: p.ID, Amount: p.Amount, Params: params,
		}})
	}
	return nil
}

// noteCode logs, once per account, that its codes have letters beyond ASCII: they are shown as the
// bank wrote them.
func (s *Service) noteCode(ctx context.Context, account string, c *processor.Charge) {
	if c.PlainCode() {
		return
	}
	if _, known := s.foreign.LoadOrStore(account, true); !known {
		s.Log.WarnContext(ctx, "the codes of an account have letters beyond ASCII, which some payers' banks refuse: ask the processor to write names without accents", "processor", account)
	}
}
