package drivers

import (
	"context"
	"fmt"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// payin is an order, and what it should be in the end.
type payin struct {
	payment.Payin

	ends     payment.PayinStatus
	refunded money.Cents
	requests int // of refunds here

	installments int
	defended     bool
}

// payout is one, and what it should be in the end.
type payout struct {
	payment.Payout

	ends payment.PayoutStatus
}

// played are the orders of a run.
type played struct {
	payins  []*payin
	payouts []*payout
}

// rest lets some time pass: the bank's seconds, the retries, and a minute.
func (g *gateway) rest() {
	g.t.Helper()
	for _, d := range []time.Duration{0, time.Second, 3 * time.Second, 10 * time.Second, time.Minute} {
		g.tick(d)
	}
}

// play plays a day of a merchant.
func play(g *gateway) *played {
	g.t.Helper()
	all := &played{}
	if g.bank.paysOut() {
		all.payout(g, "proof", payment.PayoutCompleted)
		g.rest()
	}
	for _, method := range g.bank.methods() {
		all.playMethod(g, method)
	}
	if !g.bank.paysOut() {
		return all
	}
	for _, reference := range []string{"out 1", "out 2"} {
		all.payout(g, reference, payment.PayoutCompleted)
	}
	g.rest()
	last := all.payout(g, "fails", payment.PayoutCompleted)
	for range 4 {
		g.tick(0)
		if g.bank.failTransfer(&last.Payout) { // else it may be paid before
			last.ends = payment.PayoutFailed
			break
		}
	}
	g.rest()
	return all
}

// playMethod pays, gives back, disputes and cancels orders of a method.
func (all *played) playMethod(g *gateway, method payment.Method) {
	g.t.Helper()
	name := string(method)
	paid := all.payin(g, method, name+" paid", payment.PayinPaid)
	canceled := all.payin(g, method, name+" canceled", payment.PayinCanceled)
	if method == payment.PIX {
		all.payin(g, method, name+" expired", payment.PayinExpired)
	}
	g.bank.pay(&paid.Payin)
	g.request(func(ctx context.Context) error {
		_, err := g.core.Payins.Cancel(ctx, g.merchant.ID, canceled.ID)
		return err
	})
	g.rest()
	if method == payment.Boleto { // which has neither refunds nor disputes at these banks
		return
	}
	disputed, whole := all.payin(g, method, name+" disputed", payment.PayinPaid), all.payin(g, method, name+" whole", payment.PayinRefunded)
	g.bank.pay(&disputed.Payin)
	g.bank.pay(&whole.Payin)
	if n := g.bank.installments(); n > 0 && method == payment.CreditCard {
		g.bank.pay(&all.payinIn(g, method, name+" in parts", payment.PayinPaid, n).Payin)
	}
	g.rest()
	g.refund(paid, name+" part", 30_00)
	g.refund(whole, name+" all", 0)
	whole.refunded = whole.Amount
	g.rest()
	g.refund(paid, name+" another part", 20_00)
	paid.ends, paid.refunded = payment.PayinPartiallyRefunded, 50_00
	if method == payment.PIX {
		g.bank.panelRefund(&paid.Payin, 10_00)
		paid.refunded += 10_00
	}
	g.rest()
	if !g.bank.disputes(method) {
		return
	}
	lost := all.payin(g, method, name+" lost", payment.PayinChargeback)
	g.bank.pay(&lost.Payin)
	g.rest()
	g.bank.dispute(&disputed.Payin)
	g.bank.dispute(&lost.Payin)
	g.rest()
	if g.bank.defends() {
		g.defend(disputed)
		for n := 0; n < 20 && g.bank.defenses(&disputed.Payin) == 0; n++ { // before it is decided
			g.tick(time.Minute)
		}
	}
	g.bank.win(&disputed.Payin)
	g.bank.lose(&lost.Payin)
	g.rest()
}

func payinRequest(method payment.Method, reference string) *wire.PayinRequest {
	return &wire.PayinRequest{
		Method: wire.Some(string(method)), Amount: wire.Some(int64(100_00)), ReferenceID: wire.Some(reference), Fingerprint: wire.Fingerprint(reference),
		Personal: payment.PersonalData{Customer: []byte(`{"name":"Maria","document":"52998224725"}`)},
	}
}

// payin creates a pay-in of 100.00.
func (all *played) payin(g *gateway, method payment.Method, reference string, ends payment.PayinStatus) *payin {
	g.t.Helper()
	return all.payinIn(g, method, reference, ends, 1)
}

// payinIn creates a pay-in of 100.00 that is paid in instalments.
func (all *played) payinIn(g *gateway, method payment.Method, reference string, ends payment.PayinStatus, installments int) *payin {
	g.t.Helper()
	r := payinRequest(method, reference)
	if installments > 1 {
		r.Installments = wire.Some(int64(installments))
	}
	if ends == payment.PayinExpired {
		r.ExpiresIn = wire.Some(int64(600))
	}
	p := &payin{ends: ends, installments: installments}
	g.request(func(ctx context.Context) (err error) {
		p.Payin, _, err = g.core.Payins.Create(ctx, g.merchant, r)
		return err
	})
	all.payins = append(all.payins, p)
	return p
}

func (all *played) payout(g *gateway, reference string, ends payment.PayoutStatus) *payout {
	g.t.Helper()
	p := &payout{ends: ends}
	g.request(func(ctx context.Context) (err error) {
		p.Payout, _, err = g.core.Payouts.Request(ctx, g.merchant, coretest.PayoutRequest(reference, 10_00))
		return err
	})
	all.payouts = append(all.payouts, p)
	return p
}

// refund gives a pay-in back, in cents; 0 is all that is left.
func (g *gateway) refund(p *payin, reference string, amount int64) {
	g.t.Helper()
	g.request(func(ctx context.Context) error {
		_, _, err := g.core.Refunds.Create(ctx, g.merchant, p.ID, coretest.RefundRequest(reference, amount))
		return err
	})
	p.requests++
}

// defend defends the dispute of a pay-in, once it is known.
func (g *gateway) defend(p *payin) {
	g.t.Helper()
	g.request(func(ctx context.Context) error {
		list, err := g.store.Disputes(ctx, p.Merchant, store.DisputeFilter{Payin: p.ID, Limit: 2})
		if err == nil && len(list) != 1 {
			err = fmt.Errorf("there are %d disputes", len(list))
		}
		if err == nil {
			_, _, err = g.core.Disputes.Defend(ctx, p.Merchant, list[0].ID, &wire.DefenseRequest{Text: wire.Some("Entregue."), Fingerprint: wire.Fingerprint("defense")})
		}
		return err
	})
	p.defended = true
}
