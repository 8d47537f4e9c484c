package pricing

import (
	"time"

	"github.com/rickar/cal/v2"
	"github.com/rickar/cal/v2/br"
)

// banks is the calendar of Brazilian banks: the national holidays, and those that the library
// lacks.
var banks = func() *cal.BusinessCalendar {
	c := cal.NewBusinessCalendar()
	c.AddHoliday(br.Holidays...)
	c.AddHoliday(
		// Law 14.759 made it national in December 2023.
		&cal.Holiday{Name: "Dia da Consciência Negra", StartYear: 2024, Month: time.November, Day: 20, Func: cal.CalcDayOfMonth},
		// Banks are closed on both days of Carnival.
		&cal.Holiday{Name: "Segunda-feira de Carnaval", Offset: -48, Func: cal.CalcEasterOffset},
	)
	return c
}()

// IsBusinessDay reports whether banks work on the day of t, in the location of t: not at
// weekends and on national holidays. Local holidays and the last day of the year, on which
// only branches are closed, are business days, as in the calendars of ANBIMA and FEBRABAN.
func IsBusinessDay(t time.Time) bool { return banks.IsWorkday(t) }
