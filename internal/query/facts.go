package query

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/store"
)

// Facts are what an operator must know about an installation, each read in one place: doctor and
// metrics show the same.
type Facts struct {
	At       time.Time
	Cases    []store.CaseCount
	Unknowns []store.Unknown
	Work     []Work
	Webhooks store.Backlog
	Balances ledger.Balances // of all merchants and the platform
	Readings []Reading       // of accounts' money at their processors
	Verified Verified
	BackedUp BackedUp
}

// CasesOpen adds up counts of open cases: how many are open, and how many of them stop payouts.
func CasesOpen(list []store.CaseCount) (open, stopping int64) {
	for _, c := range list {
		open, stopping = open+c.Open, stopping+c.Stopping
	}
	return open, stopping
}

// Work is a queue of background work, and where it is due.
type Work struct {
	Kind store.WorkKind
	// Due is when the first row of each account is due; the account is "" if the queue is not split.
	Due []store.Oldest
}

// Oldest is when the first row of a queue is due; zero if none is.
func (w *Work) Oldest() (since time.Time) {
	for _, d := range w.Due {
		if since.IsZero() || d.Since.Before(since) {
			since = d.Since
		}
	}
	return since
}

// Queues are the queues of background work, and whether their work waits while its account sends
// nothing.
var Queues = []struct {
	Kind  store.WorkKind
	Sends bool
}{
	{store.WorkSendPayouts, true},
	{store.WorkLookUpPayouts, false},
	{store.WorkSendRefunds, true},
	{store.WorkLookUpRefunds, false},
	{store.WorkCharges, true},
	{store.WorkNotices, false},
	{store.WorkAnswers, true},
	{store.WorkExpiry, false},
	{store.WorkApprovals, false},
	{store.WorkSettlement, false},
	{store.WorkWebhooks, false},
}

// DueWork reads the work that is due at a time. Work that waits because its account is stopped is
// left out: that is a fact about the account.
func DueWork(ctx context.Context, s *store.Store, at time.Time, stopped func(account string) bool) ([]Work, error) {
	list := make([]Work, 0, len(Queues))
	for _, q := range Queues {
		due, err := s.OldestWork(ctx, q.Kind, at)
		if err != nil {
			return nil, err
		}
		if q.Sends {
			due = slices.DeleteFunc(due, func(d store.Oldest) bool { return stopped(d.Account) })
		}
		list = append(list, Work{q.Kind, due})
	}
	return list, nil
}

// ReadFacts reads all facts.
func ReadFacts(ctx context.Context, s *store.Store, at time.Time, stopped func(account string) bool) (f Facts, err error) {
	f.At = at
	keep := func(other error) { err = errors.Join(err, other) }
	f.Cases, err = s.CountCases(ctx)
	keep(read(&f.Unknowns, func() ([]store.Unknown, error) { return s.Unknowns(ctx) }))
	keep(read(&f.Work, func() ([]Work, error) { return DueWork(ctx, s, at, stopped) }))
	var other error
	f.Webhooks, other = s.WebhookBacklog(ctx)
	keep(other)
	f.Balances, other = s.AllBalances(ctx)
	keep(other)
	f.Readings, other = Readings(ctx, s)
	keep(other)
	f.Verified, other = LastVerified(ctx, s)
	keep(other)
	f.BackedUp, other = LastBackup(ctx, s)
	keep(other)
	return f, err
}

// Verified is the result of the last porteira verify of all merchants; At is zero if there was none.
type Verified struct {
	At      time.Time `json:"at"`
	Defects int       `json:"defects"`
}

// BackedUp is the last porteira backup; At is zero if there was none.
type BackedUp struct {
	At time.Time `json:"at"`
}

// LastVerified reads when the installation was verified.
func LastVerified(ctx context.Context, s *store.Store) (v Verified, err error) {
	return v, setting(ctx, s, store.SettingVerified, &v)
}

// LastBackup reads when the installation was backed up.
func LastBackup(ctx context.Context, s *store.Store) (v BackedUp, err error) {
	return v, setting(ctx, s, store.SettingBackedUp, &v)
}

// setting reads a record among the settings; one that cannot be read is as if it were not there.
func setting(ctx context.Context, s *store.Store, name string, into any) error {
	text, err := s.Setting(ctx, name)
	if err == nil && text != "" {
		_ = json.Unmarshal([]byte(text), into) // written by another version
	}
	return err
}

// Record keeps a record among the settings.
func Record(ctx context.Context, s *store.Store, name string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return s.Transact(ctx, func(tx *store.Tx) error { return tx.SetSetting(ctx, name, string(text)) })
}

// gapsKept is how many differences are kept of an account: those of two hours.
const gapsKept = 12

// Reading is the money of an account at its processor, as it was last read, in cents.
type Reading struct {
	Account string        `json:"account"`
	At      time.Time     `json:"at"`
	There   money.Cents   `json:"there"`
	ToCome  money.Cents   `json:"toCome"`         // that the processor credits later
	Here    money.Cents   `json:"here"`           // in the ledger
	Gaps    []money.Cents `json:"gaps,omitempty"` // of the last readings, newest first: there and to come, less here
}

// Gap is the least difference of the last readings. Money in transit is on one side only for some
// minutes, so a difference that no reading was without is not in transit. ok is false if there were
// too few readings to say so.
func (r *Reading) Gap() (least money.Cents, ok bool) {
	if len(r.Gaps) < gapsKept {
		return 0, false
	}
	least = r.Gaps[0]
	for _, g := range r.Gaps {
		if max(g, -g) < max(least, -least) {
			least = g
		}
	}
	return least, true
}

// ReadingOf reads the last reading of an account; At is zero if there was none.
func ReadingOf(ctx context.Context, s *store.Store, account string) (r Reading, err error) {
	return r, setting(ctx, s, store.SettingReading+account, &r)
}

// Readings are the last readings of all accounts.
func Readings(ctx context.Context, s *store.Store) (list []Reading, err error) {
	settings, err := s.SettingsLike(ctx, store.SettingReading)
	for _, text := range settings {
		var r Reading
		if json.Unmarshal([]byte(text), &r) == nil && r.Account != "" {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b Reading) int { return strings.Compare(a.Account, b.Account) })
	return list, err
}

// RecordReading keeps a reading of an account, with the differences of those before.
func RecordReading(ctx context.Context, s *store.Store, r Reading) error {
	before, err := ReadingOf(ctx, s, r.Account)
	if err != nil {
		return err
	}
	gaps := append([]money.Cents{r.There + r.ToCome - r.Here}, before.Gaps...)
	r.Gaps = gaps[:min(len(gaps), gapsKept)]
	return Record(ctx, s, store.SettingReading+r.Account, r)
}
