package browser_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// served is a page of a test server.
func served(t *testing.T, policy, html string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", policy)
		_, _ = fmt.Fprint(w, html)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/"
}

const fine = `<!doctype html><html lang=pt-BR><title>Página</title><link rel=icon href="data:,"><main><h1>Página</h1></main>`

// The checks of the other tests must be able to fail.
func TestBrowserComplains(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ policy, html, want string }{
		"a page that is fine": {"default-src 'none'; img-src data:", fine, ""},
		"an inline script":    {"script-src 'self'", fine + `<script>document.title = "run"</script>`, "Content Security Policy"},
		"an inline style":     {"style-src 'self'", fine + `<p style="color: red">a</p>`, "Content Security Policy"},
		"a script that fails": {"", fine + `<script>fails()</script>`, "fails is not defined"},
		"a dialog":            {"", fine + `<script>alert("boo")</script>`, "dialog: boo"},
		"a file that is gone": {"", fine + `<img alt="" src="/gone.png">`, "404"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newTab(t, desktop)
			b.expected = true
			b.open(served(t, test.policy, test.html))
			if test.want == "" {
				if complaints := b.heardSoFar(); len(complaints) > 0 {
					t.Error(complaints)
				}
				return
			}
			b.hears(test.want)
			if b.received() == 0 {
				t.Error("no bytes were counted")
			}
		})
	}
}

func TestAxeObjects(t *testing.T) {
	t.Parallel()
	b := newTab(t, desktop)
	b.open(served(t, "", fine))
	if violations := b.inaccessible(); len(violations) > 0 {
		t.Error(violations)
	}
	b.open(served(t, "", strings.Replace(fine, "<h1>", `<p><font color="#ccc">Mal se lê</font><input><h1>`, 1)))
	found := fmt.Sprint(b.inaccessible())
	for _, rule := range []string{"color-contrast", "label"} {
		if !strings.Contains(found, rule) {
			t.Errorf("no %s in %s", rule, found)
		}
	}
}
