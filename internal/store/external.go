package store

import (
	"context"
	"errors"

	"github.com/porteira/porteira/internal/payment"
)

// ExternalID derives the one id that an order has at processors, from its merchant's reference.
func (s *Store) ExternalID(m *Merchant, op payment.Operation, reference string) string {
	return s.external.New(m.Number, m.ID, op, reference)
}

// IsDerived reports whether this installation derived an external id, even for a merchant that the
// database lacks.
func (s *Store) IsDerived(externalID string) bool {
	_, err := s.external.MerchantNumber(externalID)
	return err == nil && len(externalID) == payment.ExternalIDLength
}

// MerchantOf finds the merchant of an external id of this installation. If there is none, or the id
// is from elsewhere, it returns the zero id, which is the platform.
func (s *Store) MerchantOf(ctx context.Context, externalID string) (payment.ID, error) {
	number, err := s.external.MerchantNumber(externalID)
	if err != nil || number == 0 {
		return payment.ID{}, nil //nolint:nilerr // an id that cannot be read or is another installation's is the platform's, by rule
	}
	if m, ok := s.numbers.Load(number); ok {
		return m.(payment.ID), nil
	}
	m, err := s.MerchantByNumber(ctx, number)
	if errors.Is(err, ErrNotFound) {
		return payment.ID{}, nil
	}
	if err != nil {
		return payment.ID{}, err
	}
	s.numbers.Store(number, m.ID)
	return m.ID, nil
}

// ForgetMerchants clears the cache of merchants by their numbers: a restored database may lack some.
func (s *Store) ForgetMerchants() { s.numbers.Clear() }
