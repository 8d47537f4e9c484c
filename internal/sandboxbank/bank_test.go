package sandboxbank

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

func TestOpenBankNeedsASecret(t *testing.T) {
	w, clock := env.Virtual(start, 1)
	if _, err := Open(Options{Clock: clock, IDs: w.IDs}); err == nil {
		t.Error("a bank without a secret opened")
	}
}

func TestTransferCompletesAfterASecond(t *testing.T) {
	h := newHarness(t, onDisk(t))
	request := h.transferRequest()
	if answer := h.transfer(request); answer.Report.State != processor.TransferProcessing {
		t.Fatalf("at once: %+v", answer)
	}
	if due, ok := h.bank.NextDue(); !ok || !due.Equal(start.Add(completeAfter)) {
		t.Errorf("next due %v, %v; want a second later", due, ok)
	}
	h.clock.Advance(completeAfter - time.Microsecond)
	h.step()
	if report := h.driver.QueryTransfer(t.Context(), request.ExternalID); report.State != processor.TransferProcessing {
		t.Errorf("before its second: %+v", report)
	}
	h.clock.Advance(time.Microsecond)
	h.step()
	if report := h.driver.QueryTransfer(t.Context(), request.ExternalID); report.State != processor.TransferPaid {
		t.Errorf("after its second: %+v", report)
	}
	if n := len(h.gateway.received()); n != 1 {
		t.Errorf("%d notices, want 1", n)
	}
	if _, ok := h.bank.NextDue(); ok {
		t.Error("something is due though nothing is left to do")
	}
}

// TestReopenedBankContinues: after a crash the bank continues from its journal.
func TestReopenedBankContinues(t *testing.T) {
	h := newHarness(t, onDisk(t))
	request := h.transferRequest()
	h.transfer(request)
	h.reopen()
	h.clock.Advance(completeAfter)
	h.step()
	if list := h.transfers(request.ExternalID); len(list) != 1 || list[0].Status != "paid" || list[0].PIXKey != request.Key {
		t.Errorf("transfers: %+v", list)
	}
	if n := len(h.gateway.received()); n != 1 {
		t.Errorf("%d notices, want 1", n)
	}
	h.reopen()
	h.elapse()
	if n := len(h.gateway.received()); n != 1 {
		t.Errorf("%d notices after reopening again, want 1", n)
	}
}

func TestOneIDOneTransferUnderConcurrency(t *testing.T) {
	h := newHarness(t, onDisk(t))
	request := h.transferRequest()
	var group sync.WaitGroup
	ends := make(chan string, 64)
	for range 64 {
		group.Go(func() {
			answer := h.driver.Transfer(t.Context(), request, willing)
			if answer.Outcome != processor.Done {
				t.Errorf("outcome %v (%v)", answer.Outcome, answer.Cause)
			}
			ends <- answer.Report.EndToEndID
		})
	}
	group.Wait()
	close(ends)
	first := <-ends
	for other := range ends {
		if other != first {
			t.Errorf("two transfers: %s and %s", first, other)
		}
	}
	if list := h.transfers(""); len(list) != 1 {
		t.Errorf("transfers: %+v", list)
	}
}

// TestRefusedForever: the gateway releases money on a refusal, so neither a
// restart nor a queued request may revoke it.
func TestRefusedForever(t *testing.T) {
	h := newHarness(t, onDisk(t))
	request := h.transferRequest()
	body := bankapi.TransferRequest(request)
	created, err := transferOrder(&body)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.bank.delay(created, 10*time.Minute); err != nil {
		t.Fatal(err)
	}
	h.arm(bankapi.OpTransfer, bankapi.Refuse)
	refused := h.transfer(request)
	if refused.Outcome != processor.Refused || refused.Failure.Code != string(bankapi.CodeAccountInvalid) {
		t.Fatalf("answer: %+v", refused)
	}
	h.clock.Advance(time.Hour)
	h.step()
	h.reopen()
	if again := h.transfer(request); again.Outcome != processor.Refused {
		t.Errorf("after a restart: %+v", again)
	}
	report := h.driver.QueryTransfer(t.Context(), request.ExternalID)
	if report.Lookup != processor.Found || report.State != processor.TransferFailed || report.Failure == nil {
		t.Errorf("query: %+v", report)
	}
	if list := h.transfers(request.ExternalID); len(list) != 0 {
		t.Errorf("transfers: %+v", list)
	}
}

// TestRefusalCannotUndo: an accepted id is not refused later.
func TestRefusalCannotUndo(t *testing.T) {
	h := newHarness(t, nil)
	request := h.transferRequest()
	h.arm(bankapi.OpTransfer, bankapi.TimeoutAfter)
	if answer := h.transfer(request); answer.Outcome != processor.Unknown {
		t.Fatalf("first: %+v", answer)
	}
	h.arm(bankapi.OpTransfer, bankapi.Refuse)
	if answer := h.transfer(request); answer.Outcome != processor.Done {
		t.Errorf("second: %+v, want the first transfer", answer)
	}
}

// TestDelayedEffect: "not found" at first, found half an hour later.
func TestDelayedEffect(t *testing.T) {
	h := newHarness(t, func(o *Options) {
		onDisk(t)(o)
		o.Faults = FaultProfile{Seed: 7, PerMille: 1000, Operations: []bankapi.Operation{bankapi.OpTransfer}, Kinds: []bankapi.FaultKind{bankapi.Delayed}}
	})
	request := h.transferRequest()
	for range 2 {
		if answer := h.transfer(request); answer.Outcome != processor.Unknown {
			t.Fatalf("answer: %+v", answer)
		}
		if report := h.driver.QueryTransfer(t.Context(), request.ExternalID); report.Lookup != processor.NotFound {
			t.Fatalf("query: %+v", report)
		}
	}
	other := request
	other.Amount++
	h.transfer(other) // delayed too, but an order waits under its id
	h.reopen()
	h.clock.Advance(longestDelay)
	h.elapse()
	list := h.transfers(request.ExternalID)
	if len(list) != 1 || list[0].Status != "paid" || list[0].Amount != request.Amount {
		t.Errorf("transfers: %+v", list)
	}
	if fired := h.bank.FaultsFired()[bankapi.Fault{Operation: bankapi.OpTransfer, Kind: bankapi.Delayed}]; fired != 0 {
		t.Errorf("the reopened bank counts %d faults of the one before", fired)
	}
}

// TestSeededFaultsRepeat: the same seed makes the same faults.
func TestSeededFaultsRepeat(t *testing.T) {
	run := func(seed uint64) (outcomes string, fired int) {
		h := newHarness(t, func(o *Options) { o.Faults = FaultProfile{Seed: seed, PerMille: 500} })
		for range 60 {
			outcomes += h.transfer(h.transferRequest()).Outcome.String() + " "
		}
		for _, n := range h.bank.FaultsFired() {
			fired += n
		}
		return outcomes, fired
	}
	first, fired := run(3)
	if again, _ := run(3); again != first {
		t.Errorf("one seed, two runs:\n%s\n%s", first, again)
	}
	if other, _ := run(4); other == first {
		t.Error("another seed, the same run")
	}
	if fired < 15 || fired > 45 {
		t.Errorf("%d faults fired in 60 calls at 500 per mille", fired)
	}
}

func TestForcedTransfers(t *testing.T) {
	steps := []struct {
		actions string
		want    error
		status  string
		back    money.Cents
	}{
		{"complete", nil, "paid", 0},
		{"complete complete", nil, "paid", 0},
		{"fail", nil, "failed", 0},
		{"fail fail", nil, "failed", 0},
		{"return", nil, "returned", 6_789},
		{"complete return", nil, "returned", 6_789},
		{"return return", nil, "returned", 6_789},
		{"complete fail", bankapi.CodeStateForbids, "paid", 0},
		{"fail complete", bankapi.CodeStateForbids, "failed", 0},
		{"fail return", bankapi.CodeStateForbids, "failed", 0},
		{"return fail", bankapi.CodeStateForbids, "returned", 6_789},
		{"explode", bankapi.CodeNotFound, "processing", 0},
	}
	for _, s := range steps {
		t.Run(s.actions, func(t *testing.T) {
			h := newHarness(t, nil)
			request := h.transferRequest()
			h.transfer(request)
			var err error
			for action := range strings.FieldsSeq(s.actions) {
				err = h.control.Transfer(t.Context(), request.ExternalID, action, 0)
			}
			if !errors.Is(err, s.want) {
				t.Errorf("error %v, want %v", err, s.want)
			}
			if list := h.transfers(request.ExternalID); len(list) != 1 || list[0].Status != s.status {
				t.Errorf("transfers %+v, want %s", list, s.status)
			}
			report := h.driver.QueryTransfer(t.Context(), request.ExternalID)
			if report.Returned != s.back || (s.status == "failed") != (report.Failure != nil) {
				t.Errorf("report %+v", report)
			}
		})
	}
	h := newHarness(t, nil)
	if err := h.control.Transfer(t.Context(), h.newID(), "complete", 0); !errors.Is(err, bankapi.CodeTransferUnknown) {
		t.Errorf("unknown id: %v", err)
	}
}

func TestReturnInParts(t *testing.T) {
	h := newHarness(t, nil)
	request := h.transferRequest()
	h.transfer(request)
	for _, part := range []struct {
		amount, total money.Cents
		err           error
	}{{1_000, 1_000, nil}, {5_790, 1_000, bankapi.CodeRequestInvalid}, {5_000, 6_000, nil}, {0, 6_789, nil}} {
		if err := h.control.Transfer(t.Context(), request.ExternalID, "return", part.amount); !errors.Is(err, part.err) {
			t.Errorf("return %d: %v, want %v", part.amount, err, part.err)
		}
		if got := h.driver.QueryTransfer(t.Context(), request.ExternalID).Returned; got != part.total {
			t.Errorf("after %d: returned %d, want %d", part.amount, got, part.total)
		}
	}
}

func TestForcedCharges(t *testing.T) {
	open, expired, failed := processor.ChargeOpen, processor.ChargeExpired, processor.ChargeFailed
	steps := []struct {
		actions  string
		want     error
		state    processor.ChargeState
		payments int
		dispute  processor.DisputeState
	}{
		{"pay", nil, open, 1, ""},
		{"pay pay", nil, open, 2, ""},
		{"expire", nil, expired, 0, ""},
		{"expire expire", nil, expired, 0, ""},
		{"expire pay", nil, expired, 1, ""}, // late money is real
		{"fail", nil, failed, 0, ""},
		{"fail fail", nil, failed, 0, ""},
		{"fail pay", bankapi.CodeStateForbids, failed, 0, ""},
		{"fail expire", bankapi.CodeStateForbids, failed, 0, ""},
		{"pay expire", bankapi.CodeStateForbids, open, 1, ""},
		{"pay fail", bankapi.CodeStateForbids, open, 1, ""},
		{"dispute", bankapi.CodeStateForbids, open, 0, ""},
		{"pay win", bankapi.CodeStateForbids, open, 1, ""},
		{"pay lose", bankapi.CodeStateForbids, open, 1, ""},
		{"pay dispute", nil, open, 1, processor.DisputeOpen},
		{"pay dispute dispute", bankapi.CodeStateForbids, open, 1, processor.DisputeOpen},
		{"pay dispute win", nil, open, 1, processor.DisputeWon},
		{"pay dispute lose", nil, open, 1, processor.DisputeLost},
		{"pay dispute lose lose", bankapi.CodeStateForbids, open, 1, processor.DisputeLost},
		{"pay dispute lose dispute", bankapi.CodeStateForbids, open, 1, processor.DisputeLost},
		{"pay dispute lose win", nil, open, 1, processor.DisputeReversed},
		{"pay dispute win dispute", nil, open, 1, processor.DisputeOpen},
		{"explode", bankapi.CodeNotFound, "", 0, ""},
	}
	for _, s := range steps {
		t.Run(s.actions, func(t *testing.T) {
			h := newHarness(t, nil)
			request := h.chargeRequest(payment.PIX) // generated offline: the bank has not seen it
			var err error
			for action := range strings.FieldsSeq(s.actions) {
				err = h.control.Charge(t.Context(), request, action, bankapi.ForceCharge{})
			}
			if !errors.Is(err, s.want) {
				t.Errorf("error %v, want %v", err, s.want)
			}
			if s.state == "" {
				return
			}
			report := h.driver.QueryCharge(t.Context(), request.ExternalID)
			if report.State != s.state || len(report.Payments) != s.payments {
				t.Errorf("state %q with %d payments, want %q with %d", report.State, len(report.Payments), s.state, s.payments)
			}
			var dispute processor.DisputeState
			if n := len(report.Disputes); n > 0 {
				dispute = report.Disputes[n-1].State
			}
			if dispute != s.dispute {
				t.Errorf("dispute %q, want %q", dispute, s.dispute)
			}
		})
	}
}

func TestUnpaidChargeExpiresByItself(t *testing.T) {
	h := newHarness(t, nil)
	unpaid, paid := h.chargeRequest(payment.PIX), h.chargeRequest(payment.PIX)
	for _, request := range []processor.ChargeRequest{unpaid, paid} {
		if answer := h.driver.Charge(t.Context(), request, willing); answer.Outcome != processor.Done {
			t.Fatal(answer)
		}
	}
	h.pay(paid, bankapi.ForceCharge{})
	h.clock.Advance(24 * time.Hour)
	if state := h.driver.QueryCharge(t.Context(), unpaid.ExternalID).State; state != processor.ChargeExpired {
		t.Errorf("unpaid: %q", state)
	}
	if state := h.driver.QueryCharge(t.Context(), paid.ExternalID).State; state != processor.ChargeOpen {
		t.Errorf("paid: %q", state)
	}
}

func TestDeclinedCardMayTryAgain(t *testing.T) {
	h := newHarness(t, nil)
	request := h.chargeRequest(payment.CreditCard)
	if err := h.control.Charge(t.Context(), request, "fail", bankapi.ForceCharge{Attempt: true}); err != nil {
		t.Fatal(err)
	}
	report := h.driver.QueryCharge(t.Context(), request.ExternalID)
	if report.State != processor.ChargeOpen || report.Failure == nil || report.Failure.Code != string(bankapi.CodeCardDeclined) {
		t.Errorf("declined: %+v", report)
	}
	h.pay(request, bankapi.ForceCharge{})
	paid := h.driver.QueryCharge(t.Context(), request.ExternalID).Payments
	if len(paid) != 1 || paid[0].Card == nil || paid[0].Card.Last4 == "" || paid[0].EndToEndID != "" {
		t.Errorf("paid: %+v", paid)
	}
	pix := h.chargeRequest(payment.PIX)
	if err := h.control.Charge(t.Context(), pix, "fail", bankapi.ForceCharge{Attempt: true}); !errors.Is(err, bankapi.CodeRequestInvalid) {
		t.Errorf("declined Pix: %v", err)
	}
}

func TestDisputedMoneyIsNotRefunded(t *testing.T) {
	h := newHarness(t, nil)
	request := h.chargeRequest(payment.PIX)
	h.pay(request, bankapi.ForceCharge{})
	paid := h.driver.QueryCharge(t.Context(), request.ExternalID).Payments[0]
	refund := func() processor.TransferAnswer {
		return h.driver.Refund(t.Context(), processor.RefundRequest{
			ExternalID: h.newID(), PaymentID: paid.ID, Amount: paid.Amount,
		}, willing)
	}
	for _, step := range []struct {
		action string
		code   bankapi.Code
	}{{"dispute", bankapi.CodePaymentDisputed}, {"lose", bankapi.CodeRefundTooMuch}, {"win", ""}} {
		if err := h.control.Charge(t.Context(), request, step.action, bankapi.ForceCharge{}); err != nil {
			t.Fatal(err)
		}
		answer := refund()
		if step.code == "" && answer.Outcome != processor.Done {
			t.Errorf("after %s: %+v", step.action, answer)
		}
		if step.code != "" && (answer.Outcome != processor.Refused || answer.Failure.Code != string(step.code)) {
			t.Errorf("after %s: %+v, want %s", step.action, answer, step.code)
		}
	}
}

func TestClockOnlyGoesForwardAndPersists(t *testing.T) {
	h := newHarness(t, onDisk(t))
	for _, step := range []struct{ set, want time.Duration }{
		{time.Hour, time.Hour}, {time.Minute, time.Hour}, {0, time.Hour}, {30 * 24 * time.Hour, 30 * 24 * time.Hour},
	} {
		if err := h.control.SetOffset(t.Context(), step.set); err != nil {
			t.Fatal(err)
		}
		if ahead := h.bank.Now().Sub(h.clock.Now()); ahead != step.want {
			t.Errorf("set %v: %v ahead, want %v", step.set, ahead, step.want)
		}
	}
	if err := h.control.SetOffset(t.Context(), -time.Second); !errors.Is(err, bankapi.CodeRequestInvalid) {
		t.Errorf("backwards: %v", err)
	}
	h.reopen()
	if ahead := h.bank.Now().Sub(h.clock.Now()); ahead != 30*24*time.Hour {
		t.Errorf("reopened: %v ahead", ahead)
	}
	h.transfer(h.transferRequest())
	if due, ok := h.bank.NextDue(); !ok || !due.Equal(h.clock.Now().Add(completeAfter)) {
		t.Errorf("next due %v by the clock of the options, want %v", due, h.clock.Now().Add(completeAfter))
	}
}

func TestBillPaidByPix(t *testing.T) {
	h := newHarness(t, nil)
	request := h.chargeRequest(payment.Boleto)
	h.pay(request, bankapi.ForceCharge{})
	h.pay(request, bankapi.ForceCharge{Method: bankapi.MethodPIX})
	paid := h.driver.QueryCharge(t.Context(), request.ExternalID).Payments
	if len(paid) != 2 || paid[0].EndToEndID != "" || paid[1].EndToEndID != paid[1].ID || len(paid[1].ID) != 32 {
		t.Errorf("payments: %+v", paid)
	}
}

// TestOfflineCharges: charges are generated offline only while no fault could
// hit the call.
func TestOfflineCharges(t *testing.T) {
	h := newHarness(t, nil)
	offline := func() bool { _, ok := h.driver.NewCharge(h.chargeRequest(payment.PIX)); return ok }
	if !offline() {
		t.Error("no fault: not generated")
	}
	h.arm(bankapi.OpTransfer, bankapi.Refuse)
	if !offline() {
		t.Error("fault on transfer: not generated")
	}
	h.arm(bankapi.OpCharge, bankapi.NotifyNever)
	if offline() {
		t.Error("fault on charge: generated")
	}
	if answer := h.driver.Charge(t.Context(), h.chargeRequest(payment.PIX), willing); answer.Outcome != processor.Done || !offline() {
		t.Errorf("fault is used up: not generated (%+v)", answer)
	}
	h.arm(bankapi.OpCharge, bankapi.Refuse)
	if err := h.control.Disarm(t.Context()); err != nil || !offline() {
		t.Errorf("faults cleared: not generated (%v)", err)
	}
	random := newHarness(t, func(o *Options) { o.Faults = FaultProfile{PerMille: 1} })
	if _, ok := random.driver.NewCharge(random.chargeRequest(payment.PIX)); ok {
		t.Error("random faults: generated")
	}
}
