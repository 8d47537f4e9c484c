package payin_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/processor/processortest"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

var (
	// charged is an answer as it is recorded, once it has been compared with the order.
	charged = processor.ChargeAnswer{Outcome: processor.Done, Charge: processor.Charge{ProcessorID: "p-1", PIX: &payment.PIXDetail{QRCode: "code"}}}
	refused = processor.ChargeAnswer{Outcome: processor.Refused, Failure: &payment.Failure{Code: "limit", Message: "Over the limit."}}
)

// uncharged begins another order, whose charge has not been recorded.
func (s *story) uncharged() {
	s.T.Helper()
	op, err := s.Payins.NewCreateOpOf(s.Merchant, coretest.PayinRequest("uncharged", ""), s.Node.ID())
	s.Must(err)
	s.Must(s.Commit(op))
	s.payin = op.Payin
}

// setCharge sets columns of the work on the order's charge.
func (s *story) setCharge(columns string) {
	s.T.Helper()
	s.Execute(fmt.Sprintf("UPDATE charges SET %s WHERE payin_id = x'%x'", columns, s.payin.ID[:]))
}

// recorded builds the record of an answer to the call for the order's charge, after what is
// given. announce: the order was answered without it.
func recorded(answer processor.ChargeAnswer, given string, announce bool) func(s *story) write.Operation {
	return func(s *story) write.Operation {
		s.uncharged()
		s.happens(given)
		return s.Payins.NewRecordCharge(s.payin, s.Node.ID(), answer, announce)
	}
}

// recordedLate is recorded after another process has claimed the work.
func recordedLate(answer processor.ChargeAnswer) func(s *story) write.Operation {
	return func(s *story) write.Operation {
		s.uncharged()
		s.setCharge("claimed_by = merchant_id")
		return s.Payins.NewRecordCharge(s.payin, s.Node.ID(), answer, true)
	}
}

func TestRecordChargeDecisions(t *testing.T) {
	testDecisions(t, []decision{
		{name: "charged", op: recorded(charged, "", false), changes: `
			payins pix:map[expiresAt:0001-01-01T00:00:00Z qrcode:code txid:] processor_id:→p-1 version:1→2
			charges attempts:0→1 claimed_by:this→- outcome:→done state:wanted→made`},
		{name: "charged after the answer", op: recorded(charged, "", true), changes: `
			payins pix:map[expiresAt:0001-01-01T00:00:00Z qrcode:code txid:] processor_id:→p-1 version:1→2
			charges attempts:0→1 claimed_by:this→- outcome:→done state:wanted→made
			+events payin.updated`},
		{name: "charged after the answer, when it was canceled", op: recorded(charged, "cancel", true), changes: `
			payins pix:map[expiresAt:0001-01-01T00:00:00Z qrcode:code txid:] processor_id:→p-1 version:2→3
			charges claimed_by:this→- next_at:-→now outcome:→done`},
		{name: "charged when it was canceled", op: recorded(charged, "cancel", false), changes: `
			payins pix:map[expiresAt:0001-01-01T00:00:00Z qrcode:code txid:] processor_id:→p-1 version:2→3
			charges claimed_by:this→- next_at:-→now outcome:→done`},
		{name: "charged when it was paid", op: recorded(charged, "pay A 100", false), changes: `
			payins pix:map[expiresAt:0001-01-01T00:00:00Z qrcode:code txid:] processor_id:→p-1 version:2→3
			charges attempts:0→1 claimed_by:this→- outcome:→done state:wanted→made`},
		{name: "charged when another process has the work", op: recordedLate(charged), changes: `
			payins pix:map[expiresAt:0001-01-01T00:00:00Z qrcode:code txid:] processor_id:→p-1 version:1→2
			charges attempts:0→1 outcome:→done state:wanted→made
			+events payin.updated`},
	})
}

func TestRecordWithoutChargeDecisions(t *testing.T) {
	testDecisions(t, []decision{
		{name: "refused when another process has the work", op: recordedLate(refused)},
		{name: "refused", op: recorded(refused, "", false), changes: `
			payins failure:→{"code":"limit","message":"Over the limit."} next_at:in 1h0m0s→- status:PENDING→FAILED version:1→2
			charges attempts:0→1 claimed_by:this→- may_exist:1→0 outcome:→refused state:wanted→ended
			+events payin.failed`},
		{name: "refused without a reason", op: recorded(processor.ChargeAnswer{Outcome: processor.Refused}, "", false), changes: `
			payins next_at:in 1h0m0s→- status:PENDING→FAILED version:1→2
			charges attempts:0→1 claimed_by:this→- may_exist:1→0 outcome:→refused state:wanted→ended
			+events payin.failed`},
		{name: "refused again", op: recorded(refused, "fail", false), changes: `
			charges attempts:0→1 claimed_by:this→- may_exist:1→0 outcome:→refused state:wanted→ended`},
		{name: "refused when it was canceled", op: recorded(refused, "cancel", false), changes: `
			charges attempts:0→1 claimed_by:this→- may_exist:1→0 outcome:→refused state:cancel→ended`},
		{name: "refused when it was paid", op: recorded(refused, "pay A 100", false), changes: `
			charges attempts:0→1 claimed_by:this→- may_exist:1→0 outcome:→refused state:wanted→ended`},
		{name: "no answer", op: recorded(processor.ChargeAnswer{}, "", false), changes: `
			charges attempts:0→1 claimed_by:this→- next_at:-→in 1s outcome:→unknown`},
		{name: "no answer, and it was canceled", op: recorded(processor.ChargeAnswer{}, "cancel", false), changes: `
			charges claimed_by:this→- next_at:-→now outcome:→unknown`},
		{name: "no answer, and it was paid", op: recorded(processor.ChargeAnswer{}, "pay A 100", false), changes: `
			charges attempts:0→1 claimed_by:this→- outcome:→unknown state:wanted→ended`},
		{name: "later", op: recorded(processor.ChargeAnswer{Outcome: processor.Later}, "", false), changes: `
			charges attempts:0→1 claimed_by:this→- may_exist:1→0 next_at:-→in 1s outcome:→later`},
		{name: "unknown", op: func(s *story) write.Operation {
			return s.Payins.NewRecordCharge(payment.Payin{Merchant: s.Merchant.ID, ID: payment.ID{1}}, s.Node.ID(), charged, false)
		}, refused: problem.NotFound},
	})
}

// canceled builds the record of an answer to the call that cancels the charge of a canceled
// order, whose earlier calls failed.
func canceled(answer processor.CancelAnswer, calls int, given string) func(s *story) write.Operation {
	return func(s *story) write.Operation {
		s.happens("cancel")
		node := s.Node.ID()
		s.setCharge(fmt.Sprintf("state = 'cancel', claimed_by = x'%x', attempts = %d, outcome = '', next_at = 0", node[:], calls))
		list, err := s.Store.Charges(s.T.Context(), s.payin.Merchant, s.payin.ID)
		s.Must(err)
		switch given {
		case "another process":
			s.setCharge("claimed_by = merchant_id")
		case "case":
			s.Must(s.Store.Transact(s.T.Context(), func(tx *store.Tx) error {
				return tx.Apply(s.T.Context(), &store.Needs{}, func(_ *store.Loaded, c *store.Changes) error {
					c.OpenCase(store.Case{ID: payment.ID{8}, Merchant: s.payin.Merchant, Kind: store.CaseChargeOpen, Subject: s.payin.ID})
					return nil
				})
			}))
		case "dismissed":
			s.setCharge("state = 'ended', claimed_by = x''")
		default:
			s.happens(given)
		}
		return s.Payins.NewRecordCancel(list[0], answer)
	}
}

func TestRecordCancelDecisions(t *testing.T) {
	done, unknown := processor.CancelAnswer{Outcome: processor.Done}, processor.CancelAnswer{}
	testDecisions(t, []decision{
		{name: "canceled", op: canceled(done, 0, ""), changes: `
			charges attempts:0→1 claimed_by:this→- outcome:→done state:cancel→ended`},
		{name: "paid before", op: canceled(processor.CancelAnswer{Outcome: processor.Refused}, 0, "pay A 100"), changes: `
			charges attempts:0→1 claimed_by:this→- outcome:→refused state:cancel→ended`},
		{name: "not found", op: canceled(processor.CancelAnswer{NotFound: true}, 0, ""), changes: `
			charges attempts:0→1 claimed_by:this→- outcome:→not_found state:cancel→ended`},
		{name: "no answer", op: canceled(unknown, 3, ""), changes: `
			charges attempts:3→4 claimed_by:this→- next_at:-→in 15s outcome:→unknown`},
		{name: "later", op: canceled(processor.CancelAnswer{Outcome: processor.Later, Wait: time.Hour}, 3, ""), changes: `
			charges attempts:3→4 claimed_by:this→- next_at:-→in 1h0m0s outcome:→later`},
		{name: "no answer for half a day", op: canceled(unknown, 11, ""), changes: `
			charges attempts:11→12 claimed_by:this→- next_at:-→in 6h0m0s outcome:→unknown
			+cases charge_not_canceled 10000 externalId:{externalId} processor:bank`},
		{name: "no answer for longer", op: canceled(unknown, 12, "case"), changes: `
			charges attempts:12→13 claimed_by:this→- next_at:-→in 24h0m0s outcome:→unknown`},
		{name: "canceled at last", op: canceled(done, 13, "case"), changes: `
			charges attempts:13→14 claimed_by:this→- outcome:→done state:cancel→ended
			cases closed_at:-→now resolution:→proof`},
		{name: "canceled when another process has the work", op: canceled(done, 0, "another process")},
		{name: "no answer, and it was dismissed", op: canceled(unknown, 13, "dismissed")},
	})
}

// While one process calls the processor for an order, the same request at another one makes
// no call, and is answered as a time-out.
func TestAnotherProcessMakesNoSecondCall(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		request, other, calls := coretest.PayinRequest("order", ""), g.Second(), 0
		g.Bank.AnswerCharge = func(b *coretest.Bank, r processor.ChargeRequest) processor.ChargeAnswer {
			calls++
			b.Mu.Unlock()
			defer b.Mu.Lock()
			other.Until(func() {
				if p, _, err := other.Payins.Create(t.Context(), g.Merchant, request); !problem.Is(err, problem.ProcessorTimeout) || p.Ready() {
					t.Errorf("the other process answered %+v, %v", p, err)
				}
			})
			return processor.ChargeAnswer{Outcome: processor.Done, Charge: processor.Charge{PIX: processortest.PIX(r)}}
		}
		first, _, err := g.Payins.Create(t.Context(), g.Merchant, request)
		g.Must(err)
		second, replayed, err := other.Payins.Create(t.Context(), g.Merchant, request)
		g.Must(err)
		if !first.Ready() || first.ID != second.ID || !replayed || second.Details.PIX.QRCode != first.Details.PIX.QRCode || calls != 1 {
			t.Errorf("answered %+v and %+v, after %d calls", first, second, calls)
		}
		g.WantEvents()
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
		g.Jump(10 * time.Second) // until its next call is due
		p, replayed, err := create(100, 200, 400, 800)
		if err != nil || !replayed || !p.Ready() || calls != 3 {
			t.Errorf("continued: %s, replayed %v, %v, after %d calls", p.Status, replayed, err, calls)
		}
		g.WantEvents(payment.EventPayinUpdated)
	})
}
