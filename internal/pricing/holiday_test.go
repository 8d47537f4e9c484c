package pricing_test

import (
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/pricing"
)

// published is the calendar of national bank holidays of ANBIMA
// (https://www.anbima.com.br/feriados/feriados.asp), on which FEBRABAN's is based too
// (https://feriadosbancarios.febraban.org.br): 2023 is the last year before 20 November.
var published = map[int]string{
	2023: "01-01 02-20 02-21 04-07 04-21 05-01 06-08 09-07 10-12 11-02 11-15 12-25",
	2024: "01-01 02-12 02-13 03-29 04-21 05-01 05-30 09-07 10-12 11-02 11-15 11-20 12-25",
	2025: "01-01 03-03 03-04 04-18 04-21 05-01 06-19 09-07 10-12 11-02 11-15 11-20 12-25",
	2026: "01-01 02-16 02-17 04-03 04-21 05-01 06-04 09-07 10-12 11-02 11-15 11-20 12-25",
	2027: "01-01 02-08 02-09 03-26 04-21 05-01 05-27 09-07 10-12 11-02 11-15 11-20 12-25",
	2028: "01-01 02-28 02-29 04-14 04-21 05-01 06-15 09-07 10-12 11-02 11-15 11-20 12-25",
	2029: "01-01 02-12 02-13 03-30 04-21 05-01 05-31 09-07 10-12 11-02 11-15 11-20 12-25",
	2030: "01-01 03-04 03-05 04-19 04-21 05-01 06-20 09-07 10-12 11-02 11-15 11-20 12-25",
}

// TestBusinessDays compares every day with the published calendar.
func TestBusinessDays(t *testing.T) {
	for year, holidays := range published {
		for day := time.Date(year, 1, 1, 12, 0, 0, 0, time.UTC); day.Year() == year; day = day.AddDate(0, 0, 1) {
			weekend := day.Weekday() == time.Saturday || day.Weekday() == time.Sunday
			want := !weekend && !strings.Contains(holidays, day.Format("01-02"))
			if got := pricing.IsBusinessDay(day); got != want {
				t.Errorf("%s is a business day: %v, want %v", day.Format("2006-01-02 Monday"), got, want)
			}
		}
	}
}
