package checkout

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/taxid"
)

// showEnd fills in what became of an order that needs no payment any more.
func (p *Pages) showEnd(v *visit, shown *view, status payment.PayinStatus, personal *payment.PersonalData) {
	o, l, name := &v.payin, v.lang, v.merchant.title()
	say := func(tone, key string, about ...string) {
		shown.Tone, shown.Heading, shown.Lead = tone, l.say(key+".heading"), l.say(key+".lead", about...)
	}
	switch status {
	case payment.PayinPaid:
		say("good", "paid", name)
		if o.Late {
			shown.Note = l.say("paid.late")
		}
	case payment.PayinPartiallyRefunded:
		say("back", "refunded", name, o.RefundedAmount.BRL())
		shown.Heading = l.say("refunded_part.heading")
	case payment.PayinRefunded:
		say("back", "refunded", name, o.RefundedAmount.BRL())
	case payment.PayinDisputed:
		say("wait", "disputed")
	case payment.PayinChargeback:
		say("back", "chargeback")
	case payment.PayinCanceled:
		say("bad", "canceled", name)
	case payment.PayinFailed:
		say("bad", "failed", failureText(l, o.Failure))
		if o.PaidAmount > 0 {
			shown.Lead = l.say("failed.lead.part", failureText(l, o.Failure))
		}
	default:
		say("bad", "expired", shown.Expires)
	}
	if o.PaidAmount > 0 && o.PaidAmount < o.Amount { // nobody is to pay the rest
		shown.Note = l.say("underpaid.ended", o.PaidAmount.BRL(), o.Amount.BRL(), name)
	}
	if !o.PaidAt.IsZero() {
		shown.Receipt = true
		shown.Rows = receiptRows(v, personal)
	}
}

// receiptRows are the lines of a receipt. The payer is masked: who finds it in
// a printer learns nothing.
func receiptRows(v *visit, personal *payment.PersonalData) []rowView {
	o, l := &v.payin, v.lang
	c := customerOf(personal)
	var rows []rowView
	add := func(key, value string, code bool) {
		if value != "" {
			rows = append(rows, rowView{l.say(key), value, code})
		}
	}
	add("row.paid", o.PaidAmount.BRL(), false)
	if o.RefundedAmount > 0 {
		add("row.refunded", o.RefundedAmount.BRL(), false)
	}
	add("row.paid_at", l.at(o.PaidAt), false)
	add("row.method", methodText(l, o), false)
	add("row.receiver", v.merchant.title(), false)
	add("row.receiver_document", formatDocument(v.merchant.brand.Document), false)
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
		return l.say("method.card", brand, c.Last4, strconv.Itoa(max(1, c.Installments)))
	}
	if o.Method == payment.Boleto && o.EndToEndID != "" {
		return l.say("method.BOLETO") + ", " + l.say("method.PIX")
	}
	return l.say("method." + string(o.Method))
}

// failureText says why in the payer's words; the processor's own are for the
// merchant.
func failureText(l *language, f *payment.Failure) string {
	if f == nil {
		return l.say("failure.other")
	}
	if text, ok := l.words["failure."+f.Code]; ok {
		return text
	}
	return l.say("failure.other")
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

// maskDocument shows the middle of a document, whether or not its digits check.
func maskDocument(s string) string {
	switch len(s) {
	case 11:
		return "***." + s[3:6] + "." + s[6:9] + "-**"
	case 14:
		return "**." + s[2:5] + "." + s[5:8] + "/****-**"
	}
	return ""
}

// formatDocument writes a document with its punctuation.
func formatDocument(s string) string {
	if id, err := taxid.Parse(s); err == nil {
		return id.Formatted()
	}
	return s
}
