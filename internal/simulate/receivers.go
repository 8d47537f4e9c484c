package simulate

import (
	"bytes"
	"net"
	"net/http"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// receiver is where a merchant wants its news.
type receiver struct {
	sim      *simulation
	merchant *merchant
	host     string
	verify   *standardwebhooks.Webhook
	down     bool
}

func newReceiver(s *simulation, m *merchant) (*receiver, error) {
	verify, err := standardwebhooks.NewWebhook(m.signing)
	if err != nil {
		return nil, err
	}
	r := &receiver{sim: s, merchant: m, host: m.name + ".example", verify: verify}
	s.mailboxes[r.host] = r
	return r, nil
}

// webhookWire carries a process's webhooks to receivers.
type webhookWire struct {
	node *node
	life int
}

// RoundTrip implements [http.RoundTripper].
func (w *webhookWire) RoundTrip(r *http.Request) (*http.Response, error) {
	n, s := w.node, w.node.sim
	n.alive(w.life)
	body, err := readAll(r)
	if err != nil {
		return nil, err
	}
	to := s.mailboxes[r.URL.Host]
	if to == nil {
		return nil, &net.DNSError{Err: "no such host", Name: r.URL.Host, IsNotFound: true}
	}
	if to.down && !s.calm {
		return nil, errDial
	}
	kind := s.fault(s.plan.webhooks, "webhook", typeOf(body), webhookFaults)
	if kind == "410" && common[typeOf(body)] && !s.chance(100) {
		kind = "" // it ends an order's deliveries: rare, or there would be none
	}
	if kind != "" {
		s.result.Faults++
		s.cells.fire("webhook", kind, typeOf(body))
	}
	answer, err := to.receive(w, r, body, kind)
	status := 0
	if err == nil {
		status = answer.StatusCode
	}
	s.trace.linef("%s webhook %s %s: %s %d", n.name, r.Header.Get("Webhook-Id"), typeOf(body), kind, status)
	n.alive(w.life)
	return answer, err
}

// typeOf reads the type of an event.
func typeOf(body []byte) string {
	_, rest, _ := bytes.Cut(body, []byte(`"type":"`))
	kind, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(kind)
}

// receive takes a delivery in, and answers as kind says.
func (r *receiver) receive(w *webhookWire, request *http.Request, body []byte, kind string) (*http.Response, error) {
	s := r.sim
	s.gateway.arrives(request.Header.Get("Webhook-Id"))
	switch kind {
	case "refused":
		return nil, errDial
	case "timeout_before":
		return nil, w.node.hang(w.life, request.Context())
	case "slow":
		w.node.elapse(w.life, s.between(time.Second, 10*time.Second))
	}
	// The signature is judged without its time: receivers' clocks are another matter.
	if err := r.verify.VerifyIgnoringTimestamp(body, request.Header); err != nil {
		s.violate("H6", r.merchant.id, "", "a webhook's signature is wrong: "+err.Error())
	}
	got := received{merchant: r.merchant.id, url: request.URL.String(), eventID: request.Header.Get("Webhook-Id"), body: body, at: s.clock.Now()}
	answer, err := r.answer(w, request, kind)
	if err == nil {
		got.answer = answer.StatusCode
	}
	s.books.received = append(s.books.received, got)
	return answer, err
}

func (r *receiver) answer(w *webhookWire, request *http.Request, kind string) (*http.Response, error) {
	status, header, body := http.StatusOK, http.Header{}, []byte("ok")
	switch kind {
	case "timeout_after":
		return nil, w.node.hang(w.life, request.Context())
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
	case "rubbish":
		body = []byte{0, 0xff, 0xfe, '<'}
	case "huge":
		body = bytes.Repeat([]byte("a"), 100<<10)
	}
	return response(request, status, header, body), nil
}
