package app_test

import (
	"html"
	"net/http"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/app/apptest"
	"github.com/porteira/porteira/internal/config"
)

// request requests a path of a gateway with headers in pairs of name and value.
func request(t *testing.T, g *apptest.Gateway, method, path string, headers ...string) (*http.Response, string) {
	t.Helper()
	p := &payer{t: t, page: g.Base + path}
	r, err := http.NewRequestWithContext(t.Context(), method, p.page, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return p.do(r)
}

// A sandbox greets a browser with a page, in the browser's language; a program gets
// the API's answer.
func TestHomePage(t *testing.T) {
	g := apptest.Run(t, apptest.Config(t, config.Dev, nil, "data", t.TempDir()))
	for language, want := range map[string]string{"": "A Porteira está no ar", "pt-BR,en;q=0.5": "A Porteira está no ar", "en": "Porteira is running"} {
		answer, body := request(t, g, http.MethodGet, "/", "Accept", "text/html,*/*;q=0.8", "Accept-Language", language)
		if answer.StatusCode != http.StatusOK || !strings.Contains(body, want) || !strings.Contains(body, app.SandboxKey) || !strings.Contains(body, g.Base+"/payin") {
			t.Errorf("language %q: %d\n%s", language, answer.StatusCode, body)
		}
		if policy := answer.Header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("policy %q", policy)
		}
	}
	if answer, body := request(t, g, http.MethodHead, "/", "Accept", "text/html"); answer.StatusCode != http.StatusOK || body != "" {
		t.Errorf("HEAD is answered %d\n%s", answer.StatusCode, body)
	}
	answer, body := request(t, g, http.MethodGet, "/", "Accept", "*/*")
	if answer.StatusCode != http.StatusNotFound || !strings.Contains(body, `"code":"not_found"`) {
		t.Errorf("a program is answered %d\n%s", answer.StatusCode, body)
	}
}

// The page and the greeting of porteira dev show the webhook secret that signs now.
func TestHomeShowsTheWebhookSecret(t *testing.T) {
	g := apptest.Run(t, apptest.Config(t, config.Dev, nil, "data", t.TempDir()))
	shows := func(secret string) {
		t.Helper()
		if _, body := request(t, g, http.MethodGet, "/", "Accept", "text/html"); !strings.Contains(html.UnescapeString(body), secret) {
			t.Errorf("%s is not on the page\n%s", secret, body)
		}
		if got, err := g.App.WebhookSecret(t.Context()); got != secret {
			t.Errorf("the greeting shows %q, want %q: %v", got, secret, err)
		}
	}
	shows(app.SandboxWebhookSecret)
	shows(g.Must(200, "POST", "/webhook-secret/rotate", "{}").Get("secret"))
}

// Each press of the button creates a Pix and redirects to its page. A form of another
// website cannot press it.
func TestHomeButton(t *testing.T) {
	g := apptest.Run(t, apptest.Config(t, config.Dev, nil, "data", t.TempDir()))
	pages := map[string]bool{}
	for range 2 {
		answer, body := request(t, g, http.MethodPost, "/sandbox/home/pix", "Sec-Fetch-Site", "same-origin")
		page := answer.Header.Get("Location")
		if answer.StatusCode != http.StatusSeeOther || !strings.HasPrefix(page, g.Base+"/pay/") {
			t.Fatalf("%d to %q\n%s", answer.StatusCode, page, body)
		}
		pages[page] = true
		(&payer{t, page}).sees("12,90")
	}
	if len(pages) != 2 {
		t.Errorf("two presses made %d orders", len(pages))
	}
	if answer, _ := request(t, g, http.MethodPost, "/sandbox/home/pix", "Sec-Fetch-Site", "cross-site"); answer.StatusCode != http.StatusForbidden {
		t.Errorf("another website is answered %d", answer.StatusCode)
	}
	if n := g.Must(200, "GET", "/payin", "").Get("data.2.id"); n != "" {
		t.Error("there are more than two orders")
	}
}
