package payin_test

import (
	"errors"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/processor/processortest"
	"github.com/porteira/porteira/internal/write"
)

var (
	// charged is an answer as it is recorded, once it has been compared with the order.
	charged = processor.ChargeAnswer{Outcome: processor.Done, Charge: processor.Charge{ProcessorID: "p-1", PIX: &payment.PIXDetail{QRCode: "code"}}}
	refused = processor.ChargeAnswer{Outcome: processor.Refused, Failure: &payment.Failure{Code: "limit", Message: "Over the limit."}}
)

// uncharged makes the order one whose charge has not been recorded.
func (s *story) uncharged() {
	p := s.StoredPayin(s.payin.ID)
	p.Details.PIX, p.Version = nil, 1
	s.payin = *p
}

func TestRecordChargeDecisions(t *testing.T) {
	record := func(answer processor.ChargeAnswer, given string) func(s *story) write.Operation {
		return func(s *story) write.Operation {
			s.uncharged()
			s.happens(given)
			return s.Payins.NewRecordCharge(s.payin, answer)
		}
	}
	again := func(answer processor.ChargeAnswer) func(s *story) write.Operation {
		return func(s *story) write.Operation { return s.Payins.NewRecordCharge(s.payin, answer) }
	}
	testDecisions(t, []decision{
		{name: "charged", op: record(charged, ""), changes: `
			payins pix:map[expiresAt:0001-01-01T00:00:00Z qrcode:code txid:] processor_id:→p-1 version:1→2`},
		{name: "charged already", op: again(charged)},
		{name: "charged when it was canceled", op: record(charged, "cancel"), changes: `
			payins pix:map[expiresAt:0001-01-01T00:00:00Z qrcode:code txid:] processor_id:→p-1 version:2→3`},
		{name: "charged when it was paid", op: record(charged, "pay A 100"), changes: `
			payins pix:map[expiresAt:0001-01-01T00:00:00Z qrcode:code txid:] processor_id:→p-1 version:2→3`},
		{name: "refused", op: record(refused, ""), changes: `
			payins failure:→{"code":"limit","message":"Over the limit."} next_at:in 1h0m0s→- status:PENDING→FAILED version:1→2
			+events payin.failed`},
		{name: "refused without a reason", op: record(processor.ChargeAnswer{Outcome: processor.Refused}, ""), changes: `
			payins next_at:in 1h0m0s→- status:PENDING→FAILED version:1→2
			+events payin.failed`},
		{name: "refused when it has a charge", op: again(refused)},
		{name: "refused again", op: record(refused, "fail")},
		{name: "refused when it was canceled", op: record(refused, "cancel")},
		{name: "refused when it was paid", op: record(refused, "pay A 100")},
		{name: "unknown", op: func(s *story) write.Operation {
			return s.Payins.NewRecordCharge(payment.Payin{Merchant: s.Merchant.ID, ID: payment.ID{1}}, charged)
		}, refused: problem.NotFound},
	})
}

// Two copies of one request may be under way in two processes, and the processor may refuse the second
// charge as a duplicate of the first. The order, which has its charge, does not fail.
func TestRefusedDuplicateChargeFailsNothing(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		request, other := coretest.PayinRequest("order", ""), g.Second()
		var first payment.Payin
		g.Bank.AnswerCharge = func(b *coretest.Bank, r processor.ChargeRequest) processor.ChargeAnswer {
			b.AnswerCharge = nil // the other copy overtakes this one
			b.Mu.Unlock()
			defer b.Mu.Lock()
			var err error
			first, _, err = other.Payins.Create(t.Context(), g.Merchant, request)
			g.Must(err)
			return refused
		}
		second, _, err := g.Payins.Create(t.Context(), g.Merchant, request)
		g.Must(err)
		if !first.Ready() || first.ID != second.ID || second.Status != payment.PayinPending || second.Details.PIX == nil || second.Details.PIX.QRCode != first.Details.PIX.QRCode {
			t.Errorf("answered %+v and %+v", first, second)
		}
		g.WantPayin(second, payment.PayinPending, 0, 0)
		g.WantEvents()
		g.Bank.Receive(second.ExternalID, "pay-1", 100_00)
		g.ReadFeeds()
		g.WantPayin(second, payment.PayinPaid, 100_00, 1)
	})
}

func TestRefusedCharge(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		calls := 0
		g.Bank.AnswerCharge = func(*coretest.Bank, processor.ChargeRequest) processor.ChargeAnswer { calls++; return refused }
		p, _, err := g.Payins.Create(t.Context(), g.Merchant, coretest.PayinRequest("order", ""))
		if !problem.Is(err, problem.ProcessorRefused) || p.Status != payment.PayinFailed || p.Failure == nil || *p.Failure != *refused.Failure {
			t.Errorf("answered %+v, %v", p, err)
		}
		p, replayed, err := g.Payins.Create(t.Context(), g.Merchant, coretest.PayinRequest("order", ""))
		if err != nil || !replayed || p.Status != payment.PayinFailed || calls != 1 {
			t.Errorf("answered %s, replayed %v, %v, after %d calls", p.Status, replayed, err, calls)
		}
		g.WantEvents(payment.EventPayinFailed)
	})
}

// A charge that had no effect is requested again until the processor's timeout; one that may
// have had one is looked up, and then requested again. The order stays, and the same request continues.
func TestUnconfirmedChargeIsRequestedAgain(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		calls := 0
		answers := []processor.Outcome{processor.Unknown} // the last one repeats
		g.Bank.AnswerCharge = func(_ *coretest.Bank, r processor.ChargeRequest) processor.ChargeAnswer {
			calls++
			a := processor.ChargeAnswer{Charge: processor.Charge{ProcessorID: "p-1", PIX: processortest.PIX(r)}}
			a.Outcome, a.Cause = answers[min(calls, len(answers))-1], errors.New("time-out")
			return a
		}
		create := func(waits ...time.Duration) (p payment.Payin, replayed bool, err error) {
			done := make(chan struct{})
			go func() {
				defer close(done)
				p, replayed, err = g.Payins.Create(t.Context(), g.Merchant, coretest.PayinRequest("order", ""))
			}()
			for _, wait := range waits {
				g.Clock.BlockUntil(2) // the wait, and the end of the processor's time
				g.Clock.Advance(wait * time.Millisecond)
			}
			<-done
			return p, replayed, err
		}
		p, _, err := create(100, 200, 400, 800, 1600, 900) // the last wait ends with the processor's time
		if !problem.Is(err, problem.ProcessorTimeout) || p.Status != payment.PayinPending || p.Ready() || calls != 3 || g.Bank.Queries != 3 {
			t.Errorf("answered %s, %v, after %d calls and %d queries", p.Status, err, calls, g.Bank.Queries)
		}
		answers, calls = []processor.Outcome{processor.NotSent, processor.Unknown, processor.Done}, 0
		p, replayed, err := create(100, 200, 400)
		if err != nil || !replayed || !p.Ready() || calls != 3 {
			t.Errorf("continued: %s, replayed %v, %v, after %d calls", p.Status, replayed, err, calls)
		}
		g.WantEvents()
	})
}
