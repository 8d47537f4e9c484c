package sandbox

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
)

// books reads the bank's list of transfers under an id.
func (r *rig) books(externalID string) []Transfer {
	r.t.Helper()
	lines, _, err := r.control.Transfers(r.t.Context(), externalID, "")
	if err != nil {
		r.t.Fatal(err)
	}
	return lines
}

func TestOpenBankNeedsASecret(t *testing.T) {
	w, clock := env.Virtual(start, 1)
	if _, err := OpenBank(BankOptions{Clock: clock, IDs: w.IDs}); err == nil {
		t.Error("a bank without a secret opened")
	}
	if _, err := NewProcessor(Options{URL: "http://bank.invalid", Transport: &receiver{}}); err == nil {
		t.Error("a processor without a secret was made")
	}
}

func TestTransferCompletesAfterASecond(t *testing.T) {
	r := newRig(t, onDisk(t))
	request := r.transferRequest()
	if answer := r.transfer(request); answer.Report.State != processor.TransferProcessing {
		t.Fatalf("at once: %+v", answer)
	}
	if due, ok := r.bank.NextDue(); !ok || !due.Equal(start.Add(settleAfter)) {
		t.Errorf("next due %v, %v; want a second later", due, ok)
	}
	r.clock.Advance(settleAfter - time.Microsecond)
	r.step()
	if report := r.adapter.QueryTransfer(t.Context(), request.ExternalID); report.State != processor.TransferProcessing {
		t.Errorf("before its second: %+v", report)
	}
	r.clock.Advance(time.Microsecond)
	r.step()
	if report := r.adapter.QueryTransfer(t.Context(), request.ExternalID); report.State != processor.TransferPaid {
		t.Errorf("after its second: %+v", report)
	}
	if n := len(r.gateway.received()); n != 1 {
		t.Errorf("%d notices, want 1", n)
	}
	if _, ok := r.bank.NextDue(); ok {
		t.Error("something is due though all is done")
	}
}

// TestReopenedBankGoesOn: a bank that dies goes on where it stood.
func TestReopenedBankGoesOn(t *testing.T) {
	r := newRig(t, onDisk(t))
	request := r.transferRequest()
	r.transfer(request)
	_ = r.bank.Close()
	r.open()
	r.clock.Advance(settleAfter)
	r.step()
	if lines := r.books(request.ExternalID); len(lines) != 1 || lines[0].Status != "paid" || lines[0].PIXKey != request.Key {
		t.Errorf("books: %+v", lines)
	}
	if n := len(r.gateway.received()); n != 1 {
		t.Errorf("%d notices, want 1", n)
	}
	_ = r.bank.Close()
	r.open()
	r.settle()
	if n := len(r.gateway.received()); n != 1 {
		t.Errorf("%d notices after reopening again, want 1", n)
	}
}

func TestOneIDOneTransferUnderConcurrency(t *testing.T) {
	r := newRig(t, onDisk(t))
	request := r.transferRequest()
	var group sync.WaitGroup
	ends := make(chan string, 64)
	for range 64 {
		group.Go(func() {
			answer := r.adapter.Transfer(t.Context(), request, func() error { return nil })
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
	if lines := r.books(""); len(lines) != 1 {
		t.Errorf("books: %+v", lines)
	}
}

// TestRefusedForEver: the gateway gives money back on a refusal, so neither a
// restart, nor a request that waits in a queue, may make it untrue.
func TestRefusedForEver(t *testing.T) {
	r := newRig(t, onDisk(t))
	request := r.transferRequest()
	made, err := (&transferRequest{
		request.ExternalID, request.Amount, request.KeyType, request.Key, request.Name, request.Document, "",
	}).order()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.bank.delay(made, 10*time.Minute); err != nil {
		t.Fatal(err)
	}
	r.arm(OpTransfer, Refuse)
	refused := r.transfer(request)
	if refused.Outcome != processor.Refused || refused.Failure.Code != string(codeAccountInvalid) {
		t.Fatalf("answer: %+v", refused)
	}
	r.clock.Advance(time.Hour)
	r.step()
	_ = r.bank.Close()
	r.open()
	if again := r.transfer(request); again.Outcome != processor.Refused {
		t.Errorf("after a restart: %+v", again)
	}
	report := r.adapter.QueryTransfer(t.Context(), request.ExternalID)
	if report.Lookup != processor.Found || report.State != processor.TransferFailed || report.Failure == nil {
		t.Errorf("query: %+v", report)
	}
	if lines := r.books(request.ExternalID); len(lines) != 0 {
		t.Errorf("books: %+v", lines)
	}
}

// TestRefusalCannotUndo: an id that was taken is not refused later.
func TestRefusalCannotUndo(t *testing.T) {
	r := newRig(t, nil)
	request := r.transferRequest()
	r.arm(OpTransfer, TimeoutAfter)
	if answer := r.transfer(request); answer.Outcome != processor.Unknown {
		t.Fatalf("first: %+v", answer)
	}
	r.arm(OpTransfer, Refuse)
	if answer := r.transfer(request); answer.Outcome != processor.Done {
		t.Errorf("second: %+v, want the transfer that was made", answer)
	}
}

// TestDelayedEffect: "not found" now, and half an hour later there it is.
func TestDelayedEffect(t *testing.T) {
	r := newRig(t, func(o *BankOptions) {
		onDisk(t)(o)
		o.Faults = FaultProfile{Seed: 7, PerMille: 1000, Operations: []Operation{OpTransfer}, Kinds: []Kind{Delayed}}
	})
	request := r.transferRequest()
	for range 2 {
		if answer := r.transfer(request); answer.Outcome != processor.Unknown {
			t.Fatalf("answer: %+v", answer)
		}
		if report := r.adapter.QueryTransfer(t.Context(), request.ExternalID); report.Lookup != processor.NotFound {
			t.Fatalf("query: %+v", report)
		}
	}
	other := request
	other.Amount++
	r.transfer(other) // delayed too, but the id is waiting already
	_ = r.bank.Close()
	r.open()
	r.clock.Advance(longestDelay)
	r.settle()
	lines := r.books(request.ExternalID)
	if len(lines) != 1 || lines[0].Status != "paid" || lines[0].Amount != request.Amount {
		t.Errorf("books: %+v", lines)
	}
	if fired := r.bank.FaultsFired()[Fault{Operation: OpTransfer, Kind: Delayed}]; fired != 0 {
		t.Errorf("the reopened bank counts %d faults of the one before", fired)
	}
}

// TestSeededFaultsRepeat: the same seed makes the same faults.
func TestSeededFaultsRepeat(t *testing.T) {
	run := func(seed uint64) (outcomes string, fired int) {
		r := newRig(t, func(o *BankOptions) { o.Faults = FaultProfile{Seed: seed, PerMille: 500} })
		for range 60 {
			outcomes += r.transfer(r.transferRequest()).Outcome.String() + " "
		}
		for _, n := range r.bank.FaultsFired() {
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
		verbs  string
		want   error
		status string
		back   money.Cents
	}{
		{"complete", nil, "paid", 0},
		{"complete complete", nil, "paid", 0},
		{"fail", nil, "failed", 0},
		{"fail fail", nil, "failed", 0},
		{"return", nil, "returned", 6_789},
		{"complete return", nil, "returned", 6_789},
		{"return return", nil, "returned", 6_789},
		{"complete fail", ErrState, "paid", 0},
		{"fail complete", ErrState, "failed", 0},
		{"fail return", ErrState, "failed", 0},
		{"return fail", ErrState, "returned", 6_789},
		{"explode", ErrNotFound, "processing", 0},
	}
	for _, s := range steps {
		t.Run(s.verbs, func(t *testing.T) {
			r := newRig(t, nil)
			request := r.transferRequest()
			r.transfer(request)
			var err error
			for verb := range strings.FieldsSeq(s.verbs) {
				err = r.control.Transfer(t.Context(), request.ExternalID, verb, 0)
			}
			if !errors.Is(err, s.want) {
				t.Errorf("error %v, want %v", err, s.want)
			}
			if lines := r.books(request.ExternalID); len(lines) != 1 || lines[0].Status != s.status {
				t.Errorf("books %+v, want %s", lines, s.status)
			}
			report := r.adapter.QueryTransfer(t.Context(), request.ExternalID)
			if report.Returned != s.back || (s.status == "failed") != (report.Failure != nil) {
				t.Errorf("report %+v", report)
			}
		})
	}
	r := newRig(t, nil)
	if err := r.control.Transfer(t.Context(), r.newID(), "complete", 0); !errors.Is(err, ErrNotFound) {
		t.Errorf("unknown id: %v", err)
	}
}

func TestReturnInParts(t *testing.T) {
	r := newRig(t, nil)
	request := r.transferRequest()
	r.transfer(request)
	for _, part := range []struct {
		amount, total money.Cents
		err           error
	}{{1_000, 1_000, nil}, {5_790, 1_000, ErrInvalid}, {5_000, 6_000, nil}, {0, 6_789, nil}} {
		if err := r.control.Transfer(t.Context(), request.ExternalID, "return", part.amount); !errors.Is(err, part.err) {
			t.Errorf("return %d: %v, want %v", part.amount, err, part.err)
		}
		if got := r.adapter.QueryTransfer(t.Context(), request.ExternalID).Returned; got != part.total {
			t.Errorf("after %d: returned %d, want %d", part.amount, got, part.total)
		}
	}
}

func TestForcedCharges(t *testing.T) {
	open, expired, failed := processor.ChargeOpen, processor.ChargeExpired, processor.ChargeFailed
	steps := []struct {
		verbs    string
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
		{"fail pay", ErrState, failed, 0, ""},
		{"fail expire", ErrState, failed, 0, ""},
		{"pay expire", ErrState, open, 1, ""},
		{"pay fail", ErrState, open, 1, ""},
		{"dispute", ErrState, open, 0, ""},
		{"pay win", ErrState, open, 1, ""},
		{"pay lose", ErrState, open, 1, ""},
		{"pay dispute", nil, open, 1, processor.DisputeOpen},
		{"pay dispute dispute", ErrState, open, 1, processor.DisputeOpen},
		{"pay dispute win", nil, open, 1, processor.DisputeWon},
		{"pay dispute lose", nil, open, 1, processor.DisputeLost},
		{"pay dispute lose lose", ErrState, open, 1, processor.DisputeLost},
		{"pay dispute lose dispute", ErrState, open, 1, processor.DisputeLost},
		{"pay dispute lose win", nil, open, 1, processor.DisputeReversed},
		{"pay dispute win dispute", nil, open, 1, processor.DisputeOpen},
		{"explode", ErrNotFound, "", 0, ""},
	}
	for _, s := range steps {
		t.Run(s.verbs, func(t *testing.T) {
			r := newRig(t, nil)
			request := r.chargeRequest(payment.PIX) // minted: the bank has not seen it
			var err error
			for verb := range strings.FieldsSeq(s.verbs) {
				err = r.control.Charge(t.Context(), request, verb, Payment{})
			}
			if !errors.Is(err, s.want) {
				t.Errorf("error %v, want %v", err, s.want)
			}
			if s.state == "" {
				return
			}
			report := r.adapter.QueryCharge(t.Context(), request.ExternalID)
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
	r := newRig(t, nil)
	unpaid, paid := r.chargeRequest(payment.PIX), r.chargeRequest(payment.PIX)
	for _, request := range []processor.ChargeRequest{unpaid, paid} {
		if answer := r.adapter.Charge(t.Context(), request); answer.Outcome != processor.Done {
			t.Fatal(answer)
		}
	}
	r.pay(paid, Payment{})
	r.clock.Advance(24 * time.Hour)
	if state := r.adapter.QueryCharge(t.Context(), unpaid.ExternalID).State; state != processor.ChargeExpired {
		t.Errorf("unpaid: %q", state)
	}
	if state := r.adapter.QueryCharge(t.Context(), paid.ExternalID).State; state != processor.ChargeOpen {
		t.Errorf("paid: %q", state)
	}
}

func TestDeclinedCardMayTryAgain(t *testing.T) {
	r := newRig(t, nil)
	request := r.chargeRequest(payment.CreditCard)
	if err := r.control.DeclineCard(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	report := r.adapter.QueryCharge(t.Context(), request.ExternalID)
	if report.State != processor.ChargeOpen || report.Failure == nil || report.Failure.Code != string(codeCardDeclined) {
		t.Errorf("declined: %+v", report)
	}
	r.pay(request, Payment{})
	paid := r.adapter.QueryCharge(t.Context(), request.ExternalID).Payments
	if len(paid) != 1 || paid[0].Card == nil || paid[0].Card.Last4 == "" || paid[0].EndToEndID != "" {
		t.Errorf("paid: %+v", paid)
	}
	pix := r.chargeRequest(payment.PIX)
	if err := r.control.DeclineCard(t.Context(), pix); !errors.Is(err, ErrInvalid) {
		t.Errorf("declined Pix: %v", err)
	}
}

func TestDisputedMoneyIsNotRefunded(t *testing.T) {
	r := newRig(t, nil)
	request := r.chargeRequest(payment.PIX)
	r.pay(request, Payment{})
	paid := r.adapter.QueryCharge(t.Context(), request.ExternalID).Payments[0]
	refund := func() processor.TransferAnswer {
		return r.adapter.Refund(t.Context(), processor.RefundRequest{
			ExternalID: r.newID(), PaymentID: paid.ID, Amount: paid.Amount,
		}, func() error { return nil })
	}
	for _, step := range []struct {
		verb string
		code failureCode
	}{{"dispute", codePaymentDisputed}, {"lose", codeRefundTooMuch}, {"win", ""}} {
		if err := r.control.Charge(t.Context(), request, step.verb, Payment{}); err != nil {
			t.Fatal(err)
		}
		answer := refund()
		if step.code == "" && answer.Outcome != processor.Done {
			t.Errorf("after %s: %+v", step.verb, answer)
		}
		if step.code != "" && (answer.Outcome != processor.Refused || answer.Failure.Code != string(step.code)) {
			t.Errorf("after %s: %+v, want %s", step.verb, answer, step.code)
		}
	}
}

func TestClockOnlyGoesForwardAndPersists(t *testing.T) {
	r := newRig(t, onDisk(t))
	for _, step := range []struct{ set, want time.Duration }{
		{time.Hour, time.Hour}, {time.Minute, time.Hour}, {0, time.Hour}, {30 * 24 * time.Hour, 30 * 24 * time.Hour},
	} {
		if err := r.control.SetOffset(t.Context(), step.set); err != nil {
			t.Fatal(err)
		}
		if ahead := r.bank.Now().Sub(r.clock.Now()); ahead != step.want {
			t.Errorf("set %v: %v ahead, want %v", step.set, ahead, step.want)
		}
	}
	if err := r.control.SetOffset(t.Context(), -time.Second); !errors.Is(err, ErrInvalid) {
		t.Errorf("backwards: %v", err)
	}
	_ = r.bank.Close()
	r.open()
	if ahead := r.bank.Now().Sub(r.clock.Now()); ahead != 30*24*time.Hour {
		t.Errorf("reopened: %v ahead", ahead)
	}
	r.transfer(r.transferRequest())
	if due, ok := r.bank.NextDue(); !ok || !due.Equal(r.clock.Now().Add(settleAfter)) {
		t.Errorf("next due %v, by the clock that was given; want %v", due, r.clock.Now().Add(settleAfter))
	}
}
