package store

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
)

// FeedKey names one list of a processor account.
type FeedKey struct{ Account, Feed string }

func (k FeedKey) key() []any { return []any{k.Account, k.Feed} }

func (k FeedKey) compare(o FeedKey) int {
	if order := strings.Compare(k.Account, o.Account); order != 0 {
		return order
	}
	return strings.Compare(k.Feed, o.Feed)
}

// Feed is the reading state of a list of a processor account: how far it has been read, and by
// which process.
type Feed struct {
	FeedKey

	Cursor    string
	Through   time.Time // up to which the feed was complete when it was last read; zero if never
	NextAt    time.Time // of the next read; zero while claimed
	ClaimedBy payment.ID
	Failures  int    // failed reads in a row
	LastError string // of the last read if it failed; else why its page lacks entries, "" if it lacks none

	// For the list of transfers, as histories of the installation: the history for which it was
	// read again from its backup on, and the history in which that was complete, at ClearedAt.
	Rewound, Cleared int64
	ClearedAt        time.Time

	UpdatedAt time.Time
}

var feedTable = newTable("feeds", []string{"account", "feed"},
	textColumn("account", func(f *Feed) *string { return &f.Account }),
	textColumn("feed", func(f *Feed) *string { return &f.Feed }),
	textColumn("cursor", func(f *Feed) *string { return &f.Cursor }).as(mutable),
	timeColumn("through", func(f *Feed) *time.Time { return &f.Through }).as(mutable),
	timeColumn("next_at", func(f *Feed) *time.Time { return &f.NextAt }).as(mutable),
	optionalIDColumn("claimed_by", func(f *Feed) *payment.ID { return &f.ClaimedBy }).as(mutable),
	intColumn("failures", func(f *Feed) *int { return &f.Failures }).as(mutable),
	textColumn("last_error", func(f *Feed) *string { return &f.LastError }).as(mutable),
	intColumn("rewound", func(f *Feed) *int64 { return &f.Rewound }).as(mutable),
	intColumn("cleared", func(f *Feed) *int64 { return &f.Cleared }).as(mutable),
	timeColumn("cleared_at", func(f *Feed) *time.Time { return &f.ClearedAt }).as(mutable),
	timeColumn("updated_at", func(f *Feed) *time.Time { return &f.UpdatedAt }).as(mutable),
)

var (
	feedUpdate = feedTable.updateBy("", "account", "feed")
	feedByKey  = feedTable.selectBy("t.account, t.feed", "account", "feed")
)

func scanFeed(r db.Scanner) (Feed, error) {
	var f Feed
	return f, feedTable.scan(r, &f)
}

type feedNeeds struct {
	fresh []Feed
	keys  []FeedKey
}

// NewFeed stores a feed, to be read now from its cursor, if there is none of its key.
func (n *Needs) NewFeed(f Feed) { n.feeds.fresh = append(n.feeds.fresh, f) }

// Feed reads a feed.
func (n *Needs) Feed(k FeedKey) {
	if !slices.Contains(n.feeds.keys, k) {
		n.feeds.keys = append(n.feeds.keys, k)
	}
}

func (l *Loaded) loadFeeds(ctx context.Context, tx *db.Tx, n *Needs) error {
	if len(n.feeds.fresh)+len(n.feeds.keys) == 0 {
		return nil
	}
	fresh := slices.Clone(n.feeds.fresh)
	slices.SortStableFunc(fresh, func(a, b Feed) int { return a.compare(b.FeedKey) })
	rows := make([][]any, len(fresh))
	for i := range fresh {
		fresh[i].NextAt, fresh[i].UpdatedAt = tx.Now, tx.Now
		rows[i] = feedTable.row(&fresh[i])
	}
	if _, err := tx.Insert(ctx, feedTable.insert, rows...); err != nil {
		return err
	}
	keys := slices.Clone(n.feeds.keys)
	slices.SortFunc(keys, FeedKey.compare)
	list, err := db.Select(ctx, tx, feedByKey, keysOf(keys), scanFeed)
	l.feeds = make(map[FeedKey]Feed, len(list))
	for i := range list {
		l.feeds[list[i].FeedKey] = list[i]
	}
	return err
}

// Feed is a loaded feed; false if there is none.
func (l *Loaded) Feed(k FeedKey) (Feed, bool) {
	f, ok := l.feeds[k]
	return f, ok
}

// FeedDue reports whether a loaded feed may be claimed now.
func (l *Loaded) FeedDue(f *Feed) bool { return l.due(f.ClaimedBy, f.NextAt) }

// SetFeed changes a loaded feed.
func (c *Changes) SetFeed(f Feed) {
	f.UpdatedAt = c.l.now
	c.l.feeds[f.FeedKey] = f
	c.feeds = append(c.feeds, f)
	c.count++
}

func (c *Changes) saveFeeds(ctx context.Context, tx *db.Tx) error {
	return saveRows(ctx, tx, "feeds", feedUpdate, c.feeds, func(f *Feed) FeedKey { return f.FeedKey }, feedTable, nil)
}

// feedTransfers is processor.FeedTransfers.
const feedTransfers = "transfers"

// Transfers is the key of the list of transfers of an account. Its row also records whether payouts
// of the account wait after a restore.
func Transfers(account string) FeedKey {
	return FeedKey{Account: account, Feed: feedTransfers}
}

// Cleared lists the accounts whose transfers have been read in a history of the installation: their
// payouts do not wait.
func Cleared(feeds []Feed, history int64) map[string]bool {
	cleared := map[string]bool{}
	for i := range feeds {
		if f := &feeds[i]; f.FeedKey == Transfers(f.Account) && f.Cleared == history {
			cleared[f.Account] = true
		}
	}
	return cleared
}

// Feeds lists all feeds.
func (s *Store) Feeds(ctx context.Context) ([]Feed, error) {
	rows, err := s.db.Query(ctx, "SELECT "+feedTable.selected+" FROM feeds t ORDER BY t.account, t.feed")
	list, err := db.Collect(rows, err, scanFeed)
	return list, s.db.ReadError("feeds", err)
}

// Frozen returns whether payouts and refunds of an account wait since a cold start, because its lists have
// not been read.
func (s *Store) Frozen(ctx context.Context) (func(account string) bool, error) {
	inst, err := s.ReadInstallation(ctx)
	if err != nil || inst.History == 0 {
		return func(string) bool { return false }, err
	}
	feeds, err := s.Feeds(ctx)
	cleared := Cleared(feeds, inst.History)
	return func(account string) bool { return !cleared[account] }, err
}
