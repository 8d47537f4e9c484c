package notice_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/notice"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

// due is a notice that nobody has claimed.
func due(g *coretest.Gateway, id string) store.Notice {
	g.T.Helper()
	n := store.Notice{Processor: coretest.BankName, ID: id, Body: []byte("x")}
	g.Must(g.Store.Transact(g.T.Context(), func(tx *store.Tx) error {
		var needs store.Needs
		needs.InsertNotice(g.Store.NewNotice(n))
		return tx.Apply(g.T.Context(), &needs, func(*store.Loaded, *store.Changes) error { return nil })
	}))
	return n
}

func TestRecordDecisions(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		n := store.Notice{Processor: coretest.BankName, ID: "n-1", Headers: "h", Body: []byte("x")}
		g.WantDecision(g.Notices.NewRecord(n), "+notices received", "")
		n.Body = []byte("y")
		g.WantDecision(g.Notices.NewRecord(n), "", "")
		n.Processor = "other"
		g.WantDecision(g.Notices.NewRecord(n), "+notices received", "")
	})
}

// newNotices is a gateway with due notices, which nobody has claimed.
func newNotices(t *testing.T, list ...string) *coretest.Gateway {
	t.Helper()
	g := coretest.NewWith(t, 0)
	for _, id := range list {
		due(g, id)
	}
	return g
}

func TestClaimDecisions(t *testing.T) {
	const one = "notices attempts:0→1 claimed_by:-→this next_at:now→-"
	for _, row := range []struct {
		name    string
		given   []string
		set     string // columns of each, if any
		limit   int
		changes string
		again   string // what a second claim gets
	}{
		{"none is due", nil, "", 10, "", ""},
		{"one of three", []string{"n-1", "n-2", "n-3"}, "", 1, one, one},
		{"two are due", []string{"n-1", "n-2"}, "", 10, one + "\n" + one, ""},
		{"due later", []string{"n-1"}, "next_at = next_at + 1", 10, "", ""},
		{"claimed by another process", []string{"n-1"}, "next_at = 0, claimed_by = x'01000000000000000000000000000000'", 10, "", ""},
		{"damaged", []string{"n-1"}, "body = x'00'", 10, `
			+cases notice 0 notice:n-1 processor:bank reason:unreadable
			notices applied_at:-→now last_error:→unreadable next_at:now→- state:received→dead_letter`, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := newNotices(t, row.given...)
			if row.set != "" {
				m.Execute("UPDATE notices SET " + row.set)
			}
			op, _ := notice.NewClaim(m.Node.ID(), row.limit, coretest.BankName)
			m.WantDecision(op, row.changes, row.again)
		})
	}
	m := newNotices(t, "n-1")
	dead, _ := notice.NewClaim(payment.ID{1}, 1)
	m.WantRefusal(dead, problem.InternalError)
}

// Two claims of one batch get different notices, oldest first, with their bodies.
func TestClaimsInOneBatch(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		for _, id := range []string{"n-1", "n-2", "n-3"} {
			due(g, id)
			g.Clock.Advance(time.Millisecond)
		}
		first, list := notice.NewClaim(g.Node.ID(), 2, coretest.BankName)
		second, rest := notice.NewClaim(g.Node.ID(), 2, coretest.BankName)
		g.Must(errors.Join(g.Writer.All(t.Context(), []write.Operation{first, second})...))
		var got []string
		for _, n := range append(list(), rest()...) {
			got = append(got, fmt.Sprintf("%s %s %d", n.ID, n.Body, n.Attempts))
		}
		if want := []string{"n-1 x 1", "n-2 x 1", "n-3 x 1"}; len(list()) != 2 || !slices.Equal(got, want) {
			t.Errorf("claimed %d, in all %v, want 2 and %v", len(list()), got, want)
		}
		g.WantDecision(notice.NewEnd(list()[0]), applied, "")
		g.WantDecision(notice.NewDelay(list()[0], time.Second, "late"), "", "") // it is over
	})
}

const applied = "notices applied_at:-→now claimed_by:this→- state:received→applied"

func TestEndDecisions(t *testing.T) {
	finished := func(n store.Notice) write.Operation { return notice.NewEnd(n) }
	delayed := func(n store.Notice) write.Operation { return notice.NewDelay(n, time.Minute, "not applied yet") }
	givenUp := func(n store.Notice) write.Operation {
		return notice.NewDeadLetter(n, store.Case{ID: payment.ID{1}, Kind: store.CaseNotice, Params: store.Params{"reason": "unreadable"}})
	}
	type end func(n store.Notice) write.Operation
	for _, row := range []struct {
		name       string
		given, end end
		changes    string
	}{
		{"finished", nil, finished, applied},
		{"delayed", nil, delayed, "notices claimed_by:this→- last_error:→not applied yet next_at:-→in 1m0s"},
		{"given up", nil, givenUp, `
			+cases notice 0 reason:unreadable
			notices applied_at:-→now claimed_by:this→- last_error:→unreadable state:received→dead_letter`},
		{"finished, then delayed", finished, delayed, ""},
		{"given up, then finished", givenUp, finished, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := newNotices(t, "n-1")
			op, claimed := notice.NewClaim(m.Node.ID(), 1, coretest.BankName)
			m.Must(m.Commit(op))
			if row.given != nil {
				m.Must(m.Commit(row.given(claimed()[0])))
			}
			m.WantDecision(row.end(claimed()[0]), row.changes, "")
		})
	}
}
