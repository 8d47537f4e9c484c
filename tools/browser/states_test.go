package browser_test

import (
	"database/sql"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/payment"
)

// bytesMax is the maximum size of a page with everything that it loads.
const bytesMax = 60_000

// state is a state of an order, and its page.
type state struct {
	name    string
	method  string
	actions string // actions of the sandbox's bank; cancel is the merchant's; for sets see order
	status  string // as named by the page
}

// states are all pages.
var states = []state{
	{"pix", "PIX", "", "PENDING"},
	{"boleto", "BOLETO", "", "PENDING"},
	{"card", "CREDIT_CARD", "", "PENDING"},
	{"pix-paid", "PIX", "pay", "PAID"},
	{"boleto-paid", "BOLETO", "pay", "PAID"},
	{"card-paid", "CREDIT_CARD", "pay", "PAID"},
	{"pix-expired", "PIX", "expire", "EXPIRED"},
	{"card-expired", "CREDIT_CARD", "expire", "EXPIRED"},
	{"pix-failed", "PIX", "fail", "FAILED"},
	{"boleto-canceled", "BOLETO", "cancel", "CANCELED"},
	{"pix-disputed", "PIX", "pay dispute", "DISPUTED"},
	{"pix-refunded", "PIX", "pay set-REFUNDED", "REFUNDED"},
	{"card-refunded-in-part", "CREDIT_CARD", "pay set-PARTIALLY_REFUNDED", "PARTIALLY_REFUNDED"},
	{"card-processing", "CREDIT_CARD", "set-PROCESSING", "PROCESSING"},
	{"pix-chargeback", "PIX", "pay dispute lose", "CHARGEBACK"},
}

// order creates an order in that state. States that no request leads to, or that do not
// last, are set in the database: set-STATUS.
func (s state) order(t testing.TB, in *shop, more fields) order {
	t.Helper()
	body := fields{"returnUrl": in.site.URL + "/volta"}
	maps.Copy(body, more)
	o := in.order(t, s.method, body)
	for action := range strings.FieldsSeq(s.actions) {
		status, set := strings.CutPrefix(action, "set-")
		switch {
		case set:
			o.set(t, status)
		case action == "cancel":
			in.In(t).Must(http.StatusOK, "POST", "/payin/"+o.id+"/cancel", "")
		default:
			o.happens(t, action)
		}
	}
	return o
}

// set writes a status into the database; if it is a refund, half or all of the paid amount
// counts as refunded.
func (o order) set(t testing.TB, status string) {
	t.Helper()
	id, err := payment.ParseID(o.id)
	if err != nil {
		t.Fatal(err)
	}
	database, err := sql.Open("sqlite", "file:"+o.shop.gateway.Database+"?_pragma=busy_timeout(30000)")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = database.Close() }()
	changed, err := database.ExecContext(t.Context(), `UPDATE payins SET status = $1,
		refunded_amount = CASE $1 WHEN 'REFUNDED' THEN paid_amount WHEN 'PARTIALLY_REFUNDED' THEN paid_amount / 2 ELSE 0 END WHERE id = $2`, status, id[:])
	if err != nil {
		t.Fatal(err)
	}
	if n, err := changed.RowsAffected(); n != 1 {
		t.Fatalf("%d orders changed: %v", n, err)
	}
}

// Every page, at three widths, in light and dark, in both languages: axe-core
// reports nothing, the browser does not complain, nothing is too wide, and the page is
// small.
func testEveryPage(t *testing.T, s *shop) {
	s = s.own(t)
	for _, state := range states {
		t.Run(state.name, func(t *testing.T) {
			t.Parallel()
			o := state.order(t, s, nil)
			b := newTab(t, phone)
			b.open(o.page)
			b.shows(state.status)
			if weight := b.received(); weight == 0 || weight > bytesMax {
				t.Errorf("%d bytes, want at most %d", weight, bytesMax)
			}
			for _, l := range []struct {
				name    string
				look    look
				checked bool // by axe-core: each page in light and in dark, on a phone and on a desktop
			}{
				{"phone", phone, true}, {"phone-dark", phone.inDark(), false}, {"tablet", look{width: 768}, false},
				{"desktop", look{width: 1440}, false}, {"desktop-dark", look{width: 1440, dark: true}, true},
			} {
				b.appear(l.look)
				if over := eval[float64](b, "document.documentElement.scrollWidth - innerWidth"); over > 0 {
					t.Errorf("%s: the page is %.0f pixels too wide", l.name, over)
				}
				if l.checked {
					b.accessible(state.name + " " + l.name)
				}
				b.shot(state.name + "-" + l.name)
			}
			b.appear(look{language: "en"})
			b.open(o.page)
			b.shows(state.status)
			b.shot(state.name + "-english")
		})
	}
}

// The headers of a page.
func testHeaders(t *testing.T, s *shop) {
	s = s.own(t)
	for _, method := range []string{"PIX", "BOLETO", "CREDIT_CARD"} {
		o := s.order(t, method, nil)
		response, _ := fetch(t, http.MethodGet, o.page)
		policy := response.Header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "frame-ancestors", "form-action", "base-uri 'none'"} {
			if !strings.Contains(policy, want) {
				t.Errorf("%s: no %s in the policy %q", method, want, policy)
			}
		}
		for _, bad := range []string{"unsafe-", "*", "data:", "http:", "https:"} {
			if strings.Contains(policy, bad) {
				t.Errorf("%s: %s in the policy %q", method, bad, policy)
			}
		}
		for name, want := range map[string]string{
			"Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff", "X-Robots-Tag": "noindex", "Cache-Control": "no-store",
		} {
			if got := response.Header.Get(name); !strings.Contains(got, want) {
				t.Errorf("%s: %s is %q, want %s", method, name, got, want)
			}
		}
		if cookies := response.Header.Values("Set-Cookie"); len(cookies) > 0 {
			t.Errorf("%s: cookies %q", method, cookies)
		}
	}
}

// An order's id, or another order's page, reveals nothing.
func testInvalidTokensRevealNothing(t *testing.T, s *shop) {
	s = s.own(t)
	o, other := s.order(t, "PIX", nil), s.order(t, "BOLETO", nil)
	at := strings.LastIndex(o.page, "/") + 1
	base, token := o.page[:at], o.page[at:]
	if len(token) < 22 { // 128 bits in base 64
		t.Errorf("the token %q is short", token)
	}
	if strings.Contains(o.page, o.id) || strings.Contains(o.page, strings.ReplaceAll(o.id, "-", "")) {
		t.Errorf("the order's id is in %s", o.page)
	}
	unknown, page := fetch(t, http.MethodGet, base+strings.Repeat("A", len(token)))
	if unknown.StatusCode != http.StatusNotFound || !strings.Contains(unknown.Header.Get("Content-Type"), "text/html") {
		t.Errorf("an unknown token: %s, %s", unknown.Status, unknown.Header.Get("Content-Type"))
	}
	half := len(token) / 2
	otherToken := other.page[at:]
	for name, address := range map[string]string{
		"the order's id":         base + o.id,
		"its external id":        base + o.created.Get("externalId"),
		"nothing":                base,
		"half of it":             base + token[:half],
		"more than it":           base + token + "A",
		"in capitals":            base + strings.ToUpper(token),
		"halves of two":          base + token[:half] + otherToken[half:],
		"another letter":         base + flipped(token, len(token)-2),
		"another first letter":   base + flipped(token, 0),
		"its bill, by its id":    base + o.id + "/boleto.pdf",
		"a Pix has no bill":      base + token + "/boleto.pdf",
		"the bill of half of it": base + otherToken[:half] + "/boleto.pdf",
	} {
		response, body := fetch(t, http.MethodGet, address)
		if response.StatusCode != http.StatusNotFound || strings.Contains(body, "Padaria") {
			t.Errorf("%s: %s: %s", name, response.Status, body)
		}
		if strings.Contains(response.Header.Get("Content-Type"), "html") && body != page {
			t.Errorf("%s: another page than that of an unknown token", name)
		}
	}
	b := newTab(t, phone)
	b.expected = true // the browser notes the 404
	b.open(base + o.id)
	b.accessible("404")
	b.shot("404-phone")
}

// flipped is a token with another letter.
func flipped(token string, at int) string {
	letter := byte('A')
	if token[at] == letter {
		letter = 'B'
	}
	return token[:at] + string(letter) + token[at+1:]
}
