package sim

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
	"github.com/porteira/porteira/test/sim/checker"
)

// refundAsks are the ways in which a merchant asks to refund a pay-in.
var refundAsks = []string{"all", "half", "part", "too_much", "several", "unknown_order"}

// refundActs are the actions of a merchant's program on a refund that was acknowledged.
var refundActs = []string{"repeated", "changed", "at_once", "read"}

// refundBankActs are the actions of the bank on a refund.
var refundBankActs = []string{"complete", "fail"}

// Times after a pay-in was acknowledged.
const (
	refundMin = time.Second
	refundMax = 4 * time.Minute
)

// scheduleRefunds schedules refunds of a pay-in: of its merchant, and at the bank's panel.
func (s *simulation) scheduleRefunds(o *order) {
	for n := 0; n < 3 && s.chance(s.plan.refunds); n++ {
		s.after(s.between(refundMin, refundMax), func() { s.merchantOf(o).placeRefund(o) })
	}
	if s.chance(s.plan.panel) {
		s.after(s.between(refundMin, refundMax), func() { s.refundAtPanel(o) })
	}
}

// placeRefund draws refunds of a pay-in and requests them.
func (m *merchant) placeRefund(of *order) {
	s := m.sim
	if of.ID == "" {
		return // a copy of the database lacks it
	}
	state := s.stateOf(of.ExternalID)
	ask := s.nextInTurn("refund asks", state, refundAsks)
	s.coverage.count("refund asked", ask, state)
	switch ask {
	case "all":
		m.requestRefund(of, 0)
	case "half":
		m.requestRefund(of, (of.Amount+1)/2)
	case "part":
		m.requestRefund(of, 1+s.random.Int64N(of.Amount))
	case "too_much":
		m.requestRefund(of, of.Amount+1+s.random.Int64N(of.Amount))
	case "several":
		for range 3 {
			s.after(0, func() { m.requestRefund(of, (of.Amount+2)/3) })
		}
	case "unknown_order":
		m.refundUnknown(of)
	}
	if s.chance(s.plan.payers / 4) { // while the refund is in flight
		s.after(s.between(0, 3*time.Second), func() {
			if !s.faultsOff {
				s.actAsPayer(of, "dispute")
			}
		})
	}
}

// requestRefund sends a new refund; an amount of 0 is all that is left.
func (m *merchant) requestRefund(of *order, amount int64) {
	s := m.sim
	m.refunds++
	o := &order{of: of, asked: amount, ClientOrder: checker.ClientOrder{
		Kind: checker.Refund, Merchant: m.id, Reference: fmt.Sprintf("%s-refund-%d", m.name, m.refunds), Amount: amount, WebhookURL: of.WebhookURL,
	}}
	body := map[string]any{"referenceId": o.Reference}
	if amount != 0 {
		body["amount"] = amount
	}
	if s.chance(300) {
		body["reason"] = "the order was canceled"
	}
	o.body, _ = json.Marshal(body, json.Deterministic(true)) // texts and numbers always marshal
	m.request(o)
}

// refundUnknown refunds a pay-in that does not exist.
func (m *merchant) refundUnknown(of *order) {
	id := []byte(of.ID)
	slices.Reverse(id[24:])
	if string(id) == of.ID {
		return
	}
	a := m.call(http.MethodPost, "/payin/"+string(id)+"/refunds", []byte(`{"referenceId":"of-nothing"}`), "")
	if a.status != http.StatusNotFound && !a.unavailable() {
		m.sim.violate(checker.SingleOrder, m.id, "", fmt.Sprintf("the refund of an unknown pay-in is answered %d: %s", a.status, a.body))
	}
}

// lostTries is how often a refund waits for its pay-in, which a copy of the database lacked
// and whose request may be repeated.
const lostTries = 5

// sendRefund sends a refund until it is answered.
func (m *merchant) sendRefund(o *order, tries int) {
	s := m.sim
	if o.of.ID == "" {
		if tries < lostTries && !s.faultsOff {
			s.after(s.between(time.Minute, 2*time.Minute), func() { m.sendRefund(o, tries+1) })
		}
		return
	}
	o.Refused = false
	state := s.stateOf(o.of.ExternalID)
	fault := s.drawFault(s.plan.clients, "client, refund", state, clientFaults)
	if fault != "" {
		s.countFault("client, refund", fault, state)
	}
	before, _ := s.checker.Refundable(o.of.ExternalID)
	a := m.call(http.MethodPost, o.path(), o.body, fault)
	s.trace.linef("%s refund %s of %s: %s %d %s", m.name, o.Reference, o.of.Reference, fault, a.status, a.Code)
	switch {
	case a.status == http.StatusCreated:
		m.recordAnswer(o, &a)
	case a.unavailable(), a.status == http.StatusGatewayTimeout, a.status == http.StatusBadGateway:
		s.sendAgain(tries, func() { m.sendRefund(o, tries+1) })
	default:
		m.checkRefusal(o, &a, before)
	}
}

// checkRefusal checks that a refund was refused for a reason that was true before or after
// its request.
func (m *merchant) checkRefusal(o *order, a *answer, before checker.Refundable) {
	s := m.sim
	after, ok := s.checker.Refundable(o.of.ExternalID)
	s.coverage.count("refund refused", a.Code, after.Status)
	o.Refused = true
	fits := func(r checker.Refundable) bool {
		amount := o.asked
		if amount == 0 {
			amount = r.Left
		}
		switch a.Code {
		case "invalid_state":
			return !checker.CanBeRefunded(r.Status, r.Paid)
		case "validation_failed":
			return r.Left == 0 || amount > r.Left
		case "refund_not_possible":
			return o.of.Method == "BOLETO" || amount > r.Payments
		case "insufficient_balance":
			return amount > r.Available
		default:
			return false
		}
	}
	// A refund of several payments that a copy of the database lacks is found as several refunds.
	if !ok && a.Code == "not_found" || o.lost && a.Code == "reference_conflict" {
		return
	}
	// Between the two commits of others may have made a reason true, and another one wrong.
	if !fits(before) && !fits(after) && after.Commits-before.Commits <= 1 || o.ID != "" {
		s.violate(checker.SingleRefund, m.id, o.of.ID, fmt.Sprintf("refund %s of %d is answered %d: %s; %+v", o.Reference, o.asked, a.status, a.body, after))
	}
}

// actOnRefund performs an action of clients on an acknowledged refund.
func (m *merchant) actOnRefund(o *order) {
	s := m.sim
	state := s.stateOf(o.ExternalID)
	act := s.nextInTurn("client acts, refund", state, refundActs)
	s.countFault("client, refund", act, state)
	switch act {
	case "repeated":
		m.sendRefund(o, 0)
	case "at_once":
		m.sendRefund(o, 0)
		m.sendRefund(o, 0)
	case "changed":
		if o.asked != 0 {
			m.sendChanged(o)
		}
	case "read":
		m.read(o)
		m.readForeign(o)
	}
}

// scheduleRefundBank schedules the actions of the bank on a refund.
func (s *simulation) scheduleRefundBank(o *order) {
	for range 2 {
		if s.chance(s.plan.takenBack) {
			// Half of the acts come before the bank has completed the refund.
			s.after(s.between(0, pick(s, []time.Duration{4 * time.Second, time.Minute})), func() { s.actOnRefund(o) })
		}
	}
}

// actOnRefund completes or fails a part of a refund at the bank.
func (s *simulation) actOnRefund(o *order) {
	ids := s.checker.RefundParts(o.ExternalID)
	if s.faultsOff || len(ids) == 0 {
		return
	}
	id := pick(s, ids)
	state := s.stateOf(id)
	act := s.nextInTurn("bank, refund", state, refundBankActs)
	err := s.contractOf(o.of.ExternalID).control.Refund(s.ctx, id, act)
	s.trace.linef("bank: %s refund %s: %v", act, o.Reference, err)
	if err == nil {
		s.countFault("bank, refund", act, state)
		s.scheduleMoreActs(o.of)
	}
}

// refundAtPanel refunds a payment at the bank's own panel.
func (s *simulation) refundAtPanel(o *order) {
	if s.faultsOff {
		return
	}
	c := s.contractOf(o.ExternalID)
	var charge bankapi.Charge
	if err := s.bank.get(c.path()+"/charges/"+o.ExternalID, &charge); err != nil || len(charge.Payments) == 0 {
		return
	}
	p := pick(s, charge.Payments)
	amount := pick(s, []money.Cents{p.Amount, (p.Amount + 1) / 2, 1 + money.Cents(s.random.Int64N(int64(p.Amount)))})
	state := s.stateOf(o.ExternalID)
	err := c.control.RefundPayment(s.ctx, p.ID, amount)
	s.trace.linef("bank: refund of %d of %s at the panel: %v", amount, o.Reference, err)
	if err != nil {
		return
	}
	s.countFault("bank, refund", "panel", state)
	s.scheduleMoreActs(o)
	if s.chance(s.plan.takenBack) {
		s.after(s.between(0, time.Minute), func() { s.failAtPanel(o, p.ID) })
	}
}

// failAtPanel fails the refunds of a payment at the bank's panel, after they were paid.
func (s *simulation) failAtPanel(o *order, payment string) {
	c := s.contractOf(o.ExternalID)
	list, err := s.bank.refundsOf(c)
	if s.faultsOff || err != nil {
		return
	}
	for i := range list {
		if r := &list[i]; r.AtPanel && r.PaymentID == payment && !r.Failed {
			state := s.stateOf(r.ExternalID)
			err := c.control.Refund(s.ctx, r.ExternalID, "fail")
			s.trace.linef("bank: fail refund at the panel of %s: %v", o.Reference, err)
			s.countFault("bank, refund", "fail at panel", state)
		}
	}
}

// refunds reads the bank's refunds.
func (b *bank) refunds() (list []checker.BankRefund, err error) {
	for _, c := range b.sim.contracts {
		some, err := b.refundsOf(c)
		if err != nil {
			return list, err
		}
		list = append(list, some...)
	}
	return list, nil
}

func (b *bank) refundsOf(c *contract) (list []checker.BankRefund, err error) {
	seen := map[string]int{}
	for cursor := ""; ; {
		var page bankapi.RefundPage
		if err := b.get(c.path()+"/refunds?cursor="+cursor, &page); err != nil || len(page.Data) == 0 {
			return list, err
		}
		for i := range page.Data {
			r := &page.Data[i]
			if r.State == bankapi.OrderFailed {
				list[seen[r.ExternalID]].Failed = true
				continue
			}
			seen[r.ExternalID] = len(list)
			list = append(list, checker.BankRefund{
				Account: c.id, ExternalID: r.ExternalID, PaymentID: r.PaymentID, Amount: int64(r.Amount), EndToEndID: r.EndToEndID,
				AtPanel: strings.HasPrefix(r.ExternalID, "panel"),
			})
		}
		cursor = page.NextCursor
	}
}

// disputes reads the bank's disputes.
func (b *bank) disputes() (list []checker.BankDispute, err error) {
	for _, c := range b.sim.contracts {
		seen := map[string]int{}
		for cursor := ""; ; {
			var page bankapi.ChangePage
			if err := b.get(c.path()+"/changes?cursor="+cursor, &page); err != nil {
				return list, err
			}
			if len(page.Data) == 0 {
				break
			}
			for i := range page.Data {
				d := page.Data[i].Dispute
				if d == nil {
					continue
				}
				at, known := seen[d.ID]
				if !known {
					at = len(list)
					seen[d.ID] = at
					list = append(list, checker.BankDispute{
						Account: c.id, ID: d.ID, ExternalID: page.Data[i].ExternalID, PaymentID: d.PaymentID, Amount: int64(d.Amount),
					})
				}
				list[at].State = string(d.State)
			}
			cursor = page.NextCursor
		}
	}
	return list, nil
}
