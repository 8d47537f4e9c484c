// Package webhook signs, schedules, and sends through a dialer that refuses private networks.
//
// It follows Standard Webhooks 1.0 (https://www.standardwebhooks.com). It
// knows neither the store nor the flows: what is to be sent, and what an
// attempt means for an order, is decided elsewhere.
package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/env"
)

const (
	secretPrefix  = "whsec_"
	minSecretSize = 24 // bytes; bounds of Standard Webhooks 1.0
	maxSecretSize = 64
	newSecretSize = 32
	redacted      = "whsec_[redacted]"
)

// ErrSecret says that a text is not a signing secret. It does not tell which.
var ErrSecret = errors.New("webhook secret must be whsec_ and base64 of 24 to 64 bytes")

// Secret signs deliveries to one receiver. However it is printed, logged or
// marshalled, it shows nothing; only [Secret.Reveal] does.
type Secret struct {
	// A function, as package fmt reaches into unexported fields of structs
	// that hold a Secret, past its methods and through pointers, but prints
	// only the address of a function.
	key func() []byte
}

// NewSecret returns a secret of 32 random bytes.
func NewSecret(random env.Random) Secret {
	key := make([]byte, newSecretSize)
	random.Read(key)
	return newSecret(key)
}

// ParseSecret reads a secret in the form that Reveal gives. Its error is
// ErrSecret.
func ParseSecret(text string) (Secret, error) {
	encoded, ok := strings.CutPrefix(text, secretPrefix)
	if !ok || strings.ContainsAny(encoded, "\r\n") { // which base64 would skip
		return Secret{}, ErrSecret
	}
	key, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil || len(key) < minSecretSize || len(key) > maxSecretSize {
		return Secret{}, ErrSecret
	}
	return newSecret(key), nil
}

func newSecret(key []byte) Secret {
	return Secret{key: func() []byte { return key }}
}

// Reveal returns the secret as its receiver needs it, "whsec_" and base64: to
// show it once and to seal it for the store.
func (s Secret) Reveal() string {
	return secretPrefix + base64.StdEncoding.EncodeToString(s.bytes())
}

// IsZero tells whether there is no secret.
func (s Secret) IsZero() bool { return s.key == nil }

// Format implements [fmt.Formatter] and shows nothing, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// String shows nothing.
func (s Secret) String() string { return redacted }

// MarshalText shows nothing; package encoding/json and log/slog heed it.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

func (s Secret) bytes() []byte {
	if s.key == nil {
		return nil
	}
	return s.key()
}

// Sign returns the webhook-signature of a body sent under id at a time, which
// counts in whole seconds: "v1," and base64 of the HMAC-SHA256 of
// "id.seconds.body", once per secret, parted by spaces. While a secret is
// being rotated both the new and the old one sign.
//
// The tests hold it against the reference library, which is not used here
// because it would copy each body twice.
func Sign(secrets []Secret, id string, at time.Time, body []byte) string {
	head := append([]byte(id), '.')
	head = strconv.AppendInt(head, at.Unix(), 10)
	head = append(head, '.')
	var signature []byte
	for i, secret := range secrets {
		if i > 0 {
			signature = append(signature, ' ')
		}
		mac := hmac.New(sha256.New, secret.bytes())
		mac.Write(head)
		mac.Write(body)
		signature = append(signature, "v1,"...)
		signature = base64.StdEncoding.AppendEncode(signature, mac.Sum(nil))
	}
	return string(signature)
}
