package storetest

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

var postingTests = []test{
	{"each posting tells the balance after it", postingsTellBalances},
	{"what is refused posts nothing", refusedPostsNothing},
	{"posts from many at once add up", postsAtOnce},
	{"holds never exceed what is there", holdsAtOnce},
	{"an account opened by two at once is opened once", accountOpenedAtOnce},
	{"a debt that is opened meanwhile is seen", debtOpenedAtOnce},
	{"two merchants in opposite order both get through", oppositeOrder},
	{"balances are whole 64-bit numbers", largeBalances},
	{"each merchant has books of its own", booksApart},
}

// post books one entry about subject in a transaction of its own.
func (b *bench) post(m store.Merchant, subject payment.ID, e ledger.Entry) error {
	return b.s.Write(b.Context(), func(tx *store.Tx) error { return tx.Post(b.Context(), m.ID, subject, e) })
}

// balances reads a merchant's books. They must equal the sums of postings, and
// what the postings say of the balance after each must make one chain from
// nothing to what there is.
func (b *bench) balances(m store.Merchant) ledger.Balances {
	b.Helper()
	balances, err := b.s.Balances(b.Context(), m.ID)
	b.must(err)
	sums := ledger.Balances{}
	type link struct {
		account ledger.Account
		balance money.Cents
	}
	open := map[link]int{}
	for _, p := range b.postings(m) {
		sums[p.Account] += p.Amount
		open[link{p.Account, p.BalanceAfter - p.Amount}]--
		open[link{p.Account, p.BalanceAfter}]++
	}
	for account, balance := range balances {
		open[link{account, 0}]++
		open[link{account, balance}]--
	}
	for end, n := range open {
		if n != 0 {
			b.Errorf("postings to %s do not follow from one another at %d cents", end.account, end.balance)
		}
	}
	equal(b, "sum of postings", fmt.Sprint(sums), fmt.Sprint(balances))
	return balances
}

// postings reads all of a merchant's, in small pages.
func (b *bench) postings(m store.Merchant) []store.Posting {
	b.Helper()
	var all []store.Posting
	last := store.Posting{Line: -1}
	for {
		page, err := b.s.Postings(b.Context(), m.ID, last, 7)
		b.must(err)
		if len(page) == 0 {
			return all
		}
		all = append(all, page...)
		last = page[len(page)-1]
	}
}

func postingsTellBalances(b *bench) {
	m, subject := b.merchant(), b.id()
	b.write(func(tx *store.Tx) error {
		for _, e := range []ledger.Entry{ledger.Fund("bank", 100), ledger.HoldPayout(60, 1), ledger.PayPayout("bank", 60, 1)} {
			if err := tx.Post(b.Context(), m.ID, subject, e); err != nil {
				return err
			}
		}
		return nil
	})
	b.must(b.post(m, subject, ledger.Receive("bank", 50, 2)))
	got := b.balances(m)
	equal(b, "available", got[ledger.Available], 87)
	equal(b, "held", got[ledger.Held], 0)
	equal(b, "fees", got[ledger.Fees], 3)
	equal(b, "clearing", got[ledger.Clearing("bank")], -90)
	entries := map[payment.ID]ledger.Balances{}
	for _, p := range b.postings(m) {
		if entries[p.Entry] == nil {
			entries[p.Entry] = ledger.Balances{}
		}
		entries[p.Entry][""] += p.Amount
		equal(b, "subject", p.Subject, subject)
	}
	equal(b, "entries", len(entries), 4)
	for id, sum := range entries {
		equal(b, "sum of "+id.String(), sum[""], 0)
	}
}

func refusedPostsNothing(b *bench) {
	m := b.merchant()
	b.must(b.post(m, none, ledger.Fund("bank", 100)))
	b.wantError(b.post(m, none, ledger.HoldPayout(101, 0)), ledger.ErrInsufficient)
	b.wantError(b.post(m, none, ledger.HoldPayout(0, 0)), ledger.ErrMalformed)
	b.write(func(tx *store.Tx) error { // a neighbour in the same commit is not hurt
		b.wantError(tx.Post(b.Context(), m.ID, none, ledger.HoldPayout(500, 0)), ledger.ErrInsufficient)
		return tx.Post(b.Context(), m.ID, none, ledger.HoldPayout(40, 0))
	})
	equal(b, "available", b.balances(m)[ledger.Available], 60)
	equal(b, "postings", len(b.postings(m)), 4)
}

func postsAtOnce(b *bench) {
	const writers, rounds = 16, 8
	m := b.merchant()
	b.together(writers, func(ctx context.Context, _ int) error {
		for range rounds {
			err := b.s.Write(ctx, func(tx *store.Tx) error {
				if err := tx.Post(ctx, m.ID, none, ledger.Receive("bank", 10, 1)); err != nil {
					return err
				}
				return tx.Post(ctx, m.ID, none, ledger.HoldPayout(2, 0))
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	got := b.balances(m)
	equal(b, "available", got[ledger.Available], writers*rounds*7)
	equal(b, "held", got[ledger.Held], writers*rounds*2)
	equal(b, "fees", got[ledger.Fees], writers*rounds)
}

// Of twenty holds over what is enough for seven, seven are taken.
func holdsAtOnce(b *bench) {
	m := b.merchant()
	b.must(b.post(m, none, ledger.Fund("bank", 79)))
	refused := make([]bool, 20)
	b.together(len(refused), func(_ context.Context, i int) error {
		err := b.post(m, none, ledger.HoldPayout(10, 1))
		refused[i] = errors.Is(err, ledger.ErrInsufficient)
		if refused[i] {
			return nil
		}
		return err
	})
	taken := 0
	for _, no := range refused {
		if !no {
			taken++
		}
	}
	equal(b, "holds taken", taken, 7)
	equal(b, "available", b.balances(m)[ledger.Available], 2)
}

func accountOpenedAtOnce(b *bench) {
	m := b.merchant()
	b.together(4, func(_ context.Context, _ int) error { return b.post(m, none, ledger.ReceiveUnapplied("bank", 5)) })
	equal(b, "unapplied", b.balances(m)[ledger.Unapplied], 20)
}

// Money that comes in while a merchant's first debt is booked repays it: who
// waited for the balances must see accounts that were opened meanwhile.
func debtOpenedAtOnce(b *bench) {
	for range 30 {
		m := b.merchant()
		b.must(b.post(m, none, ledger.Fund("bank", 100)))
		b.together(2, func(ctx context.Context, i int) error {
			return b.s.Write(ctx, func(tx *store.Tx) error {
				balances, err := tx.Balances(ctx, m.ID)
				if err != nil {
					return err
				}
				if i == 0 {
					return tx.Post(ctx, m.ID, none, ledger.OpenDispute(balances[ledger.Available], 200))
				}
				if err := tx.Post(ctx, m.ID, none, ledger.Receive("bank", 30, 0)); err != nil {
					return err
				}
				if e, due := ledger.RepayOwed(balances[ledger.Available], balances[ledger.Owed]); due {
					return tx.Post(ctx, m.ID, none, e)
				}
				return nil
			})
		})
		got := b.balances(m)
		equal(b, "available beside a debt", got[ledger.Available], 0)
		equal(b, "owed", got[ledger.Owed], -70)
	}
}

// The order of locks may be wrong in a caller; the database then says so, and
// the transaction is run again.
func oppositeOrder(b *bench) {
	one, two := b.merchant(), b.merchant()
	b.must(b.post(one, none, ledger.Fund("bank", 1)))
	b.must(b.post(two, none, ledger.Fund("bank", 1)))
	b.together(2, func(ctx context.Context, i int) error {
		first, second := one, two
		if i == 1 {
			first, second = two, one
		}
		return b.s.Write(ctx, func(tx *store.Tx) error {
			if err := tx.Post(ctx, first.ID, none, ledger.Fund("bank", 1)); err != nil {
				return err
			}
			return tx.Post(ctx, second.ID, none, ledger.Fund("bank", 1))
		})
	})
	equal(b, "one", b.balances(one)[ledger.Available], 3)
	equal(b, "two", b.balances(two)[ledger.Available], 3)
}

func largeBalances(b *bench) {
	m := b.merchant()
	b.must(b.post(m, none, ledger.Fund("bank", math.MaxInt64)))
	b.refused("a sum beyond 64 bits", b.post(m, none, ledger.Fund("bank", 1)))
	got := b.balances(m)
	equal(b, "available", got[ledger.Available], math.MaxInt64)
	equal(b, "clearing", got[ledger.Clearing("bank")], -math.MaxInt64)
}

func booksApart(b *bench) {
	one, two := b.merchant(), b.merchant()
	b.must(b.post(one, none, ledger.Fund("bank", 100)))
	b.wantError(b.post(two, none, ledger.HoldPayout(1, 0)), ledger.ErrInsufficient)
	equal(b, "accounts of the other", len(b.balances(two)), 0)
}
