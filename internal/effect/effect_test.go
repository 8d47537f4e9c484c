package effect

import "testing"

func TestFlags(t *testing.T) {
	t.Parallel()
	for i := range int64(256) {
		var e Effect
		if e.SetFlags(i); e.Flags() != i {
			t.Errorf("flags %d are stored as %d", i, e.Flags())
		}
	}
	if (&Effect{Earlier: true, Last: true}).Flags() != 3 || (&Effect{Again: true}).Flags() != FlagAgain {
		t.Error("a bit has changed: rows have it")
	}
}
