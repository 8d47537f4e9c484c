package ledger_test

import (
	"errors"
	"maps"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
)

// Any sequence of entries keeps these invariants: money is neither created nor
// lost, each balance is permitted, a refused entry changes nothing, and only
// disputes create debt.
func TestInvariantsUnderAnyHistory(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := ledger.Balances{}
		posted := map[ledger.Account]money.Cents{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			kind := rapid.SampledFrom(ledger.Recipes).Draw(t, "recipe").Kind
			amount := money.Cents(rapid.Int64Range(1, 100).Draw(t, "amount"))
			fee := money.Cents(rapid.Int64Range(0, 3).Draw(t, "fee"))
			e, ok := entry(b, kind, amount, fee)
			if !ok {
				continue
			}
			before := maps.Clone(b)
			if err := b.Apply(e); err != nil {
				if !errors.Is(err, ledger.ErrInsufficient) || !maps.Equal(b, before) {
					t.Fatalf("%s %d on %s: %v, and left %s", kind, amount, textOf(before), err, textOf(b))
				}
				continue
			}
			for _, p := range e.Postings {
				posted[p.Account] += p.Amount
			}
			holds(t, b, posted)
			debtIsExplained(t, before, b, kind, amount)
		}
	})
}

// holds checks the invariants of a ledger.
func holds(t *rapid.T, b ledger.Balances, posted map[ledger.Account]money.Cents) {
	var sum money.Cents
	for account, balance := range b {
		sum += balance
		if !account.Permits(balance) {
			t.Fatalf("%s stands at %d", account, balance)
		}
		if balance != posted[account] {
			t.Fatalf("%s stands at %d, its postings add up to %d", account, balance, posted[account])
		}
	}
	if sum != 0 {
		t.Fatalf("the ledger is off by %d: %s", sum, textOf(b))
	}
}

// debtIsExplained checks that debt grows only by the shortfall of a dispute, of a late
// payout, of a found transfer, of a refund or of a fee that is charged again, and shrinks by no more than there is.
func debtIsExplained(t *rapid.T, before, after ledger.Balances, kind ledger.Kind, amount money.Cents) {
	grown := before[ledger.Owed] - after[ledger.Owed]
	switch {
	case grown > 0:
		if kind == ledger.PayoutPaidLate {
			amount += after[ledger.Fees] - before[ledger.Fees]
		}
		left := amount - (before[ledger.Pending] - after[ledger.Pending])
		lack := left - min(left, before[ledger.Available])
		shortfall := kind == ledger.RefundHeld || kind == ledger.DisputeOpened || kind == ledger.PayoutPaidLate || kind == ledger.PayoutFound || kind == ledger.RefundFound || kind == ledger.FeeRecharged
		if !shortfall || grown != lack || after[ledger.Available] != 0 {
			t.Fatalf("%s %d made debt of %d out of %s", kind, amount, grown, textOf(before))
		}
	case grown < 0 && !slices.Contains([]ledger.Kind{ledger.DisputeWon, ledger.ChargebackReversed, ledger.PayoutAdopted, ledger.FoundReturned, ledger.FoundWrittenOff, ledger.RefundTakenBack, ledger.FeeRefunded, ledger.OwedRepaid}, kind):
		t.Fatalf("%s repaid debt", kind)
	}
}

// RepayOwed repays as much as possible, and stops when debt or money ends.
func TestRepayOwedStopsAtZero(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		available := money.Cents(rapid.Int64Range(0, 100).Draw(t, "available"))
		owed := money.Cents(rapid.Int64Range(-100, 0).Draw(t, "owed"))
		b := ledger.Balances{ledger.Available: available, ledger.Owed: owed}
		e, ok := ledger.RepayOwed(available, owed)
		if ok != (available > 0 && owed < 0) {
			t.Fatalf("available %d, owed %d: something to do is %v", available, owed, ok)
		}
		if !ok {
			return
		}
		if err := b.Apply(e); err != nil {
			t.Fatal(err)
		}
		if b[ledger.Available] != 0 && b[ledger.Owed] != 0 {
			t.Fatalf("stopped early at %s", textOf(b))
		}
		if _, again := ledger.RepayOwed(b[ledger.Available], b[ledger.Owed]); again {
			t.Fatalf("not done at %s", textOf(b))
		}
	})
}

func TestCheckRefusesEachMalformation(t *testing.T) {
	t.Parallel()
	post := func(parts ...any) []ledger.Posting {
		var list []ledger.Posting
		for i := 0; i < len(parts); i += 2 {
			list = append(list, ledger.Posting{Account: parts[i].(ledger.Account), Amount: money.Cents(parts[i+1].(int))})
		}
		return list
	}
	clearing := ledger.Clearing(bank)
	for _, test := range []struct {
		name     string
		kind     ledger.Kind
		postings []ledger.Posting
		want     error
	}{
		{"two legs", ledger.Received, post(clearing, -5, ledger.Available, 5), nil},
		{"three legs", ledger.Received, post(clearing, -5, ledger.Available, 4, ledger.Fees, 1), nil},
		{"no legs", ledger.Received, nil, ledger.ErrMalformed},
		{"one leg", ledger.Received, post(ledger.Available, 5), ledger.ErrMalformed},
		{"a zero", ledger.Received, post(clearing, -5, ledger.Available, 5, ledger.Fees, 0), ledger.ErrMalformed},
		{"all zero", ledger.Received, post(clearing, 0, ledger.Available, 0), ledger.ErrMalformed},
		{"one account twice", ledger.Received, post(clearing, -5, clearing, 5), ledger.ErrMalformed},
		{"an unknown account", ledger.Received, post(clearing, -5, ledger.Account("avaliable"), 5), ledger.ErrMalformed},
		{"no account", ledger.Received, post(clearing, -5, ledger.Account(""), 5), ledger.ErrMalformed},
		{"clearing of nobody", ledger.Received, post(ledger.Clearing(""), -5, ledger.Available, 5), ledger.ErrMalformed},
		{"an unknown kind", "recieved", post(clearing, -5, ledger.Available, 5), ledger.ErrMalformed},
		{"no kind", "", post(clearing, -5, ledger.Available, 5), ledger.ErrMalformed},
		{"a cent too much", ledger.Received, post(clearing, -5, ledger.Available, 6), ledger.ErrUnbalanced},
		{"a cent too little", ledger.Received, post(clearing, -5, ledger.Available, 4), ledger.ErrUnbalanced},
		{"the same sign", ledger.Received, post(clearing, 5, ledger.Available, 5), ledger.ErrUnbalanced},
		{"beyond 64 bits", ledger.Received, post(clearing, math.MaxInt64, ledger.Available, 1, ledger.Fees, math.MinInt64), money.ErrOverflow},
	} {
		e := ledger.Entry{Kind: test.kind, Postings: test.postings}
		if err := e.Check(); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", test.name, err, test.want)
		}
		b := ledger.Balances{clearing: 7, ledger.Available: 7, ledger.Fees: 7}
		before := maps.Clone(b)
		if err := b.Apply(e); !errors.Is(err, test.want) || test.want != nil && !maps.Equal(b, before) {
			t.Errorf("apply %s: %v, want %v, and left %s", test.name, err, test.want, textOf(b))
		}
	}
}

// A fee is a part of its receipt, and pending money a part of its dispute or case.
func TestPartsOfEntries(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]ledger.Entry{
		"a fee above its receipt":         ledger.Receive(bank, 2, 3),
		"a fee above what settles later":  ledger.ReceiveLater(bank, 2, 3),
		"a fee above its payout":          ledger.PayPayout(bank, -1, 3),
		"more pending than disputed":      ledger.OpenDispute(3, 0, 2),
		"more pending than won":           ledger.WinDispute(3, 0, 2),
		"more pending than reversed":      ledger.ReverseChargeback(bank, 3, 0, 2),
		"more pending than refunded":      ledger.HoldRefund(ledger.Parts{Pending: 3}, 2, 0, 2),
		"a fee that a refund charges":     ledger.HoldRefund(ledger.Parts{}, 2, -1, 2),
		"more unapplied than released":    ledger.ReleaseRefund(ledger.Parts{Unapplied: 3}, 2),
		"a negative part of a refund":     ledger.FindRefund(ledger.Parts{Unapplied: -1}, 0, 2),
		"more pending than taken back":    ledger.TakeBackRefund(bank, ledger.Parts{Pending: 3}, 0, 2),
		"more pending and fee than there": ledger.ApplyUnapplied(4, 2, 3),
	} {
		if err := e.Check(); !errors.Is(err, ledger.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Recipes over amounts that are not above zero are refused by Check, so that a
// negative amount cannot run a recipe backwards.
func TestNoRecipeRunsBackwards(t *testing.T) {
	t.Parallel()
	for _, r := range ledger.Recipes {
		b := ledger.Balances{}
		for _, a := range accounts {
			b[a] = 1000
		}
		b[ledger.Owed] = 0
		for _, amount := range []money.Cents{0, -1, -100} {
			if e, ok := entry(b, r.Kind, amount, 0); ok && !errors.Is(e.Check(), ledger.ErrMalformed) {
				t.Errorf("%s of %d posts %v", r.Kind, amount, e.Postings)
			}
		}
		if e, ok := entry(b, r.Kind, 5, -1); ok && len(e.Postings) == 3 {
			t.Errorf("%s with a fee below zero posts %v", r.Kind, e.Postings)
		}
	}
}

func TestPermits(t *testing.T) {
	t.Parallel()
	for _, a := range accounts {
		for _, balance := range []money.Cents{math.MinInt64, -1, 0, 1, math.MaxInt64} {
			want := balance >= 0
			switch {
			case a.IsClearing(), a == ledger.WrittenOff:
				want = true
			case a == ledger.Owed, a == ledger.Costs:
				want = balance <= 0
			}
			if a.Permits(balance) != want {
				t.Errorf("%s at %d: permitted is %v", a, balance, !want)
			}
		}
	}
}

// A balance that overflows is refused, and so is one that would only look right
// after it wrapped.
func TestApplyRefusesOverflow(t *testing.T) {
	t.Parallel()
	b := ledger.Balances{ledger.Available: math.MaxInt64 - 4, ledger.Clearing(bank): 0}
	if err := b.Apply(ledger.Fund(bank, 5)); !errors.Is(err, money.ErrOverflow) || b[ledger.Clearing(bank)] != 0 {
		t.Errorf("%v, and stands at %s", err, textOf(b))
	}
	if err := b.Apply(ledger.Fund(bank, 4)); err != nil {
		t.Error(err)
	}
}

// An inconsistent ledger may be corrected step by step, and not made worse.
func TestInconsistentLedgerCanBeCorrected(t *testing.T) {
	t.Parallel()
	b := ledger.Balances{ledger.Available: -50, ledger.Clearing(bank): 50}
	if err := b.Apply(ledger.Fund(bank, 20)); err != nil {
		t.Errorf("towards zero: %v", err)
	}
	if err := b.Apply(ledger.HoldPayout(1, 0)); !errors.Is(err, ledger.ErrInsufficient) {
		t.Errorf("away from zero: %v", err)
	}
	if got := textOf(b); got != "available -30, clearing:bank 30" {
		t.Error(got)
	}
	b = ledger.Balances{ledger.Owed: 5, ledger.Available: 10}
	if err := b.Apply(ledger.Move(ledger.OwedRepaid, ledger.Available, ledger.Owed, 1)); !errors.Is(err, ledger.ErrInsufficient) {
		t.Errorf("a debt that is a claim already: %v", err)
	}
	if err := b.Apply(ledger.OpenDispute(0, 0, 3)); err != nil {
		t.Errorf("a claim towards zero: %v", err)
	}
}
