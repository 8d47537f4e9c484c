package checkout

import (
	"bytes"
	"net/http"
	"strconv"
	"time"

	"github.com/porteira/porteira/internal/checkout/bill"
	"github.com/porteira/porteira/internal/payment"
)

// bill answers with the bill as a PDF, as long as it is to be paid: a bill that
// can be had after it was paid is paid twice.
func (p *Pages) bill(v *visit) error {
	o := &v.payin
	if o.Method != payment.Boleto || o.Details.Boleto == nil {
		return errNotFound
	}
	if o.Status != payment.PayinPending || !o.ExpiresAt.After(p.clock.Now()) {
		return v.goTo(pagePath + v.token)
	}
	personal, err := p.reader.PayinPersonal(v.r.Context(), o.Merchant, o.ID)
	if err != nil {
		return err
	}
	printed, err := p.printed(v, &personal)
	if err != nil {
		return err
	}
	var body bytes.Buffer
	if err := bill.PDF(&body, printed); err != nil {
		return err
	}
	header := v.header()
	header.Set("Content-Type", "application/pdf")
	header.Set("Content-Disposition", `attachment; filename="boleto.pdf"`)
	header.Set("Content-Length", strconv.Itoa(body.Len()))
	v.status = http.StatusOK
	v.w.WriteHeader(http.StatusOK)
	_, _ = v.w.Write(body.Bytes()) // the caller may have gone
	return nil
}

func (p *Pages) printed(v *visit, personal *payment.PersonalData) (bill.Bill, error) {
	b, c := v.payin.Details.Boleto, customerOf(personal)
	due, err := time.Parse(time.DateOnly, b.DueDate)
	if err != nil {
		return bill.Bill{}, err
	}
	printed := bill.Bill{
		Barcode: b.Barcode, OurNumber: b.OurNumber, DocumentNumber: v.payin.ReferenceID, Due: due,
		Issued:      payment.InSaoPaulo(v.payin.CreatedAt),
		Beneficiary: bill.Party{Name: v.merchant.title(), Document: v.merchant.brand.Document},
		Payer:       bill.Party{Name: c.Name, Document: c.Document, Address: c.address()},
		Pix:         b.PIXQRCode, Specimen: p.sandboxProcessor != "" && v.payin.Processor == p.sandboxProcessor,
	}
	if d := v.payin.Details.Description; d != "" {
		printed.Statement = []string{d}
	}
	return printed, nil
}

// goTo sends the browser to another address of ours, which it asks by GET.
func (v *visit) goTo(path string) error {
	v.header().Set("Location", path)
	v.status = http.StatusSeeOther
	v.w.WriteHeader(http.StatusSeeOther)
	return nil
}
