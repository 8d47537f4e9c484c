package bench

import (
	"testing"

	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/world"
)

// OpenSeeded opens a seeded store until the test ends.
func OpenSeeded(t *testing.T, folder, database string) *store.Store {
	t.Helper()
	o, err := seedStore(folder, database, false, world.System(world.OutboundOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Tables is how many tables a PostgreSQL database holds.
func Tables(t *testing.T, url string) int {
	t.Helper()
	n, err := tables(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
