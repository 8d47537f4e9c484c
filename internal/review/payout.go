package review

import (
	"context"
	"fmt"
	"strings"

	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/outgoing"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
)

func needsPayout(v *Resolve, n *store.Needs) {
	n.Payout(v.opened.Merchant, v.opened.Subject)
	n.Sends(v.opened.Merchant, v.opened.Subject)
	n.Balances(v.opened.Merchant)
	n.ExpectDeliveries(v.opened.Merchant, 1)
}

// payout is the loaded payout that the case is about.
func (v *Resolve) payout(l *store.Loaded) (payment.Payout, error) {
	p, ok := l.Payout(v.opened.Merchant, v.opened.Subject)
	if !ok {
		return p, problem.New(problem.NotFound, fmt.Sprintf("The case is about %s, which is not a payout of the merchant.", v.opened.Subject))
	}
	return p, nil
}

// checkUnknown returns a problem unless the outcome of the payout is unknown.
func checkUnknown(v *Resolve, l *store.Loaded) error {
	p, err := v.payout(l)
	if err != nil {
		return err
	}
	if err := outgoing.CanDeclare(l, &p); err != nil {
		return err
	}
	return v.checkHeld(&p)
}

// heldPostings is more than the postings of a payout that holds money.
const heldPostings = 10

// findHeld reads what is held for the payout.
func findHeld(ctx context.Context, s *Service, v *Resolve) error {
	list, err := s.Store.PostingsAbout(ctx, v.opened.Merchant, v.opened.Subject, heldPostings)
	v.held = new(money.Cents)
	for i := range list {
		if list[i].Account == ledger.Held {
			*v.held += list[i].Amount
		}
	}
	return err
}

// checkHeld returns a problem if the row of a payout that holds money has not the amount and fee that
// are held: it was changed, and its end would move other money.
func (v *Resolve) checkHeld(p *payment.Payout) error {
	if v.held == nil || p.Amount+p.Fee == *v.held {
		return nil
	}
	return problem.New(problem.InvalidState, fmt.Sprintf("R$ %s is held for the payout, but its row has an amount of R$ %s and a fee of R$ %s: "+
		"somebody changed it in the database. Set amount and fee right there, then decide.", v.held.Decimal(), p.Amount.Decimal(), p.Fee.Decimal()))
}

// needsDamagedPayout is needsPayout for a payout whose row need not be decodable.
func needsDamagedPayout(v *Resolve, n *store.Needs) {
	m, subject := v.opened.Merchant, v.opened.Subject
	n.DamagedPayout(m, subject)
	n.Sends(m, subject)
	n.Balances(m)
	n.ExpectDeliveries(m, 2)
}

// checkDamaged returns a problem unless the payout is parked and its outcome is unknown. A payout
// that was never sent can be paid only if the database is an older copy, which lacks the send.
func checkDamaged(v *Resolve, l *store.Loaded) error {
	p, err := v.payout(l)
	if err != nil {
		return err
	}
	if v.How == store.ResolvedPaid && p.Status == payment.PayoutPending && v.history.RestoredAt.IsZero() {
		return problem.New(problem.InvalidState, "The payout was never sent.")
	}
	if err := outgoing.CanDeclareDamaged(l, &p); err != nil {
		return err
	}
	return v.checkHeld(&p)
}

// payoutOutcomes returns the outcomes of the payout's sends, in their order.
func payoutOutcomes(v *Resolve, l *store.Loaded) string {
	return outcomesOf(l.Sends(v.opened.Merchant, v.opened.Subject))
}

func outcomesOf(sends []store.Send) string {
	list := make([]string, len(sends))
	for i := range sends {
		list[i] = string(sends[i].Outcome)
	}
	return strings.Join(list, " ")
}

// findRestoreAndHeld reads when the database was last restored, and what is held for the payout.
func findRestoreAndHeld(ctx context.Context, s *Service, v *Resolve) error {
	if err := findHeld(ctx, s, v); err != nil {
		return err
	}
	return findHistory(ctx, s, v)
}

// checkWaiting returns a problem unless the payout waits to be sent again and none of its sends had
// an effect. A restored backup may lack some sends.
func checkWaiting(v *Resolve, l *store.Loaded) error {
	p, err := v.payout(l)
	if err != nil {
		return err
	}
	if outgoing.LookUpFirst(&p, v.history.RestoredAt, v.history.ProvedAt, l.Now()) {
		return problem.New(problem.InvalidState, "The payout may have been sent before the database was restored from a backup. It is looked up first.")
	}
	return outgoing.CanWithdraw(l, &p)
}

// checkKnown returns a problem if money is still held for the payout: without a decision about it
// the hold would stay.
func checkKnown(v *Resolve, l *store.Loaded) error {
	p, err := v.payout(l)
	if err == nil && p.Status == payment.PayoutProcessing {
		err = problem.New(problem.InvalidState, "The payout's money is still held: declare it paid or not paid.")
	}
	return err
}

func checkReleased(v *Resolve, l *store.Loaded) error {
	p, err := v.payout(l)
	if err == nil && p.Step == payment.StepPaidLate {
		err = problem.New(problem.InvalidState, "The payout's money is booked already.")
	}
	return err
}

// checkPaid returns a problem unless the payout's money left, and not all of it has come back.
func checkPaid(v *Resolve, l *store.Loaded) error {
	p, err := v.payout(l)
	f, _ := l.FoundTransfer(p.Merchant, p.ExternalID)
	if late := p.Step == payment.StepPaidLate && f.Amount > 0; err == nil && p.Status != payment.PayoutCompleted && !late {
		err = problem.New(problem.InvalidState, fmt.Sprintf("The payout is %s: nothing is left to return.", p.Status))
	}
	return err
}

// closeOthers closes the payout's other cases that the decision resolves.
func (v *Resolve) closeOthers(c *store.Changes, kinds ...store.CaseKind) {
	c.CloseCase(v.opened.Merchant, v.opened.ID, v.How) // first: of two closings the first counts
	for _, kind := range kinds {
		c.CloseCases(v.opened.Merchant, v.opened.Subject, kind, store.ResolvedWithOther)
	}
}

// ended are the kinds of cases that a decision about the outcome of a payout resolves. A damaged
// payout may have two cases about its outcome.
func (v *Resolve) ended() []store.CaseKind {
	list := []store.CaseKind{store.CasePayoutUnknown, store.CaseContradiction}
	if v.opened.Kind == store.CaseDamaged {
		list = append(list, store.CaseDamaged)
	}
	return list
}

func declarePaid(v *Resolve, l *store.Loaded, c *store.Changes) error {
	p, _ := l.Payout(v.opened.Merchant, v.opened.Subject)
	v.closeOthers(c, v.ended()...)
	return outgoing.DeclarePaid(l, c, &p, v.EndToEndID, v.Evidence)
}

func declareNotPaid(v *Resolve, l *store.Loaded, c *store.Changes) error {
	p, _ := l.Payout(v.opened.Merchant, v.opened.Subject)
	v.closeOthers(c, v.ended()...)
	return outgoing.DeclareNotPaid(l, c, &p, v.Evidence)
}

func sendAgain(v *Resolve, l *store.Loaded, c *store.Changes) error {
	p, _ := l.Payout(v.opened.Merchant, v.opened.Subject)
	v.closeOthers(c, store.CasePayoutUnknown)
	outgoing.DeclareNotFound(l, c, &p, v.Evidence)
	return nil
}

func declareReturned(v *Resolve, l *store.Loaded, c *store.Changes) error {
	p, _ := l.Payout(v.opened.Merchant, v.opened.Subject)
	return outgoing.DeclareReturned(l, c, &p)
}

// findExternalID reads the external id of the payout, whose row may be damaged.
func findExternalID(ctx context.Context, s *Service, v *Resolve) error {
	p, err := s.Store.DamagedOrder(ctx, v.opened.Merchant, v.opened.Subject)
	v.externalID = p.ExternalID
	return err
}

func needsLate(v *Resolve, n *store.Needs) {
	needsDamagedPayout(v, n)
	n.FoundTransfer(v.opened.Merchant, v.externalID)
}

// bookLate books the amount of a payout that left after its hold was released, as it was
// reported, at the expense of its merchant.
func bookLate(v *Resolve, l *store.Loaded, c *store.Changes) error {
	p, _ := l.Payout(v.opened.Merchant, v.opened.Subject)
	return outgoing.DeclarePaidLate(l, c, &p, v.opened.Amount, false)
}

// writeOffLate is bookLate at the expense of the platform.
func writeOffLate(v *Resolve, l *store.Loaded, c *store.Changes) error {
	p, _ := l.Payout(v.opened.Merchant, v.opened.Subject)
	return outgoing.DeclarePaidLate(l, c, &p, v.opened.Amount, true)
}
