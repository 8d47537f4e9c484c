package pricing_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/pricing"
)

func TestSettlesAt(t *testing.T) {
	calendar := func(n int) payment.Terms { return payment.Terms{Days: n} }
	business := func(n int) payment.Terms { return payment.Terms{Days: n, Business: true} }
	for _, c := range []struct {
		name   string
		terms  payment.Terms
		paidAt string
		part   int
		want   string // 06:00 in São Paulo is 09:00 UTC
	}{
		{"D+0 is at once", calendar(0), "2026-11-18T12:00:00Z", 1, ""},
		{"D+1", calendar(1), "2026-11-18T12:00:00Z", 1, "2026-11-19T09:00:00Z"},
		{"D+2 to a Sunday", calendar(2), "2026-11-20T12:00:00Z", 1, "2026-11-22T09:00:00Z"},
		{"the day is São Paulo's: 23:30 there is the next day in UTC", calendar(1), "2026-11-19T02:30:00Z", 1, "2026-11-19T09:00:00Z"},
		{"D+30, third instalment", calendar(30), "2026-11-18T12:00:00Z", 3, "2027-02-16T09:00:00Z"},
		{"B+1 from Friday to Monday", business(1), "2026-11-13T12:00:00Z", 1, "2026-11-16T09:00:00Z"},
		{"B+1 from Saturday to Monday", business(1), "2026-11-14T12:00:00Z", 1, "2026-11-16T09:00:00Z"},
		{"B+2 across 20 November and a weekend", business(2), "2026-11-18T12:00:00Z", 1, "2026-11-23T09:00:00Z"},
		{"B+1 across 20 November and a weekend", business(1), "2026-11-19T12:00:00Z", 1, "2026-11-23T09:00:00Z"},
		{"B+1 across Carnival", business(1), "2026-02-13T12:00:00Z", 1, "2026-02-18T09:00:00Z"},
		{"B+1 across Good Friday", business(1), "2026-04-02T12:00:00Z", 1, "2026-04-06T09:00:00Z"},
		{"B+2 across Corpus Christi", business(2), "2026-06-02T12:00:00Z", 1, "2026-06-05T09:00:00Z"},
		{"B+1 across the new year", business(1), "2026-12-31T12:00:00Z", 1, "2027-01-04T09:00:00Z"},
		{"B+2, second instalment", business(2), "2026-11-16T12:00:00Z", 2, "2026-11-23T09:00:00Z"},
	} {
		t.Run(c.name, func(t *testing.T) {
			paidAt, err := time.Parse(time.RFC3339, c.paidAt)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if at := pricing.SettlesAt(c.terms, paidAt, c.part); !at.IsZero() {
				got = at.Format(time.RFC3339)
			}
			if got != c.want {
				t.Errorf("it settles at %q, want %q", got, c.want)
			}
		})
	}
}

func TestSchedule(t *testing.T) {
	paidAt := time.Date(2026, 11, 18, 12, 0, 0, 0, time.UTC)
	per := payment.Terms{Days: 30, PerInstallment: true}
	type part struct{ gross, fee money.Cents }
	for _, c := range []struct {
		name         string
		terms        payment.Terms
		gross, fee   money.Cents
		installments int
		want         []part
	}{
		{"in one part", payment.Terms{Days: 30}, 100_00, 3_00, 3, []part{{100_00, 3_00}}},
		{"per instalment, with the rest in the first part", per, 100_00, 1_00, 3, []part{{33_34, 34}, {33_33, 33}, {33_33, 33}}},
		{"paid at once", per, 100_00, 1_00, 1, []part{{100_00, 1_00}}},
		{"instalments unknown", per, 100_00, 1_00, 0, []part{{100_00, 1_00}}},
		{"a rest of the fee that exceeds the first part", per, 4, 3, 4, []part{{1, 1}, {1, 1}, {1, 1}, {1, 0}}},
		{"fewer cents than parts", per, 2, 1, 3, []part{{2, 1}, {0, 0}, {0, 0}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []part
			for i, p := range pricing.Schedule(c.terms, c.gross, c.fee, paidAt, c.installments) {
				got = append(got, part{p.Gross, p.Fee})
				if p.Installment != i+1 || !p.SettlesAt.Equal(pricing.SettlesAt(c.terms, paidAt, i+1)) {
					t.Errorf("part %d is %+v", i+1, p)
				}
			}
			if len(got) != len(c.want) {
				t.Fatalf("parts %v, want %v", got, c.want)
			}
			for i := range got {
				if got[i] != c.want[i] {
					t.Fatalf("parts %v, want %v", got, c.want)
				}
			}
		})
	}
}

// TestScheduleAddsUp: parts add up to the payment and its fee, differ by the rest only, and
// settle one after the other, at 06:00 in São Paulo of a day after the payment.
func TestScheduleAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		terms, gross := drawTerms(t), drawAmount(t, "gross")
		fee := pricing.Fee(terms, gross)
		paidAt := time.Unix(rapid.Int64Range(1_700_000_000, 2_500_000_000).Draw(t, "paid at"), 0).UTC()
		n := rapid.IntRange(1, payment.InstallmentsMax).Draw(t, "instalments")
		var grossSum, feeSum money.Cents
		before := paidAt
		parts := pricing.Schedule(terms, gross, fee, paidAt, n)
		for i, p := range parts {
			if p.Fee < 0 || p.Fee > p.Gross || i > 0 && p.Gross != gross/money.Cents(len(parts)) {
				t.Fatalf("part %+v of %d with fee %d in %d", p, gross, fee, n)
			}
			grossSum, feeSum = grossSum+p.Gross, feeSum+p.Fee
			if terms.Days == 0 {
				if !p.SettlesAt.IsZero() {
					t.Fatalf("part %+v is not at once", p)
				}
				continue
			}
			at := payment.InSaoPaulo(p.SettlesAt)
			if !p.SettlesAt.After(before) || at.Format("15:04:05") != "06:00:00" || terms.Business && !pricing.IsBusinessDay(at) {
				t.Fatalf("a part of a payment at %s settles at %s, after %s", paidAt, at, before)
			}
			before = p.SettlesAt
		}
		if grossSum != gross || feeSum != fee {
			t.Fatalf("parts add up to %d and %d, want %d and %d", grossSum, feeSum, gross, fee)
		}
	})
}
