// Package bill prints a boleto on one A4 page: the payer's receipt, a line to
// cut along, and the slip that banks clear (ficha de compensação), with the
// fields and the proportions that FEBRABAN gave it.
//
// What a page holds follows from the Bill alone, the same bytes each time.
// Texts are in Portuguese, as a boleto's are; those of others are taken for
// hostile: cut where they end their field, with what the font has.
package bill

import (
	"errors"
	"fmt"
	"io"
	"time"

	"codeberg.org/go-pdf/fpdf"

	"github.com/porteira/porteira/boleto"
	"github.com/porteira/porteira/internal/checkout/codes"
	"github.com/porteira/porteira/internal/money"
)

// ErrBill says that a bill cannot be printed as it is; each returned error that
// is not the writer's wraps it.
var ErrBill = errors.New("bill: cannot be printed")

// Party is who owes, or who is owed.
type Party struct {
	Name     string
	Document string   // CPF or CNPJ, bare; printed with its punctuation
	Address  []string // lines, of which two are printed
}

// Bill is what is printed. The amount is that of the bar code, so that the
// paper cannot contradict it.
type Bill struct {
	Barcode        string    // 44 digits
	OurNumber      string    // by which the bank knows the bill
	DocumentNumber string    // by which the merchant does
	Due            time.Time // a day; its zone is not looked at
	Issued         time.Time // a day, and the file's time of creation

	Bank         string // name, printed where its logo would be
	Agency       string // "agência/código do beneficiário"; may be empty
	Wallet       string // "carteira"; may be empty
	Beneficiary  Party
	Payer        Party
	Guarantor    Party    // "beneficiário final"; may be empty
	Statement    []string // what it is for, on the receipt; up to twelve lines
	Instructions []string // for the cashier; up to six lines

	Pix      string // BR Code that pays the same bill; may be empty
	Specimen bool   // marked SEM VALOR: cannot be paid in real life
}

// PDF writes the page. Errors: ErrBill for a bar code that is none, a due date
// that it contradicts or a Pix too long for a QR code; else those of w.
func PDF(w io.Writer, b Bill) error {
	page, err := prepare(b)
	if err != nil {
		return err
	}
	page.receipt()
	page.cut()
	page.slip()
	if err := page.pdf.Error(); err != nil {
		return fmt.Errorf("%w: %w", ErrBill, err)
	}
	if err := page.pdf.Output(w); err != nil {
		return fmt.Errorf("write a bill: %w", err)
	}
	return nil
}

// page is a bill while it is drawn. All measures are millimetres.
type page struct {
	Bill

	pdf    *fpdf.Fpdf
	line   string // the digitable line, as printed
	amount string // "1.234,56", empty where the bill leaves it open
	bars   []int
	pix    *codes.Modules // nil without a Pix
}

func prepare(b Bill) (*page, error) {
	parsed, err := boleto.ParseBarcode(b.Barcode)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBill, err)
	}
	if err := checkDue(parsed, b.Due); err != nil {
		return nil, err
	}
	line, err := boleto.Line(b.Barcode)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBill, err)
	}
	bars, err := codes.Bars(b.Barcode)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBill, err)
	}
	p := &page{Bill: b, line: boleto.FormatLine(line), bars: bars}
	if parsed.Amount > 0 {
		p.amount = money.Cents(parsed.Amount).BRL()
	}
	if b.Pix != "" {
		modules, err := codes.Encode(b.Pix)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrBill, err)
		}
		p.pix = &modules
	}
	p.pdf = sheet(b)
	return p, nil
}

// checkDue compares a day with the bar code's factor, which may have none.
func checkDue(parsed boleto.Bill, due time.Time) error {
	if parsed.Factor == 0 {
		return nil
	}
	factor, err := boleto.Factor(due)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBill, err)
	}
	if factor != parsed.Factor {
		return fmt.Errorf("%w: its bars are due on another day", ErrBill)
	}
	return nil
}

// sheet is an empty page whose bytes depend on nothing but the bill.
func sheet(b Bill) *fpdf.Fpdf {
	pdf := fpdf.New("P", "mm", "A4", "")
	pdf.SetCatalogSort(true)
	pdf.SetCreationDate(b.Issued.UTC())
	pdf.SetModificationDate(b.Issued.UTC())
	pdf.SetProducer("Porteira", true)
	pdf.SetTitle("Boleto "+legible(b.DocumentNumber), true)
	pdf.SetLang("pt-BR")
	pdf.SetAutoPageBreak(false, 0)
	pdf.SetMargins(0, 0, 0)
	pdf.SetCellMargin(0)
	pdf.AddPage()
	return pdf
}
