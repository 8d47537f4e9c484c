package main

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"time"
)

// databaseAddresses is how many addresses a database and its wires take.
const databaseAddresses = 3

// database is what the gateways keep their books in.
type database struct {
	direct  string   // its name for commands that nothing disturbs
	through []string // its name for each gateway
	server  *process // nil for SQLite
	wires   []*wire  // to the server, one for each gateway
	home    string   // folder of the server

	broken atomic.Int64 // when it was last disturbed, by the monotonic clock
}

// newDatabase lays out a database; take hands out addresses.
func newDatabase(o settings, folder string, take func() string) (*database, error) {
	if o.engine == postgres {
		return newPostgres(o, folder, take)
	}
	file := filepath.Join(folder, "porteira.db")
	return &database{direct: file, through: []string{file}}, nil
}

func (d *database) open(ctx context.Context) error {
	if d.server == nil {
		return nil
	}
	return d.openPostgres(ctx)
}

// disturbance is how long a database that was disturbed excuses a gateway that
// does not start.
const disturbance = 15 * time.Second

// disturb notes that the database, or the way to it, is being broken.
func (d *database) disturb() { d.broken.Store(int64(clock.Monotonic())) }

func (d *database) disturbed() bool {
	at := time.Duration(d.broken.Load())
	return d.server != nil && at > 0 && clock.Monotonic()-at < disturbance
}
