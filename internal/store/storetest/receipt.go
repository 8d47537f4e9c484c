package storetest

import (
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

var receiptTests = []test{
	{"a payment is booked once, within a commit and across commits", func(s *suite) {
		m := s.merchant()
		s.equal("fresh in one commit", s.receive(s.receipt(m, "E1"), s.receipt(m, "E2"), s.receipt(m, "E1"), s.receipt(m, "e1"), s.receipt(m, "E2")),
			[]bool{true, true, false, true, false})
		other := s.receipt(m, "E1")
		other.Processor = "other"
		s.equal("fresh in the next", s.receive(s.receipt(m, "E1"), s.receipt(m, "E3"), other), []bool{false, true, true})
		var one, two []bool
		s.commit(receive(&one, s.receipt(m, "E4")), receive(&two, s.receipt(m, "E4"), s.receipt(m, "E5")))
		s.equal("fresh in two operations", values(one, two), "[[true] [false true]]")
		s.equal("receipts", len(s.receipts(m.ID, payment.ID{})), 7)
		over := s.receipt(m, "over")
		over.Applied = over.Amount + 1
		s.wantRefused("more applied than paid", s.try(receive(&one, over)))
		s.wantBooked("over", false)
	}},
	{"a payment is booked once across merchants", func(s *suite) {
		one, two := s.merchant(), s.merchant()
		s.equal("fresh", s.receive(s.receipt(one, "X"), s.receipt(two, "X")), []bool{true, false})
		s.wantBooked("X", true)
		s.wantBooked("x", false)
		s.equal("receipts of each", values(len(s.receipts(one.ID, payment.ID{})), len(s.receipts(two.ID, payment.ID{}))), values(1, 0))
	}},
	// The effect is in the commit of the claim, so it happens once.
	{"a payment is booked once by concurrent commits", func(s *suite) {
		list := []store.Merchant{s.merchant(), s.merchant()}
		s.concurrently(50, func(i int) error {
			var fresh []bool
			return s.try(receive(&fresh, s.receipt(list[i%2], "many")))
		})
		s.equal("receipts", len(s.receipts(list[0].ID, payment.ID{}))+len(s.receipts(list[1].ID, payment.ID{})), 1)
	}},
}

func (s *suite) receipt(m store.Merchant, id string) *payment.Receipt {
	return &payment.Receipt{Merchant: m.ID, ID: s.id(), Processor: "bank", ExternalID: id, Amount: 500, Applied: 300, PaidAt: s.now()}
}

// receive books receipts, and reports which are fresh.
func receive(fresh *[]bool, list ...*payment.Receipt) operation {
	return does(func(n *needs) { n.Receipts(list...) }, func(l *loaded, c *changes) {
		*fresh = nil
		for _, r := range list {
			if *fresh = append(*fresh, l.Inserted(r.ID)); l.Inserted(r.ID) {
				c.AddReceipt(*r)
			}
		}
	})
}

func (s *suite) receive(list ...*payment.Receipt) (fresh []bool) {
	s.Helper()
	s.commit(receive(&fresh, list...))
	return fresh
}

func (s *suite) receipts(merchant, payin payment.ID) []payment.Receipt {
	return must(s.store.Receipts(s.Context(), merchant, payin))
}

func (s *suite) wantBooked(id string, want bool) {
	s.Helper()
	booked := must(s.store.HasReceipt(s.Context(), "bank", id))
	s.equal(id+" is booked", booked, want)
}
