package sim

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/review"
	"github.com/porteira/porteira/internal/store"
)

// damageable is a value whose bytes may change in the database, as by a bit flip.
type damageable struct {
	name string
	// find reads the value of a row that waits for a worker, its key and, of an order, the
	// id and the reference.
	find string
	// write replaces the value of the row with the key.
	write string
}

// damageables are the values that may be damaged. Their rows are parked with a case, except
// a feed, which is read again later.
var damageables = []damageable{
	{
		name: "payouts", write: "UPDATE payouts SET beneficiary = $1 WHERE merchant_id = $2 AND id = $3",
		find: `SELECT beneficiary, merchant_id, id, id, reference_id FROM payouts
			WHERE next_at > 0 AND step IN ('queued', 'accepted', 'unknown') ORDER BY created_at DESC, id LIMIT 1`,
	},
	{ // what it took of receivables; the row is needed for all refunds and disputes of its pay-in
		name: "refund_parts", write: "UPDATE refund_parts SET taken_from = $1 WHERE merchant_id = $2 AND refund_id = $3 AND number = 1",
		find: `SELECT r.taken_from, r.merchant_id, r.refund_id, p.id, p.reference_id FROM refund_parts r JOIN payins p ON p.merchant_id = r.merchant_id AND p.id = r.payin_id
			WHERE r.next_at > 0 AND r.step IN ('queued', 'accepted', 'unknown') AND r.number = 1 AND r.taken_from <> '' ORDER BY r.created_at DESC, r.refund_id LIMIT 1`,
	},
	{ // the row of the order is needed for its charge
		name: "charges", write: "UPDATE payins SET personal = $1 WHERE merchant_id = $2 AND id = $3",
		find: `SELECT p.personal, p.merchant_id, p.id, p.id, p.reference_id FROM payins p JOIN charges c ON c.merchant_id = p.merchant_id AND c.payin_id = p.id
			WHERE c.next_at > 0 ORDER BY p.created_at DESC, p.id LIMIT 1`,
	},
	{
		name: "notices", write: "UPDATE notices SET body = $1 WHERE processor = $2 AND notice_id = $3",
		find: "SELECT body, processor, notice_id, '', '' FROM notices WHERE next_at > 0 AND source <> 'feed' ORDER BY received_at, notice_id LIMIT 1",
	},
	{
		name: "events", write: "UPDATE events SET body = $1 WHERE merchant_id = $2 AND id = $3",
		find: `SELECT e.body, e.merchant_id, e.id, '', '' FROM events e JOIN deliveries d ON d.merchant_id = e.merchant_id AND d.event_number = e.number
			WHERE d.next_at > 0 ORDER BY e.created_at, e.id LIMIT 1`,
	},
	{
		name: "feeds", write: "UPDATE feeds SET cursor = $1 WHERE account = $2 AND feed = $3",
		find: "SELECT cursor, account, feed, '', '' FROM feeds WHERE next_at > 0 AND cursor <> '' ORDER BY account, feed LIMIT 1",
	},
}

// damage is a damaged row.
type damage struct {
	damageable

	value         []byte // before
	key           [2]any
	id, reference []byte // of an order
}

// Times of damage.
const (
	damageTries  = 300 // to find a row, every 100 ms
	damageMin    = 20 * time.Second
	damageMax    = 3 * time.Minute
	resolveEvery = 10 * time.Second
)

// scheduleDamage damages a row within span, and repairs it later.
func (s *simulation) scheduleDamage(span time.Duration) {
	if s.plan.damage == "" {
		return
	}
	tries := 0
	var try func()
	try = func() {
		if s.faultsOff || s.damageRow() {
			return
		}
		if tries++; tries < damageTries {
			s.whenIdle(100*time.Millisecond, try)
		}
	}
	s.whenIdle(s.between(0, span), try)
}

// damageRow flips a bit of a row; it reports whether one waits.
func (s *simulation) damageRow() bool {
	d := &damage{}
	for _, d.damageable = range damageables {
		if d.name == s.plan.damage {
			break
		}
	}
	err := s.raw.QueryRowContext(s.ctx, d.find).Scan(&d.value, &d.key[0], &d.key[1], &d.id, &d.reference)
	if errors.Is(err, sql.ErrNoRows) {
		return false
	}
	damaged := bytes.Clone(d.value)
	if err == nil {
		damaged[len(damaged)-1] ^= 1 << s.number(4)
		err = s.overwrite(d, damaged)
	}
	if err != nil {
		s.fail(err)
		return true
	}
	if len(d.id) > 0 {
		d.id = []byte(payment.ID(d.id).String())
	}
	s.damaged, s.checker.Damaged[d.name] = d, true
	if d.name == "charges" { // its row is the pay-in's, which the index of personal data needs too
		s.checker.Damaged["payins"] = true
	}
	s.trace.linef("a row of %s is damaged", d.name)
	s.countFault("damage", d.name, "any")
	s.whenIdle(s.between(damageMin, damageMax), s.repair)
	return true
}

// overwrite writes the value of a damaged row, which the checker does not follow.
func (s *simulation) overwrite(d *damage, value []byte) error {
	s.checkCommit()
	var v any = value
	if d.name == "feeds" || d.name == "refund_parts" {
		v = string(value)
	}
	_, err := s.raw.ExecContext(s.ctx, d.write, v, d.key[0], d.key[1])
	return errors.Join(err, s.checker.Ignore(s.ctx))
}

// repair restores the bytes of the damaged row.
func (s *simulation) repair() {
	if s.damaged == nil {
		return
	}
	if err := s.overwrite(s.damaged, s.damaged.value); err != nil {
		s.fail(err)
	}
	s.trace.linef("the row of %s is repaired", s.damaged.name)
	s.damaged = nil
	s.resolveLater()
}

// resolveLater resolves the cases about damaged rows until none is open: a list that is being read
// refuses a retry, and an account waits for its list.
func (s *simulation) resolveLater() {
	s.after(resolveEvery, func() {
		if s.resolveDamaged() {
			s.resolveLater()
		}
	})
}

// resolveDamaged resolves the cases about rows that were damaged; it reports whether there
// were any. The drain does it again.
func (s *simulation) resolveDamaged() (any bool) {
	const cases = `kind = 'damaged' OR kind = 'notice' AND params LIKE '%"unreadable"%' OR kind = 'feed_entry' AND params LIKE '%"damaged_order"%'`
	if any = s.retryCases(cases, "the row was repaired"); any {
		s.coverage.count("damage", "resolved", "any")
	}
	return any
}

// retryNotices retries the notices that were given up: a listed refund waits while the outcome of
// another one is unknown, which people decide.
func (s *simulation) retryNotices() {
	s.retryCases(`kind = 'notice' AND params LIKE '%"not_confirmed"%'`, "the refund is decided")
}

// retryCases retries the open cases that fulfil a condition; it reports whether there are any.
func (s *simulation) retryCases(condition, reason string) (any bool) {
	n := s.reachableNode()
	if n == nil || s.damaged != nil {
		return false
	}
	rows, err := s.raw.QueryContext(s.ctx, "SELECT id FROM cases WHERE closed_at = 0 AND ("+condition+") ORDER BY id")
	var ids []payment.ID
	for err == nil && rows.Next() {
		var id []byte
		err = rows.Scan(&id)
		ids = append(ids, payment.ID(id))
	}
	if err == nil {
		err = errors.Join(rows.Err(), rows.Close())
	}
	if err != nil {
		s.fail(err)
	}
	for _, id := range ids {
		s.step(n, func() {
			r, err := n.reviews().Resolve(context.WithoutCancel(s.ctx), review.Request{
				Case: id, How: store.ResolvedRetry, Actor: operatorActor, Reason: reason,
			})
			s.trace.linef("case retried, %s: %s %v", reason, r.Action, err)
		})
	}
	return len(ids) > 0
}

// concerns reports whether a request is about the damaged row.
func (d *damage) concerns(path string, body []byte) bool {
	return d != nil && len(d.id) > 0 && (bytes.Contains([]byte(path), d.id) || bytes.Contains(body, d.reference))
}
