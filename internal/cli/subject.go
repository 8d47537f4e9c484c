package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/query"
)

// subjectView is what belongs to an order, a payment or a dispute, as commands show it. Amounts are
// cents.
type subjectView struct {
	Receipts []receiptView `json:"receipts,omitempty"` // payments of a pay-in
	Parts    []partView    `json:"parts,omitempty"`    // of a refund
	Sends    []sendView    `json:"sends"`              // of a payout; calls about the charge of a pay-in
	Related  []relatedView `json:"related,omitempty"`  // refunds and disputes of a pay-in
	Cases    []openedView  `json:"cases,omitempty"`
	Postings []postingView `json:"postings"`
}

// receiptView is a payment that a processor reported.
type receiptView struct {
	ID         string     `json:"id"`
	Account    string     `json:"account"`
	PaymentID  string     `json:"paymentId"` // the processor's
	EndToEndID string     `json:"endToEndId,omitempty"`
	Amount     int64      `json:"amount"`
	Applied    int64      `json:"applied"` // to the order; the rest is the merchant's unapplied money
	PaidAt     *time.Time `json:"paidAt,omitempty"`
	BookedAt   time.Time  `json:"bookedAt"`
}

// partView is the part of a refund that gives one payment back.
type partView struct {
	Number     int64      `json:"number"`
	Processor  string     `json:"processor"`
	PaymentID  string     `json:"paymentId"`
	ExternalID string     `json:"externalId"`
	EndToEndID string     `json:"endToEndId,omitempty"` // of the return
	Amount     int64      `json:"amount"`
	Step       string     `json:"step"`
	Outcome    string     `json:"outcome,omitempty"`
	Sends      int        `json:"sends"`
	Lookups    int        `json:"lookups,omitempty"`
	FirstAt    *time.Time `json:"firstAt,omitempty"` // the first send that may have arrived
	NextAt     *time.Time `json:"nextAt,omitempty"`
	ClaimedBy  string     `json:"claimedBy,omitempty"`
	Evidence   string     `json:"evidence,omitempty"`
}

// sendView is a send of a payout, or the calls about the charge of a pay-in at an account.
type sendView struct {
	Number    int64      `json:"number"`
	Processor string     `json:"processor"`
	Outcome   string     `json:"outcome"`
	Evidence  string     `json:"evidence"`
	CreatedAt time.Time  `json:"createdAt"`
	State     string     `json:"state,omitempty"`    // of a charge
	Attempts  int        `json:"attempts,omitempty"` // calls about a charge in this state
	NextAt    *time.Time `json:"nextAt,omitempty"`
	ClaimedBy string     `json:"claimedBy,omitempty"`
}

// relatedView is a refund or a dispute of a pay-in.
type relatedView struct {
	Type      string    `json:"type"`
	ID        string    `json:"id"`
	Status    string    `json:"status"`
	Amount    int64     `json:"amount"`
	CreatedAt time.Time `json:"createdAt"`
}

// openedView is a case about the subject.
type openedView struct {
	ID         string    `json:"id"`
	Kind       string    `json:"kind"`
	Amount     int64     `json:"amount,omitempty"`
	Resolution string    `json:"resolution,omitempty"` // "": it is open
	CreatedAt  time.Time `json:"createdAt"`
}

type postingView struct {
	Kind      string    `json:"kind"`
	Account   string    `json:"account"`
	Amount    int64     `json:"amount"`
	CreatedAt time.Time `json:"createdAt"`
}

// timeIfAny is a time in JSON that may be absent.
func timeIfAny(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// idIfAny is the text of an id that may be absent.
func idIfAny(id payment.ID) string {
	if id.IsZero() {
		return ""
	}
	return id.String()
}

func viewSubject(s *query.Subject) subjectView {
	v := subjectView{Sends: []sendView{}, Postings: []postingView{}}
	for i := range s.Receipts {
		p := &s.Receipts[i]
		v.Receipts = append(v.Receipts, receiptView{
			ID: p.ID.String(), Account: p.Processor, PaymentID: p.ExternalID, EndToEndID: p.EndToEndID, Amount: int64(p.Amount), Applied: int64(p.Applied),
			PaidAt: timeIfAny(p.PaidAt), BookedAt: p.CreatedAt,
		})
	}
	for i := range s.Parts {
		p := &s.Parts[i]
		v.Parts = append(v.Parts, partView{
			Number: p.Number, Processor: p.Processor, PaymentID: p.PaymentID, ExternalID: p.ExternalID, EndToEndID: p.EndToEndID, Amount: int64(p.Amount),
			Step: string(p.State), Outcome: string(p.Outcome), Sends: p.Sends, Lookups: p.Lookups,
			FirstAt: timeIfAny(p.FirstAt), NextAt: timeIfAny(p.NextAt), ClaimedBy: idIfAny(p.ClaimedBy), Evidence: p.Evidence,
		})
	}
	for i := range s.Sends {
		p := &s.Sends[i]
		v.Sends = append(v.Sends, sendView{Number: p.Number, Processor: p.Processor, Outcome: string(p.Outcome), Evidence: p.Evidence, CreatedAt: p.CreatedAt})
	}
	for i := range s.Charges {
		p := &s.Charges[i]
		v.Sends = append(v.Sends, sendView{
			Number: p.Number, Processor: p.Account, Outcome: p.Outcome, Evidence: p.Cause, CreatedAt: p.CreatedAt,
			State: string(p.State), Attempts: p.Attempts, NextAt: timeIfAny(p.NextAt), ClaimedBy: idIfAny(p.ClaimedBy),
		})
	}
	for i := range s.Refunds {
		p := &s.Refunds[i]
		v.Related = append(v.Related, relatedView{"refund", p.ID.String(), string(p.Status), int64(p.Amount), p.CreatedAt})
	}
	for i := range s.Disputes {
		p := &s.Disputes[i]
		v.Related = append(v.Related, relatedView{"dispute", p.ID.String(), string(p.Status), int64(p.Amount), p.CreatedAt})
	}
	for i := range s.Cases {
		p := &s.Cases[i]
		v.Cases = append(v.Cases, openedView{p.ID.String(), string(p.Kind), int64(p.Amount), string(p.Resolution), p.CreatedAt})
	}
	for i := range s.Postings {
		p := &s.Postings[i]
		v.Postings = append(v.Postings, postingView{string(p.Kind), string(p.Account), int64(p.Amount), p.CreatedAt})
	}
	return v
}

// print prints what there is.
func (v *subjectView) print(w io.Writer) {
	var rows [][]string
	for _, p := range v.Receipts {
		paid := p.BookedAt
		if p.PaidAt != nil {
			paid = *p.PaidAt
		}
		applied := ""
		if p.Applied != p.Amount {
			applied = money.Cents(p.Applied).English() + " of it to the order"
		}
		rows = append(rows, []string{"  " + stamp(paid), p.Account, money.Cents(p.Amount).English(), p.PaymentID, applied})
	}
	section(w, "Payments", rows)
	rows = nil
	for _, p := range v.Parts {
		sent := ""
		if p.FirstAt != nil {
			sent = ", the first at " + stamp(*p.FirstAt)
		}
		rows = append(rows, []string{
			fmt.Sprintf("  %d", p.Number), p.Processor, p.ExternalID, "of payment " + p.PaymentID, money.Cents(p.Amount).English(),
			strings.TrimSpace(p.Step + " " + p.Outcome), fmt.Sprintf("sends: %d%s", p.Sends, sent), p.Evidence,
		})
	}
	section(w, "Parts", rows)
	rows = nil
	for _, s := range v.Sends {
		calls := s.Outcome
		if s.State != "" {
			calls = strings.TrimSpace(fmt.Sprintf("%s, calls: %d %s", s.State, s.Attempts, s.Outcome))
		}
		rows = append(rows, []string{fmt.Sprintf("  %d", s.Number), stamp(s.CreatedAt), s.Processor, calls, s.Evidence})
	}
	section(w, "Sends", rows)
	rows = nil
	for _, p := range v.Related {
		rows = append(rows, []string{"  " + stamp(p.CreatedAt), p.Type, p.ID, p.Status, money.Cents(p.Amount).English()})
	}
	section(w, "Refunds and disputes", rows)
	rows = nil
	for _, p := range v.Cases {
		state := p.Resolution
		if state == "" {
			state = "open"
		}
		rows = append(rows, []string{"  " + stamp(p.CreatedAt), p.ID, p.Kind, state})
	}
	section(w, "Cases", rows)
	rows = nil
	for _, p := range v.Postings {
		rows = append(rows, []string{"  " + stamp(p.CreatedAt), p.Kind, p.Account, money.Cents(p.Amount).Decimal()})
	}
	section(w, "Postings", rows)
}

// orderOf is the order, payment or dispute of a subject in one form; nil if none was found.
func orderOf(s *query.Subject) *caseOrder {
	v := &caseOrder{Type: string(s.Kind), ID: s.ID.String()}
	switch {
	case s.Payin != nil:
		p := s.Payin
		v.ReferenceID, v.ExternalID, v.Processor, v.ProcessorID = p.ReferenceID, p.ExternalID, p.Processor, p.ProcessorID
		v.Status, v.Amount, v.PaidAmount, v.EndToEndID = string(p.Status), int64(p.Amount), int64(p.PaidAmount), p.EndToEndID
	case s.Payout != nil:
		p := s.Payout
		v.ReferenceID, v.ExternalID, v.Processor, v.ProcessorID = p.ReferenceID, p.ExternalID, p.Processor, p.ProcessorID
		v.Status, v.Step, v.Amount, v.EndToEndID = string(p.Status), string(p.Step), int64(p.Amount), p.EndToEndID
	case s.Receipt != nil:
		p := s.Receipt
		v.ExternalID, v.Processor, v.ProcessorID, v.Amount, v.EndToEndID = p.OrderID, p.Processor, p.ExternalID, int64(p.Amount), p.EndToEndID
	case s.Dispute != nil:
		p := s.Dispute
		v.ExternalID, v.Processor, v.ProcessorID, v.Status, v.Amount = p.ExternalID, p.Processor, p.PaymentID, string(p.Status), int64(p.Amount)
	case s.Refund != nil:
		p := s.Refund
		v.ReferenceID, v.ExternalID, v.PayinID, v.Status = p.ReferenceID, p.ExternalID, p.Payin.String(), string(p.Status)
		v.Amount, v.EndToEndID = int64(p.Amount), p.EndToEndID
	case s.Transfer != nil:
		p := s.Transfer
		v.ExternalID, v.Processor, v.Amount, v.EndToEndID = p.ExternalID, p.Processor, int64(p.Total), p.EndToEndID
	case s.Damaged != nil:
		p := s.Damaged
		v.ReferenceID, v.ExternalID, v.Processor, v.ProcessorID = p.ReferenceID, p.ExternalID, p.Processor, p.ProcessorID
		v.Status, v.Step, v.Amount = p.Status, p.Step, int64(p.Amount)
	}
	return v
}
