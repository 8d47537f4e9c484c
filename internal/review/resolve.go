package review

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/refund"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/transition"
)

// Resolve is the operation that records a decision about a case.
type Resolve struct {
	Request
	Result Result

	opened store.Case // as it was found; its kind and subject do not change
	id     payment.ID // of the decision
	rule   *rule      // nil to withdraw
	links  transition.Links
	event  int64 // number of the event whose deliveries are retried

	externalID string        // of the payout, if the rule wants its transfer
	held       *money.Cents  // for the payout; nil if the rule does not end it
	history    store.History // of the database
	consent    consented

	unapplied *refund.Unapplied // if the rule gives unapplied money back
	refunded  payment.ID        // pay-in of the refund that the case is about
}

// Merchant implements [write.Operation].
func (v *Resolve) Merchant() payment.ID { return v.opened.Merchant }

// Class implements [write.Operation].
func (v *Resolve) Class() commit.Class { return commit.Interactive }

// Needs implements [write.Operation].
func (v *Resolve) Needs(n *store.Needs) {
	n.Case(v.opened.Merchant, v.opened.ID)
	if v.rule != nil && v.rule.needs != nil {
		v.rule.needs(v, n)
	}
}

// Decide records the decision. If it needs no second person, or confirms another person's proposal,
// it closes the case and is carried out.
func (v *Resolve) Decide(l *store.Loaded, c *store.Changes) error {
	found, ok := l.Case(v.opened.Merchant, v.opened.ID)
	if !ok {
		return store.ErrNotFound
	}
	v.Result = Result{Case: found}
	decisions := l.Decisions(found.Merchant, found.ID)
	for i := range decisions {
		if decisions[i].ID == v.id { // by an earlier run whose commit was unknown
			v.Result.Action = decisions[i].Action
			return nil
		}
	}
	if !found.ClosedAt.IsZero() {
		return problem.New(problem.InvalidState, fmt.Sprintf("The case was closed at %s: %s.", found.ClosedAt.Format(time.RFC3339), found.Resolution))
	}
	action, err := v.action(Proposal(decisions), l)
	if err != nil {
		return err
	}
	closes := action == store.DecisionResolved || action == store.DecisionConfirmed
	if v.rule != nil && v.rule.check != nil {
		if err := v.rule.check(v, l); err != nil {
			return err
		}
	}
	decision := v.decision(l, action, Proposal(decisions)) // before the effect, which ends sends
	if closes && v.rule.effect != nil {
		if err := v.rule.effect(v, l, c); err != nil {
			return err
		}
	}
	c.AddDecision(decision)
	if closes {
		c.CloseCase(found.Merchant, found.ID, v.How)
	}
	v.Result.Action = action
	v.Result.Case, _ = l.Case(found.Merchant, found.ID)
	return nil
}

// Proposal is the proposal that waits for a second person; nil if there is none.
func Proposal(decisions []store.Decision) *store.Decision {
	if len(decisions) == 0 || decisions[len(decisions)-1].Action != store.DecisionProposed {
		return nil
	}
	return &decisions[len(decisions)-1]
}

// action returns the effect of this decision on the waiting proposal, or why it is refused.
func (v *Resolve) action(waiting *store.Decision, l *store.Loaded) (store.DecisionAction, error) {
	withdraw := v.rule == nil
	switch {
	case !withdraw && waiting != nil && waiting.Changed:
		return "", problem.New(problem.InvalidState, "The proposal was changed in the database, as porteira verify shows: it counts for nobody. Withdraw it: --how withdraw.")
	case withdraw && waiting == nil:
		return "", problem.New(problem.InvalidState, "There is no proposal to withdraw.")
	case withdraw:
		return store.DecisionWithdrawn, nil
	case waiting == nil && v.persons(l) > 1:
		return store.DecisionProposed, nil
	case waiting == nil:
		return store.DecisionResolved, nil
	case waiting.Resolution != v.How || !maps.Equal(inputsOf(waiting.Params), v.inputParams()):
		return "", problem.New(problem.InvalidState, fmt.Sprintf(
			"%s has proposed %s%s. Confirm exactly that, or withdraw it first: --how withdraw.", waiting.Actor.Name(), waiting.Resolution, Flags(waiting.Params)))
	case actor.MayBeSame(waiting.Actor, v.Actor):
		return "", problem.New(problem.InvalidState, waiting.Actor.Name()+" has proposed it. Another person, whose name looks different, must confirm it with the same command and another --as.")
	case waiting.Params[sendOutcomesParam] != v.sendOutcomes(l):
		return "", problem.New(problem.InvalidState, fmt.Sprintf(
			"Since %s made the proposal, the order was sent again, or the processor has reported on it. Withdraw the proposal with --how withdraw, and check again.", waiting.Actor.Name()))
	default:
		return store.DecisionConfirmed, nil
	}
}

// Flags is the inputs of a decision as the options of the command case resolve.
func Flags(p store.Params) string {
	var text strings.Builder
	for _, input := range []struct{ name, option string }{{"merchant", "merchant"}, {"order", "order"}, {"endToEndId", "end-to-end-id"}} {
		if p[input.name] != "" {
			text.WriteString(" --" + input.option + " " + p[input.name])
		}
	}
	return text.String()
}

// sendOutcomesParam names the outcomes of the sends that a proposal is based on. If they change,
// the first person's check may no longer be true.
const sendOutcomesParam = "sends"

// sendOutcomes returns the outcomes of the sends that the decision is based on; "" if it is based on
// none.
func (v *Resolve) sendOutcomes(l *store.Loaded) string {
	if v.rule == nil || v.rule.sendOutcomes == nil {
		return ""
	}
	return v.rule.sendOutcomes(v, l)
}

// Outdated reports whether an order was sent again, or its processor reported on it, since a
// proposal about it: the proposal can only be withdrawn.
func (s *Service) Outdated(ctx context.Context, c *store.Case, proposal *store.Decision) (bool, error) {
	based := proposal.Params[sendOutcomesParam]
	if based == "" {
		return false, nil
	}
	if c.Kind == store.CaseRefundUnknown {
		parts, err := s.Store.RefundParts(ctx, c.Merchant, c.Subject)
		if err != nil {
			return false, store.Problem(err)
		}
		p, err := partOf(c, parts)
		return based != outcomesOfPart(&p), err
	}
	sends, err := s.Store.Sends(ctx, c.Merchant, c.Subject)
	return based != outcomesOf(sends), store.Problem(err)
}

// params are the parameters of the decision: its inputs, and the outcomes of its sends.
func (v *Resolve) params(l *store.Loaded) store.Params {
	p := v.inputParams()
	if sends := v.sendOutcomes(l); sends != "" {
		p[sendOutcomesParam] = sends
	}
	return p
}

// inputsOf are the inputs among the parameters of a decision.
func inputsOf(p store.Params) store.Params {
	p = maps.Clone(p)
	delete(p, sendOutcomesParam)
	return p
}

// inputParams are the inputs of the resolution, which a confirmation must repeat.
func (v *Resolve) inputParams() store.Params {
	p := store.Params{}
	if !v.Request.Merchant.IsZero() {
		p["merchant"] = v.Request.Merchant.String()
	}
	if !v.Order.IsZero() {
		p["order"] = v.Order.String()
	}
	if v.EndToEndID != "" {
		p["endToEndId"] = v.EndToEndID
	}
	return p
}

// decision is the row of this decision. A withdrawal names the withdrawn proposal.
func (v *Resolve) decision(l *store.Loaded, action store.DecisionAction, waiting *store.Decision) store.Decision {
	d := store.Decision{
		Merchant: v.opened.Merchant, ID: v.id, Case: v.opened.ID, Action: action, Resolution: v.How,
		Actor: v.Actor, Reason: v.Reason, Evidence: v.Evidence, Params: v.params(l),
	}
	if action == store.DecisionWithdrawn {
		d.Resolution, d.Params = waiting.Resolution, waiting.Params
	}
	return d
}
