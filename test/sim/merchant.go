package sim

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	merchants "github.com/porteira/porteira/internal/merchant"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/test/sim/checker"
)

// merchantCount is the number of merchants of a gateway.
const merchantCount = 3

// openingFunds is the initial balance of each merchant in cents, too little for some payouts.
const openingFunds = 20_000_00

// merchant is a program that places orders and records the answers.
type merchant struct {
	sim  *simulation
	name string
	id   string // UUID
	credential
	approvers     []credential // of its payouts
	webhookSecret string
	receiver      *receiver
	placed        int // orders
	refunds       int // that were requested
}

// credential is that of a program, or of a person who approves payouts.
type credential struct{ key, secret string }

func (s *simulation) newMerchant(i int, seeder *merchants.Service, st *store.Store) (*merchant, error) {
	name := fmt.Sprintf("merchant%d", i)
	m := &merchant{
		sim: s, name: name, credential: credential{fmt.Sprintf("key_%d", i), fmt.Sprintf("secret_%d", i)},
		webhookSecret: "whsec_" + "c2ltdWxhdGlvbi13ZWJob29rLXNlY3JldC0wMDA" + strconv.Itoa(i),
	}
	err := seeder.Seed(s.ctx, merchants.Seed{
		Merchant:      store.Merchant{Name: name, City: "SAO PAULO", Routes: routesOf(i), Limits: s.limitsOf(i), Prices: pricesOf(i)},
		WebhookSecret: m.webhookSecret, Funds: money.Cents(openingFunds),
		Credential: merchants.NewCredential{KeyID: m.key, Secret: m.secret, Label: name, Scopes: store.Scopes},
	})
	if err != nil {
		return nil, err
	}
	row, err := st.MerchantByName(s.ctx, name)
	if err != nil {
		return nil, err
	}
	m.id = row.ID.String()
	for _, person := range []string{"boss", "chief"} {
		c := credential{m.key + "_" + person, m.secret + "_" + person}
		_, _, err := seeder.CreateCredential(s.ctx, merchants.NewCredential{
			Merchant: row.ID, KeyID: c.key, Secret: c.secret, Label: person, Scopes: []string{store.ScopePayoutApprove},
		})
		if err != nil {
			return nil, err
		}
		m.approvers = append(m.approvers, c)
	}
	m.receiver, err = newReceiver(s, m)
	return m, err
}

func (s *simulation) merchantOf(o *order) *merchant {
	return s.merchants[slices.IndexFunc(s.merchants, func(m *merchant) bool { return m.id == o.Merchant })]
}

// order is an order that a merchant requests.
type order struct {
	checker.ClientOrder

	body  []byte // of the request
	lost  bool   // the database is a copy that lacked it
	of    *order // the pay-in of a refund
	asked int64  // of a refund; 0 asks for all that is left
	// sending: a request is on its way. Another one of the order would wait in the gateway for its
	// charge, where the schedule does not see it.
	sending bool
}

// path is the path of its request.
func (o *order) path() string {
	if o.of != nil {
		return "/payin/" + o.of.ID + "/refunds"
	}
	return "/" + o.Kind
}

// resource is the path of the order itself.
func (o *order) resource() string {
	if o.of != nil {
		return "/refunds/" + o.ID
	}
	return "/" + o.Kind + "/" + o.ID
}

// placeOrder draws an order and sends it.
func (m *merchant) placeOrder() {
	s := m.sim
	if s.chance(30) {
		m.placeBatch()
		return
	}
	amount, kind := 1+s.random.Int64N(30_000), checker.Payout
	if s.chance(500) {
		kind = checker.Payin
	}
	m.request(m.newOrder(kind, amount))
}

// newOrder draws an order of a kind.
func (m *merchant) newOrder(kind string, amount int64) *order {
	s := m.sim
	m.placed++
	o := &order{ClientOrder: checker.ClientOrder{
		Kind: kind, Merchant: m.id, Reference: fmt.Sprintf("%s-%d", m.name, m.placed), Amount: amount,
	}}
	if s.chance(800) {
		o.WebhookURL = fmt.Sprintf("https://%s/hook/%d", m.receiver.host, m.placed%4)
	}
	body := map[string]any{"amount": o.Amount, "referenceId": o.Reference}
	if o.WebhookURL != "" {
		body["webhookUrl"] = o.WebhookURL
	}
	if kind == checker.Payin {
		o.Method = pick(s, []string{"PIX", "PIX", "PIX", "BOLETO", "CREDIT_CARD"})
		body["paymentMethod"] = o.Method
		body["customer"] = map[string]any{"name": "Maria da Silva", "document": "52998224725"}
		if o.Method == "PIX" && s.chance(500) {
			body["expiresIn"] = 60 + s.number(600)
		}
	} else {
		o.PIXKey = pick(s, pixKeys)
		body["pixKey"], body["pixKeyType"] = o.PIXKey, "EMAIL"
		body["beneficiaryName"], body["beneficiaryDocument"] = "Maria da Silva", "52998224725"
	}
	o.body, _ = json.Marshal(body, json.Deterministic(true)) // texts and numbers always marshal
	return o
}

// request sends a new order.
func (m *merchant) request(o *order) {
	s := m.sim
	s.placed = append(s.placed, o)
	s.records.Orders = append(s.records.Orders, &o.ClientOrder)
	m.send(o, 0)
}

// answer is an answer of the gateway about an order. Its status code is 0 if there is none.
type answer struct {
	ID         string `json:"id"`
	ExternalID string `json:"externalId"`
	Reference  string `json:"referenceId"`
	Amount     any    `json:"amount"` // a number in a pay-in, a text in a payout
	Approval   string `json:"approval"`
	Code       string `json:"code"`  // of a problem
	Limit      string `json:"limit"` // that it names
	Errors     []struct {
		Field string `json:"field"`
	} `json:"errors"`

	status   int // HTTP
	replayed bool
	body     []byte
}

// unavailable reports whether the request may be repeated: there is no answer, or a temporary
// refusal.
func (a *answer) unavailable() bool {
	return a.status == 0 || a.status == http.StatusServiceUnavailable
}

// call sends a request to one of the gateways.
func (m *merchant) call(method, path string, body []byte, fault string) (a answer) {
	return m.callAs(m.credential, method, path, body, fault)
}

// callAs is call with another credential of the merchant.
func (m *merchant) callAs(by credential, method, path string, body []byte, fault string) (a answer) {
	s := m.sim
	n := s.reachableNode()
	if n == nil || fault == "lost" {
		return answer{}
	}
	r, err := http.NewRequestWithContext(s.ctx, method, "http://gateway.sim"+path, bytes.NewReader(body))
	if err != nil {
		s.fail(err)
		return answer{}
	}
	r.Header.Set("X-Api-Key", by.key)
	r.Header.Set("X-Api-Secret", by.secret)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	damaged := s.damaged // it may be repaired before the answer
	w, ok := n.serve(r, body)
	if !ok || fault == "answer_lost" {
		return answer{}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil && w.Code != http.StatusNoContent {
		s.violate(checker.NoFailure, m.id, "", fmt.Sprintf("the answer to %s %s is not JSON: %s", method, path, w.Body.Bytes()))
	}
	if damaged.concerns(path, body) && w.Code == http.StatusInternalServerError {
		return answer{}
	}
	if w.Code == http.StatusInternalServerError {
		s.violate(checker.NoFailure, m.id, a.ID, fmt.Sprintf("%s %s: %s", method, path, w.Body.Bytes()))
	}
	a.status, a.replayed, a.body = w.Code, w.Header().Get("Idempotency-Replayed") == "true", w.Body.Bytes()
	return a
}

// send sends an order until it is answered.
func (m *merchant) send(o *order, tries int) {
	s := m.sim
	if o.of != nil {
		m.sendRefund(o, tries)
		return
	}
	if o.sending {
		s.after(time.Second, func() { m.send(o, tries) })
		return
	}
	o.sending = true
	defer func() { o.sending = false }()
	state := s.stateOf(o.ExternalID)
	fault := s.drawFault(s.plan.clients, "client", state, clientFaults)
	if fault != "" {
		s.countFault(s.groupOf("client", o.ExternalID), fault, state)
	}
	used, began := s.usage(o), s.clock.Now()
	a := m.call(http.MethodPost, "/"+o.Kind, o.body, fault)
	s.trace.linef("%s %s %s: %s %d %s", m.name, o.Kind, o.Reference, fault, a.status, a.Code)
	switch {
	case a.status == http.StatusCreated:
		m.recordAnswer(o, &a)
	case a.status == http.StatusUnprocessableEntity && a.Code == "insufficient_balance" && o.Kind == checker.Payout && o.ID == "":
		// The reference remains unused.
	case a.status == http.StatusUnprocessableEntity && a.Code == "limit_exceeded" && o.Kind == checker.Payout && o.ID == "":
		m.checkLimitRefusal(o, &a, used, began)
	case a.Code == "processor_refused" && o.lost: // its charge has an older due date
	case o.Kind == checker.Payout && tries > triesOfStopped && m.payoutsStopped():
		s.trace.linef("%s gives up %s: a case stops its payouts", m.name, o.Reference)
	case a.unavailable(), a.status == http.StatusGatewayTimeout, a.status == http.StatusBadGateway:
		s.sendAgain(tries, func() { m.send(o, tries+1) })
	default:
		s.violate(checker.SingleOrder, m.id, o.ID, fmt.Sprintf("%s %s is answered %d: %s", o.Kind, o.Reference, a.status, a.body))
	}
}

// triesOfStopped is after how many tries, some hours, a merchant stops repeating a payout while a case
// stops its payouts, which no person of the simulation resolves.
const triesOfStopped = 60

// payoutsStopped reports whether an open case stops the merchant's payouts.
func (m *merchant) payoutsStopped() bool {
	s, cases := m.sim, 0
	id, err := payment.ParseID(m.id)
	if err == nil {
		err = s.raw.QueryRowContext(s.ctx, "SELECT count(*) FROM cases WHERE merchant_id = $1 AND closed_at = 0 AND stops_payouts = 1", id[:]).Scan(&cases)
	}
	if err != nil {
		s.fail(err)
	}
	return cases > 0
}

// sendAgain repeats a request after a number of tries.
func (s *simulation) sendAgain(tries int, send func()) {
	wait := s.between(50*time.Millisecond, 3*time.Second)
	if tries > 20 {
		wait = s.between(time.Minute, 10*time.Minute)
	}
	s.after(wait, send)
}

// recordAnswer records the first answer to an order, and compares later ones with it.
func (m *merchant) recordAnswer(o *order, a *answer) {
	s := m.sim
	if amount, ok := a.Amount.(float64); ok && o.of != nil && o.Amount == 0 {
		o.Amount = int64(amount)
	}
	if a.Reference != o.Reference || fmt.Sprint(a.Amount) != strconv.FormatInt(o.Amount, 10) || len(a.ExternalID) != 32 {
		s.violate(checker.Durability, m.id, a.ID, fmt.Sprintf("%s of %d is acknowledged as %s", o.Reference, o.Amount, a.body))
	}
	if o.ID != "" {
		if a.ID != o.ID || a.ExternalID != o.ExternalID {
			s.violate(checker.SingleOrder, m.id, o.ID, fmt.Sprintf("%s was %s and is now %s", o.Reference, o.ID, a.ID))
		}
		if !a.replayed {
			s.violate(checker.SingleOrder, m.id, o.ID, o.Reference+" was acknowledged, but is created again")
		}
		return
	}
	if o.ExternalID != "" && o.ExternalID != a.ExternalID { // an older copy lacked it
		s.violate(checker.SingleOrder, m.id, a.ID, fmt.Sprintf("%s had external id %s and has now %s", o.Reference, o.ExternalID, a.ExternalID))
	}
	o.ID, o.ExternalID = a.ID, a.ExternalID
	s.result.Orders++
	switch o.Kind {
	case checker.Payin:
		s.schedulePayer(o)
		s.scheduleRefunds(o)
	case checker.Payout:
		s.scheduleBank(o)
		s.scheduleDecision(o, a)
		if a.Approval != "required" { // else it waits for a person
			s.expectBeside(o)
		}
	default:
		s.scheduleRefundBank(o)
	}
	for n := 0; n < 3 && s.chance(s.plan.clients); n++ {
		s.after(s.between(0, 2*time.Minute), func() { m.act(o) })
	}
}
