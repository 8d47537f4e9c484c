package asaasface

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/money"
)

// reais is money in cents; in JSON a decimal number of reais.
type reais money.Cents

var errReais = errors.New("asaasface: not an amount with at most two decimals")

// UnmarshalJSON reads a number.
func (r *reais) UnmarshalJSON(text []byte) error {
	whole, part, _ := strings.Cut(string(text), ".")
	part = strings.TrimRight(part, "0")
	if len(part) > 2 {
		return errReais
	}
	cents, err := strconv.ParseInt(whole+(part + "00")[:2], 10, 64)
	if err != nil || cents > int64(money.Max) {
		return errReais
	}
	*r = reais(cents)
	return nil
}

// MarshalJSON writes a number.
func (r reais) MarshalJSON() ([]byte, error) { return []byte(money.Cents(r).Decimal()), nil }

// saoPaulo is the zone of all dates and times.
var saoPaulo = time.FixedZone("America/Sao_Paulo", -3*60*60)

func dayOf(t time.Time) string { return t.In(saoPaulo).Format(time.DateOnly) }

func timeOf(t time.Time) string { return t.In(saoPaulo).Format(time.DateTime) }

func addDays(day string, days int) string {
	t, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return day
	}
	return t.AddDate(0, 0, days).Format(time.DateOnly)
}

// fee is what the account pays for a payment, which may be more than its value: the prices are this
// sandbox's.
func fee(method string, value money.Cents) money.Cents {
	switch method {
	case methodCard:
		return 49 + value*299/10_000
	case methodBill:
		return 99
	default:
		return value * 99 / 10_000
	}
}

// What the account pays for a transfer and for a refund: it is given back if they fail.
const (
	transferFee money.Cents = 45
	refundFee   money.Cents = 30
)
