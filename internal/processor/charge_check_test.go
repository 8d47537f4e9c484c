package processor_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/boleto"
	"github.com/porteira/porteira/brcode"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

const (
	ourID   = "00001abcdefghijklmnopqrstuvwxyzA"
	otherID = "00001abcdefghijklmnopqrstuvwxyzB"
	amount  = 500_000
)

var expires = time.Date(2026, 11, 21, 18, 30, 0, 0, time.UTC)

func order(m payment.Method) processor.ChargeRequest {
	r := processor.ChargeRequest{ExternalID: ourID, Method: m, Amount: amount, ExpiresAt: expires}
	switch m {
	case payment.Boleto:
		r.DueDate = "2026-11-24"
	case payment.CreditCard:
		r.Installments = 3
	}
	return r
}

type encoder interface{ Encode() (string, error) }

func encode(t testing.TB, e encoder) string {
	t.Helper()
	code, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return code
}

func dynamic() brcode.Dynamic {
	return brcode.Dynamic{URL: "pix.bank.example/qr/1", MerchantName: "LOJA", City: "SAO PAULO", Amount: amount}
}

func static() brcode.Static {
	return brcode.Static{Key: "pix@bank.example", MerchantName: "LOJA", City: "SAO PAULO", Amount: amount, TxID: ourID[:25]}
}

func bill(t testing.TB, cents int64, due string) *payment.BoletoDetail {
	t.Helper()
	day, err := time.Parse(time.DateOnly, due)
	if err != nil {
		t.Fatal(err)
	}
	factor, err := boleto.Factor(day)
	if err != nil {
		t.Fatal(err)
	}
	barcode, err := boleto.Bill{Bank: "341", Amount: cents, Factor: factor, FreeField: strings.Repeat("1", 25)}.Barcode()
	if err != nil {
		t.Fatal(err)
	}
	line, err := boleto.Line(barcode)
	if err != nil {
		t.Fatal(err)
	}
	return &payment.BoletoDetail{Barcode: barcode, DigitableLine: line, DueDate: due, OurNumber: "109/0000123-4"}
}

// valid is a charge that fits its order.
func valid(t testing.TB, m payment.Method) processor.Charge {
	t.Helper()
	switch m {
	case payment.PIX:
		return processor.Charge{ProcessorID: "pay_1", PIX: &payment.PIXDetail{QRCode: encode(t, dynamic()), TxID: ourID, ExpiresAt: expires}}
	case payment.Boleto:
		return processor.Charge{Boleto: bill(t, amount, "2026-11-24")}
	default:
		return processor.Charge{Card: &payment.CardDetail{HostedURL: "https://bank.example/pay/1"}}
	}
}

// change is a row of a table: what a processor says otherwise, and where its fault is;
// "" if it is accepted.
type change struct {
	name  string
	apply func(*processor.Charge)
	field string
}

// receiver is whom the charges of the tests pay.
var receiver = processor.Profile{CodeHosts: []string{"pix.bank.example"}, CodeKey: "pix@bank.example"}

// testChanges runs a table of a method, with charges of receiver.
func testChanges(t *testing.T, m payment.Method, table []change) {
	t.Helper()
	t.Parallel()
	for _, row := range table {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			r, c := order(m), valid(t, m)
			if row.apply != nil {
				row.apply(&c)
			}
			err := processor.CheckCharge(&receiver, &r, &c)
			got, ok := errors.AsType[*processor.ChargeError](err)
			switch {
			case row.field == "" && err != nil:
				t.Errorf("refused: %v", err)
			case row.field != "" && (!ok || got.Field != row.field || !strings.Contains(err.Error(), row.field)):
				t.Errorf("answered %v, want a fault of %s", err, row.field)
			}
		})
	}
}

// A charge that differs from its order in anything that a payer sees is refused, and
// the error says where.
func TestPIXThatDiffers(t *testing.T) {
	pix := func(change func(p *payment.PIXDetail)) func(*processor.Charge) {
		return func(c *processor.Charge) { change(c.PIX) }
	}
	code := func(change func(d *brcode.Dynamic)) func(*processor.Charge) {
		return func(c *processor.Charge) {
			d := dynamic()
			change(&d)
			c.PIX.QRCode = encode(t, d)
		}
	}
	staticCode := func(change func(s *brcode.Static)) func(*processor.Charge) {
		return func(c *processor.Charge) {
			s := static()
			change(&s)
			c.PIX.QRCode = encode(t, s)
		}
	}
	accents := func(from, to string) func(*processor.Charge) { // lengths count characters
		return pix(func(p *payment.PIXDetail) {
			text := strings.NewReplacer("LOJA", "LÓJÃ", from, to).Replace(encode(t, dynamic()))
			text = text[:len(text)-4]
			p.QRCode = text + fmt.Sprintf("%04X", brcode.CRC16(text))
		})
	}
	testChanges(t, payment.PIX, []change{
		{"a name with accents", accents("", ""), ""},
		{"a name with accents, another amount", accents("5000.00", "5000.01"), "pix.qrcode"},
		{"a name with accents, another receiver", accents("pix.bank.example", "pix.punk.example"), "pix.qrcode"},
		{"dynamic", nil, ""},
		{"dynamic, the amount at its URL", code(func(d *brcode.Dynamic) { d.Amount = 0 }), ""},
		{"static", staticCode(func(*brcode.Static) {}), ""},
		{"txid of a static code", pix(func(p *payment.PIXDetail) { p.TxID = ourID[:25] }), ""},
		{"no txid", pix(func(p *payment.PIXDetail) { p.TxID = "" }), ""},
		{"a second later", pix(func(p *payment.PIXDetail) { p.ExpiresAt = expires.Add(time.Second) }), ""},
		{"one cent", code(func(d *brcode.Dynamic) { d.Amount = 1 }), "pix.qrcode"},
		{"one cent, static", staticCode(func(s *brcode.Static) { s.Amount = 1 }), "pix.qrcode"},
		{"any amount, static", staticCode(func(s *brcode.Static) { s.Amount = 0 }), "pix.qrcode"},
		{"txid of another order in a static code", staticCode(func(s *brcode.Static) { s.TxID = "00001abcdefghijklmnopqrsZ" }), "pix.qrcode"},
		{"static code without a txid", staticCode(func(s *brcode.Static) { s.TxID = "" }), "pix.qrcode"},
		{"another receiver's key in a static code", staticCode(func(s *brcode.Static) { s.Key = "pix@thief.example" }), "pix.qrcode"},
		{"the key in other letters", staticCode(func(s *brcode.Static) { s.Key = "PIX@bank.example" }), ""},
		{"the receiver's key", func(c *processor.Charge) { c.PIXKey = "pix@bank.example" }, ""},
		{"another receiver's key", func(c *processor.Charge) { c.PIXKey = "pix@thief.example" }, "pix"},
		{"the host in other letters", code(func(d *brcode.Dynamic) { d.URL = "Pix.Bank.example/qr/1" }), ""},
		{"another receiver", code(func(d *brcode.Dynamic) { d.URL = "pix.thief.example/qr/1" }), "pix.qrcode"},
		{"host with a suffix", code(func(d *brcode.Dynamic) { d.URL = "pix.bank.example.thief.example/qr/1" }), "pix.qrcode"},
		{"recurrence", code(func(d *brcode.Dynamic) { d.Recurrence = "pix.bank.example/rec/1" }), "pix.qrcode"},
		{"script", pix(func(p *payment.PIXDetail) { p.QRCode = "<script>alert(1)</script>" }), "pix.qrcode"},
		{"no code", pix(func(p *payment.PIXDetail) { p.QRCode = "" }), "pix.qrcode"},
		{"txid of another order", pix(func(p *payment.PIXDetail) { p.TxID = otherID }), "pix.txid"},
		{"never expires", pix(func(p *payment.PIXDetail) { p.ExpiresAt = time.Time{} }), "pix.expiresAt"},
		{"expires a day later", pix(func(p *payment.PIXDetail) { p.ExpiresAt = expires.Add(24 * time.Hour) }), "pix.expiresAt"},
		{"nothing", func(c *processor.Charge) { c.PIX = nil }, "pix"},
		{"also a boleto", func(c *processor.Charge) { c.Boleto = bill(t, amount, "2026-11-24") }, "boleto"},
		{"also a card", func(c *processor.Charge) { c.Card = &payment.CardDetail{} }, "card"},
		{"markup as the processor's id", func(c *processor.Charge) { c.ProcessorID = "<b>" }, "processorId"},
		{"long processor's id", func(c *processor.Charge) { c.ProcessorID = strings.Repeat("1", 65) }, "processorId"},
	})
}

// A static code of a processor whose receiver's key is not known may be anybody's.
func TestStaticCodeWithoutAKey(t *testing.T) {
	t.Parallel()
	r, c := order(payment.PIX), valid(t, payment.PIX)
	c.PIX.QRCode = encode(t, static())
	if err := processor.CheckCharge(&processor.Profile{}, &r, &c); err == nil {
		t.Error("a static code is shown")
	}
}

func TestBoletoThatDiffers(t *testing.T) {
	slip := func(change func(b *payment.BoletoDetail)) func(*processor.Charge) {
		return func(c *processor.Charge) { change(c.Boleto) }
	}
	testChanges(t, payment.Boleto, []change{
		{"boleto", nil, ""},
		{"boleto with a Pix", slip(func(b *payment.BoletoDetail) { b.PIXQRCode = encode(t, dynamic()) }), ""},
		{"one real", func(c *processor.Charge) { c.Boleto = bill(t, 100, "2026-11-24") }, "boleto.barcode"},
		{"any amount", func(c *processor.Charge) { c.Boleto = bill(t, 0, "2026-11-24") }, "boleto.barcode"},
		{"another day", func(c *processor.Charge) { c.Boleto = bill(t, amount, "2026-11-25") }, "boleto.dueDate"},
		{"another day in the bar code", func(c *processor.Charge) {
			c.Boleto = bill(t, amount, "2026-11-25")
			c.Boleto.DueDate = "2026-11-24"
		}, "boleto.barcode"},
		{"due date with a script", slip(func(b *payment.BoletoDetail) { b.DueDate = "<script>alert(1)</script>" }), "boleto.dueDate"},
		{"number with markup", slip(func(b *payment.BoletoDetail) { b.OurNumber = `"><img/src=x>` }), "boleto.ourNumber"},
		{"line of another bill", slip(func(b *payment.BoletoDetail) { b.DigitableLine = bill(t, 1, "2026-11-24").DigitableLine }), "boleto.digitableLine"},
		{"no bar code", slip(func(b *payment.BoletoDetail) { b.Barcode = "" }), "boleto.barcode"},
		{"script as its Pix", slip(func(b *payment.BoletoDetail) { b.PIXQRCode = "<script>…" }), "boleto.pixQrcode"},
		{"Pix of one cent", slip(func(b *payment.BoletoDetail) {
			d := dynamic()
			d.Amount = 1
			b.PIXQRCode = encode(t, d)
		}), "boleto.pixQrcode"},
	})
}

func TestCardThatDiffers(t *testing.T) {
	card := func(change func(d *payment.CardDetail)) func(*processor.Charge) {
		return func(c *processor.Charge) { change(c.Card) }
	}
	testChanges(t, payment.CreditCard, []change{
		{"card", nil, ""},
		{"card on the gateway's page", card(func(d *payment.CardDetail) { *d = payment.CardDetail{} }), ""},
		{"script as a page", card(func(d *payment.CardDetail) { d.HostedURL = "javascript:alert(1)" }), "card.checkoutUrl"},
		{"page in clear text", card(func(d *payment.CardDetail) { d.HostedURL = "http://bank.example/" }), "card.checkoutUrl"},
		{"page with user info", card(func(d *payment.CardDetail) { d.HostedURL = "https://bank.example@thief.example/" }), "card.checkoutUrl"},
		{"card number", card(func(d *payment.CardDetail) { d.Last4 = "4111111111111111" }), "card.last4"},
		{"markup as a brand", card(func(d *payment.CardDetail) { d.Brand = "<b>" }), "card.brand"},
		{"more instalments", card(func(d *payment.CardDetail) { d.Installments = 4 }), "card.installments"},
	})
}

// With any answer of a processor, an accepted charge asks for the order's amount under the order's
// id, by readers of codes and of bar codes.
func FuzzCheckCharge(f *testing.F) {
	slip := bill(f, amount, "2026-11-24")
	f.Add(encode(f, dynamic()), ourID, slip.Barcode, slip.DigitableLine, slip.DueDate, slip.OurNumber)
	f.Add(encode(f, static()), ourID[:25], slip.Barcode, slip.DigitableLine, "2026-11-25", "<b>")
	f.Add("", "", "", "", "", "")
	f.Fuzz(func(t *testing.T, qrcode, txid, barcode, line, due, number string) {
		r := order(payment.PIX)
		c := processor.Charge{PIX: &payment.PIXDetail{QRCode: qrcode, TxID: txid, ExpiresAt: expires}}
		profile := receiver
		if processor.CheckCharge(&profile, &r, &c) == nil {
			code, err := brcode.DecodeForeign(qrcode)
			payable := money.Cents(code.Amount()) == r.Amount || code.Key() == "" && code.Value("54") == ""
			ours := code.TxID() == "" && code.Key() == "" || code.TxID() == ourID[:25]
			to := code.Key() == "" || strings.EqualFold(code.Key(), receiver.CodeKey)
			if err != nil || !payable || !ours || !to || txid != "" && !strings.HasPrefix(ourID, txid) {
				t.Fatalf("accepted %q, txid %q", qrcode, txid)
			}
		}
		r = order(payment.Boleto)
		c = processor.Charge{Boleto: &payment.BoletoDetail{Barcode: barcode, DigitableLine: line, DueDate: due, OurNumber: number}}
		if processor.CheckCharge(&profile, &r, &c) == nil {
			read, bars, err := boleto.ParseLine(line)
			if err != nil || bars != barcode || money.Cents(read.Amount) != r.Amount || due != r.DueDate || strings.ContainsAny(number, `<>"'& `) {
				t.Fatalf("accepted %q, %q, due %q, number %q", barcode, line, due, number)
			}
		}
	})
}
