package simulate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// bankWire carries a process's calls to the bank, or does not.
type bankWire struct {
	node *node
	life int
}

// RoundTrip implements [http.RoundTripper].
func (w *bankWire) RoundTrip(r *http.Request) (*http.Response, error) {
	n, s := w.node, w.node.sim
	n.alive(w.life)
	body, err := readAll(r)
	if err != nil {
		return nil, err
	}
	c := &bankCall{wire: w, request: r, body: body}
	c.classify()
	c.state = s.stateOf(c.externalID)
	if s.bank.down {
		s.trace.linef("%s %s: bank is not reached", n.name, c.name())
		return nil, errDial
	}
	kind := c.draw()
	if kind != "" {
		s.result.Faults++
		if c.operation == bankapi.OpTransfer || c.operation == bankapi.OpQuery && c.transfer {
			s.result.PayoutFaults++
		}
		s.cells.fire(c.group(), kind, c.state)
		s.trace.linef("%s %s: %s", n.name, c.name(), kind)
	}
	if s.chance(s.plan.interleave) && !s.calm { // it takes a while to get there
		n.elapse(w.life, s.between(0, 100*time.Millisecond))
	}
	answer, err := c.carry(kind)
	n.alive(w.life)
	if r.Context().Err() != nil && err == nil {
		err = r.Context().Err()
	}
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// bankCall is one call under way.
type bankCall struct {
	wire       *bankWire
	request    *http.Request
	body       []byte
	operation  bankapi.Operation // "" for a list
	transfer   bool              // about a transfer, not a charge
	externalID string
	state      string // of the order, when the call begins
}

// classify reads from the request what it is about.
func (c *bankCall) classify() {
	path := c.request.URL.Path
	switch {
	case c.request.Method == http.MethodPost && path == "/transfers":
		c.operation, c.transfer = bankapi.OpTransfer, true
		_, rest, _ := bytes.Cut(c.body, []byte(`"externalId":"`))
		id, _, _ := bytes.Cut(rest, []byte(`"`))
		c.externalID = string(id)
	case strings.HasPrefix(path, "/transfers/"):
		c.operation, c.transfer, c.externalID = bankapi.OpQuery, true, path[len("/transfers/"):]
	case c.request.Method == http.MethodPut && strings.HasPrefix(path, "/charges/"):
		c.operation, c.externalID = bankapi.OpCharge, path[len("/charges/"):]
	case strings.HasPrefix(path, "/charges/"):
		c.operation, c.externalID = bankapi.OpQuery, path[len("/charges/"):]
	}
}

func (c *bankCall) name() string {
	return c.request.Method + " " + c.request.URL.Path + " " + c.externalID
}

// group is the row of the table of faults.
func (c *bankCall) group() string {
	switch {
	case c.operation == bankapi.OpTransfer:
		return "transfer"
	case c.operation == bankapi.OpCharge:
		return "charge"
	case c.operation == bankapi.OpQuery && c.transfer:
		return "look-up, payout"
	case c.operation == bankapi.OpQuery:
		return "look-up, pay-in"
	default:
		return "list"
	}
}

// draw chooses what goes wrong with this call.
func (c *bankCall) draw() string {
	s := c.wire.node.sim
	switch c.operation {
	case bankapi.OpTransfer:
		return s.fault(s.plan.calls, c.group(), c.state, callFaults, callFaults, transferFaults)
	case bankapi.OpCharge:
		return s.fault(s.plan.calls/2, c.group(), c.state, callFaults)
	case bankapi.OpQuery:
		return s.fault(s.plan.queries, c.group(), c.state, callFaults, callFaults, []string{stale})
	default:
		return s.fault(s.plan.queries/4, c.group(), c.state, callFaults)
	}
}

// carry does what kind says: with the request, with its answer, or neither.
func (c *bankCall) carry(kind string) (*http.Response, error) {
	s := c.wire.node.sim
	switch kind {
	case "refused":
		return nil, errDial
	case "no_name":
		return nil, &net.DNSError{Err: "no such host", Name: "bank.sim", IsNotFound: true}
	case "timeout_before":
		return nil, c.hang()
	case "reset_before":
		return nil, errReset
	case "503_before", "429_before", "401_before":
		status := map[string]int{"503_before": 503, "429_before": 429, "401_before": 401}[kind]
		return response(c.request, status, nil, []byte("no")), nil
	case "refuse", "notify_twice", "notify_reordered", "notify_never":
		s.bank.arm(bankapi.OpTransfer, bankapi.FaultKind(kind))
	case "twice":
		if _, err := s.bank.serve(c.request, c.body); err != nil {
			return nil, err
		}
	case stale:
		if old := s.answers[c.externalID]; old != nil {
			return response(c.request, http.StatusOK, jsonHeader(), old), nil
		}
	}
	before := s.bank.delayed()
	answer, err := s.bank.serve(c.request, c.body)
	if s.bank.delayed() > before {
		s.result.Faults++
		s.result.PayoutFaults++
		s.cells.fire(c.group(), "delayed", c.state)
	}
	if err != nil {
		return nil, c.hang()
	}
	return c.spoil(kind, answer)
}

// spoil does to an answer what kind says.
func (c *bankCall) spoil(kind string, answer *http.Response) (*http.Response, error) {
	n := c.wire.node
	s := n.sim
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	if c.operation == bankapi.OpQuery && answer.StatusCode == http.StatusOK && len(body) > 0 && s.chance(300) {
		s.answers[c.externalID] = body
	}
	switch kind {
	case "timeout_after":
		return nil, c.hang()
	case "reset_after":
		return nil, errReset
	case "500_after":
		return response(c.request, 500, nil, []byte("oops")), nil
	case "504_after":
		return response(c.request, 504, nil, nil), nil
	case "half_json":
		return response(c.request, answer.StatusCode, answer.Header, body[:len(body)/2]), nil
	case "not_json":
		return response(c.request, 200, http.Header{"Content-Type": {"text/html"}}, []byte("<html>Bem-vindo</html>")), nil
	case "gzip":
		header := jsonHeader()
		header.Set("Content-Encoding", "gzip")
		return response(c.request, 200, header, body), nil
	case "huge":
		return response(c.request, 200, jsonHeader(), bytes.Repeat([]byte(" "), 1<<20+1)), nil
	case "empty":
		return response(c.request, 200, jsonHeader(), nil), nil
	case "other_id":
		return response(c.request, answer.StatusCode, answer.Header,
			bytes.ReplaceAll(body, []byte(c.externalID), []byte(strings.Repeat("z", len(c.externalID))))), nil
	case "late":
		n.elapse(c.wire.life, 3*time.Second)
	case "notice_first":
		n.elapse(c.wire.life, 1500*time.Millisecond)
	}
	return answer, nil
}

// hang waits until the caller has lost its patience.
func (c *bankCall) hang() error {
	return c.wire.node.hang(c.wire.life, c.request.Context())
}

func (n *node) hang(life int, ctx context.Context) error {
	for ctx.Err() == nil {
		wait, ok := n.sim.clock.Next()
		if !ok {
			return errors.New("simulate: a call without time-out")
		}
		n.elapse(life, max(wait, time.Microsecond))
	}
	return ctx.Err()
}

func jsonHeader() http.Header { return http.Header{"Content-Type": {"application/json"}} }

// noticeWire carries the bank's notices to one of the gateways.
type noticeWire struct{ sim *simulation }

// RoundTrip implements [http.RoundTripper].
func (w *noticeWire) RoundTrip(r *http.Request) (*http.Response, error) {
	s := w.sim
	body, err := readAll(r)
	if err != nil {
		return nil, err
	}
	state := s.stateOf(subjectOf(body))
	kind := s.fault(s.plan.notices, "notice", state, noticeFaults)
	if kind != "" {
		s.result.Faults++
		s.cells.fire(s.group("notice", subjectOf(body)), kind, state)
		s.trace.linef("notice about %s: %s", subjectOf(body), kind)
	}
	switch kind {
	case "lost":
		return nil, errReset
	case "late":
		s.elapse(s.between(time.Second, 4*time.Second))
	case "twice":
		if _, err := s.deliverNotice(r, body); err != nil {
			return nil, err
		}
	case "forged":
		forged := bytes.ReplaceAll(body, []byte(`"id":"`), []byte(`"id":"f`))
		s.refuses(r, forged, "H6", "a forged notice")
	case "replayed":
		kept := r.Clone(s.ctx)
		s.after(s.between(10*time.Minute, time.Hour), func() {
			if !s.plan.badTime {
				s.refuses(kept, body, "H7", "a notice from long ago")
			}
		})
	}
	answer, err := s.deliverNotice(r, body)
	if kind == "answer_lost" {
		return nil, errReset
	}
	return answer, err
}

// refuses expects a notice to be turned away, by whoever answers at all.
func (s *simulation) refuses(r *http.Request, body []byte, rule, what string) {
	answer, err := s.deliverNotice(r, body)
	if err != nil {
		return
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusUnauthorized && answer.StatusCode != http.StatusServiceUnavailable {
		s.violate(rule, "", "", fmt.Sprintf("%s is answered %d", what, answer.StatusCode))
	}
}

// subjectOf is the order that a notice is about.
func subjectOf(body []byte) string {
	_, rest, _ := bytes.Cut(body, []byte(`"externalId":"`))
	id, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(id)
}

// deliverNotice hands a notice to a gateway that is up.
func (s *simulation) deliverNotice(r *http.Request, body []byte) (*http.Response, error) {
	n := s.reachable()
	if n == nil {
		return nil, errDial
	}
	w, ok := n.serve(r, body)
	if !ok {
		return nil, errReset
	}
	return w.response(r), nil
}

// serve is a request that reached a gateway; ok is false where it died over it.
func (n *node) serve(r *http.Request, body []byte) (w *recorder, ok bool) {
	w = &recorder{header: http.Header{}}
	r = r.Clone(r.Context())
	r.Body, r.ContentLength, r.RequestURI, r.RemoteAddr = io.NopCloser(bytes.NewReader(body)), int64(len(body)), "", "192.0.2.1:1"
	ok = n.sim.step(n, func() { n.handler.ServeHTTP(w, r) })
	return w, ok && w.status != 0
}

// reachable is a gateway that answers; nil where none does.
func (s *simulation) reachable() *node {
	first := s.number(len(s.nodes))
	for i := range s.nodes {
		n := s.nodes[(first+i)%len(s.nodes)]
		if n.up && n.frozenUntil <= s.clock.Monotonic() {
			return n
		}
	}
	return nil
}
