package store

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
)

// SettingRemoved is the time, in microseconds, before which deliveries may have been
// removed because of their age. It only increases.
const SettingRemoved = "deliveries-removed-before"

// finishedBefore are deliveries that were finished before a time.
//   - An exhausted delivery is finished when its case is closed.
//   - A delivery to an endpoint has a case only if its event cannot be opened. It is finished if the
//     endpoint refuses it alone, or has had a success since; else the endpoint gets it when it
//     catches up.
//   - A successful delivery is needed while its endpoint has not accepted an older event: the feed
//     is read again from that event, and skips delivered ones.
const finishedBefore = `(state = 'disabled' OR state = 'delivered' AND NOT (length(endpoint_id) > 0 AND EXISTS (SELECT 1 FROM deliveries o
			WHERE o.merchant_id = deliveries.merchant_id AND o.endpoint_id = deliveries.endpoint_id AND length(o.endpoint_id) > 0
			AND o.state <> 'delivered' AND (o.state IN ('pending', 'paused') OR o.state = 'exhausted' AND o.` + fewRestarts + `) AND o.event_number < deliveries.event_number))
		OR state = 'exhausted'
			AND (length(endpoint_id) = 0 OR NOT ` + fewRestarts + ` OR NOT EXISTS (SELECT 1 FROM webhook_endpoints w WHERE w.merchant_id = deliveries.merchant_id
				AND w.id = deliveries.endpoint_id AND w.failing_since > 0 AND w.failing_since <= deliveries.updated_at))
			AND (length(endpoint_id) > 0 AND length(case_id) = 0
				OR EXISTS (SELECT 1 FROM cases x WHERE x.merchant_id = deliveries.merchant_id AND x.id = deliveries.case_id AND x.closed_at > 0)))
	AND next_at = 0 AND length(claimed_by) = 0 AND updated_at < `

// OldDeliveries is a range of a merchant's deliveries, in the order of their ids.
type OldDeliveries struct {
	Merchant    payment.ID
	After, Last payment.ID // from the first one after After to Last
	Count       int        // of deliveries in it
	Finished    int        // of those that are finished
}

// OldDeliveries reads up to limit deliveries that were created before a time,
// after the one with the id after, in the order of the key. It changes nothing.
func (s *Store) OldDeliveries(ctx context.Context, merchant, after payment.ID, before time.Time, limit int) (OldDeliveries, error) {
	end := payment.MinIDAt(before)
	rows, err := s.db.Query(ctx, "SELECT id, CASE WHEN "+finishedBefore+`$1 THEN 1 ELSE 0 END FROM deliveries
		WHERE merchant_id = $2 AND id > $3 AND id < $4 ORDER BY id LIMIT $5`, micros(before), merchant[:], after[:], end[:], limit)
	v := OldDeliveries{Merchant: merchant, After: after, Last: after}
	list, err := db.Collect(rows, err, func(r db.Scanner) (finished int, err error) {
		err = r.Scan((*idDest)(&v.Last), &finished)
		return finished, err
	})
	v.Count = len(list)
	for _, finished := range list {
		v.Finished += finished
	}
	return v, s.db.ReadError("old deliveries", err)
}

// RemoveDeliveries removes those of a range that were finished before a time, with
// their attempts, and returns their number. Events stay.
func (tx *Tx) RemoveDeliveries(ctx context.Context, v OldDeliveries, before time.Time) (int64, error) {
	const those = " FROM deliveries WHERE merchant_id = $1 AND id > $2 AND id <= $3 AND " + finishedBefore + "$4"
	args := []any{v.Merchant[:], v.After[:], v.Last[:], micros(before)}
	// From here on none of them can be requested again.
	rows, err := tx.Query(ctx, "SELECT id"+those+tx.ForUpdate(), args...)
	if list, err := db.Collect(rows, err, scanID); err != nil || len(list) == 0 {
		return 0, err
	}
	if _, err := tx.Exec(ctx, `DELETE FROM delivery_attempts WHERE merchant_id = $1 AND delivery_id > $2 AND delivery_id <= $3
		AND delivery_id IN (SELECT id`+those+")", args...); err != nil {
		return 0, err
	}
	return tx.ExecCount(ctx, "DELETE"+those, args...)
}

// removalStep is how far one call moves the limit of removal at most. So a backlog of years takes
// weeks, and a clock that is ahead gains at most a day with each call.
const removalStep = 24 * time.Hour

// AllowRemoval records that deliveries created before a time may be removed from now on, so that
// verification does not miss them. It returns the allowed time, which may be earlier: a clock that
// is a year ahead must not remove at once the deliveries of another year. The limit starts at the
// creation of the installation, less the retention.
func (tx *Tx) AllowRemoval(ctx context.Context, before time.Time, kept time.Duration) (allowed time.Time, err error) {
	// The row must exist before it is locked, so that two callers wait for each
	// other.
	_, err = tx.Exec(ctx, `INSERT INTO settings (name, value) SELECT $1, CAST(created_at - $2 AS TEXT) FROM installation WHERE TRUE
		ON CONFLICT (name) DO NOTHING`, SettingRemoved, kept.Microseconds())
	if err != nil {
		return allowed, err
	}
	text, err := tx.Setting(ctx, SettingRemoved)
	if err != nil {
		return allowed, err
	}
	limit, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return allowed, fmt.Errorf("store: setting %s: %w", SettingRemoved, err)
	}
	if last := atMicros(limit).Add(removalStep); before.After(last) {
		before = last
	}
	if micros(before) <= limit {
		return before, nil
	}
	return before, tx.SetSetting(ctx, SettingRemoved, strconv.FormatInt(micros(before), 10))
}
