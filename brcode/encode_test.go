package brcode_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/porteira/porteira/brcode"
)

func TestStaticEncodeRefuses(t *testing.T) {
	good := brcode.Static{Key: "12345678909", MerchantName: "FULANO", City: "BRASILIA"}
	for _, c := range []struct {
		name   string
		change func(*brcode.Static)
		field  string
		want   error
	}{
		{"no key", func(s *brcode.Static) { s.Key = "" }, "26-01", brcode.ErrMissing},
		{"key of 78", func(s *brcode.Static) { s.Key = strings.Repeat("a", 78) }, "26-01", brcode.ErrTooLong},
		{"key with a blank", func(s *brcode.Static) { s.Key = "1 2" }, "26-01", brcode.ErrValue},
		{"key beyond ASCII", func(s *brcode.Static) { s.Key = "ã@a.br" }, "26-01", brcode.ErrCharset},
		{"info of 73", func(s *brcode.Static) { s.Info = strings.Repeat("a", 73) }, "26-02", brcode.ErrTooLong},
		{"info beyond ASCII", func(s *brcode.Static) { s.Info = "açaí" }, "26-02", brcode.ErrCharset},
		{"key and info together beyond 99", func(s *brcode.Static) { s.Info = strings.Repeat("a", 63) }, "26", brcode.ErrTooLong},
		{"FSS of 7", func(s *brcode.Static) { s.FSS = "1234567" }, "26-03", brcode.ErrValue},
		{"FSS in small letters", func(s *brcode.Static) { s.FSS = "1234567a" }, "26-03", brcode.ErrValue},
		{"category of 3", func(s *brcode.Static) { s.Category = "581" }, "52", brcode.ErrValue},
		{"negative amount", func(s *brcode.Static) { s.Amount = -1 }, "54", brcode.ErrValue},
		{"amount of eleven digits", func(s *brcode.Static) { s.Amount = brcode.MaxAmount + 1 }, "54", brcode.ErrValue},
		{"no name", func(s *brcode.Static) { s.MerchantName = "" }, "59", brcode.ErrMissing},
		{"name of 26", func(s *brcode.Static) { s.MerchantName = strings.Repeat("a", 26) }, "59", brcode.ErrTooLong},
		{"name beyond ASCII", func(s *brcode.Static) { s.MerchantName = "JOÃO" }, "59", brcode.ErrCharset},
		{"name with a line end", func(s *brcode.Static) { s.MerchantName = "JO\nAO" }, "59", brcode.ErrCharset},
		{"no city", func(s *brcode.Static) { s.City = "" }, "60", brcode.ErrMissing},
		{"city of 16", func(s *brcode.Static) { s.City = strings.Repeat("a", 16) }, "60", brcode.ErrTooLong},
		{"postal code of 100", func(s *brcode.Static) { s.PostalCode = strings.Repeat("1", 100) }, "61", brcode.ErrTooLong},
		{"txid of 26", func(s *brcode.Static) { s.TxID = strings.Repeat("a", 26) }, "62-05", brcode.ErrTooLong},
		{"txid with a hyphen", func(s *brcode.Static) { s.TxID = "a-1" }, "62-05", brcode.ErrValue},
		{"recurrence with a scheme", func(s *brcode.Static) { s.Recurrence = "https://a.br/rec" }, "80-25", brcode.ErrValue},
	} {
		s := good
		c.change(&s)
		refused(t, c.name, s, c.field, c.want)
	}
	if _, err := good.Encode(); err != nil {
		t.Errorf("unchanged: %v", err)
	}
	longest := good
	longest.Key, longest.Info = "123e4567-e12b-12d1-a456-426655440000", strings.Repeat("a", 37)
	if _, err := longest.Encode(); err != nil {
		t.Errorf("37 characters of info with an EVP key: %v", err)
	}
}

func TestDynamicEncodeRefuses(t *testing.T) {
	good := brcode.Dynamic{URL: "a.br/x", MerchantName: "FULANO", City: "BRASILIA"}
	for _, c := range []struct {
		name   string
		change func(*brcode.Dynamic)
		field  string
		want   error
	}{
		{"no URL", func(d *brcode.Dynamic) { d.URL = "" }, "26-25", brcode.ErrMissing},
		{"URL of 78", func(d *brcode.Dynamic) { d.URL = strings.Repeat("a", 78) }, "26-25", brcode.ErrTooLong},
		{"URL with a scheme", func(d *brcode.Dynamic) { d.URL = "https://a.br/x" }, "26-25", brcode.ErrValue},
		{"URL without a host", func(d *brcode.Dynamic) { d.URL = "/x" }, "26-25", brcode.ErrValue},
		{"URL with a blank", func(d *brcode.Dynamic) { d.URL = "a.br/x y" }, "26-25", brcode.ErrValue},
		{"recurrence of 78", func(d *brcode.Dynamic) { d.Recurrence = strings.Repeat("a", 78) }, "80-25", brcode.ErrTooLong},
		{"no name", func(d *brcode.Dynamic) { d.MerchantName = "" }, "59", brcode.ErrMissing},
		{"negative amount", func(d *brcode.Dynamic) { d.Amount = -1 }, "54", brcode.ErrValue},
	} {
		d := good
		c.change(&d)
		refused(t, c.name, d, c.field, c.want)
	}
}

func refused(t *testing.T, name string, e encoder, field string, want error) {
	t.Helper()
	code, err := e.Encode()
	var where *brcode.Error
	if code != "" || !errors.As(err, &where) || !errors.Is(err, want) {
		t.Errorf("%s: got %q, %v, want %v", name, code, err, want)
		return
	}
	if where.Field != field || where.Pos != -1 {
		t.Errorf("%s: got field %s at %d, want %s at -1", name, where.Field, where.Pos, field)
	}
}

func text(longest int) *rapid.Generator[string] {
	return rapid.StringOfN(rapid.RuneFrom(nil, ascii), 1, longest, -1)
}

// word is text without blanks, slashes and colons.
func word(longest int) *rapid.Generator[string] {
	return rapid.StringOfN(rapid.RuneFrom([]rune("abcxyzABCXYZ0123456789@.+-_")), 1, longest, -1)
}

func maybe(g *rapid.Generator[string]) *rapid.Generator[string] {
	return rapid.OneOf(rapid.Just(""), g)
}

// statics draws codes that may be encoded: the length left in field 26 for the
// info depends on the key.
var statics = rapid.Custom(func(t *rapid.T) brcode.Static {
	s := brcode.Static{
		Key:          word(brcode.MaxKey).Draw(t, "key"),
		MerchantName: text(brcode.MaxMerchantName).Draw(t, "name"),
		City:         text(brcode.MaxCity).Draw(t, "city"),
		PostalCode:   maybe(rapid.StringMatching(`[0-9]{8}`)).Draw(t, "postal code"),
		Category:     rapid.StringMatching(`[0-9]{4}`).Draw(t, "category"),
		Amount:       rapid.Int64Range(0, brcode.MaxAmount).Draw(t, "amount"),
		TxID:         maybe(rapid.StringMatching(`[a-zA-Z0-9]{1,25}`)).Draw(t, "txid"),
		Recurrence:   maybe(word(brcode.MaxURL)).Draw(t, "recurrence"),
		SingleUse:    rapid.Bool().Draw(t, "single use"),
	}
	left := 99 - 18 - 4 - len(s.Key)
	if left >= 12 && rapid.Bool().Draw(t, "withdrawal") {
		s.FSS = rapid.StringMatching(`[0-9A-Z]{8}`).Draw(t, "FSS")
		left -= 12
	}
	if left > 4 {
		s.Info = maybe(text(min(left-4, brcode.MaxInfo))).Draw(t, "info")
	}
	return s
})

var dynamics = rapid.Custom(func(t *rapid.T) brcode.Dynamic {
	d := brcode.Dynamic{
		URL:          maybe(word(brcode.MaxURL)).Draw(t, "URL"),
		MerchantName: text(brcode.MaxMerchantName).Draw(t, "name"),
		City:         text(brcode.MaxCity).Draw(t, "city"),
		PostalCode:   maybe(rapid.StringMatching(`[0-9]{8}`)).Draw(t, "postal code"),
		Category:     rapid.StringMatching(`[0-9]{4}`).Draw(t, "category"),
		Amount:       rapid.Int64Range(0, brcode.MaxAmount).Draw(t, "amount"),
	}
	recurrence := maybe(word(brcode.MaxURL))
	if d.URL == "" {
		recurrence = word(brcode.MaxURL)
	}
	d.Recurrence = recurrence.Draw(t, "recurrence")
	return d
})

func decoded(t *rapid.T, e encoder) brcode.Code {
	s, err := e.Encode()
	if err != nil {
		t.Fatalf("Encode of %+v: %v", e, err)
	}
	code, err := brcode.Decode(s)
	if err != nil {
		t.Fatalf("Decode(%q): %v", s, err)
	}
	if again, err := code.Encode(); again != s || err != nil {
		t.Fatalf("%q is encoded again as %q, %v", s, again, err)
	}
	return code
}

// Every part of a static code is decoded again.
func TestStaticPartsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := statics.Draw(t, "static")
		code := decoded(t, want)
		got := brcode.Static{
			Key: code.Key(), Info: code.Info(), FSS: code.FSS(), MerchantName: code.MerchantName(), City: code.City(), PostalCode: code.PostalCode(),
			Category: code.Category(), Amount: code.Amount(), TxID: code.TxID(), Recurrence: code.Recurrence(), SingleUse: code.SingleUse(),
		}
		if got != want {
			t.Fatalf("got  %+v\nwant %+v", got, want)
		}
		kind := brcode.KindStatic
		if want.Recurrence != "" {
			kind = brcode.KindComposite
		}
		if code.Kind() != kind {
			t.Fatalf("kind %s, want %s", code.Kind(), kind)
		}
	})
}

// Every part of a dynamic code is decoded again.
func TestDynamicPartsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := dynamics.Draw(t, "dynamic")
		code := decoded(t, want)
		got := brcode.Dynamic{
			URL: code.URL(), Recurrence: code.Recurrence(), MerchantName: code.MerchantName(), City: code.City(), PostalCode: code.PostalCode(),
			Category: code.Category(), Amount: code.Amount(),
		}
		if got != want {
			t.Fatalf("got  %+v\nwant %+v", got, want)
		}
		kind := brcode.KindComposite
		switch {
		case want.Recurrence == "":
			kind = brcode.KindDynamic
		case want.URL == "":
			kind = brcode.KindRecurrence
		}
		if code.Kind() != kind || code.TxID() != "" || code.SingleUse() != (want.URL != "") {
			t.Fatalf("kind %s, want %s; txid %q, single use %v", code.Kind(), kind, code.TxID(), code.SingleUse())
		}
	})
}

// Two adjacent characters that are swapped are always found: the checksum detects
// every error of up to 16 bits in a row.
func TestSwappedCharactersAreFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, err := statics.Draw(t, "static").Encode()
		if err != nil {
			t.Fatal(err)
		}
		wrong := []byte(s)
		i := rapid.IntRange(0, len(s)-2).Draw(t, "position")
		wrong[i], wrong[i+1] = wrong[i+1], wrong[i]
		if string(wrong) == s {
			return
		}
		if _, err := brcode.Decode(string(wrong)); err == nil {
			t.Fatalf("%q passes, made from %q", wrong, s)
		}
	})
}

func BenchmarkStaticEncode(b *testing.B) {
	s := brcode.Static{Key: "123e4567-e12b-12d1-a456-426655440000", MerchantName: "FULANO DE TAL", City: "BRASILIA", Amount: 1234_56, TxID: "ABC0123456789DEFGHIJKLMNO"}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Encode(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := brcode.Decode(vectors[6].code); err != nil {
			b.Fatal(err)
		}
	}
}
