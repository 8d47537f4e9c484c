package processortest

import (
	"context"
	"errors"
	"testing"

	"github.com/porteira/porteira/internal/processor"
)

// disputed makes a charge, pays it, and returns the dispute of it.
func (h Harness) disputed(t *testing.T) (externalID string, d processor.Dispute) {
	t.Helper()
	r := h.chargeRequest(h.Processor.Profile().Methods[0])
	if answer := h.charge(t, r); answer.Outcome != processor.Done {
		t.Fatalf("charge: %+v", answer)
	}
	h.Pay(t, r, r.Amount)
	h.Dispute(t, r)
	report := h.queryCharge(t, r.ExternalID)
	if report.Lookup == processor.LookupUnknown { // a token was being renewed while Dispute moved the clock
		h.Elapse(t)
		report = h.queryCharge(t, r.ExternalID)
	}
	list := report.Disputes
	if len(list) != 1 || list[0].State != processor.DisputeOpen || list[0].ID == "" {
		t.Fatalf("disputes: %+v", report)
	}
	return r.ExternalID, list[0]
}

func (h Harness) defense(d *processor.Dispute) processor.DefenseRequest {
	r := processor.DefenseRequest{DisputeID: d.ID, Text: "O pedido foi entregue a Maria da Silva."}
	if !h.NoFiles {
		r.Files = []processor.DefenseFile{{Name: "entrega.png", Type: "image/png", Content: []byte("\x89PNG\r\n\x1a\n")}}
	}
	return r
}

// testFiles sends a defense with files to a far side that takes none: nothing leaves.
func testFiles(t *testing.T, h Harness) {
	_, d := h.disputed(t)
	r := h.defense(&d)
	r.Files = []processor.DefenseFile{{Name: "entrega.png", Type: "image/png", Content: []byte("\x89PNG\r\n\x1a\n")}}
	if answer := h.defend(t, r, willing); answer.Outcome != processor.Refused || answer.Failure == nil || answer.Evidence == "" {
		t.Errorf("with files: %+v", answer)
	}
	h.wantDefense(t, r, false)
}

func (h Harness) defend(t *testing.T, r processor.DefenseRequest, guard func() error) processor.TransferAnswer {
	t.Helper()
	return bounded(t, h, h.Processor.Profile().Defense.Timeout, func(ctx context.Context) processor.TransferAnswer {
		return h.Processor.(processor.Defender).Defend(ctx, r, guard)
	})
}

func (h Harness) queryDefense(t *testing.T, r processor.DefenseRequest) processor.TransferReport {
	t.Helper()
	return bounded(t, h, h.Processor.Profile().Defense.Timeout, func(ctx context.Context) processor.TransferReport {
		return h.Processor.(processor.Defender).QueryDefense(ctx, r)
	})
}

// wantDefense compares whether the test server has the answer to a dispute.
func (h Harness) wantDefense(t *testing.T, r processor.DefenseRequest, has bool) {
	t.Helper()
	want := processor.NotFound
	if has {
		want = processor.Found
	}
	report := h.queryDefense(t, r)
	if report.Lookup != want || has && report.Evidence == "" {
		t.Errorf("query of the answer: %+v, want %v", report, want)
	}
}

// testDefense sends a defense once, and gives another dispute up. Nothing else takes an answer.
func testDefense(t *testing.T, h Harness) {
	externalID, d := h.disputed(t)
	r := h.defense(&d)
	h.wantDefense(t, r, false)
	no := errors.New("the claim was lost")
	if answer := h.defend(t, r, func() error { return no }); answer.Outcome != processor.NotSent {
		t.Errorf("guard refused: %+v", answer)
	}
	h.wantDefense(t, r, false)
	for repeated, want := range []processor.Outcome{processor.Done, again(h.Processor.Profile().Defense)} {
		if repeated == 1 && !h.Processor.Profile().Defense.Repeat.Safe() {
			break
		}
		if answer := h.defend(t, r, willing); answer.Outcome != want {
			t.Fatalf("defense, %d before: %+v, want %v", repeated, answer, want)
		}
		h.wantDefense(t, r, true)
	}
	if list := h.queryCharge(t, externalID).Disputes; len(list) != 1 || list[0].State != processor.DisputeOpen {
		t.Errorf("a defense decides nothing: %+v", list)
	}

	externalID, d = h.disputed(t)
	up := processor.DefenseRequest{DisputeID: d.ID, Accept: true}
	h.wantDefense(t, up, false)
	if answer := h.defend(t, up, willing); answer.Outcome != processor.Done {
		t.Fatalf("given up: %+v", answer)
	}
	h.wantDefense(t, up, true)
	if list := h.queryCharge(t, externalID).Disputes; len(list) != 1 || list[0].State != processor.DisputeLost {
		t.Errorf("given up: %+v", list)
	}
	if answer := h.defend(t, h.defense(&d), willing); answer.Outcome != processor.Refused && answer.Outcome != processor.Unknown {
		t.Errorf("a defense of a dispute that was given up: %+v", answer)
	}

	nothing := r
	nothing.DisputeID = h.NewID()
	if answer := h.defend(t, nothing, willing); answer.Outcome != processor.Refused || answer.Failure == nil || answer.Evidence == "" {
		t.Errorf("of no dispute: %+v", answer)
	}
}

func testDefenseFaults(t *testing.T, h Harness) {
	for _, w := range wanted {
		if !h.can(w.fault) {
			continue
		}
		t.Run(string(w.fault), func(t *testing.T) {
			_, d := h.disputed(t)
			r := h.defense(&d)
			h.Misbehave(t, Defense, w.fault)
			answer := h.defend(t, r, willing)
			if answer.Outcome != w.outcome {
				t.Fatalf("outcome %v (%v), want %v", answer.Outcome, answer.Cause, w.outcome)
			}
			h.wantDefense(t, r, w.effect)
			if w.outcome == processor.Refused {
				return
			}
			e := h.Processor.Profile().Defense
			if w.effect && !e.Repeat.Safe() {
				return
			}
			want := processor.Done
			if w.effect {
				want = again(e)
			}
			if answer := h.defend(t, r, willing); answer.Outcome != want {
				t.Errorf("again: %+v, want %v", answer, want)
			}
			h.wantDefense(t, r, true)
		})
	}
}
