package sim

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
	"github.com/porteira/porteira/test/sim/checker"
)

// noticeTransport carries the bank's notices to one of the gateways, with faults.
type noticeTransport struct{ sim *simulation }

// RoundTrip implements [http.RoundTripper].
func (t *noticeTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	s := t.sim
	body, err := readAll(r)
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(r.URL.Path, bankapi.ConsentPath) {
		return s.carryQuestion(r, body)
	}
	externalID := textAfter(body, `"externalId":"`)
	state := s.stateOf(externalID)
	fault := s.drawFault(s.plan.notices, "notice", state, noticeFaults)
	if fault != "" {
		s.countFault(s.groupOf("notice", externalID), fault, state)
		s.trace.linef("notice about %s: %s", externalID, fault)
	}
	switch fault {
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
		s.expectRefused(r, forged, "a forged notice")
	case "replayed":
		kept := r.Clone(s.ctx)
		s.after(s.between(10*time.Minute, time.Hour), func() {
			if !s.plan.clocksOff {
				s.expectRefused(kept, body, "an old notice")
			}
		})
	}
	answer, err := s.deliverNotice(r, body)
	if fault == "answer_lost" {
		return nil, errReset
	}
	return answer, err
}

// expectRefused sends a notice that every gateway must refuse.
func (s *simulation) expectRefused(r *http.Request, body []byte, what string) {
	answer, err := s.deliverNotice(r, body)
	if err != nil {
		return
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusUnauthorized && answer.StatusCode != http.StatusServiceUnavailable {
		s.violate(checker.Authenticity, "", "", fmt.Sprintf("%s is answered %d", what, answer.StatusCode))
	}
}

// deliverNotice sends a notice to a reachable gateway.
func (s *simulation) deliverNotice(r *http.Request, body []byte) (*http.Response, error) {
	n := s.reachableNode()
	if n == nil {
		return nil, errDial
	}
	w, ok := n.serve(r, body)
	if !ok {
		return nil, errReset
	}
	return recorded(r, w), nil
}
