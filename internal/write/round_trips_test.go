package write_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/delivery"
	"github.com/porteira/porteira/internal/outgoing"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

// rounds makes batches of operations on a gateway whose round trips are counted.
type rounds struct {
	*coretest.Gateway

	count  func(work func()) int64
	serial int

	merchants []store.Merchant // of receivesApart
}

func (v *rounds) name() string {
	v.serial++
	return fmt.Sprint("r-", v.serial)
}

func (v *rounds) commit(ops []write.Operation) int64 {
	v.T.Helper()
	return v.count(func() { v.Must(errors.Join(v.Writer.All(v.T.Context(), ops)...)) })
}

// creates creates pay-ins.
func (v *rounds) creates(n int) int64 {
	var ops []write.Operation
	for range n {
		op, err := v.Payins.NewCreateOp(v.Merchant, coretest.PayinRequest(v.name(), ""))
		v.Must(err)
		ops = append(ops, op)
	}
	return v.commit(ops)
}

// requests requests payouts.
func (v *rounds) requests(n int) int64 {
	var ops []write.Operation
	for range n {
		op, err := v.Payouts.NewRequestOp(v.Merchant, coretest.PayoutRequest(v.name(), 1))
		v.Must(err)
		ops = append(ops, op)
	}
	return v.commit(ops)
}

// receives books the payments of pay-ins, with their notices and events.
func (v *rounds) receives(n int) int64 {
	return v.receivesOf(n, func(int) store.Merchant { return v.Merchant })
}

// receivesApart is receives with a merchant for each pay-in.
func (v *rounds) receivesApart(n int) int64 {
	for len(v.merchants) < n {
		m, err := v.Merchants.Create(v.T.Context(), store.Merchant{Name: v.name(), City: "SAO PAULO", Routes: payment.AllRoutes(coretest.BankName)}, "")
		v.Must(err)
		v.merchants = append(v.merchants, m)
	}
	return v.receivesOf(n, func(i int) store.Merchant { return v.merchants[i] })
}

func (v *rounds) receivesOf(n int, merchant func(int) store.Merchant) int64 {
	var ops []write.Operation
	for i := range n {
		name := v.name()
		p := v.Payin(merchant(i), name, "https://shop.example/hook")
		v.Notify(name)
		op, err := v.Payins.NewReceive(v.T.Context(), coretest.BankName, p.ExternalID, processor.ChargeReport{
			Lookup: processor.Found, Payments: []processor.Payment{{ID: name, EndToEndID: "E", Amount: p.Amount, PaidAt: v.Clock.Now()}},
		}, &store.Notice{Processor: coretest.BankName, ID: name})
		v.Must(err)
		ops = append(ops, op)
	}
	return v.commit(ops)
}

// claimed are payouts that are claimed to be sent.
func (v *rounds) claimed(n int) []outgoing.ClaimedSend {
	for range n {
		v.Payout(v.name(), 1)
	}
	sends, _, err := v.Outgoing.Claim(v.T.Context(), store.Due{Merchant: v.Merchant.ID, Processor: coretest.BankName}, n)
	v.Must(err)
	if len(sends) != n {
		v.T.Fatalf("%d sends, want %d", len(sends), n)
	}
	return sends
}

// claims claims payouts to be sent, in one operation.
func (v *rounds) claims(n int) int64 {
	for range n {
		v.Payout(v.name(), 1)
	}
	return v.count(func() {
		_, claimed, err := v.Outgoing.Claim(v.T.Context(), store.Due{Merchant: v.Merchant.ID, Processor: coretest.BankName}, n)
		if err != nil || claimed != n {
			v.T.Errorf("claimed %d, %v, want %d", claimed, err, n)
		}
	})
}

// completes records that payouts were paid.
func (v *rounds) completes(n int) int64 {
	var ops []write.Operation
	for _, s := range v.claimed(n) {
		ops = append(ops, v.Outgoing.NewRecordSendOp(s, processor.TransferAnswer{
			Outcome: processor.Done, Report: processor.TransferReport{Lookup: processor.Found, State: processor.TransferPaid, EndToEndID: "E"},
		}))
	}
	return v.commit(ops)
}

// delivers records that receivers accepted deliveries.
func (v *rounds) delivers(n int) int64 {
	list, err := v.Deliveries.Claim(v.T.Context(), v.Merchant.ID, n)
	v.Must(err)
	if len(list) != n {
		v.T.Fatalf("%d deliveries, want %d", len(list), n)
	}
	var ops []write.Operation
	for _, d := range list {
		ops = append(ops, &delivery.End{Delivery: d, State: store.DeliveryDone, Attempt: store.Attempt{
			Merchant: d.Merchant, Delivery: d.ID, Number: d.Attempts, CreatedAt: d.UpdatedAt, Status: 200,
		}})
	}
	return v.commit(ops)
}

// On a server a batch of fifty operations takes as many round trips as one of five.
func TestRoundTripsOfABatch(t *testing.T) {
	g, count := coretest.NewCounting(t)
	v := &rounds{Gateway: g, count: count}
	coretest.WantRoundTrips(t, "pay-ins that the processor charges", 3, v.creates)
	g.Processor(coretest.BankName, offlineBank{g.Bank})
	g.Node.Lease.Drop() // deliveries are not claimed when they are created
	coretest.WantRoundTrips(t, "pay-ins", 2, v.creates)
	coretest.WantRoundTrips(t, "payments", 12, v.receives)
	v.receivesApart(50) // opens accounts
	coretest.WantRoundTrips(t, "payments of many merchants", 12, v.receivesApart)
	v.receives(100) // something to pay with, and to deliver
	coretest.WantRoundTrips(t, "payouts", 7, v.requests)
	g.Execute("UPDATE payouts SET next_at = 0")
	coretest.WantRoundTrips(t, "claims of payouts", 8, v.claims)
	coretest.WantRoundTrips(t, "transfers", 11, v.completes)
	coretest.WantRoundTrips(t, "deliveries", 4, v.delivers)
}

// Claims in the commit of what they claim take one round trip more, for the node.
func TestRoundTripsWithClaims(t *testing.T) {
	g, count := coretest.NewCounting(t)
	v := &rounds{Gateway: g, count: count}
	g.Processor(coretest.BankName, offlineBank{g.Bank})
	coretest.WantRoundTrips(t, "pay-ins", 2, v.creates)
	coretest.WantRoundTrips(t, "payments", 13, v.receives)
}
