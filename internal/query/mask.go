package query

import (
	"bytes"
	"encoding/json"

	"github.com/porteira/porteira/internal/payment"
)

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
	c.Name, c.Document, c.Email = payment.MaskName(c.Name), payment.MaskDocument(c.Document), payment.MaskEmail(c.Email)
	masked, err := json.Marshal(&c)
	if err != nil {
		return nil
	}
	return masked
}

// MaskPayout is a payout whose beneficiary is masked.
func MaskPayout(p payment.Payout) payment.Payout {
	b := p.Beneficiary
	p.Beneficiary = payment.Beneficiary{Name: payment.MaskName(b.Name), Document: payment.MaskDocument(b.Document), PIXKey: payment.MaskKey(p.PIXKeyType, b.Key())}
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
	masked, err := json.Marshal(payment.MaskKey(event.Data.Kind, event.Data.Key))
	if err != nil {
		return body
	}
	return bytes.ReplaceAll(body, append([]byte(`"pixKey":`), shown...), append([]byte(`"pixKey":`), masked...))
}
