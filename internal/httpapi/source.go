package httpapi

import (
	"context"
	"net/http"
	"net/netip"

	"github.com/porteira/porteira/internal/env"
)

// source is what rates and blocks count: the network of a client's address, or what one header
// claims it to be if two headers contradict each other.
type source struct {
	network netip.Prefix
	claim   claim
}

type claim uint8

const (
	proven claim = iota
	ofForwarded
	ofXForwardedFor
)

type claimsKey struct{}

// withClaims returns a request whose client's address is not proven, because the headers
// claim different ones. The zero address is a header that cannot be read.
func withClaims(r *http.Request, forwarded, xForwardedFor netip.Addr) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), claimsKey{}, [2]netip.Addr{forwarded, xForwardedFor}))
}

// sourcesOf are the sources of a request. A client that forges one of two headers is counted
// by the one that its proxy wrote, whichever that is, and apart from clients whose address is
// proven: it can neither change its source nor take the share of all whose headers
// contradict each other.
func sourcesOf(r *http.Request) []source {
	address := addressOf(r)
	if claims, ok := r.Context().Value(claimsKey{}).([2]netip.Addr); ok && !address.IsValid() {
		return []source{{env.CustomerNetwork(claims[0]), ofForwarded}, {env.CustomerNetwork(claims[1]), ofXForwardedFor}}
	}
	return []source{{env.CustomerNetwork(address), proven}}
}
