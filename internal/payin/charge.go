package payin

import (
	"context"
	"errors"
	"time"

	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/transition"
)

// chargeAgainAfter is the schedule of further calls for a charge without a proved effect;
// its last wait repeats until the processor's timeout.
var chargeAgainAfter = []time.Duration{
	100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond, 1600 * time.Millisecond,
}

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

// charging is the registration of one order that is in progress in this process.
type charging struct {
	done    chan struct{} // closed at its end
	waiting int           // requests, besides the one that calls
	payin   payment.Payin
	err     error
}

// chargeOnce registers a stored order at its processor. Requests for the same order that
// arrive meanwhile wait for the result and make no call of their own. fresh means that
// the order was created by this request, so that no charge can exist.
func (s *Service) chargeOnce(ctx context.Context, p payment.Payin, fresh bool, r processor.ChargeRequest) (payment.Payin, error) {
	s.mu.Lock()
	c := s.charging[p.ID]
	first := c == nil
	if first {
		c = &charging{done: make(chan struct{}), payin: p, err: errChargeEnded}
		s.charging[p.ID] = c
	} else {
		c.waiting++
	}
	s.mu.Unlock()
	if !first {
		<-c.done // bounded by the processor's timeout
		return c.payin, c.err
	}
	defer func() { // even if the processor's package panics
		s.mu.Lock()
		delete(s.charging, p.ID)
		s.mu.Unlock()
		close(c.done)
	}()
	c.payin, c.err = s.charge(ctx, p, fresh, r)
	return c.payin, c.err
}

// errChargeEnded is the result of a registration that panicked.
var errChargeEnded = errors.New("payin: the registration of the order ended without a result")

// charge registers an order at the processor that the order names, within the processor's
// timeout. A charge that had no effect is requested again until then, and one that may have
// had one is looked up, and requested again if that is safe: the processor may have it under
// other terms, from a past that a restored backup lacks. An answer that differs from the
// order is withheld. The order stays in any case; the same request again continues from
// there. A processor whose breaker is open when the request arrives is not called.
func (s *Service) charge(ctx context.Context, p payment.Payin, fresh bool, r processor.ChargeRequest) (payment.Payin, error) {
	charger, profile, err := s.charger(p.Processor)
	if err != nil {
		return p, err
	}
	limited, cancel := s.Env.Clock.WithTimeout(context.WithoutCancel(ctx), profile.Charge.Timeout)
	defer cancel()
	if s.breakers.Allow(p.Processor, 1) == 0 { // else requests would wait for it in every slot of the API
		return p, chargeTimeout(errBreakerOpen)
	}
	lookUp := !fresh && !profile.Charge.Repeat.Safe()
	for tries := 0; ; tries++ {
		answer := register(limited, charger, &r, lookUp)
		lookUp = !profile.Charge.Repeat.Safe() || !lookUp && (answer.Outcome == processor.Unknown || answer.Outcome == processor.Known)
		s.breakers.Record(p.Processor, answer.Outcome != processor.NotSent && (answer.Outcome != processor.Unknown || limited.Err() == nil))
		switch answer.Outcome {
		case processor.Done:
			if err := processor.CheckCharge(&profile, &r, &answer.Charge); err != nil {
				return p, s.withholdCharge(ctx, profile.Name, &p, err)
			}
			return s.recordCharge(ctx, &recordCharge{payin: p, charge: answer.Charge, expiresAt: r.ExpiresAt, withheld: !fresh, links: s.Links})
		case processor.Refused:
			return s.recordCharge(ctx, &recordCharge{payin: p, refused: true, failure: answer.Failure, links: s.Links})
		}
		s.Log.WarnContext(ctx, "charge not confirmed", "processor", profile.Name, "externalId", p.ExternalID, "outcome", answer.Outcome.String(), "cause", answer.Cause)
		timer := s.Env.Clock.NewTimer(chargeAgainAfter[min(tries, len(chargeAgainAfter)-1)])
		select {
		case <-timer.C():
		case <-limited.Done():
			timer.Stop()
		}
		if limited.Err() != nil { // checked on its own: select picks any of two ready cases
			return p, chargeTimeout(answer.Cause)
		}
	}
}

// register requests a charge, or looks it up. A charge that is not found may still be under
// way: that proves nothing. One that expires earlier than the order sets the expiry of r: the
// order had it in a past that a restored backup lacks.
func register(ctx context.Context, charger processor.Charger, r *processor.ChargeRequest, lookUp bool) processor.ChargeAnswer {
	if !lookUp {
		return charger.Charge(ctx, *r)
	}
	report := charger.QueryCharge(ctx, r.ExternalID)
	c := report.Charge
	switch {
	case report.Lookup == processor.Found && report.State == processor.ChargeFailed && report.Attempt == 0:
		return processor.ChargeAnswer{Outcome: processor.Refused, Failure: report.Failure}
	case report.Lookup != processor.Found || c.PIX == nil && c.Boleto == nil && c.Card == nil:
		return processor.ChargeAnswer{Cause: report.Cause}
	}
	if c.PIX != nil && c.PIX.ExpiresAt.Before(r.ExpiresAt) {
		r.ExpiresAt = c.PIX.ExpiresAt
	}
	return processor.ChargeAnswer{Outcome: processor.Done, Charge: c}
}

var errBreakerOpen = errors.New("payin: the processor did not answer other requests")

func chargeTimeout(cause error) error {
	return problem.New(problem.ProcessorTimeout, "The processor did not answer within the timeout. The order exists; send the same request again to continue.").With(cause)
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
	payin     payment.Payin // as it was charged; then as it is stored
	charge    processor.Charge
	expiresAt time.Time // of the charge; never later than the order's
	withheld  bool      // an earlier answer may have differed from the order
	refused   bool
	failure   *payment.Failure
	links     transition.Links
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
		p.ExpiresAt = v.expiresAt
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
