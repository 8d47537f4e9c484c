package coretest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/wire"
)

// BankRefund is a refund in the bank's records.
type BankRefund struct {
	Request processor.RefundRequest
	State   processor.TransferState
}

// Refunds are the refunds in the bank's records. Tests set its fields to make it misbehave.
type Refunds struct {
	Made  map[string]*BankRefund
	Calls []processor.RefundRequest // every request that arrived
	// Listed is the list of refunds, oldest first.
	Listed   []processor.ListedRefund
	Unlisted bool // the bank does not list its refunds
	// PerPayment: an id is of one payment only, as at the API Pix. It is then a part of the keys
	// of Made.
	PerPayment bool
	// Answer and AnswerQuery, if set, replace the bank's own answers.
	Answer      func(b *Bank, r processor.RefundRequest) processor.TransferAnswer
	AnswerQuery func(b *Bank, externalID string) processor.TransferReport
}

// GiveBack records a refund, once per id, and reports it. The caller holds Mu.
func (b *Bank) GiveBack(r processor.RefundRequest, state processor.TransferState) processor.TransferReport {
	key := b.refundKey(r.PaymentID, r.ExternalID)
	if b.Refunds.Made[key] == nil {
		b.Refunds.Made[key] = &BankRefund{r, ""}
		b.endRefund(key, state)
	}
	return b.RefundReport(key)
}

// refundKey is the key of a refund in Made.
func (b *Bank) refundKey(paymentID, externalID string) string {
	if b.Refunds.PerPayment {
		return paymentID + " " + externalID
	}
	return externalID
}

func (b *Bank) endRefund(key string, state processor.TransferState) {
	v := b.Refunds.Made[key]
	if listed := state == processor.TransferPaid || v.State == processor.TransferPaid; listed && state != v.State {
		b.Refunds.Listed = append(b.Refunds.Listed, processor.ListedRefund{
			ExternalID: v.Request.ExternalID, PaymentID: v.Request.PaymentID, EndToEndID: "D" + v.Request.ExternalID, State: state, Amount: v.Request.Amount,
		})
	}
	v.State = state
}

// EndRefund changes the state of a refund.
func (b *Bank) EndRefund(externalID string, state processor.TransferState) {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	b.endRefund(externalID, state)
}

// RefundAtPanel makes a refund that nobody requested by the API.
func (b *Bank) RefundAtPanel(externalID, paymentID string, amount money.Cents) {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	b.GiveBack(processor.RefundRequest{ExternalID: externalID, PaymentID: paymentID, Amount: amount}, processor.TransferPaid)
}

// StartAtPanel is RefundAtPanel of a refund that the bank has not paid yet.
func (b *Bank) StartAtPanel(externalID, paymentID string, amount money.Cents) {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	b.GiveBack(processor.RefundRequest{ExternalID: externalID, PaymentID: paymentID, Amount: amount}, processor.TransferProcessing)
}

// RefundReport is the bank's record of a refund, by its key in Made. The caller holds Mu.
func (b *Bank) RefundReport(key string) processor.TransferReport {
	v, ok := b.Refunds.Made[key]
	if !ok {
		return processor.TransferReport{Lookup: processor.NotFound}
	}
	return processor.TransferReport{Lookup: processor.Found, State: v.State, EndToEndID: "D" + v.Request.ExternalID, Amount: v.Request.Amount, Evidence: "bank's records"}
}

// Refund implements [processor.Refunder].
func (b *Bank) Refund(ctx context.Context, r processor.RefundRequest, guard func() error) processor.TransferAnswer {
	if err := errors.Join(ctx.Err(), guard()); err != nil {
		return processor.TransferAnswer{Outcome: processor.NotSent, Cause: err}
	}
	b.Mu.Lock()
	defer b.Mu.Unlock()
	b.Refunds.Calls = append(b.Refunds.Calls, r)
	if b.Refunds.Answer != nil {
		return b.Refunds.Answer(b, r)
	}
	return processor.TransferAnswer{Outcome: processor.Done, Report: b.GiveBack(r, processor.TransferPaid)}
}

// QueryRefund implements [processor.Refunder].
func (b *Bank) QueryRefund(_ context.Context, paymentID, externalID string) processor.TransferReport {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	b.Queries++
	switch {
	case b.Down:
		return processor.TransferReport{Cause: ErrDown}
	case b.Refunds.AnswerQuery != nil:
		return b.Refunds.AnswerQuery(b, externalID)
	default:
		return b.RefundReport(b.refundKey(paymentID, externalID))
	}
}

// RefundRequest is a valid request of a refund; an amount of 0 is all that is left.
func RefundRequest(reference string, amount int64) *wire.RefundRequest {
	r := &wire.RefundRequest{ReferenceID: wire.Some(reference), Fingerprint: wire.NewFingerprint([]wire.FieldMAC{
		{Name: "referenceId", MAC: mac(reference)}, {Name: "amount", MAC: mac(strconv.FormatInt(amount, 10))},
	})}
	if amount != 0 {
		r.Amount = wire.Some(amount)
	}
	return r
}

func mac(text string) [16]byte {
	sum := sha256.Sum256([]byte(text))
	return [16]byte(sum[:16])
}

// PaidPayin creates a Pix pay-in of 100.00 that is paid by payments of these amounts, in
// cents, named by its reference and their numbers from 1.
func (g *Gateway) PaidPayin(reference string, payments ...money.Cents) payment.Payin {
	g.T.Helper()
	return g.PaidPayinAt(reference, g.Clock.Now(), payments...)
}

// PaidPayinAt is PaidPayin at a time, by the bank's words.
func (g *Gateway) PaidPayinAt(reference string, at time.Time, payments ...money.Cents) payment.Payin {
	g.T.Helper()
	p := g.Payin(g.Merchant, reference, "https://loja.example/"+reference)
	for i, amount := range payments {
		g.Bank.Receive(p.ExternalID, fmt.Sprint(reference, " ", i+1), amount)
		g.Bank.Charges[p.ExternalID].Payments[i].PaidAt = at
	}
	g.Notify("paid "+reference, "charge "+p.ExternalID)
	g.Apply()
	return g.ReadPayin(p)
}

// ReadPayin reads a pay-in as it is stored.
func (g *Gateway) ReadPayin(p payment.Payin) payment.Payin {
	g.T.Helper()
	got, err := g.Store.Payin(g.T.Context(), p.Merchant, p.ID)
	g.Must(err)
	return got
}

// Refund requests a refund of a pay-in, in cents; 0 is all that is left.
func (g *Gateway) Refund(p payment.Payin, reference string, amount int64) payment.Refund {
	g.T.Helper()
	r, _, err := g.Refunds.Create(g.T.Context(), g.Merchant, p.ID, RefundRequest(reference, amount))
	g.Must(err)
	return r
}

// WantRefund compares a refund's status and what has reached the payer, and those of its
// pay-in, and returns the stored refund.
func (g *Gateway) WantRefund(r payment.Refund, status payment.RefundStatus, refunded money.Cents, of payment.PayinStatus, in money.Cents) payment.Refund {
	g.T.Helper()
	got, err := g.Store.Refund(g.T.Context(), r.Merchant, r.ID)
	g.Must(err)
	p, err := g.Store.Payin(g.T.Context(), r.Merchant, r.Payin)
	g.Must(err)
	if got.Status != status || got.RefundedAmount != refunded || p.Status != of || p.RefundedAmount != in {
		g.T.Fatalf("refund is %s, %d refunded, of a pay-in that is %s, %d refunded; want %s, %d, %s, %d\n%s",
			got.Status, got.RefundedAmount, p.Status, p.RefundedAmount, status, refunded, of, in, g.Log)
	}
	return got
}
