package payin

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/worker"
)

// otherAccounts are the accounts of a merchant's routes that can take an order if its own takes no
// charge, except those that it was tried at. Accounts after its own in the order of the routes come
// first, then those before it.
func (s *Service) otherAccounts(ctx context.Context, m *store.Merchant, p *payment.Payin, c *store.Charge) []string {
	tried := []string{p.Processor}
	if c.Number > 1 {
		charges, err := s.Store.Charges(ctx, p.Merchant, p.ID)
		if err != nil {
			return nil
		}
		for i := range charges {
			tried = append(tried, charges[i].Account)
		}
	}
	order := processor.NewOrder{Merchant: m.ID, Operation: payment.OperationPayin, Method: p.Method, Amount: p.Amount, ExternalID: p.ExternalID}
	var list []string
	own := 0
	for _, r := range payment.RoutesOf(m.Routes, payment.OperationPayin, p.Method) {
		switch {
		case r.Account == p.Processor:
			own = len(list)
		case !slices.Contains(tried, r.Account) && !budgetIsReserved(s.Processors.Find(r.Account), p.Details.Origin) && processor.Eligible(s.Processors, r, order) == nil:
			list = append(list, r.Account)
		}
	}
	return slices.Concat(list[own:], list[:own])
}

// repeatedFor is how long after a restore a request may repeat one that was answered before it: its
// charge may be at the account that cannot be reached now.
const repeatedFor = 7 * 24 * time.Hour

// restoredLately reports whether the database was restored within repeatedFor.
func (s *Service) restoredLately() bool {
	at := s.Node.ProvedAt()
	return !at.IsZero() && s.Env.Clock.Now().Sub(at) < repeatedFor
}

// movable reports whether the order may be tried at another account: every request of this one's
// charge was refused, had no effect yet (429) or was never sent, even if the look-up before the first one got no answer. If the
// process may have lost its claim, or has no free slot, that proves nothing about the account. Nor
// does a failure to reach the account soon after a restore.
func (w *chargeWork) movable() bool {
	if len(w.others) == 0 || w.MayExist || w.canceling || w.following {
		return false
	}
	notSent := w.Outcome == processor.NotSent.String() || w.Outcome == processor.Unknown.String() && w.asked
	switch {
	case w.Outcome == processor.Refused.String():
		return w.State == store.ChargeEnded
	case w.Outcome == processor.Later.String():
		return !w.restored
	case notSent:
		return w.FirstSentAt.IsZero() && !w.restored && !errors.Is(w.cause, errClaimLost) && !errors.Is(w.cause, errNoSlot)
	default:
		return false
	}
}

// untried are the accounts that may be tried next.
func (w *chargeWork) untried() []string {
	if !w.movable() {
		return nil
	}
	return w.others
}

// move ends the charge, which does not exist, and starts the order's next one at the first account
// that was not tried; false if there is none.
func (v *recordCharge) move(l *store.Loaded, c *store.Changes, p *payment.Payin) bool {
	if p.Ready() || p.Status != payment.PayinPending {
		return false
	}
	i := slices.IndexFunc(v.others, func(account string) bool { return !l.ChargedAt(p.Merchant, p.ID, account) })
	if i < 0 {
		return false
	}
	v.movedTo = v.others[i]
	ended := v.work
	ended.State, ended.MayExist, ended.Cause = store.ChargeEnded, false, worker.ErrorText(v.cause)
	ended.ClaimedBy, ended.NextAt = payment.ID{}, time.Time{}
	if ended.Outcome != processor.Refused.String() {
		ended.Outcome = processor.NotSent.String()
	}
	c.SetCharge(ended)
	p.Processor = v.movedTo
	p.Version++
	*p = c.SetPayin(*p)
	c.AddCharge(store.Charge{
		Merchant: p.Merchant, Payin: p.ID, Number: ended.Number + 1, Account: v.movedTo, State: store.ChargeWanted, NextAt: l.Now(),
	})
	return true
}
