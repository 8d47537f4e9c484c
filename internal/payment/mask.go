package payment

import (
	"strings"
	"unicode/utf8"
)

// Personal data as operators see it, and as cases have it.

const hidden = "•••"

// MaskName leaves the first letter of each word of a name.
func MaskName(name string) string {
	words := strings.Fields(name)
	for i, w := range words {
		first, _ := utf8.DecodeRuneInString(w)
		words[i] = string(first) + hidden
	}
	return strings.Join(words, " ")
}

// MaskDocument leaves the six digits in the middle of a CPF, as Brazilian banks show it, and the
// first two and last two of another document.
func MaskDocument(document string) string {
	if cpf := []rune(document); len(cpf) == 11 {
		return hidden + "." + string(cpf[3:6]) + "." + string(cpf[6:9]) + "-••"
	}
	return MaskText(document)
}

// MaskEmail leaves the first letter and the domain of an e-mail address.
func MaskEmail(address string) string {
	name, domain, ok := strings.Cut(address, "@")
	if !ok {
		return MaskText(address)
	}
	if name == "" {
		return hidden + "@" + domain
	}
	first, _ := utf8.DecodeRuneInString(name)
	return string(first) + hidden + "@" + domain
}

// MaskKey masks a Pix key of any type.
func MaskKey(kind, key string) string {
	switch {
	case kind == "CPF" || kind == "CNPJ":
		return MaskDocument(key)
	case strings.Contains(key, "@"):
		return MaskEmail(key)
	default:
		return MaskText(key)
	}
}

// MaskText leaves the first two and the last two characters of a text of at least eight.
func MaskText(text string) string {
	list := []rune(text)
	switch {
	case len(list) == 0:
		return ""
	case len(list) < 8:
		return hidden
	default:
		return string(list[:2]) + hidden + string(list[len(list)-2:])
	}
}
