package outgoing_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/outgoing"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// At an account that takes one transfer at a time, all processes together send one: the next one
// is claimed when it has ended, or its process is dead.
func TestSerialAccount(t *testing.T) {
	coretest.EachEngine(t, func(t *testing.T, g *coretest.Gateway) {
		g.Bank.Profiled.Transfer.Serial = true
		g.ReadFeeds()
		other := g.Second()
		payouts := []payment.Payout{g.Payout("a", 10_00), g.Payout("b", 10_00), g.Payout("c", 10_00)}
		due := store.Due{Merchant: g.Merchant.ID, Processor: coretest.BankName}
		sends, claimed, err := g.Outgoing.Claim(t.Context(), due, 10)
		g.Must(err)
		if len(sends) != 1 || claimed != 1 {
			t.Fatalf("%d claimed, %d to be sent", claimed, len(sends))
		}
		other.Send()
		g.Send()
		g.WantBank(0, 0)
		g.Must(g.Outgoing.RecordSend(t.Context(), sends[0], processor.TransferAnswer{Outcome: processor.Refused, Failure: &payment.Failure{Code: "no", Message: "No."}}))
		other.Send()
		g.WantBank(2, 2)
		if p := g.ReadPayout(payouts[0]); p.Status != payment.PayoutFailed {
			t.Errorf("the first one is %s", p.Status)
		}
	})
}

// Two processes that ask at the same time do not both send.
func TestSerialClaimsAtOnce(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Bank.Profiled.Transfer.Serial = true
		g.ReadFeeds()
		processes := []*coretest.Gateway{g, g.Second()}
		for i := range 12 {
			g.Payout(fmt.Sprint("r-", i), 1_00)
		}
		due := store.Due{Merchant: g.Merchant.ID, Processor: coretest.BankName}
		for round := range 10 {
			var wg sync.WaitGroup
			claims := make([][]outgoing.ClaimedSend, len(processes))
			for i, p := range processes {
				wg.Go(func() {
					var err error
					if claims[i], _, err = p.Outgoing.Claim(t.Context(), due, 2); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if n := len(claims[0]) + len(claims[1]); n != 1 {
				t.Fatalf("round %d: %d are to be sent at once", round, n)
			}
			for i, p := range processes {
				for _, s := range claims[i] {
					g.Must(p.Outgoing.RecordSend(t.Context(), s, processor.TransferAnswer{Outcome: processor.Refused}))
				}
			}
		}
	})
}
