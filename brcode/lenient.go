package brcode

import (
	"errors"
	"slices"
	"unicode"
	"unicode/utf8"
)

// lengths is what the lengths of a code count. Beyond ASCII the two differ.
type lengths int

const (
	inBytes lengths = iota
	inCharacters
)

// bytes is the length in bytes of n units at the beginning of s; more than s has if it is shorter.
func (l lengths) bytes(s string, n int) int {
	if l == inBytes {
		return n
	}
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s) + n
}

// reading is how a code is read.
type reading struct {
	lengths lengths
	foreign bool // texts for people are not checked
}

var strict = reading{}

// text checks a text for people.
func (r reading) text(s string, check func(string) error) error {
	if r.foreign {
		return nil
	}
	return check(s)
}

// DecodeForeign reads a code that another program wrote. What decides who is paid, and how much,
// is checked as [Decode] does: structure, checksum, key, URL, amount, currency, country, transaction
// id. Texts for people (names, cities, postal codes, notes) may be any UTF-8 of any length, without
// control characters, and lengths may count characters or bytes: whichever makes structure and checksum
// right. A code that can be read in both ways is refused. Not every payer's bank accepts a code that
// only this function reads. The error is an [*Error].
func DecodeForeign(s string) (Code, error) {
	if utf8.RuneCountInString(s) > MaxPayload {
		return Code{}, &Error{Pos: MaxPayload, Err: ErrTooLong}
	}
	ascii := true
	for i, c := range s {
		if _, size := utf8.DecodeRuneInString(s[i:]); c == utf8.RuneError && size < 2 || unicode.IsControl(c) {
			return Code{}, &Error{Pos: i, Err: ErrCharset}
		}
		ascii = ascii && c < utf8.RuneSelf
	}
	code, err := decode(s, reading{inBytes, true})
	if ascii {
		return code, err
	}
	other, otherErr := decode(s, reading{inCharacters, true})
	switch {
	case err != nil && otherErr != nil:
		if errors.Is(err, ErrTLV) { // the other reading came further
			err = otherErr
		}
		return Code{}, err
	case err != nil:
		return other, nil
	case otherErr == nil && !slices.Equal(code.Fields, other.Fields):
		return Code{}, &Error{Pos: 0, Err: ErrTLV}
	default:
		return code, nil
	}
}

// IsASCII reports whether a code has printable ASCII only, as every payer's bank accepts it.
func IsASCII(s string) bool { return badCharacter(s) < 0 }
