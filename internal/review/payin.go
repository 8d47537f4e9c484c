package review

import (
	"fmt"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/transition"
)

func needsCharge(v *Resolve, n *store.Needs) { n.Charge(v.opened.Merchant, v.opened.Subject) }

// endCancels ends the attempts to cancel the charge of a pay-in.
func endCancels(v *Resolve, l *store.Loaded, c *store.Changes) error {
	endWork(v, l, c, store.ChargeToCancel)
	return nil
}

// endWork ends the work on the charge of a pay-in if it is in a state.
func endWork(v *Resolve, l *store.Loaded, c *store.Changes, state store.ChargeState) {
	if w, ok := l.Charge(v.opened.Merchant, v.opened.Subject); ok && w.State == state {
		w.State, w.ClaimedBy, w.NextAt = store.ChargeEnded, payment.ID{}, time.Time{}
		c.SetCharge(w)
	}
}

func needsPayin(v *Resolve, n *store.Needs) {
	n.Payin(v.opened.Merchant, v.opened.Subject)
	n.ExpectDeliveries(v.opened.Merchant, 1)
	needsCharge(v, n)
}

// checkProcessing returns a problem unless the pay-in is neither paid nor refused.
func checkProcessing(v *Resolve, l *store.Loaded) error {
	p, ok := l.Payin(v.opened.Merchant, v.opened.Subject)
	if !ok {
		return problem.New(problem.NotFound, fmt.Sprintf("The case is about %s, which is not a pay-in of the merchant.", v.opened.Subject))
	}
	if p.Status != payment.PayinProcessing {
		return problem.New(problem.InvalidState, fmt.Sprintf("Pay-in %s is %s: the processor has decided. The case closes by itself.", p.ID, p.Status))
	}
	return nil
}

// failPayin fails a pay-in whose payment the processor refused. A payment that arrives
// nevertheless is kept as unapplied.
func failPayin(v *Resolve, l *store.Loaded, c *store.Changes) error {
	p, _ := l.Payin(v.opened.Merchant, v.opened.Subject)
	p.Failure = &payment.Failure{Code: "not_paid", Message: "The processor refused the payment."}
	if _, err := transition.Payin(l, c, &p, v.links, payment.OnFail); err != nil {
		return err
	}
	endWork(v, l, c, store.ChargeFollowed)
	return nil
}
