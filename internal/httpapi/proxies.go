package httpapi

import (
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/pires/go-proxyproto"

	"github.com/porteira/porteira/internal/env"
)

// Proxies are the networks of trusted reverse proxies: a proxy reports the address of its
// client, which an untrusted peer could invent.
type Proxies []netip.Prefix

func (p Proxies) trust(address netip.Addr) bool {
	return slices.ContainsFunc(p, func(network netip.Prefix) bool { return network.Contains(address) })
}

// headerClientCert is the certificate of a proxy's client, which anyone else could invent.
const headerClientCert = "Client-Cert"

// untrustedLogInterval is the shortest time between two log lines about peers that act as proxies.
const untrustedLogInterval = time.Minute

// Handler returns next, which gets the client's address in RemoteAddr, and Client-Cert from
// trusted proxies only. A peer that is not trusted and names a client is logged as an error: it
// may be a proxy that is not listed, and all its clients then have one address. A nil log
// disables that.
func (p Proxies) Handler(next http.Handler, clock env.Clock, log *slog.Logger) http.Handler {
	var untrusted tally
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		peer := addressOf(r)
		if !p.trust(peer) {
			r.Header.Del(headerClientCert)
			if log != nil && (len(r.Header["Forwarded"]) > 0 || len(r.Header["X-Forwarded-For"]) > 0) {
				if n := untrusted.add(clock.Monotonic(), untrustedLogInterval); n > 0 {
					log.ErrorContext(r.Context(), "a peer that is not in trusted-proxies names a client in Forwarded or X-Forwarded-For: "+
						"if it is your proxy, its clients share one address and one block: set trusted-proxies to its network", "peer", peer.String(), "requests", n)
				}
			}
			next.ServeHTTP(w, r)
			return
		}
		if client := p.client(peer, r.Header); client != peer {
			r.RemoteAddr = netip.AddrPortFrom(client, 0).String()
			if !client.IsValid() {
				forwarded, xForwardedFor := p.claims(peer, r.Header)
				r = withClaims(r, forwarded, xForwardedFor)
			}
		}
		next.ServeHTTP(w, r)
	})
}

// client is the address of the client: the right-most hop of Forwarded or X-Forwarded-For
// that is not a trusted proxy. A proxy appends to one of the headers, and passes on what its
// client wrote in the other one, so two headers that differ prove nothing: the result is then
// the zero address, which no allow-list has. A hop that is not an address ends at the proxy
// that reported it.
func (p Proxies) client(peer netip.Addr, header http.Header) netip.Addr {
	if !p.trust(peer) {
		return peer
	}
	forwarded, xForwardedFor := header["Forwarded"], header["X-Forwarded-For"]
	if len(forwarded) == 0 {
		return p.rightMost(peer, listed(xForwardedFor))
	}
	hops, ok := forwardedFor(forwarded)
	if !ok {
		return netip.Addr{}
	}
	client := p.rightMost(peer, hops)
	if len(xForwardedFor) > 0 && p.rightMost(peer, listed(xForwardedFor)) != client {
		return netip.Addr{}
	}
	return client
}

// claims are the clients that Forwarded and X-Forwarded-For name; zero for a header that
// cannot be read.
func (p Proxies) claims(peer netip.Addr, header http.Header) (forwarded, xForwardedFor netip.Addr) {
	if hops, ok := forwardedFor(header["Forwarded"]); ok {
		forwarded = p.rightMost(peer, hops)
	}
	return forwarded, p.rightMost(peer, listed(header["X-Forwarded-For"]))
}

// rightMost is the right-most hop that is not a trusted proxy, or the last before one that
// is not an address; the left-most if all are proxies.
func (p Proxies) rightMost(peer netip.Addr, hops []string) netip.Addr {
	at := peer
	for _, hop := range slices.Backward(hops) {
		address, ok := parseHop(hop)
		if !ok {
			return at
		}
		if at = address; !p.trust(at) {
			return at
		}
	}
	return at
}

// listed are the members of the lines of a header, in order.
func listed(lines []string) (hops []string) {
	for _, line := range lines {
		for member := range strings.SplitSeq(line, ",") {
			hops = append(hops, strings.Trim(member, " \t"))
		}
	}
	return hops
}

// parseHop parses an IP address, with or without a port: 192.0.2.1, 192.0.2.1:443,
// 2001:db8::1, [2001:db8::1] or [2001:db8::1]:443.
func parseHop(text string) (netip.Addr, bool) {
	address, err := netip.ParseAddr(text)
	if inner, ok := strings.CutPrefix(text, "["); err != nil && ok && strings.HasSuffix(inner, "]") {
		address, err = netip.ParseAddr(strings.TrimSuffix(inner, "]"))
	}
	if err != nil {
		var both netip.AddrPort
		both, err = netip.ParseAddrPort(text)
		address = both.Addr()
	}
	return address.Unmap().WithZone(""), err == nil
}

// proxyHeaderTimeout bounds how long a proxy may take to send its PROXY header.
const proxyHeaderTimeout = 5 * time.Second

// Listener returns l, whose trusted proxies begin each connection with a header of the PROXY
// protocol, version 1 or 2. Connections of others begin without one.
func (p Proxies) Listener(l net.Listener) net.Listener {
	return &proxyproto.Listener{
		Listener: l, ReadHeaderTimeout: proxyHeaderTimeout,
		ConnPolicy: func(o proxyproto.ConnPolicyOptions) (proxyproto.Policy, error) {
			if p.trust(peerOf(o.Upstream)) {
				return proxyproto.REQUIRE, nil
			}
			return proxyproto.SKIP, nil
		},
	}
}

// peerOf is the IP address of a connection; zero if there is none.
func peerOf(address net.Addr) netip.Addr {
	at, err := netip.ParseAddrPort(address.String())
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap().WithZone("")
}
