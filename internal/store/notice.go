package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
)

// NoticeState is the state of a notice.
type NoticeState string

// The states of a notice.
const (
	NoticeReceived   NoticeState = "received"
	NoticeApplied    NoticeState = "applied"
	NoticeDeadLetter NoticeState = "dead_letter" // given up, for manual review
)

// NoticeSource is where a notice comes from.
type NoticeSource string

// The sources of notices.
const (
	FromProcessor NoticeSource = ""     // it was sent
	FromFeed      NoticeSource = "feed" // it was listed, and is not confirmed yet
)

// Notice is a processor's raw notice until it is applied.
type Notice struct {
	Processor  string
	ID         string // the processor's
	Source     NoticeSource
	Headers    string
	Body       []byte
	State      NoticeState
	Attempts   int    // to apply it, including the current one
	LastError  string // of the last failed attempt
	NextAt     time.Time
	ClaimedBy  payment.ID
	ReceivedAt time.Time
	AppliedAt  time.Time
	Damaged    error // why the body of this due notice cannot be decrypted

	sealed []byte // body
}

var noticeTable = newTable("notices", []string{"processor", "notice_id"},
	textColumn("processor", func(n *Notice) *string { return &n.Processor }),
	textColumn("notice_id", func(n *Notice) *string { return &n.ID }),
	textColumn("source", func(n *Notice) *NoticeSource { return &n.Source }),
	textColumn("headers", func(n *Notice) *string { return &n.Headers }),
	bytesColumn("body", func(n *Notice) *[]byte { return &n.sealed }),
	textColumn("state", func(n *Notice) *NoticeState { return &n.State }).as(mutable),
	intColumn("attempts", func(n *Notice) *int { return &n.Attempts }).as(mutable),
	textColumn("last_error", func(n *Notice) *string { return &n.LastError }).as(mutable),
	timeColumn("next_at", func(n *Notice) *time.Time { return &n.NextAt }).as(mutable),
	optionalIDColumn("claimed_by", func(n *Notice) *payment.ID { return &n.ClaimedBy }).as(mutable),
	timeColumn("received_at", func(n *Notice) *time.Time { return &n.ReceivedAt }),
	timeColumn("applied_at", func(n *Notice) *time.Time { return &n.AppliedAt }).as(mutable),
)

// noticeUpdate does not change a notice that is not waiting any more: a process that was declared
// dead may finish one after another process did.
var noticeUpdate = noticeTable.updateBy(" AND t.state = 'received'", "processor", "notice_id")

func noticeBody(processor, id string) db.AssociatedData {
	return db.AssociatedData{Table: "notices", Column: "body\x00" + processor + "\x00" + id}
}

// NewNotice is a verified notice to be stored.
type NewNotice struct{ notice Notice }

// NewNotice seals a notice, before any lock.
func (s *Store) NewNotice(n Notice) *NewNotice {
	n.State = NoticeReceived
	n.sealed = s.Keys().Seal(noticeBody(n.Processor, n.ID), n.Body)
	return &NewNotice{n}
}

type noticeNeeds struct {
	fresh []*NewNotice
	due   map[string]int // limits, by account
}

// InsertNotice stores a notice, to be applied now, and reserves capacity to claim it. A notice that
// its processor has sent before is not stored again.
func (n *Needs) InsertNotice(v *NewNotice) {
	n.notices.fresh = append(n.notices.fresh, v)
	if n.capacity.Notices == nil {
		n.capacity.Notices = map[string]int{}
	}
	n.capacity.Notices[v.notice.Processor]++
}

// DueNotices reads up to limit due notices of an account, oldest first, that no other
// process is claiming.
func (n *Needs) DueNotices(account string, limit int) {
	if n.notices.due == nil {
		n.notices.due = map[string]int{}
	}
	n.notices.due[account] += limit
}

// AccountsWithNotices lists the accounts that have notices due at a time: a node claims
// only those of accounts that it can open.
func (s *Store) AccountsWithNotices(ctx context.Context, now time.Time) ([]string, error) {
	return s.accountsDue(ctx, "due notices", "notices", "processor", "", now)
}

// insertNotices inserts new notices, claimed as far as the capacity allows.
func (l *Loaded) insertNotices(ctx context.Context, tx *db.Tx, n *Needs) error {
	list := make([]Notice, len(n.notices.fresh))
	for i, v := range n.notices.fresh {
		list[i] = v.notice
		list[i].ReceivedAt, list[i].NextAt = tx.Now, tx.Now
	}
	slices.SortStableFunc(list, func(a, b Notice) int { // as for receipts
		if order := strings.Compare(a.Processor, b.Processor); order != 0 {
			return order
		}
		return strings.Compare(a.ID, b.ID)
	})
	rows := make([][]any, len(list))
	for i := range list {
		if v := &list[i]; l.capacity.takeNotice(v.Processor) {
			v.NextAt, v.ClaimedBy, v.Attempts = time.Time{}, l.capacity.Node, 1
		}
		rows[i] = noticeTable.row(&list[i])
	}
	added, err := tx.Insert(ctx, noticeTable.insert, rows...)
	for i := range added {
		switch {
		case !added[i]:
		case list[i].ClaimedBy.IsZero():
			l.capacity.leaveNotice(list[i].Processor)
		default:
			l.capacity.claimed.Notices = append(l.capacity.claimed.Notices, list[i])
		}
	}
	return err
}

func (l *Loaded) loadNotices(ctx context.Context, tx *db.Tx, n *Needs) error {
	for _, account := range slices.Sorted(maps.Keys(n.notices.due)) {
		rows, err := tx.Query(ctx, "SELECT "+noticeTable.selected+` FROM notices t WHERE t.processor = $1 AND t.next_at > 0 AND t.next_at <= $2
			ORDER BY t.next_at LIMIT $3`+tx.SkipLocked(), account, micros(tx.Now), n.notices.due[account])
		list, err := db.Collect(rows, err, func(r db.Scanner) (*Notice, error) {
			v := &Notice{}
			if err := noticeTable.scan(r, v); err != nil {
				return v, err
			}
			// One damaged row must not stop the others.
			v.Body, v.Damaged = tx.Keys().Open(noticeBody(v.Processor, v.ID), v.sealed)
			return v, nil
		})
		if err != nil {
			return err
		}
		l.notices = append(l.notices, list...)
	}
	return nil
}

// DueNotices are the loaded due notices that no decision of this commit has
// claimed or changed, each account's oldest first.
func (l *Loaded) DueNotices(account string) []Notice {
	var list []Notice
	for _, v := range l.notices {
		if v.Processor == account && l.due(v.ClaimedBy, v.NextAt) {
			list = append(list, *v)
		}
	}
	return list
}

// SetNotice changes a notice that this process has claimed, or claims now.
func (c *Changes) SetNotice(n Notice) {
	for _, v := range c.l.notices {
		if v.Processor == n.Processor && v.ID == n.ID {
			*v = n
		}
	}
	c.notices = append(c.notices, n)
	c.count++
}

// FinishNotice marks a claimed notice as applied.
func (c *Changes) FinishNotice(n Notice) {
	n.State, n.NextAt, n.ClaimedBy, n.AppliedAt = NoticeApplied, time.Time{}, payment.ID{}, c.l.now
	c.SetNotice(n)
}

// RetryNotice makes a dead letter due again, if it still is one.
func (c *Changes) RetryNotice(processor, id string) {
	c.retries.notices = append(c.retries.notices, Notice{Processor: processor, ID: id})
	c.count++
}

func (c *Changes) saveNotices(ctx context.Context, tx *db.Tx) error {
	type key struct{ processor, id string }
	rows := latestRows(noticeUpdate, c.notices, func(n *Notice) key { return key{n.Processor, n.ID} })
	if _, err := tx.Update(ctx, noticeUpdate.RowUpdate, rows...); err != nil {
		return fmt.Errorf("notices: %w", err)
	}
	for i := range c.retries.notices {
		_, err := tx.ExecCount(ctx, `UPDATE notices SET state = 'received', next_at = $1, attempts = 0, applied_at = 0
			WHERE processor = $2 AND notice_id = $3 AND state = 'dead_letter'`, micros(c.l.now), c.retries.notices[i].Processor, c.retries.notices[i].ID)
		if err != nil {
			return fmt.Errorf("notices to retry: %w", err)
		}
	}
	return nil
}
