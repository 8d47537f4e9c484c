package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/porteira/porteira/internal/payment"
)

// RegisterNode makes this process known as one that may claim work.
func (tx *Tx) RegisterNode(ctx context.Context, id payment.ID) error {
	_, err := tx.exec(ctx, "INSERT INTO nodes (id, beat, started_at) VALUES ($1, 1, $2)", id[:], micros(tx.Now))
	return err
}

// Beat says that this process is alive, and moves the installation's beat on.
// ErrConflict means that others have given it up for dead: what it had in hand
// is theirs.
func (tx *Tx) Beat(ctx context.Context, id payment.ID) (v Installation, err error) {
	if err := tx.guarded(ctx, "UPDATE nodes SET beat = beat + 1 WHERE id = $1", id[:]); err != nil {
		return v, err
	}
	return scanInstallation(tx.queryRow(ctx, "UPDATE installation SET beat = beat + 1 RETURNING id, beat, restored_at"))
}

// StayNode makes sure that a process is on the list, and stays there until the
// transaction ends: what it claims meanwhile is seen by whoever releases it.
// ErrConflict means that others have given it up for dead.
func (tx *Tx) StayNode(ctx context.Context, id payment.ID) error {
	if tx.held.Node == id && !id.IsZero() { // it is known
		return nil
	}
	alive, err := tx.isNode(ctx, id)
	if err == nil && !alive {
		err = fmt.Errorf("%w: this process was given up for dead", ErrConflict)
	}
	return err
}

func (tx *Tx) isNode(ctx context.Context, id payment.ID) (bool, error) {
	var one int
	err := notFound(tx.queryRow(ctx, "SELECT 1 FROM nodes WHERE id = $1"+tx.store.dialect.keyShare(), id[:]).Scan(&one))
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// PullForward makes due at once what is put off until after latest, by a clock
// that ran ahead; a restore that it dated so late counts from now. It is for the
// start of a process and for a clock that was set back.
func (tx *Tx) PullForward(ctx context.Context, latest time.Time) error {
	for _, text := range []string{
		"UPDATE payouts SET next_at = $1 WHERE next_at > 0 AND next_at > $2 AND " + string(ToSend),
		"UPDATE payouts SET next_at = $1 WHERE next_at > 0 AND next_at > $2 AND " + string(ToAsk),
		"UPDATE deliveries SET next_at = $1 WHERE next_at > 0 AND next_at > $2",
		"UPDATE notices SET next_at = $1 WHERE next_at > 0 AND next_at > $2",
		"UPDATE installation SET restored_at = $1 WHERE restored_at > $2",
	} {
		if _, err := tx.exec(ctx, text, micros(tx.Now), micros(latest)); err != nil {
			return fmt.Errorf("pull forward: %w", err)
		}
	}
	return nil
}

// Node is a process that claims work. It is dead when its beat stands still.
type Node struct {
	ID   payment.ID
	Beat int64
}

// Nodes lists the processes that are, or were, alive.
func (s *Store) Nodes(ctx context.Context) ([]Node, error) {
	rows, err := s.query(ctx, "SELECT id, beat FROM nodes ORDER BY id")
	list, err := collect(rows, err, func(r scanner) (Node, error) {
		var n Node
		var id []byte
		err := r.Scan(&id, &n.Beat)
		n.ID = idOf(id)
		return n, err
	})
	return list, s.readError("nodes", err)
}

// ReleaseNode takes a dead process off the list, if its beat still stands where
// it was seen, and makes what it had in hand due for others. A payout that it
// may have been sending is unknown from now on: it is asked about. An attempt to
// deliver that it may have made goes on record, without an end.
func (tx *Tx) ReleaseNode(ctx context.Context, n Node) (released int64, err error) {
	if err := tx.guarded(ctx, "DELETE FROM nodes WHERE id = $1 AND beat = $2", n.ID[:], n.Beat); err != nil {
		return 0, err
	}
	now := micros(tx.Now)
	if _, err := tx.exec(ctx, `UPDATE payout_sends SET outcome = 'unknown' WHERE outcome = 'intent' AND (merchant_id, payout_id) IN (
		SELECT merchant_id, id FROM payouts WHERE claimed_by = $1 AND length(claimed_by) > 0 AND step = 'intent')`, n.ID[:]); err != nil {
		return 0, fmt.Errorf("release sends: %w", err)
	}
	free := func(text string) error {
		count, err := tx.changed(ctx, text, []byte{}, now, n.ID[:])
		released += count
		return err
	}
	err = free(`UPDATE payouts SET claimed_by = $1, next_at = $2, step = CASE WHEN step = 'intent' THEN 'unknown' ELSE step END
		WHERE claimed_by = $3 AND length(claimed_by) > 0`)
	if err != nil {
		return 0, fmt.Errorf("release payouts: %w", err)
	}
	if err := tx.recordCutOff(ctx, n.ID); err != nil {
		return 0, fmt.Errorf("release attempts: %w", err)
	}
	for _, text := range []string{
		"UPDATE deliveries SET claimed_by = $1, next_at = CASE WHEN state = 'pending' THEN CAST($2 AS BIGINT) ELSE 0 END WHERE claimed_by = $3 AND length(claimed_by) > 0",
		"UPDATE notices SET claimed_by = $1, next_at = $2 WHERE claimed_by = $3 AND length(claimed_by) > 0",
	} {
		if err := free(text); err != nil {
			return 0, fmt.Errorf("release: %w", err)
		}
	}
	return released, nil
}

// Installation is who the database belongs to, and how far it has come.
type Installation struct {
	ID         payment.ID
	Beat       int64     // only grows; also kept outside the database
	RestoredAt time.Time // when this database was last found to be an older copy
}

// ReadInstallation reads the installation's row.
func (s *Store) ReadInstallation(ctx context.Context) (Installation, error) {
	v, err := scanInstallation(s.queryRow(ctx, "SELECT id, beat, restored_at FROM installation"))
	return v, s.readError("installation", err)
}

func scanInstallation(r scanner) (v Installation, err error) {
	var id []byte
	var restored int64
	err = r.Scan(&id, &v.Beat, &restored)
	v.ID, v.RestoredAt = idOf(id), atMicros(restored)
	return v, err
}

// MarkRestored records that the database is an older copy of one that had come
// as far as beat: what happened since then may have left no trace here.
func (tx *Tx) MarkRestored(ctx context.Context, beat int64) error {
	_, err := tx.exec(ctx, "UPDATE installation SET restored_at = $1, beat = $2", micros(tx.Now), beat)
	return err
}
