package app

import (
	"net"

	"golang.org/x/net/netutil"
)

// bounded accepts at most so many connections at once; who comes then waits in
// the system's queue until one ends. Each costs some 20 kB and a file
// descriptor, of which the database and the calls to others need some as well:
// where the process may have fewer than twice as many, half of those.
func (a *App) bounded(l net.Listener) net.Listener {
	n := a.cfg.MaxConnections
	if files := filesMax(); files > 0 && n > files/2 {
		n = max(1, files/2)
		a.log.Warn("fewer connections are taken than max-connections says: the process may have too few open files",
			"connections", n, "max-connections", a.cfg.MaxConnections, "files", files)
	}
	return netutil.LimitListener(l, n)
}
