package checker

import (
	"context"
	"slices"
	"time"

	deliveries "github.com/porteira/porteira/internal/delivery"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/outgoing"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

const hookURL = "https://shop.example/hook"

// payin creates a pay-in whose events go to a URL, or nowhere.
func (s *scene) payin(reference string, amount int64, url string) payment.Payin {
	s.t.Helper()
	r := &wire.PayinRequest{
		Method: wire.Some("PIX"), Amount: wire.Some(amount), ReferenceID: wire.Some(reference), ExpiresIn: wire.Some(int64(3600)),
	}
	if url != "" {
		r.WebhookURL = wire.Some(url)
	}
	p, _, err := s.Payins.Create(s.ctx, s.merchant, r)
	s.must(err)
	s.records.Orders = append(s.records.Orders, &ClientOrder{
		Kind: Payin, Merchant: s.merchant.ID.String(), Reference: reference, Amount: amount, Method: "PIX", WebhookURL: url,
		ID: p.ID.String(), ExternalID: p.ExternalID,
	})
	return p
}

// payout requests a payout.
func (s *scene) payout(reference string, amount int64) payment.Payout {
	s.t.Helper()
	p, _, err := s.Payouts.Request(s.ctx, s.merchant, &wire.PayoutRequest{
		Amount: wire.Some(amount), PIXKey: wire.Some("a@b.c"), PIXKeyType: wire.Some("EMAIL"), NormalKey: "a@b.c",
		ReferenceID: wire.Some(reference), WebhookURL: wire.Some(hookURL),
	})
	s.must(err)
	s.records.Orders = append(s.records.Orders, &ClientOrder{
		Kind: Payout, Merchant: s.merchant.ID.String(), Reference: reference, Amount: amount, WebhookURL: hookURL,
		ID: p.ID.String(), ExternalID: p.ExternalID,
	})
	return p
}

// report applies a report of the bank about a pay-in.
func (s *scene) report(externalID string, r processor.ChargeReport) {
	s.t.Helper()
	for _, p := range r.Payments {
		s.records.Payments = append(s.records.Payments, BankPayment{p.ID, externalID, int64(p.Amount), p.EndToEndID})
	}
	r.Lookup = processor.Found
	s.must(s.Payins.Receive(s.ctx, bankName, externalID, r, nil))
}

// pay pays a pay-in with one payment of that id.
func (s *scene) pay(externalID, id string, amount money.Cents) {
	s.t.Helper()
	s.report(externalID, processor.ChargeReport{Payments: []processor.Payment{
		{ID: id, ExternalID: externalID, EndToEndID: "E" + id, Amount: amount, PaidAt: s.clock.Now()},
	}})
}

// dispute reports the state of a dispute of a pay-in.
func (s *scene) dispute(externalID string, amount money.Cents, state processor.DisputeState) {
	s.t.Helper()
	s.report(externalID, processor.ChargeReport{Disputes: []processor.Dispute{{ID: "D" + externalID, Amount: amount, State: state}}})
}

// claimSend claims the one payout that is due to be sent.
func (s *scene) claimSend() outgoing.ClaimedSend {
	s.t.Helper()
	return s.claimSendTo(bankName)
}

func (s *scene) claimSendTo(account string) outgoing.ClaimedSend {
	s.t.Helper()
	sends, _, err := s.Outgoing.Claim(s.ctx, store.Due{Merchant: s.merchant.ID, Processor: account}, 10)
	s.must(err)
	if len(sends) != 1 {
		s.t.Fatalf("%d payouts are due", len(sends))
	}
	return sends[0]
}

// send sends the one payout that is due, with the bank's answer.
func (s *scene) send(answer processor.TransferAnswer) {
	s.t.Helper()
	claimed := s.claimSend()
	if answer.Outcome == processor.Done {
		s.transfer(claimed.Payout.ExternalID, int64(claimed.Payout.Amount), answer.Report)
	}
	s.must(s.Outgoing.RecordSend(s.ctx, claimed, answer))
}

// consent requests a payout at the bank that asks and sends it; the bank has it in process as
// two transfers, and the first one gets our consent.
func (s *scene) consent(reference string) {
	s.t.Helper()
	p := s.payout(reference, askedAmount)
	claimed := s.claimSendTo(asking)
	s.must(s.Outgoing.RecordSend(s.ctx, claimed, processor.TransferAnswer{Outcome: processor.Unknown}))
	for i, id := range []string{"T1", "T2"} {
		s.records.Transfers = append(s.records.Transfers, BankTransfer{p.ExternalID, askedAmount, 0, "processing", "E" + id, id})
		why, err := s.Outgoing.AnswerQuestion(s.ctx, asking, processor.Question{Transfer: id, ExternalID: p.ExternalID, Amount: askedAmount, Key: "a@b.c"})
		if err != nil || (why == "") != (i == 0) {
			s.t.Fatalf("consent to transfer %s: %q, %v", id, why, err)
		}
	}
}

// payConsented pays the transfer with our consent; the other one failed.
func (s *scene) payConsented(reference string) {
	s.t.Helper()
	id := s.records.order(reference).ExternalID
	for i := range s.records.Transfers {
		if t := &s.records.Transfers[i]; t.ExternalID == id {
			t.State = map[string]string{"T1": "paid", "T2": "failed"}[t.ID]
		}
	}
	r := processor.TransferReport{Lookup: processor.Found, State: processor.TransferPaid, ProcessorID: "T1", EndToEndID: "ET1", Evidence: "paid"}
	_, err := s.Outgoing.RecordNotice(s.ctx, asking, id, r, nil)
	s.must(err)
}

// lookUp looks up the one payout that is due for it, with the bank's answer.
func (s *scene) lookUp(r processor.TransferReport) {
	s.t.Helper()
	list, err := s.Outgoing.ClaimLookUps(s.ctx, store.Due{Merchant: s.merchant.ID, Processor: bankName}, 10)
	s.must(err)
	if len(list) != 1 {
		s.t.Fatalf("%d payouts are due for a look-up", len(list))
	}
	if r.Lookup == processor.Found && r.Amount == 0 {
		s.transfer(list[0].ExternalID, int64(list[0].Amount), r)
	}
	s.must(s.Outgoing.RecordLookUp(s.ctx, list[0], r))
}

// found is a report of a transfer in a state, with an amount that was returned.
func found(state processor.TransferState, returned money.Cents) processor.TransferReport {
	return processor.TransferReport{
		Lookup: processor.Found, State: state, EndToEndID: "E1", Returned: returned, Evidence: "the bank says " + string(state),
	}
}

// done is an answer to a send that the bank accepted.
func done(state processor.TransferState) processor.TransferAnswer {
	return processor.TransferAnswer{Outcome: processor.Done, Report: found(state, 0)}
}

// refused is an answer to a send that the bank refused.
var refused = processor.TransferAnswer{
	Outcome: processor.Refused, Failure: &payment.Failure{Code: "x", Message: "no such key"}, Evidence: "422",
}

// transfer writes a transfer into the bank's records.
func (s *scene) transfer(externalID string, amount int64, r processor.TransferReport) {
	t := BankTransfer{externalID, amount, int64(r.Returned), string(r.State), r.EndToEndID, r.ProcessorID}
	i := slices.IndexFunc(s.records.Transfers, func(t BankTransfer) bool { return t.ExternalID == externalID })
	if i >= 0 {
		s.records.Transfers[i] = t
		return
	}
	s.records.Transfers = append(s.records.Transfers, t)
}

// claimDeliveries claims all due deliveries.
func (s *scene) claimDeliveries() []store.Delivery {
	s.t.Helper()
	list, err := s.Deliveries.Claim(s.ctx, s.merchant.ID, 100)
	s.must(err)
	return list
}

// deliver sends all due deliveries to their receiver, which answers with a status.
func (s *scene) deliver(status int) (sent int) {
	s.t.Helper()
	list := s.claimDeliveries()
	for _, d := range list {
		eventID := payment.PublicEventID(d.Event.ID)
		s.checker.Arrived(eventID)
		s.records.Deliveries = append(s.records.Deliveries, ReceivedDelivery{
			Merchant: s.merchant.ID.String(), URL: d.URL, EventID: eventID, Body: d.Event.Body, Answer: status, At: s.clock.Now(),
		})
		s.endAttempt(d, status)
	}
	return len(list)
}

// endAttempt records the answer to an attempt.
func (s *scene) endAttempt(d store.Delivery, status int) {
	s.t.Helper()
	end := &deliveries.End{Delivery: d, State: store.DeliveryPending, Attempt: store.Attempt{
		Merchant: d.Merchant, Delivery: d.ID, Number: d.Attempts, Status: status, CreatedAt: d.UpdatedAt,
	}}
	switch {
	case status == 200:
		end.State = store.DeliveryDone
	case status == 410:
		end.State = store.DeliveryDisabled
	case d.ScheduleStep+1 == webhookAttempts:
		end.State = store.DeliveryExhausted
	default:
		end.NextAt = s.clock.Now().Add(time.Minute)
	}
	s.must(s.Writer.Do(s.ctx, end))
}

// withLease runs something that needs a lease, which is dropped afterwards.
func (s *scene) withLease(run func(ctx context.Context)) {
	s.t.Helper()
	_, err := s.Cluster.KeepAlive(s.ctx)
	s.must(err)
	run(s.ctx)
	s.Node.Lease.Drop()
}

// applyNotices applies all notices that are due.
func (s *scene) applyNotices() {
	s.t.Helper()
	s.withLease(func(ctx context.Context) {
		for {
			did, err := s.Notices.Apply(ctx)
			s.must(err)
			if did == 0 {
				return
			}
		}
	})
}

// populate creates one order in each of several states: in-paid (with a surplus),
// in-open, in-made (which the bank registered), in-disputed, out-done, out-failed, out-sent,
// out-asked (with our consent), out-waiting (of the same bank) and out-new, a payment that fits no order, and a notice to be
// applied.
func (s *scene) populate() {
	s.t.Helper()
	paid := s.payin("in-paid", 10_000, hookURL)
	s.pay(paid.ExternalID, "A", 10_500)
	s.payout("out-done", 2_000)
	s.send(done(processor.TransferPaid))
	s.deliver(200)
	s.payin("in-open", 5_000, hookURL)
	made := s.payin("in-made", registered, hookURL)
	s.records.Charges = append(s.records.Charges, BankCharge{made.ExternalID, registered, false, "bank"})
	disputed := s.payin("in-disputed", 3_000, hookURL)
	s.pay(disputed.ExternalID, "B", 3_000)
	s.dispute(disputed.ExternalID, 3_000, processor.DisputeOpen)
	s.payout("out-failed", 400)
	s.send(refused)
	s.payout("out-sent", 700)
	s.send(done(processor.TransferProcessing))
	s.consent("out-asked")
	s.payout("out-waiting", askedAmount)
	s.payout("out-new", 900)
	s.pay(s.store.ExternalID(&s.merchant, payment.OperationPayin, "unknown"), "C", 55)
	s.must(s.Notices.Record(s.ctx, bankName, "n1", "", []byte("nothing")))
	s.wantSound()
}
