package money_test

import (
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/money"
)

// FuzzCents compares arithmetic and formats with big integers.
func FuzzCents(f *testing.F) {
	for _, seed := range []int64{0, 1, -1, 99, 100, 123456, int64(money.Max), math.MaxInt64, math.MinInt64} {
		f.Add(seed, seed, int8(3))
		f.Add(seed, -seed, int8(-1))
	}
	f.Fuzz(func(t *testing.T, a, b int64, parts int8) {
		x, y := big.NewInt(a), big.NewInt(b)
		sum, err := money.Cents(a).Add(money.Cents(b))
		fits(t, "sum", sum, err, new(big.Int).Add(x, y))
		difference, err := money.Cents(a).Sub(money.Cents(b))
		fits(t, "difference", difference, err, new(big.Int).Sub(x, y))

		want := new(big.Rat).SetFrac(x, big.NewInt(100)).FloatString(2)
		c := money.Cents(a)
		brl := strings.NewReplacer("R$ ", "", ".", "", ",", ".").Replace(c.BRL())
		english := strings.NewReplacer("R$ ", "", ",", "").Replace(c.English())
		if c.Decimal() != want || brl != want || english != want || c.String() != x.String() {
			t.Fatalf("%d is written as %q, %q, %q and %q", a, c.Decimal(), c.BRL(), c.English(), c)
		}
		for _, group := range strings.Split(strings.TrimLeft(c.BRL(), "-R$ "), ".")[1:] {
			if len(group) != 3 && len(group) != 6 || strings.Count(c.BRL(), ",") != 1 {
				t.Fatalf("%d has groups like %q", a, c.BRL())
			}
		}
		split(t, c, int(parts))
	})
}

func fits(t *testing.T, what string, got money.Cents, err error, want *big.Int) {
	t.Helper()
	if want.IsInt64() && (err != nil || int64(got) != want.Int64()) || !want.IsInt64() && !errors.Is(err, money.ErrOverflow) {
		t.Fatalf("the %s is %d, %v; want %s", what, got, err, want)
	}
}

// split checks that parts add up, differ by a cent at most, and grow.
func split(t *testing.T, c money.Cents, n int) {
	t.Helper()
	parts, err := c.Split(n)
	if c < 0 || n < 1 {
		if !errors.Is(err, money.ErrSplit) {
			t.Fatalf("%d in %d parts: %v", c, n, err)
		}
		return
	}
	total, sumErr := sum(parts)
	if err != nil || sumErr != nil || total != c || len(parts) != n || parts[n-1]-parts[0] > 1 {
		t.Fatalf("%d in %d parts: %v, %v", c, n, parts, err)
	}
	for i := 1; i < n; i++ {
		if parts[i] < parts[i-1] {
			t.Fatalf("%d in %d parts: %v", c, n, parts)
		}
	}
}
