// Package payout implements the use cases of payouts: request, alone or in a batch, approve,
// cancel. Package outgoing sends them.
package payout

import (
	"fmt"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/outgoing"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

// Options configure a Service.
type Options struct {
	Store      *store.Store
	Writer     *write.Writer
	Env        env.Env
	Processors processor.Accounts
	// RestoredAt is the time of the last cold start, ProvedAt that of the last proved restore; see
	// [cluster.Node].
	RestoredAt func() time.Time
	ProvedAt   func() time.Time
	// Epoch is the highest epoch of the database that this process has seen; see [cluster.Node].
	Epoch func() int64
	// Frozen reports whether payouts of an account wait after a cold start. History is the
	// number of the database's history, 0 if there was none; see [cluster.Node].
	Frozen  func(account string) bool
	History func() int64
	// Wanted reports whether a merchant has a webhook endpoint that selects a type of events. nil:
	// no merchant has one.
	Wanted func(merchant payment.ID, t payment.EventType) bool
	// Requested is called after a payout was queued for sending.
	Requested func()
}

// Service implements the use cases of payouts. It is safe for concurrent use.
type Service struct {
	Options

	counters counterPass
	batches  payment.ID // where the next run of CompleteBatches begins; of its worker only
}

// New returns a Service.
func New(o Options) *Service { return &Service{Options: o} }

// errRestored means that the database is an older copy, and no process has detected that yet.
var errRestored = problem.New(problem.Unavailable, "The database was just restored from a backup. Send the same request again later.").WithRetryAfter(begunRetry)

// sentBeforeRestore reports whether a payout that the database shows as unsent may have been sent
// before a restore. The merchant's balances are loaded. It returns errRestored if the database has a
// lower epoch than this process has seen: it was restored, and that is not recorded yet.
func sentBeforeRestore(l *store.Loaded, p *payment.Payout, at past) (bool, error) {
	h := l.HistoryOf(p.Merchant)
	if h.Epoch < at.epoch {
		return false, errRestored
	}
	if h.Number == at.history && at.provedAt.Before(h.RestoredAt) && !at.frozen(p.Processor) { // its list has shown what the database lacks: nothing
		return false, nil
	}
	return outgoing.LookUpFirst(p, h.RestoredAt, at.provedAt, l.Now()), nil
}

// past is what this process knows about the past of the database, as of its last heartbeat.
type past struct {
	epoch, history int64
	provedAt       time.Time
	frozen         func(account string) bool
}

func (s *Service) past() past { return past{s.Epoch(), s.History(), s.ProvedAt(), s.Frozen} }

// notFound is the error of an operation whose payout does not exist.
func notFound(merchant, id payment.ID) error {
	return fmt.Errorf("payout %s of %s: %w", id, merchant, store.ErrNotFound)
}
