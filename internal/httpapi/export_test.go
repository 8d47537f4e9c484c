package httpapi

import (
	"net/http"
	"net/netip"
)

// Route is a row of the table of routes, for tests.
type Route struct{ Method, Path, Scope string }

// Routes is the table of routes.
func Routes() []Route {
	list := make([]Route, len(routes))
	for i, rt := range routes {
		list[i] = Route{rt.method, rt.path, rt.scope}
	}
	return list
}

// AnyCredential is the scope of routes for every credential.
const AnyCredential = anyCredential

// LoginsMax bounds the entries of wrong secrets.
const LoginsMax = loginsMax

// Logins is the number of pairs of key and address with wrong secrets.
func Logins(h http.Handler) int {
	l := h.(*API).logins
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.pairs)
}

// Client is the client's address behind proxies.
func (p Proxies) Client(peer netip.Addr, header http.Header) netip.Addr {
	return p.client(peer, header)
}
