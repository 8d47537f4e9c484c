package webhook_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"pgregory.net/rapid"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/webhook"
)

// The vector that the reference libraries of Standard Webhooks publish.
const (
	vectorSecret    = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	vectorID        = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	vectorBody      = `{"test": 2432232314}`
	vectorSignature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	vectorSeconds   = 1614265330
)

func mustSecret(t interface {
	Helper()
	Fatal(args ...any)
}, text string) webhook.Secret {
	t.Helper()
	secret, err := webhook.ParseSecret(text)
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

func TestSignVector(t *testing.T) {
	t.Parallel()
	secret := mustSecret(t, vectorSecret)
	at := time.Unix(vectorSeconds, 999_999_999)
	if got := webhook.Sign([]webhook.Secret{secret}, vectorID, at, []byte(vectorBody)); got != vectorSignature {
		t.Errorf("signature %s, want %s", got, vectorSignature)
	}
	if got := secret.Reveal(); got != vectorSecret {
		t.Errorf("revealed %s", got)
	}
}

// TestSignPassesLibrary has the reference library verify our signatures, with
// each secret of a rotation, and reject them if a byte differs.
func TestSignPassesLibrary(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		random := env.SeededRandom(rapid.Uint64().Draw(t, "seed"))
		secrets := []webhook.Secret{webhook.NewSecret(random), webhook.NewSecret(random)}
		secrets = secrets[:rapid.IntRange(1, 2).Draw(t, "secrets")]
		body := rapid.SliceOf(rapid.Byte()).Draw(t, "body")
		id := "evt_" + rapid.StringMatching(`[0-9a-z]{1,26}`).Draw(t, "id")
		at := time.Unix(rapid.Int64Range(0, 1<<40).Draw(t, "seconds"), 0)
		headers := http.Header{}
		headers.Set("webhook-id", id)
		headers.Set("webhook-timestamp", strconv.FormatInt(at.Unix(), 10))
		headers.Set("webhook-signature", webhook.Sign(secrets, id, at, body))
		for i, secret := range secrets {
			verifier, err := standardwebhooks.NewWebhook(secret.Reveal())
			if err != nil {
				t.Fatal(err)
			}
			if err := verifier.VerifyIgnoringTimestamp(body, headers); err != nil {
				t.Fatalf("secret %d: %v", i, err)
			}
			if verifier.VerifyIgnoringTimestamp(append(body, ' '), headers) == nil {
				t.Fatal("another body passed")
			}
		}
		other, _ := standardwebhooks.NewWebhook(webhook.NewSecret(random).Reveal())
		if other.VerifyIgnoringTimestamp(body, headers) == nil {
			t.Fatal("another secret passed")
		}
	})
}

func TestParseSecret(t *testing.T) {
	t.Parallel()
	encode := func(size int) string { return base64.StdEncoding.EncodeToString(make([]byte, size)) }
	for _, size := range []int{24, 25, 32, 64} {
		if secret, err := webhook.ParseSecret("whsec_" + encode(size)); err != nil || secret.IsZero() {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	for name, text := range map[string]string{
		"empty":       "",
		"prefix only": "whsec_",
		"no prefix":   encode(32),
		"other case":  "WHSEC_" + encode(32),
		"too short":   "whsec_" + encode(23),
		"too long":    "whsec_" + encode(65),
		"no base64":   "whsec_" + strings.Repeat("!", 44),
		"URL base64":  "whsec_" + strings.Repeat("-_", 22),
		"line break":  "whsec_" + encode(32)[:20] + "\n" + encode(32)[20:],
		"space":       "whsec_ " + encode(32),
		"no padding":  "whsec_" + strings.TrimRight(encode(32), "="),
		"loose bits":  "whsec_" + encode(32)[:42] + "B=",
	} {
		if secret, err := webhook.ParseSecret(text); !errors.Is(err, webhook.ErrSecret) || !secret.IsZero() {
			t.Errorf("%s: err = %v", name, err)
		}
	}
}

// TestSecretShowsNothing prints a secret in every possible way, alone and inside
// a struct, and looks for any part of it.
func TestSecretShowsNothing(t *testing.T) {
	t.Parallel()
	secret := mustSecret(t, vectorSecret)
	type holder struct {
		Shown  webhook.Secret
		hidden webhook.Secret
		List   []webhook.Secret
		Any    map[string]any
	}
	values := []any{
		secret, &secret, []webhook.Secret{secret},
		holder{secret, secret, []webhook.Secret{secret}, map[string]any{"s": secret}},
		&holder{secret, secret, nil, nil},
		webhook.Delivery{Secrets: []webhook.Secret{secret}},
	}
	var shown strings.Builder
	for _, value := range values {
		for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%o", "%b", "%U", "%t"} {
			fmt.Fprintf(&shown, format+"\n", value)
		}
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		shown.Write(text)
		slog.New(slog.NewJSONHandler(&shown, nil)).Info("x", "value", value)
		slog.New(slog.NewTextHandler(&shown, nil)).Info("x", "value", value)
	}
	shown.WriteString(secret.String())
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(vectorSecret, "whsec_"))
	leaks := []string{
		vectorSecret[6:14], string(key[:4]), fmt.Sprintf("%x", key[:4]), fmt.Sprintf("%X", key[:4]),
		strings.Trim(fmt.Sprint(key[:4]), "[]"), strings.Trim(fmt.Sprintf("%#v", key[:4]), "[]byte{}"),
	}
	for _, leak := range leaks {
		if strings.Contains(shown.String(), leak) {
			t.Errorf("shows %q", leak)
		}
	}
	if !strings.Contains(shown.String(), "redacted") {
		t.Error("the test shows nothing at all")
	}
}
