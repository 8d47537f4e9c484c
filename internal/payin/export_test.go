package payin

import (
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
	"github.com/porteira/porteira/internal/write"
)

// NewExpire builds the operation that expires a pay-in.
func (s *Service) NewExpire(ref store.Ref) write.Operation { return &expire{ref: ref, links: s.Links} }

// ToPlatform makes the platform the owner of an operation's receipts.
func (v *Receive) ToPlatform() *Receive {
	v.toPlatform()
	return v
}

// FirstReceipt is the id of an operation's first receipt; "" if it has none.
func (v *Receive) FirstReceipt() string {
	if len(v.receipts) == 0 {
		return ""
	}
	return v.receipts[0].ID.String()
}

// NewRecordCharge builds the operation that records the answer to the first call about a
// charge. announce: the merchant has had an answer without the charge.
func (s *Service) NewRecordCharge(p payment.Payin, node payment.ID, answer processor.ChargeAnswer, announce bool) write.Operation {
	op := &recordCharge{
		payin: p, charge: answer.Charge, expiresAt: p.ExpiresAt, failure: answer.Failure, wait: time.Second, announce: announce, links: s.Links,
		work: store.Charge{
			Merchant: p.Merchant, Payin: p.ID, Number: 1, Account: p.Processor, State: store.ChargeWanted, ClaimedBy: node,
			MayExist: answer.Outcome == processor.Done || answer.Outcome == processor.Unknown, Attempts: 1, Outcome: answer.Outcome.String(),
		},
		state: map[processor.Outcome]store.ChargeState{processor.Done: store.ChargeMade, processor.Refused: store.ChargeEnded}[answer.Outcome],
	}
	if op.state == "" {
		op.state = store.ChargeWanted
	}
	return op
}

// NewRecordCancel builds the operation that records the answer to a cancellation.
func (s *Service) NewRecordCancel(c store.Charge, answer processor.CancelAnswer) write.Operation {
	w := &chargeWork{Charge: c, canceling: true}
	w.takeCancel(answer, s.Env.Clock.Now())
	op := s.newRecord(payment.Payin{Merchant: c.Merchant, ID: c.Payin}, w)
	op.wait = w.next(0)
	return op
}

// Waiting is the number of requests that wait for the charge of another.
func (s *Service) Waiting() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.charging {
		n += c.waiting
	}
	return n
}

// NewCreateOpOf is NewCreateOp of a request that a node serves.
func (s *Service) NewCreateOpOf(m store.Merchant, r *wire.PayinRequest, node payment.ID) (*CreateOp, error) {
	op, err := s.NewCreateOp(m, r)
	op.node = node
	return op, err
}

// ErrSamePix is errSamePix.
var ErrSamePix = errSamePix

// ReadElsewhere makes the operation read what it needs for an account that its order has left.
func (v *Receive) ReadElsewhere() { v.elsewhere = true }
