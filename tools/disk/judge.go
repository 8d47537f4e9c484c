package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// finish ends a trial: the clients stop, everything is settled, each client
// asks again for all that it ever asked for, and the books are compared.
func (t *trial) finish(name string) {
	t.crowd.end()
	if err := t.judge(); err != nil {
		t.blamef("%v", err)
	}
	t.found = append(t.found, t.crowd.strange...)
	t.checkLog()
	counts := t.disk.Counts()
	t.figures.add("trials of a "+name+" disk", 1)
	t.figures.add("fsyncs that failed", counts.FailedSyncs)
	t.figures.add("fsyncs delayed", counts.Slow)
	t.figures.add("writes refused, disk full", counts.Full)
	t.figures.add("writes refused, disk read-only", counts.ReadOnly)
	t.figures.add("writes undone by power cuts", counts.Lost)
	t.figures.add("refusals (503)", t.crowd.refused)
	t.figures.slowest("answer", t.crowd.longest)
}

func (t *trial) judge() error {
	if err := t.settle(); err != nil {
		return err
	}
	b := &books{asked: t.crowd.orders, read: map[string]reading{}, again: map[string]reading{}, transfers: map[string][]transfer{}, forgets: t.forgets}
	t.askAgain(b)
	if err := t.settle(); err != nil {
		return err
	}
	var err error
	if b.payouts, err = pages[order](t, "/payout?limit=200"); err != nil {
		return err
	}
	list, err := pages[transfer](t, "/sandbox/processor/transfers?")
	if err != nil {
		return err
	}
	for _, one := range list {
		b.transfers[one.ExternalID] = append(b.transfers[one.ExternalID], one)
	}
	b.verify = t.verify()
	t.found = append(t.found, compare(b)...)
	t.figures.add("orders compared", int64(len(b.asked)))
	t.figures.add("transfers at the bank", int64(len(list)))
	return nil
}

// askers is how many ask at once when nothing fails any more.
const askers = 8

// askAgain reads what was acknowledged back, and asks for each order again.
func (t *trial) askAgain(b *books) {
	var mu sync.Mutex
	var all sync.WaitGroup
	work := make(chan *asked)
	for range askers {
		all.Go(func() {
			for a := range work {
				var read answer
				id := orderOf(a.Acked).ID
				if len(a.Acked) > 0 {
					read = t.caller.send(t.ctx, http.MethodGet, "/"+a.Kind+"/"+id, "")
				}
				again := t.caller.send(t.ctx, http.MethodPost, "/"+a.Kind, string(a.Body))
				mu.Lock()
				b.read[a.Kind+" "+id] = reading{read.status, false, orderOf(read.body)}
				b.again[a.Kind+" "+a.Reference] = reading{again.status, again.replayed, orderOf(again.body)}
				mu.Unlock()
			}
		})
	}
	for _, a := range b.asked {
		work <- a
	}
	close(work)
	all.Wait()
}

// How long what was left hanging may take to come to its end, in real time and
// by the sandbox's clock, which is moved on so that waits of hours pass.
const (
	settleMax  = 2 * time.Minute
	settleLook = 250 * time.Millisecond
	patience   = 3 * time.Second // before the clock is moved
)

// settle waits until every payout is final.
func (t *trial) settle() error {
	began, step := clock.Monotonic(), 10*time.Second
	for {
		open := ""
		for _, status := range []string{"PENDING", "PROCESSING"} {
			list, err := page[order](t, "/payout?limit=1&status="+status)
			if err != nil {
				return err
			}
			if len(list.Data) > 0 {
				open = list.Data[0].ReferenceID + " is " + status
			}
		}
		took := clock.Monotonic() - began
		if open == "" {
			t.figures.slowest("time to settle", took)
			return nil
		}
		if took > settleMax {
			return fmt.Errorf("%v after the last fault payouts are not final: %s", took, open)
		}
		if took > patience {
			t.caller.send(t.ctx, http.MethodPost, "/sandbox/clock", fmt.Sprintf(`{"advance":%d}`, int(step.Seconds())))
			step = min(2*step, time.Hour)
		}
		if !wait(t.ctx, settleLook) {
			return context.Cause(t.ctx)
		}
	}
}

// listed is a page of a list.
type listed[T any] struct {
	Data       []T    `json:"data"`
	NextCursor string `json:"nextCursor"`
}

// page reads one page; nothing fails any more, so it must be answered.
func page[T any](t *trial, path string) (p listed[T], err error) {
	got := t.caller.send(t.ctx, http.MethodGet, path, "")
	if got.status != http.StatusOK {
		return p, fmt.Errorf("GET %s is answered %d: %s", path, got.status, got.body)
	}
	err = json.Unmarshal(got.body, &p)
	return p, err
}

// pages reads a list to its end.
func pages[T any](t *trial, path string) (list []T, err error) {
	for cursor := ""; ; {
		address := path
		if cursor != "" {
			address += "&cursor=" + url.QueryEscape(cursor)
		}
		p, err := page[T](t, address)
		if err != nil {
			return nil, err
		}
		list = append(list, p.Data...)
		if len(p.Data) == 0 || p.NextCursor == "" {
			return list, nil
		}
		cursor = p.NextCursor
	}
}
