package notice_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/notice"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

var (
	noon = time.Date(2026, 12, 28, 12, 0, 0, 0, time.UTC)
	// dated is a feed whose cursors are times.
	dated = processor.FeedSpec{From: func(t time.Time) string { return t.Format(time.RFC3339) }}
)

func cursorAt(t *testing.T, cursor string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, cursor)
	if err != nil {
		t.Fatalf("cursor %q: %v", cursor, err)
	}
	return at
}

// A list of transfers is read again from before the backup was made, by the earlier of our clock
// and of the time up to which the list was read: our clock may have run ahead. Found by a
// simulated seed.
func TestCursorAfterARestore(t *testing.T) {
	for name, c := range map[string]struct {
		through, madeAt time.Time
		earliest        time.Time // that the cursor must not be after
	}{
		"clock was right":                 {noon, noon, noon},
		"clock ran ahead at the restore":  {noon, noon.Add(26 * time.Hour), noon},
		"list was read until much before": {noon.Add(-2 * time.Hour), noon, noon.Add(-2 * time.Hour)},
		"list was read by a clock ahead":  {noon.Add(26 * time.Hour), noon, noon},
	} {
		t.Run(name, func(t *testing.T) {
			f := store.Feed{FeedKey: store.Transfers("bank"), Cursor: "as it was", Through: c.through}
			at := cursorAt(t, notice.FromBackup(&f, dated, c.madeAt))
			if !at.Before(c.earliest) || at.Before(c.earliest.Add(-24*time.Hour)) {
				t.Errorf("the list is read from %v, want shortly before %v", at, c.earliest)
			}
		})
	}
	never := store.Feed{FeedKey: store.Transfers("bank"), Cursor: "as it was"}
	if got := notice.FromBackup(&never, dated, noon); got != "" {
		t.Errorf("a list that was never read is read from %q", got)
	}
	payments := store.Feed{FeedKey: store.FeedKey{Account: "bank", Feed: string(processor.FeedPayments)}, Cursor: "as it was", Through: noon}
	if got := notice.FromBackup(&payments, dated, noon); got != "as it was" {
		t.Errorf("payments are read from %q", got)
	}
}

// A cursor that a clock ahead has set is set back once the clock is right; another one is kept.
func TestCursorOfAClockAhead(t *testing.T) {
	f := store.Feed{FeedKey: store.Transfers("bank"), Cursor: "as it was", Through: noon.Add(26 * time.Hour)}
	notice.SetBack(&f, dated, noon)
	if at := cursorAt(t, f.Cursor); !at.Before(noon) || at.Before(noon.Add(-24*time.Hour)) || !f.Through.Equal(noon) {
		t.Errorf("the list is read from %v, and was read until %v", at, f.Through)
	}
	for _, through := range []time.Time{noon, noon.Add(-time.Hour), noon.Add(30 * time.Second), {}} {
		f := store.Feed{FeedKey: store.Transfers("bank"), Cursor: "as it was", Through: through}
		if notice.SetBack(&f, dated, noon); f.Cursor != "as it was" || !f.Through.Equal(through) {
			t.Errorf("read until %v: the cursor is %q, read until %v", through, f.Cursor, f.Through)
		}
	}
}
