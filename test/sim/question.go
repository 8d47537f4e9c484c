package sim

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
	"github.com/porteira/porteira/test/sim/checker"
)

// carryQuestion carries a question of the bank about a transfer to one of the gateways, with
// faults.
func (s *simulation) carryQuestion(r *http.Request, body []byte) (*http.Response, error) {
	externalID := textAfter(body, `"externalId":"`)
	state := s.stateOf(externalID)
	fault := s.drawFault(s.plan.notices, "question", state, questionFaults)
	if fault != "" {
		s.countFault("question", fault, state)
		s.trace.linef("question about %s: %s", externalID, fault)
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
		s.expectRefused(r, forged, "a forged question")
	}
	answer, err := s.deliverNotice(r, body)
	s.checkAnswer(answer, externalID, state, textAfter(body, `"id":"`))
	if fault == "answer_lost" {
		return nil, errReset
	}
	return answer, err
}

// checkAnswer counts the answer to a question by the state of the payout. One that was paid gives
// consent to no other transfer than the one that paid it, about which a question may be on its way.
func (s *simulation) checkAnswer(answer *http.Response, externalID, state, transfer string) {
	said := "no answer"
	if answer != nil && answer.StatusCode == http.StatusOK {
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			s.fail(err)
		}
		answer.Body = io.NopCloser(bytes.NewReader(body))
		said = textAfter(body, `"status":"`)
		s.trace.linef("consent to a transfer of %s, which is %s: %s %s", externalID, state, said, textAfter(body, `"reason":"`))
	}
	s.coverage.count("consent", said, state)
	if said != string(bankapi.ConsentApproved) || state != "COMPLETED" && state != "RETURNED" {
		return
	}
	var paidBy string
	if err := s.raw.QueryRowContext(s.ctx, "SELECT processor_id FROM payouts WHERE external_id = $1", externalID).Scan(&paidBy); err != nil {
		s.fail(err)
	}
	if paidBy != transfer {
		s.violate(checker.SingleTransfer, "", externalID, fmt.Sprintf("transfer %s gets consent, but %s has paid the payout", transfer, paidBy))
	}
}
