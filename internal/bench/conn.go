package bench

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/porteira/porteira/internal/env"
)

// Limits of a message.
const (
	headerLineMax = 32 << 10 // bytes of one header line
	bodyMax       = 16 << 20 // bytes of a body
)

// message is an HTTP/1.1 message. Its slices are valid until the next read.
type message struct {
	startLine []byte // request line or status line
	body      []byte
	closes    bool // Connection: close
}

var (
	errNotHTTP = errors.New("the answer is not HTTP/1.1 that this program supports")
	errChunked = errors.New("the answer has no Content-Length, which this program requires: connect to the gateway without a proxy")
)

// read reads one message. It supports only the part of HTTP that the gateway uses.
func (m *message) read(r *bufio.Reader) error {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return err
	}
	m.startLine = append(m.startLine[:0], bytes.TrimRight(line, "\r\n")...)
	length := 0
	m.closes = false
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		if line = bytes.TrimRight(line, "\r\n"); len(line) == 0 {
			break
		}
		name, value, ok := bytes.Cut(line, []byte{':'})
		if !ok {
			return errNotHTTP
		}
		value = bytes.TrimSpace(value)
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.Atoi(string(value)); err != nil || length < 0 || length > bodyMax {
				return errNotHTTP
			}
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			return errChunked
		case bytes.EqualFold(name, []byte("Connection")):
			m.closes = bytes.EqualFold(value, []byte("close"))
		}
	}
	if cap(m.body) < length {
		m.body = make([]byte, length)
	}
	m.body = m.body[:length]
	_, err = io.ReadFull(r, m.body)
	return err
}

// status is the status code of an answer.
func (m *message) status() (int, error) {
	if len(m.startLine) < len("HTTP/1.1 200") || !bytes.HasPrefix(m.startLine, []byte("HTTP/1.1 ")) {
		return 0, errNotHTTP
	}
	code, err := strconv.Atoi(string(m.startLine[9:12]))
	if err != nil {
		return 0, errNotHTTP
	}
	return code, nil
}

// answerTimeout bounds one request.
const answerTimeout = 30 * time.Second

// conn is a connection to the gateway, opened on demand and after failures. It is a
// raw socket because a client library would need as much CPU as the gateway.
type conn struct {
	target *target
	clock  env.Clock

	mu     sync.Mutex // guards socket against interrupt
	socket net.Conn
	r      *bufio.Reader
	answer message
}

// interrupt ends the current exchange, if there is one. Unlike the other methods it
// is safe for concurrent use.
func (c *conn) interrupt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.socket != nil {
		_ = c.socket.SetDeadline(c.clock.Now())
	}
}

func (c *conn) set(socket net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.socket = socket
}

// exchange sends a request and reads its answer, which is valid until the next
// exchange.
func (c *conn) exchange(ctx context.Context, request []byte) (status int, body []byte, err error) {
	if c.socket == nil {
		if err := c.dial(ctx); err != nil {
			return 0, nil, fmt.Errorf("connect: %w", err)
		}
	}
	if status, err = c.roundTrip(request); err != nil {
		c.close()
		return 0, nil, err
	}
	if c.answer.closes {
		c.close()
	}
	return status, c.answer.body, nil
}

func (c *conn) roundTrip(request []byte) (int, error) {
	if err := c.socket.SetDeadline(c.clock.Now().Add(answerTimeout)); err != nil {
		return 0, err
	}
	if _, err := c.socket.Write(request); err != nil {
		return 0, err
	}
	if err := c.answer.read(c.r); err != nil {
		return 0, err
	}
	return c.answer.status()
}

func (c *conn) dial(ctx context.Context) error {
	var d net.Dialer
	ctx, cancel := c.clock.WithTimeout(ctx, answerTimeout)
	defer cancel()
	socket, err := d.DialContext(ctx, "tcp", c.target.address)
	if err != nil {
		return err
	}
	if c.target.tls {
		host, _, _ := net.SplitHostPort(c.target.address)
		secure := tls.Client(socket, &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12})
		if err := secure.HandshakeContext(ctx); err != nil {
			return errors.Join(err, socket.Close())
		}
		socket = secure
	}
	c.set(socket)
	if c.r == nil {
		c.r = bufio.NewReaderSize(nil, headerLineMax)
	}
	c.r.Reset(socket)
	return nil
}

// close closes the connection, if it is open.
func (c *conn) close() {
	if c.socket != nil {
		_ = c.socket.Close() // everything has been read
		c.set(nil)
	}
}
