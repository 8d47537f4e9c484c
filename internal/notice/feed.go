package notice

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/worker"
	"github.com/porteira/porteira/internal/write"
)

// feedSlots is how many feeds are read at once. An account that does not answer takes one slot per
// feed, for queryTimeout of each back-off.
const feedSlots = 32

// feedEvery is the wait between reads of a feed that sets none.
const feedEvery = 5 * time.Second

// readAgainAfter is the back-off of a feed that cannot be read; its last wait repeats.
var readAgainAfter = []time.Duration{5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute}

// ReadFeeds is the step of the worker that reads the lists of the processors' accounts, so
// that payments and changes without a notice are booked too. It claims due feeds: one
// process reads a feed at a time, and a feed that fails delays no other.
func (s *Service) ReadFeeds(ctx context.Context) (int, error) {
	if !s.Queue.node.Lease.Valid() || s.feeds.Free() == 0 {
		return 0, nil
	}
	op, err := s.dueFeeds(ctx)
	if err != nil || len(op.due) == 0 {
		return 0, err
	}
	if err := s.Writer.DoWithoutCancel(ctx, op); err != nil {
		return 0, err
	}
	var entries atomic.Int64 // entries read so far: a further page wakes the worker
	for i := range op.claimed {
		s.feeds.Run(func() { entries.Add(int64(s.readFeed(ctx, op.claimed[i]))) })
	}
	return int(entries.Load()), nil
}

// dueFeeds is the claim of the feeds that are due, or are not stored yet, of the accounts
// that this process can open.
func (s *Service) dueFeeds(ctx context.Context) (*claimFeeds, error) {
	stored, err := s.Store.Feeds(ctx)
	if err != nil {
		return nil, store.Problem(err)
	}
	byKey := make(map[store.FeedKey]store.Feed, len(stored))
	for i := range stored {
		byKey[stored[i].FeedKey] = stored[i]
	}
	op, now := &claimFeeds{node: s.Queue.node.ID(), specs: map[store.FeedKey]processor.FeedSpec{}, after: map[store.FeedKey][]store.FeedKey{}}, s.Env.Clock.Now()
	history := s.Queue.node.History()
	var due []store.Feed
	for _, account := range s.Processors.IDs() {
		feeder, ok := s.Processors.Find(account).(processor.Feeder)
		if !ok || s.Processors.Refused(account) {
			continue
		}
		specs := feeder.Feeds()
		for _, feed := range slices.Sorted(maps.Keys(specs)) {
			f, known := byKey[store.FeedKey{Account: account, Feed: string(feed)}]
			if !known {
				f = newFeed(account, feed, specs[feed], now)
				op.fresh = append(op.fresh, f)
			}
			after := readAfter(f.FeedKey, specs)
			rewind := rewinds(&f, history) && allRead(after, byKey, history)
			if !known || !f.NextAt.IsZero() && (!f.NextAt.After(now) || rewind) {
				op.specs[f.FeedKey], op.after[f.FeedKey] = specs[feed], after
				due = append(due, f)
			}
		}
	}
	slices.SortStableFunc(due, func(a, b store.Feed) int { return a.NextAt.Compare(b.NextAt) })
	for i := range due[:min(len(due), s.feeds.Free())] {
		op.due = append(op.due, due[i].FeedKey)
	}
	return op, nil
}

// feedMargin is how much earlier than necessary a feed is read: clocks differ.
const feedMargin = 24 * time.Hour

// newFeed is a feed that was never read. If the processor allows it, it begins feedMargin
// before now.
func newFeed(account string, feed processor.Feed, spec processor.FeedSpec, now time.Time) store.Feed {
	f := store.Feed{FeedKey: store.FeedKey{Account: account, Feed: string(feed)}}
	if spec.From != nil {
		f.Cursor = spec.From(now.Add(-feedMargin))
	}
	return f
}

// claimFeeds claims due feeds to read them.
type claimFeeds struct {
	node  payment.ID
	fresh []store.Feed
	due   []store.FeedKey
	specs map[store.FeedKey]processor.FeedSpec
	after map[store.FeedKey][]store.FeedKey // see readAfter

	claimed []store.Feed
}

// Merchant implements [write.Operation].
func (v *claimFeeds) Merchant() payment.ID { return payment.ID{} }

// Class implements [write.Operation].
func (v *claimFeeds) Class() commit.Class { return commit.Claim }

// Needs implements [write.Operation].
func (v *claimFeeds) Needs(n *store.Needs) {
	n.ClaimingNode(v.node)
	for i := range v.fresh {
		n.NewFeed(v.fresh[i])
	}
	for _, k := range v.due {
		n.Feed(k)
		for _, earlier := range v.after[k] {
			n.Feed(earlier)
		}
	}
}

// Decide implements [write.Operation].
func (v *claimFeeds) Decide(l *store.Loaded, c *store.Changes) error {
	v.claimed = nil
	if !l.NodeAlive(v.node) {
		return write.ErrNodeDead
	}
	for _, k := range v.due {
		f, ok := l.Feed(k)
		rewind := rewinds(&f, l.History().Number) && allCleared(l, v.after[k])
		if !ok || !l.FeedDue(&f) && (!rewind || !f.ClaimedBy.IsZero()) {
			continue // another process claimed it meanwhile
		}
		if rewind {
			f.Rewound, f.Cursor = l.History().Number, fromBackup(&f, v.specs[k], l.History().RestoredFrom)
		} else {
			setBack(&f, v.specs[k], l.Now())
		}
		f.ClaimedBy, f.NextAt = v.node, time.Time{}
		c.SetFeed(f)
		v.claimed = append(v.claimed, f)
	}
	return nil
}

// aheadMin is how far in the future a time is that a wrong clock set.
const aheadMin = time.Minute

// setBack sets back the cursor of a feed that was read while our clock was ahead, once the clock is
// right: the cursor may be later than entries that came since.
func setBack(f *store.Feed, spec processor.FeedSpec, now time.Time) {
	if spec.From != nil && f.Through.After(now.Add(aheadMin)) {
		f.Cursor, f.Through = spec.From(now.Add(-feedMargin)), now
	}
}

// clearEvery is the longest wait between reads while payouts wait for the list, once a page can
// complete it.
const clearEvery = 2 * time.Second

// answeredPage is the result of reading a page.
type answeredPage struct {
	processor.Page

	err error
}

// readFeed reads and books one page of a claimed feed, and then moves its cursor. After a crash
// between the two the page is read again, which is harmless. It returns the number of entries
// before the new cursor.
func (s *Service) readFeed(ctx context.Context, f store.Feed) (entries int) {
	op := &endFeed{key: f.FeedKey, node: f.ClaimedBy, began: s.Env.Clock.Now(), wait: feedEvery}
	if h := s.Queue.node.History(); f.Cleared != h && processor.Feed(f.Feed).Rewinds() {
		op.history = h
	}
	page := worker.Call(func() (v answeredPage) {
		proc := s.Processors.Find(f.Account)
		feeder, ok := proc.(processor.Feeder)
		if !ok {
			return answeredPage{err: errNotOpen(f.Account)}
		}
		specs := feeder.Feeds()
		op.after, op.last = clearedAfter(f.FeedKey, specs), endsWait(f.FeedKey, proc, specs)
		op.quiet, op.wait = proc.Profile().Lag(processor.Feed(f.Feed)), cmp.Or(specs[processor.Feed(f.Feed)].Every, feedEvery)
		v.Page, v.err = s.readPage(ctx, f, proc, feeder)
		if v.err == nil && f.Cleared != s.Queue.node.History() && f.FeedKey == store.Transfers(f.Account) {
			op.parked, v.err = s.hasUnreadable(ctx, f.FeedKey)
		}
		return v
	}, func(cause error) answeredPage { return answeredPage{err: cause} })
	if op.page = page.Page; page.err != nil {
		wait := readAgainAfter[min(f.Failures, len(readAgainAfter)-1)]
		op.failure, op.wait = shortText(page.err), s.Env.Random.Jitter(wait, 10)
		s.Log.WarnContext(ctx, "feed could not be read", "account", f.Account, "feed", f.Feed, "cause", page.err)
	}
	s.Recorder.Record(ctx, "result of feed", func(ctx context.Context) error { return s.Writer.DoWithoutCancel(ctx, op) })
	if op.again || op.cleared {
		s.FeedWaker.Wake()
	}
	if op.cleared {
		if s.ClearedWaker != nil {
			s.ClearedWaker.Wake()
		}
		entries++ // the lists that waited for this one are due
	}
	if page.err != nil || page.Next == f.Cursor {
		return entries
	}
	return entries + len(page.Facts)
}

func (s *Service) readPage(ctx context.Context, f store.Feed, proc processor.Processor, feeder processor.Feeder) (processor.Page, error) {
	limited, cancel := s.Env.Clock.WithTimeout(ctx, queryTimeout)
	page, err := feeder.Read(limited, processor.Feed(f.Feed), f.Cursor)
	cancel()
	if err != nil {
		return page, err
	}
	for i := range page.Facts {
		if err := s.book(ctx, &f, proc, &page.Facts[i]); err != nil {
			return page, err
		}
	}
	return page, nil
}

// book books one entry of a feed, if it is not booked yet.
func (s *Service) book(ctx context.Context, f *store.Feed, proc processor.Processor, fact *processor.Fact) error {
	account := f.Account
	switch {
	case fact.Payment != nil:
		return s.bookPayment(ctx, account, proc, *fact.Payment)
	case fact.Change != nil:
		return s.bookChange(ctx, account, *fact.Change)
	case fact.Transfer != nil:
		return s.bookTransfer(ctx, f, fact.Transfer)
	case fact.Refund != nil:
		return s.bookRefund(ctx, account, fact.Refund)
	case fact.Cost != nil:
		return s.bookCost(ctx, account, fact.Cost)
	case fact.Unreadable != nil:
		return s.park(ctx, f, fact.Unreadable)
	default:
		return nil
	}
}

// errorTextMax is the longest text of an error that is stored, in bytes.
const errorTextMax = 300

// shortText is the text of an error in a form that every database accepts.
func shortText(err error) string {
	text := strings.ReplaceAll(err.Error(), "\x00", "")
	return strings.ToValidUTF8(text[:min(len(text), errorTextMax)], "")
}

// endFeed ends the reading of a page that was booked, or failed.
type endFeed struct {
	key     store.FeedKey
	node    payment.ID
	page    processor.Page
	failure string
	wait    time.Duration // until the next read
	began   time.Time     // before the page was read
	quiet   time.Duration // how long after a request an entry may be missing
	parked  bool          // an entry that may be a transfer of ours is not booked
	history int64         // of the database, if the list was not complete in it; else 0
	after   []store.FeedKey
	last    bool // see endsWait

	again   bool // the next page has entries
	cleared bool // the list is complete beyond a restore
}

// Merchant implements [write.Operation].
func (v *endFeed) Merchant() payment.ID { return payment.ID{} }

// Class implements [write.Operation].
func (v *endFeed) Class() commit.Class { return commit.Background }

// Needs implements [write.Operation].
func (v *endFeed) Needs(n *store.Needs) {
	n.ClaimingNode(v.node) // for the history
	n.Feed(v.key)
	if v.history > 0 {
		v.needsClearing(n)
	}
}

// Decide releases the feed. If its claim was released before, for example because this process was
// declared dead, another process reads the page again.
func (v *endFeed) Decide(l *store.Loaded, c *store.Changes) error {
	v.again, v.cleared = false, false
	f, ok := l.Feed(v.key)
	if !ok || f.ClaimedBy != v.node {
		return nil
	}
	f.ClaimedBy, f.NextAt = payment.ID{}, v.nextRead(l.Now())
	if f.LastError = v.failure; v.failure == "" && v.page.Missing != nil {
		f.LastError = shortText(v.page.Missing)
	}
	if v.failure != "" {
		f.Failures++
		c.SetFeed(f)
		return nil
	}
	// A cursor that stands still is read again later, or reading would never end.
	v.again = v.page.More && v.page.Next != f.Cursor
	if v.again {
		f.NextAt = l.Now()
	}
	switch {
	case v.clears(l, &f):
		f.Cleared, f.ClearedAt, v.cleared = l.History().Number, l.Now(), true
	case !v.again && v.history > 0 && allCleared(l, v.after):
		h := l.History()
		f.NextAt = l.Now().Add(min(v.wait, max(clearEvery, h.RestoredAt.Add(v.quiet).Sub(l.Now())))) // before that no page clears
	}
	f.Failures, f.Cursor = 0, v.page.Next
	if !v.page.Through.IsZero() {
		f.Through = v.page.Through
	}
	c.SetFeed(f)
	if v.cleared {
		v.endWait(l, c, &f)
	}
	return nil
}

// pauseMin is the shortest wait between a read of a feed and the next.
const pauseMin = time.Second

// nextRead is the time of the read after one that ended now. The wait after a success counts from the
// start of the read: if our clock jumped ahead during it, the list is not complete up to the new time.
func (v *endFeed) nextRead(now time.Time) time.Time {
	if v.failure != "" {
		return now.Add(v.wait)
	}
	next := v.began.Add(v.wait)
	if earliest := now.Add(min(v.wait, pauseMin)); next.Before(earliest) {
		return earliest
	}
	if latest := now.Add(v.wait); next.After(latest) { // the clock was set back
		return latest
	}
	return next
}
