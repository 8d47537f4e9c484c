package sim

import (
	"bytes"
	"net"
	"net/http"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/porteira/porteira/test/sim/checker"
)

// receiver receives a merchant's webhooks.
type receiver struct {
	sim      *simulation
	merchant *merchant
	host     string
	verify   *standardwebhooks.Webhook
	down     bool
}

func newReceiver(s *simulation, m *merchant) (*receiver, error) {
	verify, err := standardwebhooks.NewWebhook(m.webhookSecret)
	if err != nil {
		return nil, err
	}
	r := &receiver{sim: s, merchant: m, host: m.name + ".example", verify: verify}
	s.receivers[r.host] = r
	return r, nil
}

// webhookTransport carries a process's webhooks to receivers, with faults.
type webhookTransport struct {
	node *node
	life int
}

// RoundTrip implements [http.RoundTripper].
func (t *webhookTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	n, s := t.node, t.node.sim
	n.exitIfDead(t.life)
	body, err := readAll(r)
	if err != nil {
		return nil, err
	}
	to := s.receivers[r.URL.Host]
	if to == nil {
		return nil, &net.DNSError{Err: "no such host", Name: r.URL.Host, IsNotFound: true}
	}
	if to.down && !s.faultsOff {
		return nil, errDial
	}
	event := textAfter(body, `"type":"`)
	fault := s.drawFault(s.plan.webhooks, "webhook", event, webhookFaults)
	if fault == "410" && strings.HasPrefix(r.URL.Path, "/endpoint/") {
		fault = "" // it disables the endpoint
	}
	if fault == "410" && common[event] && !s.chance(100) {
		fault = "" // it disables all events of the order, so it must be rare
	}
	if fault != "" {
		s.countFault("webhook", fault, event)
	}
	var answer *http.Response
	if e := s.endpointOf(r.URL.String()); e != nil {
		answer, err = to.receiveAt(e, t, r, body, fault)
	} else if strings.HasPrefix(r.URL.Path, "/endpoint/") { // its merchant never knew that it exists
		answer = response(r, http.StatusOK, nil, nil)
	} else {
		answer, err = to.receive(t, r, body, fault)
	}
	status := 0
	if err == nil {
		status = answer.StatusCode
	}
	s.trace.linef("%s webhook %s %s: %s %d", n.name, r.Header.Get("Webhook-Id"), event, fault, status)
	n.exitIfDead(t.life)
	return answer, err
}

// receive records a delivery and answers it.
func (r *receiver) receive(t *webhookTransport, request *http.Request, body []byte, fault string) (*http.Response, error) {
	s := r.sim
	s.checker.Arrived(request.Header.Get("Webhook-Id"))
	switch fault {
	case "refused":
		return nil, errDial
	case "timeout_before":
		return nil, t.node.hang(t.life, request.Context())
	case "slow":
		t.node.elapse(t.life, s.between(time.Second, 10*time.Second))
	}
	// The signature's time is not checked.
	if err := r.verify.VerifyIgnoringTimestamp(body, request.Header); err != nil {
		s.violate(checker.Authenticity, r.merchant.id, "", "the signature of a webhook is wrong: "+err.Error())
	}
	received := checker.ReceivedDelivery{
		Merchant: r.merchant.id, URL: request.URL.String(), EventID: request.Header.Get("Webhook-Id"), Body: body, At: s.clock.Now(),
	}
	answer, err := r.answer(t, request, fault)
	if err == nil {
		received.Answer = answer.StatusCode
	}
	s.records.Deliveries = append(s.records.Deliveries, received)
	return answer, err
}

func (r *receiver) answer(t *webhookTransport, request *http.Request, fault string) (*http.Response, error) {
	status, header, body := http.StatusOK, http.Header{}, []byte("ok")
	switch fault {
	case "timeout_after":
		return nil, t.node.hang(t.life, request.Context())
	case "reset_after":
		return nil, errReset
	case "500":
		status = http.StatusInternalServerError
	case "503_retry_after":
		status = http.StatusServiceUnavailable
		header.Set("Retry-After", "600")
	case "429_retry_after":
		status = http.StatusTooManyRequests
		header.Set("Retry-After", "Fri, 01 Jan 2027 00:00:00 GMT")
	case "301":
		status = http.StatusMovedPermanently
		header.Set("Location", "http://169.254.169.254/")
	case "410":
		status = http.StatusGone
	case "garbage":
		body = []byte{0, 0xff, 0xfe, '<'}
	case "huge":
		body = bytes.Repeat([]byte("a"), 100<<10)
	}
	return response(request, status, header, body), nil
}
