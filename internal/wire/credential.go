package wire

import (
	"net/netip"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
)

// Bounds of the overlap of a rotation, in seconds.
const (
	overlapDefault = 86_400
	overlapMax     = 604_800
)

// Credential is who asks: a credential and its merchant. Zero times are omitted.
type Credential struct {
	KeyID        string
	Label        string
	Merchant     payment.ID
	MerchantName string
	Scopes       []string
	AllowedIPs   []netip.Prefix
	ExpiresAt    time.Time
	CreatedAt    time.Time
	Sandbox      bool
	// Secret is new, and PreviousUntil the end of the one before it; for a rotation.
	Secret        string
	PreviousUntil time.Time
}

type credentialMerchant struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

type credentialView struct {
	KeyID         string             `json:"keyId"`
	Label         string             `json:"label"`
	Merchant      credentialMerchant `json:"merchant"`
	Scopes        []string           `json:"scopes"`
	AllowedIPs    []netip.Prefix     `json:"allowedIps"`
	ExpiresAt     Timestamp          `json:"expiresAt,omitempty"`
	CreatedAt     Timestamp          `json:"createdAt"`
	Sandbox       bool               `json:"sandbox"`
	Secret        string             `json:"apiSecret,omitempty"`
	PreviousUntil Timestamp          `json:"previousSecretEndsAt,omitempty"`
}

// JSON is the answer of GET /credential and POST /credential/rotate.
func (c *Credential) JSON() ([]byte, error) {
	return json.Marshal(&credentialView{
		KeyID: c.KeyID, Label: c.Label, Merchant: credentialMerchant{c.Merchant.String(), c.MerchantName}, Scopes: c.Scopes,
		AllowedIPs: c.AllowedIPs, ExpiresAt: TimestampOf(c.ExpiresAt), CreatedAt: TimestampOf(c.CreatedAt), Sandbox: c.Sandbox,
		Secret: c.Secret, PreviousUntil: TimestampOf(c.PreviousUntil),
	})
}

// DecodeRotation decodes the body of a rotation: for how long the previous secret stays
// valid. The body may be empty; the default is a day.
func DecodeRotation(body []byte) (time.Duration, *problem.Error) {
	overlap := Some[int64](overlapDefault)
	if len(body) == 0 {
		return overlapDefault * time.Second, nil
	}
	err := decode(body, func(body value) {
		for v := range body.children() {
			if v.name() != "overlapSeconds" {
				v.failUnknown()
			} else if sent := v.integer(); sent.Set {
				overlap = sent
			}
		}
		body.r.errs.number(At("", "overlapSeconds"), overlap.V, 0, overlapMax)
	})
	return time.Duration(overlap.V) * time.Second, err
}
