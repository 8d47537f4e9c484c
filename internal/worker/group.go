package worker

import (
	"context"
	"slices"
)

// Group is workers that start and stop together.
type Group struct{ workers []*Worker }

// NewGroup returns a group of workers. A worker on which others depend, such as the
// heartbeat, must be before them.
func NewGroup(workers ...*Worker) *Group { return &Group{workers} }

// Start starts the workers in order.
func (g *Group) Start(ctx context.Context) {
	for _, w := range g.workers {
		w.Start(ctx)
	}
}

// Stop stops the workers one after another, last first.
func (g *Group) Stop() {
	for _, w := range slices.Backward(g.workers) {
		w.Stop()
	}
}

// Workers returns the workers in order.
func (g *Group) Workers() []*Worker { return slices.Clone(g.workers) }
