package brcode_test

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/porteira/porteira/brcode"
)

// FuzzDecode reads each text as it is, and with the right checksum, without which
// the fuzzer's texts would hardly ever reach the fields.
func FuzzDecode(f *testing.F) {
	for _, v := range vectors {
		f.Add(v.code)
		f.Add(v.code[:len(v.code)-8])
	}
	f.Add("00020126360014BR.GOV.BCB.PIX0114+5511943214321520400005303986540566.665802BR5907EMPRESA6008BRASILIA62080503***6304170E")
	f.Add(start + account + middle + payee + tlv("62", tlv("05", "ABC")+tlv("50", tlv("00", "br.gov.bcb.brcode")+tlv("01", "1.0.0"))))
	f.Add(start + tlv("26", tlv("00", "br.com.outro")) + strings.Replace(account, "26", "27", 1) + middle + payee + noTxID + tlv("99", tlv("00", "x")))
	f.Fuzz(func(t *testing.T, s string) {
		decodeBothWays(t, s)
		s += "6304"
		decodeBothWays(t, s+checksum(s))
	})
}

// decodeBothWays checks that a code encodes to the same text, that its methods
// agree with a second parser, and that an error has a position.
func decodeBothWays(t *testing.T, s string) {
	t.Helper()
	code, err := brcode.Decode(s)
	foreign, foreignErr := brcode.DecodeForeign(s)
	if err == nil && (foreignErr != nil || !slices.Equal(code.Fields, foreign.Fields)) {
		t.Fatalf("DecodeForeign(%q): %+v, %v", s, foreign, foreignErr)
	}
	if err != nil {
		var where *brcode.Error
		if !errors.As(err, &where) || where.Pos < 0 || where.Pos > len(s) {
			t.Fatalf("Decode(%q): %v has no position", s, err)
		}
		return
	}
	if again, err := code.Encode(); err != nil || again != s {
		t.Fatalf("Decode(%q) is encoded again as %q, %v", s, again, err)
	}
	if s[len(s)-4:] != checksum(s[:len(s)-4]) {
		t.Fatalf("Decode(%q) does not mind the checksum", s)
	}
	fields := scan(t, s)
	for id, got := range map[string]string{"59": code.MerchantName(), "60": code.City(), "61": code.PostalCode(), "52": code.Category()} {
		if got != fields[id] {
			t.Fatalf("Decode(%q): field %s is %q, not %q", s, id, fields[id], got)
		}
	}
	cents, ok := new(big.Rat).SetString("0" + fields["54"])
	if want := new(big.Rat).SetFrac64(code.Amount(), 100); !ok || cents.Cmp(want) != 0 {
		t.Fatalf("Decode(%q): amount %d of %q", s, code.Amount(), fields["54"])
	}
	if txid := scan(t, fields["62"])["05"]; txid != code.TxID() && txid != brcode.NoTxID {
		t.Fatalf("Decode(%q): transaction id %q of %q", s, code.TxID(), txid)
	}
	if (code.Key() == "") == (code.URL() == "") && code.Recurrence() == "" || code.Kind() == "" {
		t.Fatalf("Decode(%q): kind %q, key %q, URL %q", s, code.Kind(), code.Key(), code.URL())
	}
}

// scan splits data objects, as any reader of EMV codes does.
func scan(t *testing.T, s string) map[string]string {
	t.Helper()
	fields := map[string]string{}
	for s != "" {
		var length int
		if _, err := fmt.Sscanf(s[2:4], "%d", &length); err != nil || fields[s[:2]] != "" {
			t.Fatalf("an accepted code has %q: %v", s, err)
		}
		fields[s[:2]], s = s[4:4+length], s[4+length:]
	}
	return fields
}

// checksum is CRC-16/CCITT-FALSE as EMV's specification words it, bit by bit.
func checksum(s string) string {
	sum := uint16(0xFFFF)
	for i := range len(s) {
		for bit := range 8 {
			top := sum>>15 ^ uint16(s[i]>>(7-bit))&1
			sum <<= 1
			if top == 1 {
				sum ^= 0x1021
			}
		}
	}
	return fmt.Sprintf("%04X", sum)
}

// FuzzEncode encodes any texts: a rejected one names its field, and any other is
// decoded to the same parts. Fold and Cut make names fit.
func FuzzEncode(f *testing.F) {
	for _, v := range vectors {
		code, err := brcode.Decode(v.code)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(code.Key(), code.Info(), code.FSS(), code.URL(), code.Recurrence(), code.MerchantName(), code.City(), code.PostalCode(), code.TxID(), code.Amount(), code.SingleUse())
	}
	f.Add("açaí", "", "1234567a", "https://a.br", "", "Pão de Açúcar", "São João d'El-Rei", "", "a-1", int64(-1), true)
	f.Fuzz(func(t *testing.T, key, info, fss, url, recurrence, name, city, postalCode, txid string, amount int64, once bool) {
		made := brcode.Static{
			Key: key, Info: info, FSS: fss, MerchantName: name, City: city, PostalCode: postalCode,
			Amount: amount, TxID: txid, Recurrence: recurrence, SingleUse: once,
		}
		if code, ok := encode(t, made); ok {
			read := brcode.Static{
				Key: code.Key(), Info: code.Info(), FSS: code.FSS(), MerchantName: code.MerchantName(), City: code.City(),
				PostalCode: code.PostalCode(), Amount: code.Amount(), TxID: code.TxID(), Recurrence: code.Recurrence(), SingleUse: code.SingleUse(),
			}
			if made.TxID == brcode.NoTxID {
				made.TxID = ""
			}
			if read != made {
				t.Fatalf("%+v is read as %+v", made, read)
			}
		}
		named := brcode.Dynamic{
			URL: url, Recurrence: recurrence, Amount: amount,
			MerchantName: brcode.Cut(brcode.Fold(name), brcode.MaxMerchantName), City: brcode.Cut(brcode.Fold(city), brcode.MaxCity),
		}
		if code, ok := encode(t, named); ok {
			read := brcode.Dynamic{
				URL: code.URL(), Recurrence: code.Recurrence(), MerchantName: code.MerchantName(), City: code.City(), Amount: code.Amount(),
			}
			if read != named {
				t.Fatalf("%+v is read as %+v", named, read)
			}
		}
	})
}

// encode encodes a code and decodes it; ok is false if it was rejected.
func encode(t *testing.T, from encoder) (code brcode.Code, ok bool) {
	t.Helper()
	text, err := from.Encode()
	if err != nil {
		var where *brcode.Error
		if !errors.As(err, &where) || where.Field == "" || where.Pos != -1 {
			t.Fatalf("%+v: %v names no field", from, err)
		}
		if d, dynamic := from.(brcode.Dynamic); dynamic && errors.Is(err, brcode.ErrCharset) && where.Field != "26-25" && where.Field != "80-25" {
			t.Fatalf("folded names are refused: %+v: %v", d, err)
		}
		return code, false
	}
	if len(text) > brcode.MaxPayload {
		t.Fatalf("%+v takes %d characters", from, len(text))
	}
	decodeBothWays(t, text)
	if code, err = brcode.Decode(text); err != nil {
		t.Fatalf("%+v is encoded as %q, which is refused: %v", from, text, err)
	}
	return code, true
}
