package checker

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// declared lists the columns of a watched table by their role.
func (w *watchedTable) declared(t *testing.T) (fixed, mutable []string) {
	t.Helper()
	e, err := engineOf("sqlite")
	if err != nil {
		t.Fatal(err)
	}
	c := newColumns()
	c.engine, c.mutable.active = e, true
	w.columns(c)
	return w.fixedColumns(e), c.names
}

// Each column of a watched table is declared once: a migration that adds one decides what
// the checker makes of it.
func TestColumnsAreDeclared(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(s *scene) {
		for i := range tables {
			w := &tables[i]
			rows, err := s.raw.QueryContext(s.ctx, "SELECT * FROM "+w.name+" WHERE 1 = 0")
			s.must(err)
			schema, err := rows.Columns()
			s.must(err)
			s.must(rows.Close())
			fixed, mutable := w.declared(t)
			declared := slices.Concat(fixed, mutable, w.unchecked)
			slices.Sort(schema)
			slices.Sort(declared)
			if !slices.Equal(schema, declared) {
				s.t.Errorf("%s has columns %v, declared are %v", w.name, schema, declared)
			}
		}
	})
}

// Every fixed column that is written again is reported, and every row that is deleted.
func TestFixedColumnsStay(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(s *scene) {
		s.populate()
		s.sellPriced()
		s.waitForApproval("waits")
		s.findLost()
		s.refundAtPanel("back")
		s.relax()
		for i := range tables {
			w := &tables[i]
			fixed, mutable := w.declared(t)
			if len(mutable) == 0 { // rows of this table never change
				fixed = append(fixed, w.unchecked...)
			}
			for _, column := range fixed {
				found := s.corrupt([]string{"UPDATE " + w.name + " SET " + column + " = " + column}, nil)
				s.want(w.name+"."+column, found, w.invariant, w.thing+" ")
				s.want(w.name+"."+column, found, w.invariant, "was rewritten")
			}
			deleted := s.corrupt([]string{"DELETE FROM " + w.name}, nil)
			words := "was deleted"
			if tableID(i) == attemptTable {
				words = "is changed"
			}
			s.want(w.name, deleted, w.invariant, words)
		}
	})
}

// A line that does not have the values of its table's columns is an error of the checker.
func TestLinesFitTheirTables(t *testing.T) {
	t.Parallel()
	for name, fields := range map[string]string{
		"fewer values": "held",
		"more values":  "held\x1f5\x1f1\x1f1",
		"no number":    "held\x1ffive\x1f1",
		"no values":    "",
	} {
		var r balanceRow
		c := newColumns()
		c.read(&line{table: balanceTable, op: rowChanged, fields: fields}).balance(&r)
		c.checkEnd()
		if !errors.Is(c.err, errLine) {
			t.Errorf("%s: %v, %+v", name, c.err, r)
		}
	}
	var r balanceRow
	c := newColumns()
	c.read(&line{table: balanceTable, op: rowChanged, fields: "held\x1f5\x1f1"}).balance(&r)
	c.checkEnd()
	if want := (balanceRow{"held", 5, 1}); c.err != nil || r != want {
		t.Errorf("%v, %+v", c.err, r)
	}
}

// An unknown engine is refused.
func TestEngines(t *testing.T) {
	t.Parallel()
	if err := Install(t.Context(), nil, "oracle"); err == nil || !strings.Contains(err.Error(), "oracle") {
		t.Errorf("install: %v", err)
	}
}
