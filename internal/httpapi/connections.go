package httpapi

import (
	"container/list"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/pires/go-proxyproto"

	"github.com/porteira/porteira/internal/env"
)

// ConnectionLimits bound the open connections of a listener.
type ConnectionLimits struct {
	Total int
	// PerAddress bounds those of one IPv4 address or /64 of IPv6, except of trusted proxies.
	PerAddress int
	Proxies    Proxies
	Clock      env.Clock
	Log        *slog.Logger
}

// nearLimit is the part of the connections that are in use when idle ones are closed: all
// except a tenth.
const nearLimit = 10

// refusedLogInterval is the shortest time between two log lines about refused connections.
const refusedLogInterval = time.Minute

// Connections is a listener with limits. Beyond Total, connections wait in the system's
// queue. Beyond PerAddress, and for all addresses near Total, the connections that have
// been idle for longest are closed; if an address has no idle one, its new connection is
// refused.
type Connections struct {
	net.Listener
	limits ConnectionLimits
	slots  chan struct{}
	closed chan struct{}
	close  func()

	mu        sync.Mutex
	open      int
	networks  map[netip.Prefix]*network
	idle      list.List // of *connection, the longest idle first
	refused   int       // since the last log line
	refusedAt time.Duration
}

// network is the connections of one customer.
type network struct {
	open int
	idle list.List // of *connection, the longest idle first
}

// connection is one open connection.
type connection struct {
	net.Conn
	owner   *Connections
	from    netip.Prefix // zero until it is known, which may need the PROXY header
	known   sync.Once
	inAll   *list.Element // in Connections.idle; nil while it has a request
	inOwn   *list.Element // in network.idle
	closing sync.Once
	ended   bool // no longer counted
}

// Limit returns l with limits, for one server, whose ConnState must be StateChanged.
func Limit(l net.Listener, limits ConnectionLimits) *Connections {
	closed := make(chan struct{})
	return &Connections{
		Listener: l, limits: limits, slots: make(chan struct{}, limits.Total),
		closed: closed, close: sync.OnceFunc(func() { close(closed) }),
		networks: map[netip.Prefix]*network{},
	}
}

// Total is how many connections may be open.
func (c *Connections) Total() int { return c.limits.Total }

// Accept implements [net.Listener].
func (c *Connections) Accept() (net.Conn, error) {
	for {
		select {
		case c.slots <- struct{}{}:
		case <-c.closed:
			return nil, net.ErrClosed
		}
		socket, err := c.Listener.Accept()
		if err != nil {
			<-c.slots
			return nil, err
		}
		if conn := c.admit(socket); conn != nil {
			return conn, nil
		}
		<-c.slots
		_ = socket.Close()
	}
}

// Close implements [net.Listener].
func (c *Connections) Close() error {
	c.close()
	return c.Listener.Close()
}

// admit counts a new connection; nil if its address has its share of them in use.
func (c *Connections) admit(socket net.Conn) net.Conn {
	conn := &connection{Conn: socket, owner: c}
	var peer netip.Addr // zero: not known yet
	if _, late := socket.(*proxyproto.Conn); !late {
		peer = peerOf(socket.RemoteAddr())
		conn.known.Do(func() {})
	}
	c.mu.Lock()
	surplus, ok := c.join(conn, peer)
	if !ok {
		c.mu.Unlock()
		return nil
	}
	c.open++
	if surplus == nil {
		surplus = c.surplus()
	}
	c.mu.Unlock()
	surplus.end()
	return conn
}

// join counts a connection for its network; ok is false if the network has its share of them
// in use. A connection of a proxy, or of which the client is not known yet, has no share.
// surplus is to be closed.
func (c *Connections) join(conn *connection, peer netip.Addr) (surplus *connection, ok bool) {
	conn.from = env.CustomerNetwork(peer)
	n := c.networks[conn.from]
	if n == nil {
		n = &network{}
	}
	if n.open >= c.limits.PerAddress && peer.IsValid() && !c.limits.Proxies.trust(peer) {
		if surplus = c.takeIdle(&n.idle); surplus == nil {
			c.refuse()
			return nil, false
		}
	}
	n.open++
	c.networks[conn.from] = n
	return surplus, true
}

// depart ends the counting of a connection for its network.
func (c *Connections) depart(conn *connection) {
	n := c.networks[conn.from]
	if n.open--; n.open == 0 {
		delete(c.networks, conn.from)
	}
}

// RemoteAddr implements [net.Conn]. The server calls it first in the connection's own
// goroutine: it may wait for the PROXY header, after which the client is counted.
func (conn *connection) RemoteAddr() net.Addr {
	address := conn.Conn.RemoteAddr()
	conn.known.Do(func() { conn.owner.identify(conn, peerOf(address)) })
	return address
}

// identify counts a connection for the network of its client, and closes it if that has its
// share of them in use.
func (c *Connections) identify(conn *connection, client netip.Addr) {
	c.mu.Lock()
	if conn.ended {
		c.mu.Unlock()
		return
	}
	c.depart(conn)
	surplus, ok := c.join(conn, client)
	if !ok {
		surplus = conn
		_, _ = c.join(conn, netip.Addr{})
	}
	c.mu.Unlock()
	surplus.end()
}

// refuse logs refused connections, at most once per refusedLogInterval. The address is
// personal data.
func (c *Connections) refuse() {
	c.refused++
	now := c.limits.Clock.Monotonic() + 1 // never 0
	if c.refusedAt == 0 || now-c.refusedAt >= refusedLogInterval {
		c.limits.Log.Warn("connections refused: an address has max-connections-per-address; behind a proxy, set trusted-proxies",
			"refused", c.refused, "max-connections-per-address", c.limits.PerAddress)
		c.refused, c.refusedAt = 0, now
	}
}

// StateChanged is the server's ConnState.
func (c *Connections) StateChanged(socket net.Conn, state http.ConnState) {
	conn, ok := socket.(*connection)
	if !ok {
		return
	}
	c.mu.Lock()
	c.unlist(conn)
	var surplus *connection
	if state == http.StateIdle && !conn.ended {
		conn.inAll, conn.inOwn = c.idle.PushBack(conn), c.networks[conn.from].idle.PushBack(conn)
		surplus = c.surplus()
	}
	c.mu.Unlock()
	surplus.end()
}

// surplus takes the connection that has been idle for longest if few can be accepted; nil
// otherwise.
func (c *Connections) surplus() *connection {
	if c.open <= c.limits.Total-max(1, c.limits.Total/nearLimit) {
		return nil
	}
	return c.takeIdle(&c.idle)
}

// takeIdle removes the first connection of a list from the idle ones; nil if there is none.
func (c *Connections) takeIdle(from *list.List) *connection {
	first := from.Front()
	if first == nil {
		return nil
	}
	conn := first.Value.(*connection)
	c.unlist(conn)
	return conn
}

func (c *Connections) unlist(conn *connection) {
	if conn.inAll == nil {
		return
	}
	c.idle.Remove(conn.inAll)
	c.networks[conn.from].idle.Remove(conn.inOwn)
	conn.inAll, conn.inOwn = nil, nil
}

// release ends the counting of a connection.
func (c *Connections) release(conn *connection) {
	c.mu.Lock()
	c.unlist(conn)
	conn.ended = true
	c.open--
	c.depart(conn)
	c.mu.Unlock()
	<-c.slots
}

// end closes a connection that was idle; nil is ignored.
func (conn *connection) end() {
	if conn != nil {
		_ = conn.Close()
	}
}

// Close implements [net.Conn].
func (conn *connection) Close() error {
	err := conn.Conn.Close()
	conn.closing.Do(func() { conn.owner.release(conn) })
	return err
}
