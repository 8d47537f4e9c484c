package notice

import (
	"slices"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// After a restore, transfers and refunds of an account wait until its lists show the effects that
// left in the past that the database lacks. The lists are read one after the other: payments,
// refunds, which are booked for payments, and transfers. The row of the list of transfers has the
// result.

// keysOf are the lists of an account that a driver has.
func keysOf(account string, specs map[processor.Feed]processor.FeedSpec, feeds ...processor.Feed) (keys []store.FeedKey) {
	for _, feed := range feeds {
		if _, ok := specs[feed]; ok {
			keys = append(keys, store.FeedKey{Account: account, Feed: string(feed)})
		}
	}
	return keys
}

// readAfter are the lists that are complete before a list is read again: a refund of a payment
// that is not booked cannot be booked. Transfers are read at once.
func readAfter(k store.FeedKey, specs map[processor.Feed]processor.FeedSpec) []store.FeedKey {
	if k.Feed == string(processor.FeedRefunds) {
		return keysOf(k.Account, specs, processor.FeedPayments)
	}
	return nil
}

// clearedAfter are the lists that are complete before a list ends the wait.
func clearedAfter(k store.FeedKey, specs map[processor.Feed]processor.FeedSpec) []store.FeedKey {
	if k == store.Transfers(k.Account) {
		return keysOf(k.Account, specs, processor.FeedPayments, processor.FeedRefunds)
	}
	return readAfter(k, specs)
}

// endsWait reports whether the wait of an account ends with this list. If the account sends no
// transfers, it ends with the list of refunds.
func endsWait(k store.FeedKey, proc processor.Processor, specs map[processor.Feed]processor.FeedSpec) bool {
	_, lists := specs[processor.FeedTransfers]
	_, sends := proc.(processor.Transferrer)
	return k == store.Transfers(k.Account) || k.Feed == string(processor.FeedRefunds) && !lists && !sends
}

// allRead is allCleared of stored feeds.
func allRead(keys []store.FeedKey, stored map[store.FeedKey]store.Feed, history int64) bool {
	return !slices.ContainsFunc(keys, func(k store.FeedKey) bool { return stored[k].Cleared != history })
}

// allCleared reports whether lists are complete beyond the restore.
func allCleared(l *store.Loaded, keys []store.FeedKey) bool {
	return !slices.ContainsFunc(keys, func(k store.FeedKey) bool {
		f, _ := l.Feed(k)
		return f.Cleared != l.History().Number
	})
}

// rewinds reports whether a list was not read again since the database was restored.
func rewinds(f *store.Feed, history int64) bool {
	return processor.Feed(f.Feed).Rewinds() && f.Rewound != history
}

// fromBackup is the cursor from which a feed is read after a restore. For payments it is the cursor
// in the backup: entries before it are booked. A clock that ran ahead may have made the backup and
// found the restore. So the time up to which the backup has the list counts instead, if it is
// earlier.
func fromBackup(f *store.Feed, spec processor.FeedSpec, madeAt time.Time) string {
	if f.Through.Before(madeAt) {
		madeAt = f.Through
	}
	switch {
	case f.Feed == string(processor.FeedPayments):
		return f.Cursor
	case spec.From == nil || madeAt.IsZero():
		return ""
	default:
		return spec.From(madeAt.Add(-feedMargin))
	}
}

// needsClearing reads the rows that clears needs.
func (v *endFeed) needsClearing(n *store.Needs) {
	for _, k := range v.after {
		n.Feed(k)
	}
	if v.last && v.key != store.Transfers(v.key.Account) { // it has no row of its own
		n.NewFeed(store.Feed{FeedKey: store.Transfers(v.key.Account)})
	}
	n.Feed(store.Transfers(v.key.Account))
}

// clears reports whether a page completes a list beyond the restore. A transfer that was in flight
// then is listed after the quiet period.
func (v *endFeed) clears(l *store.Loaded, f *store.Feed) bool {
	h := l.History()
	beyond := h.RestoredAt.Add(v.quiet)
	return v.history > 0 && h.Number == v.history && f.Rewound == h.Number && f.Cleared != h.Number &&
		!v.parked && !v.page.More && !v.page.Through.Before(beyond) && !v.began.Before(beyond) && allCleared(l, v.after)
}

// endWait ends the wait of the account, or makes the list that waits for this one due.
func (v *endFeed) endWait(l *store.Loaded, c *store.Changes, f *store.Feed) {
	if f.FeedKey == store.Transfers(f.Account) || v.last {
		c.CloseCases(payment.ID{}, store.FrozenAccount(f.Account), store.CaseAccountFrozen, store.ResolvedByProof)
	}
	if f.FeedKey == store.Transfers(f.Account) {
		return
	}
	t, ok := l.Feed(store.Transfers(f.Account))
	switch {
	case !ok:
		return
	case v.last:
		// It is due at the time when the account gains it; until then nobody claims it.
		t.Rewound, t.Cleared, t.ClearedAt, t.NextAt = f.Cleared, f.Cleared, l.Now(), l.Now()
	case !t.ClaimedBy.IsZero() || t.NextAt.IsZero():
		return // it is being read
	default:
		t.NextAt = l.Now()
	}
	c.SetFeed(t)
}
