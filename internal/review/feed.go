package review

import (
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
)

func feedOf(v *Resolve) store.FeedKey {
	return store.FeedKey{Account: v.opened.Params["processor"], Feed: v.opened.Params["feed"]}
}

func needsFeed(v *Resolve, n *store.Needs) { n.Feed(feedOf(v)) }

// checkFeed returns a problem while the feed is being read: its cursor is about to move.
func checkFeed(v *Resolve, l *store.Loaded) error {
	if f, ok := l.Feed(feedOf(v)); !ok || f.ClaimedBy != (payment.ID{}) {
		return problem.New(problem.InvalidState, "The list is being read now. Try again in some seconds.")
	}
	return nil
}

// readAgain reads a feed again from the page of the entry. A list of transfers that is being
// read again after a restore may not be that far yet: it begins again. Entries that are
// booked already are not booked twice.
func readAgain(v *Resolve, l *store.Loaded, c *store.Changes) error {
	f, _ := l.Feed(feedOf(v))
	f.NextAt = l.Now()
	if f.Rewound == f.Cleared {
		f.Cursor = v.opened.Params["cursor"]
	} else {
		f.Rewound = 0
	}
	c.SetFeed(f)
	return nil
}
