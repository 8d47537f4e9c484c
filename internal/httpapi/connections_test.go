package httpapi_test

import (
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/porteira/porteira/internal/app/apptest"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/httpapi"
)

// limited is a listener with limits, and its log.
func limited(t *testing.T, total, perAddress int) (*httpapi.Connections, *apptest.Log) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w, _ := env.Virtual(start, 1)
	log := &apptest.Log{}
	c := httpapi.Limit(l, httpapi.ConnectionLimits{Total: total, PerAddress: perAddress, Clock: w.Clock, Log: slog.New(slog.NewTextHandler(log, nil))})
	t.Cleanup(func() { _ = c.Close() })
	return c, log
}

func connect(t *testing.T, c *httpapi.Connections) net.Conn {
	t.Helper()
	client, err := net.Dial("tcp", c.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func accept(t *testing.T, c *httpapi.Connections) net.Conn {
	t.Helper()
	server, err := c.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return server
}

// closedBy waits until the other side closes the connection.
func closedBy(t *testing.T, conn net.Conn, what string) {
	t.Helper()
	if n, err := conn.Read(make([]byte, 1)); err == nil {
		t.Errorf("%s: %d bytes were read, want the end", what, n)
	}
}

// A connection beyond the limit waits until another one is closed.
func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	c, _ := limited(t, 2, 2)
	connect(t, c)
	connect(t, c)
	first := accept(t, c)
	accept(t, c)
	connect(t, c)
	var left atomic.Bool
	accepted := make(chan bool)
	go func() {
		third, err := c.Accept()
		accepted <- err == nil && left.Load() && third.Close() == nil
	}()
	for range 100 { // the third has time to be accepted
		connect(t, c)
	}
	left.Store(true)
	_ = first.Close()
	_ = first.Close() // counts once
	if !<-accepted {
		t.Error("a connection beyond the limit was accepted before another was closed")
	}
}

// An address with its share of connections, all with a request, gets no other one. If one
// is idle, that is closed for the new one.
func TestShareOfAnAddress(t *testing.T) {
	t.Parallel()
	c, log := limited(t, 100, 2)
	clients := []net.Conn{connect(t, c), connect(t, c)}
	servers := []net.Conn{accept(t, c), accept(t, c)}
	for _, s := range servers {
		c.StateChanged(s, http.StateIdle)
		c.StateChanged(s, http.StateActive)
	}
	refused, next := connect(t, c), make(chan net.Conn)
	go func() {
		conn, _ := c.Accept()
		next <- conn
	}()
	closedBy(t, refused, "a connection beyond the share")
	if n := strings.Count(log.String(), "max-connections-per-address"); n == 0 || strings.Contains(log.String(), "127.0.0.1") {
		t.Errorf("the log is %q", log.String())
	}
	c.StateChanged(servers[1], http.StateIdle)
	c.StateChanged(servers[0], http.StateIdle)
	connect(t, c)
	third := <-next
	defer func() { _ = third.Close() }()
	closedBy(t, clients[1], "the connection that was idle for longest")
	c.StateChanged(servers[1], http.StateIdle) // too late
	c.StateChanged(servers[1], http.StateClosed)
	for _, conn := range []net.Conn{servers[0], third} {
		_ = conn.Close()
		c.StateChanged(conn, http.StateClosed)
	}
	connect(t, c)
	connect(t, c)
	accept(t, c)
	accept(t, c)
}

// A closed listener ends an Accept that waits for the limit.
func TestCloseEndsAccept(t *testing.T) {
	t.Parallel()
	c, _ := limited(t, 1, 1)
	connect(t, c)
	accept(t, c)
	ended := make(chan error)
	go func() {
		_, err := c.Accept()
		ended <- err
	}()
	_ = c.Close()
	if err := <-ended; err == nil {
		t.Error("a closed listener accepted a connection")
	}
}
