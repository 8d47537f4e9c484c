package bill_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/boleto"
	"github.com/porteira/porteira/internal/checkout/bill"
	"github.com/porteira/porteira/internal/checkout/checkouttest"
)

const pix = "00020101021226770014BR.GOV.BCB.PIX2555pix.example.com/qr/93598be0-1bd0-4997-8318-81776a1d8a99" +
	"520400005303986540510.005802BR5907EMPRESA6009SAO PAULO62070503***6304EEAB"

// sample is a bill with all fields set.
func sample() bill.Bill {
	return bill.Bill{
		Barcode: "00191164600000123450000001234567000000001017", // R$ 123.45, 2026-11-30
		Due:     time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC), Issued: time.Date(2026, 11, 21, 15, 4, 5, 0, time.UTC),
		Bank: "Banco da Praça S.A.", Agency: "1234-5 / 67890-1", Wallet: "17",
		OurNumber: "123456700000000", DocumentNumber: "PEDIDO-42",
		Beneficiary:  bill.Party{Name: "Padaria Pão & Açúcar Ltda.", Document: "11222333000181", Address: []string{"Rua São João, 7, Centro", "Belém - PA - 66010-000"}},
		Payer:        bill.Party{Name: "João Ninguém da Conceição", Document: "52998224725", Address: []string{"Avenida Paulista, 1000, Bela Vista", "São Paulo - SP - 01310-100"}},
		Guarantor:    bill.Party{Name: "Moinho Três Irmãos", Document: "12ABC34501DE35"},
		Statement:    []string{"2 x Pão de queijo mineiro - R$ 24,00", "1 x Café coado - R$ 99,45"},
		Instructions: []string{"Não receber após 30 dias do vencimento.", "Dúvidas: fale com a padaria."},
		Pix:          pix, Specimen: true,
	}
}

func printed(t testing.TB, b bill.Bill) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := bill.PDF(&out, b); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Another program reads the codes from the printed page, at the resolution of a
// poor scanner and of a good one.
func TestCodesAreReadFromPaper(t *testing.T) {
	t.Parallel()
	b := sample()
	paper := printed(t, b)
	for _, dotsPerInch := range []string{"200", "300"} {
		symbols := checkouttest.Symbols(t, checkouttest.Picture(t, paper, dotsPerInch))
		for _, want := range []checkouttest.Symbol{{Kind: "QR-Code", Text: pix}, {Kind: "I2/5", Text: b.Barcode}} {
			if !slices.Contains(symbols, want) {
				t.Errorf("%s dpi: read %v, without %v", dotsPerInch, symbols, want)
			}
		}
	}
	b.Pix = ""
	if symbols := checkouttest.Symbols(t, checkouttest.Picture(t, printed(t, b), "200")); len(symbols) != 1 {
		t.Errorf("without a Pix: read %v", symbols)
	}
}

func TestPaperSaysWhatTheBillDoes(t *testing.T) {
	t.Parallel()
	words := strings.Join(strings.Fields(checkouttest.Words(t, printed(t, sample()))), " ")
	for text, times := range map[string]int{
		"00190.00009 01234.567004 00000.010173 1 16460000012345": 2,
		"001-9":      2,
		"R$ 123,45":  2,
		"30/11/2026": 2,
		"Padaria Pão & Açúcar Ltda. - CNPJ 11.222.333/0001-81": 2,
		"João Ninguém da Conceição - CPF 529.982.247-25":       2,
		"Moinho Três Irmãos - CNPJ 12.ABC.345/01DE-35":         1,
		"SEM VALOR":                  2,
		"Recibo do pagador":          1,
		"Ficha de Compensação":       1,
		"2 x Pão de queijo mineiro":  1,
		"Não receber após 30 dias":   1,
		"São Paulo - SP - 01310-100": 1,
	} {
		if got := strings.Count(words, text); got != times {
			t.Errorf("%q: %d times, want %d, in %s", text, got, times, words)
		}
	}
}

func TestSameBillSameBytes(t *testing.T) {
	t.Parallel()
	first := printed(t, sample())
	for range 5 {
		if !bytes.Equal(printed(t, sample()), first) {
			t.Fatal("two PDFs of the same bill differ")
		}
	}
	later := sample()
	later.Issued = later.Issued.Add(24 * time.Hour)
	if bytes.Equal(printed(t, later), first) {
		t.Error("another day of issue does not change the PDF")
	}
}

// Hostile texts stay in their fields: they reach no code, and add no page.
func TestHostileTextsStayInTheirFields(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		strings.Repeat("W", 100_000), strings.Repeat("palavra ", 10_000), "\x00\r\n\t\x1b[31m\u202e\u200b", "\xff\xfe",
		"日本語 नमस्ते 🧾 Łódź ﷽", `<script>alert(1)</script>`, ") Tj ET Q (", "e\u0301" + strings.Repeat("\u0301", 500),
	} {
		b := sample()
		party := bill.Party{Name: text, Document: text, Address: []string{text, text, text}}
		b.Bank, b.Agency, b.Wallet, b.OurNumber, b.DocumentNumber = text, text, text, text, text
		b.Beneficiary, b.Payer, b.Guarantor = party, party, party
		b.Statement, b.Instructions = slices.Repeat([]string{text}, 100), slices.Repeat([]string{text}, 100)
		symbols := checkouttest.Symbols(t, checkouttest.Picture(t, printed(t, b), "200"))
		for _, want := range []checkouttest.Symbol{{Kind: "QR-Code", Text: pix}, {Kind: "I2/5", Text: b.Barcode}} {
			if !slices.Contains(symbols, want) {
				t.Errorf("%.20q: read %v, without %v", text, symbols, want)
			}
		}
	}
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*bill.Bill){
		"no bar code":          func(b *bill.Bill) { b.Barcode = "" },
		"a wrong digit":        func(b *bill.Bill) { b.Barcode = "1" + b.Barcode[1:] },
		"another due date":     func(b *bill.Bill) { b.Due = b.Due.AddDate(0, 0, 1) },
		"no due date":          func(b *bill.Bill) { b.Due = time.Time{} },
		"a Pix of 3,000 bytes": func(b *bill.Bill) { b.Pix = strings.Repeat("a", 3000) },
		"a collection slip":    func(b *bill.Bill) { b.Barcode = "8" + b.Barcode[1:] },
	} {
		b := sample()
		change(&b)
		if err := bill.PDF(io.Discard, b); !errors.Is(err, bill.ErrBill) {
			t.Errorf("%s: %v, want ErrBill", name, err)
		}
	}
	if err := bill.PDF(broken{}, sample()); !errors.Is(err, io.ErrClosedPipe) || errors.Is(err, bill.ErrBill) {
		t.Errorf("failed writer: %v", err)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// The bar code may have no amount and no due date.
func TestOpenAmountAndDay(t *testing.T) {
	t.Parallel()
	b := sample()
	open, err := boleto.Bill{Bank: "748", FreeField: strings.Repeat("7", 25)}.Barcode()
	if err != nil {
		t.Fatal(err)
	}
	b.Barcode, b.Due = open, time.Time{}
	words := checkouttest.Words(t, printed(t, b))
	if !strings.Contains(words, "748-X") || strings.Contains(words, "123,45") || strings.Contains(words, "0001") && strings.Contains(words, "01/01/0001") {
		t.Error(words)
	}
}

// Any text in a bill gives one page, and the same bytes again.
func FuzzPDF(f *testing.F) {
	f.Add("Padaria Pão & Mel", "11222333000181", "Não receber após o vencimento.")
	f.Add("\xff(\\)", "", strings.Repeat("W", 300))
	f.Fuzz(func(t *testing.T, name, number, note string) {
		b := sample()
		b.Beneficiary, b.Payer = bill.Party{Name: name, Document: number, Address: []string{note}}, bill.Party{Name: note, Document: name}
		b.Bank, b.Agency, b.DocumentNumber, b.OurNumber = name, number, note, number
		b.Statement, b.Instructions = []string{name, note}, []string{note, number}
		paper := printed(t, b)
		if pages := bytes.Count(paper, []byte("/Type /Page\n")); pages != 1 {
			t.Fatalf("%d pages", pages)
		}
		if !bytes.Equal(printed(t, b), paper) {
			t.Fatal("a second PDF differs")
		}
	})
}

func BenchmarkPDF(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if err := bill.PDF(io.Discard, sample()); err != nil {
			b.Fatal(err)
		}
	}
}
