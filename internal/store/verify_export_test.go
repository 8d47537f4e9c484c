package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
)

var errUndo = errors.New("undo")

// VerifyCorrupted verifies the rows of a merchant, of the platform and of all, after
// statements that no part of the program would run. They are undone.
func VerifyCorrupted(ctx context.Context, s *Store, merchant payment.ID, statements []string) (proofs []Proof, err error) {
	unguard, guard := []string{"PRAGMA defer_foreign_keys = 1", "PRAGMA ignore_check_constraints = 1"}, []string{"PRAGMA ignore_check_constraints = 0"}
	if s.Engine() == "postgres" {
		unguard, guard = []string{`DO $$ DECLARE c record; BEGIN FOR c IN SELECT conrelid::regclass AS t, conname AS n FROM pg_constraint
			WHERE contype = 'c' AND conrelid <> 0 LOOP EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', c.t, c.n); END LOOP; END $$`,
			"SET LOCAL session_replication_role = replica"}, nil
	}
	undone := s.db.Write(ctx, func(tx *db.Tx) error {
		if err = execAll(ctx, tx, slices.Concat(unguard, statements)); err == nil {
			proofs, err = verifyWithin(ctx, tx, merchant)
		}
		err = errors.Join(err, execAll(ctx, tx, guard))
		return errUndo
	})
	if !errors.Is(undone, errUndo) {
		err = errors.Join(err, undone)
	}
	return proofs, err
}

func execAll(ctx context.Context, tx *db.Tx, texts []string) error {
	for _, text := range texts {
		if _, err := tx.Exec(ctx, text); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
	}
	return nil
}

func verifyWithin(ctx context.Context, tx *db.Tx, merchant payment.ID) (proofs []Proof, err error) {
	for of, list := range map[payment.ID][]check{merchant: merchantChecks, {}: slices.Concat(merchantChecks, globalChecks)} {
		for i := range list {
			p, err := list[i].prove(ctx, tx, of)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", list[i].name, err)
			}
			proofs = append(proofs, p)
		}
	}
	for _, c := range keyedChecks {
		p, err := c.prove(ctx, tx, tx.Keys(), merchant)
		if err != nil {
			return nil, err
		}
		proofs = append(proofs, p)
	}
	p, err := proveAudit(ctx, tx, tx.Keys())
	return append(proofs, p), err
}
