package httpapi_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/httpapi"
	"github.com/porteira/porteira/internal/store"
)

var testProxies = httpapi.Proxies(prefixes("10.0.0.0/8", "2001:db8:a::/48", "127.0.0.1/32"))

// TestClientAddress has hostile headers: text of the client comes before that of the proxies.
func TestClientAddress(t *testing.T) {
	t.Parallel()
	const proxy = "10.0.0.1"
	for _, tt := range []struct {
		name, peer, forwarded, xff string // lines separated by |
		want                       string
	}{
		{"no header", proxy, "", "", proxy},
		{"an untrusted peer", "198.51.100.1", "for=1.1.1.1", "1.1.1.1", "198.51.100.1"},
		{"X-Forwarded-For", proxy, "", "203.0.113.9", "203.0.113.9"},
		{"invented hops", proxy, "", "1.1.1.1, 10.0.0.9, 2.2.2.2,203.0.113.9", "203.0.113.9"},
		{"several proxies", proxy, "", "1.1.1.1,203.0.113.9, 10.0.0.2 ,10.0.0.3", "203.0.113.9"},
		{"several lines", proxy, "", "1.1.1.1|203.0.113.9|10.0.0.3", "203.0.113.9"},
		{"only proxies", proxy, "", "10.0.0.7, 10.0.0.3", "10.0.0.7"},
		{"ports", proxy, "", "203.0.113.9:4711", "203.0.113.9"},
		{"IPv6", "2001:db8:a::1", "", "[2001:db8:ffff::9]:4711, 2001:db8:a::2", "2001:db8:ffff::9"},
		{"IPv4 in IPv6", "::ffff:10.0.0.1", "", "::ffff:203.0.113.9", "203.0.113.9"},
		{"a zone", proxy, "", "fe80::1%eth0", "fe80::1"},
		{"not an address", proxy, "", "203.0.113.9, unknown", proxy},
		{"not an address, behind a proxy", proxy, "", "203.0.113.9, _hidden, 10.0.0.5", "10.0.0.5"},
		{"empty members", proxy, "", "203.0.113.9,,", proxy},
		{"an empty header", proxy, "", " ", proxy},
		{"a list of commas", proxy, "", strings.Repeat(",", 5000), proxy},
		{"octal", proxy, "", "203.0.113.011", proxy},
		{"a short form", proxy, "", "203.9", proxy},
		{"Forwarded", proxy, "for=203.0.113.9;proto=https;by=10.0.0.1", "", "203.0.113.9"},
		{"Forwarded, other case, quoted", proxy, `by=x;FOR="[2001:db8:ffff::9]:4711"`, "", "2001:db8:ffff::9"},
		{"Forwarded, not quoted", proxy, `for=203.0.113.9:4711`, "", "203.0.113.9"},
		{"Forwarded, invented hops", proxy, `for=1.1.1.1, for="2.2.2.2" , for=203.0.113.9|for=10.0.0.4`, "", "203.0.113.9"},
		{"a comma in quotes", proxy, `for=1.1.1.1;x="a, for=2.2.2.2", for=203.0.113.9`, "", "203.0.113.9"},
		{"an escaped quote", proxy, `x="a\", for=2.2.2.2", for=203.0.113.9`, "", "203.0.113.9"},
		{"an open quote", proxy, `for=1.1.1.1, x=", for=203.0.113.9`, "", "invalid IP"},
		{"an open quote before a quoted hop", proxy, `for=1.1.1.1, x=", for="[2001:db8:ffff::9]"`, "", "invalid IP"},
		{"an escape at the end", proxy, `for="1.1.1.1\`, "", "invalid IP"},
		{"two for in one element", proxy, `for=1.1.1.1;for=203.0.113.9`, "", "invalid IP"},
		{"an element without for", proxy, `for=1.1.1.1, by=10.0.0.2`, "", proxy},
		{"obfuscated", proxy, `for=_hidden`, "", proxy},
		{"no grammar", proxy, `203.0.113.9`, "", "invalid IP"},
		{"an empty element", proxy, `for=203.0.113.9,`, "", "invalid IP"},
		{"both, equal", proxy, "for=203.0.113.9", "1.1.1.1, 203.0.113.9", "203.0.113.9"},
		{"both, one invented", proxy, "for=1.1.1.1", "203.0.113.9", "invalid IP"},
		{"both, one unreadable", proxy, "for=", "203.0.113.9", "invalid IP"},
	} {
		header := http.Header{}
		for name, text := range map[string]string{"Forwarded": tt.forwarded, "X-Forwarded-For": tt.xff} {
			if text != "" {
				header[name] = strings.Split(text, "|")
			}
		}
		peer := netip.MustParseAddr(tt.peer).Unmap()
		if got := testProxies.Client(peer, header); got.String() != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// FuzzForwarded checks that no text of a client, before what a proxy appends, changes the
// address.
func FuzzForwarded(f *testing.F) {
	for _, text := range []string{"", "1.1.1.1", "for=1.1.1.1", `for="[::1]:80";by=x`, `x="`, `x="\`, `for=1.1.1.1, x=", for=`, "unknown", "[", "::ffff:1.1.1.1%a", ",", ";", "="} {
		f.Add(text, false)
		f.Add(text, true)
	}
	peer, client := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("203.0.113.9")
	f.Fuzz(func(t *testing.T, text string, ownLine bool) {
		appended := func(hop string) []string {
			if ownLine {
				return []string{text, hop}
			}
			return []string{text + ", " + hop}
		}
		if got := testProxies.Client(peer, http.Header{"X-Forwarded-For": appended("203.0.113.9, 10.0.0.2")}); got != client {
			t.Errorf("X-Forwarded-For %q: %s", text, got)
		}
		for _, hop := range []string{"for=203.0.113.9", `for="203.0.113.9:80";proto=https`, `for="[::ffff:203.0.113.9]"`} {
			if got := testProxies.Client(peer, http.Header{"Forwarded": appended(hop)}); got != client && got.IsValid() {
				t.Errorf("Forwarded %q before %s: %s", text, hop, got)
			}
			if got := testProxies.Client(peer, http.Header{"Forwarded": {text}, "X-Forwarded-For": {"203.0.113.9"}}); got != client && got.IsValid() {
				t.Errorf("Forwarded %q beside X-Forwarded-For: %s", text, got)
			}
		}
	})
}

// Allow-lists and blocks use the client that the proxies name.
func TestBehindProxies(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.handler = testProxies.Handler(h.handler, h.clock, nil)
	h.credential("office", "s", h.first.ID, func(c *store.Credential) { c.AllowedIPs = prefixes("203.0.113.0/24") })
	proxy, office := from("10.0.0.1:1"), as("office", "s")
	xff := func(value string) sending { return header("X-Forwarded-For", value) }
	h.want("from the office", h.do("GET", "/balance", "", office, proxy, xff("1.1.1.1, 203.0.113.9")), 200, "")
	h.want("invented", h.do("GET", "/balance", "", office, proxy, xff("203.0.113.9, 1.1.1.1")), 403, "forbidden_ip")
	h.want("the proxy itself", h.do("GET", "/balance", "", office, proxy), 403, "forbidden_ip")
	h.want("an untrusted peer", h.do("GET", "/balance", "", office, from("1.1.1.1:1"), xff("203.0.113.9")), 403, "forbidden_ip")
	for range 20 {
		h.want("wrong", h.do("GET", "/balance", "", as("key1", "wrong"), proxy, xff("1.1.1.1")), 401, "unauthorized")
	}
	h.want("blocked", h.do("GET", "/balance", "", as("key1", "wrong"), proxy, xff("1.1.1.1")), 429, "rate_limited")
	h.want("another client of the proxy", h.do("GET", "/balance", "", as("key1", "wrong"), proxy, xff("2.2.2.2")), 401, "unauthorized")
}

// Clients whose two headers differ are counted each by the header that its proxy wrote,
// whichever that is. One of them blocks neither the others nor clients whose address is proven.
func TestContradictingHeadersAreCountedApart(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ proxy, client string }{{"X-Forwarded-For", "Forwarded"}, {"Forwarded", "X-Forwarded-For"}} {
		t.Run(row.proxy+" is the proxy's", func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, func(o *httpapi.Options) {
				o.PublicMerchant[0], o.AnyWebhookHost = 1, true
				o.AnonymousRate = httpapi.Rate{PerSecond: 1, Burst: 5}
			})
			h.handler = testProxies.Handler(h.handler, h.clock, nil)
			value := map[string]string{"Forwarded": "for=", "X-Forwarded-For": ""}
			behind := func(address, invented string) sending {
				return func(r *http.Request) {
					from("10.0.0.1:1")(r)
					header(row.proxy, value[row.proxy]+address)(r)
					header(row.client, value[row.client]+invented)(r)
				}
			}
			for i := range 20 { // each time with another invention
				h.want("wrong", h.do("GET", "/balance", "", as("key1", "wrong"), behind("1.1.1.1", fmt.Sprintf("9.9.9.%d", i))), 401, "unauthorized")
			}
			wrong := as("key1", "wrong")
			h.want("blocked", h.do("GET", "/balance", "", wrong, behind("1.1.1.1", "9.9.8.1")), 429, "rate_limited")
			h.want("another client whose headers differ", h.do("GET", "/balance", "", wrong, behind("2.2.2.2", "192.168.0.1")), 401, "unauthorized")
			h.want("the same one, proven", h.do("GET", "/balance", "", wrong, behind("1.1.1.1", "1.1.1.1")), 401, "unauthorized")
			h.want("who was invented, proven", h.do("GET", "/balance", "", wrong, behind("9.9.9.1", "9.9.9.1")), 401, "unauthorized")
			order := func(i int, address, invented string) answer {
				return h.do("POST", "/payin", strings.Replace(payinBody, "r1", fmt.Sprint(address, i), 1), anonymously, behind(address, invented))
			}
			for i := range 5 {
				h.want("anonymous", order(i, "1.1.1.1", fmt.Sprintf("9.9.9.%d", i)), 201, "")
			}
			h.want("too many", order(5, "1.1.1.1", "9.9.7.1"), 429, "rate_limited")
			h.want("another client whose headers differ", order(0, "2.2.2.2", "192.168.0.1"), 201, "")
		})
	}
}

// TestClientCert: the certificate of a proxy's client is what a trusted proxy says.
func TestClientCert(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		proxies httpapi.Proxies
		peer    string
		want    string
	}{
		"a trusted proxy": {testProxies, "10.0.0.1:1", ":AAAA:"},
		"anyone":          {testProxies, "198.51.100.1:1", ""},
		"without proxies": {nil, "127.0.0.1:1", ""},
	} {
		got := "not called"
		h := c.proxies.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Get("Client-Cert") }), nil, nil)
		r := httptest.NewRequest(http.MethodPost, "/inbound/a/b", http.NoBody)
		r.RemoteAddr = c.peer
		r.Header.Set("Client-Cert", ":AAAA:")
		h.ServeHTTP(httptest.NewRecorder(), r)
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A peer that names a client and is not trusted may be a proxy that the operator forgot.
func TestUntrustedPeersThatNameAClientAreLogged(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.handler = testProxies[:1].Handler(h.handler, h.clock, slog.New(slog.NewJSONHandler(h.log, nil)))
	lines := func() int {
		return strings.Count(h.log.String(), `"level":"ERROR","msg":"a peer that is not in trusted-proxies`)
	}
	for _, row := range []struct {
		peer, header, value string
		after               time.Duration
		lines               int
	}{
		{"10.0.0.1:1", "X-Forwarded-For", "192.0.2.1", 0, 0},
		{"127.0.0.1:1", "Accept", "*/*", 0, 0},
		{"127.0.0.1:1", "X-Forwarded-For", "192.0.2.1", 0, 1},
		{"127.0.0.1:1", "Forwarded", "for=192.0.2.1", 59 * time.Second, 1},
		{"127.0.0.1:1", "Forwarded", "for=192.0.2.1", time.Second, 2},
	} {
		h.clock.Advance(row.after)
		h.want(row.header, h.do("GET", "/balance", "", from(row.peer), header(row.header, row.value)), 200, "")
		if n := lines(); n != row.lines {
			t.Errorf("%s from %s: %d lines, want %d", row.header, row.peer, n, row.lines)
		}
	}
	if log := h.log.String(); !strings.Contains(log, `"peer":"127.0.0.1","requests":2}`) {
		t.Errorf("the log is %s", log)
	}
}
