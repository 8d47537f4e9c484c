package notice

import (
	"context"
	"slices"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

// park opens a case about an invalid entry of a feed, so that it does not stop the entries after
// it. It opens one case, however often the entry is listed, and another one if a person decides
// that the entry is read again and it is still invalid. A transfer of another program that uses the
// account gets none.
func (s *Service) park(ctx context.Context, f *store.Feed, e *processor.Unreadable) error {
	if e.ExternalID != "" && f.FeedKey == store.Transfers(f.Account) {
		merchant, err := s.Store.MerchantOf(ctx, e.ExternalID)
		if err != nil || merchant.IsZero() {
			return store.Problem(err)
		}
	}
	subject := store.CaseID("entry %s %s %s", f.Account, f.Feed, e.ID)
	list, err := s.Store.CasesAbout(ctx, payment.ID{}, subject, store.CaseFeedEntry)
	if err != nil {
		return store.Problem(err)
	}
	if slices.ContainsFunc(list, func(v store.Case) bool { return v.Resolution != store.ResolvedRetry }) {
		return nil
	}
	s.Log.ErrorContext(ctx, "entry of a feed cannot be read", "account", f.Account, "feed", f.Feed, "externalId", e.ExternalID, "cause", e.Cause)
	params := store.Params{"processor": f.Account, "feed": f.Feed, "cursor": f.Cursor, "cause": string(e.Cause)}
	if e.ExternalID != "" {
		params["externalId"] = e.ExternalID
	}
	return s.Writer.Do(ctx, write.OpenCase{Case: store.Case{
		ID: s.Env.IDs.NewID(s.Env.Clock.Now()), Kind: store.CaseFeedEntry, Subject: subject, Params: params,
	}})
}

// hasUnreadable reports whether a case about an invalid entry of a feed is open that the database
// may have lacked at its last cold start: payouts went on under an older one. Only the process that
// has claimed the feed opens them, before it moves the cursor.
func (s *Service) hasUnreadable(ctx context.Context, k store.FeedKey) (bool, error) {
	list, err := s.Store.OpenCasesOf(ctx, payment.ID{}, store.CaseFeedEntry)
	since := s.Queue.node.RestoredAt().Add(-aheadMin) // clocks differ
	return slices.ContainsFunc(list, func(v store.Case) bool {
		return !v.CreatedAt.Before(since) && v.Params["processor"] == k.Account && v.Params["feed"] == k.Feed
	}), store.Problem(err)
}
