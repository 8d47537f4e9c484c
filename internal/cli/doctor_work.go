package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// queue is one kind of work of gateways.
type queue struct {
	name string
	// sends means that it waits while its account sends nothing, which is a finding about that.
	sends bool
	// due lists the accounts, or what else the work belongs to, that have work due at a time.
	due func(ctx context.Context, at time.Time) ([]string, error)
	// others is what to do if it is not the gateway that is late.
	others string
}

func (d *doctor) queues() []queue {
	s := d.a.Store
	payouts := func(q store.PayoutQueue) func(ctx context.Context, at time.Time) ([]string, error) {
		return func(ctx context.Context, at time.Time) (accounts []string, err error) {
			list, err := s.PayoutsDue(ctx, at, q)
			for _, v := range list {
				accounts = append(accounts, v.Processor)
			}
			slices.Sort(accounts)
			return slices.Compact(accounts), err
		}
	}
	refunds := func(q store.PayoutQueue) func(ctx context.Context, at time.Time) ([]string, error) {
		return func(ctx context.Context, at time.Time) ([]string, error) { return s.AccountsWithRefunds(ctx, at, q) }
	}
	const processors = "Or the processor does not answer: porteira account test checks it."
	return []queue{
		{"payouts to send", true, payouts(store.ToSend), processors},
		{"payouts to look up", false, payouts(store.ToLookUp), processors},
		{"refunds to send", true, refunds(store.ToSend), processors},
		{"refunds to look up", false, refunds(store.ToLookUp), processors},
		{"charges", true, s.AccountsWithCharges, processors},
		{"notices", false, s.AccountsWithNotices, processors},
		{"answers to disputes", true, s.AccountsWithAnswers, processors},
		{"expiry of pay-ins", false, func(ctx context.Context, at time.Time) ([]string, error) { return some(s.PayinsDue(ctx, at, 1)) }, ""},
		{"settlement", false, func(ctx context.Context, at time.Time) ([]string, error) { return some(s.ReceivablesDue(ctx, at, 1)) }, ""},
		{"webhooks", false, func(ctx context.Context, at time.Time) ([]string, error) { return some(s.DeliveriesDue(ctx, at)) }, "Or receivers do not answer: GET /webhook-endpoints shows their health."},
	}
}

// some is an entry without a name if there is an entry.
func some[T any](list []T, err error) ([]string, error) {
	if len(list) == 0 {
		return nil, err
	}
	return []string{""}, err
}

// work checks that nothing is due for long.
func (d *doctor) work() (findings []processor.Finding, err error) {
	facts, err := readAccountFacts(d.ctx, d.a)
	if err != nil {
		return nil, err
	}
	stopped := func(id string) bool {
		return d.a.Registry.Allows(id, payment.UseTransfer) != nil || d.a.Registry.Waits(id) && facts.frozen(id)
	}
	at := d.a.Clock.Now().Add(-overdueAfter)
	for _, q := range d.queues() {
		where, err := q.due(d.ctx, at)
		if err != nil {
			return findings, err
		}
		if q.sends {
			where = slices.DeleteFunc(where, stopped)
		}
		if len(where) > 0 {
			findings = append(findings, overdue(&q, where, d.running))
		}
	}
	if len(findings) == 0 {
		findings = []processor.Finding{{Check: "work", Detail: "nothing is due for more than 10 minutes"}}
	}
	return findings, nil
}

// overdue is the finding about work that is due for long.
func overdue(q *queue, where []string, running bool) processor.Finding {
	f := processor.Finding{Check: "work", Problem: q.name + ": due for more than 10 minutes", Action: "Start a gateway."}
	if where[0] != "" {
		f.Problem += ", at " + strings.Join(where, ", ")
	}
	if running {
		f.Action = strings.TrimSpace("Gateways run, but are late: see their log, and porteira_worker_consecutive_failures in their metrics. " + q.others)
	}
	return f
}
