package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
)

// cut is a point at which a connection to PostgreSQL breaks.
type cut string

const (
	cutNever      cut = ""
	cutBefore     cut = "before COMMIT"      // the server does not get it
	cutAt         cut = "right after COMMIT" // it was sent, and the connection is closed at once
	cutAnswered   cut = "before its answer"  // the server has committed, and its answer is lost
	cutBetween    cut = "between messages"   // anywhere else
	cutEverything cut = "all connections"    // at once, as if a switch died
)

// cuts are drawn from this list; those around COMMIT matter most.
var cuts = []cut{cutBefore, cutBefore, cutAt, cutAt, cutAnswered, cutAnswered, cutBetween, cutEverything}

// proxy carries a gateway's connections to PostgreSQL. It parses the boundaries of
// the protocol's messages (PostgreSQL manual, chapter "Frontend/Backend Protocol")
// and breaks connections there.
type proxy struct {
	listen, server string
	counted        func(cut) // called for each cut

	listener    net.Listener
	connections sync.WaitGroup
	next        atomic.Pointer[plannedCut]

	mu   sync.Mutex
	open map[*connection]bool
}

// plannedCut happens after some messages of its kind have passed.
type plannedCut struct {
	cut  cut
	left atomic.Int64
}

// connection is one connection: the gateway's side and the server's.
type connection struct {
	proxy          *proxy
	client, server net.Conn
	dropAnswer     atomic.Bool // the server's next message is dropped, and the connection cut
}

// plan makes the proxy cut after n messages of the cut's kind.
func (p *proxy) plan(c cut, n int) {
	switch c {
	case cutNever:
		p.next.Store(nil)
	case cutEverything:
		p.cutAll()
	default:
		planned := &plannedCut{cut: c}
		planned.left.Store(int64(n))
		p.next.Store(planned)
	}
}

func (p *proxy) cutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.open) > 0 {
		p.counted(cutEverything)
	}
	for c := range p.open {
		c.close()
	}
}

// due returns the cut that is due at a message; commit says whether the message is
// a COMMIT.
func (p *proxy) due(commit bool) cut {
	planned := p.next.Load()
	if planned == nil || commit == (planned.cut == cutBetween) || planned.left.Add(-1) >= 0 || !p.next.CompareAndSwap(planned, nil) {
		return cutNever
	}
	p.counted(planned.cut)
	return planned.cut
}

// start accepts connections until close.
func (p *proxy) start(ctx context.Context) error {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp4", p.listen)
	if err != nil {
		return err
	}
	p.listener, p.open = listener, map[*connection]bool{}
	p.connections.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			p.connections.Go(func() { p.carry(client) })
		}
	})
	return nil
}

// close closes the proxy and all its connections.
func (p *proxy) close() {
	if p.listener == nil {
		return
	}
	_ = p.listener.Close()
	p.mu.Lock()
	for c := range p.open {
		c.close()
	}
	p.mu.Unlock()
	p.connections.Wait()
}

func (p *proxy) carry(client net.Conn) {
	server, err := net.Dial("tcp4", p.server) //nolint:noctx // a server on this machine accepts at once or not at all
	if err != nil {
		_ = client.Close()
		return
	}
	c := &connection{proxy: p, client: client, server: server}
	p.mu.Lock()
	p.open[c] = true
	p.mu.Unlock()
	var both sync.WaitGroup
	both.Go(c.forward)
	both.Go(c.backward)
	both.Wait()
	p.mu.Lock()
	delete(p.open, c)
	p.mu.Unlock()
}

// close closes both sides.
func (c *connection) close() {
	_ = c.client.Close()
	_ = c.server.Close()
}

// forward carries the gateway's messages. The first has no type.
func (c *connection) forward() {
	defer c.close()
	from := bufio.NewReader(c.client)
	first, err := readMessage(from, 0)
	if err != nil {
		return
	}
	if _, err := c.server.Write(first); err != nil {
		return
	}
	for {
		m, err := readMessage(from, 1)
		if err != nil {
			return
		}
		due := c.proxy.due(m.commits())
		switch due {
		case cutBefore, cutBetween:
			return
		case cutAt, cutAnswered:
			c.dropAnswer.Store(true)
		}
		if _, err := c.server.Write(m); err != nil || due == cutAt {
			return
		}
	}
}

// backward carries the server's messages.
func (c *connection) backward() {
	defer c.close()
	from := bufio.NewReader(c.server)
	for {
		m, err := readMessage(from, 1)
		if err != nil || c.dropAnswer.Load() || c.proxy.due(false) != cutNever {
			return
		}
		if _, err := c.client.Write(m); err != nil {
			return
		}
	}
}

// message is a message of the protocol: type, length, content.
type message []byte

// messageMax bounds a message, in bytes; ours are far smaller.
const messageMax = 64 << 20

var errMessage = errors.New("a message of impossible length")

// readMessage reads a message whose type has this many bytes: 1, or 0 in the first
// message of a client.
func readMessage(from *bufio.Reader, kind int) (message, error) {
	head, err := from.Peek(kind + 4)
	if err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint32(head[kind:])
	if length < 4 || length > messageMax {
		return nil, errMessage
	}
	m := make(message, kind+int(length))
	_, err = io.ReadFull(from, m)
	return m, err
}

// commits reports whether the message is a simple query with COMMIT.
func (m message) commits() bool {
	return m[0] == 'Q' && strings.EqualFold(strings.TrimRight(string(m[5:]), "\x00; "), "commit")
}
