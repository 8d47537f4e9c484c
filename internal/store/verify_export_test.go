package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/porteira/porteira/internal/payment"
)

// VerifyCorrupted proves books in which statements were run that no part of
// the program would run; they are undone.
func VerifyCorrupted(ctx context.Context, s *Store, merchant payment.ID, statements []string) (_ []Proof, err error) {
	var tx interface {
		querier
		ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error)
	}
	if s.solo != nil {
		s.solo.mu.Lock()
		defer s.solo.mu.Unlock()
		statements = append([]string{"PRAGMA foreign_keys = 0", "PRAGMA ignore_check_constraints = 1", "BEGIN"}, statements...)
		tx = s.solo.conn
		defer func() {
			_, undo := tx.ExecContext(ctx, "ROLLBACK; PRAGMA foreign_keys = 1; PRAGMA ignore_check_constraints = 0")
			err = errors.Join(err, undo)
		}()
	} else {
		const unguard = `DO $$ DECLARE c record; BEGIN FOR c IN SELECT conrelid::regclass AS t, conname AS n FROM pg_constraint
			WHERE contype = 'c' AND conrelid <> 0 LOOP EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', c.t, c.n); END LOOP; END $$`
		statements = append([]string{unguard, "SET LOCAL session_replication_role = replica"}, statements...)
		one, err := s.writer.BeginTx(ctx, nil)
		if err != nil {
			return nil, err
		}
		defer func() { _ = one.Rollback() }()
		tx = one
	}
	for _, text := range statements {
		if _, err := tx.ExecContext(ctx, text); err != nil {
			return nil, fmt.Errorf("%s: %w", text, err)
		}
	}
	var proofs []Proof
	for _, list := range [][]check{merchantChecks, wholeChecks} {
		for i := range list {
			of := merchant
			if &list[0] == &wholeChecks[0] {
				of = payment.ID{}
			}
			p, err := prove(ctx, tx, &list[i], of)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", list[i].name, err)
			}
			proofs = append(proofs, p)
		}
	}
	return proofs, nil
}
