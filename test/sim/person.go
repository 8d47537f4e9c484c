package sim

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/review"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/test/sim/checker"
)

// People decide the cases about payouts and refunds of unknown outcome: each of them asks the bank
// what it has under the order's id, and decides by that.

// The operator's people.
const (
	operatorActor = "operator:an operator"
	firstPerson   = "operator:ana"
	secondPerson  = "operator:bia"
)

// unknownOutcome is an open case about a payout, or a part of a refund, of unknown outcome.
type unknownOutcome struct {
	id                  payment.ID
	subject             bankapi.Subject
	cause               string
	account, externalID string
}

// Causes of cases about refunds that a copy lacked, and that were repeated with other parts.
const otherAmount, otherPayment = "other_amount", "other_payment"

// resendable are the causes of cases whose order may be sent again.
var resendable = map[bankapi.Subject][]string{
	bankapi.SubjectTransfer: {string(store.ReasonNoAnswer), string(store.ReasonNotIdempotent)},
	bankapi.SubjectRefund:   {string(store.ReasonNoAnswer), string(store.ReasonNotIdempotent), "other_part"},
}

// decidesEvery is how often people look at the open cases, and confirmsWithin how long the
// second one takes.
const (
	decidesEvery   = 20 * time.Second
	confirmsWithin = 45 * time.Second
)

// schedulePersons lets people look at the cases until the faults stop.
func (s *simulation) schedulePersons() {
	if !s.plan.persons {
		return
	}
	s.after(s.between(0, decidesEvery), func() {
		if !s.faultsOff {
			s.decideUnknown()
			s.bookLate()
			s.schedulePersons()
		}
	})
}

// decideUnknown decides the cases about unknown outcomes, as far as the bank knows what became of
// the order; it reports whether it decided any. Some of them nobody decides.
func (s *simulation) decideUnknown() (decided bool) {
	if !s.plan.persons || s.damaged != nil {
		return false
	}
	list, err := s.unknownOutcomes()
	if err != nil {
		s.fail(err)
	}
	for i := range list {
		v := &list[i]
		leave, known := s.undecided[v.id]
		if !known {
			leave = s.chance(150)
			s.undecided[v.id] = leave
		}
		if !leave && !s.deciding[v.id] {
			s.deciding[v.id] = true
			decided = s.decideCase(v) || decided
			delete(s.deciding, v.id)
		}
	}
	return decided
}

func (s *simulation) unknownOutcomes() (list []unknownOutcome, err error) {
	rows, err := s.raw.QueryContext(s.ctx, `SELECT c.id, c.params, coalesce(p.processor, ''), coalesce(p.external_id, '') FROM cases c
		LEFT JOIN payouts p ON p.merchant_id = c.merchant_id AND p.id = c.subject_id
		WHERE c.closed_at = 0 AND c.kind IN ('payout_unknown', 'refund_unknown') ORDER BY c.id`)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		v := unknownOutcome{subject: bankapi.SubjectTransfer}
		var id, params []byte
		if err := rows.Scan(&id, &params, &v.account, &v.externalID); err != nil {
			return nil, err
		}
		if v.id, v.cause = payment.ID(id), textAfter(params, `"reason":"`); v.externalID == "" {
			v.subject, v.cause = bankapi.SubjectRefund, textAfter(params, `"cause":"`)
			v.account, v.externalID = textAfter(params, `"processor":"`), textAfter(params, `"externalId":"`)
		}
		list = append(list, v)
	}
	return list, rows.Err()
}

// decideCase lets one person decide a case, and another one confirm it, or withdraw it if the
// bank now says otherwise. It reports whether the case is decided.
func (s *simulation) decideCase(v *unknownOutcome) bool {
	r := s.answerOf(v)
	mistaken := s.mistake(v, &r)
	if r.How == "" {
		s.coverage.count("decision, "+string(v.subject), "none", v.cause)
		return false
	}
	r.Actor = firstPerson
	action := s.decide(v, r)
	if action == "" { // an earlier proposal waits, which no gateway took the second decision about
		r.How, r.EndToEndID = review.Withdraw, ""
		return s.decide(v, r) == store.DecisionWithdrawn
	}
	if action != store.DecisionProposed {
		return action == store.DecisionResolved
	}
	if s.chance(100) { // one person is not two
		if again := s.decide(v, r); again != "" {
			s.violate(checker.Progress, "", v.externalID, "one person alone made a decision for two: "+string(again))
		}
	}
	s.elapse(s.between(time.Second, confirmsWithin))
	r.Actor = secondPerson
	now := s.answerOf(v)
	if mistaken {
		now = r
	}
	if now.How != r.How && (now.How == "" || r.How == store.ResolvedPaid || now.How == store.ResolvedPaid) || now.EndToEndID != r.EndToEndID {
		r.How, r.EndToEndID = review.Withdraw, ""
	}
	return s.decide(v, r) == store.DecisionConfirmed
}

// answerOf is the decision that follows from the bank's own records, in which nothing is late; its
// resolution is "" while the bank has not decided either.
func (s *simulation) answerOf(v *unknownOutcome) review.Request {
	r := review.Request{Case: v.id, Reason: "asked the bank", Evidence: checker.DecidedEvidence}
	c := s.contracts[slices.IndexFunc(s.contracts, func(c *contract) bool { return c.id == v.account })]
	waits, err := c.bank.PeekDelayed(v.subject, v.externalID)
	if err != nil {
		s.fail(err)
	}
	o, has, err := c.bank.PeekOrder(v.subject, v.externalID)
	if err != nil {
		s.fail(err)
	}
	switch {
	case v.cause == otherAmount || v.cause == otherPayment: // a copy lacked a refund: what it gave back has other terms
	case o.State == bankapi.OrderPaid:
		if r.How = store.ResolvedPaid; v.subject == bankapi.SubjectTransfer {
			r.EndToEndID = o.EndToEndID
		}
	case waits || o.State == bankapi.OrderProcessing:
	case !has && slices.Contains(resendable[v.subject], v.cause) && s.chance(500):
		r.How = store.ResolvedResend
	default:
		r.How = store.ResolvedRelease
	}
	return r
}

// decide sends a decision to a gateway; the action is "" if it is refused.
func (s *simulation) decide(v *unknownOutcome, r review.Request) (action store.DecisionAction) {
	n := s.reachableNode()
	if n == nil {
		return ""
	}
	var err error
	s.step(n, func() {
		var result review.Result
		result, err = n.reviews().Resolve(context.WithoutCancel(s.ctx), r)
		action = result.Action
	})
	if err != nil {
		action = ""
	}
	s.trace.linef("%s decides about %s (%s): %s: %s %v", r.Actor, v.externalID, v.cause, r.How, action, err)
	switch {
	case action != "":
		s.coverage.count("decision, "+string(v.subject), string(action)+" "+string(r.How), v.cause)
	case problem.Is(err, problem.InvalidState):
		s.coverage.count("decision, "+string(v.subject), "refused "+string(r.How), v.cause)
	case problem.Is(err, problem.NotFound) && s.checker.Rewound: // a copy lacks the case
	case err != nil && !problem.Is(err, problem.Unavailable):
		s.violate(checker.NoFailure, "", v.externalID, "a decision failed: "+err.Error())
	}
	return action
}

// reviews is the service that resolves cases, in this process.
func (n *node) reviews() *review.Service {
	return n.core.Reviews
}
