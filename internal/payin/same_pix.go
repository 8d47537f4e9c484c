package payin

import (
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// An endToEndId names one Pix, which one account receives. If two accounts that an order was tried
// at report it, they show the same money, as two contracts of one account at a bank do. The Pix
// pays the order once. The report of the other account is booked on the platform's accounts, like
// money that names no order, so that each clearing account equals its processor's balance.

// findSamePix notes which new receipts are of a Pix that another account has, and reports whether
// there are any.
func (v *Receive) findSamePix(l *store.Loaded, p *payment.Payin) bool {
	v.bookedAt = nil
	for _, booked := range l.ReceiptsOf(p.Merchant, p.ID) {
		for _, r := range v.receipts {
			if r.EndToEndID != "" && r.EndToEndID == booked.EndToEndID && r.Processor != booked.Processor && l.Inserted(r.ID) {
				if v.bookedAt == nil {
					v.bookedAt = map[string]string{}
				}
				v.bookedAt[r.EndToEndID] = booked.Processor
			}
		}
	}
	return v.bookedAt != nil
}

// samePix is the operation that books the receipts noted by findSamePix on the platform's accounts.
// After it v has no new ones of them.
func (v *Receive) samePix() *Receive {
	of := &Receive{processor: v.processor, externalID: v.externalID, bookedAt: v.bookedAt, report: processor.ChargeReport{Lookup: processor.Found}}
	for i, r := range v.receipts {
		if v.bookedAt[r.EndToEndID] != "" {
			moved := *r
			moved.Merchant = payment.ID{}
			of.receipts, of.report.Payments = append(of.receipts, &moved), append(of.report.Payments, v.report.Payments[i])
		}
	}
	return of
}
