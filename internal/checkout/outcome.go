package checkout

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/taxid"
)

// showOutcome fills in the final state of an order that needs no more payment.
func (p *Pages) showOutcome(req *request, data *view, status payment.PayinStatus, personal *payment.PersonalData) {
	o, l, name := &req.payin, req.lang, req.merchant.title()
	set := func(tone, key string, about ...string) {
		data.Tone, data.Heading, data.Lead = tone, l.text(key+".heading"), l.text(key+".lead", about...)
	}
	switch status {
	case payment.PayinPending: // of a closed merchant
		set("bad", "closed", name)
	case payment.PayinPaid:
		set("good", "paid", name)
		if o.Late {
			data.Note = l.text("paid.late")
		}
	case payment.PayinPartiallyRefunded:
		set("back", "refunded", name, o.RefundedAmount.BRL())
		data.Heading = l.text("refunded_part.heading")
	case payment.PayinRefunded:
		set("back", "refunded", name, o.RefundedAmount.BRL())
	case payment.PayinDisputed:
		set("wait", "disputed")
		if isPart(o) {
			set("wait", "disputed_part", o.DisputedAmount.BRL(), o.PaidAmount.BRL())
		}
	case payment.PayinChargeback:
		set("back", "chargeback")
		if isPart(o) {
			set("back", "chargeback_part", o.DisputedAmount.BRL(), o.PaidAmount.BRL())
		}
	case payment.PayinCanceled:
		set("bad", "canceled", name)
	case payment.PayinFailed:
		set("bad", "failed", failureText(l, o.Failure))
		if o.PaidAmount > 0 {
			data.Lead = l.text("failed.lead.part", failureText(l, o.Failure))
		}
	default:
		at := o.ExpiresAt // it may not be marked as expired yet
		if o.Status == payment.PayinExpired {
			at = o.ExpiredAt()
		}
		set("bad", "expired", l.formatTime(at))
	}
	if o.PaidAmount > 0 && o.PaidAmount < o.Amount && o.DisputedAmount == 0 { // the rest is not requested
		data.Note = l.text("underpaid.ended", o.PaidAmount.BRL(), o.Amount.BRL(), name)
	}
	if !o.PaidAt.IsZero() {
		data.Receipt = true
		data.Rows = receiptRows(req, personal)
	}
}

// isPart reports whether disputes are about a part of what was paid.
func isPart(o *payment.Payin) bool {
	return o.DisputedAmount > 0 && o.DisputedAmount < o.PaidAmount
}

// receiptRows are the lines of a receipt. The payer's data is masked: a receipt
// left in a printer reveals nothing.
func receiptRows(req *request, personal *payment.PersonalData) []rowView {
	o, l := &req.payin, req.lang
	c := customerOf(personal)
	var rows []rowView
	add := func(key, value string, code bool) {
		if value != "" {
			rows = append(rows, rowView{l.text(key), value, code})
		}
	}
	add("row.paid", o.PaidAmount.BRL(), false)
	if o.RefundedAmount > 0 {
		add("row.refunded", o.RefundedAmount.BRL(), false)
	}
	if isPart(o) {
		key := "row.disputed"
		if o.Status == payment.PayinChargeback {
			key = "row.charged_back"
		}
		add(key, o.DisputedAmount.BRL(), false)
	}
	add("row.paid_at", l.formatTime(o.PaidAt), false)
	add("row.method", methodText(l, o), false)
	add("row.receiver", req.merchant.title(), false)
	add("row.receiver_document", formatDocument(req.merchant.brand.Document), false)
	add("row.payer", join(", ", maskName(c.Name), maskDocument(c.Document)), false)
	add("row.order", o.ReferenceID, true)
	add("row.end_to_end", o.EndToEndID, true)
	add("row.external", o.ExternalID, true)
	return rows
}

func methodText(l *language, o *payment.Payin) string {
	if c := o.Details.Card; o.Method == payment.CreditCard && c != nil && c.Last4 != "" {
		brand := brandNames[c.Brand]
		if brand == "" {
			brand = c.Brand
		}
		return l.text("method.card", brand, c.Last4, strconv.Itoa(max(1, c.Installments)))
	}
	if o.Method == payment.Boleto && o.EndToEndID != "" {
		return l.text("method.BOLETO") + ", " + l.text("method.PIX")
	}
	return l.text("method." + string(o.Method))
}

// failureText is the reason in the payer's words; the processor's message is
// for the merchant only.
func failureText(l *language, f *payment.Failure) string {
	if f == nil {
		return l.text("failure.other")
	}
	if text, ok := l.words["failure."+f.Code]; ok {
		return text
	}
	return l.text("failure.other")
}

// maskName shows the first letter of each word of a name.
func maskName(name string) string {
	words := strings.Fields(name)
	for i, word := range words {
		r, _ := utf8.DecodeRuneInString(word)
		words[i] = string(r) + "•••"
	}
	const shown = 4
	return strings.Join(words[:min(len(words), shown)], " ")
}

// maskDocument shows the middle of a document. It does not verify the check
// digits.
func maskDocument(s string) string {
	switch len(s) {
	case 11:
		return "***." + s[3:6] + "." + s[6:9] + "-**"
	case 14:
		return "**." + s[2:5] + "." + s[5:8] + "/****-**"
	}
	return ""
}

// formatDocument adds the punctuation of a CPF or CNPJ.
func formatDocument(s string) string {
	if id, err := taxid.Parse(s); err == nil {
		return id.Formatted()
	}
	return s
}
