package outgoing

import (
	"time"

	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// lookUpFirstFor is how long after a restored backup every payout is looked up
// before it is sent: merchants repeat requests whose orders the backup lacks.
const lookUpFirstFor = 7 * 24 * time.Hour

// LookUpFirst reports whether a payout may have been sent before the database was
// restored from a backup, at restoredAt, in commits that the backup lacks.
func LookUpFirst(p *payment.Payout, restoredAt, now time.Time) bool {
	if restoredAt.IsZero() || now.Sub(restoredAt) > lookUpFirstFor {
		return false
	}
	return p.Lookups == 0 || p.UpdatedAt.Before(restoredAt)
}

// lookUpIsFresh is how long a look-up that did not find a transfer allows its first send.
const lookUpIsFresh = time.Minute

// lookUpBeforeFirst reports whether a payout must be looked up before its first send, at
// a processor that would pay it twice: a copy of the database's disk, or a new machine,
// shows no sign that the database is an older one.
func lookUpBeforeFirst(p *payment.Payout, sends []store.Send, now time.Time) bool {
	return len(sends) == 0 && (p.Lookups == 0 || now.Sub(p.UpdatedAt) > lookUpIsFresh)
}

// debtWait is the wait of a payout that may be sent once its merchant owes nothing.
const debtWait = time.Minute

// frozen reports whether payouts of the account wait until its transfers are read, after
// a restore: money may have left of which this database shows nothing.
func (v *claimSends) frozen(l *store.Loaded) bool {
	if v.history == 0 {
		return false
	}
	f, ok := l.Feed(store.Transfers(v.due.Processor))
	return !ok || f.Cleared != v.history
}

// waitsForDebt reports whether a payout from before the account was cleared waits, because
// the transfers that were found took more than its merchant had: its money is among what
// has left.
func (v *claimSends) waitsForDebt(l *store.Loaded, p *payment.Payout) bool {
	if v.history == 0 || l.Balances(p.Merchant)[ledger.Owed] == 0 {
		return false
	}
	f, _ := l.Feed(store.Transfers(v.due.Processor))
	return p.CreatedAt.Before(f.ClearedAt)
}
