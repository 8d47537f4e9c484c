// Package limits is pure: amounts per method, day, night and key; approvals.
//
// The json tags are the names of members of GET /limits, and in the store.
package limits

import (
	"fmt"
	"time"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
)

// Limits are the limits of a merchant. A nil member is no limit. Amounts are cents.
type Limits struct {
	Payin    map[payment.Method]Range `json:"payin,omitempty"`
	Payout   Payout                   `json:"payout,omitzero"`
	Requests Requests                 `json:"requests,omitzero"`
}

// Requests bounds the requests of each credential of a merchant. A nil member is that of the
// gateway; without a Burst, a Rate has twice its number.
type Requests struct {
	Rate     *int64 `json:"rate,omitempty"` // a second, on each gateway
	Burst    *int64 `json:"burst,omitempty"`
	InFlight *int64 `json:"inFlight,omitempty"` // at once
}

// Range bounds the amount of one order.
type Range struct {
	Minimum *money.Cents `json:"minimum,omitempty"`
	Maximum *money.Cents `json:"maximum,omitempty"`
}

// Payout limits the payouts of a merchant. The limits of a day and a night count all of their
// payouts; those of a key count payouts that were requested while they were set.
type Payout struct {
	Range

	PerDay            *money.Cents `json:"perDay,omitempty"`            // a calendar day in São Paulo
	PerNight          *money.Cents `json:"perNight,omitempty"`          // 20:00 to 06:00 there
	PerKeyPerDay      *money.Cents `json:"perKeyPerDay,omitempty"`      // to one Pix key
	CountPerKeyPerDay *int64       `json:"countPerKeyPerDay,omitempty"` // payouts
	NewKeyMaximum     *money.Cents `json:"newKeyMaximum,omitempty"`     // in all, to a key that is new
	NewKeyHours       *int64       `json:"newKeyHours,omitempty"`       // for which a key is new
	ApprovalAbove     *money.Cents `json:"approvalAbove,omitempty"`
	Approvals         *int64       `json:"approvals,omitempty"` // 1 or 2
}

// The names of limits, as a refusal has them: the members of [Range] and [Payout].
const (
	Minimum           = "minimum"
	Maximum           = "maximum"
	PerDay            = "perDay"
	PerNight          = "perNight"
	PerKeyPerDay      = "perKeyPerDay"
	CountPerKeyPerDay = "countPerKeyPerDay"
	NewKeyMaximum     = "newKeyMaximum"
)

// Bounds of the members that are not amounts.
const (
	NewKeyHoursMax = 24 * 365
	CountMax       = 1_000_000
	ApprovalsMax   = 2
	RequestsMax    = 1_000_000
)

// newKeyHours is how long a key is new if no limit says otherwise.
const newKeyHours = 24

// Default is the limits of a new merchant if the operator has set no others.
func Default() Limits {
	return Limits{Payout: Payout{
		Range:  Range{Maximum: new(money.Cents(10_000_00))},
		PerDay: new(money.Cents(50_000_00)), PerNight: new(money.Cents(1_000_00)), NewKeyMaximum: new(money.Cents(1_000_00)), NewKeyHours: new(int64(newKeyHours)),
	}}
}

// Exceeded is the name of the limit that an amount is outside of; "" for none.
func (r Range) Exceeded(amount money.Cents) string {
	switch {
	case r.Minimum != nil && amount < *r.Minimum:
		return Minimum
	case r.Maximum != nil && amount > *r.Maximum:
		return Maximum
	default:
		return ""
	}
}

// Usage is what counters have for one payout, without it. Key has the amounts of payouts that
// wait for approval too, but not their number: they do not make the key known.
type Usage struct {
	Day, Night, KeyDay, Key Count
	KeySince                time.Time // the first payout of Key, or its approval
}

// Count is a sum of payouts.
type Count struct {
	Amount  money.Cents
	Payouts int64
}

// Exceeded is the name of the limit that a payout of an amount at a time would exceed; ""
// for none.
func (p *Payout) Exceeded(amount money.Cents, at time.Time, used *Usage) string {
	_, night := NightOf(at)
	above := func(limit *money.Cents, used Count) bool { return limit != nil && amount > *limit-used.Amount }
	if name := p.Range.Exceeded(amount); name != "" {
		return name
	}
	switch {
	case above(p.PerDay, used.Day):
		return PerDay
	case night && above(p.PerNight, used.Night):
		return PerNight
	case above(p.PerKeyPerDay, used.KeyDay):
		return PerKeyPerDay
	case p.CountPerKeyPerDay != nil && used.KeyDay.Payouts >= *p.CountPerKeyPerDay:
		return CountPerKeyPerDay
	case above(p.NewKeyMaximum, used.Key) && (used.Key.Payouts == 0 || at.Before(used.KeySince.Add(p.newKeyFor()))):
		return NewKeyMaximum
	default:
		return ""
	}
}

// Of are the limits of some counters alone.
func (p *Payout) Of(counters payment.Counters) (some Payout) {
	if counters&payment.CounterDay != 0 {
		some.PerDay = p.PerDay
	}
	if counters&payment.CounterNight != 0 {
		some.PerNight = p.PerNight
	}
	if counters&payment.CounterKeyDay != 0 {
		some.PerKeyPerDay, some.CountPerKeyPerDay = p.PerKeyPerDay, p.CountPerKeyPerDay
	}
	return some
}

// newKeyFor is how long a key is new.
func (p *Payout) newKeyFor() time.Duration {
	hours := int64(newKeyHours)
	if p.NewKeyHours != nil {
		hours = *p.NewKeyHours
	}
	return time.Duration(hours) * time.Hour
}

// Counters are the counters that a payout at a time is added to. Those of the merchant are always
// counted, so a limit that is set at noon counts the morning. Those of a key, two rows for each
// payout to another key, would cost a merchant without such limits some 40 % of its rate on SQLite.
func (p *Payout) Counters(at time.Time) (c payment.Counters) {
	c = payment.CounterDay
	if _, night := NightOf(at); night {
		c |= payment.CounterNight
	}
	if p.PerKeyPerDay != nil || p.CountPerKeyPerDay != nil {
		c |= payment.CounterKeyDay
	}
	if p.NewKeyMaximum != nil {
		c |= payment.CounterKey
	}
	return c
}

// ApprovalsOf is how many approvals a payout of an amount needs: 0, 1 or 2.
func (p *Payout) ApprovalsOf(amount money.Cents) int64 {
	switch {
	case p.ApprovalAbove == nil || amount <= *p.ApprovalAbove:
		return 0
	case p.Approvals == nil:
		return 1
	default:
		return *p.Approvals
	}
}

// A night in São Paulo, by the hours of its clock. It ends before the hour at which it began.
const (
	nightBegins = 20
	nightEnds   = 6
)

// DayOf is the day in São Paulo at t, as a number that increases by one a day.
func DayOf(t time.Time) int64 {
	day := payment.InSaoPaulo(t)
	return time.Date(day.Year(), day.Month(), day.Day(), 0, 0, 0, 0, time.UTC).Unix() / int64(24*time.Hour/time.Second)
}

// NightOf is the night in São Paulo at t, as the number of the day on which it began; false
// by day.
func NightOf(t time.Time) (day int64, night bool) {
	hour := payment.InSaoPaulo(t).Hour()
	return DayOf(t.Add(-nightEnds * time.Hour)), hour >= nightBegins || hour < nightEnds
}

// Check returns an error that names the first member of l that has no sense.
func (l *Limits) Check() error {
	for method, r := range l.Payin {
		if err := r.check("payin." + string(method)); err != nil {
			return err
		}
	}
	p := &l.Payout
	for _, v := range []struct {
		name     string
		value    *int64
		from, to int64
	}{
		{"payout." + CountPerKeyPerDay, p.CountPerKeyPerDay, 0, CountMax},
		{"payout.newKeyHours", p.NewKeyHours, 0, NewKeyHoursMax},
		{"payout.approvals", p.Approvals, 1, ApprovalsMax},
		{"requests.rate", l.Requests.Rate, 1, RequestsMax},
		{"requests.burst", l.Requests.Burst, 1, RequestsMax},
		{"requests.inFlight", l.Requests.InFlight, 1, RequestsMax},
	} {
		if v.value != nil && (*v.value < v.from || *v.value > v.to) {
			return fmt.Errorf("%s must be %d to %d", v.name, v.from, v.to)
		}
	}
	for _, v := range []struct {
		name  string
		value *money.Cents
	}{
		{PerDay, p.PerDay}, {PerNight, p.PerNight}, {PerKeyPerDay, p.PerKeyPerDay}, {NewKeyMaximum, p.NewKeyMaximum}, {"approvalAbove", p.ApprovalAbove},
	} {
		if err := checkAmount("payout."+v.name, v.value); err != nil {
			return err
		}
	}
	return p.check("payout")
}

func (r Range) check(name string) error {
	if err := checkAmount(name+"."+Minimum, r.Minimum); err != nil {
		return err
	}
	if err := checkAmount(name+"."+Maximum, r.Maximum); err != nil {
		return err
	}
	if r.Minimum != nil && r.Maximum != nil && *r.Minimum > *r.Maximum {
		return fmt.Errorf("%s.minimum is above %s.maximum", name, name)
	}
	return nil
}

// amountMax keeps sums far from the bounds of an integer.
const amountMax = 1_000_000 * money.Max

func checkAmount(name string, c *money.Cents) error {
	if c != nil && (*c < 0 || *c > amountMax) {
		return fmt.Errorf("%s must be 0 to %d cents", name, amountMax)
	}
	return nil
}
