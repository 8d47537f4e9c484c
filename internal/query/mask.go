package query

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/porteira/porteira/internal/payment"
)

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

// MaskCustomer is a customer's name, document and e-mail address, masked, as JSON; nil if there is
// none. The other members are left out.
func MaskCustomer(customer []byte) []byte {
	var c struct {
		Name     string `json:"name,omitempty"`
		Document string `json:"document,omitempty"`
		Email    string `json:"email,omitempty"`
	}
	if len(customer) == 0 || json.Unmarshal(customer, &c) != nil {
		return nil
	}
	c.Name, c.Document, c.Email = MaskName(c.Name), MaskDocument(c.Document), MaskEmail(c.Email)
	masked, err := json.Marshal(&c)
	if err != nil {
		return nil
	}
	return masked
}

// MaskPayout is a payout whose beneficiary is masked.
func MaskPayout(p payment.Payout) payment.Payout {
	b := p.Beneficiary
	p.Beneficiary = payment.Beneficiary{Name: MaskName(b.Name), Document: MaskDocument(b.Document), PIXKey: MaskKey(p.PIXKeyType, b.Key())}
	return p
}

// MaskEvent is the body of an event whose Pix key is masked.
func MaskEvent(body []byte) []byte {
	var event struct {
		Data struct {
			Key  string `json:"pixKey"`
			Kind string `json:"pixKeyType"`
		} `json:"data"`
	}
	if json.Unmarshal(body, &event) != nil || event.Data.Key == "" {
		return body
	}
	shown, err := json.Marshal(event.Data.Key)
	if err != nil {
		return body
	}
	masked, err := json.Marshal(MaskKey(event.Data.Kind, event.Data.Key))
	if err != nil {
		return body
	}
	return bytes.ReplaceAll(body, append([]byte(`"pixKey":`), shown...), append([]byte(`"pixKey":`), masked...))
}
