package checker

import (
	"testing"

	"github.com/porteira/porteira/internal/payment"
)

// sellPriced creates a pay-in with a price, and one that settles on the next day, both paid.
func (s *scene) sellPriced() {
	s.t.Helper()
	terms := payment.Terms{BasisPoints: 100, Fixed: 10}
	for reference, days := range map[string]int{"in-fee": 0, "in-later": 1} {
		terms.Days = days
		s.merchant.Prices = []payment.Price{{Method: payment.PIX, Range: payment.Range{From: 1, To: 1, Terms: terms}}}
		p := s.payin(reference, 10_000, "")
		s.pay(p.ExternalID, reference, 10_000)
	}
	s.merchant.Prices = nil
}

// Each fault of a receivable or a fee is reported, and sound ones are not.
func TestReceivables(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(s *scene) {
		s.checker.Fee = func(_, kind string, amount int64) int64 {
			if kind == Payout || amount == 0 {
				return 0
			}
			return amount/100 + 10
		}
		s.sellPriced()
		s.wantSound()
		s.relax()
		for _, c := range []struct{ name, words, statement string }{
			{"it settles before its day", "a receivable of", "UPDATE receivables SET state = 'settled', settled_at = settles_at - 1"},
			{"it settles without an entry", "pending is 9890", "UPDATE receivables SET state = 'settled', settled_at = settles_at"},
			{"a part is taken without an entry", "pending is 9890", "UPDATE receivables SET taken = taken + 1"},
			{"more is taken than there is", "is taken", "UPDATE receivables SET taken = gross"},
			{"one without money", "receivables of 10001", "INSERT INTO receivables (merchant_id, id, payin_id, installment, gross, fee, taken, state, settles_at, settled_at, created_at) " +
				"SELECT merchant_id, payin_id, payin_id, 1, 1, 0, 0, 'pending', settles_at, 0, created_at FROM receivables"},
			{"one of a time that no price has", "settles at", "INSERT INTO receivables (merchant_id, id, payin_id, installment, gross, fee, taken, state, settles_at, settled_at, created_at) " +
				"SELECT merchant_id, payin_id, payin_id, 1, 1, 0, 0, 'pending', settles_at + 1, 0, created_at FROM receivables"},
			{"a fee without an entry", "the fee is 111", "UPDATE payins SET fee = fee + 1, version = version + 1 WHERE reference_id = 'in-fee'"},
			{"a fee beyond the price", "the fee of 10000 is 111, not 110", "UPDATE payins SET fee = fee + 1, version = version + 1 WHERE reference_id = 'in-fee'"},
		} {
			s.want(c.name, s.corrupt([]string{c.statement}, nil), Amounts, c.words)
		}
	})
}
