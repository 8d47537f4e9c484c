package app_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
)

// A refund of a part that was made at Asaas' panel, and whose notice was lost, is known from those of the
// dispute that followed. It is the merchant's if the dispute is won, also if the notice of that is lost
// too, and no part of what the dispute took if it is lost; also if the payment is not known before, as after
// a restore: the dispute is then booked with it, before the refund.
func TestAsaasPanelRefundOfADisputedPayment(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		end       string
		known     bool // is the payment, before the dispute
		noticed   bool // is the end
		status    payment.PayinStatus
		available money.Cents
	}{
		{"win", true, true, payment.PayinPartiallyRefunded, 70_00},
		{"win", true, false, payment.PayinPartiallyRefunded, 70_00},
		{"win", false, true, payment.PayinPartiallyRefunded, 70_00},
		{"win", false, false, payment.PayinPartiallyRefunded, 70_00},
		{"lose", true, true, payment.PayinChargeback, 0},
		{"lose", true, false, payment.PayinChargeback, 0},
		{"lose", false, true, payment.PayinChargeback, 0},
		{"lose", false, false, payment.PayinChargeback, 0},
	} {
		t.Run(fmt.Sprint(c.end, " known ", c.known, " noticed ", c.noticed), func(t *testing.T) {
			t.Parallel()
			b := newCutAsaas(t)
			r := coretest.PayinRequest("order", "")
			r.Personal = payment.PersonalData{Customer: []byte(`{"name":"Maria","document":"52998224725"}`)}
			p, _, err := b.g.Payins.Create(t.Context(), b.g.Merchant, r)
			b.g.Must(err)
			_, id, _ := strings.Cut(b.call(http.MethodGet, "/v3/payments?", ""), `"id":"`)
			id, _, _ = strings.Cut(id, `"`)
			gateway := b.in
			does := func(path, body string, noticed bool) {
				t.Helper()
				if b.in = gateway; !noticed {
					b.in = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
				}
				if b.call(http.MethodPost, path, body); noticed || c.known {
					b.work()
				}
			}
			does("/v3/sandbox/payment/"+id+"/confirm", "", c.known)
			does("/v3/payments/"+id+"/refund", `{"value":30.00}`, false)
			b.g.Jump(time.Minute) // in which the refund is done
			does("/panel/payment/"+id+"/dispute", "", true)
			b.g.WantPayin(p, payment.PayinDisputed, 100_00, 1)
			does("/panel/payment/"+id+"/"+c.end, "", c.noticed)
			for range 3 { // days, in which the charge is looked up
				b.g.Jump(25 * time.Hour)
				b.work()
			}
			b.g.WantPayin(p, c.status, 100_00, 1)
			b.g.WantBalances(coretest.Opening+c.available, 0)
			b.g.WantProven()
		})
	}
}
