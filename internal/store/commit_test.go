package store_test

import (
	"errors"
	"testing"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
)

// A database that refuses at COMMIT, here for a reference that leads nowhere,
// has stored nothing, and says so; the next transaction is not in its way.
func TestRefusedCommitIsAnError(t *testing.T) {
	t.Parallel()
	storetest.Each(t, env.System(env.OutboundOptions{}), func(t *testing.T, o store.Options) {
		s := storetest.Open(t, o)
		exec := func(texts ...string) error {
			return s.Write(t.Context(), func(tx *store.Tx) error {
				for _, text := range texts {
					if _, err := tx.Exec(t.Context(), text); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err := exec("CREATE TABLE parents (id BIGINT PRIMARY KEY)",
			"CREATE TABLE children (parent BIGINT REFERENCES parents (id) DEFERRABLE INITIALLY DEFERRED)"); err != nil {
			t.Fatal(err)
		}
		err := exec("INSERT INTO children VALUES (1)")
		if err == nil || errors.Is(err, store.ErrCommitUnknown) || errors.Is(err, store.ErrUnavailable) {
			t.Errorf("a COMMIT that is refused: %v", err)
		}
		if err := exec("INSERT INTO parents VALUES (1)", "INSERT INTO children VALUES (1)"); err != nil {
			t.Fatal(err)
		}
		var children int
		if err := s.Reader().QueryRowContext(t.Context(), "SELECT count(*) FROM children").Scan(&children); err != nil || children != 1 {
			t.Errorf("%d rows, %v, want 1", children, err)
		}
	})
}
