package payment_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/porteira/porteira/internal/payment"
)

var anyID = rapid.Custom(func(t *rapid.T) (id payment.ID) {
	copy(id[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "bytes"))
	return id
})

func TestIDRoundTrips(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		id := anyID.Filter(func(id payment.ID) bool { return !id.IsZero() }).Draw(t, "id")
		text := id.String()
		for _, form := range []string{text, strings.ToUpper(text)} {
			if back, err := payment.ParseID(form); err != nil || back != id {
				t.Fatalf("%s: %s, %v", form, back, err)
			}
		}
		if back, err := payment.IDFromBytes(id[:]); err != nil || back != id {
			t.Fatalf("bytes: %s, %v", back, err)
		}
		var back payment.ID
		if marshalled, err := id.MarshalText(); err != nil || back.UnmarshalText(marshalled) != nil || back != id {
			t.Fatalf("text %q: %s, %v", marshalled, back, err)
		}
		public := payment.PublicEventID(id)
		if back, err := payment.ParseEventID(public); err != nil || back != id || len(public) != 36 {
			t.Fatalf("%s: %s, %v", public, back, err)
		}
	})
}

func TestIDRefusesOtherTexts(t *testing.T) {
	t.Parallel()
	const good = "0190a3f2-6b1c-7c00-8a55-0123456789ab"
	if _, err := payment.ParseID(good); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{
		"", good[1:], good + "0", strings.ReplaceAll(good, "-", ""), "{" + good + "}", "urn:uuid:" + good,
		"0190a3f26-b1c-7c00-8a55-0123456789ab", "0190a3f2-6b1c-7c00-8a55-0123456789ag",
		"0190a3f2-6b1c-7c00-8a55-0123456789a\u00e9", "0190a3f2_6b1c_7c00_8a55_0123456789ab", " " + good[1:], payment.ID{}.String(),
	} {
		if id, err := payment.ParseID(bad); !errors.Is(err, payment.ErrID) || !id.IsZero() {
			t.Errorf("%q: %s, %v", bad, id, err)
		}
	}
	for _, bad := range []string{"", "evt_", "evt_0190a3f2", good, "evx_0190a3f26b1c7c008a550123456789ab", "evt_0190a3f26b1c7c008a550123456789ag", "evt_" + good, payment.PublicEventID(payment.ID{})} {
		if id, err := payment.ParseEventID(bad); !errors.Is(err, payment.ErrID) || !id.IsZero() {
			t.Errorf("%q: %s, %v", bad, id, err)
		}
	}
	for _, length := range []int{0, 15, 17} {
		if _, err := payment.IDFromBytes(make([]byte, length)); !errors.Is(err, payment.ErrID) {
			t.Errorf("%d bytes: %v", length, err)
		}
	}
}

// MinIDAt bounds a millisecond: it is at most any version 7 id made in it, and
// above any made before.
func TestMinIDAtBoundsItsMillisecond(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ms := rapid.Int64Range(1, 1<<48-1).Draw(t, "ms")
		at := time.UnixMilli(ms).Add(time.Duration(rapid.Int64Range(0, 999_999).Draw(t, "ns")))
		bound := payment.MinIDAt(at)
		same, before := version7(t, ms), version7(t, ms-1)
		if bytes.Compare(bound[:], same[:]) > 0 {
			t.Fatalf("%s is above %s of its own millisecond", bound, same)
		}
		if bytes.Compare(bound[:], before[:]) <= 0 {
			t.Fatalf("%s is not above %s of the millisecond before", bound, before)
		}
	})
	if got := payment.MinIDAt(time.UnixMilli(1_700_000_000_000)).String(); got != "018bcfe5-6800-7000-8000-000000000000" {
		t.Error(got)
	}
}

// version7 is any id of RFC 9562, version 7, of a millisecond.
func version7(t *rapid.T, ms int64) payment.ID {
	id := anyID.Draw(t, "random")
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	id[6] = 0x70 | id[6]&0x0f
	id[8] = 0x80 | id[8]&0x3f
	return id
}
