package cluster_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/cluster"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
)

// installation reads the stored one.
func installation(g *coretest.Gateway) store.Installation {
	g.T.Helper()
	inst, err := g.Store.ReadInstallation(g.T.Context())
	g.Must(err)
	return inst
}

// A start is continuous if the database and the mark outside agree on a clean stop a short time ago,
// or if another process lives on the database. Every other one begins a new history.
func TestStart(t *testing.T) {
	stop := func(g *coretest.Gateway) { g.Must(g.Leave(g.T.Context(), true)) }
	for name, row := range map[string]struct {
		before     func(g *coretest.Gateway)
		others     func(g *coretest.Gateway) // while the new process looks at their heartbeats
		continuous bool
	}{
		"clean stop":           {before: stop, continuous: true},
		"clean stop, at last":  {before: func(g *coretest.Gateway) { stop(g); g.Clock.Advance(cluster.AgreementFor) }, continuous: true},
		"clean stop, long ago": {before: func(g *coretest.Gateway) { stop(g); g.Clock.Advance(cluster.AgreementFor + time.Second) }},
		"stop under calls":     {before: func(g *coretest.Gateway) { g.Must(g.Leave(g.T.Context(), false)) }},
		"killed":               {before: func(*coretest.Gateway) {}},
		"killed, long ago":     {before: func(g *coretest.Gateway) { g.Clock.Advance(time.Hour) }},
		"no mark":              {before: func(g *coretest.Gateway) { stop(g); g.Marker.Mark = cluster.Mark{} }},
		"the token of another": {before: func(g *coretest.Gateway) { stop(g); g.Marker.Stop = "another" }},
		"the mark went back":   {before: func(g *coretest.Gateway) { stop(g); g.Marker.Epoch-- }},
		"the database went on": {before: func(g *coretest.Gateway) { stop(g); g.Execute("UPDATE installation SET epoch = epoch + 1") }},
		"mark not written": {before: func(g *coretest.Gateway) {
			g.Marker.Err = errors.New("full")
			_ = g.Leave(g.T.Context(), true)
			g.Marker.Err = nil
		}},
		"another process lives": {before: func(*coretest.Gateway) {}, others: func(g *coretest.Gateway) { g.Heartbeat() }, continuous: true},
	} {
		t.Run(name, func(t *testing.T) {
			coretest.EachEngine(t, func(t *testing.T, g *coretest.Gateway) {
				g.Pass(2 * time.Second)
				row.before(g)
				was := installation(g)
				next := app.NewCore(app.CoreOptions{Store: g.Store, Env: g.Env, Marker: g.Marker, Log: g.Logger(), Wait: func(context.Context, time.Duration) error {
					g.Clock.Advance(time.Second)
					if row.others != nil {
						row.others(g)
					}
					return nil
				}})
				g.Must(next.Cluster.Join(t.Context(), g.Marker.Mark, false))
				now := installation(g)
				if continuous := now.History == was.History; continuous != row.continuous || now.StopToken != "" || !now.ProvedAt.IsZero() {
					t.Errorf("%+v after %+v, want a continuous start: %v", now, was, row.continuous)
				}
				if !row.continuous && (!now.RestoredFrom.Equal(was.UpdatedAt) || !next.Node.Frozen(coretest.BankName)) {
					t.Errorf("the lists are read from %v, want %v", now.RestoredFrom, was.UpdatedAt)
				}
			})
		})
	}
}

// The token of a clean stop counts once: a copy of the stopped gateway's disk that is put back after
// the next start has a mark that no database agrees with.
func TestStopTokenCountsOnce(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Must(g.Leave(t.Context(), true))
		stopped := g.Marker.Mark
		g.Must(g.Cluster.Join(t.Context(), stopped, true))
		if inst := installation(g); cluster.Agree(&inst, stopped, g.Clock.Now()) {
			t.Errorf("%+v agrees with %+v again", inst, stopped)
		}
		g.Heartbeat()
		if g.Marker.Stop != "" {
			t.Error("a gateway that runs has the mark of a stop")
		}
	})
}

// A snapshot of the disk, with the mark, is put back after money has left: no more leaves than there
// was. What left is found in the lists before anything is sent.
func TestNoMoreLeavesThanThereWas(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		paid := g.PaidPayin("p", 100_00)
		copied, mark := g.Snapshot()
		g.Payout("lost", int64(coretest.Opening-10_00))
		g.Refund(paid, "lost", 100_00)
		g.Send()
		g.Must(g.Store.Close())
		g.Clock.Advance(10 * time.Second)

		back := g.OnCopy(copied, mark)
		refused := func(kind problem.Kind) {
			t.Helper()
			_, _, err := back.Payouts.Request(t.Context(), back.Merchant, coretest.PayoutRequest("new", int64(coretest.Opening)))
			if !problem.Is(err, kind) {
				t.Errorf("a payout of all the money is answered %v, want %s", err, kind)
			}
			_, _, err = back.Refunds.Create(t.Context(), back.Merchant, paid.ID, coretest.RefundRequest("new", 100_00))
			if kind == problem.InsufficientBalance {
				kind = problem.InvalidState // it was given back
			}
			if !problem.Is(err, kind) {
				t.Errorf("a refund is answered %v, want %s", err, kind)
			}
		}
		refused(problem.Unavailable)
		lag := back.Bank.Profiled.Transfer.QuietPeriod
		_, _, err := back.Payouts.Request(t.Context(), back.Merchant, coretest.PayoutRequest("new", 1))
		if p, _ := errors.AsType[*problem.Error](err); p == nil || p.RetryAfter < lag || p.RetryAfter > lag+5*time.Second ||
			!strings.Contains(p.Detail, ": at the earliest at "+back.Node.RestoredAt().Add(lag).Format(time.RFC3339)) {
			t.Errorf("answered %+v, want until %v later", p, lag)
		}
		back.ReadFeeds()
		back.Heartbeat()
		refused(problem.Unavailable) // a call that was in flight may still be listed
		back.Clear()
		back.WantCases(store.CasePayoutFound)
		refused(problem.InsufficientBalance)
		back.WantBank(1, 1)
		back.WantProven()
	})
}
