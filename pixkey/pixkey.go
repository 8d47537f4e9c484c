// Package pixkey encodes, decodes and checks Pix keys: it checks that a text fits
// the stated type of key, and writes it in the normal form of the directory of
// keys.
//
// The forms are those of the DICT API 1.8 of Banco Central do Brasil, plus the
// alphanumeric CNPJ that API Pix 2.9 accepts. The caller always gives the type,
// because eleven digits may be a CPF or a phone number.
//
// Check keys here before a look-up: looking up a key that does not exist uses an
// account's quota in the directory twenty times as fast as other look-ups.
//
// Errors never contain the key, which is personal data.
package pixkey

import (
	"errors"
	"fmt"
	"strings"

	"github.com/porteira/porteira/taxid"
)

// Errors that the functions of this package return, as they are or wrapped.
var (
	// ErrType means that there is no such type of key.
	ErrType = errors.New("pixkey: unknown type of key")
	// ErrCPF means that a CPF key is not 11 digits.
	ErrCPF = errors.New("pixkey: a CPF key is 11 digits")
	// ErrCNPJ means that a CNPJ key is not 12 digits or capital letters and two digits.
	ErrCNPJ = errors.New("pixkey: a CNPJ key is 12 digits or capital letters and two digits")
	// ErrEmail means that an EMAIL key does not have the form of an address.
	ErrEmail = errors.New("pixkey: an EMAIL key is an e-mail address in ASCII, without %")
	// ErrEmailLength means that an EMAIL key is longer than [MaxEmail].
	ErrEmailLength = errors.New("pixkey: an EMAIL key has at most 77 characters")
	// ErrPhone means that a PHONE key does not have the form of a phone number.
	ErrPhone = errors.New("pixkey: a PHONE key is + and 3 to 16 digits, or 10 or 11 digits of a Brazilian number")
	// ErrEVP means that an EVP key does not have the form of a UUID.
	ErrEVP = errors.New("pixkey: an EVP key is a UUID: 32 hexadecimal digits in groups of 8, 4, 4, 4 and 12")
)

// MaxEmail is the maximum length of an EMAIL key in characters, as of every key:
// a BR Code cannot carry more.
const MaxEmail = 77

// Type is a type of Pix key, named as in the DICT API.
type Type string

// The types of key.
const (
	// CPF is the tax id of a person: 52998224725.
	CPF Type = "CPF"
	// CNPJ is the tax id of a company: 12ABC34501DE35.
	CNPJ Type = "CNPJ"
	// Email is an e-mail address: pix@bcb.gov.br.
	Email Type = "EMAIL"
	// Phone is a phone number with its country code: +5511987654321.
	Phone Type = "PHONE"
	// EVP is a random key (endereço virtual de pagamento), a UUID of any version.
	EVP Type = "EVP"
)

// ParseType returns the type of that name. Names are in capital letters. The
// error is [ErrType].
func ParseType(name string) (Type, error) {
	switch t := Type(name); t {
	case CPF, CNPJ, Email, Phone, EVP:
		return t, nil
	default:
		return "", ErrType
	}
}

// Key is a checked key. Two keys are the same key if they are ==.
type Key struct {
	// Type is the key's type.
	Type Type
	// Value is the key in its normal form. It is personal data: log [Mask] of it
	// instead.
	Value string
}

// Parse checks s as [Check] does and returns the key in its normal form. The
// errors are those of Check.
func Parse(t Type, s string) (Key, error) {
	if err := Check(t, s); err != nil {
		return Key{}, err
	}
	value, err := Normalize(t, s)
	if err != nil {
		return Key{}, err
	}
	return Key{Type: t, Value: value}, nil
}

// Valid reports whether s fits its type and, as a CPF or CNPJ, has right check
// digits.
func Valid(t Type, s string) bool {
	return Check(t, s) == nil
}

// Check returns what is wrong with s as a key of that type, including the check
// digits of a CPF or CNPJ. The errors are those of [CheckForm], and
// [taxid.ErrCheckDigits] and [taxid.ErrRepeated], wrapped.
func Check(t Type, s string) error {
	if err := CheckForm(t, s); err != nil {
		return err
	}
	if t == CPF || t == CNPJ {
		if _, err := taxid.Parse(s); err != nil {
			return fmt.Errorf("pixkey: %s key: %w", t, err)
		}
	}
	return nil
}

// CheckForm returns what is wrong with the form of s as a key of that type; check
// digits are not checked. The error is [ErrType] or the error of the type:
// [ErrCPF], [ErrCNPJ], [ErrEmail], [ErrEmailLength], [ErrPhone], [ErrEVP]. It
// does not allocate.
func CheckForm(t Type, s string) error {
	switch t {
	case CPF:
		if kind, err := taxid.CheckForm(s); err != nil || kind != taxid.CPF {
			return ErrCPF
		}
	case CNPJ:
		if kind, err := taxid.CheckForm(s); err != nil || kind != taxid.CNPJ {
			return ErrCNPJ
		}
	case Email:
		return checkEmail(s)
	case Phone:
		if !isPhone(s) {
			return ErrPhone
		}
	case EVP:
		if !isUUID(s) {
			return ErrEVP
		}
	default:
		return ErrType
	}
	return nil
}

// Normalize checks the form of s as [CheckForm] does and returns its form in the
// directory: e-mail addresses and UUIDs in lower case, and phone numbers with +
// and country code; 10 or 11 digits without + are taken as Brazilian. Normalizing
// again changes nothing. The errors are those of CheckForm.
func Normalize(t Type, s string) (string, error) {
	if err := CheckForm(t, s); err != nil {
		return "", err
	}
	switch {
	case t == Phone && s[0] != '+':
		return "+55" + s, nil
	case t == Email || t == EVP:
		return lower(s), nil
	default:
		return s, nil
	}
}

// Mask returns s with enough hidden for logs and people: ***.982.247-**,
// **.222.333/****-**, f***@example.com, +55*******4321,
// 123e****-****-****-****-********0000. A text that does not fit its type becomes
// ***.
func Mask(t Type, s string) string {
	const hidden = "***"
	normal, err := Normalize(t, s)
	if err != nil {
		return hidden
	}
	switch t {
	case CPF:
		return hidden + "." + normal[3:6] + "." + normal[6:9] + "-**"
	case CNPJ:
		return "**." + normal[2:5] + "." + normal[5:8] + "/****-**"
	case Email:
		at := strings.IndexByte(normal, '@')
		if at == 1 {
			return hidden + normal[at:] // its one letter is all of it
		}
		return normal[:1] + hidden + normal[at:]
	case Phone:
		return starred(normal, len("+55"), len("4321"))
	default:
		return starred(normal, 4, 4)
	}
}

// starred hides the letters and digits of s except the first and last few; of
// short texts, at least half.
func starred(s string, first, last int) string {
	for first+last > len(s)/2 {
		first, last = first/2, last/2
	}
	b := []byte(s)
	for i := first; i < len(b)-last; i++ {
		if b[i] != '-' {
			b[i] = '*'
		}
	}
	return string(b)
}
