package pricing_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/pricing"
)

func TestFee(t *testing.T) {
	percent := payment.Terms{BasisPoints: 99, Fixed: 10} // 0.99 % and 10 cents
	for _, c := range []struct {
		name   string
		terms  payment.Terms
		amount money.Cents
		want   money.Cents
	}{
		{"no price", payment.Terms{}, 100_00, 0},
		{"percent and fixed", percent, 100_00, 99 + 10},
		{"half a cent up", payment.Terms{BasisPoints: 50}, 100, 1},
		{"just below half a cent", payment.Terms{BasisPoints: 49}, 100, 0},
		{"half a cent up, from 1.5", payment.Terms{BasisPoints: 150}, 100, 2},
		{"fixed only", payment.Terms{Fixed: 25}, 100_00, 25},
		{"minimum", payment.Terms{BasisPoints: 99, Minimum: 50}, 10_00, 50},
		{"above the minimum", payment.Terms{BasisPoints: 99, Minimum: 50}, 100_00, 99},
		{"maximum", payment.Terms{BasisPoints: 99, Maximum: 10_00}, 10_000_00, 10_00},
		{"maximum of the sum with fixed", payment.Terms{BasisPoints: 100, Fixed: 10, Maximum: 105}, 100_00, 105},
		{"never above the amount", payment.Terms{Fixed: 10}, 5, 5},
		{"minimum never above the amount", payment.Terms{Minimum: 50}, 30, 30},
		{"everything", payment.Terms{BasisPoints: 10_000, Fixed: 1}, 100, 100},
		{"largest order", payment.Terms{BasisPoints: 9_999}, money.Max, 99_989_999_999},
		{"nothing", percent, 0, 0},
		{"a negative amount", percent, -1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := pricing.Fee(c.terms, c.amount); got != c.want {
				t.Errorf("the fee of %d is %d, want %d", c.amount, got, c.want)
			}
		})
	}
}

// drawTerms draws any terms that an operator can set.
func drawTerms(t *rapid.T) payment.Terms {
	cents := rapid.OneOf(rapid.Int64Range(0, 300), rapid.Int64Range(0, int64(money.Max)))
	terms := payment.Terms{
		BasisPoints: rapid.OneOf(rapid.Int64Range(0, 500), rapid.Int64Range(0, pricing.BasisPointsMax)).Draw(t, "basis points"),
		Fixed:       money.Cents(cents.Draw(t, "fixed")), Minimum: money.Cents(cents.Draw(t, "minimum")),
		Days: rapid.IntRange(0, 40).Draw(t, "days"), Business: rapid.Bool().Draw(t, "business"),
		PerInstallment: rapid.Bool().Draw(t, "per instalment"), RefundsFee: rapid.Bool().Draw(t, "refunds fee"),
	}
	if maximum := money.Cents(cents.Draw(t, "maximum")); maximum >= terms.Minimum {
		terms.Maximum = maximum
	}
	return terms
}

func drawAmount(t *rapid.T, name string) money.Cents {
	return money.Cents(rapid.OneOf(rapid.Int64Range(1, 500), rapid.Int64Range(1, int64(money.Max))).Draw(t, name))
}

// TestFeesOfParts: however an order is paid, its fees add up to the fee of the sum, and none
// exceeds what came in.
func TestFeesOfParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		terms := drawTerms(t)
		var paid, fees money.Cents
		for range rapid.IntRange(1, 6).Draw(t, "parts") {
			part := drawAmount(t, "part") / 6
			fee := pricing.FeeOfPart(terms, paid, fees, part)
			if fee < 0 || fee > part {
				t.Fatalf("a part of %d after %d has a fee of %d", part, paid, fee)
			}
			paid, fees = paid+part, fees+fee
		}
		if want := pricing.Fee(terms, paid); fees != want {
			t.Fatalf("the fees add up to %d, the fee of %d is %d", fees, paid, want)
		}
	})
}

// TestFeesOfRefunds: refunds give back the complete fee, cent by cent, or nothing.
func TestFeesOfRefunds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		terms, paid := drawTerms(t), drawAmount(t, "paid")
		fee := pricing.Fee(terms, paid)
		var refunded, given money.Cents
		for i := 0; refunded < paid; i++ {
			amount := paid - refunded
			if i < 5 {
				amount = min(amount, drawAmount(t, "refund"))
			}
			back := pricing.FeeOfRefund(terms, fee, paid, refunded, amount)
			if back < 0 || back > amount {
				t.Fatalf("a refund of %d gives %d back", amount, back)
			}
			refunded, given = refunded+amount, given+back
		}
		want := fee
		if !terms.RefundsFee {
			want = 0
		}
		if given != want {
			t.Fatalf("refunds gave %d back, want %d", given, want)
		}
	})
}
