package sandboxcontrol

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Guard returns next for browsers of this machine only: the sandbox shows its credentials, and its
// controls need none. A page of another site can point a name of its own at this machine, so a Host
// that is neither an address nor one of names is answered with 421. Names without a dot, such as
// localhost or a container's, belong to the local network. What another site's page writes to
// /sandbox/ is answered with 403; programs that are no browsers are not affected.
func Guard(next http.Handler, names ...string) http.Handler {
	sameSite := http.NewCrossOriginProtection().Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !isLocalName(r.Host, names):
			http.Error(w, "This sandbox does not serve the host of the request: use its address, or set base-url.", http.StatusMisdirectedRequest)
		case strings.HasPrefix(r.URL.Path, "/sandbox/"):
			sameSite.ServeHTTP(w, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// isLocalName reports whether a Host, with or without a port, cannot be a name of another site.
func isLocalName(host string, names []string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	_, err := netip.ParseAddr(host)
	return err == nil || !strings.Contains(host, ".") || strings.HasSuffix(host, ".localhost") || slices.Contains(names, host)
}
