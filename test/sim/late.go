package sim

import (
	"errors"
	"slices"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/review"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/test/sim/checker"
)

// paidAfterRelease is the cause of cases about payouts that were paid after their release.
const paidAfterRelease = string(store.ReasonPaidAfterRelease)

// mistake lets people err, in some runs: they release a payout or a refund that the bank has paid, or
// that waits there and is in no statement yet.
func (s *simulation) mistake(v *unknownOutcome, r *review.Request) bool {
	if v.cause == otherAmount || v.cause == otherPayment || r.How != "" && r.How != store.ResolvedPaid || !s.chance(s.plan.mistakes) {
		return false
	}
	r.How, r.EndToEndID = store.ResolvedRelease, ""
	s.mistaken[v.externalID] = true
	return true
}

// bookLate lets people resolve the cases about payouts that were paid after their release, at the
// expense of the merchant or the platform; it reports whether they resolved any.
func (s *simulation) bookLate() (booked bool) {
	if len(s.mistaken) == 0 || s.damaged != nil {
		return false
	}
	list, err := s.paidLate()
	if err != nil {
		s.fail(err)
	}
	for i := range list {
		if v := &list[i]; !s.deciding[v.id] {
			s.deciding[v.id] = true
			booked = s.bookLateCase(v) || booked
			delete(s.deciding, v.id)
		}
	}
	return booked
}

func (s *simulation) bookLateCase(v *unknownOutcome) bool {
	c := s.contracts[slices.IndexFunc(s.contracts, func(c *contract) bool { return c.id == v.account })]
	if o, _, err := c.bank.PeekOrder(v.subject, v.externalID); err != nil {
		s.fail(err)
	} else if o.State != bankapi.OrderPaid {
		s.violate(checker.Progress, "", v.externalID, "a case says that it was paid after its release, the bank says "+string(o.State))
		return false
	}
	r := review.Request{Case: v.id, How: store.ResolvedPaid, Actor: firstPerson, Reason: "asked the bank", Evidence: checker.DecidedEvidence}
	if s.chance(300) {
		r.How = store.ResolvedWriteOff
	}
	action := s.decide(v, r)
	if action == "" { // an earlier proposal waits, which no gateway took the second decision about
		r.How = review.Withdraw
		return s.decide(v, r) == store.DecisionWithdrawn
	}
	if action == store.DecisionProposed {
		s.elapse(s.between(0, confirmsWithin))
		r.Actor = secondPerson
		action = s.decide(v, r)
	}
	return action == store.DecisionResolved || action == store.DecisionConfirmed
}

// paidLate are the open cases about payouts that were paid after their release.
func (s *simulation) paidLate() (list []unknownOutcome, err error) {
	rows, err := s.raw.QueryContext(s.ctx, `SELECT c.id, p.processor, p.external_id FROM cases c
		JOIN payouts p ON p.merchant_id = c.merchant_id AND p.id = c.subject_id
		WHERE c.closed_at = 0 AND c.kind = 'contradiction' AND c.stops_payouts = 1 ORDER BY c.id`)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		v, id := unknownOutcome{subject: bankapi.SubjectTransfer, cause: paidAfterRelease}, []byte(nil)
		if err := rows.Scan(&id, &v.account, &v.externalID); err != nil {
			return nil, err
		}
		v.id = payment.ID(id)
		list = append(list, v)
	}
	return list, rows.Err()
}
