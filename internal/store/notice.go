package store

import (
	"context"
	"time"

	"github.com/porteira/porteira/internal/payment"
)

// States of a notice.
const (
	NoticeReceived = "received"
	NoticeApplied  = "applied"
	NoticeStuck    = "stuck" // given up: a person reads it
)

// Notice is what a processor said, raw, until it is applied.
type Notice struct {
	Processor  string
	ID         string // the processor's
	Headers    string
	Body       []byte
	State      string
	Tries      int
	ReceivedAt time.Time
}

func noticePlace(processor, id string) Place {
	return Place{Table: "notices", Column: "body\x00" + processor + "\x00" + id}
}

var noticeTable = newTable("notices", "notice_id",
	column{"processor", "text"}, column{"notice_id", "text"}, column{"headers", "text"}, column{"body", "bytea"}, column{"state", "text"},
	column{"tries", "bigint"}, column{"problem", "text"}, column{"next_at", "bigint"}, column{"claimed_by", "bytea"},
	column{"received_at", "bigint"}, column{"applied_at", "bigint"})

// RecordNotice is RecordNotices for one.
func (tx *Tx) RecordNotice(ctx context.Context, n Notice) (bool, error) {
	fresh, err := tx.RecordNotices(ctx, []Notice{n})
	return err == nil && fresh[0], err
}

// RecordNotices stores verified notices, sealed, to be applied now; see Hold. It
// says false where the processor has sent one before. All of one call are of one
// processor.
func (tx *Tx) RecordNotices(ctx context.Context, list []Notice) ([]bool, error) {
	rows := make([][]any, len(list))
	for i, n := range list {
		sealed := tx.store.keys.Seal(noticePlace(n.Processor, n.ID), n.Body)
		next, by, tries := tx.holdNotice()
		rows[i] = []any{n.Processor, n.ID, n.Headers, sealed, NoticeReceived, tries, "", next, by, micros(tx.Now), int64(0)}
	}
	fresh, err := tx.insert(ctx, noticeTable, rows...)
	for i, n := range list {
		if tries := rows[i][5].(int64); err == nil && fresh[i] && tries > 0 {
			n.State, n.Tries, n.ReceivedAt = NoticeReceived, int(tries), tx.Now
			tx.held.Notices = append(tx.held.Notices, n)
		}
	}
	return fresh, err
}

// ClaimNotices takes up to limit due notices in hand for node, oldest first.
func (tx *Tx) ClaimNotices(ctx context.Context, node payment.ID, limit int) ([]Notice, error) {
	rows, err := tx.query(ctx, `WITH picked AS MATERIALIZED (
		SELECT processor, notice_id FROM notices WHERE next_at > 0 AND next_at <= $2 ORDER BY next_at LIMIT $3`+
		tx.store.dialect.skipLocked()+`)
		UPDATE notices SET claimed_by = $1, next_at = 0, tries = tries + 1
		WHERE (processor, notice_id) IN (SELECT processor, notice_id FROM picked) RETURNING processor, notice_id, headers, body, state, tries, received_at`,
		node[:], micros(tx.Now), limit)
	return collect(rows, err, func(r scanner) (Notice, error) {
		var n Notice
		var sealed []byte
		var tries, received int64
		if err := r.Scan(&n.Processor, &n.ID, &n.Headers, &sealed, &n.State, &tries, &received); err != nil {
			return n, err
		}
		n.Tries, n.ReceivedAt = int(tries), atMicros(received)
		var err error
		n.Body, err = tx.store.keys.Open(noticePlace(n.Processor, n.ID), sealed)
		return n, err
	})
}

var noticeUpdate = newRowUpdate(rowUpdate{
	table: "notices", owner: column{"processor", "text"},
	keys: []column{{"notice_id", "text"}},
	set: []column{{"state", "text"}, {"problem", "text"}, {"next_at", "bigint"}, {"claimed_by", "bytea"},
		{"applied_at", "bigint"}},
}, "")

// FinishNotice marks a notice as applied, or as stuck with the reason.
func (tx *Tx) FinishNotice(ctx context.Context, n Notice, state, problem string) error {
	return tx.change(ctx, noticeUpdate, n.Processor, n.ID, state, problem, int64(0), []byte{}, micros(tx.Now))
}

var noticeDelay = newRowUpdate(rowUpdate{
	table: "notices", owner: column{"processor", "text"},
	keys: []column{{"notice_id", "text"}},
	set:  []column{{"problem", "text"}, {"next_at", "bigint"}, {"claimed_by", "bytea"}},
}, " AND t.state = '"+NoticeReceived+"'")

// DelayNotice gives a notice back, to be tried again at a time.
func (tx *Tx) DelayNotice(ctx context.Context, n Notice, at time.Time, problem string) error {
	return tx.change(ctx, noticeDelay, n.Processor, n.ID, problem, micros(at), []byte{})
}
