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

// cut says where a connection to PostgreSQL breaks.
type cut string

const (
	cutNever      cut = ""
	cutBefore     cut = "before COMMIT"      // the server never hears of it
	cutAt         cut = "right after COMMIT" // it was handed over, and nobody waits for an answer
	cutAnswered   cut = "before its answer"  // the server has done it, and its answer is lost
	cutBetween    cut = "between messages"   // anywhere else
	cutEverything cut = "all connections"    // at once, as where a switch dies
)

// cuts are drawn from; those around COMMIT are what matters most.
var cuts = []cut{cutBefore, cutBefore, cutAt, cutAt, cutAnswered, cutAnswered, cutBetween, cutEverything}

// wire carries a gateway's connections to PostgreSQL. It knows where messages
// of the protocol begin and end (PostgreSQL manual, chapter "Frontend/Backend
// Protocol"), and breaks connections there.
type wire struct {
	listen, server string
	counted        func(cut) // is told of each cut that came to pass

	listener net.Listener
	lines    sync.WaitGroup
	next     atomic.Pointer[plan]

	mu   sync.Mutex
	open map[*line]bool
}

// plan is a cut that is to come, after some messages of its kind have passed.
type plan struct {
	cut  cut
	left atomic.Int64
}

// line is one connection: the gateway's side and the server's.
type line struct {
	wire           *wire
	client, server net.Conn
	deaf           atomic.Bool // the server's next message is the last
}

// arm has the wire cut when n messages of the cut's kind have passed.
func (w *wire) arm(c cut, n int) {
	if c == cutNever {
		w.next.Store(nil)
		return
	}
	if c == cutEverything {
		w.cutAll()
		return
	}
	p := &plan{cut: c}
	p.left.Store(int64(n))
	w.next.Store(p)
}

func (w *wire) cutAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.open) > 0 {
		w.counted(cutEverything)
	}
	for l := range w.open {
		l.end()
	}
}

// due says which cut is due at a message; commit is whether it is a COMMIT.
func (w *wire) due(commit bool) cut {
	p := w.next.Load()
	if p == nil || commit == (p.cut == cutBetween) || p.left.Add(-1) >= 0 || !w.next.CompareAndSwap(p, nil) {
		return cutNever
	}
	w.counted(p.cut)
	return p.cut
}

// start begins to carry, until close.
func (w *wire) start(ctx context.Context) error {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp4", w.listen)
	if err != nil {
		return err
	}
	w.listener, w.open = listener, map[*line]bool{}
	w.lines.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			w.lines.Go(func() { w.carry(client) })
		}
	})
	return nil
}

// close ends the wire and all its lines.
func (w *wire) close() {
	if w.listener == nil {
		return
	}
	_ = w.listener.Close()
	w.mu.Lock()
	for l := range w.open {
		l.end()
	}
	w.mu.Unlock()
	w.lines.Wait()
}

func (w *wire) carry(client net.Conn) {
	server, err := net.Dial("tcp4", w.server) //nolint:noctx // a server on this machine answers at once or not at all
	if err != nil {
		_ = client.Close()
		return
	}
	l := &line{wire: w, client: client, server: server}
	w.mu.Lock()
	w.open[l] = true
	w.mu.Unlock()
	var both sync.WaitGroup
	both.Go(l.forth)
	both.Go(l.back)
	both.Wait()
	w.mu.Lock()
	delete(w.open, l)
	w.mu.Unlock()
}

// end breaks the connection to both sides.
func (l *line) end() {
	_ = l.client.Close()
	_ = l.server.Close()
}

// forth carries what the gateway says. The first message has no type.
func (l *line) forth() {
	defer l.end()
	from := bufio.NewReader(l.client)
	first, err := readMessage(from, 0)
	if err != nil {
		return
	}
	if _, err := l.server.Write(first); err != nil {
		return
	}
	for {
		m, err := readMessage(from, 1)
		if err != nil {
			return
		}
		c := l.wire.due(m.commits())
		switch c {
		case cutBefore, cutBetween:
			return
		case cutAnswered:
			l.deaf.Store(true)
		}
		if _, err := l.server.Write(m); err != nil || c == cutAt {
			return
		}
	}
}

// back carries what the server says.
func (l *line) back() {
	defer l.end()
	from := bufio.NewReader(l.server)
	for {
		m, err := readMessage(from, 1)
		if err != nil || l.deaf.Load() || l.wire.due(false) != cutNever {
			return
		}
		if _, err := l.client.Write(m); err != nil {
			return
		}
	}
}

// message is a message of the protocol: type, length, content.
type message []byte

// messageMax bounds a message; none of ours comes near.
const messageMax = 64 << 20

var errMessage = errors.New("a message of impossible length")

// readMessage reads a message whose type takes so many bytes: 1, but 0 in the
// first that a client says.
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

// commits says whether the message is a simple query that is a COMMIT.
func (m message) commits() bool {
	return m[0] == 'Q' && strings.EqualFold(strings.TrimRight(string(m[5:]), "\x00; "), "commit")
}
