package app

import (
	"net"

	"golang.org/x/net/netutil"
)

// bounded limits l to max-connections at once; further connections wait in the
// system's queue. Each costs about 20 kB and a file descriptor. Half of the
// descriptors are left to the database and to outgoing calls.
func (a *App) bounded(l net.Listener) net.Listener {
	n := a.cfg.MaxConnections
	if files := filesMax(); files > 0 && n > files/2 {
		n = max(1, files/2)
		a.log.Warn("connections limited below max-connections: the limit of open files is too low",
			"connections", n, "max-connections", a.cfg.MaxConnections, "files", files)
	}
	return netutil.LimitListener(l, n)
}
