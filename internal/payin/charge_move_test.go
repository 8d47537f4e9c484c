package payin_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/processor/processortest"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
)

// answering makes a bank give one answer to every request of a charge. A time-out takes all the time
// that the request has.
func answering(g *coretest.Gateway, b *coretest.Bank, outcome string) {
	b.AnswerCharge = func(b *coretest.Bank, r processor.ChargeRequest) processor.ChargeAnswer {
		switch outcome {
		case "refused":
			return refused
		case "not sent":
			return processor.ChargeAnswer{Outcome: processor.NotSent, Cause: errors.New("no connection")}
		case "dial time-out":
			g.Clock.Advance(4 * time.Second)
			return processor.ChargeAnswer{Outcome: processor.NotSent, Cause: errors.New("no connection")}
		case "later":
			return processor.ChargeAnswer{Outcome: processor.Later, Wait: time.Hour}
		case "unknown":
			g.Clock.Advance(4 * time.Second)
			return processor.ChargeAnswer{Cause: errors.New("time-out")}
		}
		c := processor.Charge{ProcessorID: "p-1", PIX: processortest.PIX(r)}
		b.Charges[r.ExternalID] = &processor.ChargeReport{Charge: c}
		return processor.ChargeAnswer{Outcome: processor.Done, Charge: c}
	}
}

// threeAccounts are accounts of the merchant's routes, in order: the gateway's own, second
// and third. outcomes are their answers.
func threeAccounts(g *coretest.Gateway, outcomes string) (second, third *coretest.Bank) {
	second, third = coretest.NewBank(), coretest.NewBank()
	g.Processor("second", second)
	g.Processor("third", third)
	g.Merchant.Routes = nil
	for _, account := range []string{coretest.BankName, "second", "third"} {
		g.Merchant.Routes = append(g.Merchant.Routes, payment.Route{Operation: payment.OperationPayin, Account: account})
	}
	list := strings.Split(outcomes, ", ")
	for i, b := range []*coretest.Bank{g.Bank, second, third} {
		answering(g, b, list[i])
	}
	return second, third
}

// tries are the accounts that an order was tried at, with their outcomes.
func tries(g *coretest.Gateway, p payment.Payin) string {
	g.T.Helper()
	charges, err := g.Store.Charges(g.T.Context(), p.Merchant, p.ID)
	g.Must(err)
	var list []string
	for i := range charges {
		list = append(list, fmt.Sprintf("%d %s %s %s", charges[i].Number, charges[i].Account, charges[i].State, charges[i].Outcome))
	}
	return strings.Join(list, ", ")
}

// An account that takes no charge, beyond doubt, hands the order to the next one.
func TestNextAccountOfACharge(t *testing.T) {
	for _, test := range []struct{ name, outcomes, status, tries string }{
		{"the first one charges", "done, done, done", "PENDING ready", "1 bank made done"},
		{"refused", "refused, done, done", "PENDING ready", "1 bank ended refused, 2 second made done"},
		{"not sent", "not sent, done, done", "PENDING ready", "1 bank ended not_sent, 2 second made done"},
		{"refused twice", "refused, refused, done", "PENDING ready", "1 bank ended refused, 2 second ended refused, 3 third made done"},
		{"refused by all", "refused, refused, refused", "FAILED", "1 bank ended refused, 2 second ended refused, 3 third ended refused"},
		{"unknown", "unknown, done, done", "PENDING", "1 bank wanted unknown"},
		{"later", "later, done, done", "PENDING ready", "1 bank ended not_sent, 2 second made done"},
		{"later at all", "later, later, later", "PENDING", "1 bank ended not_sent, 2 second ended not_sent, 3 third wanted later"},
		{"unknown at the second", "refused, unknown, done", "PENDING", "1 bank ended refused, 2 second wanted unknown"},
		{"no account is reached", "not sent, not sent, dial time-out", "PENDING", "1 bank ended not_sent, 2 second ended not_sent, 3 third wanted not_sent"},
	} {
		t.Run(test.name, func(t *testing.T) {
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				threeAccounts(g, test.outcomes)
				p, _, _ := g.Payins.Create(t.Context(), g.Merchant, coretest.PayinRequest("order", ""))
				at := stored(g, p)
				status := string(at.Status)
				if at.Ready() {
					status += " ready"
				}
				if got := tries(g, p); status != test.status || got != test.tries {
					t.Errorf("%s by %s, want %s by %s", status, got, test.status, test.tries)
				}
				charges, err := g.Store.Charges(t.Context(), p.Merchant, p.ID)
				g.Must(err)
				if last := charges[len(charges)-1]; at.Processor != last.Account || p.Processor != last.Account {
					t.Errorf("the order is at %s, answered %s; the last try is at %s", at.Processor, p.Processor, last.Account)
				}
				g.WantProven()
			})
		})
	}
}

// The worker tries the next account, too, and the merchant learns of the charge.
func TestWorkerTriesTheNextAccount(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		threeAccounts(g, "refused, done, done")
		g.Must(g.Store.Administer(t.Context(), storetest.Operator, func(tx *store.AdminTx) error {
			return tx.SetRoutes(t.Context(), g.Merchant.ID, payment.OperationPayin, "", g.Merchant.Routes)
		}))
		op, err := g.Payins.NewCreateOp(g.Merchant, coretest.PayinRequest("order", ""))
		g.Must(err)
		g.Must(g.Writer.Do(t.Context(), op))
		for range 2 {
			_, err = g.Payins.Charge(t.Context())
			g.Must(err)
		}
		if got := tries(g, op.Payin); got != "1 bank ended refused, 2 second made done" {
			t.Errorf("tried %s", got)
		}
		g.WantEvents(payment.EventPayinUpdated)
	})
}

// A payment at an account that the order has left pays the order; a second one, of the later
// charge, is unapplied. A payment at an account that the order was never at is the platform's.
func TestPaymentAtAnEarlierAccount(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		threeAccounts(g, "refused, done, done")
		p, _, err := g.Payins.Create(t.Context(), g.Merchant, coretest.PayinRequest("order", ""))
		g.Must(err)
		pay := func(account, id string) {
			t.Helper()
			g.Must(g.Payins.Receive(t.Context(), account, p.ExternalID, processor.ChargeReport{
				Lookup: processor.Found, Payments: []processor.Payment{{ID: id, Amount: p.Amount, PaidAt: g.Clock.Now()}},
			}, nil))
		}
		pay("third", "0")
		g.WantPayin(p, payment.PayinPending, 0, 0)
		pay(coretest.BankName, "1")
		g.WantPayin(p, payment.PayinPaid, p.Amount, 1)
		pay("second", "2")
		g.WantPayin(p, payment.PayinPaid, p.Amount, 2)
		g.WantProven()
	})
}
