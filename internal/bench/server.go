package bench

import (
	"bufio"
	"bytes"
	"context"
	"net"
	"strconv"
	"sync"
)

// server is a minimal HTTP/1.1 server for one trusted client, the gateway. It needs
// little CPU.
type server struct {
	listener net.Listener
	// handle appends the complete answer to a request.
	handle func(method, path, body, out []byte) []byte

	conns sync.WaitGroup
	mu    sync.Mutex
	open  map[net.Conn]bool // nil once it is closed
}

// listen serves on an address until close.
func listen(ctx context.Context, address string, handle func(method, path, body, out []byte) []byte) (*server, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	s := &server{listener: l, handle: handle, open: map[net.Conn]bool{}}
	s.conns.Go(s.accept)
	return s, nil
}

// url is the server's address.
func (s *server) url() string { return "http://" + s.listener.Addr().String() }

func (s *server) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return // closed
		}
		s.mu.Lock()
		if s.open == nil {
			s.mu.Unlock()
			_ = c.Close()
			return
		}
		s.open[c] = true
		s.mu.Unlock()
		s.conns.Go(func() { s.serve(c) })
	}
}

func (s *server) serve(c net.Conn) {
	defer func() {
		_ = c.Close()
		s.mu.Lock()
		delete(s.open, c)
		s.mu.Unlock()
	}()
	r := bufio.NewReaderSize(c, headerLineMax)
	var m message
	var out []byte
	for !m.closes {
		if m.read(r) != nil {
			return // the client closed the connection
		}
		method, rest, _ := bytes.Cut(m.startLine, []byte{' '})
		path, _, _ := bytes.Cut(rest, []byte{' '})
		out = s.handle(method, path, m.body, out[:0])
		if _, err := c.Write(out); err != nil {
			return
		}
	}
}

// close closes the server and its connections.
func (s *server) close() {
	_ = s.listener.Close()
	s.mu.Lock()
	for c := range s.open {
		_ = c.Close()
	}
	s.open = nil
	s.mu.Unlock()
	s.conns.Wait()
}

// appendAnswer appends a JSON answer.
func appendAnswer(out []byte, status string, body []byte) []byte {
	out = append(out, "HTTP/1.1 "...)
	out = append(out, status...)
	out = append(out, "\r\nContent-Type: application/json\r\nContent-Length: "...)
	out = strconv.AppendInt(out, int64(len(body)), 10)
	out = append(out, "\r\n\r\n"...)
	return append(out, body...)
}
