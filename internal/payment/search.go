package payment

import (
	"slices"
	"strings"

	"github.com/porteira/porteira/pixkey"
)

// The normal forms of personal data, in which orders are found by it.

var punctuation = strings.NewReplacer(".", "", "-", "", "/", "", " ", "")

// NormalDocument is a CPF or CNPJ without punctuation, in capital letters.
func NormalDocument(text string) string { return strings.ToUpper(punctuation.Replace(text)) }

// NormalEmail is an e-mail address in lower case.
func NormalEmail(text string) string { return strings.ToLower(text) }

// NormalPIXKeys are the Pix keys that a text may be, as processors get them; none if it is no
// key. 11 digits are a CPF and a Brazilian phone number.
func NormalPIXKeys(text string) []string {
	var keys []string
	for _, t := range []pixkey.Type{pixkey.CPF, pixkey.CNPJ, pixkey.Email, pixkey.Phone, pixkey.EVP} {
		if key, err := pixkey.Normalize(t, text); err == nil && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}
