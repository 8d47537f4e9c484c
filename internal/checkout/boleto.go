package checkout

import (
	"bytes"
	"net/http"
	"strconv"
	"time"

	"github.com/porteira/porteira/internal/checkout/bill"
	"github.com/porteira/porteira/internal/payment"
)

// boletoPDF serves the boleto as a PDF while it can be paid. A paid boleto is
// not served: it could be paid twice.
func (p *Pages) boletoPDF(req *request) error {
	o := &req.payin
	if o.Method != payment.Boleto || o.Details.Boleto == nil {
		return errNotFound
	}
	if !p.payable(req) {
		return req.redirect(pagePath + req.token)
	}
	personal, err := p.reader.PayinPersonal(req.r.Context(), o.Merchant, o.ID)
	if err != nil {
		return err
	}
	printable, err := p.printable(req, &personal)
	if err != nil {
		return err
	}
	var body bytes.Buffer
	if err := bill.PDF(&body, printable); err != nil {
		return err
	}
	header := req.header()
	header.Set("Content-Type", "application/pdf")
	header.Set("Content-Disposition", `attachment; filename="boleto.pdf"`)
	header.Set("Content-Length", strconv.Itoa(body.Len()))
	req.status = http.StatusOK
	req.w.WriteHeader(http.StatusOK)
	_, _ = req.w.Write(body.Bytes()) // the client may have disconnected
	return nil
}

func (p *Pages) printable(req *request, personal *payment.PersonalData) (bill.Bill, error) {
	b, c := req.payin.Details.Boleto, customerOf(personal)
	due, err := time.Parse(time.DateOnly, b.DueDate)
	if err != nil {
		return bill.Bill{}, err
	}
	printable := bill.Bill{
		Barcode: b.Barcode, OurNumber: b.OurNumber, DocumentNumber: req.payin.ReferenceID, Due: due,
		Issued:      payment.InSaoPaulo(req.payin.CreatedAt),
		Beneficiary: bill.Party{Name: req.merchant.title(), Document: req.merchant.brand.Document},
		Payer:       bill.Party{Name: c.Name, Document: c.Document, Address: c.address()},
		Pix:         b.PIXQRCode, Specimen: p.sandboxProcessor != "" && req.payin.Processor == p.sandboxProcessor,
	}
	if d := req.payin.Details.Description; d != "" {
		printable.Statement = []string{d}
	}
	return printable, nil
}

// redirect answers 303 See Other with a path of this gateway.
func (req *request) redirect(path string) error {
	req.header().Set("Location", path)
	req.status = http.StatusSeeOther
	req.w.WriteHeader(http.StatusSeeOther)
	return nil
}
