package simulate

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/flow"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/processor/sandbox"
	"github.com/porteira/porteira/internal/store"
)

// merchantCount is how many merchants share a gateway.
const merchantCount = 3

// funds is what each merchant begins with, in cents: some payouts find too little.
const funds = 20_000_00

// merchant is a program that places orders, and notes what it is told.
type merchant struct {
	sim      *simulation
	name     string
	id       string // UUID
	key      string
	secret   string
	signing  string // webhook secret
	receiver *receiver
	placed   int
}

// view is an order as the API shows it.
type view struct {
	ID         string `json:"id"`
	ExternalID string `json:"externalId"`
	Reference  string `json:"referenceId"`
	Status     any    `json:"status"` // of an order a text, of a problem a number
	Amount     any    `json:"amount"` // a number in a pay-in, a text in a payout
	Code       string `json:"code"`   // of a problem
	Version    int64  `json:"version"`

	raw []byte
}

func (s *simulation) newMerchant(i int, f *flow.Flow, st *store.Store) (*merchant, error) {
	name := fmt.Sprintf("merchant%d", i)
	m := &merchant{
		sim: s, name: name, key: fmt.Sprintf("key_%d", i), secret: fmt.Sprintf("secret_%d", i),
		signing: "whsec_" + "c2ltdWxhdGlvbi13ZWJob29rLXNlY3JldC0wMDA" + strconv.Itoa(i),
	}
	err := f.SeedMerchant(s.ctx, flow.Seed{
		Merchant:      store.Merchant{Name: name, City: "SAO PAULO", Processor: sandbox.Name},
		WebhookSecret: m.signing, Funds: money.Cents(funds),
		Credential: flow.NewCredential{KeyID: m.key, Secret: m.secret, Label: name},
	})
	if err != nil {
		return nil, err
	}
	row, err := st.MerchantByName(s.ctx, name)
	if err != nil {
		return nil, err
	}
	m.id = row.ID.String()
	m.receiver, err = newReceiver(s, m)
	return m, err
}

// place makes up an order and sends it.
func (m *merchant) place() {
	s := m.sim
	m.placed++
	a := &ack{merchant: m.id, reference: fmt.Sprintf("%s-%d", m.name, m.placed), amount: 1 + s.random.Int64N(30_000)}
	if s.chance(800) {
		a.webhookURL = fmt.Sprintf("https://%s/hook/%d", m.receiver.host, m.placed%4)
	}
	body := map[string]any{"amount": a.amount, "referenceId": a.reference}
	if a.webhookURL != "" {
		body["webhookUrl"] = a.webhookURL
	}
	if s.chance(500) {
		a.kind, a.method = payin, pick(s, []string{"PIX", "PIX", "PIX", "BOLETO", "CREDIT_CARD"})
		body["paymentMethod"] = a.method
		body["customer"] = map[string]any{"name": "Maria da Silva", "document": "52998224725"}
		if a.method == "PIX" && s.chance(500) {
			body["expiresIn"] = 60 + s.number(600)
		}
	} else {
		a.kind = payout
		body["pixKey"], body["pixKeyType"] = "maria@example.com", "EMAIL"
		body["beneficiaryName"], body["beneficiaryDocument"] = "Maria da Silva", "52998224725"
	}
	a.body, _ = json.Marshal(body, json.Deterministic(true)) // texts and numbers always marshal
	s.books.acks = append(s.books.acks, a)
	m.send(a, 0)
}

// call sends a request to one of the gateways; status is 0 where no answer came.
func (m *merchant) call(method, path string, body []byte, fault string) (status int, v view, header http.Header) {
	s := m.sim
	n := s.reachable()
	if n == nil || fault == "lost" {
		return 0, v, nil
	}
	r, err := http.NewRequestWithContext(s.ctx, method, "http://gateway.sim"+path, bytes.NewReader(body))
	if err != nil {
		s.violate("", m.id, "", err.Error())
		return 0, v, nil
	}
	r.Header.Set("X-Api-Key", m.key)
	r.Header.Set("X-Api-Secret", m.secret)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	w, ok := n.serve(r, body)
	if !ok || fault == "answer_lost" {
		return 0, v, nil
	}
	if err := json.Unmarshal(w.body.Bytes(), &v); err != nil {
		s.violate("", m.id, "", fmt.Sprintf("%s %s is answered with what is no JSON: %s", method, path, w.body.Bytes()))
	}
	if w.status == http.StatusInternalServerError {
		s.violate("500", m.id, v.ID, fmt.Sprintf("%s %s: %s", method, path, w.body.Bytes()))
	}
	v.raw = w.body.Bytes()
	return w.status, v, w.header
}

// send sends an order until it is answered.
func (m *merchant) send(a *ack, tries int) {
	s := m.sim
	state := s.stateOf(a.externalID)
	fault := s.fault(s.plan.clients, "client", state, clientFaults)
	if fault != "" {
		s.result.Faults++
		s.cells.fire(s.group("client", a.externalID), fault, state)
	}
	status, v, header := m.call(http.MethodPost, "/"+a.kind, a.body, fault)
	s.trace.linef("%s %s %s: %s %d %s", m.name, a.kind, a.reference, fault, status, v.Code)
	switch {
	case status == http.StatusCreated:
		m.acknowledged(a, &v, header)
	case status == http.StatusUnprocessableEntity && v.Code == "insufficient_balance" && a.kind == payout && a.id == "":
		// The reference stays unused.
	case status == 0, status == http.StatusServiceUnavailable, status == http.StatusGatewayTimeout, status == http.StatusBadGateway:
		wait := s.between(50*time.Millisecond, 3*time.Second)
		if tries > 20 {
			wait = s.between(time.Minute, 10*time.Minute)
		}
		s.after(wait, func() { m.send(a, tries+1) })
	default:
		s.violate("I5", m.id, a.id, fmt.Sprintf("%s %s is answered %d: %s", a.kind, a.reference, status, v.raw))
	}
}

// acknowledged notes the first answer, and holds later ones against it.
func (m *merchant) acknowledged(a *ack, v *view, header http.Header) {
	s := m.sim
	if v.Reference != a.reference || fmt.Sprint(v.Amount) != strconv.FormatInt(a.amount, 10) || len(v.ExternalID) != 32 {
		s.violate("I2", m.id, v.ID, fmt.Sprintf("%s of %d is acknowledged as %s", a.reference, a.amount, v.raw))
	}
	if a.id != "" {
		if v.ID != a.id || v.ExternalID != a.externalID {
			s.violate("I5", m.id, a.id, fmt.Sprintf("%s was %s and is now %s", a.reference, a.id, v.ID))
		}
		if header.Get("Idempotency-Replayed") != "true" {
			s.violate("I5", m.id, a.id, a.reference+" was acknowledged, and is made anew")
		}
		return
	}
	a.id, a.externalID, a.answer = v.ID, v.ExternalID, v.raw
	s.result.Orders++
	if a.kind == payin {
		s.visit(a)
	} else {
		s.trouble(a)
	}
	for n := 0; n < 3 && s.chance(s.plan.clients); n++ {
		s.after(s.between(0, 2*time.Minute), func() { m.bother(a) })
	}
}

// bother does what clients do with an order that they know.
func (m *merchant) bother(a *ack) {
	s := m.sim
	if s.calm {
		return
	}
	state := s.stateOf(a.externalID)
	what := s.turn("client acts", state, clientActs)
	s.result.Faults++
	s.cells.fire(s.group("client", a.externalID), what, state)
	path := "/" + a.kind
	var status int
	var v view
	var header http.Header
	switch what {
	case "repeated":
		m.send(a, 0)
		return
	case "at_once":
		m.send(a, 0)
		m.send(a, 0)
		return
	case "changed":
		other := bytes.Replace(a.body, fmt.Appendf(nil, `"amount":%d`, a.amount), fmt.Appendf(nil, `"amount":%d`, a.amount+1), 1)
		if status, v, _ = m.call(http.MethodPost, path, other, ""); status != 409 && status != 0 && status != 503 {
			s.violate("I5", m.id, a.id, fmt.Sprintf("another request under %s is answered %d: %s", a.reference, status, v.raw))
		}
	case "canceled":
		if status, v, _ = m.call(http.MethodPost, path+"/"+a.id+"/cancel", nil, ""); status == http.StatusOK {
			if !a.canceled && a.kind == payin {
				s.linger(a)
			}
			a.canceled = true
		} else if status != 409 && status != 0 && status != 503 {
			s.violate("", m.id, a.id, fmt.Sprintf("cancel is answered %d: %s", status, v.raw))
		}
	case "read":
		if status, v, header = m.call(http.MethodGet, path+"/"+a.id, nil, ""); status == http.StatusOK {
			header.Set("Idempotency-Replayed", "true") // of a read there is none
			m.acknowledged(a, &v, header)
		} else if status != 0 && status != 503 {
			s.violate("I2", m.id, a.id, fmt.Sprintf("an acknowledged order is answered %d: %s", status, v.raw))
		}
		m.peek(a)
	}
	s.trace.linef("%s %s %s: %d %s", m.name, what, a.reference, status, v.Code)
}

// peek tries to read another merchant's order: it is not there.
func (m *merchant) peek(a *ack) {
	s := m.sim
	other := s.merchants[(s.number(len(s.merchants)-1)+1+indexOf(s.merchants, m))%len(s.merchants)]
	status, v, _ := other.call(http.MethodGet, "/"+a.kind+"/"+a.id, nil, "")
	if status != http.StatusNotFound && status != 0 && status != 503 {
		s.violate("I8", other.id, a.id, fmt.Sprintf("another merchant's order is answered %d: %s", status, v.raw))
	}
}

func (s *simulation) merchantOf(a *ack) *merchant {
	for _, m := range s.merchants {
		if m.id == a.merchant {
			return m
		}
	}
	return nil
}

func indexOf(list []*merchant, m *merchant) int {
	for i := range list {
		if list[i] == m {
			return i
		}
	}
	return 0
}
