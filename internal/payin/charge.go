package payin

import (
	"context"
	"time"

	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/transition"
)

// chargeRetryWait is the pause before a charge without a proved effect is
// requested again under the same id.
const chargeRetryWait = 100 * time.Millisecond

func chargeRequest(m *store.Merchant, p *payment.Payin, personal payment.PersonalData) processor.ChargeRequest {
	return processor.ChargeRequest{
		ExternalID: p.ExternalID, Method: p.Method, Amount: p.Amount, ExpiresAt: p.ExpiresAt,
		DueDate: p.Details.DueDate, Installments: p.Details.Installments, Description: p.Details.Description,
		MerchantName: m.Name, MerchantCity: m.City, Personal: personal,
	}
}

// setCharge stores what the payer needs to pay.
func setCharge(p *payment.Payin, c processor.Charge) {
	p.ProcessorID = c.ProcessorID
	p.Details.PIX, p.Details.Boleto, p.Details.Card = c.PIX, c.Boleto, c.Card
}

// charge registers a stored order at its processor, within the processor's timeout.
// Charges are idempotent on our id, so a charge that had no effect, or may have had
// one, is requested again until the timeout. An answer that differs from the order is
// withheld. The order stays in any case; the same request again continues from there.
func (s *Service) charge(ctx context.Context, charger processor.Charger, profile processor.Profile, p payment.Payin, r processor.ChargeRequest, replayed bool) (payment.Payin, error) {
	limited, cancel := s.Env.Clock.WithTimeout(context.WithoutCancel(ctx), profile.Charge.Timeout)
	defer cancel()
	for {
		answer := charger.Charge(limited, r)
		switch answer.Outcome {
		case processor.Done:
			if err := processor.CheckCharge(&profile, &r, &answer.Charge); err != nil {
				return p, s.withholdCharge(ctx, profile.Name, &p, err)
			}
			return s.recordCharge(ctx, &recordCharge{payin: p, charge: answer.Charge, withheld: replayed, links: s.Links})
		case processor.Refused:
			return s.recordCharge(ctx, &recordCharge{payin: p, refused: true, failure: answer.Failure, links: s.Links})
		}
		s.Log.WarnContext(ctx, "charge not confirmed", "processor", profile.Name, "externalId", p.ExternalID, "outcome", answer.Outcome.String(), "cause", answer.Cause)
		timer := s.Env.Clock.NewTimer(chargeRetryWait)
		select {
		case <-timer.C():
		case <-limited.Done():
			timer.Stop()
		}
		if limited.Err() != nil { // checked on its own: select picks any of two ready cases
			return p, problem.New(problem.ProcessorTimeout, "The processor did not answer within the timeout. The order exists; send the same request again to continue.").With(answer.Cause)
		}
	}
}

func (s *Service) recordCharge(ctx context.Context, op *recordCharge) (payment.Payin, error) {
	if err := s.Writer.DoWithoutCancel(ctx, op); err != nil {
		return op.payin, err
	}
	if op.refused && !op.payin.Ready() { // else a concurrent request got another answer first
		return op.payin, problem.New(problem.ProcessorRefused, "The processor refused the order: "+failureMessage(op.failure))
	}
	return op.payin, nil
}

func failureMessage(f *payment.Failure) string {
	if f == nil || f.Message == "" {
		return "it gave no reason."
	}
	return f.Message
}

// recordCharge records the answer of a processor to a charge.
type recordCharge struct {
	payin    payment.Payin // as it was charged; then as it is stored
	charge   processor.Charge
	withheld bool // an earlier answer may have differed from the order
	refused  bool
	failure  *payment.Failure
	links    transition.Links
}

// Merchant implements [write.Operation].
func (v *recordCharge) Merchant() payment.ID { return v.payin.Merchant }

// Class implements [write.Operation].
func (v *recordCharge) Class() commit.Class { return commit.Background }

// Needs implements [write.Operation].
func (v *recordCharge) Needs(n *store.Needs) { n.Payin(v.payin.Merchant, v.payin.ID) }

// Decide stores the charge, or fails the refused order. An order that has its
// charge keeps it.
func (v *recordCharge) Decide(l *store.Loaded, c *store.Changes) error {
	p, ok := l.Payin(v.payin.Merchant, v.payin.ID)
	if !ok {
		return notFound(v.payin.Merchant, v.payin.ID)
	}
	defer func() { v.payin = p }()
	if p.Ready() {
		return nil
	}
	if !v.refused {
		setCharge(&p, v.charge)
		p.Version++
		p = c.SetPayin(p)
		if v.withheld {
			c.CloseCases(p.Merchant, p.ID, store.CaseCharge, store.ResolvedByProof)
		}
		return nil
	}
	if _, legal := payment.PayinTable.Next(p.Status, payment.OnFail); !legal {
		return nil
	}
	p.Failure = v.failure
	_, err := transition.Payin(l, c, &p, v.links, payment.OnFail)
	return err
}
