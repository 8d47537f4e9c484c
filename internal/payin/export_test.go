package payin

import (
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

// NewExpire builds the operation that expires a pay-in.
func (s *Service) NewExpire(ref store.Ref) write.Operation { return &expire{ref: ref, links: s.Links} }

// NewRecordCharge builds the operation that records the answer to a charge.
func (s *Service) NewRecordCharge(p payment.Payin, answer processor.ChargeAnswer) write.Operation {
	return &recordCharge{
		payin: p, charge: answer.Charge, refused: answer.Outcome == processor.Refused, failure: answer.Failure, links: s.Links,
	}
}
