package account

import (
	"context"
	"crypto/subtle"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// Registry keeps accounts open. It is safe for concurrent use.
type Registry struct {
	Options

	log *slog.Logger
	// changed is called, if not nil, with each account that was opened or has changed.
	changed func(a store.Account)

	// certificates are what was recorded of each; the worker's alone.
	certificates map[string]certificateState

	following sync.Mutex // of Follow
	mu        sync.RWMutex
	accounts  map[string]*opened
	stopped   []string     // see [store.Store.StoppedAccounts]
	feeds     []store.Feed // see [store.Store.Feeds]
}

var _ processor.Accounts = (*Registry)(nil)

// opened is an account with its processor, or why it cannot be opened.
type opened struct {
	account store.Account
	proc    processor.Processor
	err     error
}

// sends reports whether money may leave from the account.
func (v *opened) sends() bool {
	return v.proc == nil || processor.Offers(v.proc, payment.OperationPayout, payment.PIX)
}

// waits reports whether payouts or refunds of the account wait after a restore until its lists
// have been read.
func (v *opened) waits() bool {
	_, refunds := v.proc.(processor.Refunder)
	return refunds || v.sends()
}

// NewRegistry returns a registry without accounts; [Registry.Follow] opens them. changed
// may be nil.
func NewRegistry(o Options, log *slog.Logger, changed func(a store.Account)) *Registry {
	return &Registry{Options: o, log: log, changed: changed, accounts: map[string]*opened{}}
}

// Follow is the step of the worker that follows the table: it opens accounts that are new
// or have changed. An account that cannot be opened stops no other. One run is always
// enough, so it returns 0.
func (r *Registry) Follow(ctx context.Context) (int, error) {
	r.following.Lock()
	defer r.following.Unlock()
	versions, err := r.Store.AccountVersions(ctx)
	if err != nil {
		return 0, err
	}
	stopped, err := r.Store.StoppedAccounts(ctx)
	if err != nil {
		return 0, err
	}
	feeds, err := r.Store.Feeds(ctx)
	if err != nil {
		return 0, err
	}
	r.mu.Lock()
	r.stopped, r.feeds = stopped, feeds
	r.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(versions)) {
		last := r.get(id)
		same := last != nil && last.account.Version == versions[id]
		if same && last.account.Damaged == nil {
			continue
		}
		a, err := r.Store.Account(ctx, id)
		if err != nil {
			return 0, err
		}
		if same && a.Damaged != nil {
			continue // until its row is repaired, which does not change the version
		}
		r.put(ctx, last, a)
	}
	return 0, nil
}

func (r *Registry) put(ctx context.Context, last *opened, a store.Account) {
	next := &opened{account: a}
	if last != nil && last.proc != nil && a.Damaged == nil && sameContents(&last.account, &a) {
		next.proc = last.proc // what it caches stays valid
	} else {
		next.proc, next.err = r.open(&a)
	}
	r.mu.Lock()
	r.accounts[a.ID] = next
	r.mu.Unlock()
	switch {
	case next.err != nil:
		r.log.ErrorContext(ctx, "account cannot be opened: its work is left to other processes", "account", a.ID, "driver", a.Driver, "version", a.Version, "cause", next.err)
	case a.Refused():
		r.log.WarnContext(ctx, "account is suspended: its processor refuses the credentials; nothing is sent, and held money stays held, until they are accepted or replaced with porteira account rotate",
			"account", a.ID, "since", a.SuspendedAt)
	case a.State == payment.AccountSuspended:
		r.log.WarnContext(ctx, "account is suspended: nothing is sent, and held money stays held until porteira account resume", "account", a.ID)
	default:
		r.log.InfoContext(ctx, "account opened", "account", a.ID, "driver", a.Driver, "state", string(a.State), "version", a.Version)
	}
	if r.changed != nil {
		r.changed(a)
	}
}

// sameContents reports whether a driver would open both alike.
func sameContents(a, b *store.Account) bool {
	return maps.Equal(a.Settings, b.Settings) && maps.Equal(a.Secrets.Current, b.Secrets.Current) && maps.Equal(a.Secrets.Previous, b.Secrets.Previous)
}

func (r *Registry) get(id string) *opened {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.accounts[id]
}

// Find implements [processor.Accounts].
func (r *Registry) Find(id string) processor.Processor {
	if v := r.get(id); v != nil && v.err == nil {
		return v.proc
	}
	return nil
}

// Of implements [processor.Accounts].
func (r *Registry) Of(id string) (processor.Processor, error) {
	switch v := r.get(id); {
	case v == nil:
		return nil, processor.NotOpen(id, nil)
	case v.err != nil:
		return nil, processor.NotOpen(id, v.err)
	default:
		return v.proc, nil
	}
}

// Allows implements [processor.Accounts].
func (r *Registry) Allows(id string, use payment.AccountUse) error {
	if _, err := r.Of(id); err != nil {
		return err
	}
	if state := r.get(id).account.State; !state.Allows(use) {
		return processor.NotAllowed(id, state, use)
	}
	return nil
}

// Refused implements [processor.Accounts].
func (r *Registry) Refused(id string) bool {
	v := r.get(id)
	return v != nil && v.account.Refused()
}

// OpenTo implements [processor.Accounts].
func (r *Registry) OpenTo(id string, merchant payment.ID) bool {
	v := r.get(id)
	return v != nil && (v.account.Merchant.IsZero() || v.account.Merchant == merchant)
}

// Waits reports whether payouts or refunds of an account wait after a restore until its lists
// have been read.
func (r *Registry) Waits(id string) bool {
	v := r.get(id)
	return v != nil && v.waits()
}

// AddedUntil implements [processor.Accounts].
func (r *Registry) AddedUntil(t time.Time, merchant payment.ID) []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var list []string
	for id, v := range r.accounts {
		shared := v.account.Merchant.IsZero() || v.account.Merchant == merchant
		if shared && !v.account.CreatedAt.After(t) && v.waits() {
			list = append(list, id)
		}
	}
	return list
}

// IDs implements [processor.Accounts].
func (r *Registry) IDs() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var list []string
	for id, v := range r.accounts {
		if v.err == nil {
			list = append(list, id)
		}
	}
	slices.Sort(list)
	return list
}

// Authentic implements [processor.Accounts].
func (r *Registry) Authentic(id, token string) bool {
	v := r.get(id)
	if v == nil || v.err != nil {
		return false
	}
	secrets := &v.account.Secrets
	return same(token, secrets.NoticeToken) || same(token, secrets.PreviousToken)
}

// same compares a token in constant time; an empty one is never right.
func same(given, want string) bool {
	return want != "" && subtle.ConstantTimeCompare([]byte(given), []byte(want)) == 1
}

// Feeds lists the feeds of the open accounts, by account and name, as they were stored when the
// table was last followed. One that the driver does not read any more is left out.
func (r *Registry) Feeds() []store.Feed {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var list []store.Feed
	for i := range r.feeds {
		v := r.accounts[r.feeds[i].Account]
		if v == nil || v.err != nil {
			continue
		}
		if feeder, ok := v.proc.(processor.Feeder); ok {
			if _, read := feeder.Feeds()[processor.Feed(r.feeds[i].Feed)]; read {
				list = append(list, r.feeds[i])
			}
		}
	}
	return list
}

// States counts the accounts by state, those that cannot be opened as "not_open", those
// whose payouts or refunds wait after a restore also as "frozen", those whose payouts are stopped by a
// case also as "stopped", and those that are suspended because their processors refuse the
// credentials also as "refused".
func (r *Registry) States(frozen func(id string) bool) map[string]int {
	counts := map[string]int{"not_open": 0, "frozen": 0, "refused": 0}
	for _, state := range payment.AccountStates {
		counts[string(state)] = 0
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	counts["stopped"] = len(r.stopped)
	for id, v := range r.accounts {
		if v.waits() && frozen(id) {
			counts["frozen"]++
		}
		if v.account.Refused() {
			counts["refused"]++
		}
		if v.err != nil {
			counts["not_open"]++
		} else {
			counts[string(v.account.State)]++
		}
	}
	return counts
}

// NoticePath is the path of an account for notices, of which the token is a secret.
func NoticePath(a *store.Account) string { return "/inbound/" + a.ID + "/" + a.Secrets.NoticeToken }
