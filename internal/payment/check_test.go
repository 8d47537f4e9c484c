package payment

import (
	"slices"
	"strings"
	"testing"
)

// fault is what a request is expected to be told: "field code".
func faults(errs *Errors) []string {
	var out []string
	for _, e := range errs.List() {
		out = append(out, e.Field+" "+e.Code)
	}
	return out
}

func wantFaults(t *testing.T, name string, errs *Errors, want ...string) {
	t.Helper()
	got := faults(errs)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s: faults are %q, want %q", name, got, want)
	}
}

func TestErrorsNameEachCauseOnce(t *testing.T) {
	t.Parallel()
	var errs Errors
	errs.Add(At("", "customer"), CodeInvalidType, "first")
	errs.Add(At("", "customer"), CodeRequired, "again")
	errs.Add(At("customer", "name"), CodeRequired, "below")
	errs.Add(At("customer.address", "city"), CodeRequired, "far below")
	errs.Add(At("", "customers"), CodeUnknownField, "beside")
	errs.Add(AtEntry("items", 2, ""), CodeInvalidType, "an entry")
	errs.Add(AtEntry("items", 2, "title"), CodeRequired, "below the entry")
	errs.Add(AtEntry("items", 20, "title"), CodeRequired, "another entry")
	wantFaults(t, "list", &errs, "customer invalid_type", "customers unknown_field",
		"items[2] invalid_type", "items[20].title required")
}

func TestPath(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		path Path
		want string
	}{
		{At("", "amount"), "amount"},
		{At("customer.address", "zipCode"), "customer.address.zipCode"},
		{AtEntry("items", 0, ""), "items[0]"},
		{AtEntry("items", 12, "unitPrice"), "items[12].unitPrice"},
		{At("metadata", "order-id_2"), "metadata.order-id_2"},
		{At("metadata", "a.b"), `metadata["a.b"]`},
		{At("", ""), `[""]`},
		{At("", "x\u202ey\n"), `["x\u202ey\n"]`},
		{At("", strings.Repeat("ã", 50)), `["` + strings.Repeat("ã", 40) + `..."]`},
		{At("metadata", "4111 1111 1111 1111"), "metadata[...]"},
		{At("", "4111111111111111"), "[...]"},
		{At("metadata", "card_4111111111111111"), "metadata[...]"},
	} {
		if got := tt.path.String(); got != tt.want {
			t.Errorf("path is %s, want %s", got, tt.want)
		}
	}
}

// Vectors: the test numbers that the brands publish.
func TestCardNumbersAreFound(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"4111111111111111",                     // Visa
		"card 4111 1111 1111 1111, thanks",     // in groups
		"4111-1111-1111-1111",                  //
		"4111 - 1111 - 1111 - 1111",            //
		"5555555555554444",                     // Mastercard
		"2223003122003222",                     // Mastercard, 2 series
		"378282246310005",                      // American Express
		"3782 822463 10005",                    // in its own groups
		"6062826786276634",                     // Hipercard
		"6362970000457013",                     // Elo
		"6370950000000005",                     // Hiper
		"3530111333300000",                     // JCB
		"6011111111111117",                     // Discover
		"pedido 12 4111 1111 1111 1111",        // after another number
		"4111 1111 1111 1111 12/30 123",        // before another
		"4111 1111 1111 1112 5555555555554444", // the second of two
		"x4111111111111111y",
	} {
		if !holdsCardNumber(text) {
			t.Errorf("not found in %q", text)
		}
	}
}

func TestOtherNumbersAreLeft(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"",
		"4111111111111112",  // fails Luhn
		"411111111111111",   // 15 digits of a 16-digit brand
		"9999999999999995",  // passes Luhn, no brand
		"41111111111111110", // 17 digits in one piece
		"14111111111111111", // likewise, though the last 16 would do
		"00190500954014481606906809350314337370000000100", // a boleto's line
		"35190514200166000187550010000000046550000040",    // an invoice's access key
		"5511987654321", "52998224725", "11222333000181",
		"4111.1111.1111.1111",                  // not blanks or hyphens
		"41111111    11111111",                 // too far apart
		"123e4567-e89b-42d3-a456-426614174000", // a UUID
	} {
		if holdsCardNumber(text) {
			t.Errorf("a card number was found in %q", text)
		}
	}
}

func TestReference(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"a": true, "": false, strings.Repeat("ã", 128): true, strings.Repeat("a", 129): false,
		"../%00": true, "a\x00": false, "a\n": false, "\u202e": true, "😀": true, "a\u0085": false, "\x7f": false,
	} {
		if got := ValidReference(text); got != want {
			t.Errorf("ValidReference(%q) = %v", text, got)
		}
	}
}
