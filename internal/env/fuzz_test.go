package env_test

import (
	"errors"
	"net"
	"net/netip"
	"strconv"
	"testing"

	"github.com/porteira/porteira/internal/env"
)

// notPublic4 is the IANA IPv4 Special-Purpose Address Registry, and multicast.
var notPublic4 = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
	"192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24",
	"203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
)

// notPublic6 is the part of the IPv6 registry within 2000::/3, the space in use.
var notPublic6 = prefixes("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20")

func prefixes(texts ...string) (list []netip.Prefix) {
	for _, text := range texts {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
}

// FuzzGuard checks arbitrary resolved addresses and ports, and arbitrary text.
func FuzzGuard(f *testing.F) {
	for _, addresses := range refusedAddresses {
		for _, address := range addresses {
			a := netip.MustParseAddr(address)
			f.Add(a.AsSlice(), uint16(443), net.JoinHostPort(address, "80"))
		}
	}
	for _, public := range []string{"1.1.1.1", "100.63.255.255", "172.32.0.1", "2606:4700:4700::1111", "2001:200::1"} {
		f.Add(netip.MustParseAddr(public).AsSlice(), uint16(80), public)
	}
	strict := env.Guard(env.OutboundOptions{})
	private := netip.MustParsePrefix("10.0.0.0/8")
	open := env.Guard(env.OutboundOptions{AllowNetworks: []netip.Prefix{private}, AnyPort: true})
	f.Fuzz(func(t *testing.T, raw []byte, port uint16, text string) {
		if err := strict("tcp4", text, nil); err == nil {
			at, parsed := netip.ParseAddrPort(text)
			if parsed != nil || !public(at.Addr()) || at.Port() != 443 {
				t.Fatalf("%q is allowed", text)
			}
		}
		address, ok := netip.AddrFromSlice(raw)
		if !ok {
			return
		}
		network := "tcp4"
		if address.Is6() {
			network = "tcp6"
		}
		at := net.JoinHostPort(address.String(), strconv.Itoa(int(port)))
		want := public(address) && port == 443
		if err := strict(network, at, nil); (err == nil) != want || err != nil && !errors.Is(err, env.ErrBlocked) {
			t.Fatalf("%s: %v, want reachable %v", at, err, want)
		}
		want = public(address) || private.Contains(address)
		if err := open(network, at, nil); (err == nil) != want {
			t.Fatalf("%s with %s allowed: %v, want reachable %v", at, private, err, want)
		}
	})
}

// public reports whether an address is public.
func public(a netip.Addr) bool {
	special := notPublic4
	if a.Is6() {
		if a.Zone() != "" || a.As16()[0]>>5 != 1 {
			return false
		}
		special = notPublic6
	}
	for _, p := range special {
		if p.Contains(a) {
			return false
		}
	}
	return a.IsGlobalUnicast() && !a.IsPrivate()
}
