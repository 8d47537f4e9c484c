package wire

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/porteira/porteira/boleto"
)

// The test numbers that the brands publish.
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
		"4111.1111.1111.1111", "4111_1111_1111_1111", "4111/1111/1111/1111",
		"4111\u00a01111\u00a01111\u00a01111",       // no-break spaces
		"4111\u200b1111\u200b1111\u200b1111",       // zero-width spaces
		"4\u00ad111\u20111111\u22121111\u20131111", // hyphens and dashes
		"4111----1111----1111----1111", "4111 . . 1111 . . 1111 . . 1111", "41111111\n\n\n\n\n\n11111111",
		"\uff14\uff11\uff11\uff11 1111 1111 1111",       // full-width digits
		strings.Repeat("\u0664", 1) + "111111111111111", // an Arabic four
		"\U0001d7d2111111111111111",                     // a bold four
		"4111111111111111-89b-42d3-a456-426614174000",   // not a UUID
		"a4111111111111111aaaaaaaaaaaaaaaa",             // not a UUID without hyphens: 33 characters
		"12345678901234567890123456789012 4111111111111111",
		"ref-aaaaaaaaaaaaaaaa4111111111111111x",
		"4111 1111 1111 1111 val 12/29", "4111 1111-1111.1111 12/29 123", "4111111111111111 123", "41111111 11111111 12/29", "123 4111-1111-1111-1111",
		"4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1", "41-11-11-11-11-11-11-11", // alone, in any groups
		"3782 8224 6310 005 1234",
		"\u2074\u00b9\u00b9\u00b9 1111 1111 1111", "\u2463\u2460\u2460\u2460111111111111", // superscript, circled
		"4111\u20601111\u31641111\ufeff1111",                       // invisible characters
		"6200000000000005", "6759649826438453", "6221260000000000", // UnionPay, Maestro, Discover
		"5018000000000009", "5600000000000003", "8100000000000002", "3600000000000008", "3000000000000004", "3800000000000006", "3841000000000007", "6700000000000000", "6440000000000005", "180000000000002",
	} {
		if !ContainsCardNumber(text) {
			t.Errorf("not found in %q", text)
		}
	}
}

func TestOtherNumbersAreNotCards(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"",
		"4111111111111112",  // fails Luhn
		"411111111111111",   // 15 digits of a 16-digit brand
		"9999999999999995",  // passes Luhn, no brand
		"41111111111111110", // 17 digits in one piece
		"14111111111111111", // also in one piece, though the last 16 are a card number
		"00190500954014481606906809350314337370000000100",                      // a boleto's line
		"2026-11-23 14:30:00.123456-03:00", "2026-11-22 14:30:00.123457-03:00", // times
		"5001234-56.2026.4.04.7000", "5001234-57.2026.4.04.7001", // numbers of law suits
		"+55 11 98765-4321 e +55 11 98765-4322", "22 23 24 25 26 27 28 29 30 31", "CNPJ 55.123.456/0001-99", "354190023000015", // an IMEI
		"35190514200166000187550010000000046550000040", // an invoice's access key
		"5511987654321", "52998224725", "11222333000181",
		"CPF 41111111 e telefone 11111111",                             // words between them
		"123e4567-e89b-42d3-a456-426614174000",                         // a UUID
		"aaaaaaaa-aaaa-4aaa-4111-111111111111",                         // a UUID with the digits of a card
		"aaaaaaaaaaaaaaaa4111111111111111", "AAAAAAAA4111111111111111", // a UUID without hyphens, a document's id
		"order/a4111111111111111aaaaaaaaaaaaaaaaaaaaaaa?x",
		"https://shop.example/h/aaaaaaaa-aaaa-4aaa-4111-111111111111?x",
	} {
		if ContainsCardNumber(text) {
			t.Errorf("a card number was found in %q", text)
		}
	}
}

// Numbers of other kinds that are valid by their own check digits are not cards, in whatever
// groups they are printed.
func TestValidLongNumbersAreNotCards(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 1))
	digits := func(n int) string {
		out := make([]byte, n)
		for i := range out {
			out[i] = byte('0' + random.IntN(10))
		}
		return string(out)
	}
	line := func() string {
		code, err := boleto.Bill{Bank: "341", Amount: int64(random.IntN(1_000_000)), Factor: 1000 + random.IntN(9000), FreeField: digits(25)}.Barcode()
		if err != nil {
			t.Fatal(err)
		}
		text, err := boleto.Line(code)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	key := func(issuer string) string {
		for {
			if k := "3526" + fmt.Sprintf("%02d", 1+random.IntN(12)) + issuer + digits(38-len(issuer)); modulo11(k) {
				return k
			}
		}
	}
	service := func() string { // NFS-e
		for {
			if k := "355030812" + digits(41); modulo11(k) {
				return k
			}
		}
	}
	bill := func() (text string) {
		for len(text) < 48 {
			if b := "8" + digits(11); luhn(b) {
				text += b
			}
		}
		return text
	}
	for range 500 {
		l := line()
		for _, text := range []string{
			inGroups(key(""), 4, " "), inGroups(key(""), 4, "."), "série 123 nº 37 " + inGroups(key(""), 4, "-") + " / 7", inGroups(service(), 4, " "),
			inGroups(key("12ABC34501DE"), 4, " "), inGroups(l, 4, " "), boleto.FormatLine(l), inGroups(l, 5, " "), "3 " + inGroups(bill(), 4, " "), inGroups(key(""), 4, " ") + " " + inGroups(l, 4, " "),
		} {
			if ContainsCardNumber(text) {
				t.Errorf("a card number was found in %q", text)
			}
			if card := text + " 4111 1111 1111 1111 "; !ContainsCardNumber(card) {
				t.Errorf("no card number was found in %q", card)
			}
		}
	}
}

func inGroups(digits string, n int, separator string) string {
	var groups []string
	for ; len(digits) > n; digits = digits[n:] {
		groups = append(groups, digits[:n])
	}
	return strings.Join(append(groups, digits), separator)
}

// FuzzFreeText checks that nothing around a card number hides it, and that paths with a client's
// names stay short and in one line.
func FuzzFreeText(f *testing.F) {
	for _, seed := range []string{
		"4111111111111111", "4111 1111 1111 1111", "card 5162-3062-1937-8829.", "pedido 34191.79001 01043.510047 91020.150008 2 91070000026000",
		"3782 822463 10005", "1 4111 1111 1111 1111 1", "6362970000457013", "6062825624254001", "4444444444444444", "52998224725", "É 4111    1111111111111", "\x00", "\xff",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, card := range []string{s + "x 4111 1111 1111 1111", "5555555555554444 x" + s} {
			if !ContainsCardNumber(card) {
				t.Fatalf("no card number was found in %q", card)
			}
		}
		var errs Errors
		errs.text(At("metadata", s), s, 40)
		fits := s != "" && utf8.RuneCountInString(s) <= 40 && !strings.ContainsFunc(s, isControl) && !ContainsCardNumber(s)
		if list := errs.List(); fits != (len(list) == 0) {
			t.Fatalf("%q is refused as %v", s, list)
		}
		if !utf8.ValidString(s) {
			return // names of JSON members are valid UTF-8
		}
		path := At("metadata", s).String()
		if ContainsCardNumber(s) != (path == "metadata[...]") || strings.ContainsFunc(path, isControl) || !utf8.ValidString(path) || len(path) > 40*10+100 && !isIdentifier(s) {
			t.Fatalf("%q is shown as %q", s, path)
		}
	})
}

func isControl(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }
