package checkout

import (
	"context"
	"sync"

	"github.com/porteira/porteira/internal/payment"
)

// Limits of the hub.
const (
	// watchersPerOrder is how many pages of one order may wait.
	watchersPerOrder = 16
	// eventsPerPoll is how many events of a merchant one poll reads.
	eventsPerPoll = 5_000
)

// Events reads the merchants' event logs: [store.Store].
type Events interface {
	LastEvent(ctx context.Context, merchant payment.ID) (int64, error)
	SubjectsAfter(ctx context.Context, merchant payment.ID, after int64, limit int) (subjects []payment.ID, last int64, err error)
}

// Hub wakes the pages whose order changed. A waiting page costs a channel, and a query
// every keepAliveInterval.
type Hub struct {
	max       int // pages that may wait at the same time
	mu        sync.Mutex
	waiting   int
	merchants map[payment.ID]*merchantWatchers
	closing   chan struct{}
	closed    bool
}

// merchantWatchers are the watched orders of one merchant.
type merchantWatchers struct {
	orders    map[payment.ID][]*watcher
	lastEvent int64 // number of the last event that Poll read; -1 before the first
}

// watcher is one waiting page.
type watcher struct {
	merchant, order payment.ID
	wake            chan struct{} // capacity 1: wakes coalesce
}

// NewHub returns an empty hub for at most max pages. Each page uses a
// connection, and the API needs connections too.
func NewHub(max int) *Hub {
	return &Hub{max: max, merchants: map[payment.ID]*merchantWatchers{}, closing: make(chan struct{})}
}

// Changed wakes the pages of an order. It does not block.
func (h *Hub) Changed(merchant, order payment.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if m := h.merchants[merchant]; m != nil {
		m.wake(order)
	}
}

func (m *merchantWatchers) wake(order payment.ID) {
	for _, w := range m.orders[order] {
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

// Close ends all waiting, now and in future. It may be called again.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.closed = true
		close(h.closing)
	}
}

// Waiting is the number of pages that wait.
func (h *Hub) Waiting() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.waiting
}

// watch registers a page that waits for changes of an order; nil if the hub is
// full or closed. unwatch must be called for it.
func (h *Hub) watch(merchant, order payment.ID) *watcher {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.merchants[merchant]
	if h.closed || h.waiting >= h.max || m != nil && len(m.orders[order]) >= watchersPerOrder {
		return nil
	}
	if m == nil {
		m = &merchantWatchers{orders: map[payment.ID][]*watcher{}, lastEvent: -1}
		h.merchants[merchant] = m
	}
	w := &watcher{merchant: merchant, order: order, wake: make(chan struct{}, 1)}
	m.orders[order] = append(m.orders[order], w)
	h.waiting++
	return w
}

func (h *Hub) unwatch(w *watcher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.merchants[w.merchant]
	list := m.orders[w.order]
	for i := range list {
		if list[i] == w {
			list[i] = list[len(list)-1]
			list[len(list)-1] = nil
			m.orders[w.order] = list[:len(list)-1]
			h.waiting--
			break
		}
	}
	if len(m.orders[w.order]) == 0 {
		delete(m.orders, w.order)
	}
	if len(m.orders) == 0 {
		delete(h.merchants, w.merchant)
	}
}

// Poll wakes the pages whose order another process changed, which does not call
// Changed: it reads the new events of the merchants that have a page open. It
// returns how many events it read. The cost does not depend on the number of
// pages.
func (h *Hub) Poll(ctx context.Context, events Events) (count int, err error) {
	for merchant, after := range h.positions() {
		var subjects []payment.ID
		var last int64
		if after < 0 {
			last, err = events.LastEvent(ctx, merchant)
		} else {
			subjects, last, err = events.SubjectsAfter(ctx, merchant, after, eventsPerPoll)
		}
		if err != nil {
			return count, err
		}
		count += len(subjects)
		h.notify(merchant, after, last, subjects)
	}
	return count, nil
}

// positions are the numbers of the last events read, by merchant.
func (h *Hub) positions() map[payment.ID]int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := make(map[payment.ID]int64, len(h.merchants))
	for merchant, m := range h.merchants {
		list[merchant] = m.lastEvent
	}
	return list
}

func (h *Hub) notify(merchant payment.ID, after, last int64, subjects []payment.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.merchants[merchant]
	if m == nil || m.lastEvent != after {
		return // the pages were closed, and perhaps others opened: the next Poll starts over
	}
	m.lastEvent = last
	if after < 0 {
		// Changes between a page's read and this position are unknown.
		for order := range m.orders {
			m.wake(order)
		}
	}
	for _, order := range subjects {
		m.wake(order)
	}
}
