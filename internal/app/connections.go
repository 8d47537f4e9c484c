package app

import (
	"fmt"
	"net"

	"github.com/porteira/porteira/internal/httpapi"
)

// sharePart is the part of the connections that one address may have by default: a quarter.
const sharePart = 4

// bounded limits l to max-connections at once, and each address to its share. Each costs
// about 20 kB and a file descriptor. Half of the descriptors are left to the database and
// to outgoing calls.
func (a *App) bounded(l net.Listener) *httpapi.Connections {
	n := a.cfg.MaxConnections
	if files := filesMax(); files > 0 && n > files/2 {
		n = max(1, files/2)
		a.log.Warn(fmt.Sprintf("at most %d connections are open at once, not the %d of max-connections: raise this process's limit of open files (ulimit -n, LimitNOFILE) from %d to %d",
			n, a.cfg.MaxConnections, files, 2*a.cfg.MaxConnections))
	}
	share := a.cfg.MaxConnectionsPerAddress
	if share == 0 {
		share = max(1, n/sharePart)
	}
	proxies := httpapi.Proxies(a.cfg.TrustedProxies)
	if a.cfg.ProxyProtocol {
		l = proxies.Listener(l)
	}
	return httpapi.Limit(l, httpapi.ConnectionLimits{Total: n, PerAddress: share, Proxies: proxies, Clock: a.env.Clock, Log: a.log})
}
