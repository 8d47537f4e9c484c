package httpapi_test

import (
	"reflect"
	"slices"
	"time"
)

// The model predicts the answers of a gateway from the contract alone.

// modelMoney is the largest amount of an order, in cents.
const modelMoney = 99_999_999_999

// modelMerchant is a merchant's balances and orders.
type modelMerchant struct {
	available, held, unapplied, disputed, owed int64
	orders                                     []*modelOrder // oldest first
}

// modelOrder is a pay-in or a payout, with its state at the bank.
type modelOrder struct {
	owner     *modelMerchant
	actor     int
	kind      string // payin or payout: the path
	reference string
	sent      map[string]any // the first request
	amount    int64
	status    string
	paid      int64
	events    []string
	expires   time.Time

	id     string
	shown  map[string]any // the fields that never change, as first returned
	bank   string         // open, expired or failed; processing, paid, failed; "" if not sent
	back   bool           // the payout was returned
	income []*modelPayment
}

// modelPayment is a payment received.
type modelPayment struct {
	amount   int64
	disputes []*modelDispute
}

// modelDispute is a dispute of a payment.
type modelDispute struct {
	amount int64  // disputed at the bank
	held   int64  // of it, at the gateway
	state  string // at the bank: open, won, lost, reversed
	ours   string // at the gateway; "" if it did not apply it
}

func newModel() (m [2]*modelMerchant) {
	for i := range m {
		m[i] = &modelMerchant{available: openings[i]}
	}
	return m
}

// credit adds money to available, after it has repaid debt.
func (m *modelMerchant) credit(amount int64) {
	m.available += amount
	repaid := min(m.available, m.owed)
	m.available, m.owed = m.available-repaid, m.owed-repaid
}

func (m *modelMerchant) find(kind, reference string) *modelOrder {
	for _, o := range m.orders {
		if o.kind == kind && o.reference == reference {
			return o
		}
	}
	return nil
}

// expectation is the right answer to a request to create an order.
type expectation struct {
	status    int
	code      string
	differing []string    // of a conflict
	order     *modelOrder // of 201
	fresh     bool
}

// create predicts the answer to a request.
func (m *modelMerchant) create(actor int, kind string, r modelRequest) expectation {
	if r.malformed != "" {
		return expectation{status: 400, code: r.malformed}
	}
	if o := m.find(kind, r.reference); o != nil {
		if differing := differing(o.sent, r.fields); len(differing) > 0 {
			return expectation{status: 409, code: "reference_conflict", differing: differing}
		}
		return expectation{status: 201, order: o}
	}
	amount, isNumber := r.fields["amount"].(int64)
	most := int64(modelMoney)
	if r.fields["paymentMethod"] == "BOLETO" {
		most = 9_999_999_999
	}
	if r.invalid || !isNumber || amount < 1 || amount > most {
		return expectation{status: 422, code: "validation_failed"}
	}
	o := &modelOrder{owner: m, actor: actor, kind: kind, reference: r.reference, sent: r.fields, amount: amount, status: "PENDING"}
	if kind == "payin" {
		o.bank = "open"
	} else if amount > m.available {
		return expectation{status: 422, code: "insufficient_balance"}
	} else {
		m.available, m.held = m.available-amount, m.held+amount
	}
	m.orders = append(m.orders, o)
	return expectation{status: 201, order: o, fresh: true}
}

// differing are the members in which two requests differ; null is absent.
func differing(a, b map[string]any) (names []string) {
	for name, value := range a {
		if value != nil && !reflect.DeepEqual(value, b[name]) {
			names = append(names, name)
		}
	}
	for name, value := range b {
		if value != nil && a[name] == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (o *modelOrder) become(status, event string) {
	o.status = status
	o.events = append(o.events, o.kind+"."+event)
}

// cancel cancels an order; false if that is not allowed.
func (o *modelOrder) cancel() bool {
	if o.status == "PENDING" {
		o.become("CANCELED", "canceled")
		if o.kind == "payout" {
			o.owner.held -= o.amount
			o.owner.credit(o.amount)
		}
	}
	return o.status == "CANCELED"
}

// act makes something happen to a pay-in at its bank; false if it cannot.
func (o *modelOrder) act(action string, amount int64) bool {
	var last *modelPayment
	if len(o.income) > 0 {
		last = o.income[len(o.income)-1]
	}
	switch action {
	case "pay":
		if o.bank == "failed" {
			return false
		}
		if amount == 0 {
			amount = o.amount
		}
		o.receive(amount)
	case "expire", "fail":
		end := action + "ed"
		if action == "expire" {
			end = "expired"
		}
		if last != nil || o.bank != "open" && o.bank != end {
			return false
		}
		if o.bank = end; o.status == "PENDING" {
			o.become(map[string]string{"expired": "EXPIRED", "failed": "FAILED"}[end], end)
		}
	default:
		if last == nil || !last.move(action) {
			return false
		}
	}
	o.followDisputes()
	return true
}

// receive books a payment: up to the open amount to the order, the rest unapplied.
func (o *modelOrder) receive(amount int64) {
	o.income = append(o.income, &modelPayment{amount: amount})
	rest := amount
	if lacks := o.amount - o.paid; lacks > 0 && slices.Contains([]string{"PENDING", "EXPIRED", "CANCELED"}, o.status) {
		taken := min(lacks, amount)
		o.paid, rest = o.paid+taken, amount-taken
		if o.paid == o.amount {
			o.become(o.disputed(), "paid")
		} else {
			o.become(o.status, "underpaid")
		}
		o.owner.credit(taken)
	}
	if rest > 0 {
		o.owner.unapplied += rest
		o.become(o.status, "overpaid")
	}
}

// move changes the dispute of a payment at the bank.
func (p *modelPayment) move(action string) bool {
	free, state := p.amount, ""
	for _, d := range p.disputes {
		if state = d.state; state == "open" || state == "lost" {
			free -= d.amount
		}
	}
	switch {
	case action == "dispute" && state != "open" && free > 0:
		p.disputes = append(p.disputes, &modelDispute{amount: free, state: "open"})
		return true
	case action == "win" && state == "open":
		state = "won"
	case action == "win" && state == "lost":
		state = "reversed"
	case action == "lose" && state == "open":
		state = "lost"
	default:
		return false
	}
	p.disputes[len(p.disputes)-1].state = state
	return true
}

// followDisputes applies the bank's disputes of an order at the gateway.
func (o *modelOrder) followDisputes() {
	for _, p := range o.income {
		for _, d := range p.disputes {
			if left := o.undisputed(); d.ours == "" && left > 0 {
				d.ours, d.held = "open", min(d.amount, left)
				taken := min(o.owner.available, d.held)
				o.owner.available, o.owner.owed, o.owner.disputed = o.owner.available-taken, o.owner.owed+d.held-taken, o.owner.disputed+d.held
				o.becomeDisputed("disputed")
			}
			if d.ours == "open" && (d.state == "lost" || d.state == "reversed") {
				d.ours = "lost"
				o.owner.disputed -= d.held
				o.becomeDisputed("chargeback")
			}
			if won := d.ours == "open" && d.state == "won"; won || d.ours == "lost" && d.state == "reversed" {
				if d.ours = d.state; won {
					o.owner.disputed -= d.held
				}
				o.becomeDisputed("dispute_won")
				o.owner.credit(d.held)
			}
		}
	}
}

// held is what the gateway has of an order's disputes in a state.
func (o *modelOrder) held(state string) (sum int64) {
	for _, p := range o.income {
		for _, d := range p.disputes {
			if d.ours == state {
				sum += d.held
			}
		}
	}
	return sum
}

// undisputed is what can still be disputed of an order.
func (o *modelOrder) undisputed() int64 {
	sum := -o.held("open") - o.held("lost")
	for _, p := range o.income {
		sum += p.amount
	}
	return sum
}

// disputed is the status that the disputes of an order leave: while one is open it stays
// DISPUTED, or CHARGEBACK. An order that is not paid in full keeps its status.
func (o *modelOrder) disputed() string {
	switch {
	case o.paid < o.amount:
		return o.status
	case o.held("open") > 0 && o.status == "CHARGEBACK", o.held("open") == 0 && o.held("lost") > 0:
		return "CHARGEBACK"
	case o.held("open") > 0:
		return "DISPUTED"
	default:
		return "PAID"
	}
}

func (o *modelOrder) becomeDisputed(event string) { o.become(o.disputed(), event) }

// send sends a pending payout to the bank.
func (o *modelOrder) send() {
	if o.kind == "payout" && o.status == "PENDING" {
		o.bank = "processing"
		o.become("PROCESSING", "processing")
	}
}

// end makes something happen to a payout at its bank; false if it cannot.
func (o *modelOrder) end(action string) bool {
	switch {
	case o.bank == "" || action == "complete" && o.bank == "failed" || action == "fail" && o.bank == "paid" || action == "return" && o.bank == "failed":
		return false
	case action == "fail" && o.bank == "processing":
		o.bank = "failed"
		o.become("FAILED", "failed")
		o.owner.held -= o.amount
		o.owner.credit(o.amount)
	case o.bank == "processing":
		o.bank = "paid"
		o.become("COMPLETED", "completed")
		o.owner.held -= o.amount
	}
	if action == "return" && !o.back {
		o.back = true
		o.become("RETURNED", "returned")
		o.owner.credit(o.amount)
	}
	return true
}

// pass applies the changes that are due at now.
func (o *modelOrder) pass(now time.Time) {
	if o.kind == "payout" && o.bank == "processing" {
		o.end("complete")
	}
	if o.kind == "payin" && o.status == "PENDING" && !o.expires.After(now) {
		o.become("EXPIRED", "expired")
	}
}
