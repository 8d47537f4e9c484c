package storetest

import (
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/porteira/porteira/internal/store"
)

// Wire comes between a store, before it is opened, and the PostgreSQL server of
// its database: carry is given both ends of each connection, and carries what
// each of them sends to the other. Both are closed when it returns.
func Wire(t *testing.T, o *store.Options, carry func(client, server net.Conn)) {
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
