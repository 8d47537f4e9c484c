package sandboxbank

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// listedRefunds is the list of refunds: payment, state and amount.
func (h *harness) listedRefunds() (list []string) {
	h.t.Helper()
	for cursor := ""; ; {
		page, err := h.driver.Read(h.t.Context(), processor.FeedRefunds, cursor)
		if err != nil {
			h.t.Fatal(err)
		}
		for _, f := range page.Facts {
			if f.Refund == nil || f.Refund.EndToEndID == "" || f.Refund.ExternalID == "" {
				h.t.Fatalf("fact %+v", f)
			}
			list = append(list, fmt.Sprint(f.Refund.PaymentID, " ", f.Refund.State, " ", int64(f.Refund.Amount)))
		}
		if cursor = page.Next; !page.More {
			return list
		}
	}
}

// The bank lists refunds that were paid, its own too, and those that failed afterwards.
func TestListOfRefunds(t *testing.T) {
	h := newHarness(t, onDisk(t))
	request := h.chargeRequest(payment.PIX)
	h.pay(request, bankapi.ForceCharge{})
	paid := h.driver.QueryCharge(t.Context(), request.ExternalID).Payments[0]
	ours := processor.RefundRequest{ExternalID: h.newID(), PaymentID: paid.ID, Amount: 100}
	refused := processor.RefundRequest{ExternalID: h.newID(), PaymentID: paid.ID, Amount: paid.Amount}
	force := func(id, action string, want error) {
		t.Helper()
		if err := h.control.Refund(t.Context(), id, action); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", action, err, want)
		}
	}
	force(ours.ExternalID, "complete", bankapi.CodeRefundUnknown)
	for _, r := range []processor.RefundRequest{ours, refused} {
		h.driver.Refund(t.Context(), r, willing)
	}
	if err := h.control.RefundPayment(t.Context(), paid.ID, 200); err != nil {
		t.Fatal(err)
	}
	if list := h.listedRefunds(); len(list) != 0 {
		t.Errorf("before they are paid: %v", list)
	}
	force(ours.ExternalID, "complete", nil)
	force(ours.ExternalID, "complete", nil)
	h.elapse()
	force(ours.ExternalID, "fail", nil)
	force(ours.ExternalID, "fail", nil)
	force(ours.ExternalID, "complete", bankapi.CodeStateForbids)
	force(ours.ExternalID, "return", bankapi.CodeNotFound)
	want := []string{paid.ID + " paid 100", paid.ID + " paid 200", paid.ID + " failed 100"}
	if list := h.listedRefunds(); !slices.Equal(list, want) {
		t.Errorf("listed %v, want %v", list, want)
	}
	h.reopen()
	if list := h.listedRefunds(); !slices.Equal(list, want) {
		t.Errorf("listed %v after the journal was read, want %v", list, want)
	}
	if report := h.driver.QueryRefund(t.Context(), paid.ID, ours.ExternalID); report.State != processor.TransferFailed {
		t.Errorf("%+v", report)
	}
	if err := h.control.RefundPayment(t.Context(), paid.ID, paid.Amount); !errors.Is(err, bankapi.CodeRefundTooMuch) {
		t.Errorf("more than is left: %v", err)
	}
}
