package review

import (
	"context"
	"fmt"
	"strings"

	"github.com/porteira/porteira/internal/outgoing"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/refund"
	"github.com/porteira/porteira/internal/store"
)

// refundRules are the rules of cases about refunds, and of unapplied money that is given back.
var refundRules = []rule{
	{
		kind: store.CaseOverpaid, Option: Option{How: store.ResolvedReturn, Persons: 1},
		prepare: prepareReturn, needs: needsReturn, check: checkReturn, effect: returnUnapplied,
	},
	{kind: store.CaseRefundUnknown, Option: with(twoPersons, store.ResolvedPaid), prepare: findRefund, needs: needsRefund, check: checkRefundUnknown, sendOutcomes: partOutcomes, effect: declareRefundPaid},
	{kind: store.CaseRefundUnknown, Option: release, prepare: findRefund, needs: needsRefund, check: checkRefundUnknown, sendOutcomes: partOutcomes, effect: declareRefundNotPaid},
	{kind: store.CaseRefundUnknown, Option: resend, prepare: findRefund, needs: needsRefund, check: checkRefundUnknown, sendOutcomes: partOutcomes, effect: sendRefundAgain},
	{kind: store.CaseRefundUnknown, Option: dismiss, prepare: findRefund, needs: needsRefund, check: checkRefundKnown, effect: dismissRefund},
	{
		kind: store.CaseRefundWaiting, Option: Option{How: store.ResolvedRelease, Persons: 1, Evidence: true},
		prepare: findRefund, needs: needsRefund, check: checkRefundWaiting, effect: declareRefundNotPaid,
	},
	{kind: store.CaseRefundUnexpected, Option: dismiss},
}

// prepareReturn prepares the refund of unapplied money.
func prepareReturn(ctx context.Context, s *Service, v *Resolve) (err error) {
	v.unapplied, err = refund.NewUnapplied(ctx, s.Store, &v.opened)
	return err
}

func needsReturn(v *Resolve, n *store.Needs) { v.unapplied.Needs(n) }

func checkReturn(v *Resolve, l *store.Loaded) error { return v.unapplied.Check(l) }

func returnUnapplied(v *Resolve, l *store.Loaded, c *store.Changes) error {
	return v.unapplied.Apply(l, c)
}

// findRefund reads the refund that the case is about, and when the database was last restored.
func findRefund(ctx context.Context, s *Service, v *Resolve) error {
	r, err := s.Store.Refund(ctx, v.opened.Merchant, v.opened.Subject)
	if v.refunded = r.Payin; err != nil {
		return err
	}
	return findHistory(ctx, s, v)
}

func needsRefund(v *Resolve, n *store.Needs) {
	outgoing.NeedsOfRefund(n, v.opened.Merchant, v.opened.Subject, v.refunded)
	n.ExpectDeliveries(v.opened.Merchant, 2)
}

// part is the loaded part of the refund that the case is about.
func (v *Resolve) part(l *store.Loaded) (payment.RefundPart, error) {
	return partOf(&v.opened, l.RefundParts(v.opened.Merchant, v.opened.Subject))
}

// partOf is the one of a refund's parts that a case is about.
func partOf(c *store.Case, parts []payment.RefundPart) (payment.RefundPart, error) {
	for _, p := range parts {
		if p.Processor == c.Params["processor"] && p.ExternalID == c.Params["externalId"] {
			return p, nil
		}
	}
	return payment.RefundPart{}, problem.New(problem.NotFound, "The case is about no refund of the merchant.")
}

// partOutcomes returns the number of sends of the part, and the outcome of the last one.
func partOutcomes(v *Resolve, l *store.Loaded) string {
	p, err := v.part(l)
	if err != nil {
		return "" // the check says so
	}
	return outcomesOfPart(&p)
}

func outcomesOfPart(p *payment.RefundPart) string {
	return strings.TrimSpace(fmt.Sprint(p.Sends, " ", p.Outcome))
}

func checkRefundUnknown(v *Resolve, l *store.Loaded) error {
	p, err := v.part(l)
	if err != nil {
		return err
	}
	return outgoing.CanDeclareRefund(l, p)
}

func checkRefundKnown(v *Resolve, l *store.Loaded) error {
	p, err := v.part(l)
	if err != nil {
		return err
	}
	return outgoing.CanDismissRefund(&p)
}

func checkRefundWaiting(v *Resolve, l *store.Loaded) error {
	p, err := v.part(l)
	if err != nil {
		return err
	}
	return outgoing.CanWithdrawRefund(l, p, v.history)
}

// close closes the case as decided, before the effect closes all cases of the refund as proved.
func (v *Resolve) close(c *store.Changes) {
	c.CloseCase(v.opened.Merchant, v.opened.ID, v.How)
}

func declareRefundPaid(v *Resolve, l *store.Loaded, c *store.Changes) error {
	p, err := v.part(l)
	if err != nil {
		return err
	}
	v.close(c)
	return outgoing.DeclareRefundPaid(l, c, p, v.links, v.EndToEndID, v.Evidence)
}

func declareRefundNotPaid(v *Resolve, l *store.Loaded, c *store.Changes) error {
	p, err := v.part(l)
	if err != nil {
		return err
	}
	v.close(c)
	return outgoing.DeclareRefundNotPaid(l, c, p, v.links, v.Evidence)
}

func sendRefundAgain(v *Resolve, l *store.Loaded, c *store.Changes) error {
	p, err := v.part(l)
	if err == nil {
		outgoing.DeclareRefundNotFound(l, c, p, v.Evidence)
	}
	return err
}

func dismissRefund(v *Resolve, l *store.Loaded, c *store.Changes) error {
	p, err := v.part(l)
	if err == nil {
		outgoing.DismissRefund(l, c, p)
	}
	return err
}
