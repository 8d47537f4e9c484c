package coretest

import (
	"bytes"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/db/dbtest"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/store/storetest"
)

// NewCounting creates a gateway on PostgreSQL and a function that returns the number of
// round trips to the database within the transactions of work.
func NewCounting(t *testing.T) (g *Gateway, count func(work func()) int64) {
	t.Helper()
	return newCounting(t, 'T')
}

// NewCountingReads is NewCounting for round trips outside transactions.
func NewCountingReads(t *testing.T) (g *Gateway, count func(work func()) int64) {
	t.Helper()
	return newCounting(t, 'I')
}

func newCounting(t *testing.T, status byte) (g *Gateway, count func(work func()) int64) {
	t.Helper()
	e, clock := env.Virtual(Start, 1)
	o := storetest.Prepare(t, "postgres", e)
	o.Connections = 1 // so every statement is prepared once
	trips := countRoundTrips(t, &o, status)
	g = open(t, o, e, clock, NewBank(), &Marker{})
	g.newMerchant("Loja", Opening)
	return g, func(work func()) int64 {
		before := trips.Load()
		work()
		return trips.Load() - before
	}
}

// countRoundTrips counts the server's answers with a status of the transaction, one per round
// trip. It must be called before the database is opened.
func countRoundTrips(t *testing.T, o *db.Options, status byte) *atomic.Int64 {
	var n atomic.Int64
	dbtest.Wire(t, o, func(client, server net.Conn) {
		var both sync.WaitGroup
		both.Go(func() {
			defer func() { _ = server.Close() }()
			_, _ = io.Copy(server, client)
		})
		defer both.Wait()
		defer func() { _ = client.Close() }()
		// PostgreSQL manual, 55.7: ReadyForQuery, in a transaction block (T) or idle (I).
		ready := append([]byte("Z\x00\x00\x00\x05"), status)
		buffer, kept := make([]byte, 64<<10), 0 // kept is the tail of the last read, which may begin a match
		for {
			size, err := server.Read(buffer[kept:])
			if err != nil {
				return
			}
			all := buffer[:kept+size]
			n.Add(int64(bytes.Count(all, ready))) // before the client can go on
			if _, err := client.Write(all[kept:]); err != nil {
				return
			}
			kept = copy(buffer, all[max(0, len(all)-len(ready)+1):])
		}
	})
	return &n
}

// WantRoundTrips checks that a batch takes at most most round trips, and that its size
// does not matter. batch commits n operations within count.
func WantRoundTrips(t *testing.T, name string, most int64, batch func(n int) int64) {
	t.Helper()
	batch(1) // opens accounts
	batch(5) // prepares the last statements
	few, many := batch(5), batch(50)
	if few != many || few < 1 || few > most {
		t.Errorf("%s: %d round trips for five, %d for fifty, want at most %d", name, few, many, most)
	}
}
