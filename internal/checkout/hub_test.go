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
		t.Fatal("there is no room")
	}
	return w
}

func TestHubWakesWhoWaits(t *testing.T) {
	t.Parallel()
	h := checkout.NewHub(watchers)
	h.Changed(shopA, order1) // nobody waits
	one, again, other, foreign := watch(t, h, shopA, order1), watch(t, h, shopA, order1), watch(t, h, shopA, order2), watch(t, h, shopB, order1)
	h.Changed(shopA, order1)
	h.Changed(shopA, order1)
	if !one.Woken() || !again.Woken() || other.Woken() || foreign.Woken() || one.Woken() {
		t.Error("others were woken, or not those")
	}
	if n := h.Waiting(); n != 4 {
		t.Errorf("%d wait", n)
	}
	h.Leave(one)
	h.Changed(shopA, order1)
	if one.Woken() || !again.Woken() {
		t.Error("who left was woken")
	}
	h.Leave(again)
	h.Leave(other)
	h.Leave(foreign)
	if n := h.Waiting(); n != 0 {
		t.Errorf("%d wait after all left", n)
	}
}

func TestHubHasRoomForSoMany(t *testing.T) {
	t.Parallel()
	h := checkout.NewHub(watchers)
	var last checkout.Watcher
	for range checkout.WatchersPerOrder {
		last = watch(t, h, shopA, order1)
	}
	if _, ok := h.Watch(shopA, order1); ok {
		t.Error("one too many")
	}
	watch(t, h, shopA, order2)
	h.Leave(last)
	watch(t, h, shopA, order1)
	last2 := watch(t, h, shopB, order2)
	if _, ok := h.Watch(shopB, order1); ok {
		t.Error("more wait than may")
	}
	h.Leave(last2)
	h.Close()
	h.Close()
	if _, ok := h.Watch(shopB, order1); ok {
		t.Error("it is closed")
	}
}

// paper is what happened, by merchant.
type paper struct {
	subjects map[payment.ID][]payment.ID
	reads    int
	broken   error
}

func (p *paper) LastEvent(_ context.Context, merchant payment.ID) (int64, error) {
	p.reads++
	return int64(len(p.subjects[merchant])), p.broken
}

func (p *paper) SubjectsAfter(_ context.Context, merchant payment.ID, after int64, limit int) ([]payment.ID, int64, error) {
	p.reads++
	list := p.subjects[merchant][after:]
	return list, after + int64(len(list)), p.broken
}

// What another process did is read off the events of those merchants for whom
// somebody waits.
func TestHubPolls(t *testing.T) {
	t.Parallel()
	h, news := checkout.NewHub(watchers), &paper{subjects: map[payment.ID][]payment.ID{shopA: {order1, order2}, shopB: {order1}}}
	poll := func(want int) {
		t.Helper()
		if did, err := h.Poll(t.Context(), news); err != nil || did != want {
			t.Errorf("read %d, %v, want %d", did, err, want)
		}
	}
	poll(0)
	if news.reads != 0 {
		t.Error("it reads though nobody waits")
	}
	one, other := watch(t, h, shopA, order1), watch(t, h, shopA, order2)
	poll(0)
	if !one.Woken() || !other.Woken() {
		t.Error("what happened before the first look is not known, and they were not woken")
	}
	poll(0)
	if one.Woken() || other.Woken() {
		t.Error("nothing happened, and they were woken")
	}
	news.subjects[shopA] = append(news.subjects[shopA], order2)
	poll(1)
	if one.Woken() || !other.Woken() {
		t.Error("not the one whose order changed was woken")
	}
	news.broken = errors.New("no database")
	if _, err := h.Poll(t.Context(), news); err == nil {
		t.Error("an error is lost")
	}
}

// lines reads a stream, a line at a time.
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
			t.Fatalf("the stream says %q, want %q", got, w)
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
		h.shop.mu.Lock()
		o := h.shop.orders[id]
		o.Version++
		h.shop.orders[id] = o
		h.shop.mu.Unlock()
		h.hub.Changed(h.shop.merchant.ID, id)
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

	late, _ := lines(t, server, path+"/events?v=1") // it shows what is old already
	expect(t, late, "retry: 3000", "event: change", "data: 2")

	h.hub.Close()
	expect(t, next, "END")
	expect(t, late, "END")
	if _, status := lines(t, server, path+"/events?v=1"); status != http.StatusServiceUnavailable {
		t.Errorf("status %d while it stops", status)
	}
	if _, status := lines(t, server, path+"/events?v=x"); status != http.StatusNotFound {
		t.Errorf("status %d for no version", status)
	}
	if a := h.ask(http.MethodHead, path+"/events?v=2", ""); a.Code != http.StatusOK || a.Header().Get("Content-Type") != "text/event-stream" {
		t.Errorf("status %d for the head of a stream, which never ends", a.Code)
	}
	if a := h.get(path + "/state"); a.body != `{"version":2}` {
		t.Errorf("state %q", a.body)
	}
}

// A stream that could not read the news ends, so that the browser comes again:
// the order may never change once more.
func TestStreamThatCannotReadEnds(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	server := httptest.NewServer(h.pages)
	t.Cleanup(server.Close)
	path := h.order(payment.PIX)
	id := payment.ID{0: 1, 6: 0x70, 8: 0x80, 15: 9}
	next, _ := lines(t, server, path+"/events?v=1")
	expect(t, next, "retry: 3000")
	failed := h.shop.failOnce()
	h.hub.Changed(h.shop.merchant.ID, id)
	<-failed
	h.shop.mu.Lock()
	o := h.shop.orders[id]
	o.Version++
	h.shop.orders[id] = o
	h.shop.mu.Unlock()
	h.hub.Changed(h.shop.merchant.ID, id) // makes one that stays speak
	expect(t, next, "END")
}
