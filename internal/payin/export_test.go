package payin

import (
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
	"github.com/porteira/porteira/internal/write"
)

// NewExpire builds the operation that expires a pay-in.
func (s *Service) NewExpire(ref store.Ref) write.Operation { return &expire{ref: ref, links: s.Links} }

// NewPark builds the operation that parks a pay-in.
func NewPark(ref store.Ref) write.Operation { return &park{ref} }

// ToPlatform makes the platform the owner of an operation's receipts.
func (v *Receive) ToPlatform() *Receive {
	v.toPlatform()
	return v
}

// NewRecordCharge builds the operation that records the answer to a charge.
func (s *Service) NewRecordCharge(p payment.Payin, answer processor.ChargeAnswer) write.Operation {
	return &recordCharge{
		payin: p, charge: answer.Charge, expiresAt: p.ExpiresAt, refused: answer.Outcome == processor.Refused, failure: answer.Failure, links: s.Links,
	}
}

// NewCreateIn builds the operation that stores the order of r in memory, where nothing is
// sealed.
func (s *Service) NewCreateIn(m store.Merchant, r *wire.PayinRequest) *CreateOp {
	p := s.newPayin(&m, r, s.Store.ExternalID(&m, payment.OperationPayin, r.ReferenceID.V), m.Routes[0].Account)
	return &CreateOp{in: &store.NewPayin{Payin: p, Fingerprint: r.Fingerprint}, Payin: p}
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
