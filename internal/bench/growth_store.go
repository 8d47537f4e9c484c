package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/porteira/porteira/internal/flow"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// reader is a merchant that reads, and orders of its own.
type reader struct {
	merchant store.Merchant
	login    merchant
	payins   []payment.Payin
	payouts  []payment.Payout
}

// within measures what needs no gateway, and prepares what does.
func (g *growth) within(ctx context.Context) (err error) {
	fresh, err := vacant(ctx, g.Data, g.Database)
	if err != nil {
		return err
	}
	if fresh {
		return fmt.Errorf("%w: there is nothing at %s; begin with porteira bench seed", ErrNotSeeded, g.Data)
	}
	g.tell("doing what has fallen due")
	s := newSeeder(SeedOptions{Data: g.Data, Database: g.Database, Env: g.Env, Progress: g.Progress})
	if err := s.open(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.leave(ctx), s.store.Close()) }()
	g.seeder = s
	g.report.Payins, g.report.Payouts = s.state.Payins, s.state.Payouts
	s.present()
	if err := s.drain(ctx); err != nil {
		return err
	}
	small, err := g.own(ctx, "growth ", "bench-growth", growthPayins, growthPayouts)
	if err != nil {
		return err
	}
	if err := g.readers(ctx, small); err != nil {
		return err
	}
	if g.report.Bytes, err = g.size(ctx); err != nil {
		return err
	}
	if err := g.claims(ctx); err != nil {
		return err
	}
	return g.figure(ctx, "verify of a merchant with 2,000 pay-ins", growthVerifies, g.timed(func() error {
		_, err := s.store.Verify(ctx, g.small.merchant.ID)
		return err
	}))
}

// own makes a merchant of the measurement's own, with so many orders, or finds it.
func (g *growth) own(ctx context.Context, names, setting string, payins, payouts int64) (*seeder, error) {
	s := newSeeder(g.seeder.SeedOptions)
	s.Payins, s.Payouts, s.Merchants, s.Progress = payins, payouts, 1, nil
	s.store, s.flow, s.preparing, s.committing = g.seeder.store, g.seeder.flow, g.seeder.preparing, g.seeder.committing
	s.names, s.setting = names, setting
	text, err := s.store.Setting(ctx, setting)
	if err != nil {
		return nil, err
	}
	if text == "" {
		// Half of them, and a day, have expired since.
		at := seedState{Merchants: 1, Until: g.Env.Clock.Now().Add(-24*time.Hour - time.Duration(payins)*seedGap/2)}
		mark := s.flow.NewSlice()
		mark.Note(setting, at.text())
		if err := mark.Commit(ctx); err != nil {
			return nil, err
		}
	}
	if s.state, err = readSeedState(ctx, s.store, setting); err != nil {
		return nil, err
	}
	if err := s.plan(ctx); err != nil {
		return nil, err
	}
	if err := s.fill(ctx, g.Env.Clock.Monotonic()); err != nil {
		return nil, err
	}
	s.present()
	return s, s.drain(ctx)
}

// readers draws orders of the largest merchant and of the small one, and lets
// both in.
func (g *growth) readers(ctx context.Context, small *seeder) error {
	for _, v := range []struct {
		to *reader
		of *seeder
	}{{&g.large, g.seeder}, {&g.small, small}} {
		from := v.of
		if from.state.Payins == 0 { // nothing was seeded: the small one is the largest
			from = small
		}
		r := v.to
		if err := g.admit(ctx, r, from.merchants[0]); err != nil {
			return err
		}
		if err := g.draw(ctx, r, from); err != nil {
			return err
		}
	}
	return g.admit(ctx, &g.maker, g.seeder.merchants[0])
}

// draw chooses orders of a reader at any time of the past that was played; none
// of a kind that it has none of.
func (g *growth) draw(ctx context.Context, r *reader, from *seeder) error {
	newest := from.past.Add(time.Second)
	span := time.Duration(from.state.Payins) * seedGap
	before := func() store.Filter {
		back := time.Duration(float64(span) * float64(from.random.below(1<<30)) / (1 << 30))
		return store.Filter{Before: payment.MinIDAt(newest.Add(-back)), Limit: 1}
	}
	latest := store.Filter{Before: payment.MinIDAt(newest), Limit: 1}
	for range g.Samples {
		f := before()
		list, err := from.store.Payins(ctx, r.merchant.ID, f)
		if err == nil && len(list) == 0 { // that was before its first one
			list, err = from.store.Payins(ctx, r.merchant.ID, latest)
		}
		if err != nil {
			return err
		}
		r.payins = append(r.payins, list...)
		sent, err := from.store.Payouts(ctx, r.merchant.ID, f)
		if err == nil && len(sent) == 0 {
			sent, err = from.store.Payouts(ctx, r.merchant.ID, latest)
		}
		if err != nil {
			return err
		}
		r.payouts = append(r.payouts, sent...)
	}
	return nil
}

// admit gives a merchant a credential.
func (g *growth) admit(ctx context.Context, r *reader, m store.Merchant) error {
	c, secret, err := g.seeder.flow.CreateCredential(ctx, flow.NewCredential{Merchant: m.ID, Label: "growth"})
	r.merchant, r.login = m, merchant{c.KeyID, secret}
	return err
}

// claims measures what the loops ask again and again, and what they claim.
func (g *growth) claims(ctx context.Context) error {
	s, err := g.own(ctx, "growth claims ", "bench-growth-claims", 1, 0)
	if err != nil {
		return err
	}
	now, db := g.Env.Clock.Now(), s.store
	for _, v := range []struct {
		name string
		call func() error
	}{
		{"look for due pay-ins", func() error { _, err := db.PayinsDue(ctx, now, 256); return err }},
		{"look for payouts to send", func() error { _, err := db.PayoutsDue(ctx, now, store.ToSend); return err }},
		{"look for payouts to ask about", func() error { _, err := db.PayoutsDue(ctx, now, store.ToAsk); return err }},
		{"look for due deliveries", func() error { _, err := db.DeliveriesDue(ctx, now); return err }},
		{"take no notices in hand", func() error { _, err := s.flow.ClaimNotices(ctx, 64); return err }},
	} {
		if err := g.figure(ctx, v.name, g.Samples, g.timed(v.call)); err != nil {
			return err
		}
	}
	id := s.merchants[0].ID
	rounds := max(1, g.Samples/10)
	err = g.figure(ctx, "take 64 payouts in hand", rounds, func() (d time.Duration, err error) {
		if err := g.work(ctx, s); err != nil {
			return 0, err
		}
		ends := s.flow.NewSlice()
		d, err = g.timed(func() error {
			sends, _, err := s.flow.BeginSends(ctx, store.Due{Merchant: id, Processor: processorName}, 64)
			for i := range sends {
				ends.EndSend(sends[i], s.transferred(&sends[i], now))
			}
			return err
		})()
		return d, errors.Join(err, ends.Commit(ctx))
	})
	if err != nil {
		return err
	}
	err = g.figure(ctx, "take 64 deliveries in hand", rounds, func() (d time.Duration, err error) {
		if err := g.work(ctx, s); err != nil {
			return 0, err
		}
		ends := s.flow.NewSlice()
		d, err = g.timed(func() error {
			list, err := s.flow.ClaimDeliveries(ctx, id, 64)
			for i := range list {
				ends.EndDelivery(s.delivered(list[i], now))
			}
			return err
		})()
		return d, errors.Join(err, ends.Commit(ctx))
	})
	return errors.Join(err, s.drain(ctx))
}

// work makes payouts due, and deliveries with them.
func (g *growth) work(ctx context.Context, s *seeder) error {
	s.preparing.SetOffset(0)
	slice := s.flow.NewSlice()
	for range 64 {
		if err := s.payout(slice, g.Env.Clock.Now()); err != nil {
			return err
		}
		o, err := s.payin(slice, g.Env.Clock.Now())
		if err != nil {
			return err
		}
		o.fate = toBePaid
		if err := s.settle(ctx, slice, o, g.Env.Clock.Now()); err != nil {
			return err
		}
	}
	s.committing.SetOffset(0)
	return slice.Commit(ctx)
}
