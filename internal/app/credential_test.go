package app_test

import (
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/apptest"
	"github.com/porteira/porteira/internal/config"
	"github.com/porteira/porteira/internal/merchant"
	"github.com/porteira/porteira/internal/store"
)

// Rotation by API and by an operator: two secrets are valid, then one, on every gateway of
// the database. Nothing else changes.
func TestCredentialRotation(t *testing.T) {
	onBoth(t, func(t *testing.T, g *apptest.Installed) {
		m, client := g.NewMerchant("Rotating", 1)
		clients := []*apptest.Client{client}
		if g.Engine == "postgres" {
			second := apptest.Run(t, apptest.Config(t, config.Dev, apptest.Secrets(), "data", t.TempDir(), "database", g.Database))
			other := *second.Client
			other.Key = client.Key
			clients = append(clients, &other)
		}
		before := g.Rows(t)
		want := func(what, secret string, status int) {
			t.Helper()
			for _, c := range clients {
				c := *c
				c.Secret = secret
				apptest.Until(t, func() string {
					if got := c.Ask("GET", "/credential", ""); got.Status != status {
						return what + ": " + got.Body
					}
					return ""
				})
			}
		}
		first := client.Secret
		want("the first secret", first, 200)
		answer := client.Must(200, "POST", "/credential/rotate", `{"overlapSeconds":3600}`)
		second := answer.Get("apiSecret")
		want("the second secret", second, 200)
		want("the first secret, during the overlap", first, 200)
		_, third, err := g.Admin.Merchants.RotateCredential(t.Context(), client.Key, "", 0)
		if err != nil {
			t.Fatal(err)
		}
		wantNoRotation(t, clients, second)
		want("the third secret", third, 200)
		want("the first secret, ended", first, 401)
		want("the second secret, ended", second, 401)
		if rows := g.Rows(t).Since(before); rows != "" {
			t.Errorf("rotations left %s", rows)
		}
		for _, secret := range []string{first, second, third} {
			if strings.Contains(g.Log.String(), secret) {
				t.Error("a secret is in the log")
			}
		}
		g.Verify(t)

		// An edit of the row ends the credential.
		err = g.Admin.Store.Transact(t.Context(), func(tx *store.Tx) error {
			return tx.ExecOne(t.Context(), "UPDATE credentials SET scopes = 'read' WHERE key_id = $1", client.Key)
		})
		if err != nil {
			t.Fatal(err)
		}
		want("the edited credential", third, 401)
		if !strings.Contains(g.Log.String(), "changed outside the gateway") {
			t.Error("the log lacks why the credential is refused")
		}
		proofs, err := g.Admin.Store.Verify(t.Context(), m.ID)
		if err != nil {
			t.Fatal(err)
		}
		if p := proofs[len(proofs)-1]; p.Check != "credentials" || len(p.Defects) != 1 || p.Defects[0].ID != client.Key {
			t.Errorf("the proof is %+v", p)
		}
	})
}

// wantNoRotation checks that gateways refuse a rotation with an ended secret, which they may
// still accept from a cache.
func wantNoRotation(t *testing.T, clients []*apptest.Client, secret string) {
	t.Helper()
	for _, c := range clients {
		c := *c
		c.Secret = secret
		if got := c.Ask("POST", "/credential/rotate", `{"overlapSeconds":0}`); got.Status != 401 && got.Get("code") != "forbidden_scope" {
			t.Errorf("rotated with an ended secret: %d %s", got.Status, got.Body)
		}
	}
}

// Each scope opens its own routes only.
func TestScopes(t *testing.T) {
	t.Parallel()
	g := apptest.Start(t, "sqlite")
	m, client := g.NewMerchant("Scopes", 10_000)
	for _, scope := range store.Scopes {
		c, secret, err := g.Admin.Merchants.CreateCredential(t.Context(), merchant.NewCredential{Merchant: m.ID, Scopes: []string{scope}, ExpiresAt: g.Admin.Clock.Now().Add(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		one := *client
		one.Key, one.Secret = c.KeyID, secret
		if got := one.Must(200, "GET", "/credential", ""); got.Get("scopes.0") != scope || got.Get("scopes.1") != "" || got.Get("expiresAt") == "" {
			t.Errorf("GET /credential: %s", got.Body)
		}
		for route, wants := range map[string]string{
			"GET /balance": store.ScopeRead, "POST /payin": store.ScopePayinWrite, "POST /payout": store.ScopePayoutWrite,
			"GET /webhook-secret": store.ScopeWebhookWrite,
			"POST /events/evt_01a1fc88370d71db9c03c351fb553c2e/redeliver": store.ScopeWebhookWrite,
		} {
			method, path, _ := strings.Cut(route, " ")
			body := ""
			if method == "POST" && !strings.HasPrefix(path, "/events") {
				body = "{}"
			}
			got := one.Ask(method, path, body)
			if refused := got.Get("code") == "forbidden_scope"; refused != (scope != wants) || got.Status == 401 {
				t.Errorf("%s with %s: %d %s", route, scope, got.Status, got.Body)
			}
		}
	}
}
