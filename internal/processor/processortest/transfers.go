package processortest

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/processor"
)

// wantMade fails unless the test server made want transfers of the amount.
func (h Harness) wantMade(t *testing.T, read func(*testing.T, string) []Entry, id string, amount money.Cents, want int) {
	t.Helper()
	if read == nil {
		return
	}
	entries := read(t, id)
	if len(entries) != want {
		t.Fatalf("the test server made %d, want %d: %+v", len(entries), want, entries)
	}
	for _, e := range entries {
		if e.ExternalID != id || e.Amount != amount {
			t.Errorf("the test server made %+v, want %s of %d", e, id, amount)
		}
	}
}

func testTransfer(t *testing.T, h Harness) {
	if report := h.queryTransfer(t, h.NewID()); report.Lookup != processor.NotFound {
		t.Errorf("query of an id that was never sent: lookup %v (%v), want not found", report.Lookup, report.Cause)
	}
	r := h.transferRequest()
	for n := range 3 { // an id moves money once, even if it is sent often
		answer := h.transfer(t, r, willing)
		if n > 0 && again(h.Processor.Profile().Transfer) == processor.Known {
			if answer.Outcome != processor.Known {
				t.Fatalf("transfer, again: %+v, want known", answer)
			}
			continue
		}
		if answer.Outcome != processor.Done || answer.Report.Amount != r.Amount || answer.Report.Lookup != processor.Found {
			t.Fatalf("transfer: %+v", answer)
		}
		if !h.Processor.Profile().Transfer.Repeat.Safe() {
			break
		}
	}
	h.wantMade(t, h.Transfers, r.ExternalID, r.Amount, 1)
	if h.Elapse == nil {
		return
	}
	h.Elapse(t)
	report := h.queryTransfer(t, r.ExternalID)
	if report.Lookup != processor.Found || report.State != processor.TransferPaid ||
		report.EndToEndID == "" || report.Amount != r.Amount || report.Evidence == "" {
		t.Errorf("a few seconds later: %+v", report)
	}
	h.wantMade(t, h.Transfers, r.ExternalID, r.Amount, 1)
}

// testTransfersFeed: the list shows every transfer that was made since a time, and the
// time up to which it is complete.
func testTransfersFeed(t *testing.T, h Harness) {
	feeder := h.Processor.(processor.Feeder)
	began := h.Clock.Now()
	amounts := map[string]money.Cents{}
	for range 3 {
		r := h.transferRequest()
		if answer := h.transfer(t, r, willing); answer.Outcome != processor.Done {
			t.Fatalf("transfer: %+v", answer)
		}
		amounts[r.ExternalID] = r.Amount
	}
	cursors := map[string]bool{"": true}
	if from := feeder.Feeds()[processor.FeedTransfers].From; from != nil {
		cursors[from(began)] = true
		later := time.Hour
		if h.ByDay {
			later = 48 * time.Hour
		}
		page, err := feeder.Read(t.Context(), processor.FeedTransfers, from(began.Add(later)))
		if err != nil || len(page.Facts) > 0 {
			t.Errorf("transfers of the next hour: %+v, %v", page, err)
		}
	}
	for cursor := range cursors {
		listed, page := map[string]money.Cents{}, processor.Page{Next: cursor, More: true}
		for page.More {
			var err error
			if page, err = feeder.Read(t.Context(), processor.FeedTransfers, page.Next); err != nil {
				t.Fatalf("transfers from %q: %v", cursor, err)
			}
			for _, fact := range page.Facts {
				listed[fact.Transfer.ExternalID] = fact.Transfer.Amount
			}
		}
		if !maps.Equal(listed, amounts) || page.Through.Before(began) {
			t.Errorf("transfers from %q: %v through %v, want %v through %v", cursor, listed, page.Through, amounts, began)
		}
	}
}

// testTransferGuard: the guard is called once, and if it fails nothing is sent.
func testTransferGuard(t *testing.T, h Harness) {
	r := h.transferRequest()
	called := 0
	no := errors.New("the claim was lost")
	answer := h.transfer(t, r, func() error { called++; return no })
	if answer.Outcome != processor.NotSent || called != 1 || !errors.Is(answer.Cause, no) {
		t.Errorf("guard refused: outcome %v (%v), called %d times", answer.Outcome, answer.Cause, called)
	}
	h.wantMade(t, h.Transfers, r.ExternalID, r.Amount, 0)

	ctx, cancel := h.Clock.WithTimeout(t.Context(), 1)
	cancel()
	answer = h.Processor.(processor.Transferrer).Transfer(ctx, r, willing)
	if answer.Outcome == processor.Done || answer.Outcome == processor.Refused {
		t.Errorf("call that was cancelled before it began: %v", answer.Outcome)
	}
	h.wantMade(t, h.Transfers, r.ExternalID, r.Amount, 0)
}

// testTransferConflict: other content under a used id moves nothing, and does not
// prove that the first did not.
func testTransferConflict(t *testing.T, h Harness) {
	r := h.transferRequest()
	if answer := h.transfer(t, r, willing); answer.Outcome != processor.Done {
		t.Fatalf("transfer: %+v", answer)
	}
	for _, change := range []func(*processor.TransferRequest){
		func(r *processor.TransferRequest) { r.Amount++ },
		func(r *processor.TransferRequest) { r.Key = "joao@example.com" },
	} {
		other := r
		change(&other)
		answer := h.transfer(t, other, willing)
		if answer.Outcome == processor.Refused || answer.Outcome == processor.NotSent {
			t.Errorf("other content under a used id: outcome %v would release the money of the first", answer.Outcome)
		}
		if answer.Outcome == processor.Done && answer.Report.Amount != r.Amount {
			t.Errorf("other content under a used id was accepted: %+v", answer)
		}
	}
	h.wantMade(t, h.Transfers, r.ExternalID, r.Amount, 1)
}

func count(effect bool) int {
	if effect {
		return 1
	}
	return 0
}

func testTransferFaults(t *testing.T, h Harness) {
	for _, w := range wanted {
		if !h.can(w.fault) {
			continue
		}
		t.Run(string(w.fault), func(t *testing.T) {
			r := h.transferRequest()
			h.Misbehave(t, Transfer, w.fault)
			answer := h.transfer(t, r, willing)
			if answer.Outcome != w.outcome {
				t.Fatalf("outcome %v (%v), want %v", answer.Outcome, answer.Cause, w.outcome)
			}
			h.wantMade(t, h.Transfers, r.ExternalID, r.Amount, count(w.effect))
			if w.outcome == processor.Refused {
				if answer.Failure == nil || answer.Failure.Message == "" || answer.Evidence == "" {
					t.Errorf("refusal without reason and evidence: %+v", answer)
				}
				if again := h.transfer(t, r, willing); again.Outcome != processor.Refused {
					t.Errorf("a refused id was not refused later: %+v", again)
				}
				h.wantMade(t, h.Transfers, r.ExternalID, r.Amount, 0)
				return
			}
			report := h.queryTransfer(t, r.ExternalID)
			if (report.Lookup == processor.Found) != w.effect || (report.Lookup == processor.NotFound) == w.effect {
				t.Errorf("lookup %v, want effect %v", report.Lookup, w.effect)
			}
			if !w.effect || h.Processor.Profile().Transfer.Repeat.Safe() {
				want := processor.Done
				if w.effect {
					want = again(h.Processor.Profile().Transfer)
				}
				if answer := h.transfer(t, r, willing); answer.Outcome != want {
					t.Errorf("same id again: %+v, want %v", answer, want)
				}
				h.wantMade(t, h.Transfers, r.ExternalID, r.Amount, 1)
			}
		})
	}
}

// testQueryFaults: a look-up without an answer never reads as "not found".
func testQueryFaults(t *testing.T, h Harness) {
	for _, w := range wanted {
		if !h.can(w.fault) || w.fault == Late {
			continue
		}
		t.Run(string(w.fault), func(t *testing.T) {
			r := h.transferRequest()
			if answer := h.transfer(t, r, willing); answer.Outcome != processor.Done {
				t.Fatalf("transfer: %+v", answer)
			}
			for _, id := range []string{r.ExternalID, h.NewID()} {
				h.Misbehave(t, Query, w.fault)
				report := h.queryTransfer(t, id)
				if w.fault == Garbage && id != r.ExternalID {
					continue // there may be no body to halve
				}
				if report.Lookup != processor.LookupUnknown || report.Cause == nil {
					t.Errorf("lookup %v (%v), want unknown", report.Lookup, report.Cause)
				}
			}
			if report := h.queryTransfer(t, r.ExternalID); report.Lookup != processor.Found {
				t.Errorf("afterwards: lookup %v (%v)", report.Lookup, report.Cause)
			}
		})
	}
}
