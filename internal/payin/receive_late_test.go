package payin_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// A payment is late by the time at which the payer paid, not by that of its report: a payer who
// paid before the deadline that the page showed paid in time, also if the order has expired here
// meanwhile.
func TestLateByTheTimeOfThePayment(t *testing.T) {
	for _, test := range []struct {
		name, ended string
		paid        time.Duration // from the deadline; 1: unknown
		late        bool
	}{
		{"in time, reported after the expiry", "expired", -2 * time.Second, false},
		{"at the deadline", "expired", 0, true},
		{"after it", "expired", time.Second, true},
		{"at an unknown time", "expired", 1, true},
		{"before the deadline, after the processor ended the charge", "ended", -10 * time.Minute, true},
		{"before the processor ended the charge", "ended", -50 * time.Minute, false},
		{"before the merchant canceled the order", "canceled", -50 * time.Minute, true},
		{"after the deadline, not expired yet", "", time.Second, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				p := g.Payin(g.Merchant, "order", "")
				g.Clock.Advance(p.ExpiresAt.Sub(g.Clock.Now()) - 30*time.Minute)
				switch test.ended {
				case "canceled":
					_, err := g.Payins.Cancel(t.Context(), p.Merchant, p.ID)
					g.Must(err)
				case "ended":
					g.Must(g.Payins.Receive(t.Context(), p.Processor, p.ExternalID, processor.ChargeReport{Lookup: processor.Found, State: processor.ChargeExpired}, nil))
				}
				g.Clock.Advance(30*time.Minute + time.Second)
				if test.ended == "expired" {
					_, err := g.Payins.Expire(t.Context())
					g.Must(err)
				}
				pay := processor.Payment{ID: "1", Amount: p.Amount, PaidAt: p.ExpiresAt.Add(test.paid)}
				if test.paid == 1 {
					pay.PaidAt = time.Time{}
				}
				g.Must(g.Payins.Receive(t.Context(), p.Processor, p.ExternalID, processor.ChargeReport{Lookup: processor.Found, Payments: []processor.Payment{pay}}, nil))
				g.WantPayin(p, payment.PayinPaid, p.Amount, 1)
				if got := stored(g, p).Late; got != test.late {
					t.Errorf("late is %v, want %v", got, test.late)
				}
				g.WantProven()
			})
		})
	}
}
