package taxid_test

import (
	"strings"
	"testing"

	"github.com/porteira/porteira/taxid"
)

// FuzzParse compares Parse, and the check digits of any text, with the registers'
// definition.
func FuzzParse(f *testing.F) {
	for _, v := range published {
		f.Add(v.id)
		f.Add(v.id[:len(v.id)-1] + "0")
	}
	for _, s := range []string{"", "529.982.247-25", "11111111111", "12abc34501de35", "1234567800Z1", "ZZZZZZZZ0001", "529982247"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := taxid.Parse(s)
		if (err == nil) != isTaxID(s) {
			t.Fatalf("Parse(%q): %v, but the definition says %v", s, err, isTaxID(s))
		}
		// The bare sentinels: none can contain the document.
		if err != nil && (id != (taxid.ID{}) || err != taxid.ErrForm && err != taxid.ErrRepeated && err != taxid.ErrCheckDigits) {
			t.Fatalf("an id came with %v, or is in it", err)
		}
		if err == nil && (id.String() != s || strings.NewReplacer(".", "", "-", "", "/", "").Replace(id.Formatted()) != s ||
			len(strings.Trim(id.Masked(), "*./-")) != len("982.247")) {
			t.Fatalf("Parse(%q) = %q, %q, %q", s, id, id.Formatted(), id.Masked())
		}
		// Hardly any text has the right digits, unless they are appended.
		digits, err := taxid.CheckDigits(s)
		if err == nil && !isTaxID(s+digits) && strings.Trim(s+digits, s[:1]) != "" {
			t.Fatalf("CheckDigits(%q) = %q, but the definition has others", s, digits)
		}
	})
}

// isTaxID is the definition, read the other way round: with its check digit,
// each weighted sum is a multiple of 11, or would be with a digit of ten, which
// is written as 0.
func isTaxID(s string) bool {
	base := strings.TrimLeft(s, "0123456789")
	switch {
	case len(s) == 11 && base == "":
	case len(s) == 14 && strings.Trim(s[:12], "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")+strings.Trim(s[12:], "0123456789") == "":
	default:
		return false
	}
	if strings.Trim(s, s[:1]) == "" {
		return false
	}
	for end := len(s) - 1; end <= len(s); end++ {
		sum, weight := 0, 1
		for i := end - 1; i >= 0; i-- {
			sum += int(s[i]-'0') * weight
			if weight++; len(s) == 14 && weight > 9 {
				weight = 2
			}
		}
		if r := sum % 11; r != 0 && (r != 1 || s[end-1] != '0') {
			return false
		}
	}
	return true
}
