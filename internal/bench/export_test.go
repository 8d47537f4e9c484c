package bench

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/store"
)

// OpenSeeded opens a seeded store until the test ends.
func OpenSeeded(t *testing.T, folder, database string) *store.Store {
	t.Helper()
	o, err := seedStore(folder, database, false, env.System(env.OutboundOptions{}))
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

// LockSeeded is what each run holds.
var LockSeeded = lockSeeded

// BeginSeeding leaves a folder as a run does that dies at once: with its mark,
// or with its key as well.
func BeginSeeding(folder string, withKey bool) error {
	err := makeSeedFolder(folder, env.System(env.OutboundOptions{}).Random)
	if err == nil && !withKey {
		err = os.Remove(filepath.Join(folder, seedKey))
	}
	return err
}

// MigrateSeeded makes the schema in a folder, as a run does that dies then.
func MigrateSeeded(t *testing.T, folder string) {
	t.Helper()
	o, err := seedStore(folder, "", false, env.System(env.OutboundOptions{}))
	if err == nil {
		_, err = store.Migrate(t.Context(), o)
	}
	if err != nil {
		t.Fatal(err)
	}
}
