package outgoing_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/outgoing"
	"github.com/porteira/porteira/internal/payment"
)

// After a restore a payout is looked up before it is sent, unless that was done since. A
// time from a clock that was ahead does not show that.
func TestLookUpFirst(t *testing.T) {
	t.Parallel()
	restored := time.Date(2026, 12, 28, 12, 0, 0, 0, time.UTC)
	now := restored.Add(time.Minute)
	for name, row := range map[string]struct {
		lookups int
		updated time.Time
		want    bool
	}{
		"never looked up":                  {0, now, true},
		"looked up before":                 {1, restored.Add(-time.Second), true},
		"looked up since":                  {1, restored.Add(time.Second), false},
		"written by a clock an hour ahead": {1, now.Add(time.Hour), true},
	} {
		p := payment.Payout{Lookups: row.lookups, UpdatedAt: row.updated}
		if got := outgoing.LookUpFirst(&p, restored, restored, now); got != row.want {
			t.Errorf("%s: looked up first: %v", name, got)
		}
	}
}
