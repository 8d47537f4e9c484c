package payment

import "time"

// Lifetimes of a pay-in.
const (
	PIXLifeMin     = time.Minute
	PIXLifeMax     = 30 * 24 * time.Hour
	pixLifeDefault = 24 * time.Hour
	cardLife       = 24 * time.Hour

	boletoDueDays   = 3  // from today, by default
	boletoGraceDays = 30 // banks accept a boleto this long after its due date
)

// saoPaulo is the time zone of due dates. Brazil abolished daylight saving time
// in 2019 (Decreto 9.772), so a fixed offset is right and needs no time zone
// files.
var saoPaulo = time.FixedZone("America/Sao_Paulo", -3*60*60)

// DayOf is the day in São Paulo at t, YYYY-MM-DD.
func DayOf(t time.Time) string { return t.In(saoPaulo).Format(time.DateOnly) }

// InSaoPaulo is t in the time zone of São Paulo.
func InSaoPaulo(t time.Time) time.Time { return t.In(saoPaulo) }

// DefaultDueDate is the due date, YYYY-MM-DD, of a boleto that is created at
// now without one.
func DefaultDueDate(now time.Time) string {
	return DayOf(now.In(saoPaulo).AddDate(0, 0, boletoDueDays))
}

// ExpiresAt is when a pay-in that is created at now stops waiting for payment.
// A BOLETO expires at the end of the last day, in São Paulo, on which a bank may
// accept it; dueDate is YYYY-MM-DD. A PIX expires after pixLife, or its default
// if that is 0.
func ExpiresAt(method Method, dueDate string, pixLife time.Duration, now time.Time) time.Time {
	switch method {
	case Boleto:
		due, err := time.ParseInLocation(time.DateOnly, dueDate, saoPaulo)
		if err != nil {
			return now // requests are validated before
		}
		return due.AddDate(0, 0, boletoGraceDays+1).UTC()
	case CreditCard:
		return now.Add(cardLife)
	default:
		if pixLife == 0 {
			pixLife = pixLifeDefault
		}
		return now.Add(pixLife)
	}
}
