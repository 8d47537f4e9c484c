package main

import (
	"os"
	"testing"
)

// The record of an order is joined from the lines of all journals.
func TestJournals(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for i, entries := range [][]placement{
		{
			{Kind: payin, Reference: "r", Body: []byte(`{"amount":1}`)},
			{Kind: payout, Reference: "r", Body: []byte(`{"amount":2}`)},
			{Kind: payin, Reference: "r", Acked: []byte(`{"id":"first"}`)},
			{Kind: payin, Reference: "r", Action: actionCancel},
			{Kind: payin, Reference: "r", Canceled: true},
		},
		{{Kind: payin, Reference: "r", Acked: []byte(`{"id":"second"}`)}, {Kind: payout, Reference: "r", Refused: "insufficient_balance"}},
	} {
		j, err := openJournal(journalPath(folder, i))
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range entries {
			if err := j.write(a, true); err != nil {
				t.Fatal(err)
			}
		}
		if err := j.close(); err != nil {
			t.Fatal(err)
		}
	}
	list, err := readJournals(folder)
	if err != nil || len(list) != 2 {
		t.Fatalf("%d orders, %v", len(list), err)
	}
	in, out := list[0], list[1]
	if in.Kind != payin || orderOf(in.Acked).ID != "first" || in.amount() != 1 || in.Action != actionCancel || !in.Canceled || in.Refused != "" {
		t.Errorf("pay-in: %+v", in)
	}
	if out.Kind != payout || len(out.Acked) > 0 || out.amount() != 2 || out.Refused != "insufficient_balance" {
		t.Errorf("payout: %+v", out)
	}
}

// A line that a kill cut off is no delivery, and the next line is readable.
func TestTornDelivery(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := receiverJournal(folder, 0)
	if err := os.WriteFile(path, []byte("{\"eventId\":\"one\"}\n{\"eventId\":\"tor"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		file, err := os.OpenFile(path, os.O_APPEND|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if err := endTorn(file); err != nil {
			t.Fatal(err)
		}
		r := &receiver{journal: file}
		if err := r.write(delivery{EventID: "two"}); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	list, err := readDeliveries(folder) // another receiver has no journal yet
	if err != nil || len(list) != 3 || list[0].EventID != "one" || list[1].EventID != "two" {
		t.Errorf("%+v, %v", list, err)
	}
}
