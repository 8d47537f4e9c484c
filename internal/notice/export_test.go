package notice

import (
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

// Rules about cursors.
var (
	FromBackup = fromBackup
	SetBack    = setBack
)

// Constructors of operations, for tests of their decisions.

// NewRecord builds the operation that stores a notice.
func (s *Service) NewRecord(n store.Notice) write.Operation { return &record{s.Store.NewNotice(n)} }

// NewClaim builds the operation that claims due notices; claimed counts them.
// accounts are those of this process, by default the bank of the tests.
func NewClaim(node payment.ID, limit int, accounts ...string) (op write.Operation, claimed func() []store.Notice) {
	if len(accounts) == 0 {
		accounts = []string{"bank"}
	}
	q := NewQueue(nil, nil, nil)
	for _, account := range accounts {
		q.backlog(account).More = true
	}
	v := &claim{node: node, shares: q.reserveClaim(accounts, limit)}
	return v, func() []store.Notice { return v.claimed }
}

// NewEnd builds the operation that finishes a notice.
func NewEnd(n store.Notice) write.Operation { return &end{notice: n} }

// NewDelay builds the operation that schedules a notice again.
func NewDelay(n store.Notice, again time.Duration, lastError string) write.Operation {
	return &end{notice: n, again: again, lastError: lastError}
}

// NewDeadLetter builds the operation that gives a notice up, with a case.
func NewDeadLetter(n store.Notice, v store.Case) write.Operation {
	return &end{notice: n, lastError: v.Params["reason"], review: &v}
}
