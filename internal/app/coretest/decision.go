package coretest

import (
	"errors"
	"fmt"

	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

// Decision is the result of an operation: its changes and its refusal.
type Decision struct {
	Changes string // see [Gateway.Changes]
	Refusal error
	// Again is the changes of a second commit of the same operation.
	Again string
}

var errRollBack = errors.New("coretest: roll back")

// Decide runs an operation three times: in a transaction that is rolled back, as after a
// lost race; then it commits it; then it commits it again, as after an unknown commit
// that took effect. A refusal must be the same each time and change nothing.
func (g *Gateway) Decide(op write.Operation) Decision {
	g.T.Helper()
	var v Decision
	before := g.snapshot()
	var needs store.Needs
	op.Needs(&needs)
	err := g.Store.Transact(g.T.Context(), func(tx *store.Tx) error {
		return tx.Apply(g.T.Context(), &needs, func(l *store.Loaded, c *store.Changes) error {
			if v.Refusal = op.Decide(l, c); v.Refusal != nil && c.Len() > 0 {
				g.T.Errorf("%T refused (%v), and made %d changes", op, v.Refusal, c.Len())
			}
			return errRollBack
		})
	})
	if !errors.Is(err, errRollBack) {
		g.T.Fatalf("rolled back: %v", err)
	}
	for _, changes := range []*string{&v.Changes, &v.Again} {
		if err := g.Commit(op); fmt.Sprint(err) != fmt.Sprint(store.Problem(v.Refusal)) {
			g.T.Errorf("%T: first %v, then %v", op, v.Refusal, err)
		}
		after := g.snapshot()
		*changes = before.changes(after)
		before = after
	}
	if v.Refusal != nil && v.Changes != "" {
		g.T.Errorf("%T refused (%v), and changed %s", op, v.Refusal, v.Changes)
	}
	return v
}

// WantDecision compares the changes of an operation, and those of its second commit,
// which are usually none.
func (g *Gateway) WantDecision(op write.Operation, changes, again string) {
	g.T.Helper()
	v := g.Decide(op)
	if v.Refusal != nil {
		g.T.Fatalf("refused: %v", v.Refusal)
	}
	if want := Lines(changes); v.Changes != want {
		g.T.Errorf("changes\n%s\nwant\n%s", v.Changes, want)
	}
	if want := Lines(again); v.Again != want {
		g.T.Errorf("changes of the second commit\n%s\nwant\n%s", v.Again, want)
	}
}

// WantRefusal checks that an operation is refused with a problem of the kind.
func (g *Gateway) WantRefusal(op write.Operation, kind problem.Kind) {
	g.T.Helper()
	v := g.Decide(op)
	if v.Refusal == nil {
		g.T.Fatalf("not refused, want %s; changes\n%s", kind, v.Changes)
	}
	if got := problem.From(store.Problem(v.Refusal)).Kind; got != kind {
		g.T.Errorf("refused with %s (%v), want %s", got, v.Refusal, kind)
	}
}

// Commit commits an operation.
func (g *Gateway) Commit(op write.Operation) error { return g.Writer.Do(g.T.Context(), op) }
