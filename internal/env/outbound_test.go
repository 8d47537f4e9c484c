package env_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/porteira/porteira/internal/env"
)

// refusedAddresses are forms of addresses that webhooks may not reach, by rule.
var refusedAddresses = map[string][]string{
	"this network (RFC 791)": {"0.0.0.0", "0.0.0.1", "0.255.255.255"},
	"private (RFC 1918)": {
		"10.0.0.0", "10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.0.1", "192.168.255.255",
	},
	"carrier-grade NAT (RFC 6598)":      {"100.64.0.0", "100.64.0.1", "100.100.100.200", "100.127.255.255"},
	"loopback (RFC 1122)":               {"127.0.0.1", "127.0.0.2", "127.1.2.3", "127.255.255.255"},
	"link-local and metadata":           {"169.254.0.1", "169.254.169.254", "169.254.170.2", "169.254.169.253"},
	"IETF protocol (RFC 6890)":          {"192.0.0.1", "192.0.0.8", "192.0.0.170", "192.0.0.192"},
	"documentation (RFC 5737)":          {"192.0.2.1", "198.51.100.7", "203.0.113.200"},
	"AS112, AMT, 6to4 relay":            {"192.31.196.1", "192.52.193.1", "192.88.99.1", "192.175.48.1"},
	"benchmarking (RFC 2544)":           {"198.18.0.1", "198.19.255.255"},
	"multicast":                         {"224.0.0.1", "224.0.0.251", "239.255.255.250"},
	"reserved and broadcast (RFC 1112)": {"240.0.0.1", "255.255.255.254", "255.255.255.255"},
	"IPv6 unspecified, loopback":        {"::", "::1", "0:0:0:0:0:0:0:1", "::0001"},
	"IPv4-mapped (RFC 4291)": {
		"::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:10.0.0.1", "::ffff:a00:1", "::ffff:192.168.1.1",
		"::ffff:169.254.169.254", "::ffff:a9fe:a9fe", "::ffff:100.64.0.1", "::ffff:0.0.0.0", "0:0:0:0:0:ffff:7f00:1",
	},
	"IPv4-compatible (RFC 4291)":     {"::127.0.0.1", "::7f00:1", "::10.0.0.1", "::169.254.169.254"},
	"IPv4-translated (RFC 2765)":     {"::ffff:0:127.0.0.1", "::ffff:0:a00:1"},
	"NAT64 (RFC 6052, RFC 8215)":     {"64:ff9b::7f00:1", "64:ff9b::10.0.0.1", "64:ff9b::808:808", "64:ff9b:1::a00:1"},
	"discard-only (RFC 6666)":        {"100::1"},
	"Teredo, ORCHID, benchmarking":   {"2001::1", "2001:0:7f00:1::", "2001:10::1", "2001:20::1", "2001:2::1"},
	"6to4 (RFC 3056)":                {"2002:7f00:1::", "2002:a00:1::1", "2002:a9fe:a9fe::1", "2002:c0a8:101::1"},
	"IPv6 documentation":             {"2001:db8::1", "2001:db8:ffff::1", "3fff::1", "3fff:fff::1"},
	"IPv6 AS112":                     {"2620:4f:8000::1"},
	"unique local (RFC 4193)":        {"fc00::1", "fd00::1", "fd00:ec2::254", "fdff:ffff::1"},
	"link-local (RFC 4291)":          {"fe80::1", "fe80::a9fe:a9fe", "febf::1"},
	"site-local (RFC 3879)":          {"fec0::1"},
	"IPv6 multicast":                 {"ff02::1", "ff05::2", "ff0e::1"},
	"segment routing (RFC 9602)":     {"5f00::1"},
	"unassigned space":               {"4000::1", "8000::1", "e000::1"},
	"zones":                          {"fe80::1%lo", "fe80::1%1", "::1%lo", "2606:4700::1%lo"},
	"edges of ranges":                {"100.127.0.1", "172.31.0.1", "198.19.0.1"},
	"Alibaba, Oracle, AWS metadata":  {"100.100.100.100", "192.0.0.192", "fd00:ec2::23"},
	"router and resolver on the LAN": {"192.168.1.1", "10.0.0.2", "172.17.0.1", "127.0.0.53"},
}

// TestRefusedAddresses resolves a name to each address: no connection may be opened.
func TestRefusedAddresses(t *testing.T) {
	t.Parallel()
	count := 0
	for rule, addresses := range refusedAddresses {
		for _, address := range addresses {
			count++
			transport := env.NewOutbound(env.OutboundOptions{Resolve: resolveTo(t, address)}).Webhooks()
			for _, scheme := range []string{"http", "https"} {
				_, err := get(t, transport, scheme+"://merchant.example/hook")
				if !errors.Is(err, env.ErrBlocked) {
					t.Errorf("%s: %s://%s: err = %v, want refused", rule, scheme, address, err)
				}
			}
		}
	}
	if count < 100 {
		t.Errorf("only %d addresses", count)
	}
}

// TestRefusedHosts connects to forms of this machine's own address, at a server that
// counts connections.
func TestRefusedHosts(t *testing.T) {
	t.Parallel()
	server, hits := countingServer(t)
	port := portOf(t, server)
	for _, host := range []string{
		"127.0.0.1", "localhost", "LOCALHOST", "localhost.", "127.1", "127.0.1", "0", "0.0.0.0", "2130706433",
		"0x7f000001", "0x7f.0x0.0x0.0x1", "0177.0.0.1", "017700000001", "127.0.0.1.", "[::1]", "[::]",
		"[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[::1%25lo]",
		"①②⑦.⓪.⓪.①", "127。0。0。1",
	} {
		// Forms that a C library accepts, and names that the machine resolves.
		likeC := func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		}
		for _, opts := range []env.OutboundOptions{{AnyPort: true}, {AnyPort: true, Resolve: likeC}} {
			target := &url.URL{Scheme: "http", Host: host + ":" + port, Path: "/"}
			if strings.Contains(host, "%25") {
				target, _ = url.Parse("http://" + host + ":" + port + "/")
			}
			request := (&http.Request{Method: http.MethodGet, URL: target, Header: http.Header{}}).WithContext(t.Context())
			response, err := env.NewOutbound(opts).Webhooks().RoundTrip(request)
			if err == nil {
				_ = response.Body.Close()
				t.Errorf("%s was reached", host)
			}
			if opts.Resolve != nil && !strings.HasPrefix(host, "[") && !errors.Is(err, env.ErrBlocked) {
				t.Errorf("%s: err = %v, want refused", host, err)
			}
		}
	}
	if n := hits.Load(); n != 0 {
		t.Errorf("%d connections arrived", n)
	}
}

func TestAllowedAddresses(t *testing.T) {
	t.Parallel()
	check := env.Guard(env.OutboundOptions{})
	for _, public := range []string{
		"1.1.1.1:443", "8.8.8.8:443", "100.63.255.255:443", "100.128.0.1:443", "172.15.0.1:443", "172.32.0.1:443",
		"192.167.1.1:443", "169.253.1.1:443", "198.17.0.1:443", "223.255.255.255:443", "11.0.0.1:443",
	} {
		if err := check("tcp4", public, nil); err != nil {
			t.Errorf("%s: %v", public, err)
		}
	}
	for _, public := range []string{"[2606:4700:4700::1111]:443", "[2804:14c::1]:443", "[2001:200::1]:443"} {
		if err := check("tcp6", public, nil); err != nil {
			t.Errorf("%s: %v", public, err)
		}
	}
	for _, refused := range []string{"1.1.1.1:22", "1.1.1.1:80", "1.1.1.1:8080", "1.1.1.1:0", "1.1.1.1:65535", "nonsense", ""} {
		if err := check("tcp4", refused, nil); !errors.Is(err, env.ErrBlocked) {
			t.Errorf("%s: err = %v, want refused", refused, err)
		}
	}
	for _, network := range []string{"udp4", "unix", "ip4:icmp"} {
		if err := check(network, "1.1.1.1:443", nil); !errors.Is(err, env.ErrBlocked) {
			t.Errorf("%s: err = %v, want refused", network, err)
		}
	}
}

func TestAllowNetworks(t *testing.T) {
	t.Parallel()
	server, hits := countingServer(t)
	opts := env.OutboundOptions{
		AnyPort: true,
		// Not masked, as an operator may write it.
		AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/8"), netip.MustParsePrefix("::1/128")},
	}
	body, err := get(t, env.NewOutbound(opts).Webhooks(), server.URL)
	if err != nil || body != "here" {
		t.Fatalf("an allowed network: %q, %v", body, err)
	}
	opts.AnyPort = false
	if _, err := get(t, env.NewOutbound(opts).Webhooks(), server.URL); !errors.Is(err, env.ErrBlocked) {
		t.Errorf("another port: err = %v", err)
	}
	opts = env.OutboundOptions{AnyPort: true, AllowNetworks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	if _, err := get(t, env.NewOutbound(opts).Webhooks(), server.URL); !errors.Is(err, env.ErrBlocked) {
		t.Errorf("another network: err = %v", err)
	}
	if _, err := get(t, env.NewOutbound(env.OutboundOptions{}).Processor(), server.URL); err != nil {
		t.Errorf("the operator's own processor: %v", err)
	}
	if n := hits.Load(); n != 2 {
		t.Errorf("%d requests arrived, want 2", n)
	}
}

// TestRebinding uses a name that first resolves to a public address, then to this
// machine: each address is checked when it is dialled.
func TestRebinding(t *testing.T) {
	t.Parallel()
	server, hits := countingServer(t)
	var lookups atomic.Int64
	opts := env.OutboundOptions{AnyPort: true, Resolve: func(context.Context, string) ([]netip.Addr, error) {
		if lookups.Add(1) == 1 {
			return nil, errors.New("no such host")
		}
		return []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("127.0.0.1")}, nil
	}}
	transport := env.NewOutbound(opts).Webhooks()
	target := "http://rebind.example:" + portOf(t, server)
	var dns *net.DNSError
	if _, err := get(t, transport, target); !errors.As(err, &dns) || errors.Is(err, env.ErrBlocked) {
		t.Errorf("a name that does not resolve: %v", err)
	}
	if _, err := get(t, transport, target); !errors.Is(err, env.ErrBlocked) {
		t.Errorf("rebound: err = %v", err)
	}
	if n := hits.Load(); n != 0 {
		t.Errorf("%d requests arrived", n)
	}
}

// TestTransport: no proxy from the environment, no redirects, no decompression, and
// bounded headers.
func TestTransport(t *testing.T) {
	proxy, proxied := countingServer(t)
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY"} {
		t.Setenv(name, proxy.URL)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, proxy.URL, http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/encoding", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("Accept-Encoding"))
	})
	mux.HandleFunc("/headers", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Long", strings.Repeat("x", 1<<20))
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	outbound := env.NewOutbound(env.OutboundOptions{AnyPort: true, AllowNetworks: loopback})
	for name, transport := range map[string]http.RoundTripper{
		"webhooks": outbound.Webhooks(), "processor": outbound.Processor(),
	} {
		if body, err := get(t, transport, server.URL+"/encoding"); err != nil || body != "" {
			t.Errorf("%s accepts encoding %q, err %v", name, body, err)
		}
		if _, err := get(t, transport, server.URL+"/headers"); err == nil {
			t.Errorf("%s accepted a megabyte of headers", name)
		}
		if _, err := get(t, transport, server.URL+"/away"); err != nil {
			t.Errorf("%s: a redirect must be returned as the answer: %v", name, err)
		}
		if _, err := get(t, transport, "file:///etc/passwd"); err == nil {
			t.Errorf("%s reads files", name)
		}
	}
	if n := proxied.Load(); n != 0 {
		t.Errorf("%d requests went to the proxy or followed the redirect", n)
	}
	for _, transport := range []http.RoundTripper{outbound.Webhooks(), outbound.Processor()} {
		(&http.Client{Transport: transport}).CloseIdleConnections()
	}
}

func resolveTo(t *testing.T, address string) func(context.Context, string) ([]netip.Addr, error) {
	t.Helper()
	addr, err := netip.ParseAddr(address)
	if err != nil {
		t.Fatalf("bad address in the table: %v", err)
	}
	return func(context.Context, string) ([]netip.Addr, error) { return []netip.Addr{addr}, nil }
}

func countingServer(t *testing.T) (*httptest.Server, *atomic.Int64) {
	t.Helper()
	var hits atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		hits.Add(1)
		_, _ = io.WriteString(w, "here")
	}))
	t.Cleanup(server.Close)
	return server, &hits
}

func portOf(t *testing.T, server *httptest.Server) string {
	t.Helper()
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func get(t *testing.T, transport http.RoundTripper, target string) (string, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}
