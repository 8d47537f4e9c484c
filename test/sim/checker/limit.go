package checker

import (
	"slices"
	"time"
)

// Limits are the limits of a merchant's payouts, by the simulation's own records. Amounts are
// cents; a negative value is no limit.
type Limits struct {
	Minimum, Maximum, PerDay, PerNight, PerKeyPerDay, CountPerKeyPerDay, NewKeyMaximum int64

	ApprovalAbove int64
	Approvals     int64 // that a payout above it needs
}

// NoLimits has no limit.
var NoLimits = Limits{-1, -1, -1, -1, -1, -1, -1, -1, 0}

// How long a key is new.
const newKeyFor = 24 * time.Hour

// saoPaulo is the time of São Paulo, which has no daylight saving time.
var saoPaulo = time.FixedZone("-03", -3*60*60)

// dayOf is a day in São Paulo.
func dayOf(t time.Time) string { return t.In(saoPaulo).Format(time.DateOnly) }

// nightOf is the day on which a night in São Paulo, 20:00 to 06:00, began; "" by day.
func nightOf(t time.Time) string {
	t = t.In(saoPaulo)
	switch hour := t.Hour(); {
	case hour >= 20:
		return t.Format(time.DateOnly)
	case hour < 6:
		return t.AddDate(0, 0, -1).Format(time.DateOnly)
	default:
		return ""
	}
}

// use is the payouts that limits count for one more.
type use struct {
	day, night, keyDay, key int64 // cents
	keyDayCount             int64
	keyCount                int64     // of those that make the key known
	keySince                time.Time // the first of them
}

// countedTime is in the day and the night in which limits count a payout.
func (o *order) countedTime() time.Time {
	if o.countedAt != 0 {
		return time.UnixMicro(o.countedAt)
	}
	return time.UnixMicro(o.createdAt)
}

// knownSince is when a payout made its Pix key known: when it was created, or had its last
// approval; zero if it waits for approval.
func (o *order) knownSince() time.Time {
	switch {
	case !o.approved():
		return time.Time{}
	case len(o.approvals) == 0:
		return time.UnixMicro(o.createdAt)
	default:
		return time.UnixMicro(o.approvals[len(o.approvals)-1].createdAt)
	}
}

// used adds up the payouts of a merchant before one to a key at a time, which neither failed
// nor were canceled.
func (c *Checker) used(merchant rowID, sameKey func(*order) bool, at time.Time, except *order) (u use) {
	day, night := dayOf(at), nightOf(at)
	for _, o := range c.orderList {
		if o.kind != Payout || o == except || o.key.merchant != merchant || o.status == "FAILED" || o.status == "CANCELED" {
			continue
		}
		then := o.countedTime()
		sameDay := dayOf(then) == day
		if sameDay {
			u.day += o.amount
		}
		if night != "" && nightOf(then) == night {
			u.night += o.amount
		}
		if !sameKey(o) {
			continue
		}
		if sameDay {
			u.keyDay += o.amount
			u.keyDayCount++
		}
		u.key += o.amount
		since := o.knownSince()
		if since.IsZero() {
			continue
		}
		if u.keyCount == 0 || since.Before(u.keySince) {
			u.keySince = since
		}
		u.keyCount++
	}
	return u
}

// Exceeded lists the limits that a payout of an amount at a time would pass.
func (l *Limits) exceeded(amount int64, at time.Time, u *use) (names []string) {
	isNew := u.keyCount == 0 || at.Before(u.keySince.Add(newKeyFor))
	for _, v := range []struct {
		name   string
		passed bool
	}{
		{"minimum", amount < l.Minimum},
		{"maximum", l.Maximum >= 0 && amount > l.Maximum},
		{"perDay", l.PerDay >= 0 && u.day+amount > l.PerDay},
		{"perNight", l.PerNight >= 0 && nightOf(at) != "" && u.night+amount > l.PerNight},
		{"perKeyPerDay", l.PerKeyPerDay >= 0 && u.keyDay+amount > l.PerKeyPerDay},
		{"countPerKeyPerDay", l.CountPerKeyPerDay >= 0 && u.keyDayCount+1 > l.CountPerKeyPerDay},
		{"newKeyMaximum", l.NewKeyMaximum >= 0 && isNew && u.key+amount > l.NewKeyMaximum},
	} {
		if v.passed {
			names = append(names, v.name)
		}
	}
	return names
}

// needsApproval reports whether a payout of an amount needs approval.
func (l *Limits) needsApproval(amount int64) bool {
	return l.ApprovalAbove >= 0 && amount > l.ApprovalAbove
}

// limitsOf are the limits of a merchant.
func (c *Checker) limitsOf(merchant rowID) Limits {
	if c.Limits == nil {
		return NoLimits
	}
	return c.Limits(merchant.String())
}

// checkLimits checks that a new payout passes no limit, unless its money had left before it
// was requested again, and that it waits for approval if it needs it.
func (c *Checker) checkLimits(o *order) {
	limits := c.limitsOf(o.key.merchant)
	if f := c.foundByID[o.externalID]; f != nil {
		return // its money had left
	}
	at := time.UnixMicro(o.createdAt)
	u := c.used(o.key.merchant, func(other *order) bool { return other.pixKey == o.pixKey }, at, o)
	if names := limits.exceeded(o.amount, at, &u); len(names) > 0 {
		c.violatef(LimitsHold, o, "its %d pass %v: %+v", o.amount, names, u)
	}
	needs := limits.needsApproval(o.amount)
	if needs != (o.step == "approval") || needs != (len(o.approvals) > 0) {
		c.violatef(LimitsHold, o, "needs approval is %v, its step is %s, with %d rows", needs, o.step, len(o.approvals))
	}
}

// checkMoved checks that a payout passes no limit of the day and the night of its approval,
// which are other ones than those of its request.
func (c *Checker) checkMoved(o *order) {
	at, created := o.countedTime(), time.UnixMicro(o.createdAt)
	if dayOf(at) == dayOf(created) && nightOf(at) == nightOf(created) || o.step == "approval" {
		c.violatef(LimitsHold, o, "it counts at %s", at)
	}
	limits := c.limitsOf(o.key.merchant)
	u := c.used(o.key.merchant, func(other *order) bool { return other.pixKey == o.pixKey }, at, o)
	names := limits.exceeded(o.amount, at, &u)
	names = slices.DeleteFunc(names, func(name string) bool {
		return name == "newKeyMaximum" || name == "minimum" || name == "maximum" || dayOf(at) == dayOf(created) && name != "perNight"
	})
	if len(names) > 0 {
		c.violatef(LimitsHold, o, "its %d pass %v of its approval: %+v", o.amount, names, u)
	}
}

// Usage is what limits meet when a payout is requested.
type Usage struct {
	Commits int // so far

	use    use
	limits Limits
}

// Usage returns what limits count for a payout of a merchant at a time; toKey are the
// references of its payouts to the same Pix key.
func (c *Checker) Usage(merchant string, toKey map[string]bool, at time.Time) Usage {
	id := parseID(merchant)
	return Usage{len(c.commits), c.used(id, func(o *order) bool { return toKey[o.reference] }, at, nil), c.limitsOf(id)}
}

// compareKeys checks that payouts of a merchant have the same hash if their clients named the
// same Pix key, and only then.
func (c *comparison) compareKeys() {
	type named struct {
		merchant rowID
		key      string
	}
	hashes, names := map[named]rowID{}, map[orderName]named{}
	for _, a := range c.Orders {
		names[orderName{parseID(a.Merchant), a.Kind, a.Reference}] = named{parseID(a.Merchant), a.PIXKey}
	}
	seen := map[rowID]named{}
	for _, o := range c.orderList {
		name := names[orderName{o.key.merchant, o.kind, o.reference}]
		if o.kind != Payout || o.pixKey.isZero() || name.key == "" {
			continue
		}
		hash, known := hashes[name]
		other, used := seen[o.pixKey]
		if known && hash != o.pixKey || used && other != name {
			c.violatef(LimitsHold, o, "its Pix key %s has the hash %s, and another one", name.key, o.pixKey)
		}
		hashes[name], seen[o.pixKey] = o.pixKey, name
	}
}

// Exceeds reports whether a payout of an amount at a time would pass a limit.
func (u *Usage) Exceeds(limit string, amount int64, at time.Time) bool {
	return slices.Contains(u.limits.exceeded(amount, at, &u.use), limit)
}

// ExceedsAny reports whether a payout of an amount at a time would pass any limit.
func (u *Usage) ExceedsAny(amount int64, at time.Time) bool {
	return len(u.limits.exceeded(amount, at, &u.use)) > 0
}

// Add counts a payout of an amount at a time that is not stored yet.
func (u *Usage) Add(amount int64, sameKey bool, at time.Time) {
	u.use.day += amount
	u.use.night += amount
	if !sameKey {
		return
	}
	u.use.keyDay, u.use.key = u.use.keyDay+amount, u.use.key+amount
	u.use.keyDayCount++
	if u.limits.needsApproval(amount) {
		return
	}
	if u.use.keyCount == 0 {
		u.use.keySince = at
	}
	u.use.keyCount++
}

// approvalRow is a row of approvals.
type approvalRow struct {
	number            int64
	action, actor     string
	needed, createdAt int64
}

// approval declares the columns of approvals.
func (c *columns) approval(r *approvalRow) {
	c.key.num("number", &r.number)
	c.fixed.text("action", &r.action)
	c.fixed.text("actor", &r.actor)
	c.fixed.num("needed", &r.needed)
	c.fixed.num("created_at", &r.createdAt)
}

// approvalWithin is how long a payout waits for approval.
const approvalWithin = 72 * time.Hour

// applyApproval follows what was done about the approval of a payout.
func (c *Checker) applyApproval(l *line) {
	var row approvalRow
	c.columns.read(l).approval(&row)
	o := c.orders[l.key]
	if o == nil || o.kind != Payout {
		c.violateMerchantf(LimitsHold, l.key.merchant, "an approval of %s, which is not a payout", l.key.id)
		return
	}
	c.touch(o)
	fits := row.number == int64(len(o.approvals))
	limits := c.limitsOf(o.key.merchant)
	switch row.action {
	case "requested":
		fits = fits && row.number == 0 && row.needed == limits.Approvals
	case "approved", "rejected":
		fits = fits && row.number > 0 && !o.decided() && row.actor != o.approvals[0].actor && !o.approvedBy(row.actor)
	case "expired":
		fits = fits && row.number > 0 && !o.decided() && row.createdAt >= o.createdAt+approvalWithin.Microseconds()
	default:
		fits = false
	}
	if !fits {
		c.violatef(LimitsHold, o, "row %d about its approval is %s by %s, after %+v", row.number, row.action, row.actor, o.approvals)
	}
	o.approvals = append(o.approvals, row)
}

// approvedBy reports whether an actor has approved a payout.
func (o *order) approvedBy(actor string) bool {
	for _, a := range o.approvals {
		if a.action == "approved" && a.actor == actor {
			return true
		}
	}
	return false
}

// approved reports whether a payout needs no approval, or has it.
func (o *order) approved() bool {
	given := int64(0)
	for _, a := range o.approvals {
		switch a.action {
		case "approved":
			given++
		case "rejected", "expired":
			return false
		}
	}
	return len(o.approvals) == 0 || given >= o.approvals[0].needed
}

// decided reports whether nothing more can be decided about a payout.
func (o *order) decided() bool {
	for _, a := range o.approvals {
		if a.action == "rejected" || a.action == "expired" {
			return true
		}
	}
	return o.approved()
}

// checkApproval checks that a payout that needs approval is sent only with it.
func (c *Checker) checkApproval(o *order) {
	switch {
	case len(o.approvals) == 0 && o.step == "approval":
		c.violatef(LimitsHold, o, "it waits for approval, but nobody asked for it")
	case len(o.approvals) > 0 && o.step == "approval" && o.decided(), o.status == "PENDING" && o.step == "queued" && !o.approved():
		c.violatef(LimitsHold, o, "step is %s after %+v", o.step, o.approvals)
	case o.wasSent() && !o.approved():
		c.violatef(LimitsHold, o, "it was sent after %+v", o.approvals)
	}
}
