package apipix

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/porteira/porteira/internal/money"
)

func TestAmounts(t *testing.T) {
	for text, want := range map[string]money.Cents{"0.01": 1, "0.10": 10, "1.00": 100, "12.34": 1234, "999999999.99": money.Max, "0001.00": 100} {
		if got, ok := parseAmount(text); !ok || got != want {
			t.Errorf("%s: %d, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "0.00", "1", "1.0", "1.000", "1,00", "-1.00", "+1.00", " 1.00", "1.00 ", ".10", "1e2.00", "12345678901.00", "1000000000.00", "１.00", "NaN"} {
		if got, ok := parseAmount(text); ok {
			t.Errorf("%q: %d", text, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		c := money.Cents(rapid.Int64Range(1, int64(money.Max)).Draw(t, "cents"))
		if got, ok := parseAmount(formatAmount(c)); !ok || got != c {
			t.Fatalf("%d is %s, and back %d", c, formatAmount(c), got)
		}
	})
}

func TestTexts(t *testing.T) {
	if got := cutText("a\x00b\tc\u00e7\ufffd", 3); got != "abc" {
		t.Errorf("cut: %q", got)
	}
	if got := cutText(strings.Repeat("ç", 200), 140); len([]rune(got)) != 140 {
		t.Errorf("cut to %d", len([]rune(got)))
	}
	for s, want := range map[string]bool{"": false, "a": true, "aZ09": true, strings.Repeat("a", 35): true, strings.Repeat("a", 36): false, "a-b": false, "ç": false, "a b": false} {
		if isWord(s, idMax) != want {
			t.Errorf("isWord(%q) is %v", s, !want)
		}
	}
}
