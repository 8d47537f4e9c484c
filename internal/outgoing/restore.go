package outgoing

import (
	"slices"
	"time"

	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// lookUpFirstFor is how long after a proved restore new payouts are looked up before they are sent:
// merchants repeat requests whose orders the backup lacks. After an unproved cold start the lists
// of transfers have shown all of them.
const lookUpFirstFor = 7 * 24 * time.Hour

// LookUpFirst reports whether a payout may have been sent before the last cold start, at
// restoredAt, in commits that a copy of the database lacks. A payout that has not changed since
// then may have been sent, however late it becomes due. A row written while a clock was ahead does
// not show when it changed. provedAt is the time of the last proof that the database is a copy.
func LookUpFirst(p *payment.Payout, restoredAt, provedAt, now time.Time) bool {
	if restoredAt.IsZero() {
		return false
	}
	return p.UpdatedAt.Before(restoredAt) || p.UpdatedAt.After(now) || p.Lookups == 0 && !provedAt.IsZero() && now.Sub(provedAt) <= lookUpFirstFor
}

// isFromBeforeProof reports whether a payout or a part of a refund is from before a proved restore:
// from before its account was cleared, if that restore was the last cold start.
func isFromBeforeProof(createdAt, clearedAt, restoredAt, provedAt time.Time) bool {
	return !provedAt.IsZero() && (createdAt.Before(provedAt) || !provedAt.Before(restoredAt) && createdAt.Before(clearedAt))
}

// lookUpIsFresh is how long a look-up that found no transfer allows the next send.
const lookUpIsFresh = time.Minute

// lookUpBefore reports whether a payout must be looked up before its next send: before the first
// send if the processor wants that, and before each send if the processor would pay the payout
// twice. A decision of people to send again changes nothing: the transfer may have appeared since.
// A copy of the disk, or a new machine, shows no sign of an older database, so a look-up from
// before this process, node, does not count.
func lookUpBefore(e processor.Effect, p *payment.Payout, sends []store.Send, node payment.ID, now time.Time) bool {
	if e.Repeat.Safe() && !(e.LookUpFirst && len(sends) == 0) || !withoutTransfer(sends) {
		return false
	}
	return p.Lookups == 0 || now.Sub(p.UpdatedAt).Abs() > lookUpIsFresh || precedes(p.UpdatedAt, node, now) // its clock may have been ahead
}

// precedes reports whether a time is before the start of a process, by the process's id. An id made
// while the clock was ahead does not show that.
func precedes(at time.Time, node payment.ID, now time.Time) bool {
	joinedAhead := payment.CompareIDs(node, payment.MinIDAt(now.Add(clockTolerance))) > 0
	return !joinedAhead && payment.CompareIDs(payment.MinIDAt(at.Add(time.Millisecond)), node) <= 0
}

// withoutEffect reports whether every send of a payout is proved to have had no effect.
func withoutEffect(sends []store.Send) bool { return len(possibleSends(sends)) == 0 }

// possibleSends returns the sends of a payout that may have had an effect.
func possibleSends(sends []store.Send) []store.Send {
	return slices.DeleteFunc(slices.Clone(sends), func(s store.Send) bool { return s.Outcome.NoEffect() })
}

// withoutTransfer reports whether every send of a payout had no effect or was not found.
func withoutTransfer(sends []store.Send) bool {
	return !slices.ContainsFunc(sends, func(s store.Send) bool { return !s.Outcome.NoEffect() && s.Outcome != store.SendNotFound })
}

// A payout or refund that waits for its merchant's debt is claimed again after half the time of its
// wait so far, within these bounds.
const (
	debtWaitMin = time.Minute
	debtWaitMax = time.Hour
)

// debtWaitBeforeCase is how long a payout waits for its merchant's debt before a case is opened.
const debtWaitBeforeCase = time.Hour

// isFrozen reports whether payouts of an account wait, after a restore, until the account's
// transfers have been read: money may have left that this database does not show. history is the
// number of the database's history.
func isFrozen(l *store.Loaded, account string, history int64) bool {
	if history == 0 {
		return false
	}
	f, ok := l.Feed(store.Transfers(account))
	return !ok || f.Cleared != history
}

// isFrozenFor reports whether the payouts and refunds of a merchant at an account wait after a
// restore. They wait until the lists of that account have been read, and the lists of each other
// account from which the merchant's money may have left. The backup may lack the cancellation of a
// payout, or the end of a refund: the order is queued here, although its money left elsewhere.
// No payout from after the restore is delayed, because new payouts are refused meanwhile. A new
// refund may wait for an account that gives nothing back.
func (e *Executor) isFrozenFor(merchant payment.ID, account string) bool {
	return e.Node.Frozen(account) || e.Node.History() > 0 &&
		slices.ContainsFunc(e.Processors.AddedUntil(e.Node.RestoredAt(), merchant), e.Node.Frozen)
}

// clearedAfter reports whether a payout is from before its account was cleared, after a proved
// restore, and the time of the clearance.
func (v *claimSends) clearedAfter(l *store.Loaded, p *payment.Payout) (at time.Time, ok bool) {
	if v.history == 0 {
		return at, false
	}
	f, _ := l.Feed(store.Transfers(v.due.Processor))
	return f.ClearedAt, isFromBeforeProof(p.CreatedAt, f.ClearedAt, v.restoredAt, v.provedAt)
}

// waitsForDebt makes a payout from before the account's clearance wait while its merchant owes
// money. The found transfers took more than the merchant had, so the payout's money is among the
// money that left. A long wait opens a case, which is closed when the payout goes on.
func (v *claimSends) waitsForDebt(l *store.Loaded, c *store.Changes, p *payment.Payout) bool {
	cleared, ok := v.clearedAfter(l, p)
	if !ok {
		return false
	}
	of := waitCase(p.ID, "debt", len(l.Sends(p.Merchant, p.ID)))
	owed := -l.Balances(p.Merchant)[ledger.Owed]
	if owed == 0 {
		c.CloseCase(p.Merchant, of, store.ResolvedByRepayment)
		return false
	}
	waited := l.Now().Sub(cleared)
	if waited >= debtWaitBeforeCase {
		c.OpenCase(store.Case{
			Merchant: p.Merchant, ID: of, Kind: store.CasePayoutWaiting, Subject: p.ID, Amount: p.Amount,
			Params: store.ReasonDebt.With(store.Params{"owed": owed.String()}),
		})
	}
	p.Lookups = min(p.Lookups, 1) // those of one wait do not delay the look-ups of the next one
	p.NextAt = l.Now().Add(debtWait(waited))
	c.SetPayout(*p)
	return true
}

// waitsForDebt is [claimSends.waitsForDebt] for a part of a refund: the backup may lack that the
// refund was given up and its money left. The account of the part may list no transfers.
func (v *claimRefunds) waitsForDebt(l *store.Loaded, c *store.Changes, p *payment.RefundPart) bool {
	if !v.due.Debts {
		return false
	}
	h := l.History()
	since := h.RestoredAt
	if f, _ := l.Feed(store.Transfers(p.Processor)); f.ClearedAt.After(since) {
		since = f.ClearedAt
	}
	if !isFromBeforeProof(p.CreatedAt, since, h.RestoredAt, h.ProvedAt) {
		return false
	}
	of := waitCase(p.Refund, "debt of part", int(p.Number))
	owed := l.OwedBy(p.Merchant)
	if owed == 0 {
		c.CloseCase(p.Merchant, of, store.ResolvedByRepayment)
		return false
	}
	waited := l.Now().Sub(since)
	if waited >= debtWaitBeforeCase {
		w := partCase(p, of, store.CaseRefundWaiting, "")
		w.Params = store.ReasonRefundDebt.With(w.Params)
		w.Params["owed"] = owed.String()
		c.OpenCase(w)
	}
	p.NextAt = l.Now().Add(debtWait(waited))
	c.SetRefundPart(*p)
	return true
}

// debtWait is the time until an order that waits for a debt is claimed again.
func debtWait(waited time.Duration) time.Duration {
	return min(max(waited/2, debtWaitMin), debtWaitMax)
}
