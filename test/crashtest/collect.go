package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
)

// collector reads the records after all faults have ended.
type collector struct {
	*run

	operator *httpClient // of the bank
	base     string      // of a gateway

	events []event // read so far
	cursor string  // to continue from
}

// check waits until everything is final, repeats every request, collects the
// records, and reports their differences.
func (r *run) check(ctx context.Context) error {
	c := &collector{run: r, operator: r.bankOperator(), base: r.gatewayURLs[0]}
	began := clock.Monotonic()
	final, err := c.awaitFinal(ctx)
	if err != nil {
		return err
	}
	r.totals.slowest("time to final", "", clock.Monotonic()-began)
	if err := c.placePending(ctx); err != nil {
		return err
	}
	b := &records{
		orders: map[string][]order{}, read: map[string]readBack{}, repeats: map[string]repeat{},
		bankFaults: r.bankFaults, restored: r.restored, paymentsUnknown: r.bank == nil,
	}
	if b.placements, err = readJournals(r.folder); err != nil {
		return err
	}
	if final { // otherwise another wait would be useless
		if final, err = c.awaitFinal(ctx); err != nil {
			return err
		}
	}
	if err := c.repeatAll(ctx, b); err != nil {
		return err
	}
	if final { // a restored gateway creates orders again
		if _, err = c.awaitFinal(ctx); err != nil {
			return err
		}
	}
	if err := c.collect(ctx, b); err != nil {
		return err
	}
	if b.verify, err = r.verify(ctx, r.programs.plain); err != nil {
		return err
	}
	for _, v := range compare(b) {
		r.report(v)
	}
	if err := c.compareAttempts(ctx, b); err != nil {
		return err
	}
	return r.checkLogs()
}

// placePending repeats the requests of clients without an answer until there is one.
func (c *collector) placePending(ctx context.Context) error {
	list, err := readJournals(c.folder)
	if err != nil {
		return err
	}
	one, err := c.clients.newClient(c.clients.workload.clients, streamPending)
	if err != nil {
		return err
	}
	limited, cancel := clock.WithTimeout(ctx, finalMax)
	defer cancel()
	for _, a := range list {
		if len(a.Acked) > 0 || a.Refused != "" {
			continue
		}
		if err := one.place(limited, a); err != nil {
			return err
		}
		if limited.Err() != nil {
			c.report(violation{kind: "no final answer", reference: a.Reference, details: []string{
				fmt.Sprintf("%v after the last fault POST /%s of %s has no final answer", finalMax, a.Kind, a.Body),
			}})
			break
		}
	}
	return errors.Join(context.Cause(ctx), one.journal.close())
}

// repeaters is the number of requests that are repeated at the same time.
const repeaters = 8

// repeatAll reads each acknowledged order by its id, repeats each request, and sends
// it with another amount under the same reference.
func (c *collector) repeatAll(ctx context.Context, b *records) error {
	var mu sync.Mutex
	var all sync.WaitGroup
	work := make(chan *placement)
	for range repeaters {
		all.Go(func() {
			for a := range work {
				again, read := c.repeat(ctx, a)
				mu.Lock()
				b.repeats[a.key()] = again
				if len(a.Acked) > 0 {
					b.read[a.Kind+" "+orderOf(a.Acked).ID] = read
				}
				mu.Unlock()
			}
		})
	}
	for _, a := range b.placements {
		if a.Refused == "" {
			work <- a
		}
	}
	close(work)
	all.Wait()
	return context.Cause(ctx)
}

func (c *collector) repeat(ctx context.Context, a *placement) (again repeat, read readBack) {
	if len(a.Acked) > 0 {
		got := c.api.send(ctx, http.MethodGet, c.base+"/"+a.Kind+"/"+orderOf(a.Acked).ID, "")
		read = readBack{got.status, orderOf(got.body)}
	}
	got := c.api.send(ctx, http.MethodPost, c.base+"/"+a.Kind, string(a.Body))
	again = repeat{status: got.status, replayed: got.replayed, order: orderOf(got.body)}
	amount := a.amount()
	other := bytes.Replace(a.Body, fmt.Appendf(nil, `"amount":%d`, amount), fmt.Appendf(nil, `"amount":%d`, amount+1), 1)
	got = c.api.send(ctx, http.MethodPost, c.base+"/"+a.Kind, string(other))
	again.otherStatus, again.otherCode = got.status, got.problem().Code
	for _, f := range got.problem().Errors {
		again.otherFields = append(again.otherFields, f.Field)
	}
	return again, read
}

// collect reads the lists of the gateway, the bank and the receivers.
func (c *collector) collect(ctx context.Context, b *records) (err error) {
	for _, kind := range []string{payin, payout} {
		_, err = pages(ctx, c.api, c.base+"/"+kind+"?limit=200", "", func(o order) error {
			if !c.foreign(o.ReferenceID) {
				b.orders[kind] = append(b.orders[kind], o)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if err := c.readEvents(ctx); err != nil {
		return err
	}
	b.events = c.events
	if err := c.api.read(ctx, c.base+"/balance", &b.balance); err != nil {
		return err
	}
	if b.transfers, b.payments, err = c.readBank(ctx); err != nil {
		return err
	}
	if b.deliveries, err = readDeliveries(c.folder); err != nil {
		return err
	}
	c.totals.add("orders compared", payin, int64(len(b.orders[payin])))
	c.totals.add("orders compared", payout, int64(len(b.orders[payout])))
	c.totals.add("transfers at the bank", "", int64(len(b.transfers)))
	c.totals.add("payments at the bank", "", int64(len(b.payments)))
	c.totals.add("events", "", int64(len(b.events)))
	c.totals.add("deliveries", "", int64(len(b.deliveries)))
	return nil
}

// foreign reports whether an order is from a load generator, which checks its orders
// itself.
func (c *collector) foreign(reference string) bool {
	return c.loadGenerator && !strings.HasPrefix(reference, referencePrefix)
}

// readBank reads the bank's own lists. A bank embedded in the gateway shows its transfers
// only.
func (c *collector) readBank(ctx context.Context) (transfers []transfer, payments []payment, err error) {
	by, address := c.operator, c.bankURL+"/transfers?"
	if c.bank == nil {
		by, address = c.api, c.base+"/sandbox/processor/transfers?"
	}
	_, err = pages(ctx, by, address, "", func(t transfer) error {
		transfers = append(transfers, t)
		return nil
	})
	if err != nil || c.bank == nil {
		return transfers, nil, err
	}
	_, err = pages(ctx, c.operator, c.bankURL+"/payments?", "", func(p payment) error {
		payments = append(payments, p)
		return nil
	})
	return transfers, payments, err
}

// readEvents reads the events that were published since the last call.
func (c *collector) readEvents(ctx context.Context) error {
	next, err := pages(ctx, c.api, c.base+"/events?limit=200", c.cursor, func(raw json.RawMessage) error {
		e := event{digest: digest(raw)}
		if err := json.Unmarshal(raw, &e); err != nil {
			return fmt.Errorf("event %s: %w", raw, err)
		}
		if !c.foreign(e.Data.ReferenceID) {
			c.events = append(c.events, e)
		}
		return nil
	})
	c.cursor = next
	return err
}
