package main

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// Retries wait for up to hours, so the sandbox's clock is advanced while the test waits
// for final states. It is advanced evenly: if it were advanced quickly and then stopped,
// a retry that fails after that would wait in real time.
const (
	finalMax     = 3 * time.Minute
	finalLook    = 500 * time.Millisecond
	advanceAfter = time.Second    // before the clock is advanced
	advanceMax   = 20 * time.Hour // no order expires before that
	advanceStep  = advanceMax / (finalMax / finalLook)
)

// awaitFinal waits until all orders are final. After a timeout it reports a violation; the
// checker then reports the affected orders.
func (c *collector) awaitFinal(ctx context.Context) (final bool, err error) {
	began, advanced := clock.Monotonic(), time.Duration(0)
	for {
		open, err := c.notFinal(ctx)
		if err != nil || open == "" {
			return err == nil, err
		}
		waited := clock.Monotonic() - began
		if waited > finalMax {
			c.report(violation{kind: "not final", details: []string{
				fmt.Sprintf("%v after the last fault, and %v by the sandbox's clock: %s", waited.Round(time.Second), advanced, open),
			}})
			return false, nil
		}
		if waited > advanceAfter && advanced < advanceMax && c.advanceClock(ctx, advanceStep) {
			advanced += advanceStep
		}
		if !wait(ctx, finalLook) {
			return false, context.Cause(ctx)
		}
	}
}

// advanceClock advances the sandbox's clock.
func (c *collector) advanceClock(ctx context.Context, d time.Duration) bool {
	got := c.api.send(ctx, http.MethodPost, c.base+"/sandbox/clock", fmt.Sprintf(`{"advance":%d}`, int(d.Seconds())))
	return got.status == http.StatusNoContent
}

// notFinal returns an order or a difference that is not final, or "".
func (c *collector) notFinal(ctx context.Context) (string, error) {
	for _, query := range []string{"payout?status=PROCESSING", "payout?status=PENDING", "payin?status=PROCESSING"} {
		var page struct{ Data []order }
		if err := c.api.read(ctx, c.base+"/"+query+"&limit=1", &page); err != nil {
			return "", err
		}
		if len(page.Data) > 0 {
			return query + ": " + page.Data[0].ReferenceID, nil
		}
	}
	transfers, payments, err := c.readBank(ctx)
	if err != nil {
		return "", err
	}
	want := cents(funds)
	for _, p := range payments {
		want += p.Amount
	}
	for _, t := range transfers {
		switch t.Status {
		case "processing":
			return "the bank still processes " + t.ExternalID, nil
		case "paid":
			want -= t.Amount
		}
	}
	var has balance
	if err := c.api.read(ctx, c.base+"/balance", &has); err != nil {
		return "", err
	}
	// A restored gateway lacks the orders that are repeated later.
	if has.Available+has.Unapplied != want && c.bank != nil && !c.restored {
		return fmt.Sprintf("the bank's transfers and payments make %d, the gateway has %+v", want, has), nil
	}
	return c.notDelivered(ctx)
}

// notDelivered returns an event that no receiver answered with 2xx, or "".
func (c *collector) notDelivered(ctx context.Context) (string, error) {
	if err := c.readEvents(ctx); err != nil {
		return "", err
	}
	deliveries, err := readDeliveries(c.folder)
	if err != nil {
		return "", err
	}
	done := map[string]bool{}
	for _, d := range deliveries {
		done[d.EventID] = done[d.EventID] || d.arrived()
	}
	for _, e := range c.events {
		if e.Data.WebhookURL != "" && !done[e.ID] {
			return "not delivered: " + e.ID, nil
		}
	}
	return "", nil
}
