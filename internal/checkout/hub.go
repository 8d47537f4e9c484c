package checkout

import (
	"context"
	"sync"

	"github.com/porteira/porteira/internal/payment"
)

// Limits of the hub.
const (
	// watchersPerOrder is how many pages of one order may.
	watchersPerOrder = 16
	// newsPerMerchant is how many events of a merchant are read at once.
	newsPerMerchant = 5_000
)

// News reads what happened to a merchant's orders: [store.Store].
type News interface {
	LastEvent(ctx context.Context, merchant payment.ID) (int64, error)
	SubjectsAfter(ctx context.Context, merchant payment.ID, after int64, limit int) (subjects []payment.ID, last int64, err error)
}

// Hub wakes the pages whose order changed. Waiting costs a page a channel:
// there is no query and no timer per page.
type Hub struct {
	most      int // pages that may wait at once
	mu        sync.Mutex
	waiting   int
	merchants map[payment.ID]*watched
	closing   chan struct{}
	closed    bool
}

// watched are the orders of one merchant that somebody looks at.
type watched struct {
	orders map[payment.ID][]*watcher
	seen   int64 // number of the last event that Poll read; -1 before the first
}

// watcher is one page that waits.
type watcher struct {
	merchant, order payment.ID
	wake            chan struct{} // holds one: wakes coalesce
}

// NewHub returns a hub that nobody waits at, with room for so many pages. Each
// takes a connection: merchants' programs need some too.
func NewHub(most int) *Hub {
	return &Hub{most: most, merchants: map[payment.ID]*watched{}, closing: make(chan struct{})}
}

// Changed wakes the pages of an order. It does not block.
func (h *Hub) Changed(merchant, order payment.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if m := h.merchants[merchant]; m != nil {
		m.wake(order)
	}
}

func (m *watched) wake(order payment.ID) {
	for _, w := range m.orders[order] {
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

// Close ends all waiting, now and from now on. It may be called again.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.closed = true
		close(h.closing)
	}
}

// Waiting is how many pages wait.
func (h *Hub) Waiting() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.waiting
}

// watch begins to wait for changes of an order; nil where there is no room.
// leave must be called for it.
func (h *Hub) watch(merchant, order payment.ID) *watcher {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.merchants[merchant]
	if h.closed || h.waiting >= h.most || m != nil && len(m.orders[order]) >= watchersPerOrder {
		return nil
	}
	if m == nil {
		m = &watched{orders: map[payment.ID][]*watcher{}, seen: -1}
		h.merchants[merchant] = m
	}
	w := &watcher{merchant: merchant, order: order, wake: make(chan struct{}, 1)}
	m.orders[order] = append(m.orders[order], w)
	h.waiting++
	return w
}

func (h *Hub) leave(w *watcher) {
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

// Poll wakes the pages whose order was changed by another process on the same
// database, which Changed does not tell of: it reads what is new in the events
// of those merchants that have a page open, however many that are. It returns
// how many events it read.
func (h *Hub) Poll(ctx context.Context, news News) (did int, err error) {
	for merchant, after := range h.marks() {
		var subjects []payment.ID
		var last int64
		if after < 0 {
			last, err = news.LastEvent(ctx, merchant)
		} else {
			subjects, last, err = news.SubjectsAfter(ctx, merchant, after, newsPerMerchant)
		}
		if err != nil {
			return did, err
		}
		did += len(subjects)
		h.tell(merchant, after, last, subjects)
	}
	return did, nil
}

// marks are how far each merchant's events were read.
func (h *Hub) marks() map[payment.ID]int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := make(map[payment.ID]int64, len(h.merchants))
	for merchant, m := range h.merchants {
		list[merchant] = m.seen
	}
	return list
}

func (h *Hub) tell(merchant payment.ID, after, last int64, subjects []payment.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.merchants[merchant]
	if m == nil || m.seen != after {
		return // they left, and perhaps others came: the next Poll begins anew
	}
	m.seen = last
	if after < 0 {
		// What happened between a page's reading and this mark is not known.
		for order := range m.orders {
			m.wake(order)
		}
	}
	for _, order := range subjects {
		m.wake(order)
	}
}
