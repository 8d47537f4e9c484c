package env

import "net/netip"

// NetworkOf is the network that a provider assigns to one customer, of a remote address in
// the form host:port: an IPv4 address, or a /64 of IPv6. It is zero if there is no address.
func NetworkOf(remote string) netip.Prefix {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Prefix{}
	}
	return CustomerNetwork(at.Addr().Unmap().WithZone(""))
}

// CustomerNetwork is NetworkOf for an IP address; zero for an invalid one.
func CustomerNetwork(address netip.Addr) netip.Prefix {
	bits := 32
	if address.Is6() {
		bits = 64
	}
	network, err := address.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return network
}

// UsualNetwork is a network with the addresses that clients have: one of IPv4 in its IPv6 form,
// such as ::ffff:203.0.113.0/120, would contain none of them.
func UsualNetwork(p netip.Prefix) netip.Prefix {
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p.Masked()
}
