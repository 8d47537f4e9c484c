package wire

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
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
		"00190500954014481606906809350314337370000000100", // a boleto's line
		"35190514200166000187550010000000046550000040",    // an invoice's access key
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

// cardRows are digits in groups; cardForm is a number of a brand, by the published
// rules of the brands' own validators.
var (
	cardRows = regexp.MustCompile(`[0-9]+([^\p{L}0-9]+[0-9]+)*`)
	uuidForm = regexp.MustCompile(`[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}`)
	hexForm  = regexp.MustCompile(`[0-9a-fA-F]{24}`)
	groups   = regexp.MustCompile(`[0-9]+`)
	cardForm = regexp.MustCompile(`^(4[0-9]{15}|5[0-5][0-9]{14}|(222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720)[0-9]{12}` +
		`|3[47][0-9]{13}|(2131|1800)[0-9]{11}|35(2[89]|[3-8][0-9])[0-9]{12}|3(0[0-5]|6[0-9]|[89][0-9])[0-9]{13}` +
		`|(6011[0-9]{2}|64[4-9][0-9]{3}|65[0-9]{4}|627780|636297|636368|606282|637095|637568|637599|637609|637612)[0-9]{10}` +
		`|(63737423|63743358)[0-9]{8})$`)
)

// FuzzFreeText checks that a text is refused if and only if it contains a card
// number, and that paths with a client's names stay short and in one line.
func FuzzFreeText(f *testing.F) {
	for _, seed := range []string{
		"4111111111111111", "4111 1111 1111 1111", "card 5162-3062-1937-8829.", "pedido 34191.79001 01043.510047 91020.150008 2 91070000026000",
		"3782 822463 10005", "1 4111 1111 1111 1111 1", "6362970000457013", "6062825624254001", "4444444444444444", "52998224725", "É 4111    1111111111111", "\x00", "\xff",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if uuidForm.MatchString(s) || hexForm.MatchString(s) {
			return // its digits do not count
		}
		if got, want := ContainsCardNumber(s), hasCard(s); got != want {
			t.Fatalf("ContainsCardNumber(%q) = %v", s, got)
		}
		var errs Errors
		errs.text(At("metadata", s), s, 40)
		fits := s != "" && utf8.RuneCountInString(s) <= 40 && !strings.ContainsFunc(s, isControl) && !hasCard(s)
		if list := errs.List(); fits != (len(list) == 0) {
			t.Fatalf("%q is refused as %v", s, list)
		}
		if !utf8.ValidString(s) {
			return // names of JSON members are valid UTF-8
		}
		path := At("metadata", s).String()
		if hasCard(s) != (path == "metadata[...]") || strings.ContainsFunc(path, isControl) || !utf8.ValidString(path) || len(path) > 40*10+100 && !isIdentifier(s) {
			t.Fatalf("%q is shown as %q", s, path)
		}
	})
}

func isControl(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }

func hasCard(s string) bool {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsDigit(r) {
			return r
		}
		zero := r
		for unicode.IsDigit(zero - 1) {
			zero--
		}
		return '0' + (r-zero)%10
	}, s)
	for _, row := range cardRows.FindAllString(s, -1) {
		parts := groups.FindAllString(row, -1)
		for i := range parts {
			for end := i + 1; end <= len(parts); end++ {
				if number := strings.Join(parts[i:end], ""); cardForm.MatchString(number) && passesLuhn(number) {
					return true
				}
			}
		}
	}
	return false
}

func passesLuhn(number string) bool {
	digits := []byte(number)
	slices.Reverse(digits)
	sum := 0
	for i, d := range digits {
		doubled := []int{0, 2, 4, 6, 8, 1, 3, 5, 7, 9} // the sum of the digits
		if n := int(d - '0'); i%2 == 1 {
			sum += doubled[n]
		} else {
			sum += n
		}
	}
	return sum%10 == 0
}
