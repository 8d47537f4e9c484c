package jobs

import (
	"context"
	"fmt"
	"slices"
	"sort"

	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// CollectPayments reads the processors' own lists of payments, so that one
// whose notice was lost is booked all the same. It and the notices meet at the
// receipt's unique key.
func (j *Jobs) CollectPayments(ctx context.Context) (int, error) {
	if !j.lease.Valid() {
		return 0, nil
	}
	names := make([]string, 0, len(j.Processors))
	for name := range j.Processors {
		names = append(names, name)
	}
	sort.Strings(names)
	did := 0
	for _, name := range names {
		collector, ok := j.Processors[name].(processor.Collector)
		if !ok {
			continue
		}
		n, err := j.collect(ctx, name, collector)
		did += n
		if err != nil {
			return did, fmt.Errorf("collect payments of %s: %w", name, err)
		}
	}
	return did, nil
}

// collect books one page and then moves the cursor: a crash between the two
// reads the page again, which is harmless.
func (j *Jobs) collect(ctx context.Context, name string, collector processor.Collector) (int, error) {
	cursor, err := j.Store.Setting(ctx, store.SettingCursor+name)
	if err != nil {
		return 0, err
	}
	limited, cancel := j.World.Clock.WithTimeout(ctx, questionTimeout)
	page, next, err := collector.Payments(limited, cursor)
	cancel()
	if err != nil || len(page) == 0 || next == cursor {
		return 0, err
	}
	charger, _ := j.Processors[name].(processor.Charger)
	for i := range page {
		if err := j.bookCollected(ctx, name, charger, page[i]); err != nil {
			return 0, err
		}
	}
	return len(page), j.Flow.SaveCursor(ctx, name, next)
}

// bookCollected books a payment with all that its charge has to say, so that
// what notices would have told is not lost either.
func (j *Jobs) bookCollected(ctx context.Context, name string, charger processor.Charger, p processor.Payment) error {
	known, err := j.Store.HasReceipt(ctx, name, p.ID)
	if err != nil || known {
		return err
	}
	report := processor.ChargeReport{Lookup: processor.Found, Payments: []processor.Payment{p}}
	if charger != nil {
		limited, cancel := j.World.Clock.WithTimeout(ctx, questionTimeout)
		asked := charger.QueryCharge(limited, p.ExternalID)
		cancel()
		if asked.Lookup == processor.Found {
			listed := slices.ContainsFunc(asked.Payments, func(q processor.Payment) bool { return q.ID == p.ID })
			if report = asked; !listed { // the list is proof enough of it
				report.Payments = append(report.Payments, p)
			}
		}
	}
	return j.Flow.ApplyCharge(ctx, name, p.ExternalID, report, nil)
}
