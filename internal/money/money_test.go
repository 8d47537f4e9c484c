package money_test

import (
	"errors"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/porteira/porteira/internal/money"
)

func TestFormatting(t *testing.T) {
	for _, tt := range []struct {
		cents                 money.Cents
		brl, decimal, english string
	}{
		{0, "R$ 0,00", "0.00", "R$ 0.00"},
		{1, "R$ 0,01", "0.01", "R$ 0.01"},
		{-1, "-R$ 0,01", "-0.01", "-R$ 0.01"},
		{99, "R$ 0,99", "0.99", "R$ 0.99"},
		{100, "R$ 1,00", "1.00", "R$ 1.00"},
		{123456, "R$ 1.234,56", "1234.56", "R$ 1,234.56"},
		{100000, "R$ 1.000,00", "1000.00", "R$ 1,000.00"},
		{money.Max, "R$ 999.999.999,99", "999999999.99", "R$ 999,999,999.99"},
		{math.MinInt64, "-R$ 92.233.720.368.547.758,08", "-92233720368547758.08", "-R$ 92,233,720,368,547,758.08"},
	} {
		if got := tt.cents.BRL(); got != tt.brl {
			t.Errorf("BRL(%d) = %q, want %q", int64(tt.cents), got, tt.brl)
		}
		if got := tt.cents.Decimal(); got != tt.decimal {
			t.Errorf("Decimal(%d) = %q, want %q", int64(tt.cents), got, tt.decimal)
		}
		if got := tt.cents.English(); got != tt.english {
			t.Errorf("English(%d) = %q, want %q", int64(tt.cents), got, tt.english)
		}
	}
}

// Checked arithmetic agrees with big integers, or reports an overflow. Values
// near the limits of 64 bits are drawn as often as the others.
func TestArithmeticMatchesBigIntegers(t *testing.T) {
	edges := rapid.SampledFrom([]int64{math.MinInt64, math.MinInt64 + 1, math.MinInt64 / 2, -1, 0, 1, math.MaxInt64 / 2, math.MaxInt64 - 1, math.MaxInt64})
	either := rapid.OneOf(edges, rapid.Int64())
	rapid.Check(t, func(t *rapid.T) {
		a, b := either.Draw(t, "a"), either.Draw(t, "b")
		check := func(name string, got money.Cents, err error, want *big.Int) {
			if want.IsInt64() {
				if err != nil || int64(got) != want.Int64() {
					t.Fatalf("%s(%d, %d) = %d, %v; want %s", name, a, b, got, err, want)
				}
			} else if !errors.Is(err, money.ErrOverflow) {
				t.Fatalf("%s(%d, %d) = %d, %v; want ErrOverflow", name, a, b, got, err)
			}
		}
		sum, err := money.Cents(a).Add(money.Cents(b))
		check("Add", sum, err, new(big.Int).Add(big.NewInt(a), big.NewInt(b)))
		diff, err := money.Cents(a).Sub(money.Cents(b))
		check("Sub", diff, err, new(big.Int).Sub(big.NewInt(a), big.NewInt(b)))
	})
}

func TestAddAtTheEdges(t *testing.T) {
	for _, tt := range [][2]money.Cents{{math.MaxInt64, 1}, {1, math.MaxInt64}, {math.MinInt64, -1}, {-1, math.MinInt64}} {
		if got, err := tt[0].Add(tt[1]); !errors.Is(err, money.ErrOverflow) {
			t.Errorf("%d + %d = %d, %v, want ErrOverflow", tt[0], tt[1], got, err)
		}
	}
	if got, err := money.Cents(math.MaxInt64).Add(math.MinInt64); err != nil || got != -1 {
		t.Errorf("MaxInt64 + MinInt64 = %d, %v", got, err)
	}
}

func TestSubAtTheEdges(t *testing.T) {
	if got, err := money.Cents(-1).Sub(math.MinInt64); err != nil || got != math.MaxInt64 {
		t.Errorf("-1 - MinInt64 = %d, %v", got, err)
	}
	if _, err := money.Cents(0).Sub(math.MinInt64); !errors.Is(err, money.ErrOverflow) {
		t.Errorf("0 - MinInt64: %v, want ErrOverflow", err)
	}
}

// sum adds amounts; the error is an overflow.
func sum(amounts []money.Cents) (total money.Cents, err error) {
	for _, a := range amounts {
		if total, err = total.Add(a); err != nil {
			return 0, err
		}
	}
	return total, nil
}

func TestSplitLosesNoCent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := money.Cents(rapid.Int64Range(0, int64(money.Max)).Draw(t, "amount"))
		n := rapid.IntRange(1, 48).Draw(t, "n")
		parts, err := amount.Split(n)
		if err != nil {
			t.Fatal(err)
		}
		total, err := sum(parts)
		if err != nil || total != amount {
			t.Fatalf("parts of %d add up to %d, %v", amount, total, err)
		}
		if len(parts) != n || parts[n-1]-parts[0] > 1 || parts[n-1] < parts[0] {
			t.Fatalf("uneven parts %v", parts)
		}
	})
	for _, bad := range []struct {
		c money.Cents
		n int
	}{{-1, 2}, {1, 0}, {1, -1}} {
		if _, err := bad.c.Split(bad.n); !errors.Is(err, money.ErrSplit) {
			t.Errorf("Split(%d, %d): %v, want ErrSplit", bad.c, bad.n, err)
		}
	}
}
