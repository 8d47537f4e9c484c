package processor

import (
	"fmt"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/problem"
)

// Lag is how long after its request an effect may be missing in a list of the account.
func (p Profile) Lag(feed Feed) time.Duration {
	switch feed {
	case FeedTransfers:
		return p.Transfer.QuietPeriod
	case FeedRefunds:
		return p.Refund.QuietPeriod
	default:
		return 0
	}
}

// ReadableAt is the earliest time at which the lists of an account can be complete beyond a cold
// start. p may be nil.
func ReadableAt(p Processor, start time.Time) time.Time {
	feeder, ok := p.(Feeder)
	if !ok {
		return start
	}
	at := start
	for feed := range feeder.Feeds() {
		if lagged := start.Add(p.Profile().Lag(feed)); lagged.After(at) {
			at = lagged
		}
	}
	return at
}

// frozenRetry is the least Retry-After of a request that waits for a list.
const frozenRetry = 2 * time.Second

// ErrFrozen is the refusal of a request because accounts wait since a cold start, with the time
// until which it waits at least. what is "Payouts" or "Refunds".
func ErrFrozen(what string, accounts Accounts, ids []string, start, now time.Time) *problem.Error {
	at := start
	for _, id := range ids {
		if of := ReadableAt(accounts.Find(id), start); of.After(at) {
			at = of
		}
	}
	detail := what + " wait since the gateway's last start, until the lists of the processor have been compared with its database"
	if at.After(now) {
		detail += ": at the earliest at " + at.UTC().Format(time.RFC3339)
	}
	e := problem.New(problem.Unavailable, detail+". The referenceId remains unused. Send the same request again later.").
		WithRetryAfter(max(at.Sub(now), 0).Round(time.Second) + frozenRetry)
	if len(ids) == 0 {
		return e
	}
	return e.With(fmt.Errorf("processor: accounts whose lists are not read since the start: %s", strings.Join(ids, ", ")))
}
