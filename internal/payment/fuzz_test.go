package payment

import (
	"errors"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
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
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := ParseID(s)
		if fits := uuidForm.MatchString(s); fits != (err == nil) || fits && id.String() != strings.ToLower(s) || !fits && (!id.IsZero() || !errors.Is(err, ErrID)) {
			t.Fatalf("ParseID(%q) = %s, %v", s, id, err)
		}
		event, err := ParseEventID(s)
		if fits := eventIDForm.MatchString(s); fits != (err == nil) || fits && PublicEventID(event) != strings.ToLower(s) || !fits && !errors.Is(err, ErrID) {
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
		made := ExternalID(id, number, event, OperationPayout, s)
		if back, err := MerchantNumber(made); err != nil || back != number || len(made) != ExternalIDLength {
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

// cardRows are digits in groups; cardForm is a number of a brand, by the rules
// that the brands' own validators publish.
var (
	cardRows = regexp.MustCompile(`[0-9]+([ -]{1,3}[0-9]+)*`)
	groups   = regexp.MustCompile(`[0-9]+`)
	cardForm = regexp.MustCompile(`^(4[0-9]{15}|5[0-5][0-9]{14}|(222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720)[0-9]{12}` +
		`|3[47][0-9]{13}|(2131|1800)[0-9]{11}|35(2[89]|[3-8][0-9])[0-9]{12}|3(0[0-5]|6[0-9]|[89][0-9])[0-9]{13}` +
		`|(6011[0-9]{2}|64[4-9][0-9]{3}|65[0-9]{4}|627780|636297|636368|606282|637095|637568|637599|637609|637612)[0-9]{10}` +
		`|(63737423|63743358)[0-9]{8})$`)
)

// FuzzFreeText: no text with a card number in it passes, and none is refused
// for one that it does not hold. Paths that a client's names go into stay short
// and in one line.
func FuzzFreeText(f *testing.F) {
	for _, seed := range []string{
		"4111111111111111", "4111 1111 1111 1111", "card 5162-3062-1937-8829.", "pedido 34191.79001 01043.510047 91020.150008 2 91070000026000",
		"3782 822463 10005", "1 4111 1111 1111 1111 1", "6362970000457013", "6062825624254001", "4444444444444444", "52998224725", "É 4111    1111111111111", "\x00", "\xff",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got, want := holdsCardNumber(s), hasCard(s); got != want {
			t.Fatalf("holdsCardNumber(%q) = %v", s, got)
		}
		var errs Errors
		errs.freeText(At("metadata", s), s, 40)
		fits := s != "" && utf8.RuneCountInString(s) <= 40 && !strings.ContainsFunc(s, isControl) && !hasCard(s)
		if list := errs.List(); fits != (len(list) == 0) {
			t.Fatalf("%q is refused as %v", s, list)
		}
		if !utf8.ValidString(s) {
			return // no name of a JSON member comes here otherwise
		}
		path := At("metadata", s).String()
		if hasCard(s) != (path == "metadata[...]") || strings.ContainsFunc(path, isControl) || !utf8.ValidString(path) || len(path) > 40*10+100 && !isIdentifier(s) {
			t.Fatalf("%q is shown as %q", s, path)
		}
	})
}

func isControl(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }

func hasCard(s string) bool {
	for _, row := range cardRows.FindAllString(s, -1) {
		parts := groups.FindAllString(row, -1)
		for i := range parts {
			for end := i + 1; end <= len(parts); end++ {
				if number := strings.Join(parts[i:end], ""); cardForm.MatchString(number) && passesLuhn(number) {
					return true
				}
			}
		}
	}
	return false
}

func passesLuhn(number string) bool {
	digits := []byte(number)
	slices.Reverse(digits)
	sum := 0
	for i, d := range digits {
		doubled := []int{0, 2, 4, 6, 8, 1, 3, 5, 7, 9} // with the digits of two added
		if n := int(d - '0'); i%2 == 1 {
			sum += doubled[n]
		} else {
			sum += n
		}
	}
	return sum%10 == 0
}
