package taxid_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/porteira/porteira/taxid"
)

// published are ids printed by others, with right check digits.
var published = []struct {
	source string
	kind   taxid.Kind
	id     string
}{
	{"Receita Federal, alphanumeric CNPJ, official example", taxid.CNPJ, "12ABC34501DE35"},
	{"SERPRO rule, checked with npm cpf-cnpj-validator 2.1.2", taxid.CNPJ, "1234567800Z141"},
	{"SERPRO rule, checked with npm cpf-cnpj-validator 2.1.2", taxid.CNPJ, "A1B2C3D4000193"},
	{"SERPRO rule, checked with npm cpf-cnpj-validator 2.1.2", taxid.CNPJ, "ZZZZZZZZ000191"},
	{"SERPRO rule, checked with npm cpf-cnpj-validator 2.1.2", taxid.CNPJ, "0000000000A122"},
	{"common example, checked with npm cpf-cnpj-validator 2.1.2", taxid.CNPJ, "11222333000181"},
	{"Banco do Brasil's own CNPJ", taxid.CNPJ, "00000000000191"},
	{"common example, checked with npm cpf-cnpj-validator 2.1.2", taxid.CNPJ, "11444777000161"},
	{"common example, checked with npm cpf-cnpj-validator 2.1.2", taxid.CNPJ, "12345678000195"},
	{"common example, checked with npm cpf-cnpj-validator 2.1.2", taxid.CPF, "12345678909"},
	{"common example, checked with npm cpf-cnpj-validator 2.1.2", taxid.CPF, "52998224725"},
	{"Asaas API documentation", taxid.CPF, "24971563792"},
}

func TestParsePublished(t *testing.T) {
	for _, v := range published {
		id, err := taxid.Parse(v.id)
		if err != nil {
			t.Errorf("%s (%s): %v", v.id, v.source, err)
			continue
		}
		if id.Kind() != v.kind || id.String() != v.id {
			t.Errorf("%s (%s): got %v %q", v.id, v.source, id.Kind(), id)
		}
		if got := taxid.ValidCPF(v.id); got != (v.kind == taxid.CPF) {
			t.Errorf("ValidCPF(%s) = %v", v.id, got)
		}
		if got := taxid.ValidCNPJ(v.id); got != (v.kind == taxid.CNPJ) {
			t.Errorf("ValidCNPJ(%s) = %v", v.id, got)
		}
		base := len(v.id) - 2
		if digits, err := taxid.CheckDigits(v.id[:base]); err != nil || digits != v.id[base:] {
			t.Errorf("CheckDigits(%s) = %q, %v", v.id[:base], digits, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     error
	}{
		{"empty", "", taxid.ErrForm},
		{"CPF with punctuation", "529.982.247-25", taxid.ErrForm},
		{"CNPJ with punctuation", "11.222.333/0001-81", taxid.ErrForm},
		{"blank before", " 2998224725", taxid.ErrForm},
		{"ten digits", "5299822472", taxid.ErrForm},
		{"twelve digits", "529982247250", taxid.ErrForm},
		{"thirteen characters", "1122233300018", taxid.ErrForm},
		{"letter in a CPF", "5299822472A", taxid.ErrForm},
		{"small letters", "12abc34501de35", taxid.ErrForm},
		{"letter as check digit", "12ABC34501DE3A", taxid.ErrForm},
		{"digits beyond ASCII", "٥٢٩٩٨٢٢٤٧٢٥", taxid.ErrForm},
		{"character after '9'", "1122233300:181", taxid.ErrForm},
		{"character after 'Z'", "1122233300[181", taxid.ErrForm},
		{"CPF of equal digits", "11111111111", taxid.ErrRepeated},
		{"CPF of zeros", "00000000000", taxid.ErrRepeated},
		{"CNPJ of zeros", "00000000000000", taxid.ErrRepeated},
		{"CPF, first check digit", "52998224735", taxid.ErrCheckDigits},
		{"CPF, second check digit", "52998224724", taxid.ErrCheckDigits},
		{"CNPJ, first check digit", "11222333000191", taxid.ErrCheckDigits},
		{"CNPJ, second check digit", "12ABC34501DE36", taxid.ErrCheckDigits},
		{"CNPJ with one letter changed", "12ABD34501DE35", taxid.ErrCheckDigits},
	} {
		id, err := taxid.Parse(c.in)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
		if id != (taxid.ID{}) {
			t.Errorf("%s: an id came with the error", c.name)
		}
		if err != nil && c.in != "" && strings.Contains(err.Error(), c.in) {
			t.Errorf("%s: the error contains the document", c.name)
		}
	}
}

func TestCheckFormLeavesDigitsUnchecked(t *testing.T) {
	for in, want := range map[string]taxid.Kind{
		"52998224700":    taxid.CPF,
		"11111111111":    taxid.CPF,
		"12ABC34501DE00": taxid.CNPJ,
		"00000000000000": taxid.CNPJ,
		"529982247-5":    0,
	} {
		kind, err := taxid.CheckForm(in)
		if kind != want || (err == nil) != (want != 0) {
			t.Errorf("CheckForm(%s) = %v, %v; want %v", in, kind, err, want)
		}
	}
}

func TestCheckDigitsRefuses(t *testing.T) {
	for _, base := range []string{"", "52998224", "52998224725", "52998224A", "12abc34501de", "12ABC34501D-"} {
		if digits, err := taxid.CheckDigits(base); !errors.Is(err, taxid.ErrForm) || digits != "" {
			t.Errorf("CheckDigits(%q) = %q, %v", base, digits, err)
		}
	}
}

func TestZeroID(t *testing.T) {
	var id taxid.ID
	if id.Kind() != 0 || id.Kind().String() != "" || id.String() != "" || id.Formatted() != "" || id.Masked() != "" {
		t.Errorf("the zero id is not empty: %+v", id)
	}
}

func TestMaskedCNPJ(t *testing.T) {
	id, err := taxid.Parse("12ABC34501DE35")
	if err != nil {
		t.Fatal(err)
	}
	if got := id.Masked(); got != "**.ABC.345/****-**" {
		t.Error(got)
	}
}

// base draws the part of an id that the check digits are computed from.
func base() *rapid.Generator[string] {
	return rapid.OneOf(rapid.StringMatching(`[0-9]{9}`), rapid.StringMatching(`[0-9]{12}`), rapid.StringMatching(`[0-9A-Z]{12}`))
}

func complete(t *rapid.T, base string) string {
	digits, err := taxid.CheckDigits(base)
	if err != nil {
		t.Fatalf("CheckDigits(%q): %v", base, err)
	}
	return base + digits
}

func TestCompletedBaseParses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := complete(t, base().Draw(t, "base"))
		id, err := taxid.Parse(s)
		if errors.Is(err, taxid.ErrRepeated) && strings.Count(s, s[:1]) == len(s) {
			return
		}
		if err != nil {
			t.Fatalf("Parse(%s): %v", s, err)
		}
		strip := strings.NewReplacer(".", "", "-", "", "/", "")
		if strip.Replace(id.Formatted()) != s {
			t.Fatalf("Formatted(%s) = %s", s, id.Formatted())
		}
		if hidden := strings.Count(id.Masked(), "*"); hidden < 5 {
			t.Fatalf("Masked(%s) = %s", s, id.Masked())
		}
	})
}

// One wrong digit is found in the base whenever the first check digit is not 0
// (two remainders, 0 and 1, share that digit), and always in the check digits
// themselves. Letters are not covered: A and 6 differ by 11.
func TestOneWrongDigitIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := complete(t, base().Draw(t, "base"))
		i := rapid.IntRange(0, len(s)-1).Draw(t, "position")
		digit := rapid.SampledFrom([]byte("0123456789")).Draw(t, "digit")
		inBase := i < len(s)-2
		if s[i] > '9' || s[i] == digit || inBase && s[len(s)-2] == '0' {
			return
		}
		wrong := s[:i] + string(digit) + s[i+1:]
		if _, err := taxid.Parse(wrong); err == nil {
			t.Fatalf("%s was made from %s and passes", wrong, s)
		}
	})
}

func TestParseDoesNotAllocate(t *testing.T) {
	for _, s := range []string{"52998224725", "12ABC34501DE35", "52998224724", "x"} {
		if n := testing.AllocsPerRun(100, func() { _, _ = taxid.Parse(s) }); n != 0 {
			t.Errorf("Parse(%s) allocates %v times", s, n)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := taxid.Parse("12ABC34501DE35"); err != nil {
			b.Fatal(err)
		}
	}
}
