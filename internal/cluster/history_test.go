package cluster_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/store"
)

// lastEvents is the numbers of the events after a position, and the next position.
func lastEvents(g *coretest.Gateway, at store.EventPosition) (numbers []int64, next store.EventPosition) {
	g.T.Helper()
	next, err := g.Store.Continue(g.T.Context(), g.Merchant.ID, at)
	g.Must(err)
	list, err := g.Store.Events(g.T.Context(), g.Merchant.ID, next.Number, 100)
	g.Must(err)
	for i := range list {
		numbers = append(numbers, list[i].Number)
		next.Number = list[i].Number
	}
	return numbers, next
}

// Finding M8: a reader that was ahead of a restored backup misses none of the new events:
// its cursor is cut to where both histories part.
func TestReaderOfEventsContinuesAfterARestore(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		want := func(at store.EventPosition, numbers ...int64) store.EventPosition {
			t.Helper()
			got, next := lastEvents(g, at)
			if fmt.Sprint(got) != fmt.Sprint(numbers) {
				t.Errorf("after %+v: events %v, want %v", at, got, numbers)
			}
			return next
		}
		for i := range 4 {
			g.Canceled(g.Merchant, fmt.Sprint("r-", i), "")
		}
		ahead := want(store.EventPosition{}, 1, 2, 3, 4)
		behind := store.EventPosition{Number: 1}
		g.Execute("DELETE FROM events WHERE number > 2", "UPDATE event_counters SET last_number = 2", "UPDATE installation SET epoch = epoch - 3")
		g.Heartbeat()
		for i := range 3 {
			g.Canceled(g.Merchant, fmt.Sprint("s-", i), "")
		}
		want(behind, 2, 3, 4, 5)
		after := want(ahead, 3, 4, 5)
		want(after)

		g.Execute("DELETE FROM events", "DELETE FROM event_counters", "UPDATE installation SET epoch = epoch - 3")
		g.Pass(2 * time.Second)
		g.Canceled(g.Merchant, "t", "")
		for _, at := range []store.EventPosition{ahead, after, {History: after.History + 1000, Number: 9}} {
			want(at, 1)
		}
	})
}

// The same for a reader of the statement.
func TestReaderOfTheStatementContinuesAfterARestore(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		want := func(at store.EventPosition, number int64) store.EventPosition {
			t.Helper()
			got, err := g.Store.ContinueStatement(t.Context(), g.Merchant.ID, at)
			g.Must(err)
			if got.Number != number {
				t.Errorf("after %+v: row %d, want %d", at, got.Number, number)
			}
			return got
		}
		fund := func() {
			t.Helper()
			for range 3 { // after the opening balance
				g.Must(g.Merchants.Fund(t.Context(), g.Merchant, 1))
			}
		}
		fund()
		ahead, behind := want(store.EventPosition{Number: 4}, 4), want(store.EventPosition{Number: 1}, 1)
		g.Execute("DELETE FROM postings WHERE number > 2", "UPDATE balances SET postings = 2 WHERE account = 'available'", "UPDATE installation SET epoch = epoch - 3")
		g.Heartbeat()
		fund()
		want(behind, 1)
		after := want(ahead, 2)
		want(store.EventPosition{History: after.History, Number: 5}, 5)
		g.Execute("DELETE FROM postings", "DELETE FROM balances", "UPDATE installation SET epoch = epoch - 3")
		g.Pass(2 * time.Second)
		fund()
		for _, at := range []store.EventPosition{ahead, after, {History: after.History + 1000, Number: 9}} {
			want(at, 0)
		}
	})
}
