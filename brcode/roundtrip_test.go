package brcode_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/porteira/porteira/brcode"
)

func anyStatic(t *rapid.T) brcode.Static {
	return brcode.Static{
		Key:          rapid.SampledFrom([]string{"12345678909", "11222333000181", "12ABC34501DE35", "pix@bcb.gov.br", "+5511987654321", "123e4567-e12b-12d1-a456-426655440000"}).Draw(t, "key"),
		Info:         rapid.StringMatching(`[A-Za-z0-9]{0,30}`).Draw(t, "info"),
		MerchantName: rapid.StringMatching(`[A-Za-z]([A-Za-z0-9 .&-]{0,23}[A-Za-z0-9])?`).Draw(t, "name"),
		City:         rapid.StringMatching(`[A-Z]([A-Z ]{0,13}[A-Z])?`).Draw(t, "city"),
		PostalCode:   rapid.SampledFrom([]string{"", "01001000"}).Draw(t, "postal code"),
		Amount:       rapid.Int64Range(0, 999_999_999_999).Draw(t, "amount"),
		TxID:         rapid.StringMatching(`[A-Za-z0-9]{0,25}`).Draw(t, "txid"),
		SingleUse:    rapid.Bool().Draw(t, "once"),
	}
}

// An encoded code is decoded to the same parts, and encodes to the same text.
func TestStaticRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := anyStatic(t)
		text, err := in.Encode()
		if err != nil {
			t.Fatalf("%+v: %v", in, err)
		}
		code, err := brcode.Decode(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		out := brcode.Static{
			Key: code.Key(), Info: code.Info(), MerchantName: code.MerchantName(), City: code.City(), PostalCode: code.PostalCode(),
			Amount: code.Amount(), TxID: code.TxID(), SingleUse: code.SingleUse(),
		}
		if out != in || code.Kind() != brcode.KindStatic {
			t.Fatalf("%+v became %+v", in, out)
		}
		if again, err := code.Encode(); err != nil || again != text {
			t.Fatalf("%s is written again as %s, %v", text, again, err)
		}
	})
}

// One changed character is always found: the checksum detects every error of up
// to 16 bits in a row.
func TestOneChangedCharacterIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, err := anyStatic(t).Encode()
		if err != nil {
			t.Fatal(err)
		}
		at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
		c := byte(rapid.IntRange(' ', '~').Draw(t, "c"))
		if c == text[at] {
			return
		}
		if code, err := brcode.Decode(text[:at] + string(c) + text[at+1:]); err == nil {
			t.Fatalf("%s with %c at %d was decoded: %v", text, c, at, code)
		}
	})
}

func BenchmarkDynamicEncode(b *testing.B) {
	d := brcode.Dynamic{URL: "pix.example.com/qr/v2/8b3da2f39a4140d1a91abd93113bd441", MerchantName: "Fulano de Tal", City: "BRASILIA", Amount: 12345}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := d.Encode(); err != nil {
			b.Fatal(err)
		}
	}
}
