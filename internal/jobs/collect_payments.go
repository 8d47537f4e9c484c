package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/porteira/porteira/internal/flow"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// CollectPayments reads the processors' own lists of payments, and of what
// happened to money afterwards, so that one whose notice was lost is booked all
// the same. It and the notices meet at the receipt's unique key.
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
		if collector, ok := j.Processors[name].(processor.Collector); ok {
			n, err := j.collect(ctx, name, collector)
			did += n
			if err != nil {
				return did, fmt.Errorf("collect payments of %s: %w", name, err)
			}
		}
		if monitor, ok := j.Processors[name].(processor.Monitor); ok {
			n, err := j.follow(ctx, name, monitor)
			did += n
			if err != nil {
				return did, fmt.Errorf("collect changes of %s: %w", name, err)
			}
		}
	}
	return did, nil
}

// follow books one page of changes as their notices would have it, and then
// moves the cursor.
func (j *Jobs) follow(ctx context.Context, name string, monitor processor.Monitor) (int, error) {
	cursor, err := j.Store.Setting(ctx, store.SettingChanges+name)
	if err != nil {
		return 0, err
	}
	limited, cancel := j.Env.Clock.WithTimeout(ctx, questionTimeout)
	page, next, err := monitor.Changes(limited, cursor)
	cancel()
	if err != nil || len(page) == 0 || next == cursor {
		return 0, err
	}
	for _, c := range page {
		if err := j.bookChange(ctx, name, c); err != nil {
			return 0, err
		}
	}
	if err := j.Flow.SaveChanges(ctx, name, next); err != nil {
		return 0, err
	}
	for _, c := range page {
		delete(j.unconfirmed, changeKey(name, c))
	}
	return len(page), nil
}

func changeKey(name string, c processor.Change) string {
	key := fmt.Sprint(name, " ", c.ExternalID, " ", c.Returned)
	if c.Dispute != nil {
		key += " " + c.Dispute.ID + " " + string(c.Dispute.State)
	}
	return key
}

// changeTries is how often a change is asked about whose processor answers as
// if it had not happened; at a collection each 5 s that is ten minutes.
const changeTries = 120

var errUnbooked = errors.New("jobs: the processor lists a change that it does not confirm")

// bookChange asks about a change that is not known, which books it. An answer
// may be older than the list, so it is asked about until it shows.
func (j *Jobs) bookChange(ctx context.Context, name string, c processor.Change) error {
	known, _, err := j.Flow.KnowsChange(ctx, name, c)
	if err != nil || known {
		return err
	}
	if err := j.applyHint(ctx, j.Processors[name], name, processor.Hint{Subject: c.Subject, ExternalID: c.ExternalID}, nil); err != nil {
		return err
	}
	known, ours, err := j.Flow.KnowsChange(ctx, name, c)
	if err != nil {
		return err
	}
	if known || !ours {
		return nil
	}
	key := changeKey(name, c)
	switch j.unconfirmed[key]++; {
	case j.unconfirmed[key] < changeTries:
		return fmt.Errorf("%w: %s", errUnbooked, c.ExternalID)
	case j.unconfirmed[key] > changeTries:
		return nil // a person has been told, and what is behind it on the page is not booked yet
	}
	j.Log.ErrorContext(ctx, "a change is not confirmed: compare the processor's statement", "processor", name, "externalId", c.ExternalID)
	return j.Flow.DoubtChange(ctx, name, c)
}

// collect books one page and then moves the cursor: a crash between the two
// reads the page again, which is harmless.
func (j *Jobs) collect(ctx context.Context, name string, collector processor.Collector) (int, error) {
	cursor, err := j.Store.Setting(ctx, store.SettingCursor+name)
	if err != nil {
		return 0, err
	}
	limited, cancel := j.Env.Clock.WithTimeout(ctx, questionTimeout)
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
		limited, cancel := j.Env.Clock.WithTimeout(ctx, questionTimeout)
		asked := charger.QueryCharge(limited, p.ExternalID)
		cancel()
		if asked.Lookup == processor.Found {
			listed := slices.ContainsFunc(asked.Payments, func(q processor.Payment) bool { return q.ID == p.ID })
			if report = asked; !listed { // the list is proof enough of it
				report.Payments = append(report.Payments, p)
			}
		}
	}
	err = j.Flow.ApplyCharge(ctx, name, p.ExternalID, report, nil)
	if errors.Is(err, flow.ErrFaultyPayment) { // it may be another one of its charge
		report = processor.ChargeReport{Lookup: processor.Found, Payments: []processor.Payment{p}}
		err = j.Flow.ApplyCharge(ctx, name, p.ExternalID, report, nil)
	}
	if errors.Is(err, flow.ErrFaultyPayment) { // no reason to keep those behind it waiting
		j.Log.ErrorContext(ctx, "payment cannot be booked", "processor", name, "externalId", p.ExternalID, "cause", err)
		err = j.Flow.FileFaultyPayment(ctx, name, p.ExternalID)
	}
	return err
}
