package write_test

import (
	"errors"
	"testing"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

// Commits of SQLite allocate so much at most: for themselves, and for each of their operations. The
// operations are built before.
func TestAllocationsOfCommits(t *testing.T) {
	g := coretest.New(t, "sqlite")
	v := &rounds{Gateway: g}
	g.Processor(coretest.BankName, offlineBank{g.Bank})
	g.Node.Lease.Drop() // deliveries are not claimed when they are created
	v.count = func(work func()) int64 {
		work()
		return 0
	}
	v.receives(50) // something to pay with
	for _, test := range []struct {
		name  string
		most  float64
		build func() (write.Operation, error)
	}{
		{"a pay-in", 15, func() (write.Operation, error) {
			return g.Payins.NewCreateOp(g.Merchant, coretest.PayinRequest(v.name(), ""))
		}},
		{"a payout", 51, func() (write.Operation, error) {
			return g.Payouts.NewRequestOp(g.Merchant, coretest.PayoutRequest(v.name(), 1))
		}},
	} {
		const batch, runs = 64, 5
		var batches [runs + 1][]write.Operation // AllocsPerRun makes one more run
		for i := range batches {
			for range batch {
				op, err := test.build()
				g.Must(err)
				batches[i] = append(batches[i], op)
			}
		}
		next := 0
		n := testing.AllocsPerRun(runs, func() {
			g.Must(errors.Join(g.Writer.All(t.Context(), batches[next])...))
			next++
		})
		if n > test.most*batch {
			t.Errorf("%s takes %.1f allocations of %d in a commit, want at most %.0f", test.name, n/batch, batch, test.most)
		}
	}
	empty := testing.AllocsPerRun(100, func() {
		_, err := g.Store.Commit(t.Context(), &store.Needs{}, store.Capacity{}, func(*store.Loaded, *store.Changes) error { return nil })
		g.Must(err)
	})
	if empty > 56 {
		t.Errorf("an empty commit takes %.0f allocations, want at most 56", empty)
	}
}
