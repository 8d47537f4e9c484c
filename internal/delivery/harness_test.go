package delivery_test

import (
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// hook is the receiver of events in these tests.
const hook = coretest.Hook

// waits are those of docs/webhooks.md, from one attempt to the next.
var waits = []time.Duration{
	5 * time.Second, 30 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour,
	10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

// step runs the worker's step once, and does not wait for the attempts that it starts.
func step(g *coretest.Gateway) {
	g.T.Helper()
	var err error
	g.Until(func() { _, err = g.Deliveries.Send(g.T.Context()) })
	g.Must(err)
}

// attempts lists the recorded attempts for the merchant's event of a number.
func attempts(g *coretest.Gateway, m store.Merchant, number int64) []store.Attempt {
	g.T.Helper()
	list, err := g.Store.Attempts(g.T.Context(), m.ID, number)
	g.Must(err)
	return list
}

// addEvents adds n events of one order of a merchant at once, each to go to url.
func addEvents(g *coretest.Gateway, m store.Merchant, n int, url string) {
	g.T.Helper()
	subject := payment.ID(g.Env.IDs.NewID(g.Clock.Now()))
	addEventsOf(g, m, subject, n, url)
}

// addEventsOf adds n events of an order.
func addEventsOf(g *coretest.Gateway, m store.Merchant, subject payment.ID, n int, url string) {
	g.T.Helper()
	g.Must(g.Store.Transact(g.T.Context(), func(tx *store.Tx) error {
		return tx.Apply(g.T.Context(), &store.Needs{}, func(_ *store.Loaded, c *store.Changes) error {
			for i := range n {
				e := payment.Event{Merchant: m.ID, Type: payment.EventPayinUnderpaid, Subject: subject, Version: int64(i + 2)}
				c.AddEvent(e, []byte("{}"), url)
			}
			return nil
		})
	}))
}

// addMerchant adds a merchant; webhookSecret "" generates one.
func addMerchant(g *coretest.Gateway, name, webhookSecret string) store.Merchant {
	g.T.Helper()
	m, err := g.Merchants.Create(g.T.Context(), store.Merchant{Name: name, City: "SAO PAULO", Routes: payment.AllRoutes(coretest.BankName)}, webhookSecret)
	g.Must(err)
	return m
}

// eventOf is the merchant's event of a number.
func eventOf(g *coretest.Gateway, m store.Merchant, number int64) payment.Event {
	g.T.Helper()
	list, err := g.Store.Events(g.T.Context(), m.ID, number-1, 1)
	g.Must(err)
	if len(list) != 1 {
		g.T.Fatalf("there is no event %d", number)
	}
	return list[0]
}

// paid creates a pay-in of a merchant and books its payment: if there is capacity, its
// event is claimed in the same commit.
func paid(g *coretest.Gateway, m store.Merchant, reference, url string) payment.Payin {
	g.T.Helper()
	p := g.Payin(m, reference, url)
	receive(g, m, p)
	return p
}

// receive reports the payment of a pay-in.
func receive(g *coretest.Gateway, m store.Merchant, p payment.Payin) {
	g.T.Helper()
	g.Bank.Receive(p.ExternalID, "pay "+m.Name+" "+p.ReferenceID, 100_00)
	report := g.Bank.QueryCharge(g.T.Context(), p.ExternalID)
	g.Until(func() { g.Must(g.Payins.Receive(g.T.Context(), coretest.BankName, p.ExternalID, report, nil)) })
}

// claimDue claims up to n of a merchant's due deliveries: those that no process has
// claimed.
func claimDue(g *coretest.Gateway, m store.Merchant, n int) []store.Delivery {
	g.T.Helper()
	list, err := g.Deliveries.Claim(g.T.Context(), m.ID, n)
	g.Must(err)
	return list
}

// wantTaken compares the slots and entries that deliveries occupy in a process.
func wantTaken(g *coretest.Gateway, n int) {
	g.T.Helper()
	if got := g.Deliveries.Taken(); got != n {
		g.T.Errorf("%d slots and claims are taken, want %d", got, n)
	}
}

// exhaust lets the complete schedules of n deliveries pass. Their receiver is unhealthy by
// then, and gets one at a time.
func exhaust(g *coretest.Gateway, n int) {
	g.T.Helper()
	g.Deliver()
	for range n * len(waits) {
		g.Jump(28 * time.Hour)
		g.Deliver()
	}
}

// redeliver requests the merchant's first event again, when its receiver may be tried.
func redeliver(g *coretest.Gateway) {
	g.T.Helper()
	g.Jump(2 * time.Minute)
	g.Must(g.Deliveries.Redeliver(g.T.Context(), g.Merchant.ID, eventOf(g, g.Merchant, 1).ID))
	g.Deliver()
}

// distinct counts the events among requests.
func distinct(list []coretest.Received) int {
	seen := map[string]bool{}
	for _, r := range list {
		seen[r.ID] = true
	}
	return len(seen)
}
