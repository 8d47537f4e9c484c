package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/limits"
	"github.com/porteira/porteira/internal/payment"
)

// CounterKey names a counter of limits: the payouts of a merchant on a day, in a night, or to a Pix
// key.
type CounterKey struct {
	Merchant payment.ID
	Counter  payment.Counters // one
	Day      int64            // [limits.DayOf]; 0 for all days
	KeyHash  payment.ID       // zero for all Pix keys
}

func (k CounterKey) key() []any {
	return []any{k.Merchant[:], int64(k.Counter), k.Day, optionalID(k.KeyHash)}
}

func (k CounterKey) compare(other CounterKey) int {
	return cmp.Or(payment.CompareIDs(k.Merchant, other.Merchant), cmp.Compare(k.Counter, other.Counter),
		cmp.Compare(k.Day, other.Day), payment.CompareIDs(k.KeyHash, other.KeyHash))
}

// CountersOf are the keys of the counters of a payout.
func CountersOf(p *payment.Payout) []CounterKey {
	var list []CounterKey
	for _, counter := range payment.EachCounter {
		if p.Counters&counter == 0 {
			continue
		}
		k := CounterKey{Merchant: p.Merchant, Counter: counter}
		switch counter {
		case payment.CounterNight:
			k.Day, _ = limits.NightOf(p.CountedBy())
		case payment.CounterKey:
		default:
			k.Day = limits.DayOf(p.CountedBy())
		}
		if counter&payment.ByKey != 0 {
			k.KeyHash = p.KeyHash
		}
		list = append(list, k)
	}
	return list
}

// countOf is a payout's share of one of its counters. A payout that waits for approval makes no Pix
// key known: it adds only its amount to the counter of all payouts to its key.
func countOf(p *payment.Payout, k CounterKey) limits.Count {
	if k.Counter == payment.CounterKey && p.Unapproved() {
		return limits.Count{Amount: p.Amount}
	}
	return limits.Count{Amount: p.Amount, Payouts: 1}
}

// KeyHash is 16 bytes of a keyed hash of a merchant's Pix key in its normal form.
func (s *Store) KeyHash(merchant payment.ID, key string) payment.ID {
	sum := s.Keys().MAC(db.PurposeKey, append(slices.Clone(merchant[:]), key...))
	return payment.ID(sum[:len(payment.ID{})])
}

// Counter is a row of the counters of limits.
type Counter struct {
	CounterKey
	limits.Count

	Since time.Time // the first of the payouts, or its approval, if the counter is [payment.CounterKey]
}

var counterTable = newTable("limit_counters", []string{"merchant_id", "counter", "day", "key_hash"},
	idColumn("merchant_id", func(v *Counter) *payment.ID { return &v.Merchant }),
	intColumn("counter", func(v *Counter) *payment.Counters { return &v.Counter }),
	intColumn("day", func(v *Counter) *int64 { return &v.Day }),
	optionalIDColumn("key_hash", func(v *Counter) *payment.ID { return &v.KeyHash }),
	intColumn("amount", func(v *Counter) *cents { return &v.Amount }).as(mutable),
	intColumn("payouts", func(v *Counter) *int64 { return &v.Payouts }).as(mutable),
	timeColumn("since", func(v *Counter) *time.Time { return &v.Since }).as(mutable),
)

// The lock of the merchant's balances, which is taken before, covers its counters too.
var (
	counterByKey    = counterTable.selectBy("t.merchant_id, t.counter, t.day, t.key_hash", "merchant_id", "counter", "day", "key_hash").ReadOnly()
	counterUpdate   = counterTable.updateBy("", "merchant_id", "counter", "day", "key_hash")
	counterIncrease = db.NewRowIncrease("limit_counters", counterTable.named("merchant_id", "counter", "day", "key_hash"),
		counterTable.named("amount", "payouts"))
)

func scanCounter(r db.Scanner) (Counter, error) {
	var v Counter
	return v, counterTable.scan(r, &v)
}

// Counters reads the counters of a new payout, whose balances the operation loads.
func (n *Needs) Counters(p *payment.Payout) { n.counters = append(n.counters, CountersOf(p)...) }

// loadedCounter is a counter with the changes of this commit.
type loadedCounter struct {
	Counter

	exists, changed bool
}

func (l *Loaded) loadCounters(ctx context.Context, tx *db.Tx, n *Needs) error {
	list, err := db.Select(ctx, tx, counterByKey, keysOf(n.counters), scanCounter)
	if err != nil || len(n.counters) == 0 {
		return err
	}
	l.addCounters(n, list)
	return nil
}

// addCounters adds the counters that exist, and zeros for the others.
func (l *Loaded) addCounters(n *Needs, list []Counter) {
	l.counters = newCounters(n.counters, list)
}

// Counters are the counted amounts and numbers of limits.
type Counters map[CounterKey]*loadedCounter

// newCounters are the counters of the keys: those that exist, and zeros for the others.
func newCounters(keys []CounterKey, list []Counter) Counters {
	all := make(Counters, len(keys))
	for _, v := range list {
		all[v.CounterKey] = &loadedCounter{Counter: v, exists: true}
	}
	for _, k := range keys {
		if all[k] == nil {
			all[k] = &loadedCounter{Counter: Counter{CounterKey: k}}
		}
	}
	return all
}

// CountersUsed reads the counters of new payouts at present.
func (s *Store) CountersUsed(ctx context.Context, payouts []payment.Payout) (Counters, error) {
	var keys []CounterKey
	for i := range payouts {
		keys = append(keys, CountersOf(&payouts[i])...)
	}
	list, err := db.Select(ctx, s.db, counterByKey, keysOf(keys), scanCounter)
	return newCounters(keys, list), s.db.ReadError("counters of limits", err)
}

// Usage is the usage of a new payout's loaded counters without that payout.
func (l *Loaded) Usage(p *payment.Payout) limits.Usage { return l.counters.Usage(p) }

// Usage is the usage of a new payout's counters, which are there, without that payout.
func (all Counters) Usage(p *payment.Payout) (used limits.Usage) {
	for _, k := range CountersOf(p) {
		v := all[k]
		switch k.Counter {
		case payment.CounterDay:
			used.Day = v.Count
		case payment.CounterNight:
			used.Night = v.Count
		case payment.CounterKeyDay:
			used.KeyDay = v.Count
		case payment.CounterKey:
			used.Key, used.KeySince = v.Count, v.Since
		}
	}
	return used
}

// CountPayout adds a new payout to its counters, which are loaded.
func (c *Changes) CountPayout(p *payment.Payout) { c.count += c.l.counters.Add(p, p.CreatedAt) }

// Add adds a payout to its counters, which are there, and returns their number. at is when it
// was created, or approved.
func (all Counters) Add(p *payment.Payout, at time.Time) int {
	keys := CountersOf(p)
	for _, k := range keys {
		v, adds := all[k], countOf(p, k)
		if k.Counter == payment.CounterKey && v.Payouts == 0 && adds.Payouts > 0 {
			v.Since = at
		}
		v.Amount, v.Payouts, v.changed = v.Amount+adds.Amount, v.Payouts+adds.Payouts, true
	}
	return len(keys)
}

// UncountPayout takes a payout that failed or was canceled out of its counters, which need not be
// loaded. The balances of its merchant are loaded.
func (c *Changes) UncountPayout(p *payment.Payout) {
	for _, k := range CountersOf(p) {
		less := countOf(p, k)
		if v := c.l.counters[k]; v != nil {
			v.Amount, v.Payouts, v.changed = v.Amount-less.Amount, v.Payouts-less.Payouts, true
		} else {
			if c.uncounted == nil {
				c.uncounted = map[CounterKey]limits.Count{}
			}
			sum := c.uncounted[k]
			c.uncounted[k] = limits.Count{Amount: sum.Amount + less.Amount, Payouts: sum.Payouts + less.Payouts}
		}
		c.count++
	}
}

// MovedCounters are the counters to which a payout was not added before it changed, or was added in
// another way.
func MovedCounters(was, is *payment.Payout) (moved payment.Counters) {
	before := CountersOf(was)
	for _, k := range CountersOf(is) {
		if !slices.Contains(before, k) || countOf(was, k) != countOf(is, k) {
			moved |= k.Counter
		}
	}
	return moved
}

// MovePayout takes a payout out of its counters, and adds it to its counters after its approval in
// this commit, which are loaded.
func (c *Changes) MovePayout(was, is *payment.Payout) {
	from, to := *was, *is
	from.Counters, to.Counters = MovedCounters(is, was), MovedCounters(was, is)
	c.UncountPayout(&from)
	c.count += c.l.counters.Add(&to, c.l.now)
}

// saveCounters writes the counters that changed.
func (c *Changes) saveCounters(ctx context.Context, tx *db.Tx) error {
	var added, changed, decreased [][]any
	for _, k := range slices.SortedFunc(maps.Keys(c.l.counters), CounterKey.compare) {
		switch v := c.l.counters[k]; {
		case !v.changed:
		case v.exists:
			changed = append(changed, counterUpdate.row(&v.Counter))
		default:
			added = append(added, counterTable.row(&v.Counter))
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(c.uncounted), CounterKey.compare) {
		v := c.uncounted[k]
		decreased = append(decreased, append(k.key(), -int64(v.Amount), -v.Payouts))
	}
	err := insertOrRetry(ctx, tx, counterTable.insert, added...)
	if err == nil {
		err = updateOrRetry(ctx, tx, counterUpdate.RowUpdate, changed...)
	}
	if err == nil { // one that was removed because of its age cannot be decreased
		_, err = tx.Update(ctx, counterIncrease, decreased...)
	}
	if err != nil {
		return fmt.Errorf("counters of limits: %w", err)
	}
	return nil
}

// CountersKept is how long counters of days and nights are kept after their day began: all
// payouts of the day may still be in flight.
const CountersKept = 60 * 24 * time.Hour

// ofDays are the counters of one day or night each, in SQL.
const ofDays = "counter IN (1, 2, 4)"

// HasOldCounters reports whether a merchant has counters that [Tx.RemoveCounters] removes.
func (s *Store) HasOldCounters(ctx context.Context, merchant payment.ID, now time.Time) (bool, error) {
	var n int64
	err := s.db.QueryRow(ctx, "SELECT count(*) FROM (SELECT t.day FROM limit_counters t WHERE t.merchant_id = $1 AND t."+ofDays+" AND t.day < $2 LIMIT 1) AS one",
		merchant[:], oldCounters(now)).Scan(&n)
	return n > 0, s.db.ReadError("counters of limits", err)
}

// oldCounters is the day whose counters, and those of later days, are kept.
func oldCounters(now time.Time) int64 { return limits.DayOf(now.Add(-CountersKept)) }

// RemoveCounters removes up to limit counters of days that began longer ago than
// [CountersKept], in the order of their days, and returns their number.
func (tx *Tx) RemoveCounters(ctx context.Context, merchant payment.ID, limit int) (int64, error) {
	return tx.ExecCount(ctx, `DELETE FROM limit_counters WHERE merchant_id = $1 AND (counter, day, key_hash) IN (
		SELECT t.counter, t.day, t.key_hash FROM limit_counters t WHERE t.merchant_id = $1 AND t.`+ofDays+` AND t.day < $2
		ORDER BY t.counter, t.day, t.key_hash LIMIT $3)`,
		merchant[:], oldCounters(tx.Now), limit)
}

// LimitsUsed reads how much of the limits of a time's day and night the payouts of a merchant have
// used.
func (s *Store) LimitsUsed(ctx context.Context, merchant payment.ID, at time.Time) (used limits.Usage, err error) {
	night, _ := limits.NightOf(at)
	rows, err := s.db.Query(ctx, "SELECT "+counterTable.selected+` FROM limit_counters t
		WHERE t.merchant_id = $1 AND t.counter = $2 AND t.day = $3 AND t.key_hash = $6 OR t.merchant_id = $1 AND t.counter = $4 AND t.day = $5 AND t.key_hash = $6`,
		merchant[:], int64(payment.CounterDay), limits.DayOf(at), int64(payment.CounterNight), night, optionalID(payment.ID{}))
	list, err := db.Collect(rows, err, scanCounter)
	for _, v := range list {
		if v.Counter == payment.CounterDay {
			used.Day = v.Count
		} else {
			used.Night = v.Count
		}
	}
	return used, s.db.ReadError("counters of limits", err)
}

// SetLimits sets the limits of a merchant; the platform's are those of new merchants.
func (tx *AdminTx) SetLimits(ctx context.Context, merchant payment.ID, l *limits.Limits) error {
	m, err := tx.soundMerchant(ctx, merchant)
	if err != nil {
		return err
	}
	tx.record(NounLimit, "set", merchant, "", fieldsOf(&m.Limits), fieldsOf(l))
	if err := tx.ExecOne(ctx, "UPDATE merchants SET limits = $1 WHERE id = $2", jsonText(l), merchant[:]); err != nil {
		return err
	}
	return tx.signMerchant(ctx, merchant)
}

// Limits reads the limits of a merchant, and locks them.
func (tx *Tx) Limits(ctx context.Context, merchant payment.ID) (l limits.Limits, err error) {
	m, err := tx.soundMerchant(ctx, merchant)
	return m.Limits, err
}
