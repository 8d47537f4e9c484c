package sandboxbank

import (
	"errors"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// dispute forces an action, and returns the disputes of the charge.
func (h *harness) dispute(r processor.ChargeRequest, action string, how bankapi.ForceCharge) []processor.Dispute {
	h.t.Helper()
	if err := h.control.Charge(h.t.Context(), r, action, how); err != nil {
		h.t.Fatalf("%s: %v", action, err)
	}
	return h.driver.QueryCharge(h.t.Context(), r.ExternalID).Disputes
}

// A payment may have several disputes, of parts of it; the balance lacks what was lost, also
// after a restart.
func TestSeveralDisputes(t *testing.T) {
	t.Parallel()
	h := newHarness(t, onDisk(t))
	r := h.chargeRequest(payment.PIX)
	h.pay(r, bankapi.ForceCharge{Amount: 100_00})
	first := h.dispute(r, "dispute", bankapi.ForceCharge{Amount: 30_00, Kind: "CHARGEBACK", Reason: "fraud", RespondInSeconds: 60})[0]
	if first.Amount != 30_00 || first.Kind != payment.KindChargeback || first.Reason != "fraud" || first.PaymentID == "" || !first.RespondBy.Equal(h.bank.Now().Add(time.Minute)) {
		t.Errorf("the first: %+v", first)
	}
	list := h.dispute(r, "dispute", bankapi.ForceCharge{})
	if len(list) != 2 || list[1].Amount != 70_00 || list[1].Kind != payment.KindMED || list[1].ID == first.ID {
		t.Fatalf("disputes %+v", list)
	}
	if err := h.control.Charge(t.Context(), r, "dispute", bankapi.ForceCharge{}); !errors.Is(err, bankapi.CodeStateForbids) {
		t.Errorf("a third one of nothing: %v", err)
	}
	h.wantBalance(100_00)
	list = h.dispute(r, "lose", bankapi.ForceCharge{Amount: 20_00})
	if list[1].State != processor.DisputeLost || list[1].Lost != 20_00 {
		t.Errorf("lost in part: %+v", list[1])
	}
	h.wantBalance(80_00)
	h.dispute(r, "lose", bankapi.ForceCharge{})
	h.wantBalance(50_00)
	h.reopen()
	h.wantBalance(50_00)
	if list = h.dispute(r, "win", bankapi.ForceCharge{}); list[1].State != processor.DisputeReversed {
		t.Errorf("reversed: %+v", list)
	}
	h.wantBalance(70_00)
}

// A block keeps money back; the dispute after it goes on under its id.
func TestBlockedPayment(t *testing.T) {
	t.Parallel()
	h := newHarness(t, nil)
	r := h.chargeRequest(payment.PIX)
	h.pay(r, bankapi.ForceCharge{Amount: 100_00})
	blocked := h.dispute(r, "dispute", bankapi.ForceCharge{Blocked: true})[0]
	if !blocked.Blocked || !blocked.RespondBy.IsZero() || blocked.Amount != 100_00 {
		t.Errorf("blocked: %+v", blocked)
	}
	if answer := h.defend(blocked.ID, "text"); answer.Outcome != processor.Refused {
		t.Errorf("defended: %+v", answer)
	}
	list := h.dispute(r, "dispute", bankapi.ForceCharge{})
	if len(list) != 1 || list[0].ID != blocked.ID || list[0].Blocked || list[0].RespondBy.IsZero() {
		t.Errorf("disputed: %+v", list)
	}
}

func (h *harness) defend(id, text string) processor.TransferAnswer {
	return h.driver.Defend(h.t.Context(), processor.DefenseRequest{DisputeID: id, Accept: text == "", Text: text}, willing)
}

// The bank keeps one defense of a dispute until its deadline, and giving up after it.
func TestDefense(t *testing.T) {
	t.Parallel()
	h := newHarness(t, onDisk(t))
	r := h.chargeRequest(payment.PIX)
	h.pay(r, bankapi.ForceCharge{Amount: 100_00})
	d := h.dispute(r, "dispute", bankapi.ForceCharge{})[0]
	has := func(accept bool, want processor.Lookup) {
		t.Helper()
		if got := h.driver.QueryDefense(t.Context(), processor.DefenseRequest{DisputeID: d.ID, Accept: accept}); got.Lookup != want {
			t.Errorf("looked up: %+v, want %v", got, want)
		}
	}
	has(false, processor.NotFound)
	unwilling := errors.New("no")
	if answer := h.driver.Defend(t.Context(), processor.DefenseRequest{DisputeID: d.ID, Text: "x"}, func() error { return unwilling }); answer.Outcome != processor.NotSent {
		t.Errorf("against the guard: %+v", answer)
	}
	has(false, processor.NotFound)
	big := processor.DefenseRequest{DisputeID: d.ID, Text: "text", Files: []processor.DefenseFile{{Name: "a", Type: "image/png", Content: make([]byte, 1<<20)}}}
	for range 2 {
		if answer := h.driver.Defend(t.Context(), big, willing); answer.Outcome != processor.Done {
			t.Fatalf("defended: %+v", answer)
		}
	}
	has(false, processor.Found)
	has(true, processor.NotFound)
	if answer := h.defend(d.ID, "another"); answer.Outcome != processor.Unknown {
		t.Errorf("another defense: %+v", answer)
	}
	h.reopen()
	has(false, processor.Found)
	h.wantBalance(100_00)
	for range 2 {
		if answer := h.defend(d.ID, ""); answer.Outcome != processor.Done {
			t.Errorf("given up: %+v", answer)
		}
	}
	has(true, processor.Found)
	h.wantBalance(0)
	if answer := h.defend("unknown", "text"); answer.Outcome != processor.Refused {
		t.Errorf("an unknown dispute: %+v", answer)
	}
}

func TestDefenseTooLate(t *testing.T) {
	t.Parallel()
	h := newHarness(t, nil)
	for _, row := range []struct {
		action string
		wait   time.Duration
	}{{"win", 0}, {"lose", 0}, {"", 11 * 24 * time.Hour}} {
		r := h.chargeRequest(payment.PIX)
		h.pay(r, bankapi.ForceCharge{Amount: money.Cents(100)})
		d := h.dispute(r, "dispute", bankapi.ForceCharge{})[0]
		if row.action != "" {
			h.dispute(r, row.action, bankapi.ForceCharge{})
		}
		h.clock.Advance(row.wait)
		if answer := h.defend(d.ID, "text"); answer.Outcome != processor.Refused || answer.Failure.Code != "dispute_closed" {
			t.Errorf("%s, after %s: %+v", row.action, row.wait, answer)
		}
	}
}
