package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// judge waits until all is settled, gathers the four books and compares them.
func (o *ordeal) judge(ctx context.Context, folder string) error {
	j := &judge{ordeal: o, folder: folder, ask: newCaller(askTimeout, merchantHeaders), bank: o.bankCaller(), base: o.bases[0]}
	began := clock.Monotonic()
	settled, err := j.settle(ctx)
	if err != nil {
		return err
	}
	o.figures.slowest("time to settle", "", clock.Monotonic()-began)
	if err := j.placeAll(ctx); err != nil {
		return err
	}
	if settled { // else it would be waited for in vain again
		if _, err := j.settle(ctx); err != nil {
			return err
		}
	}
	b, err := j.gather(ctx)
	if err != nil {
		return err
	}
	if b.verify, err = o.verify(ctx, o.binaries.plain); err != nil {
		return err
	}
	o.figures.add("orders compared", "", len(b.asked))
	o.figures.add("payouts compared", "", len(b.orders[payout]))
	o.figures.add("pay-ins compared", "", len(b.orders[payin]))
	o.figures.add("transfers at the bank", "", len(b.transfers))
	o.figures.add("payments at the bank", "", len(b.payments))
	o.figures.add("events", "", len(b.events))
	o.figures.add("deliveries", "", len(b.deliveries))
	for _, v := range compare(b) {
		o.blame(v)
	}
	if err := j.compareAttempts(ctx, b); err != nil {
		return err
	}
	return o.readLogs()
}

// judge reads the books when nothing disturbs any more.
type judge struct {
	*ordeal

	folder string
	ask    *caller // the API
	bank   *caller
	base   string

	events []event // read so far
	cursor string  // to go on from
}

// How long all that was left hanging may take to come to its end, in real time
// and by the sandbox's clock, which is moved on so that waits of hours pass.
const (
	settleMax   = 3 * time.Minute
	settleLook  = 500 * time.Millisecond
	patience    = time.Second    // before the clock is moved
	advancedMax = 12 * time.Hour // no order expires by that
)

// settle waits until everything has come to its end. What has not when the time
// is over is blamed order by order, when the books are compared.
func (j *judge) settle(ctx context.Context) (settled bool, err error) {
	began, advanced, step := clock.Monotonic(), time.Duration(0), 10*time.Second
	for {
		waiting, err := j.waiting(ctx)
		if err != nil || waiting == "" {
			return err == nil, err
		}
		took := clock.Monotonic() - began
		if took > settleMax {
			j.blame(violation{kind: "not settled", says: []string{fmt.Sprintf("%v after the last fault, and %v by the sandbox's clock: %s", took, advanced, waiting)}})
			return false, nil
		}
		if took > patience && advanced+step <= advancedMax {
			if j.advance(ctx, step) {
				advanced += step
				step = min(2*step, time.Hour)
			}
		}
		if !wait(ctx, settleLook) {
			return false, context.Cause(ctx)
		}
	}
}

// advance moves the sandbox's clock.
func (j *judge) advance(ctx context.Context, d time.Duration) bool {
	got := j.ask.send(ctx, http.MethodPost, j.base+"/sandbox/clock", fmt.Sprintf(`{"advance":%d}`, int(d.Seconds())))
	return got.status == http.StatusNoContent
}

// waiting says what is not settled yet, or nothing.
func (j *judge) waiting(ctx context.Context) (string, error) {
	for _, query := range []string{"payout?status=PROCESSING", "payout?status=PENDING", "payin?status=PROCESSING"} {
		var page struct{ Data []order }
		if err := j.ask.read(ctx, j.base+"/"+query+"&limit=1", &page); err != nil {
			return "", err
		}
		if len(page.Data) > 0 {
			return query + ": " + page.Data[0].ReferenceID, nil
		}
	}
	transfers, payments, err := j.readBank(ctx)
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
	if err := j.ask.read(ctx, j.base+"/balance", &has); err != nil {
		return "", err
	}
	if has.Available+has.Unapplied != want {
		return fmt.Sprintf("the bank's books make %d, the gateway has %+v", want, has), nil
	}
	if err := j.readEvents(ctx); err != nil {
		return "", err
	}
	deliveries, err := j.readReceivers()
	if err != nil {
		return "", err
	}
	done := map[string]bool{}
	for _, d := range deliveries {
		done[d.EventID] = done[d.EventID] || d.Status >= 200 && d.Status <= 299
	}
	for _, e := range j.events {
		if e.Data.WebhookURL != "" && !done[e.ID] {
			return "not delivered: " + e.ID, nil
		}
	}
	return "", nil
}

// placeAll asks again for what clients asked for and were not answered, so
// that they know what became of it.
func (j *judge) placeAll(ctx context.Context) error {
	list, err := j.readClients()
	if err != nil {
		return err
	}
	path := journalPath(j.folder, clientCount)
	journal, err := openJournal(path)
	if err != nil {
		return err
	}
	c := &client{ordeal: j.ordeal, number: clientCount, chance: newChance(j.seed, 99), journal: journal, ask: j.ask}
	for _, a := range list {
		if len(a.Acked) == 0 && a.Refused == "" {
			if err := c.place(ctx, a); err != nil {
				return err
			}
		}
	}
	return journal.close()
}

// gather reads all books.
func (j *judge) gather(ctx context.Context) (b *books, err error) {
	b = &books{orders: map[string][]order{}, read: map[string]reading{}, again: map[string]echo{}}
	if b.asked, err = j.readClients(); err != nil {
		return nil, err
	}
	if err := j.askAgain(ctx, b); err != nil {
		return nil, err
	}
	for _, kind := range []string{payin, payout} {
		if b.orders[kind], err = pages[order](ctx, j.ask, j.base+"/"+kind+"?limit=200"); err != nil {
			return nil, err
		}
	}
	if err := j.readEvents(ctx); err != nil {
		return nil, err
	}
	b.events = j.events
	if err := j.ask.read(ctx, j.base+"/balance", &b.balance); err != nil {
		return nil, err
	}
	if b.transfers, b.payments, err = j.readBank(ctx); err != nil {
		return nil, err
	}
	b.deliveries, err = j.readReceivers()
	return b, err
}

// askers is how many ask at once when nothing disturbs any more.
const askers = 8

// askAgain reads each acknowledged order back, and asks for each order again:
// the same, and another under the same reference.
func (j *judge) askAgain(ctx context.Context, b *books) error {
	var mu sync.Mutex
	var all sync.WaitGroup
	work := make(chan *asked)
	for range askers {
		all.Go(func() {
			for a := range work {
				e, r := j.echoOf(ctx, a)
				mu.Lock()
				b.again[a.Kind+" "+a.Reference] = e
				if len(a.Acked) > 0 {
					b.read[a.Kind+" "+orderOf(a.Acked).ID] = r
				}
				mu.Unlock()
			}
		})
	}
	for _, a := range b.asked {
		if a.Refused == "" {
			work <- a
		}
	}
	close(work)
	all.Wait()
	return context.Cause(ctx)
}

func (j *judge) echoOf(ctx context.Context, a *asked) (e echo, r reading) {
	if len(a.Acked) > 0 {
		got := j.ask.send(ctx, http.MethodGet, j.base+"/"+a.Kind+"/"+orderOf(a.Acked).ID, "")
		r = reading{got.status, orderOf(got.body)}
	}
	got := j.ask.send(ctx, http.MethodPost, j.base+"/"+a.Kind, string(a.Body))
	e = echo{status: got.status, replayed: got.replayed, order: orderOf(got.body)}
	amount := amountOf(a)
	other := bytes.Replace(a.Body, fmt.Appendf(nil, `"amount":%d`, amount), fmt.Appendf(nil, `"amount":%d`, amount+1), 1)
	got = j.ask.send(ctx, http.MethodPost, j.base+"/"+a.Kind, string(other))
	e.otherStatus, e.otherCode = got.status, got.problem().Code
	for _, f := range got.problem().Errors {
		e.otherFields = append(e.otherFields, f.Field)
	}
	return e, r
}

func (j *judge) readClients() ([]*asked, error) {
	var paths []string
	for n := range clientCount {
		paths = append(paths, journalPath(j.folder, n))
	}
	if path := journalPath(j.folder, clientCount); exists(path) {
		paths = append(paths, path)
	}
	return readJournals(paths)
}

func (j *judge) readReceivers() ([]delivery, error) {
	var paths []string
	for n := range receiverCount {
		paths = append(paths, receiverJournal(j.folder, n))
	}
	return readDeliveries(paths)
}

// readBank reads the bank's own lists.
func (j *judge) readBank(ctx context.Context) (transfers []transfer, payments []payment, err error) {
	if transfers, err = pages[transfer](ctx, j.bank, j.ordeal.bank+"/transfers?"); err != nil {
		return nil, nil, err
	}
	payments, err = pages[payment](ctx, j.bank, j.ordeal.bank+"/payments?")
	return transfers, payments, err
}

// pages reads a list to its end.
func pages[T any](ctx context.Context, c *caller, address string) (list []T, err error) {
	for cursor := ""; ; {
		var page struct {
			Data       []T
			NextCursor string
		}
		if err := c.read(ctx, address+after(cursor), &page); err != nil {
			return nil, err
		}
		list = append(list, page.Data...)
		if len(page.Data) == 0 || page.NextCursor == "" {
			return list, nil
		}
		cursor = page.NextCursor
	}
}

// after is how a query goes on from a cursor.
func after(cursor string) string {
	if cursor == "" {
		return ""
	}
	return "&cursor=" + url.QueryEscape(cursor)
}

// readEvents reads the events that came since it was last called.
func (j *judge) readEvents(ctx context.Context) error {
	for {
		var page struct {
			Data       []json.RawMessage
			NextCursor string
		}
		if err := j.ask.read(ctx, j.base+"/events?limit=200"+after(j.cursor), &page); err != nil {
			return err
		}
		for _, raw := range page.Data {
			e := event{digest: digest(raw)}
			if err := json.Unmarshal(raw, &e); err != nil {
				return fmt.Errorf("event %s: %w", raw, err)
			}
			j.events = append(j.events, e)
		}
		if j.cursor = page.NextCursor; len(page.Data) == 0 {
			return nil
		}
	}
}
