package sim

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// bankTransport carries a process's calls to the bank, with faults.
type bankTransport struct {
	node *node
	life int
}

// RoundTrip implements [http.RoundTripper].
func (t *bankTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	n, s := t.node, t.node.sim
	n.exitIfDead(t.life)
	body, err := readAll(r)
	if err != nil {
		return nil, err
	}
	c := &bankCall{transport: t, request: r, body: body}
	c.classify()
	c.state = s.stateOf(c.externalID)
	if c.transfer && c.operation == bankapi.OpQuery && c.state == "PENDING" && s.checker.Rewound {
		c.state = "PENDING in a copy" // the bank lists a transfer that the copy lacks
	}
	if s.bank.unreachable {
		s.trace.linef("%s %s: bank is unreachable", n.name, c.name())
		return nil, errDial
	}
	if c.contract.hangs != "" {
		return nil, c.meetHanging()
	}
	fault := c.drawFault()
	if fault == "twice" && !s.survivesTwice(c) {
		fault = "" // no gateway could prevent the second effect
	}
	if fault != "" {
		c.countFault(fault)
		s.trace.linef("%s %s: %s", n.name, c.name(), fault)
	}
	if s.chance(s.plan.interleave) && !s.faultsOff { // the request is slow
		n.elapse(t.life, s.between(0, 100*time.Millisecond))
	}
	answer, err := c.carry(fault)
	n.exitIfDead(t.life)
	if r.Context().Err() != nil && err == nil {
		err = r.Context().Err()
	}
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// survivesTwice reports whether a request that arrives twice has one effect. A transfer at a bank
// that asks for consent has.
func (s *simulation) survivesTwice(c *bankCall) bool {
	switch {
	case c.operation != bankapi.OpTransfer && c.operation != bankapi.OpRefund:
		return true
	case c.contract.profile == consenting:
		return c.operation == bankapi.OpTransfer
	default:
		return c.contract.profile != notIdempotent
	}
}

// bankCall is a call in flight.
type bankCall struct {
	transport  *bankTransport
	request    *http.Request
	contract   *contract
	body       []byte
	operation  bankapi.Operation // "" for a list
	transfer   bool              // about a transfer, not a charge
	refund     bool              // about a refund
	cancel     bool              // of a charge
	externalID string
	state      string // of the order, when the call begins
}

// classify reads the subject of the call from the request.
func (c *bankCall) classify() {
	s := c.transport.node.sim
	path := c.request.URL.Path
	c.contract = s.contracts[0]
	for _, other := range s.contracts[1:] {
		if rest, ok := strings.CutPrefix(path, other.path()); ok {
			c.contract, path = other, rest
		}
	}
	switch {
	case c.request.Method == http.MethodPost && path == "/transfers":
		c.operation, c.transfer, c.externalID = bankapi.OpTransfer, true, textAfter(c.body, `"externalId":"`)
	case c.request.Method == http.MethodPost && path == "/refunds":
		c.operation, c.refund, c.externalID = bankapi.OpRefund, true, textAfter(c.body, `"externalId":"`)
	case strings.HasPrefix(path, "/refunds/"):
		c.operation, c.refund, c.externalID = bankapi.OpQuery, true, path[len("/refunds/"):]
	case strings.HasPrefix(path, "/transfers/"):
		c.operation, c.transfer, c.externalID = bankapi.OpQuery, true, path[len("/transfers/"):]
	case c.request.Method == http.MethodPut && strings.HasPrefix(path, "/charges/"):
		c.operation, c.externalID = bankapi.OpCharge, path[len("/charges/"):]
	case strings.HasPrefix(path, "/charges/") && strings.HasSuffix(path, "/cancel"):
		c.cancel, c.externalID = true, strings.TrimSuffix(path[len("/charges/"):], "/cancel")
	case strings.HasPrefix(path, "/charges/"):
		c.operation, c.externalID = bankapi.OpQuery, path[len("/charges/"):]
	}
}

func (c *bankCall) name() string {
	return c.request.Method + " " + c.request.URL.Path + " " + c.externalID
}

// subject names what the call is about: each contract has records of its own.
func (c *bankCall) subject() string { return c.contract.path() + " " + c.externalID }

// group is the group of the call's faults.
func (c *bankCall) group() string {
	switch {
	case c.operation == bankapi.OpTransfer:
		return "transfer, " + c.contract.profile
	case c.operation == bankapi.OpCharge:
		return "charge, " + c.contract.profile
	case c.operation == bankapi.OpRefund:
		return "refund, " + c.contract.profile
	case c.refund:
		return "look-up, refund"
	case c.cancel:
		return "cancel"
	case c.operation == bankapi.OpQuery && c.transfer:
		return "look-up, payout"
	case c.operation == bankapi.OpQuery:
		return "look-up, pay-in"
	default:
		return "list"
	}
}

func (c *bankCall) drawFault() string {
	s := c.transport.node.sim
	switch c.operation {
	case "":
		if c.cancel {
			return s.drawFault(s.plan.calls/2, c.group(), c.state, callFaults)
		}
		return s.drawFault(s.plan.queries/4, c.group(), c.state, callFaults)
	case bankapi.OpTransfer:
		return s.drawFault(s.plan.calls, c.group(), c.state, callFaults, callFaults, transferFaults)
	case bankapi.OpRefund:
		return s.drawFault(s.plan.calls, c.group(), c.state, callFaults, callFaults, refundFaults)
	case bankapi.OpCharge:
		return s.drawFault(s.plan.calls/2, c.group(), c.state, callFaults, []string{registering})
	case bankapi.OpQuery:
		return s.drawFault(s.plan.queries, c.group(), c.state, callFaults, callFaults, []string{stale})
	default:
		return ""
	}
}

func (c *bankCall) countFault(fault string) {
	s := c.transport.node.sim
	s.countFault(c.group(), fault, c.state)
	if c.operation == bankapi.OpTransfer || c.operation == bankapi.OpCharge || c.operation == bankapi.OpRefund {
		s.result.EffectFaults++
	}
	if c.transfer {
		s.result.PayoutFaults++
	}
}

// carry carries the request to the bank, unless the fault prevents it.
func (c *bankCall) carry(fault string) (*http.Response, error) {
	s := c.transport.node.sim
	switch fault {
	case "refused":
		return nil, errDial
	case "no_name":
		return nil, &net.DNSError{Err: "no such host", Name: "bank.sim", IsNotFound: true}
	case "timeout_before":
		return nil, c.hang()
	case "reset_before":
		return nil, errReset
	case "503_before", "429_before", "401_before":
		status := map[string]int{"503_before": 503, "429_before": 429, "401_before": 401}[fault]
		return response(c.request, status, nil, []byte("no")), nil
	case "refuse", "later", "known", "notify_twice", "notify_reordered", "notify_never":
		s.bank.arm(c.contract, c.operation, bankapi.FaultKind(fault))
	case registering:
		s.bank.arm(c.contract, bankapi.OpCharge, bankapi.Registering)
	case "twice":
		if _, err := s.bank.serve(c.request, c.body); err != nil {
			return nil, err
		}
	case stale:
		if old := s.oldAnswers[c.subject()]; old != nil {
			return response(c.request, http.StatusOK, jsonHeader(), old), nil
		}
	}
	before := s.bank.delayedCount()
	answer, err := s.bank.serve(c.request, c.body)
	if s.bank.delayedCount() > before {
		c.countFault("delayed")
	}
	if err != nil {
		return nil, c.hang()
	}
	return c.corrupt(fault, answer)
}

// corrupt applies the fault to the answer.
func (c *bankCall) corrupt(fault string, answer *http.Response) (*http.Response, error) {
	n := c.transport.node
	s := n.sim
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	if c.operation == bankapi.OpQuery && answer.StatusCode == http.StatusOK && len(body) > 0 && s.chance(300) {
		s.oldAnswers[c.subject()] = body
	}
	switch fault {
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
		n.elapse(c.transport.life, 3*time.Second)
	case "notice_first":
		n.elapse(c.transport.life, 1500*time.Millisecond)
	}
	return answer, nil
}

// meetHanging carries the call to an account that hangs.
func (c *bankCall) meetHanging() error {
	n, how := c.transport.node, c.contract.hangs
	c.countFault(string(how))
	n.sim.trace.linef("%s %s: account %s %s", n.name, c.name(), c.contract.id, how)
	if how == hangsAfter {
		answer, err := n.sim.bank.serve(c.request, c.body)
		if err != nil {
			return err
		}
		_ = answer.Body.Close()
	}
	return c.hang()
}

// hang waits until the caller gives up.
func (c *bankCall) hang() error {
	return c.transport.node.hang(c.transport.life, c.request.Context())
}
