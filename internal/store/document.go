package store

import (
	"time"

	"github.com/porteira/porteira/internal/jsonwrite"
	"github.com/porteira/porteira/internal/payment"
)

// Columns with a JSON document: their formats. Field names are stored, so they never change.

type failureDocument struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

type pixDocument struct {
	QRCode    string    `json:"qrcode"`
	TxID      string    `json:"txid"`
	ExpiresAt time.Time `json:"expiresAt"`
}

type boletoDocument struct {
	Barcode       string `json:"barcode"`
	DigitableLine string `json:"digitableLine"`
	DueDate       string `json:"dueDate"`
	OurNumber     string `json:"ourNumber"`
	PIXQRCode     string `json:"pixQrcode,omitempty"`
}

type cardDocument struct {
	HostedURL    string `json:"hostedUrl,omitempty"`
	Brand        string `json:"brand,omitempty"`
	Last4        string `json:"last4,omitempty"`
	Installments int    `json:"installments,omitempty"`
}

// rangeDocument is the terms of a range of instalments.
type rangeDocument struct {
	From           int   `json:"from"`
	To             int   `json:"to"`
	BasisPoints    int64 `json:"basisPoints,omitzero"`
	Fixed          cents `json:"fixed,omitzero"`
	Minimum        cents `json:"minimum,omitzero"`
	Maximum        cents `json:"maximum,omitzero"`
	Days           int   `json:"days,omitzero"`
	Business       bool  `json:"business,omitzero"`
	PerInstallment bool  `json:"perInstallment,omitzero"`
	RefundsFee     bool  `json:"refundsFee,omitzero"`
}

type detailsDocument struct {
	PIX            *pixDocument      `json:"pix,omitempty"`
	Boleto         *boletoDocument   `json:"boleto,omitempty"`
	Card           *cardDocument     `json:"card,omitempty"`
	Origin         string            `json:"origin,omitempty"`
	Description    string            `json:"description,omitempty"`
	Metadata       map[string]string `json:"metadata,omitempty"`
	ReturnURL      string            `json:"returnUrl,omitempty"`
	DueDate        string            `json:"dueDate,omitempty"`
	Installments   int               `json:"installments,omitempty"`
	CardAttempts   int               `json:"cardAttempts,omitzero"`
	IdempotencyKey string            `json:"idempotencyKey,omitempty"`
	Prices         []rangeDocument   `json:"prices,omitempty"`
}

type beneficiaryDocument struct {
	Name      string `json:"name"`
	Document  string `json:"document"`
	PIXKey    string `json:"pixKey"`
	NormalKey string `json:"normalKey,omitempty"`
}

// detailsText is the JSON of a detailsDocument. Rare fields are marshaled by reflection.
func detailsText(d *payment.PayinDetails) string {
	o := jsonwrite.New(512)
	if d.PIX != nil {
		o.Begin("pix")
		o.Text("qrcode", d.PIX.QRCode)
		o.Text("txid", d.PIX.TxID)
		o.Text("expiresAt", d.PIX.ExpiresAt.Format(time.RFC3339Nano))
		o.End()
	}
	if d.Boleto != nil {
		o.Raw("boleto", []byte(jsonText((*boletoDocument)(d.Boleto))))
	}
	if d.Card != nil {
		o.Raw("card", []byte(jsonText((*cardDocument)(d.Card))))
	}
	o.TextIfAny("origin", d.Origin)
	o.TextIfAny("description", d.Description)
	if len(d.Metadata) > 0 {
		o.Raw("metadata", []byte(jsonText(d.Metadata)))
	}
	o.TextIfAny("returnUrl", d.ReturnURL)
	o.TextIfAny("dueDate", d.DueDate)
	o.IntIfAny("installments", int64(d.Installments))
	o.IntIfAny("cardAttempts", int64(d.CardAttempts))
	o.TextIfAny("idempotencyKey", d.IdempotencyKey)
	if len(d.Prices) > 0 {
		o.Raw("prices", []byte(jsonText(rangeDocuments(d.Prices))))
	}
	return string(o.Bytes())
}

func (d *detailsDocument) details() payment.PayinDetails {
	return payment.PayinDetails{
		PIX: (*payment.PIXDetail)(d.PIX), Boleto: (*payment.BoletoDetail)(d.Boleto), Card: (*payment.CardDetail)(d.Card),
		Origin: d.Origin, Description: d.Description, Metadata: d.Metadata, ReturnURL: d.ReturnURL, DueDate: d.DueDate,
		Installments: d.Installments, CardAttempts: d.CardAttempts, IdempotencyKey: d.IdempotencyKey,
		Prices: ranges(d.Prices),
	}
}

func rangeDocuments(list []payment.Range) []rangeDocument {
	if list == nil {
		return nil
	}
	documents := make([]rangeDocument, len(list))
	for i := range list {
		r := &list[i]
		documents[i] = rangeDocument{
			r.From, r.To, r.BasisPoints, r.Fixed, r.Minimum, r.Maximum, r.Days, r.Business, r.PerInstallment, r.RefundsFee,
		}
	}
	return documents
}

func ranges(list []rangeDocument) []payment.Range {
	if list == nil {
		return nil
	}
	ranges := make([]payment.Range, len(list))
	for i := range list {
		r := &list[i]
		ranges[i] = payment.Range{From: r.From, To: r.To, Terms: payment.Terms{
			BasisPoints: r.BasisPoints, Fixed: r.Fixed, Minimum: r.Minimum, Maximum: r.Maximum,
			Days: r.Days, Business: r.Business, PerInstallment: r.PerInstallment, RefundsFee: r.RefundsFee,
		}}
	}
	return ranges
}

type detailsDest struct{ to *payment.PayinDetails }

// Scan implements [sql.Scanner].
func (d detailsDest) Scan(src any) error {
	var v detailsDocument
	if err := (jsonDest[detailsDocument]{&v}).Scan(src); err != nil {
		return err
	}
	*d.to = v.details()
	return nil
}

// detailsColumn keeps the details of a pay-in as a JSON document.
func detailsColumn[T any](name string, of func(*T) *payment.PayinDetails) column[T] {
	c := jsonColumn(name, of)
	c.value = func(v *T) any { return detailsText(of(v)) }
	c.dest = func(v *T) any { return detailsDest{of(v)} }
	return c
}

// takeDocument is the money taken of a receivable.
type takeDocument struct {
	Receivable payment.ID `json:"receivable"`
	Amount     cents      `json:"amount"`
}

type takesDest struct{ to *payment.Takes }

// Scan implements [sql.Scanner].
func (d takesDest) Scan(src any) error {
	var list []takeDocument
	if err := (jsonDest[[]takeDocument]{&list}).Scan(src); err != nil {
		return err
	}
	*d.to = nil
	for _, t := range list {
		*d.to = append(*d.to, payment.Take(t))
	}
	return nil
}

// takesColumn keeps the money taken of receivables as a JSON document; the empty text is
// nothing.
func takesColumn[T any](name string, of func(*T) *payment.Takes) column[T] {
	c := jsonColumn(name, of)
	c.value = func(v *T) any {
		var list []takeDocument
		for _, t := range *of(v) {
			list = append(list, takeDocument(t))
		}
		if list == nil {
			return ""
		}
		return jsonText(list)
	}
	c.dest = func(v *T) any { return takesDest{of(v)} }
	return c
}

type failureDest struct{ to **payment.Failure }

// Scan implements [sql.Scanner].
func (d failureDest) Scan(src any) error {
	var v *failureDocument
	if err := (jsonDest[*failureDocument]{&v}).Scan(src); err != nil {
		return err
	}
	*d.to = (*payment.Failure)(v)
	return nil
}

// failureColumn keeps an optional failure as a JSON document.
func failureColumn[T any](name string, of func(*T) **payment.Failure) column[T] {
	c := jsonColumn(name, of)
	c.value = func(v *T) any {
		if *of(v) == nil {
			return ""
		}
		return jsonText((*failureDocument)(*of(v)))
	}
	c.dest = func(v *T) any { return failureDest{of(v)} }
	return c
}
