package pixkey_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/porteira/porteira/pixkey"
	"github.com/porteira/porteira/taxid"
)

// dict are the regular expressions that Banco Central prints in the table of
// keys of the DICT API 1.8.0, and that of a CNPJ in API Pix 2.9.0 with two
// digits at its end (IN RFB 2229 of 2024). They match the normal form.
var dict = map[pixkey.Type]*regexp.Regexp{
	pixkey.CPF:   regexp.MustCompile(`^[0-9]{11}$`),
	pixkey.CNPJ:  regexp.MustCompile(`^[0-9A-Z]{12}[0-9]{2}$`),
	pixkey.Phone: regexp.MustCompile(`^\+[1-9][0-9]\d{1,14}$`),
	pixkey.Email: regexp.MustCompile("^[a-z0-9.!#$&'*+/=?^_`{|}~-]+@[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$"),
	pixkey.EVP:   regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`),
}

var types = []pixkey.Type{pixkey.CPF, pixkey.CNPJ, pixkey.Email, pixkey.Phone, pixkey.EVP}

var long = strings.Repeat("a", 77-len("@bcb.gov.br"))

var accepted = []struct {
	source string
	t      pixkey.Type
	in     string
	normal string
}{
	{"BR Code checked with npm pix-utils 2.8.2", pixkey.CPF, "12345678909", "12345678909"},
	{"Asaas API documentation", pixkey.CPF, "24971563792", "24971563792"},
	{"BR Code checked with npm pix-utils 2.8.2", pixkey.CNPJ, "11222333000181", "11222333000181"},
	{"Banco do Brasil's own CNPJ", pixkey.CNPJ, "00000000000191", "00000000000191"},
	{"Receita Federal, alphanumeric CNPJ, official example", pixkey.CNPJ, "12ABC34501DE35", "12ABC34501DE35"},
	{"DICT API 1.8.0, table of keys", pixkey.Phone, "+5510998765432", "+5510998765432"},
	{"DICT API 1.8.0, shortest phone", pixkey.Phone, "+123", "+123"},
	{"DICT API 1.8.0, longest phone", pixkey.Phone, "+1234567890123456", "+1234567890123456"},
	{"contract, + and country code", pixkey.Phone, "+5511987654321", "+5511987654321"},
	{"contract, eleven bare digits", pixkey.Phone, "11987654321", "+5511987654321"},
	{"contract, ten bare digits", pixkey.Phone, "1132654321", "+551132654321"},
	{"Manual BR Code example", pixkey.Email, "pix@bcb.gov.br", "pix@bcb.gov.br"},
	{"contract, e-mail in any case", pixkey.Email, "Pix@BCB.Gov.BR", "pix@bcb.gov.br"},
	{"DICT API 1.8.0, every character before @", pixkey.Email, "a0.!#$&'*+/=?^_`{|}~-@x", "a0.!#$&'*+/=?^_`{|}~-@x"},
	{"DICT API 1.8.0, 77 characters", pixkey.Email, long + "@bcb.gov.br", long + "@bcb.gov.br"},
	{"DICT API 1.8.0, example", pixkey.EVP, "123e4567-e89b-12d3-a456-426655440000", "123e4567-e89b-12d3-a456-426655440000"},
	{"Manual BR Code example, not version 4", pixkey.EVP, "123e4567-e12b-12d1-a456-426655440000", "123e4567-e12b-12d1-a456-426655440000"},
	{"contract, UUID in any case", pixkey.EVP, "123E4567-E12B-72D1-A456-42665544ABCD", "123e4567-e12b-72d1-a456-42665544abcd"},
}

func TestAccepted(t *testing.T) {
	for _, c := range accepted {
		key, err := pixkey.Parse(c.t, c.in)
		if err != nil || key != (pixkey.Key{Type: c.t, Value: c.normal}) {
			t.Errorf("%s: Parse(%s, %s) = %v, %v", c.source, c.t, c.in, key, err)
		}
		if !pixkey.Valid(c.t, c.in) {
			t.Errorf("%s: Valid(%s, %s) = false", c.source, c.t, c.in)
		}
		if !dict[c.t].MatchString(c.normal) {
			t.Errorf("%s: %s is no key by the DICT's expression", c.source, c.normal)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct {
		name string
		t    pixkey.Type
		in   string
		want error
	}{
		{"unknown type", "cpf", "52998224725", pixkey.ErrType},
		{"no type", "", "52998224725", pixkey.ErrType},
		{"empty", pixkey.CPF, "", pixkey.ErrCPF},
		{"CPF with punctuation", pixkey.CPF, "529.982.247-25", pixkey.ErrCPF},
		{"CNPJ as CPF", pixkey.CPF, "11222333000181", pixkey.ErrCPF},
		{"CPF as CNPJ", pixkey.CNPJ, "52998224725", pixkey.ErrCNPJ},
		{"CNPJ in small letters", pixkey.CNPJ, "12abc34501de35", pixkey.ErrCNPJ},
		{"CNPJ with punctuation", pixkey.CNPJ, "11.222.333/0001-81", pixkey.ErrCNPJ},
		{"CPF check digits", pixkey.CPF, "52998224724", taxid.ErrCheckDigits},
		{"CPF of equal digits", pixkey.CPF, "11111111111", taxid.ErrRepeated},
		{"CNPJ check digits", pixkey.CNPJ, "12ABC34501DE34", taxid.ErrCheckDigits},
		{"phone, empty", pixkey.Phone, "", pixkey.ErrPhone},
		{"phone, + alone", pixkey.Phone, "+", pixkey.ErrPhone},
		{"phone, country code 0", pixkey.Phone, "+0511987654321", pixkey.ErrPhone},
		{"phone, too short", pixkey.Phone, "+55", pixkey.ErrPhone},
		{"phone, too long", pixkey.Phone, "+12345678901234567", pixkey.ErrPhone},
		{"phone with blanks", pixkey.Phone, "+55 11 98765-4321", pixkey.ErrPhone},
		{"phone, nine bare digits", pixkey.Phone, "987654321", pixkey.ErrPhone},
		{"phone, country code without +", pixkey.Phone, "5511987654321", pixkey.ErrPhone},
		{"e-mail, empty", pixkey.Email, "", pixkey.ErrEmail},
		{"e-mail without @", pixkey.Email, "pix.bcb.gov.br", pixkey.ErrEmail},
		{"e-mail, two @", pixkey.Email, "pix@bcb@gov.br", pixkey.ErrEmail},
		{"e-mail, nothing before @", pixkey.Email, "@bcb.gov.br", pixkey.ErrEmail},
		{"e-mail, nothing after @", pixkey.Email, "pix@", pixkey.ErrEmail},
		{"e-mail with %, out since DICT API 1.7.2", pixkey.Email, "pix%a@bcb.gov.br", pixkey.ErrEmail},
		{"e-mail, empty label", pixkey.Email, "pix@bcb..br", pixkey.ErrEmail},
		{"e-mail, dot at the end", pixkey.Email, "pix@bcb.", pixkey.ErrEmail},
		{"e-mail, hyphen at a label's end", pixkey.Email, "pix@bcb-.br", pixkey.ErrEmail},
		{"e-mail, hyphen at a label's start", pixkey.Email, "pix@-bcb.br", pixkey.ErrEmail},
		{"e-mail, label of 64", pixkey.Email, "p@" + strings.Repeat("a", 64), pixkey.ErrEmail},
		{"e-mail beyond ASCII", pixkey.Email, "joão@bcb.gov.br", pixkey.ErrEmail},
		{"e-mail with the Kelvin sign, whose small form is k", pixkey.Email, "\u212a@bcb.gov.br", pixkey.ErrEmail},
		{"e-mail with a line end", pixkey.Email, "pix@bcb.gov.br\n", pixkey.ErrEmail},
		{"e-mail of 78", pixkey.Email, "a" + long + "@bcb.gov.br", pixkey.ErrEmailLength},
		{"UUID without hyphens", pixkey.EVP, "123e4567e12b12d1a456426655440000", pixkey.ErrEVP},
		{"UUID with a hyphen elsewhere", pixkey.EVP, "123e456-7e12b-12d1-a456-426655440000", pixkey.ErrEVP},
		{"UUID in braces", pixkey.EVP, "{123e4567-e12b-12d1-a456-426655440000}", pixkey.ErrEVP},
		{"UUID, letter g", pixkey.EVP, "123e4567-e12b-12d1-a456-42665544000g", pixkey.ErrEVP},
	} {
		if _, err := pixkey.Parse(c.t, c.in); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		} else if c.in != "" && strings.Contains(err.Error(), c.in) && c.t != pixkey.Phone {
			t.Errorf("%s: the error contains the key: %v", c.name, err)
		}
		if pixkey.Valid(c.t, c.in) {
			t.Errorf("%s: valid", c.name)
		}
	}
}

func TestCheckFormLeavesCheckDigits(t *testing.T) {
	for s, typ := range map[string]pixkey.Type{
		"52998224700": pixkey.CPF, "11111111111": pixkey.CPF, "11222333000100": pixkey.CNPJ, "12ABC34501DE00": pixkey.CNPJ,
	} {
		if err := pixkey.CheckForm(typ, s); err != nil {
			t.Errorf("CheckForm(%s, %s): %v", typ, s, err)
		}
	}
}

func TestParseType(t *testing.T) {
	for _, typ := range types {
		if got, err := pixkey.ParseType(string(typ)); got != typ || err != nil {
			t.Errorf("ParseType(%s) = %s, %v", typ, got, err)
		}
	}
	for _, name := range []string{"", "cpf", "RANDOM", "CPF "} {
		if got, err := pixkey.ParseType(name); got != "" || !errors.Is(err, pixkey.ErrType) {
			t.Errorf("ParseType(%q) = %s, %v", name, got, err)
		}
	}
}

func TestMask(t *testing.T) {
	for _, c := range []struct {
		t        pixkey.Type
		in, want string
	}{
		{pixkey.CPF, "52998224725", "***.982.247-**"},
		{pixkey.CNPJ, "12ABC34501DE35", "**.ABC.345/****-**"},
		{pixkey.Email, "Fulano@Example.com", "f***@example.com"},
		{pixkey.Email, "F@example.com", "***@example.com"},
		{pixkey.Phone, "+5511987654321", "+55*******4321"},
		{pixkey.Phone, "11987654321", "+55*******4321"},
		{pixkey.Phone, "+123", "***3"},
		{pixkey.EVP, "123e4567-e12b-12d1-a456-426655440000", "123e****-****-****-****-********0000"},
		{pixkey.CPF, "my secret", "***"},
		{"", "52998224725", "***"},
	} {
		if got := pixkey.Mask(c.t, c.in); got != c.want {
			t.Errorf("Mask(%s, %s) = %s, want %s", c.t, c.in, got, c.want)
		}
	}
}

func TestCheckFormDoesNotAllocate(t *testing.T) {
	for _, c := range accepted {
		if n := testing.AllocsPerRun(100, func() { _ = pixkey.CheckForm(c.t, c.in) }); n != 0 {
			t.Errorf("CheckForm(%s, %s) allocates %v times", c.t, c.in, n)
		}
	}
}

// agrees fails unless the package and the DICT's expressions agree on s, and the
// normal form is that of the contract.
func agrees(t interface{ Fatalf(string, ...any) }, typ pixkey.Type, s string) {
	want := s
	switch typ {
	case pixkey.Email, pixkey.EVP:
		want = strings.Map(func(r rune) rune {
			if r >= 'A' && r <= 'Z' {
				return r + 'a' - 'A'
			}
			return r
		}, s)
	case pixkey.Phone:
		if regexp.MustCompile(`^[0-9]{10,11}$`).MatchString(s) {
			want = "+55" + s
		}
	}
	fits := dict[typ] != nil && dict[typ].MatchString(want) && (typ != pixkey.Email || len(s) <= 77)
	normal, err := pixkey.Normalize(typ, s)
	switch {
	case (err == nil) != fits:
		t.Fatalf("Normalize(%s, %q): %v, but the DICT's expression says %v", typ, s, err, fits)
	case err != nil && normal != "":
		t.Fatalf("Normalize(%s, %q): a key came with %v", typ, s, err)
	case err == nil && normal != want:
		t.Fatalf("Normalize(%s, %q) = %q, want %q", typ, s, normal, want)
	}
	if err == nil {
		if again, err := pixkey.Normalize(typ, normal); again != normal || err != nil {
			t.Fatalf("Normalize(%s, %q) = %q, %v the second time", typ, normal, again, err)
		}
	}
	if mask := pixkey.Mask(typ, s); len(s) > 3 && strings.Contains(strings.ReplaceAll(mask, "*", ""), s) {
		t.Fatalf("Mask(%s, %q) = %q", typ, s, mask)
	}
}

// Close to keys of each type, and one character away from them.
func TestAgreesWithDICTExpressions(t *testing.T) {
	like := rapid.OneOf(
		rapid.StringMatching(`[0-9]{9,12}`),
		rapid.StringMatching(`[0-9A-Za-z]{11,13}[0-9]{2}`),
		rapid.StringMatching(`\+?[0-9]{1,18}`),
		rapid.StringMatching("[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]{0,8}@[a-zA-Z0-9.-]{0,12}"),
		rapid.StringMatching(`[a-z]{1,70}@[a-z]{1,66}(\.br){0,3}`),
		rapid.StringMatching(`[0-9a-fA-F]{8}-[0-9a-f]{4}-[0-9A-F]{4}-[0-9a-f]{4}-[0-9a-g]{12}`),
		rapid.String(),
	)
	rapid.Check(t, func(t *rapid.T) {
		s := like.Draw(t, "key")
		if len(s) > 0 && rapid.Bool().Draw(t, "spoil") {
			i := rapid.IntRange(0, len(s)-1).Draw(t, "place")
			s = s[:i] + string(rapid.Byte().Draw(t, "byte")) + s[i+1:]
		}
		agrees(t, rapid.SampledFrom(types).Draw(t, "type"), s)
	})
}

func FuzzNormalize(f *testing.F) {
	for _, c := range accepted {
		f.Add(string(c.t), c.in)
	}
	f.Add("", "")
	f.Add("EMAIL", "\u212a@bcb.gov.br")
	f.Add("CPF", "529.982.247-25")
	f.Fuzz(func(t *testing.T, typ, s string) {
		agrees(t, pixkey.Type(typ), s)
		if err := pixkey.Check(pixkey.Type(typ), s); err == nil && pixkey.CheckForm(pixkey.Type(typ), s) != nil {
			t.Fatalf("Check passes %q, CheckForm does not", s)
		}
	})
}

func BenchmarkNormalize(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := pixkey.Normalize(pixkey.Email, "pix@bcb.gov.br"); err != nil {
			b.Fatal(err)
		}
	}
}
