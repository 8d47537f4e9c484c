package coretest

import "github.com/porteira/porteira/internal/store"

// On starts a process on another database of the same engine, with the same bank.
func (g *Gateway) On(database string, m *Marker) *Gateway {
	g.T.Helper()
	o := g.database
	o.Database = database
	other := open(g.T, o, g.Env, g.Clock, g.Bank, m)
	other.Merchant = g.Merchant
	return other
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
