package wire

import (
	"testing"
	"time"
)

func TestTimestampOf(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		at   time.Time
		want Timestamp
	}{
		{time.Time{}, ""},
		{time.Unix(0, 0), "1970-01-01T00:00:00.000Z"},
		{time.Date(2028, 2, 29, 23, 59, 59, 999_999_999, time.FixedZone("BRT", -3*3600)), "2028-03-01T02:59:59.999Z"},
	} {
		if got := TimestampOf(test.at); got != test.want {
			t.Errorf("%v: %q, want %q", test.at, got, test.want)
		}
	}
}
