package loop

import (
	"context"
	"slices"
)

// Group is loops that start and stop together.
type Group struct{ loops []*Loop }

// NewGroup returns a group of loops; one that others rely on, such as a
// heartbeat, comes before them.
func NewGroup(loops ...*Loop) *Group { return &Group{loops: loops} }

// Start starts the loops in order.
func (g *Group) Start(ctx context.Context) {
	for _, l := range g.loops {
		l.Start(ctx)
	}
}

// Stop stops the loops, last first, each at rest before the next is asked.
func (g *Group) Stop() {
	for _, l := range slices.Backward(g.loops) {
		l.Stop()
	}
}

// Wake wakes all loops, as after a jump of the clock.
func (g *Group) Wake() {
	for _, l := range g.loops {
		l.Wake()
	}
}

// Loops returns the loops in order, to count or simulate them.
func (g *Group) Loops() []*Loop { return slices.Clone(g.loops) }
