package httpapi_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/httpapi"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
)

// rotations records the calls of RotateCredential.
type rotations struct {
	*harness

	calls []string
	err   error
}

func (r *rotations) RotateCredential(_ context.Context, keyID, presented string, overlap time.Duration) (store.Credential, string, error) {
	r.calls = append(r.calls, fmt.Sprintf("%s %s %s", keyID, presented, overlap))
	if r.err != nil {
		return store.Credential{}, "", r.err
	}
	old := r.keys.SecretHash(presented)
	r.credential(keyID, "new", r.first.ID, func(c *store.Credential) { c.SecondHash, c.SecondUntil = old[:], start.Add(overlap) })
	c, err := r.gateway.Credential(context.Background(), keyID)
	return c, "new", err
}

func TestGetCredential(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.credential("till", "s", h.first.ID, func(c *store.Credential) {
		c.Label, c.Scopes, c.AllowedIPs = "till 1", []string{store.ScopeRefundWrite}, prefixes("192.0.2.0/24")
		c.CreatedAt, c.ExpiresAt = start, start.Add(time.Hour)
	})
	want := `{"keyId":"till","label":"till 1","merchant":{"id":"01000000-0000-0000-0000-000000000000","name":"sandbox"},"scopes":["refund:write"],` +
		`"allowedIps":["192.0.2.0/24"],"expiresAt":"2026-03-01T13:00:00.000Z","createdAt":"2026-03-01T12:00:00.000Z","sandbox":false}`
	if a := h.do("GET", "/credential", "", as("till", "s"), from("192.0.2.1:1")); a.status != 200 || a.body != want {
		t.Errorf("answered %d %s", a.status, a.body)
	}
	if a := h.do("GET", "/credential", ""); a.status != 200 || strings.Contains(a.body, "expiresAt") || !strings.Contains(a.body, `"allowedIps":[]`) {
		t.Errorf("answered %d %s", a.status, a.body)
	}
	h.want("from elsewhere", h.do("GET", "/credential", "", as("till", "s"), from("192.0.3.1:1")), 403, "forbidden_ip")
	h.want("a parameter", h.do("GET", "/credential?secret=1", ""), 422, "validation_failed")
}

func TestRotateCredential(t *testing.T) {
	t.Parallel()
	var r rotations
	r.harness = newHarness(t, func(o *httpapi.Options) { o.Credentials = &r })
	r.want("warm", r.do("GET", "/balance", ""), 200, "")
	a := r.do("POST", "/credential/rotate", `{"overlapSeconds":60}`)
	if a.status != 200 || a.text("apiSecret") != "new" || a.text("keyId") != "key1" || a.text("previousSecretEndsAt") != "2026-03-01T12:01:00.000Z" {
		t.Errorf("answered %d %s", a.status, a.body)
	}
	r.want("the new secret", r.do("GET", "/balance", "", as("key1", "new")), 200, "")
	r.want("the old secret", r.do("GET", "/balance", ""), 200, "")
	r.want("default overlap", r.do("POST", "/credential/rotate", ""), 200, "")
	r.want("default overlap", r.do("POST", "/credential/rotate", `{}`), 200, "")
	r.want("none", r.do("POST", "/credential/rotate", `{"overlapSeconds":0}`, as("key1", "new")), 200, "")
	if got, want := strings.Join(r.calls, ", "), "key1 secret1 1m0s, key1 secret1 24h0m0s, key1 secret1 24h0m0s, key1 new 0s"; got != want {
		t.Errorf("calls are %s, want %s", got, want)
	}
	r.calls = nil
	for body, status := range map[string]int{
		`{"overlapSeconds":604801}`: 422, `{"overlapSeconds":-1}`: 422, `{"overlapSeconds":"1"}`: 422, `{"overlapSeconds":1.5}`: 422,
		`{"overlap":1}`: 400, `[]`: 400, `{`: 400,
	} {
		if a := r.do("POST", "/credential/rotate", body, as("key2", "secret2")); a.status != status {
			t.Errorf("%s: answered %d %s, want %d", body, a.status, a.body, status)
		}
	}
	if r.calls != nil {
		t.Errorf("invalid requests were passed on: %v", r.calls)
	}
	r.err = problem.New(problem.NotFound, "gone")
	r.want("revoked meanwhile", r.do("POST", "/credential/rotate", "", as("key2", "secret2")), 401, "unauthorized")
	r.err = problem.New(problem.InvalidState, "expired")
	r.want("expired meanwhile", r.do("POST", "/credential/rotate", "", as("key2", "secret2")), 409, "invalid_state")
}

// A credential whose row was changed outside the gateway is refused like a wrong secret; only
// the operator's log has the cause.
func TestDamagedCredential(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.want("warm", h.do("GET", "/balance", ""), 200, "")
	h.credential("key1", "secret1", h.first.ID, func(c *store.Credential) { c.Damaged = fmt.Errorf("%w: credential key1", store.ErrChangedOutside) })
	h.clock.Advance(2 * time.Second)
	a := h.do("GET", "/balance", "")
	h.want("damaged", a, 401, "unauthorized")
	if unknown := h.do("GET", "/balance", "", as("nobody", "secret1")); strings.Replace(a.body, a.header.Get("X-Request-Id"), "", 1) != strings.Replace(unknown.body, unknown.header.Get("X-Request-Id"), "", 1) {
		t.Errorf("answers differ: %s %s", a.body, unknown.body)
	}
	if log := h.log.String(); !strings.Contains(log, "changed outside the gateway: credential key1") {
		t.Errorf("the log lacks the cause: %s", log)
	}
}

// Secrets that were stored under a retired master key remain valid.
func TestSecretsOfRetiredMasterKeys(t *testing.T) {
	t.Parallel()
	seeded := env.SeededRandom(1)
	master := func(b byte) []byte { return bytes.Repeat([]byte{b}, db.MasterKeyLength) }
	keys, err := db.NewKeyring(master(8), seeded, master(9), master(7))
	if err != nil {
		t.Fatal(err)
	}
	h := newHarness(t, func(o *httpapi.Options) { o.Keys = keys })
	for range 2 { // read, and cached
		h.want("stored under a retired key", h.do("GET", "/balance", ""), 200, "")
		h.want("wrong", h.do("GET", "/balance", "", as("key1", "secret2")), 401, "unauthorized")
	}
	if keys, err = db.NewKeyring(master(8), seeded, master(9)); err != nil {
		t.Fatal(err)
	}
	h = newHarness(t, func(o *httpapi.Options) { o.Keys = keys })
	h.want("stored under an unknown key", h.do("GET", "/balance", ""), 401, "unauthorized")
}

// readsOfCredentials notes for each credential that is read whether there is one.
type readsOfCredentials struct {
	*gateway

	reads string
}

func (f *readsOfCredentials) Credential(ctx context.Context, keyID string) (store.Credential, error) {
	c, err := f.gateway.Credential(ctx, keyID)
	if f.reads += "+"; err != nil {
		f.reads = strings.TrimSuffix(f.reads, "+") + "-"
	}
	return c, err
}

// The work for a wrong secret does not show whether its key exists.
func TestUnknownKeysCostAsMuchAsWrongSecrets(t *testing.T) {
	t.Parallel()
	var f readsOfCredentials
	h := newHarness(t, func(o *httpapi.Options) {
		f.gateway = o.Reader.(*gateway)
		o.Reader = &f
	})
	h.want("right", h.do("GET", "/balance", ""), 200, "")
	for _, row := range []struct{ key, want string }{{"nobody", "-+"}, {"key1", "+-"}, {"key2", "+-"}, {"\xff", "-+"}} {
		f.reads = ""
		if h.want("wrong", h.do("GET", "/balance", "", as(row.key, "wrong")), 401, "unauthorized"); f.reads != row.want {
			t.Errorf("%s: the reads found %s, want %s", row.key, f.reads, row.want)
		}
	}
}
