package brcode_test

import (
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"github.com/porteira/porteira/brcode"
)

// ascii is printable ASCII.
var ascii = &unicode.RangeTable{R16: []unicode.Range16{{Lo: ' ', Hi: '~', Stride: 1}}}

func TestFold(t *testing.T) {
	for in, want := range map[string]string{
		"":              "",
		"FULANO DE TAL": "FULANO DE TAL",
		"São Paulo":     "Sao Paulo",
		"áàâãäéêíóôõúüçñ ÁÀÂÃÄÉÊÍÓÔÕÚÜÇÑ": "aaaaaeeiooouucn AAAAAEEIOOOUUCN",
		"Sa\u0303o":                 "Sao", // a combining tilde
		"  two  blanks\t\n ":        "two blanks",
		"a\u00a0b":                  "a b",
		"“João’s” – 1ª nº 2…":       `"Joao's" - 1a no 2...`,
		"Strauß & Łódź Æther ŒUVRE": "Strauss & Lodz AEther OEUVRE",
		"日本":                        "",
		"R$ 10 €":                   "R$ 10",
		"bad\xffbyte":               "badbyte",
	} {
		if got := brcode.Fold(in); got != want {
			t.Errorf("Fold(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		in    string
		limit int
		want  string
	}{
		{"BRASILIA", 15, "BRASILIA"},
		{"RIO DE JANEIRO", 14, "RIO DE JANEIRO"},
		{"RIO DE JANEIRO", 7, "RIO DE"},
		{"SAO", 0, ""},
		{"SAO", -1, ""},
		{"São", 2, "S"},
		{"São", 3, "Sã"},
	} {
		if got := brcode.Cut(c.in, c.limit); got != c.want {
			t.Errorf("Cut(%q, %d) = %q, want %q", c.in, c.limit, got, c.want)
		}
	}
}

func TestFoldedTextIsEncoded(t *testing.T) {
	names := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.RuneFrom([]rune("aÁçÇ ãÕß–ªŁ\t\u0303"))))
	rapid.Check(t, func(t *rapid.T) {
		name := names.Draw(t, "name")
		folded := brcode.Fold(name)
		if again := brcode.Fold(folded); again != folded {
			t.Fatalf("Fold(%q) = %q the second time", folded, again)
		}
		if strings.TrimSpace(folded) != folded || strings.Contains(folded, "  ") {
			t.Fatalf("Fold(%q) = %q", name, folded)
		}
		cut := brcode.Cut(folded, brcode.MaxMerchantName)
		if !strings.HasPrefix(folded, cut) || len(cut) > brcode.MaxMerchantName {
			t.Fatalf("Cut(%q) = %q", folded, cut)
		}
		_, err := brcode.Static{Key: "12345678909", MerchantName: cut, City: "BRASILIA"}.Encode()
		if (err == nil) != (cut != "") {
			t.Fatalf("name %q from %q: %v", cut, name, err)
		}
	})
}
