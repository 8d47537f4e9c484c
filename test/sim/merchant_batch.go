package sim

import (
	"bytes"
	"fmt"
	"net/http"
	"time"

	"github.com/porteira/porteira/test/sim/checker"
)

// placeBatch draws a batch of payouts and sends it.
func (m *merchant) placeBatch() {
	s := m.sim
	var orders []*order
	var items [][]byte
	for range 2 + s.number(4) {
		o := m.newOrder(checker.Payout, 1+s.random.Int64N(15_000))
		s.placed = append(s.placed, o)
		s.records.Orders = append(s.records.Orders, &o.ClientOrder)
		orders, items = append(orders, o), append(items, o.body)
	}
	body := fmt.Sprintf(`{"referenceId":"%s-batch-%d","items":[%s]}`, m.name, m.placed, bytes.Join(items, []byte(",")))
	m.sendBatch([]byte(body), orders, 0)
}

// sendBatch sends a batch until it is answered. If it is accepted, the request of each item
// is answered with the batch's payout; if it is refused, no item exists.
func (m *merchant) sendBatch(body []byte, orders []*order, tries int) {
	s := m.sim
	fault := s.drawFault(s.plan.clients, "client", none, clientFaults)
	if fault != "" {
		s.countFault("batch", fault, none)
	}
	used, began := s.usage(orders[0]), s.clock.Now()
	a := m.call(http.MethodPost, "/payout-batches", body, fault)
	s.trace.linef("%s batch of %s: %s %d %s", m.name, orders[0].Reference, fault, a.status, a.Code)
	switch {
	case a.status == http.StatusCreated:
		for _, o := range orders {
			m.send(o, 0)
		}
	case a.status == http.StatusUnprocessableEntity && (a.Code == "insufficient_balance" || a.Code == "limit_exceeded"):
		if a.Code == "limit_exceeded" {
			m.checkBatchLimit(orders, &a, used.Commits, began)
		}
		for _, o := range orders {
			if got := m.call(http.MethodGet, "/payout?referenceId="+o.Reference, nil, ""); got.status == http.StatusOK && !bytes.HasPrefix(got.body, []byte(`{"data":[]`)) {
				s.violate(checker.SingleOrder, m.id, "", fmt.Sprintf("a batch was refused, but %s exists: %s", o.Reference, got.body))
			}
		}
	case a.unavailable():
		wait := s.between(50*time.Millisecond, 3*time.Second)
		if tries > 20 {
			wait = s.between(time.Minute, 10*time.Minute)
		}
		s.after(wait, func() { m.sendBatch(body, orders, tries+1) })
	default:
		s.violate(checker.SingleOrder, m.id, "", fmt.Sprintf("the batch of %s is answered %d: %s", orders[0].Reference, a.status, a.body))
	}
}

// checkBatchLimit checks that a batch was refused for the first item that passes a limit with
// the items before it, and for that limit, before or after the request.
func (m *merchant) checkBatchLimit(orders []*order, a *answer, commits int, began time.Time) {
	s := m.sim
	s.coverage.count("limit", a.Limit, "any")
	var first int
	named := len(a.Errors) == 1
	if named {
		_, err := fmt.Sscanf(a.Errors[0].Field, "items[%d].amount", &first)
		named = err == nil && first >= 0 && first < len(orders)
	}
	fits := func(at time.Time) bool {
		for i, o := range orders[:first+1] {
			u := s.usage(o)
			for _, before := range orders[:i] {
				u.Add(before.Amount, before.PIXKey == o.PIXKey, at)
			}
			if i == first {
				return u.Exceeds(a.Limit, o.Amount, at)
			}
			if u.ExceedsAny(o.Amount, at) {
				return false
			}
		}
		return false
	}
	sure := !s.plan.clocksOff && s.usage(orders[0]).Commits == commits
	if !named || sure && !fits(began) && !fits(s.clock.Now()) {
		s.violate(checker.LimitsHold, m.id, "", fmt.Sprintf("the batch of %s is answered %s", orders[0].Reference, a.body))
	}
}
