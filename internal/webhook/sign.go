// Package webhook signs, schedules, and sends through a dialer that refuses private networks.
//
// It follows Standard Webhooks 1.0 (https://www.standardwebhooks.com). It does
// not depend on the store or the use cases: package delivery decides what is
// sent, and what an attempt means for an order.
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

// ErrSecret means that a text is not a signing secret. It does not contain the
// text.
var ErrSecret = errors.New("webhook secret must be whsec_ followed by 24 to 64 bytes in base64")

// Secret signs deliveries to one receiver. Printing, logging or marshalling it
// shows nothing; only [Secret.Reveal] does.
type Secret struct {
	// A function, because package fmt bypasses the methods of unexported fields and
	// follows pointers, but prints only the address of a function.
	key func() []byte
}

// NewSecret returns a secret of 32 random bytes.
func NewSecret(random env.Random) Secret {
	key := make([]byte, newSecretSize)
	random.Read(key)
	return newSecret(key)
}

// ParseSecret reads the form of Reveal. The error is ErrSecret.
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

// Reveal returns the secret in its receiver's form, "whsec_" and base64: to show
// it once and to seal it for the store.
func (s Secret) Reveal() string {
	return secretPrefix + base64.StdEncoding.EncodeToString(s.bytes())
}

// IsZero reports whether there is no secret.
func (s Secret) IsZero() bool { return s.key == nil }

// Format implements [fmt.Formatter] and shows nothing, for any format.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// String shows nothing.
func (s Secret) String() string { return redacted }

// MarshalText shows nothing; packages encoding/json and log/slog use it.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

func (s Secret) bytes() []byte {
	if s.key == nil {
		return nil
	}
	return s.key()
}

// Sign returns the webhook-signature of a body sent under id at a time in
// complete seconds: "v1," and base64 of the HMAC-SHA256 of "id.seconds.body",
// once per secret, separated by spaces. During a rotation, both the new and the
// old secret sign.
//
// The tests compare it with the reference library, which is not used here because
// it would copy each body twice.
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
