package query

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// Movement is money at a processor that a case is about, as the processor's panel and its statement
// show it. Personal data is masked.
type Movement struct {
	What        string // payment, charge, transfer, refund or entry
	Account     string
	ExternalID  string // ours
	ProcessorID string
	EndToEndID  string
	Amount      money.Cents
	At          time.Time // of the movement at the processor, else when it was booked here; zero if unknown
	Party       string    // the payer, or the receiver
	PIXKey      string    // of the receiver
}

// Compare lists the movements that a person compares to decide a case. of is the case's subject, nil if
// it has none.
func Compare(ctx context.Context, s *store.Store, c *store.Case, of *Subject) (list []Movement, err error) {
	if id, err := payment.ParseID(c.Params["receipt"]); err == nil { // that the unapplied money is of
		r, err := s.Receipt(ctx, c.Merchant, id)
		if err == nil {
			return []Movement{paymentOf(ctx, s, &r)}, nil
		}
		if !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
	}
	switch {
	case of == nil:
		return entryOf(c), nil
	case of.Payin != nil:
		return movementsOfPayin(ctx, s, of), nil
	case of.Payout != nil:
		return []Movement{transferOf(of.Payout)}, nil
	case of.Receipt != nil:
		return []Movement{paymentOf(ctx, s, of.Receipt)}, nil
	case of.Refund != nil:
		return movementsOfRefund(ctx, s, of)
	case of.Dispute != nil:
		return movementsOfDispute(ctx, s, of.Dispute)
	case of.Transfer != nil:
		return movementsOfTransfer(ctx, s, c, of.Transfer)
	default:
		return entryOf(c), nil
	}
}

// entryOf is what the case itself names.
func entryOf(c *store.Case) []Movement {
	v := Movement{
		What: "entry", Account: c.Params["processor"], ExternalID: c.Params["externalId"], EndToEndID: c.Params[store.ParamEndToEndID],
		Amount: c.Amount, Party: c.Params[store.ParamReceiver], PIXKey: c.Params[store.ParamPIXKey], At: sentAt(c.Params),
	}
	if v.Account == "" || v.ExternalID == "" && v.EndToEndID == "" {
		return nil
	}
	return []Movement{v}
}

// sentAt is when a listed transfer was sent.
func sentAt(p store.Params) time.Time {
	t, err := time.Parse(time.RFC3339, p[store.ParamSentAt])
	if err != nil {
		return time.Time{}
	}
	return t
}

// paymentOf is a payment with its payer, whom the order names.
func paymentOf(ctx context.Context, s *store.Store, r *payment.Receipt) Movement {
	v := Movement{
		What: "payment", Account: r.Processor, ExternalID: r.OrderID, ProcessorID: r.ExternalID, EndToEndID: r.EndToEndID, Amount: r.Amount, At: r.PaidAt,
	}
	if v.At.IsZero() {
		v.At = r.CreatedAt
	}
	if !r.Payin.IsZero() {
		v.Party = payerOf(ctx, s, r.Merchant, r.Payin)
	}
	return v
}

// payerOf is the customer of a pay-in, masked; "" if the order names none, or it cannot be opened.
func payerOf(ctx context.Context, s *store.Store, merchant, payin payment.ID) string {
	personal, err := s.PayinPersonal(ctx, merchant, payin)
	if err != nil {
		return ""
	}
	return CustomerLine(MaskCustomer(personal.Customer))
}

// CustomerLine is a customer's name, document and e-mail address in one line.
func CustomerLine(customer []byte) string {
	var c struct {
		Name     string `json:"name"`
		Document string `json:"document"`
		Email    string `json:"email"`
	}
	if len(customer) == 0 || json.Unmarshal(customer, &c) != nil {
		return ""
	}
	return strings.Join(strings.Fields(c.Name+" "+c.Document+" "+c.Email), " ")
}

func movementsOfPayin(ctx context.Context, s *store.Store, of *Subject) (list []Movement) {
	for i := range of.Receipts {
		list = append(list, paymentOf(ctx, s, &of.Receipts[i]))
	}
	if p := of.Payin; len(list) == 0 {
		list = append(list, Movement{
			What: "charge", Account: p.Processor, ExternalID: p.ExternalID, ProcessorID: p.ProcessorID, Amount: p.Amount, At: p.CreatedAt,
			Party: payerOf(ctx, s, p.Merchant, p.ID),
		})
	}
	return list
}

// transferOf is the transfer of a payout.
func transferOf(p *payment.Payout) Movement {
	masked := MaskPayout(*p)
	return Movement{
		What: "transfer", Account: p.Processor, ExternalID: p.ExternalID, ProcessorID: p.ProcessorID, EndToEndID: p.EndToEndID, Amount: p.Amount, At: p.SentAt,
		Party: strings.TrimSpace(masked.Beneficiary.Name + " " + masked.Beneficiary.Document), PIXKey: masked.Beneficiary.PIXKey,
	}
}

// movementsOfRefund are the parts of a refund, each with the payment that it gives back.
func movementsOfRefund(ctx context.Context, s *store.Store, of *Subject) (list []Movement, err error) {
	for i := range of.Parts {
		p := &of.Parts[i]
		list = append(list, Movement{
			What: "refund", Account: p.Processor, ExternalID: p.ExternalID, ProcessorID: p.ProcessorID, EndToEndID: p.EndToEndID, Amount: p.Amount, At: p.FirstAt,
		})
		r, err := s.Receipt(ctx, p.Merchant, p.Receipt)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, paymentOf(ctx, s, &r))
	}
	return list, nil
}

// movementsOfDispute are the disputed payment, or all of the order if the processor names none.
func movementsOfDispute(ctx context.Context, s *store.Store, d *payment.Dispute) (list []Movement, err error) {
	receipts, err := s.Receipts(ctx, d.Merchant, d.Payin)
	for i := range receipts {
		if d.PaymentID == "" || d.PaymentID == receipts[i].ExternalID {
			list = append(list, paymentOf(ctx, s, &receipts[i]))
		}
	}
	return list, err
}

// movementsOfTransfer are a found transfer, and that of the payout whose second one it is.
func movementsOfTransfer(ctx context.Context, s *store.Store, c *store.Case, f *store.FoundTransfer) (list []Movement, err error) {
	v := Movement{
		What: "transfer", Account: f.Processor, ExternalID: f.ExternalID, EndToEndID: f.EndToEndID, Amount: f.Total, At: sentAt(c.Params),
		Party: c.Params[store.ParamReceiver], PIXKey: c.Params[store.ParamPIXKey],
	}
	if v.At.IsZero() {
		v.At = f.CreatedAt
	}
	if f.Payout.IsZero() {
		return []Movement{v}, nil
	}
	p, err := s.Payout(ctx, f.Merchant, f.Payout)
	if errors.Is(err, store.ErrNotFound) {
		return []Movement{v}, nil
	}
	first := transferOf(&p)
	v.Party, v.PIXKey = first.Party, first.PIXKey // of the same payout
	return []Movement{first, v}, err
}
