package sandbox

import (
	"testing"

	"github.com/porteira/porteira/internal/processor"
)

// An invalid entry of a list is reported as unreadable, with its id if that is valid, and the
// entries beside it are read.
func TestInvalidEntryOfAList(t *testing.T) {
	t.Parallel()
	const body = `{"data": [
		{"externalId": "a", "amount": 100, "pixKey": "k", "endToEndId": "E1", "status": "paid", "createdAt": "2026-11-20T12:00:00Z"},
		{"externalId": "b", "amount": 0, "pixKey": "k", "endToEndId": "E2", "status": "paid", "createdAt": "2026-11-20T12:00:00Z"},
		{"externalId": "?", "amount": 100, "pixKey": "k", "endToEndId": "E3", "status": "paid", "createdAt": "2026-11-20T12:00:00Z"},
		{"externalId": "d", "amount": 100, "pixKey": "k", "endToEndId": "E4", "status": "paid", "createdAt": "2026-11-20T12:00:00Z"}
	], "nextCursor": "4"}`
	p, err := NewProcessor(Options{URL: "http://bank.invalid", Secret: testSecret, Transport: scripted{status: 200, body: body}})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for range 2 {
		page, err := p.Read(t.Context(), processor.FeedTransfers, "")
		if err != nil || len(page.Facts) != 4 || page.Next != "4" {
			t.Fatalf("page %+v, %v", page, err)
		}
		for i, want := range []string{"", "b", "", ""} {
			e := page.Facts[i].Unreadable
			if (e == nil) != (i == 0 || i == 3) || e != nil && (e.ExternalID != want || e.Cause != processor.InvalidValues) {
				t.Errorf("entry %d is %+v", i, page.Facts[i])
			}
		}
		ids = append(ids, page.Facts[1].Unreadable.ID, page.Facts[2].Unreadable.ID)
	}
	if ids[0] == ids[1] || ids[0] != ids[2] || ids[1] != ids[3] {
		t.Errorf("ids %v", ids)
	}
}
