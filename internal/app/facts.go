package app

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/query"
)

const (
	// factsKept is how long facts are exported before they are read again: several scrapers, and
	// impatient ones, cost one read.
	factsKept = 10 * time.Second
	// factsTimeout bounds a read: a scrape must not wait for a database that hangs.
	factsTimeout = 5 * time.Second
)

// facts exports what an operator must know about the installation. Every gateway reads them from the
// database, so all of them export the same.
type facts struct {
	read func(ctx context.Context) (query.Facts, error)
	now  func() time.Duration // monotonic

	mu     sync.Mutex
	last   query.Facts
	err    error
	readAt time.Duration
	any    bool
}

// factMetric is one metric about the installation.
type factMetric struct {
	description *prometheus.Desc
	export      func(f *query.Facts, send func(value int64, labels ...string))
}

func newFact(name, help string, export func(f *query.Facts, send func(value int64, labels ...string)), labels ...string) factMetric {
	return factMetric{prometheus.NewDesc("porteira_"+name, help, labels, nil), export}
}

// age is how long ago a time was, in seconds; 0 for the zero time.
func age(f *query.Facts, t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return max(0, int64(f.At.Sub(t)/time.Second))
}

// unixIfAny sends a time, if there is one.
func unixIfAny(t time.Time, send func(value int64, labels ...string), labels ...string) {
	if !t.IsZero() {
		send(t.Unix(), labels...)
	}
}

var factMetrics = []factMetric{
	newFact("facts_timestamp_seconds", "When this gateway read the metrics about the installation from the database, as Unix time; absent if it cannot.",
		func(f *query.Facts, send func(int64, ...string)) { send(f.At.Unix()) }),
	newFact("open_cases", "Open cases for manual review, by kind.", func(f *query.Facts, send func(int64, ...string)) {
		for _, c := range f.Cases {
			send(c.Open, string(c.Kind))
		}
	}, "kind"),
	newFact("stopping_cases", "Open cases that stop payouts of a merchant or an account.", func(f *query.Facts, send func(int64, ...string)) {
		_, stopping := query.CasesOpen(f.Cases)
		send(stopping)
	}),
	newFact("unknown_outcomes", "Effects at processors whose outcome is unknown: payout, refund, charge or answer; at most 10,000 per merchant are counted.", func(f *query.Facts, send func(int64, ...string)) {
		for _, u := range f.Unknowns {
			send(u.Count, u.Subject)
		}
	}, "subject"),
	newFact("unknown_outcome_age_seconds", "How long the oldest of them is unknown; 0 if none is.", func(f *query.Facts, send func(int64, ...string)) {
		for _, u := range f.Unknowns {
			send(age(f, u.Since), u.Subject)
		}
	}, "subject"),
	newFact("work_overdue_seconds", "How long the first row of a queue of background work is due; 0 if none is. Work that waits because its account is stopped is left out.", func(f *query.Facts, send func(int64, ...string)) {
		for i := range f.Work {
			send(age(f, f.Work[i].Oldest()), strings.ReplaceAll(string(f.Work[i].Kind), " ", "_"))
		}
	}, "queue"),
	newFact("webhook_deliveries_waiting", "Attempts to deliver events that are to come, at most 10,000 per merchant.", func(f *query.Facts, send func(int64, ...string)) { send(f.Webhooks.Deliveries) }),
	newFact("webhook_events_waiting", "Events that have no delivery yet to an enabled endpoint.", func(f *query.Facts, send func(int64, ...string)) { send(f.Webhooks.Events) }),
	newFact("webhook_endpoints", "Webhook endpoints: ok, failing (the last attempt failed) or disabled.", func(f *query.Facts, send func(int64, ...string)) {
		send(f.Webhooks.Endpoints, "ok")
		send(f.Webhooks.Failing, "failing")
		send(f.Webhooks.Disabled, "disabled")
	}, "state"),
	newFact("ledger_cents", "The balance of an account of the ledger, of all merchants and the platform, in cents.", func(f *query.Facts, send func(int64, ...string)) {
		for account, balance := range f.Balances {
			if !account.IsClearing() {
				send(int64(balance), string(account))
			}
		}
		for _, account := range ledger.StatementAccounts {
			if _, ok := f.Balances[account]; !ok {
				send(0, string(account))
			}
		}
	}, "account"),
	newFact("clearing_cents", "What the ledger has at a processor account, in cents.", func(f *query.Facts, send func(int64, ...string)) {
		for account, balance := range f.Balances {
			if id, ok := account.Processor(); ok {
				send(-int64(balance), id)
			}
		}
	}, "account"),
	newFact("processor_balance_cents", "What the processor had in an account and will credit, when that was last read, in cents.", func(f *query.Facts, send func(int64, ...string)) {
		for i := range f.Readings {
			send(int64(f.Readings[i].There+f.Readings[i].ToCome), f.Readings[i].Account)
		}
	}, "account"),
	newFact("processor_balance_timestamp_seconds", "When that was read, as Unix time.", func(f *query.Facts, send func(int64, ...string)) {
		for i := range f.Readings {
			unixIfAny(f.Readings[i].At, send, f.Readings[i].Account)
		}
	}, "account"),
	newFact("clearing_gap_cents", "The least difference between the processor's balance and the ledger in the readings of two hours, in cents; absent before there are enough.", func(f *query.Facts, send func(int64, ...string)) {
		for i := range f.Readings {
			if gap, ok := f.Readings[i].Gap(); ok {
				send(int64(gap), f.Readings[i].Account)
			}
		}
	}, "account"),
	newFact("last_verify_timestamp_seconds", "When porteira verify last ended, as Unix time; absent if it never did.", func(f *query.Facts, send func(int64, ...string)) { unixIfAny(f.Verified.At, send) }),
	newFact("last_verify_defects", "Defects that it found.", func(f *query.Facts, send func(int64, ...string)) { send(int64(f.Verified.Defects)) }),
	newFact("last_backup_timestamp_seconds", "When porteira backup last ended, as Unix time; absent if it never did.", func(f *query.Facts, send func(int64, ...string)) { unixIfAny(f.BackedUp.At, send) }),
}

// newFacts exports the facts of a gateway's database.
func (a *App) newFacts() *facts {
	return &facts{now: a.env.Clock.Monotonic, read: func(ctx context.Context) (query.Facts, error) {
		limited, cancel := a.env.Clock.WithTimeout(ctx, factsTimeout)
		defer cancel()
		return query.ReadFacts(limited, a.store, a.env.Clock.Now(), a.sendsNothing)
	}}
}

// sendsNothing reports whether an account is stopped, so that its work waits.
func (a *App) sendsNothing(account string) bool {
	return a.accounts.Allows(account, payment.UseTransfer) != nil || a.accounts.Waits(account) && a.core.Node.Frozen(account)
}

// Describe implements [prometheus.Collector].
func (*facts) Describe(to chan<- *prometheus.Desc) {
	for i := range factMetrics {
		to <- factMetrics[i].description
	}
}

// Collect implements [prometheus.Collector]. Facts that cannot be read are left out: an alarm on the
// absence of their time rings.
func (c *facts) Collect(to chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.now(); !c.any || now-c.readAt >= factsKept {
		c.last, c.err = c.read(context.Background())
		c.readAt, c.any = now, true
	}
	if c.err != nil {
		return
	}
	for i := range factMetrics {
		m := &factMetrics[i]
		m.export(&c.last, func(value int64, labels ...string) {
			to <- prometheus.MustNewConstMetric(m.description, prometheus.GaugeValue, float64(value), labels...)
		})
	}
}
