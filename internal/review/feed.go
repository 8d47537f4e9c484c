package review

import (
	"context"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

func feedOf(v *Resolve) store.FeedKey {
	return store.FeedKey{Account: v.opened.Params["processor"], Feed: v.opened.Params["feed"]}
}

func needsFeed(v *Resolve, n *store.Needs) { n.Feed(feedOf(v)) }

// findHistory reads the history of the database.
func findHistory(ctx context.Context, s *Service, v *Resolve) error {
	inst, err := s.Store.ReadInstallation(ctx)
	v.history = inst.Latest()
	return err
}

// checkFeed returns a problem unless the list was read to its end. Then its cursor is behind the
// entry, and no entry before it waits to be read again. Otherwise a cursor that moves forward could
// skip such an entry, because cursors of a processor cannot be compared.
func checkFeed(v *Resolve, l *store.Loaded) error {
	f, ok := l.Feed(feedOf(v))
	switch {
	case !ok || f.ClaimedBy != (payment.ID{}) || !f.NextAt.After(l.Now()):
		return problem.New(problem.InvalidState, "The list is being read now, or is due. Try again in some seconds.")
	case f.Failures > 0:
		return problem.New(problem.InvalidState, "The list could not be read last time. Try again once the processor answers: the log has the cause.")
	case processor.Feed(f.Feed).Rewinds() && f.Rewound != v.history.Number:
		return problem.New(problem.InvalidState, "The list is read again first, because the database was restored from a backup. Try again after that.")
	}
	return nil
}

// readAgain reads a feed again from the page of the entry. Entries that are booked already are not
// booked twice.
func readAgain(v *Resolve, l *store.Loaded, c *store.Changes) error {
	f, _ := l.Feed(feedOf(v))
	f.NextAt, f.Cursor = l.Now(), v.opened.Params["cursor"]
	c.SetFeed(f)
	return nil
}
