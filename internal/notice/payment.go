package notice

import (
	"context"
	"errors"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/payin"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// bookPayment books a listed payment that is not booked yet. A payment that cannot be booked must
// not stop the payments after it. An invalid one becomes a case. If the row of its order is
// damaged, or the number of its instalments is not known yet, it becomes a notice of its own, which
// is applied again later.
func (s *Service) bookPayment(ctx context.Context, name string, proc processor.Processor, p processor.Payment) error {
	known, err := s.Store.HasReceipt(ctx, name, p.ID)
	if err != nil || known {
		return err
	}
	err = s.receivePayment(ctx, name, proc, p)
	if err == nil || !store.Lasting(err) && !errors.Is(err, errInstallments) || ctx.Err() != nil {
		return err
	}
	s.Log.ErrorContext(ctx, "payment cannot be booked", "processor", name, "externalId", p.ExternalID, "cause", err)
	if errors.Is(err, payin.ErrInvalidPayment) {
		return s.Payins.ReportInvalidPayment(ctx, name, &p)
	}
	body, err := json.Marshal(&processor.Fact{Payment: &p})
	if err != nil {
		return err
	}
	return s.Writer.Do(ctx, &record{s.Store.NewNotice(store.Notice{Processor: name, ID: "payment " + p.ID, Source: store.FromFeed, Body: body})})
}

// errInstallments means that the list does not show in how many instalments a card payment was
// made, and that the processor does not show its charge. The fee and the settlement depend on the
// number.
var errInstallments = errors.New("notice: a card payment in an unknown number of instalments")

// receivePayment books a listed payment with all payments that its charge reports: other notices of
// the charge may be lost too.
func (s *Service) receivePayment(ctx context.Context, name string, proc processor.Processor, p processor.Payment) error {
	var report processor.ChargeReport
	if charger, ok := proc.(processor.Charger); ok {
		limited, cancel := s.Env.Clock.WithTimeout(ctx, queryTimeout)
		report = charger.QueryCharge(limited, p.ExternalID)
		cancel()
	}
	i := slices.IndexFunc(report.Payments, func(q processor.Payment) bool { return q.ID == p.ID })
	switch {
	case report.Lookup == processor.Found && i >= 0:
		p = report.Payments[i]
	case p.Card != nil && p.Card.Installments == 0:
		return errInstallments
	case report.Lookup == processor.Found: // the list is sufficient proof
		report.Payments = append(report.Payments, p)
	}
	alone := processor.ChargeReport{Lookup: processor.Found, Payments: []processor.Payment{p}}
	if report.Lookup != processor.Found {
		report = alone
	}
	err := s.Payins.Receive(ctx, name, p.ExternalID, report, nil)
	if errors.Is(err, payin.ErrInvalidPayment) { // the invalid one may be another payment of its charge
		err = s.Payins.Receive(ctx, name, p.ExternalID, alone, nil)
	}
	return err
}

// applyPayment applies the notice of a payment that a feed listed. While its order is damaged
// it is a dead letter, with a case that applies it again.
func (s *Service) applyPayment(ctx context.Context, n store.Notice, p processor.Payment) error {
	proc := s.Processors.Find(n.Processor)
	if proc == nil {
		return errNotOpen(n.Processor)
	}
	err := s.receivePayment(ctx, n.Processor, proc, p)
	switch {
	case err == nil:
		return s.Writer.Do(ctx, &end{notice: n})
	case store.Lasting(err):
		return s.deadLetter(ctx, n, payment.ID{}, store.ReasonOrderDamaged, p.ExternalID)
	default:
		return err
	}
}
