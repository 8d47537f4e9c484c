package brcode_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/porteira/porteira/brcode"
)

func TestCRC16(t *testing.T) {
	// Check value of CRC-16/CCITT-FALSE in the catalogue of CRC algorithms.
	if got := brcode.CRC16("123456789"); got != 0x29B1 {
		t.Errorf("got %04X, want 29B1", got)
	}
}

func TestVectors(t *testing.T) {
	for _, v := range vectors {
		code, err := brcode.Decode(v.code)
		if err != nil {
			t.Errorf("%s: %v", v.source, err)
			continue
		}
		if code.Kind() != v.kind {
			t.Errorf("%s: kind %s, want %s", v.source, code.Kind(), v.kind)
		}
		if again, err := code.Encode(); err != nil || again != v.code {
			t.Errorf("%s: encoded again as %s, %v", v.source, again, err)
		}
		if v.from == nil {
			continue
		}
		if made, err := v.from.Encode(); err != nil || made != v.code {
			t.Errorf("%s: made\n%s, %v, want\n%s", v.source, made, err, v.code)
		}
	}
}

// seal puts a payload together from its parts and adds the right checksum.
func seal(parts ...string) string {
	s := strings.Join(parts, "") + "6304"
	return s + fmt.Sprintf("%04X", brcode.CRC16(s))
}

func tlv(id, value string) string { return fmt.Sprintf("%s%02d%s", id, len(value), value) }

const (
	start   = "000201"
	account = "26330014br.gov.bcb.pix011112345678909"
	middle  = "5204000053039865802BR"
	payee   = "5906FULANO6008BRASILIA"
	noTxID  = "62070503***"
)

func TestDecodeRefuses(t *testing.T) {
	static := vectors[0].code
	for _, c := range []struct {
		name, code string
		want       error
		field      string
		pos        int
	}{
		{
			"widely copied gist: the checksum is right, but 62 says 08 and holds 07",
			"00020126360014BR.GOV.BCB.PIX0114+5511943214321520400005303986540566.665802BR5907EMPRESA6008BRASILIA62080503***6304170E",
			brcode.ErrTLV, "30", 111,
		},
		{
			"common in mocks: the manual's checksum glued to another code",
			"00020126330014br.gov.bcb.pix0111123456789095204000053039865802BR5916Teste PIX Online6008BRASILIA62070503***63041D3D",
			brcode.ErrCRC, "63", 107,
		},
		{
			"common in mocks: the same, with a length that does not fit",
			"00020126330014br.gov.bcb.pix0111123456789095204000053039865802BR5913Teste PIX Online6008BRASILIA62070503***63041D3D",
			brcode.ErrTLV, "", 81,
		},
		{"redacted example in the documentation of QI Tech", "00020126330014br.gov.bcb.pix0111123456789095204000053039865802BR5925TESTE62070503***63047B7D", brcode.ErrTLV, "59", 64},
		{"redacted example in the documentation of PushinPay", start + account + middle + payee + noTxID + "6304 6895", brcode.ErrTLV, "", 105},
		{"empty", "", brcode.ErrOrder, "00", 0},
		{"no checksum", strings.TrimSuffix(static, "63041D3D"), brcode.ErrMissing, "63", 129},
		{"checksum in small letters", static[:len(static)-4] + "1d3d", brcode.ErrCRC, "63", 129},
		{"text after the checksum", static + "a", brcode.ErrTLV, "", 137},
		{"data object after the checksum", static + "6401a", brcode.ErrOrder, "63", 142},
		{"checksum of five characters", static[:len(static)-6] + "0511D3D", brcode.ErrValue, "63", 129},
		{"cut off", static[:100], brcode.ErrTLV, "59", 89},
		{"line end", static + "\n", brcode.ErrCharset, "", 137},
		{"accent", strings.Replace(static, "BRASILIA", "BRASíLI", 1), brcode.ErrCharset, "", 114},
		{"513 characters", strings.Repeat("0", 513), brcode.ErrTooLong, "", 512},
		{"00 not first", seal("010212", start, account, middle, payee, noTxID), brcode.ErrOrder, "00", 0},
		{"other version", seal("000202", account, middle, payee, noTxID), brcode.ErrValue, "00", 0},
		{"01 is neither 11 nor 12", seal(start, "010213", account, middle, payee, noTxID), brcode.ErrValue, "01", 6},
		{"twice the same", seal(start, account, middle, middle, payee, noTxID), brcode.ErrDuplicate, "52", 64},
		{"length 00", seal(start, account, "6100", middle, payee, noTxID), brcode.ErrTLV, "61", 43},
		{"length of letters", seal(start, account, "610a", middle, payee, noTxID), brcode.ErrTLV, "", 43},
		{"other currency", seal(start, account, "5204000053038405802BR", payee, noTxID), brcode.ErrValue, "53", 51},
		{"other country", seal(start, account, "5204000053039865802US", payee, noTxID), brcode.ErrValue, "58", 58},
		{"category of letters", seal(start, account, "5204000a53039865802BR", payee, noTxID), brcode.ErrValue, "52", 43},
		{"no country", seal(start, account, "520400005303986", payee, noTxID), brcode.ErrMissing, "58", 91},
		{"no txid field", seal(start, account, middle, payee), brcode.ErrMissing, "62", 86},
		{"no txid in its template", seal(start, account, middle, payee, tlv("62", tlv("07", "x"))), brcode.ErrMissing, "62-05", 95},
		{"amount with a comma", seal(start, account, middle, tlv("54", "10,00"), payee, noTxID), brcode.ErrValue, "54", 64},
		{"amount without cents", seal(start, account, middle, tlv("54", "10"), payee, noTxID), brcode.ErrValue, "54", 64},
		{"amount with one decimal", seal(start, account, middle, tlv("54", "10.0"), payee, noTxID), brcode.ErrValue, "54", 64},
		{"amount that begins with a dot", seal(start, account, middle, tlv("54", ".10"), payee, noTxID), brcode.ErrValue, "54", 64},
		{"negative amount", seal(start, account, middle, tlv("54", "-1.00"), payee, noTxID), brcode.ErrValue, "54", 64},
		{"amount of eleven digits", seal(start, account, middle, tlv("54", "12345678901.00"), payee, noTxID), brcode.ErrTooLong, "54", 64},
		{"name of 26", seal(start, account, middle, tlv("59", strings.Repeat("A", 26)), "6008BRASILIA", noTxID), brcode.ErrTooLong, "59", 64},
		{"city of 16", seal(start, account, middle, "5906FULANO", tlv("60", strings.Repeat("A", 16)), noTxID), brcode.ErrTooLong, "60", 74},
		{"txid with a hyphen", seal(start, account, middle, payee, tlv("62", tlv("05", "A-1"))), brcode.ErrValue, "62-05", 97},
		{"txid of 26", seal(start, account, middle, payee, tlv("62", tlv("05", strings.Repeat("A", 26)))), brcode.ErrTooLong, "62-05", 120},
		{"not Pix", seal(start, tlv("26", tlv("00", "br.com.outro")+tlv("01", "x")), middle, payee, noTxID), brcode.ErrNotPix, "26", 85},
		{"no account", seal(start, middle, payee, noTxID), brcode.ErrNotPix, "26", 60},
		{"neither key nor URL", seal(start, "26180014br.gov.bcb.pix", middle, payee, noTxID), brcode.ErrMissing, "26", 82},
		{
			"key and URL", seal(start, tlv("26", tlv("00", "br.gov.bcb.pix")+tlv("01", "12345678909")+tlv("25", "a.br/x")), middle, payee, noTxID),
			brcode.ErrConflict, "26", 107,
		},
		{"two accounts of Pix", seal(start, account, strings.Replace(account, "26", "27", 1), middle, payee, noTxID), brcode.ErrDuplicate, "27", 43},
		{"key with a blank", seal(start, tlv("26", tlv("00", "br.gov.bcb.pix")+tlv("01", "a b")), middle, payee, noTxID), brcode.ErrValue, "26-01", 28},
		{"key of 78", seal(start, tlv("26", tlv("00", "BR.GOV.BCB.PIX")+"0178"+strings.Repeat("a", 77)), middle, payee, noTxID), brcode.ErrTLV, "26-01", 28},
		{"URL with a scheme", seal(start, tlv("26", tlv("00", "br.gov.bcb.pix")+tlv("25", "https://a.br/x")), middle, payee, noTxID), brcode.ErrValue, "26-25", 28},
		{"template broken inside", seal(start, tlv("26", "0014br.gov.bcb.pix01121234"), middle, payee, noTxID), brcode.ErrTLV, "26-01", 28},
		{"duplicate in a template", seal(start, account, middle, payee, tlv("62", "0503***0503***")), brcode.ErrDuplicate, "62-05", 97},
		{
			"two recurrences", seal(start, account, middle, payee, noTxID, tlv("80", tlv("00", "br.gov.bcb.pix")+tlv("25", "a.br/x")), tlv("81", tlv("00", "br.gov.bcb.pix")+tlv("25", "a.br/y"))),
			brcode.ErrDuplicate, "81", 129,
		},
	} {
		_, err := brcode.Decode(c.code)
		var where *brcode.Error
		if !errors.As(err, &where) || !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
			continue
		}
		if where.Field != c.field || where.Pos != c.pos {
			t.Errorf("%s: got field %q at %d, want %q at %d", c.name, where.Field, where.Pos, c.field, c.pos)
		}
	}
}

// Everything that the manual leaves open is kept.
func TestDecodeKeepsEverything(t *testing.T) {
	pix := tlv("00", "BR.GOV.BCB.PIX") + tlv("01", "+5511987654321") + tlv("02", "obrigado") + tlv("03", "1234567A")
	s := seal(start, "010212", "0216"+"4000001234567899", tlv("26", tlv("00", "br.com.outro")+tlv("01", "0123456789")), tlv("27", pix), "52045812", "5303986",
		tlv("54", "0000000012.05"), "5802BR", payee, tlv("61", "01001000"),
		tlv("62", tlv("05", "ABC")+tlv("50", tlv("00", "br.gov.bcb.brcode")+tlv("01", "1.0.0"))),
		tlv("64", tlv("00", "PT")), tlv("80", tlv("00", "br.com.outro")), tlv("85", tlv("00", "br.gov.bcb.pix")+tlv("25", "a.br/rec/1")))
	code, err := brcode.Decode(s)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := code.Encode(); again != s || err != nil {
		t.Errorf("encoded again as %s, %v", again, err)
	}
	got := []any{
		code.Kind(), code.Key(), code.Info(), code.FSS(), code.URL(), code.Recurrence(), code.MerchantName(), code.City(),
		code.PostalCode(), code.Category(), code.Amount(), code.TxID(), code.SingleUse(), code.Value("62", "50", "01"), code.Value("02"),
	}
	want := []any{
		brcode.KindComposite, "+5511987654321", "obrigado", "1234567A", "", "a.br/rec/1", "FULANO", "BRASILIA",
		"01001000", "5812", int64(1205), "ABC", true, "1.0.0", "4000001234567899",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestZeroCode(t *testing.T) {
	var code brcode.Code
	if code.Kind() != "" || code.Amount() != 0 || code.TxID() != "" || code.Value() != "" || code.Value("62", "05") != "" {
		t.Error("the zero code is not empty")
	}
	if s, err := code.Encode(); s != "" || !errors.Is(err, brcode.ErrOrder) {
		t.Errorf("Encode() = %q, %v", s, err)
	}
}

func TestCodeEncodeRefuses(t *testing.T) {
	complete, err := brcode.Decode(vectors[0].code)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		field brcode.Field
		want  error
	}{
		{"id of one digit", brcode.Field{ID: "9", Value: "x"}, brcode.ErrTLV},
		{"id of letters", brcode.Field{ID: "ab", Value: "x"}, brcode.ErrTLV},
		{"no value", brcode.Field{ID: "61"}, brcode.ErrTLV},
		{"value of 100", brcode.Field{ID: "61", Value: strings.Repeat("1", 100)}, brcode.ErrTooLong},
		{"value beyond ASCII", brcode.Field{ID: "61", Value: "ã"}, brcode.ErrCharset},
		{"a checksum of one's own", brcode.Field{ID: "63", Value: "ABCD"}, brcode.ErrDuplicate},
		{"duplicate", brcode.Field{ID: "59", Value: "x"}, brcode.ErrDuplicate},
	} {
		changed := brcode.Code{Fields: append(append([]brcode.Field(nil), complete.Fields...), c.field)}
		if s, err := changed.Encode(); s != "" || !errors.Is(err, c.want) {
			t.Errorf("%s: got %q, %v, want %v", c.name, s, err, c.want)
		}
	}
	var long []brcode.Field
	for _, id := range []string{"65", "66", "67", "68", "69"} {
		long = append(long, brcode.Field{ID: id, Value: strings.Repeat("x", 99)})
	}
	if _, err := (brcode.Code{Fields: append(complete.Fields, long...)}).Encode(); !errors.Is(err, brcode.ErrTooLong) {
		t.Errorf("beyond 512 characters: %v", err)
	}
}

// chars is a data object whose length counts characters.
func chars(id, value string) string {
	return fmt.Sprintf("%s%02d%s", id, utf8.RuneCountInString(value), value)
}

// A code of a bank that does not fold texts for people is read as it is, with lengths in characters or in
// bytes; what decides about the money stays strict.
func TestDecodeForeign(t *testing.T) {
	t.Parallel()
	const name, city = "PADARIA SÃO JOÃO", "São Paulo"
	for label, length := range map[string]func(id, value string) string{"characters": chars, "bytes": tlv} {
		info := length("26", length("00", "br.gov.bcb.pix")+length("01", "12345678909")+length("02", "Pão"))
		more := length("61", "São") + length("62", length("05", "ABC")+length("50", length("00", "é")))
		people := length("59", name) + length("60", city)
		for what, c := range map[string]struct {
			code string
			want error
		}{
			"valid":                 {seal(start, info, middle, people, more), nil},
			"long texts":            {seal(start, account, middle, length("59", strings.Repeat("ã", 40)), length("60", strings.Repeat("a", 40)), noTxID), nil},
			"an amount":             {seal(start, info, "5204000053039865406123.455802BR", people, more), nil},
			"another amount":        {seal(start, info, "520400005303986", length("54", "１23.45"), "5802BR", people, more), brcode.ErrValue},
			"a key beyond ASCII":    {seal(start, length("26", length("00", "br.gov.bcb.pix")+length("01", "joão@x.br")), middle, people, more), brcode.ErrCharset},
			"a URL beyond ASCII":    {seal(start, length("26", length("00", "br.gov.bcb.pix")+length("25", "pix.são.br/1")), middle, people, more), brcode.ErrCharset},
			"a txid beyond ASCII":   {seal(start, info, middle, people, length("62", length("05", "ÀBC"))), brcode.ErrCharset},
			"another currency":      {seal(start, info, "5204000053038405802BR", people, more), brcode.ErrValue},
			"another country":       {seal(start, info, "5204000053039865802PT", people, more), brcode.ErrValue},
			"a line feed in a name": {seal(start, info, middle, length("59", "SÃO\nJOÃO"), length("60", city), more), brcode.ErrCharset},
			"another checksum":      {start + info + middle + people + more + "6304XXXX", brcode.ErrCRC},
			"not UTF-8":             {seal(start, info, middle, length("59", "S\xe3o"), length("60", city), more), brcode.ErrCharset},
		} {
			code, err := brcode.DecodeForeign(c.code)
			if !errors.Is(err, c.want) || c.want == nil && err != nil {
				t.Errorf("%s, lengths in %s: %v, want %v", what, label, err, c.want)
			}
			if what == "valid" && (code.MerchantName() != name || code.City() != city || code.Info() != "Pão" || code.Key() != "12345678909" || code.TxID() != "ABC") {
				t.Errorf("lengths in %s: read as %+v", label, code)
			}
			if _, err := brcode.Decode(c.code); err == nil {
				t.Errorf("%s: Decode accepts it", what)
			}
		}
	}
}
