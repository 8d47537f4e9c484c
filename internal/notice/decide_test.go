package notice_test

import (
	"errors"
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
		needs.NewNotice(g.Store.NewNotice(n))
		return tx.Apply(g.T.Context(), &needs, func(*store.Loaded, *store.Changes) error { return nil })
	}))
	return n
}

// claimed is a notice that this process has claimed.
func claimed(g *coretest.Gateway, id string) store.Notice {
	g.T.Helper()
	due(g, id)
	op, list := notice.NewClaim(g.Node.ID(), 1)
	g.Must(g.Writer.Do(g.T.Context(), op))
	return list()[0]
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

func TestClaimDecisions(t *testing.T) {
	const one = "notices attempts:0→1 claimed_by:-→this next_at:now→-"
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		claim := func(limit int) string {
			t.Helper()
			op, list := notice.NewClaim(g.Node.ID(), limit)
			v := g.Decide(op)
			if v.Again != "" || v.Refusal != nil || len(list()) != 0 { // the second commit finds nothing more
				t.Errorf("%v, again %s, claimed %d", v.Refusal, v.Again, len(list()))
			}
			return v.Changes
		}
		if got := claim(10); got != "" {
			t.Errorf("none is due: %s", got)
		}
		claimed(g, "n-0")
		due(g, "n-1")
		due(g, "n-2")
		due(g, "n-3")
		op, list := notice.NewClaim(g.Node.ID(), 1)
		got := g.Changes(func() { g.Must(g.Writer.Do(t.Context(), op)) })
		if got != one || len(list()) != 1 || list()[0].ID != "n-1" || string(list()[0].Body) != "x" || list()[0].Attempts != 1 {
			t.Errorf("claimed %+v: %s", list(), got)
		}
		if got := claim(10); got != one+"\n"+one {
			t.Errorf("two are due: %s", got)
		}
		dead, _ := notice.NewClaim(payment.ID{1}, 1)
		g.WantRefusal(dead, problem.InternalError)
	})
}

// Two claims of one batch get different notices.
func TestClaimsInOneBatch(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		for _, id := range []string{"n-1", "n-2", "n-3"} {
			due(g, id)
		}
		first, list := notice.NewClaim(g.Node.ID(), 2)
		second, rest := notice.NewClaim(g.Node.ID(), 2)
		g.Must(errors.Join(g.Writer.All(t.Context(), []write.Operation{first, second})...))
		if len(list()) != 2 || len(rest()) != 1 {
			t.Errorf("claimed %d and %d", len(list()), len(rest()))
		}
	})
}

func TestEndDecisions(t *testing.T) {
	review := func(g *coretest.Gateway) store.Case {
		return store.Case{ID: g.Env.IDs.NewID(g.Clock.Now()), Merchant: g.Merchant.ID, Kind: store.CaseNotice, Params: store.Params{"reason": "unreadable"}}
	}
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		const applied = "notices applied_at:-→now claimed_by:this→- state:received→applied"
		n := claimed(g, "finished")
		g.WantDecision(notice.NewEnd(n), applied, "")
		g.WantDecision(notice.NewDelay(n, time.Second, "late"), "", "") // it is over

		n = claimed(g, "delayed")
		g.WantDecision(notice.NewDelay(n, time.Minute, "not applied yet"),
			"notices claimed_by:this→- last_error:→not applied yet next_at:-→in 1m0s", "")

		n = claimed(g, "given up")
		g.WantDecision(notice.NewDeadLetter(n, review(g)), `
			+cases notice 0 reason:unreadable
			notices applied_at:-→now claimed_by:this→- last_error:→unreadable state:received→dead_letter`, "")
		g.WantDecision(notice.NewEnd(n), "", "")
	})
}
