package payment

import (
	"errors"
	"math/big"
	"regexp"
	"strings"
	"testing"
)

var (
	uuidForm    = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
	eventIDForm = regexp.MustCompile(`^evt_[0-9a-fA-F]{32}$`)
	ourIDForm   = regexp.MustCompile(`^[0-9A-Za-z]{25,32}$`)
)

// FuzzID reads a text as each kind of id, against its written form.
func FuzzID(f *testing.F) {
	for _, seed := range []string{
		"0190a3f2-6b1c-7c00-8a55-0123456789ab", "0190A3F2-6B1C-7C00-8A55-0123456789AB", "{0190a3f2-6b1c-7c00-8a55-0123456789ab}",
		"0190a3f26b1c7c008a550123456789ab", "evt_0190a3f26b1c7c008a550123456789ab", "evt_0190A3F26B1C7C008A550123456789AB", "evt_",
		"00001IPd0ZubfafOGFbEbpuxefV5acEx", "zzzzzt1MEASFlccgQgUOvAutzIvJx1eV", "zzzzzt1MEASFlccgQgUOvAutz", "00000-----------------------------", "", "é",
		"00000000-0000-0000-0000-000000000000", "000e0000-0000-0000-0000-000000000000", "evt_00000000000000000000000000000000",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := ParseID(s)
		isZero := strings.Trim(strings.TrimPrefix(s, "evt_"), "0-") == ""
		if fits := uuidForm.MatchString(s) && !isZero; fits != (err == nil) || fits && id.String() != strings.ToLower(s) || !fits && (!id.IsZero() || !errors.Is(err, ErrID)) {
			t.Fatalf("ParseID(%q) = %s, %v", s, id, err)
		}
		event, err := ParseEventID(s)
		if fits := eventIDForm.MatchString(s) && !isZero; fits != (err == nil) || fits && PublicEventID(event) != strings.ToLower(s) || !fits && !errors.Is(err, ErrID) {
			t.Fatalf("ParseEventID(%q) = %s, %v", s, event, err)
		}
		number, err := MerchantNumber(s)
		if fits := ourIDForm.MatchString(s); fits != (err == nil) || !fits && !errors.Is(err, ErrExternalID) {
			t.Fatalf("MerchantNumber(%q) = %d, %v", s, number, err)
		} else if !fits {
			return
		}
		if want := base62Of(s[:5]); want.Cmp(big.NewInt(number)) != 0 || number > MerchantNumberMax {
			t.Fatalf("MerchantNumber(%q) = %d, want %s", s, number, want)
		}
		ids := ExternalIDs{Installation: id}
		made := ids.New(number, event, OperationPayout, s)
		if back, err := ids.MerchantNumber(made); err != nil || back != number || len(made) != ExternalIDLength {
			t.Fatalf("ExternalID of merchant %d is %q, of merchant %d, %v", number, made, back, err)
		}
	})
}

// base62Of is the number that digits, capitals and small letters write. The
// standard library has the small letters first.
func base62Of(s string) *big.Int {
	swapped := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a':
			return r - 'a' + 'A'
		case r >= 'A':
			return r - 'A' + 'a'
		}
		return r
	}, s)
	n, _ := new(big.Int).SetString(swapped, 62)
	return n
}
