package review

import "github.com/porteira/porteira/internal/store"

// NewDecision is a decision about a case, for tests without a database.
func NewDecision(v store.Case, r Request) *Resolve {
	found, _ := find(&v, r.How)
	return &Resolve{Request: r, opened: v, id: v.ID, rule: found}
}

// Identify gives a decision an id that belongs to a name.
func (v *Resolve) Identify(name string) { copy(v.id[1:], name) }
