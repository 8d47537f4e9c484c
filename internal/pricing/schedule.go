package pricing

import (
	"time"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
)

// settlementHour is the hour of the day in São Paulo at which money becomes available.
const settlementHour = 6

// Part is an instalment of a payment, in cents.
type Part struct {
	Installment int // from 1
	Gross       money.Cents
	Fee         money.Cents // never above Gross
	SettlesAt   time.Time   // UTC; zero: at once
}

// Net is what the merchant gets.
func (p Part) Net() money.Cents { return p.Gross - p.Fee }

// Schedule splits a payment in cents, and its fee, into the parts that settle separately.
// The cents that do not divide are in the first part.
func Schedule(t payment.Terms, gross, fee money.Cents, paidAt time.Time, installments int) []Part {
	n := 1
	if t.PerInstallment {
		n = max(installments, 1)
	}
	parts := make([]Part, n)
	each, eachFee := gross/money.Cents(n), fee/money.Cents(n)
	rest, restFee := gross-each*money.Cents(n), fee-eachFee*money.Cents(n)
	for i := range parts {
		parts[i] = Part{i + 1, each + rest, eachFee, SettlesAt(t, paidAt, i+1)}
		rest = 0
		// The first part bears the rest of the fee, and others only what exceeds it.
		more := min(restFee, parts[i].Gross-eachFee)
		parts[i].Fee += more
		restFee -= more
	}
	return parts
}

// SettlesAt is when the part with this number of a payment becomes available, UTC: at 06:00
// in São Paulo of its day. Zero if that is at once.
func SettlesAt(t payment.Terms, paidAt time.Time, part int) time.Time {
	if t.Days == 0 {
		return time.Time{}
	}
	days := t.Days * part
	day := payment.InSaoPaulo(paidAt)
	if t.Business {
		for ; days > 0; days-- {
			day = nextBusinessDay(day)
		}
	} else {
		day = day.AddDate(0, 0, days)
	}
	return time.Date(day.Year(), day.Month(), day.Day(), settlementHour, 0, 0, 0, day.Location()).UTC()
}

func nextBusinessDay(day time.Time) time.Time {
	for day = day.AddDate(0, 0, 1); !IsBusinessDay(day); {
		day = day.AddDate(0, 0, 1)
	}
	return day
}

// SettlementTime is the time of a date, YYYY-MM-DD in São Paulo, at which money becomes
// available, UTC; false if the date is not one.
func SettlementTime(date string) (time.Time, bool) {
	day, err := time.ParseInLocation(time.DateOnly, date, payment.InSaoPaulo(time.Time{}).Location())
	return day.Add(settlementHour * time.Hour).UTC(), err == nil
}
