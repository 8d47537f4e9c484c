package store

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/porteira/porteira/internal/payment"
)

// SettingRemoved holds the time, in microseconds, before which deliveries may
// have been removed for their age. It only grows.
const SettingRemoved = "deliveries-removed-before"

// finishedBefore are deliveries that nobody works on or waits for, since a time.
// One that was given up waits for a person, until its exception is closed.
const finishedBefore = `(state IN ('delivered', 'ended') OR state = 'exhausted' AND EXISTS (SELECT 1 FROM exceptions x
		WHERE x.merchant_id = deliveries.merchant_id AND x.id = deliveries.exception_id AND x.closed_at > 0))
	AND next_at = 0 AND length(claimed_by) = 0 AND updated_at < `

// Old is a piece of a merchant's deliveries, in the order of their ids.
type Old struct {
	Merchant    payment.ID
	After, Last payment.ID // from the first one behind After up to Last
	Count       int        // of deliveries in it
	Finished    int        // of those that are finished
}

// OldDeliveries looks at up to limit deliveries that were made before a time,
// behind the one with the id after. It reads along the key and changes nothing.
func (s *Store) OldDeliveries(ctx context.Context, merchant, after payment.ID, before time.Time, limit int) (Old, error) {
	end := payment.MinIDAt(before)
	rows, err := s.query(ctx, "SELECT id, CASE WHEN "+finishedBefore+`$1 THEN 1 ELSE 0 END FROM deliveries
		WHERE merchant_id = $2 AND id > $3 AND id < $4 ORDER BY id LIMIT $5`, micros(before), merchant[:], after[:], end[:], limit)
	v := Old{Merchant: merchant, After: after, Last: after}
	list, err := collect(rows, err, func(r scanner) (finished int, err error) {
		var id []byte
		err = r.Scan(&id, &finished)
		v.Last = idOf(id)
		return finished, err
	})
	v.Count = len(list)
	for _, finished := range list {
		v.Finished += finished
	}
	return v, s.readError("old deliveries", err)
}

// RemoveDeliveries removes those of a piece that have been finished since before
// a time, with their attempts, and says how many they were. Events stay.
func (tx *Tx) RemoveDeliveries(ctx context.Context, v Old, before time.Time) (int64, error) {
	const piece = " FROM deliveries WHERE merchant_id = $1 AND id > $2 AND id <= $3 AND " + finishedBefore + "$4"
	args := []any{v.Merchant[:], v.After[:], v.Last[:], micros(before)}
	// Nobody asks for one of them to be sent again from here on.
	rows, err := tx.query(ctx, "SELECT id"+piece+tx.store.dialect.forUpdate(), args...)
	if list, err := collect(rows, err, scanID); err != nil || len(list) == 0 {
		return 0, err
	}
	if _, err := tx.exec(ctx, `DELETE FROM delivery_attempts WHERE merchant_id = $1 AND delivery_id > $2 AND delivery_id <= $3
		AND delivery_id IN (SELECT id`+piece+")", args...); err != nil {
		return 0, err
	}
	return tx.changed(ctx, "DELETE"+piece, args...)
}

// removalStep is how far one note moves the border of removal at most: years are
// caught up on in weeks, and a clock that runs ahead takes a day with each note.
const removalStep = 24 * time.Hour

// NoteRemoval records that deliveries made before a time may be removed from now
// on: whoever proves the books does not miss them. It returns the border that it
// allows, which is no later than that time: a clock that runs a year ahead must
// not remove in one go what was to be kept for another year. The border begins at
// the installation's own beginning, less the time for which deliveries are kept.
func (tx *Tx) NoteRemoval(ctx context.Context, before time.Time, kept time.Duration) (border time.Time, err error) {
	// The row is there before it is locked, so that two who note at once wait for
	// each other.
	_, err = tx.exec(ctx, `INSERT INTO settings (name, value) SELECT $1, CAST(created_at - $2 AS TEXT) FROM installation WHERE TRUE
		ON CONFLICT (name) DO NOTHING`, SettingRemoved, kept.Microseconds())
	if err != nil {
		return border, err
	}
	text, err := tx.Setting(ctx, SettingRemoved)
	if err != nil {
		return border, err
	}
	noted, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return border, fmt.Errorf("store: setting %s: %w", SettingRemoved, err)
	}
	if last := atMicros(noted).Add(removalStep); before.After(last) {
		before = last
	}
	if micros(before) <= noted {
		return before, nil
	}
	return before, tx.SetSetting(ctx, SettingRemoved, strconv.FormatInt(micros(before), 10))
}
