// Package bill prints a boleto on one A4 page: the payer's receipt, a line to
// cut along, and the slip that banks clear (ficha de compensação), with
// FEBRABAN's fields and proportions.
//
// The bytes of a page depend on the Bill only. Texts are in Portuguese, as on
// every boleto. Texts from merchants and payers are treated as hostile: reduced
// to the characters of the font and cut to their field.
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

// ErrBill: the bill cannot be printed. Every error that does not come from the
// writer wraps it.
var ErrBill = errors.New("bill: cannot be printed")

// Party is a payer, beneficiary or guarantor.
type Party struct {
	Name     string
	Document string   // CPF or CNPJ without punctuation; printed with it
	Address  []string // lines; two are printed
}

// Bill is the content of a boleto. The amount is that of the bar code, so that
// the two cannot differ.
type Bill struct {
	Barcode        string    // 44 digits
	OurNumber      string    // the bank's number of the bill
	DocumentNumber string    // the merchant's number of the bill
	Due            time.Time // a day; its time zone is ignored
	Issued         time.Time // a day, and the creation time of the file

	Bank         string // name, printed in place of a logo
	Agency       string // "agência/código do beneficiário"; may be empty
	Wallet       string // "carteira"; may be empty
	Beneficiary  Party
	Payer        Party
	Guarantor    Party    // "beneficiário final"; may be empty
	Statement    []string // description on the receipt; up to twelve lines
	Instructions []string // for the cashier; up to six lines

	Pix      string // BR Code that pays the same bill; may be empty
	Specimen bool   // marked SEM VALOR: it cannot be paid
}

// PDF writes the page. Errors: ErrBill for an invalid bar code, a due date that
// differs from it or a Pix too long for a QR code; else those of w.
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

// page is a bill while it is drawn. All lengths are in millimetres.
type page struct {
	Bill

	pdf    *fpdf.Fpdf
	line   string // the digitable line, as printed
	amount string // "1.234,56", or empty if the bar code has no amount
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
	p.pdf = newPDF(b)
	return p, nil
}

// checkDue compares a day with the factor of the bar code, which is optional.
func checkDue(parsed boleto.Bill, due time.Time) error {
	if parsed.Factor == 0 {
		return nil
	}
	factor, err := boleto.Factor(due)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBill, err)
	}
	if factor != parsed.Factor {
		return fmt.Errorf("%w: the bar code has another due date", ErrBill)
	}
	return nil
}

// newPDF is an empty page whose bytes depend on the bill only.
func newPDF(b Bill) *fpdf.Fpdf {
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
