package notice_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/notice"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

// On a server a batch of fifty notices costs as many round trips as one of five, also if
// they are delayed.
func TestRoundTripsOfNotices(t *testing.T) {
	g, count := coretest.NewCounting(t)
	g.Node.Lease.Drop() // they are not claimed when they are stored
	serial := 0
	record := func(n int) (ops []write.Operation) {
		for range n {
			serial++
			ops = append(ops, g.Notices.NewRecord(store.Notice{Processor: coretest.BankName, ID: fmt.Sprint(serial), Body: []byte("x")}))
		}
		return ops
	}
	all := func(ops []write.Operation) int64 {
		return count(func() { g.Must(errors.Join(g.Writer.All(t.Context(), ops)...)) })
	}
	coretest.WantRoundTrips(t, "recorded", 2, func(n int) int64 { return all(record(n)) })
	claim := func(n int) (trips int64, list []store.Notice) {
		op, claimed := notice.NewClaim(g.Node.ID(), n, coretest.BankName)
		trips = all([]write.Operation{op})
		if list = claimed(); len(list) != n {
			t.Fatalf("claimed %d, want %d", len(list), n)
		}
		return trips, list
	}
	all(record(200))
	coretest.WantRoundTrips(t, "claimed", 4, func(n int) int64 { trips, _ := claim(n); return trips })
	coretest.WantRoundTrips(t, "delayed", 2, func(n int) int64 {
		_, list := claim(n)
		var ops []write.Operation
		for _, n := range list {
			ops = append(ops, notice.NewDelay(n, time.Second, "late"))
		}
		return all(ops)
	})
}
