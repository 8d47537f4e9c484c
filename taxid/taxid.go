// Package taxid encodes, decodes and checks Brazilian tax ids: the CPF of a
// person and the CNPJ of a company, numeric or alphanumeric.
//
// A CPF has 11 digits, the last two of which check the others. A CNPJ has 12
// digits or capital letters and two check digits (IN RFB 2229 of 2024 brought
// the letters, in force since July 2026). Only the bare form is accepted:
// punctuation, blanks and lower-case letters are rejected, so that one document
// has one spelling. [ID.Formatted] writes the form with punctuation, for people.
//
// Errors never contain the document, which is personal data.
package taxid

import "errors"

// Errors that the functions of this package return, as they are or wrapped.
var (
	// ErrForm means that the text does not have the form of a CPF or CNPJ.
	ErrForm = errors.New("taxid: not 11 digits (CPF) or 12 digits or capital letters and two digits (CNPJ)")
	// ErrRepeated means that all characters are equal. Such ids were never issued,
	// although many of them have the right check digits.
	ErrRepeated = errors.New("taxid: all characters are equal")
	// ErrCheckDigits means that the last two digits do not match the others.
	ErrCheckDigits = errors.New("taxid: wrong check digits")
)

// Kind is the register of an [ID]. Its zero value is no kind.
type Kind uint8

// The kinds of tax id.
const (
	// CPF is the register of persons (Cadastro de Pessoas Físicas).
	CPF Kind = iota + 1
	// CNPJ is the register of companies (Cadastro Nacional da Pessoa Jurídica).
	CNPJ
)

// String returns "CPF" or "CNPJ", and "" for any other value.
func (k Kind) String() string {
	switch k {
	case CPF:
		return "CPF"
	case CNPJ:
		return "CNPJ"
	default:
		return ""
	}
}

// Lengths in characters: of a complete id, and of its base without check digits.
const (
	cpfLen      = 11
	cpfBaseLen  = cpfLen - 2
	cnpjLen     = 14
	cnpjBaseLen = cnpjLen - 2
)

// ID is a tax id with right check digits. IDs are comparable with ==. The zero
// value is no id: its Kind is 0 and its texts are empty.
type ID struct {
	bare string
}

// Parse reads a bare CPF or CNPJ and checks its form and check digits. The
// error is [ErrForm], [ErrRepeated] or [ErrCheckDigits]. It does not allocate.
func Parse(s string) (ID, error) {
	kind, err := CheckForm(s)
	if err != nil {
		return ID{}, err
	}
	if repeated(s) {
		return ID{}, ErrRepeated
	}
	base := len(s) - 2
	first, second := checkDigits(kind, s[:base])
	if s[base] != first || s[base+1] != second {
		return ID{}, ErrCheckDigits
	}
	return ID{bare: s}, nil
}

// CheckForm returns the kind of a bare CPF or CNPJ by its length and characters
// alone; check digits and repeated digits are not checked. The error is
// [ErrForm].
func CheckForm(s string) (Kind, error) {
	switch {
	case len(s) == cpfLen && allDigits(s):
		return CPF, nil
	case len(s) == cnpjLen && allDigitsOrCapitals(s[:cnpjBaseLen]) && allDigits(s[cnpjBaseLen:]):
		return CNPJ, nil
	default:
		return 0, ErrForm
	}
}

// ValidCPF reports whether s is a bare CPF with right check digits.
func ValidCPF(s string) bool {
	id, err := Parse(s)
	return err == nil && id.Kind() == CPF
}

// ValidCNPJ reports whether s is a bare CNPJ, numeric or alphanumeric, with right
// check digits.
func ValidCNPJ(s string) bool {
	id, err := Parse(s)
	return err == nil && id.Kind() == CNPJ
}

// CheckDigits returns the two check digits that belong to a base: the first 9
// digits of a CPF, or the first 12 characters of a CNPJ. The error is
// [ErrForm].
func CheckDigits(base string) (string, error) {
	var kind Kind
	switch {
	case len(base) == cpfBaseLen && allDigits(base):
		kind = CPF
	case len(base) == cnpjBaseLen && allDigitsOrCapitals(base):
		kind = CNPJ
	default:
		return "", ErrForm
	}
	first, second := checkDigits(kind, base)
	return string([]byte{first, second}), nil
}

// Kind returns CPF or CNPJ, and 0 for the zero ID.
func (id ID) Kind() Kind {
	switch len(id.bare) {
	case cpfLen:
		return CPF
	case cnpjLen:
		return CNPJ
	default:
		return 0
	}
}

// String returns the bare form, as it was parsed. It is personal data: log
// [ID.Masked] instead.
func (id ID) String() string { return id.bare }

// Formatted returns the form with punctuation: 529.982.247-25 or
// 12.ABC.345/01DE-35.
func (id ID) Formatted() string {
	s := id.bare
	switch id.Kind() {
	case CPF:
		return s[:3] + "." + s[3:6] + "." + s[6:9] + "-" + s[9:]
	case CNPJ:
		return s[:2] + "." + s[2:5] + "." + s[5:8] + "/" + s[8:12] + "-" + s[12:]
	default:
		return ""
	}
}

// Masked returns the form that Brazilian public bodies print to hide the holder:
// ***.982.247-** or **.ABC.345/****-**.
func (id ID) Masked() string {
	s := id.bare
	switch id.Kind() {
	case CPF:
		return "***." + s[3:6] + "." + s[6:9] + "-**"
	case CNPJ:
		return "**." + s[2:5] + "." + s[5:8] + "/****-**"
	default:
		return ""
	}
}

// checkDigits returns the two check digits, as characters, of a base of the
// right form.
//
// Both registers use the same sum: each character's value (its ASCII code less
// that of '0', so A is 17 and Z is 42) times a weight that grows from 2 at the
// right; for a CNPJ the weights start over after 9. The second digit's sum
// includes the first digit, at weight 2, which shifts all other weights by one.
func checkDigits(kind Kind, base string) (first, second byte) {
	lastWeight := cpfLen // never reached by a CPF's first sum, just by its second
	if kind == CNPJ {
		lastWeight = 9
	}
	sum1, sum2 := 0, 0
	weight := 2
	for i := len(base) - 1; i >= 0; i-- {
		value := int(base[i] - '0')
		sum1 += value * weight
		if weight++; weight > lastWeight {
			weight = 2
		}
		sum2 += value * weight
	}
	digit1 := modulo11(sum1)
	digit2 := modulo11(sum2 + 2*digit1)
	return byte('0' + digit1), byte('0' + digit2)
}

// modulo11 turns a weighted sum into a check digit: 11 less the remainder; 10 and
// 11 become 0.
func modulo11(sum int) int {
	if r := sum % 11; r >= 2 {
		return 11 - r
	}
	return 0
}

func repeated(s string) bool {
	for i := 1; i < len(s); i++ {
		if s[i] != s[0] {
			return false
		}
	}
	return true
}

func allDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

func allDigitsOrCapitals(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return true
}
