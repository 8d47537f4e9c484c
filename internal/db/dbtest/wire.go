package dbtest

import (
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/porteira/porteira/internal/db"
)

// Wire intercepts the connections between a database, before it is opened, and its
// PostgreSQL server: carry gets both ends of each connection, and forwards the
// bytes of each to the other. Both are closed when it returns.
func Wire(t *testing.T, o *db.Options, carry func(client, server net.Conn)) {
	t.Helper()
	u, err := url.Parse(o.Database)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := u.Host
	var open sync.WaitGroup
	open.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			open.Go(func() {
				defer func() { _ = client.Close() }()
				server, err := net.Dial("tcp", address)
				if err != nil {
					return
				}
				defer func() { _ = server.Close() }()
				carry(client, server)
			})
		}
	})
	t.Cleanup(func() { _ = listener.Close(); open.Wait() })
	u.Host = listener.Addr().String()
	o.Database = u.String()
}
