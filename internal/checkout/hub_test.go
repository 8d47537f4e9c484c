package checkout_test

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/checkout"
	"github.com/porteira/porteira/internal/payment"
)

var (
	shopA, shopB   = payment.ID{1}, payment.ID{2}
	order1, order2 = payment.ID{11}, payment.ID{12}
)

// watchers is how many pages may wait in tests.
const watchers = 18

func watch(t *testing.T, h *checkout.Hub, merchant, order payment.ID) checkout.Watcher {
	t.Helper()
	w, ok := h.Watch(merchant, order)
	if !ok {
		t.Fatal("the hub is full")
	}
	return w
}

func TestHubWakesWaitingPages(t *testing.T) {
	t.Parallel()
	h := checkout.NewHub(watchers)
	h.Changed(shopA, order1) // no page waits
	one, again, other, foreign := watch(t, h, shopA, order1), watch(t, h, shopA, order1), watch(t, h, shopA, order2), watch(t, h, shopB, order1)
	h.Changed(shopA, order1)
	h.Changed(shopA, order1)
	if !one.Woken() || !again.Woken() || other.Woken() || foreign.Woken() || one.Woken() {
		t.Error("the pages woken are not those of the order")
	}
	if n := h.Waiting(); n != 4 {
		t.Errorf("%d pages wait", n)
	}
	h.Unwatch(one)
	h.Changed(shopA, order1)
	if one.Woken() || !again.Woken() {
		t.Error("a removed page was woken")
	}
	h.Unwatch(again)
	h.Unwatch(other)
	h.Unwatch(foreign)
	if n := h.Waiting(); n != 0 {
		t.Errorf("%d pages wait after all were removed", n)
	}
}

func TestHubLimits(t *testing.T) {
	t.Parallel()
	h := checkout.NewHub(watchers)
	var last checkout.Watcher
	for range checkout.WatchersPerOrder {
		last = watch(t, h, shopA, order1)
	}
	if _, ok := h.Watch(shopA, order1); ok {
		t.Error("more pages wait per order than allowed")
	}
	watch(t, h, shopA, order2)
	h.Unwatch(last)
	watch(t, h, shopA, order1)
	last2 := watch(t, h, shopB, order2)
	if _, ok := h.Watch(shopB, order1); ok {
		t.Error("more pages wait than allowed")
	}
	h.Unwatch(last2)
	h.Close()
	h.Close()
	if _, ok := h.Watch(shopB, order1); ok {
		t.Error("a closed hub accepts a page")
	}
}

// fakeEvents are the subjects of events by merchant.
type fakeEvents struct {
	subjects map[payment.ID][]payment.ID
	reads    int
	err      error
}

func (p *fakeEvents) LastEvent(_ context.Context, merchant payment.ID) (int64, error) {
	p.reads++
	return int64(len(p.subjects[merchant])), p.err
}

func (p *fakeEvents) SubjectsAfter(_ context.Context, merchant payment.ID, after int64, limit int) ([]payment.ID, int64, error) {
	p.reads++
	list := p.subjects[merchant][after:]
	return list, after + int64(len(list)), p.err
}

// Changes by other processes are read from the events of the merchants that
// have a page open.
func TestHubPollsOtherProcesses(t *testing.T) {
	t.Parallel()
	h, events := checkout.NewHub(watchers), &fakeEvents{subjects: map[payment.ID][]payment.ID{shopA: {order1, order2}, shopB: {order1}}}
	poll := func(want int) {
		t.Helper()
		if read, err := h.Poll(t.Context(), events); err != nil || read != want {
			t.Errorf("read %d, %v, want %d", read, err, want)
		}
	}
	poll(0)
	if events.reads != 0 {
		t.Error("the hub reads events although no page waits")
	}
	one, other := watch(t, h, shopA, order1), watch(t, h, shopA, order2)
	poll(0)
	if !one.Woken() || !other.Woken() {
		t.Error("the first poll did not wake all pages")
	}
	poll(0)
	if one.Woken() || other.Woken() {
		t.Error("pages were woken without an event")
	}
	events.subjects[shopA] = append(events.subjects[shopA], order2)
	poll(1)
	if one.Woken() || !other.Woken() {
		t.Error("the pages woken are not those of the changed order")
	}
	events.err = errors.New("no database")
	if _, err := h.Poll(t.Context(), events); err == nil {
		t.Error("the error is not returned")
	}
}

// lines reads a stream line by line.
func lines(t *testing.T, server *httptest.Server, path string) (next func() string, status int) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	got, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = got.Body.Close() })
	reader := bufio.NewReader(got.Body)
	return func() string {
		for {
			line, err := reader.ReadString('\n')
			if err != nil {
				return "END"
			}
			if line = strings.TrimSpace(line); line != "" {
				return line
			}
		}
	}, got.StatusCode
}

func expect(t *testing.T, next func() string, want ...string) {
	t.Helper()
	for _, w := range want {
		if got := next(); got != w {
			t.Fatalf("got line %q, want %q", got, w)
		}
	}
}

func TestStream(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	server := httptest.NewServer(h.pages)
	t.Cleanup(server.Close)
	path := h.order(payment.PIX)
	id := payment.ID{0: 1, 6: 0x70, 8: 0x80, 15: 9}
	change := func() {
		h.store.mu.Lock()
		o := h.store.orders[id]
		o.Version++
		h.store.orders[id] = o
		h.store.mu.Unlock()
		h.hub.Changed(h.store.merchant.ID, id)
	}
	next, status := lines(t, server, path+"/events?v=1")
	if status != http.StatusOK {
		t.Fatalf("status %d", status)
	}
	expect(t, next, "retry: 3000")
	change()
	expect(t, next, "event: change", "data: 2")
	h.clock.BlockUntil(1)
	h.clock.Advance(time.Minute)
	expect(t, next, ":")

	late, _ := lines(t, server, path+"/events?v=1") // its version is stale
	expect(t, late, "retry: 3000", "event: change", "data: 2")

	h.hub.Close()
	expect(t, next, "END")
	expect(t, late, "END")
	if _, status := lines(t, server, path+"/events?v=1"); status != http.StatusServiceUnavailable {
		t.Errorf("status %d after Close", status)
	}
	if _, status := lines(t, server, path+"/events?v=x"); status != http.StatusNotFound {
		t.Errorf("status %d for an invalid version", status)
	}
	if a := h.do(http.MethodHead, path+"/events?v=2", ""); a.Code != http.StatusOK || a.Header().Get("Content-Type") != "text/event-stream" {
		t.Errorf("status %d for HEAD of a stream", a.Code)
	}
	if a := h.get(path + "/state"); a.body != `{"version":2}` {
		t.Errorf("state %q", a.body)
	}
}

// A stream that could not read the order ends, so that the browser reconnects:
// the order may never change again.
func TestStreamEndsIfTheOrderCannotBeRead(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	server := httptest.NewServer(h.pages)
	t.Cleanup(server.Close)
	path := h.order(payment.PIX)
	id := payment.ID{0: 1, 6: 0x70, 8: 0x80, 15: 9}
	next, _ := lines(t, server, path+"/events?v=1")
	expect(t, next, "retry: 3000")
	failed := h.store.failOnce()
	h.hub.Changed(h.store.merchant.ID, id)
	<-failed
	h.store.mu.Lock()
	o := h.store.orders[id]
	o.Version++
	h.store.orders[id] = o
	h.store.mu.Unlock()
	h.hub.Changed(h.store.merchant.ID, id) // would make a stream that did not end send an event
	expect(t, next, "END")
}

// A page learns of a change that wakes nothing, as of a command of the operator beside the gateway:
// its payer must not pay what is paid. A read that fails meanwhile is made again.
func TestStreamReadsItsOrderAgain(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	server := httptest.NewServer(h.pages)
	t.Cleanup(server.Close)
	next, _ := lines(t, server, h.order(payment.PIX)+"/events?v=1")
	expect(t, next, "retry: 3000")
	h.clock.BlockUntil(1)
	h.store.mu.Lock()
	for id, o := range h.store.orders {
		o.Version, o.Status = 2, payment.PayinPaid
		h.store.orders[id] = o
	}
	h.store.mu.Unlock()
	failed := h.store.failOnce()
	h.clock.Advance(time.Minute)
	<-failed
	h.clock.BlockUntil(1)
	h.clock.Advance(time.Minute)
	expect(t, next, ":", ":", "event: change", "data: 2")
}

// A payer who paid just before the deadline, or before the order was canceled, learns it from the
// open page: the processor may report the payment after the order has ended.
func TestPagesLearnOfPayments(t *testing.T) {
	t.Parallel()
	for _, s := range payment.PayinStatuses {
		h := newHarness(t)
		a := h.get(h.order(payment.PIX, status(s)))
		waits := attr(a.byID("page"), "data-stream") != ""
		if want := s == payment.PayinPending || s == payment.PayinProcessing || s == payment.PayinExpired || s == payment.PayinCanceled; waits != want {
			t.Errorf("%s: the page waits for a payment: %v", s, waits)
		}
	}
}
