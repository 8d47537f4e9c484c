package storetest

import (
	"fmt"
	"time"

	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// completeStatement selects every row.
var completeStatement = store.StatementFilter{To: 1 << 62, Limit: 1 << 20}

func (s *suite) statement(m store.Merchant, f store.StatementFilter) (list []string) {
	s.Helper()
	rows := must(s.store.Statement(s.Context(), m.ID, f))
	for i := range rows {
		r := &rows[i]
		list = append(list, fmt.Sprintf("%d %s %s %d = %d", r.Number, r.Kind, r.Account, r.Amount, r.BalanceAfter))
	}
	return list
}

var statementTests = []test{
	{"a statement numbers the postings of the merchant's own accounts without gaps, in the order of commits", func(s *suite) {
		m, other := s.merchant(), s.merchant()
		s.commit(post(m, ledger.Fund("bank", 100), ledger.HoldPayout(60, 1)), post(other, ledger.Fund("bank", 7)))
		s.commit(post(m, ledger.PayPayout("bank", 60, 1)))
		s.wantError(s.try(post(m, ledger.HoldPayout(1000, 0))), ledger.ErrInsufficient)
		s.commit(post(other, ledger.Fund("bank", 3)), post(m, ledger.Receive("bank", 50, 2)))
		s.equal("statement", s.statement(m, completeStatement), []string{
			"1 funded available 100 = 100",
			"2 payout_held available -61 = 39",
			"3 payout_held held 61 = 61",
			"4 payout_paid held -61 = 0",
			"5 received available 48 = 87",
		})
		s.equal("of another merchant", s.statement(other, completeStatement), []string{"1 funded available 7 = 7", "2 funded available 3 = 10"})
		s.equal("one account", s.statement(m, store.StatementFilter{Account: ledger.Held, To: 9, Limit: 9}), []string{"3 payout_held held 61 = 61", "4 payout_paid held -61 = 0"})
		s.equal("one kind", s.statement(m, store.StatementFilter{Kind: ledger.PayoutHeld, To: 9, Limit: 1}), []string{"2 payout_held available -61 = 39"})
		s.equal("a range", s.statement(m, store.StatementFilter{After: 1, To: 3, Limit: 9}), []string{"2 payout_held available -61 = 39", "3 payout_held held 61 = 61"})
		end := must(s.store.StatementEnd(s.Context(), m.ID))
		s.equal("end", end, 5)
	}},
	{"concurrent entries take numbers without gaps", func(s *suite) {
		const writers, rounds = 16, 8
		m := s.merchant()
		s.concurrently(writers, func(i int) (err error) {
			for n := 0; n < rounds && err == nil; n++ {
				err = s.try(post(m, ledger.Receive("bank", 10, 1), ledger.HoldPayout(2, 0)))
			}
			return err
		})
		rows := must(s.store.Statement(s.Context(), m.ID, completeStatement))
		s.equal("rows", len(rows), writers*rounds*3)
		sums := ledger.Balances{}
		for i := range rows {
			sums[rows[i].Account] += rows[i].Amount
			s.equal("number, balance", values(rows[i].Number, rows[i].BalanceAfter), values(i+1, sums[rows[i].Account]))
		}
	}},
	{"commits that open different accounts of a merchant take different numbers", func(s *suite) {
		for range 8 {
			m := s.merchant()
			s.concurrently(4, func(i int) error {
				account := fmt.Sprint("bank", i)
				if i%2 == 0 {
					return s.try(post(m, ledger.Fund(account, 5)))
				}
				return s.try(post(m, ledger.ReceiveUnapplied(account, 5)))
			})
			rows := must(s.store.Statement(s.Context(), m.ID, completeStatement))
			for i := range rows {
				s.equal("number", rows[i].Number, i+1)
			}
			s.equal("rows", len(rows), 4)
		}
	}},
	{"balances before a time are the sums of the statement before it", func(s *suite) {
		m := s.merchant()
		var times []time.Time
		for i := range 21 {
			s.commit(post(m, ledger.Fund("bank", money.Cents(i+1)), ledger.HoldPayout(1, 0)))
			rows := must(s.store.Statement(s.Context(), m.ID, store.StatementFilter{After: int64(3 * i), To: 1 << 62, Limit: 1}))
			times = append(times, rows[0].CreatedAt)
		}
		for i, at := range append(times, times[20].Add(time.Hour)) {
			end := must(s.store.StatementBefore(s.Context(), m.ID, at))
			first := 0 // entries of this time or later
			for first < len(times) && times[first].Before(at) {
				first++
			}
			s.equal(fmt.Sprint("the end before ", i), end, 3*first)
			b := must(s.store.BalancesBefore(s.Context(), m.ID, at))
			s.equal(fmt.Sprint("balances before ", i), values(int64(b[ledger.Available]), int64(b[ledger.Held]), int64(b[ledger.Owed])), values(first*(first+1)/2-first, first, 0))
		}
		b := must(s.store.BalancesBefore(s.Context(), payment.ID{9}, times[0]))
		s.equal("of no merchant", len(b), 0)
	}},
}
