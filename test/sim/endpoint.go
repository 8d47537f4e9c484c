package sim

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/test/sim/checker"
)

// Stories of webhook endpoints.
const (
	steady  = "steady"
	down    = "down"    // it does not answer for hours
	dead    = "dead"    // it does not answer until it was disabled
	deleted = "deleted" // while events come
	rotated = "rotated"
)

var stories = []string{steady, down, dead, deleted, rotated}

// filters are what endpoints ask for. One that does not answer asks for few events: each is
// tried for hours or days.
var filters = [][]string{{"*"}, {"payin.*", "refund.*"}, {"payout.completed", "payout.failed", "webhook_endpoint.disabled"}, {"payin.paid"}}

var fewEvents = []string{"payin.disputed", "payin.overpaid", "payout.returned", "refund.failed"}

// disabledWithin is how long an endpoint fails before it is disabled.
const disabledWithin = 5*24*time.Hour + time.Hour

// endpointPlan is a webhook endpoint of a run.
type endpointPlan struct {
	merchant int
	story    string
	events   []string
}

func (s *simulation) drawEndpoints(copies bool) (list []endpointPlan) {
	if !s.chance(300) {
		return nil
	}
	for range 1 + s.number(2) {
		p := endpointPlan{merchant: s.number(merchantCount), story: pick(s, stories), events: pick(s, filters)}
		if copies {
			p.story = steady
		}
		switch p.story {
		case dead:
			p.events = fewEvents
		case down:
			p.events = []string{"payin.paid", "refund.*"}
		}
		list = append(list, p)
	}
	return list
}

// endpoint is a webhook endpoint of a merchant.
type endpoint struct {
	checker.ClientEndpoint

	merchant *merchant
	story    string
	silent   time.Duration // until when it does not answer; by the virtual clock
	closed   time.Duration // when it was deleted; 0 while it exists
	enabled  bool          // again, after it was disabled
	again    bool          // its events were requested again
	probed   bool
	last     int64 // the number of the last event when it answered again
	first    map[int64]bool
	latest   int64                   // of the events until last, the one that it accepted latest
	refused  map[int64]time.Duration // when it refused an event last
	tried    map[int64]int           // how often it refused an event while it was down
	failing  time.Duration           // when it failed first after its last success; 0 if it did not
	secrets  []endpointSecret
	unknown  time.Duration // until then a secret whose answer was lost may sign
}

// endpointSecret is a secret and when it was replaced: it signs until then, and as long as
// the merchant asked for.
type endpointSecret struct {
	verify   *standardwebhooks.Webhook
	from     time.Duration
	replaced time.Duration // 0 while it is the current one
	signs    time.Duration // until when it must sign, and until when it may
	until    time.Duration
}

// Times of endpoints.
const (
	// followWithin is how long after a change a process may still use the endpoint as it was.
	followWithin = 90 * time.Second
	silentMax    = 8 * time.Hour
	// recordedWithin is how long the result of an attempt may not be recorded: one that failed
	// right before the endpoint answered again is still in flight then, and repeated later.
	recordedWithin = time.Minute
	// knownDown is how many refused attempts are enough for the gateway to know that an endpoint is
	// down, also if it recorded some of them only later; an event can be refused as often as it is
	// tried within triedLong without the next one being tried.
	knownDown = 10
	triedLong = 90 * time.Minute
	forever   = 1 << 62
)

// scheduleEndpoints schedules the endpoints of a run within span.
func (s *simulation) scheduleEndpoints(span time.Duration) {
	for _, p := range s.plan.endpoints {
		m, began := s.merchants[p.merchant], s.between(0, span/2)
		if s.plan.copyKind != "" {
			began = 0
		}
		e := &endpoint{merchant: m, story: p.story, first: map[int64]bool{}, refused: map[int64]time.Duration{}, tried: map[int64]int{}}
		e.Merchant, e.Events = m.id, p.events
		e.URL = fmt.Sprintf("https://%s/endpoint/%d", m.receiver.host, len(s.endpoints))
		s.endpoints = append(s.endpoints, e)
		s.after(began, func() { e.create() })
		switch p.story {
		case down:
			s.after(s.between(began, span), func() { e.silent = s.clock.Monotonic() + s.between(time.Hour, silentMax) })
		case dead:
			e.silent = forever
		case deleted:
			s.after(s.between(began, span), func() { e.delete() })
		case rotated:
			s.after(s.between(began, span), func() { e.rotate() })
		}
	}
}

func (e *endpoint) call(method, path string, body map[string]any) (answer, map[string]any) {
	var data []byte
	if body != nil {
		data, _ = json.Marshal(body, json.Deterministic(true)) // texts and numbers always marshal
	}
	a := e.merchant.call(method, "/webhook-endpoints"+path, data, "")
	shown := map[string]any{}
	if len(a.body) > 0 {
		if err := json.Unmarshal(a.body, &shown); err != nil {
			e.merchant.sim.fail(err)
		}
	}
	e.merchant.sim.trace.linef("%s %s endpoint %s: %d", e.merchant.name, method, e.URL, a.status)
	return a, shown
}

func (e *endpoint) create() {
	s := e.merchant.sim
	a, shown := e.call(http.MethodPost, "", map[string]any{"url": e.URL, "events": e.Events})
	if a.status != http.StatusCreated {
		if !a.unavailable() {
			s.violate(checker.Events, e.Merchant, "", fmt.Sprintf("an endpoint is answered %d: %s", a.status, a.body))
		}
		// It may exist: then it is another one, with a secret that nobody knows, and may get events.
		s.records.Endpoints = append(s.records.Endpoints, &checker.ClientEndpoint{Merchant: e.Merchant, URL: e.URL, Events: e.Events, Gone: true})
		e.URL += "x"
		s.after(time.Second, e.create)
		return
	}
	e.ID, e.After = a.ID, s.checker.LastEvent(e.Merchant)
	s.records.Endpoints = append(s.records.Endpoints, &e.ClientEndpoint)
	s.coverage.count("endpoint", e.story, "any")
	e.addSecret(shown["secret"])
}

func (e *endpoint) addSecret(text any) {
	verify, err := standardwebhooks.NewWebhook(fmt.Sprint(text))
	if err != nil {
		e.merchant.sim.fail(err)
		return
	}
	e.secrets = append(e.secrets, endpointSecret{verify: verify, from: e.merchant.sim.clock.Monotonic()})
}

func (e *endpoint) delete() {
	s := e.merchant.sim
	if e.ID == "" {
		s.after(time.Second, e.delete)
		return
	}
	a, _ := e.call(http.MethodDelete, "/"+e.ID, nil)
	e.Gone = true
	switch {
	case a.status == http.StatusNoContent || a.status == http.StatusNotFound: // the first answer was lost
		e.closed = s.clock.Monotonic()
	case a.unavailable():
		s.after(time.Second, e.delete)
	default:
		s.violate(checker.Events, e.Merchant, "", fmt.Sprintf("deleting an endpoint is answered %d: %s", a.status, a.body))
	}
}

// rotate gives the endpoint a new secret, until it is answered: a secret whose answer was lost
// is unknown.
func (e *endpoint) rotate() {
	s := e.merchant.sim
	if e.ID == "" || len(e.secrets) == 0 {
		s.after(time.Second, e.rotate)
		return
	}
	overlap := pick(s, []time.Duration{0, 2 * time.Minute, time.Hour})
	began := s.clock.Monotonic()
	a, shown := e.call(http.MethodPost, "/"+e.ID+"/rotate", map[string]any{"overlapSeconds": int64(overlap / time.Second)})
	if a.status != http.StatusOK {
		e.secrets = nil // whether it has another one is not known
		s.after(time.Second, func() { e.rotateBlindly() })
		return
	}
	old := &e.secrets[len(e.secrets)-1]
	old.replaced, old.signs, old.until = began, began+overlap, s.clock.Monotonic()+overlap
	e.addSecret(shown["secret"])
}

// rotateBlindly rotates without an overlap, after the answer to a rotation was lost.
func (e *endpoint) rotateBlindly() {
	a, shown := e.call(http.MethodPost, "/"+e.ID+"/rotate", map[string]any{"overlapSeconds": 0})
	if a.status != http.StatusOK {
		e.merchant.sim.after(time.Second, e.rotateBlindly)
		return
	}
	e.unknown = e.merchant.sim.clock.Monotonic() + followWithin
	e.addSecret(shown["secret"])
}

// enableEndpoints enables the endpoints that were disabled, and makes them answer. Of the dead, and
// of those that were down if a clock went ahead by days, it then requests the range of their
// events again: deliveries that were given up are removed during a run. It reports whether there
// was one.
func (s *simulation) enableEndpoints() (found bool) {
	for _, e := range s.endpoints {
		switch {
		case e.story != dead && e.story != down || e.ID == "" || e.again:
			continue
		case !e.enabled:
			found = e.enable() || found
		case e.story == dead || s.daysAhead:
			found = e.redeliver() || found
		}
	}
	return found
}

// anyFails reports whether an endpoint still fails that is to be enabled.
func (s *simulation) anyFails() bool {
	return slices.ContainsFunc(s.endpoints, func(e *endpoint) bool {
		if e.story != dead && e.story != down || e.ID == "" || e.enabled {
			return false
		}
		_, shown := e.call(http.MethodGet, "/"+e.ID, nil)
		health, _ := shown["health"].(map[string]any)
		return health["state"] == "failing"
	})
}

// failForDays lets endpoints fail until they are disabled.
func (s *simulation) failForDays() {
	for range disabledWithin / time.Hour {
		s.elapse(time.Hour)
		for _, n := range s.nodes {
			n.wake(n.life, app.WorkerFailed)
		}
		s.runQueue()
	}
}

func (e *endpoint) enable() bool {
	s := e.merchant.sim
	a, shown := e.call(http.MethodGet, "/"+e.ID, nil)
	if a.status != http.StatusOK {
		return false
	}
	e.enabled, e.silent, e.last = true, 0, s.checker.LastEvent(e.Merchant)
	if shown["enabled"] != false {
		return true // without events for five days it is failing
	}
	s.coverage.count("endpoint", "disabled", "any")
	if a, _ = e.call(http.MethodPatch, "/"+e.ID, map[string]any{"enabled": true}); a.status != http.StatusOK {
		s.violate(checker.Events, e.Merchant, "", fmt.Sprintf("enabling an endpoint is answered %d: %s", a.status, a.body))
	}
	return true
}

func (e *endpoint) redeliver() bool {
	s := e.merchant.sim
	body, _ := json.Marshal(map[string]any{ // texts always marshal
		"from": s.began.Add(-time.Hour).Format(time.RFC3339), "to": s.clock.Now().Format(time.RFC3339), "endpointId": e.ID,
	}, json.Deterministic(true))
	a := e.merchant.call(http.MethodPost, "/events/redeliver", body, "")
	s.trace.linef("%s requests all events of %s again: %d", e.merchant.name, e.URL, a.status)
	if a.status != http.StatusAccepted {
		s.violate(checker.Events, e.Merchant, "", fmt.Sprintf("the request of events again is answered %d: %s", a.status, a.body))
	}
	e.again, e.last = true, 0
	s.coverage.count("endpoint", "redelivered", "any")
	return true
}

// endpointOf is the endpoint of a URL; nil if it is an order's.
func (s *simulation) endpointOf(url string) *endpoint {
	if !strings.Contains(url, "/endpoint/") {
		return nil
	}
	for _, e := range s.endpoints {
		if e.URL == url {
			return e
		}
	}
	return nil
}

// receiveAt records a delivery to an endpoint and answers it.
func (r *receiver) receiveAt(e *endpoint, t *webhookTransport, request *http.Request, body []byte, fault string) (*http.Response, error) {
	s := r.sim
	now := s.clock.Monotonic()
	if e.failing == 0 {
		e.failing = now
	}
	switch {
	case e.closed != 0 && now > e.closed+followWithin:
		s.violate(checker.Events, e.Merchant, "", e.URL+" was deleted, and receives "+request.Header.Get("Webhook-Id"))
	case now < e.silent, fault == "refused":
		event := s.checker.Event(request.Header.Get("Webhook-Id"))
		e.refused[event] = now
		if now < e.silent-recordedWithin {
			e.tried[event]++
		}
		return nil, errDial
	case e.story == down && e.silent != 0 && e.last == 0:
		e.last = s.checker.LastEvent(e.Merchant)
	}
	switch fault {
	case "timeout_before":
		return nil, t.node.hang(t.life, request.Context())
	case "slow":
		t.node.elapse(t.life, s.between(time.Second, 10*time.Second))
	}
	e.checkSignature(request, body)
	received := checker.ReceivedDelivery{
		Merchant: e.Merchant, URL: request.URL.String(), EventID: request.Header.Get("Webhook-Id"), Body: body, At: s.clock.Now(), Endpoint: true,
	}
	answer, err := r.answer(t, request, fault)
	if err == nil {
		received.Answer = answer.StatusCode
		e.checkOrder(received.EventID, answer.StatusCode)
	}
	s.records.Deliveries = append(s.records.Deliveries, received)
	return answer, err
}

// checkSignature checks that a delivery is signed with the secrets of the time.
func (e *endpoint) checkSignature(r *http.Request, body []byte) {
	now := e.merchant.sim.clock.Monotonic()
	good := len(e.secrets) == 0 || now <= e.unknown
	for i := range e.secrets {
		v := &e.secrets[i]
		signs := v.verify.VerifyIgnoringTimestamp(body, r.Header) == nil
		good = good || signs && (v.replaced == 0 || now <= max(v.replaced+followWithin, v.until) || e.merchant.sim.plan.clocksOff)
		must := v.replaced == 0 && now > v.from+followWithin || v.replaced != 0 && now < v.signs && now > v.from+followWithin && !e.merchant.sim.plan.clocksOff
		if must && !signs {
			e.merchant.sim.violate(checker.Authenticity, e.Merchant, "", fmt.Sprintf("a delivery to %s is not signed by secret %d", e.URL, i))
		}
	}
	if !good {
		e.merchant.sim.violate(checker.Authenticity, e.Merchant, "", "the signature of a delivery to "+e.URL+" is wrong")
	}
}

// checkOrder checks that an endpoint that was down gets what it missed in order.
func (e *endpoint) checkOrder(eventID string, status int) {
	s := e.merchant.sim
	number := s.checker.Event(eventID)
	if status < 200 || status > 299 || e.first[number] {
		return
	}
	e.first[number] = true
	failed := s.clock.Monotonic() - e.failing
	e.failing = 0
	if e.last == 0 || number > e.last {
		return
	}
	if !e.probed && e.story == down {
		e.probed = true
		e.checkProbe(number, failed)
		return
	}
	s.coverage.count("endpoint", "catches up", "any")
	if number < e.latest && e.refused[number] < e.silent-recordedWithin {
		s.violate(checker.Events, e.Merchant, "", fmt.Sprintf("%s was down, and accepts event %d after event %d", e.URL, number, e.latest))
	}
	e.latest = number
}

// checkProbe checks the first event that an endpoint accepts after it was down: the oldest that it
// refused, unless that was tried often or given up. Failed is how long nothing was accepted.
func (e *endpoint) checkProbe(number int64, failed time.Duration) {
	s, tried, oldest := e.merchant.sim, 0, number
	often := int(triedLong / max(failed/60, time.Minute)) // the pauses grow, so it is tried less often
	for event, times := range e.tried {
		if tried += times; times < often && !e.first[event] {
			oldest = min(oldest, event)
		}
	}
	if tried < knownDown || s.daysAhead || s.plan.clocksOff {
		return
	}
	s.coverage.count("endpoint", "probed", "any")
	if oldest < number {
		s.violate(checker.Events, e.Merchant, "", fmt.Sprintf("%s was down, and accepts event %d before event %d", e.URL, number, oldest))
	}
}
