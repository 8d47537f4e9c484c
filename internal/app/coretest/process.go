package coretest

import (
	"io"
	"os"
	"path/filepath"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/db/dbtest"
	"github.com/porteira/porteira/internal/store"
)

// On starts a process on another database of the same engine, with the same bank.
func (g *Gateway) On(database string, m *Marker) *Gateway {
	g.T.Helper()
	o := g.database
	o.Database = database
	other := open(g.T, o, g.Env, g.Clock, g.Bank, m)
	other.Merchant = g.Merchant
	return other
}

// OnCopy starts a process on a copy of the database and the mark, as after its disk was put back.
func (g *Gateway) OnCopy(database string, m *Marker) *Gateway {
	g.T.Helper()
	o := g.database
	o.Database = database
	other := process(g.T, o, g.Env, g.Clock, g.Bank, m)
	other.Merchant = g.Merchant
	other.ColdStart()
	return other
}

// Snapshot ends the process, copies its database and its mark, as a snapshot of the disk does, and
// starts it again.
func (g *Gateway) Snapshot() (database string, m *Marker) {
	g.T.Helper()
	g.Must(g.Store.Close())
	var err error
	if db.IsPostgres(g.database.Database) {
		database, err = dbtest.CopyPostgres(g.T, g.database.Database)
	} else {
		database, err = copyFile(g.database.Database, filepath.Join(g.T.TempDir(), "copy.db"))
	}
	g.Must(err)
	m = &Marker{Mark: g.Marker.Mark}
	*g = *g.On(g.database.Database, g.Marker)
	return database, m
}

func copyFile(from, to string) (string, error) {
	source, err := os.Open(from)
	if err != nil {
		return "", err
	}
	defer func() { _ = source.Close() }()
	target, err := os.Create(to)
	if err != nil {
		return "", err
	}
	if _, err := io.Copy(target, source); err != nil {
		_ = target.Close()
		return "", err
	}
	return to, target.Close()
}

// ClosedStore returns a closed store of the same database: every use of it fails.
func (g *Gateway) ClosedStore() *store.Store {
	g.T.Helper()
	o := g.database
	o.Shared = true
	closed, err := store.Open(g.T.Context(), o)
	g.Must(err)
	g.Must(closed.Close())
	return closed
}

// Registered returns the node row of this process.
func (g *Gateway) Registered() store.Node {
	g.T.Helper()
	nodes, err := g.Store.Nodes(g.T.Context())
	g.Must(err)
	for _, n := range nodes {
		if n.ID == g.Node.ID() {
			return n
		}
	}
	g.T.Fatal("the process is not registered")
	return store.Node{}
}

// DeclareDead releases the claims of another process, without its knowledge.
func (g *Gateway) DeclareDead(other *Gateway) {
	g.T.Helper()
	_, err := g.Cluster.Release(g.T.Context(), other.Registered())
	g.Must(err)
}
