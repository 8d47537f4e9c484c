package ledger_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
)

// bank is the processor of every test.
const bank = "bank"

// examples are the effects of each recipe, in cents. An account that is not named
// is at zero; clearing is the money at the processor.
const examples = `
opening                                    | recipe                         | closing
-                                          | funded 100                     | clearing -100, available 100
clearing -100, available 100               | funded 5                       | clearing -105, available 105

-                                          | received 100                   | clearing -100, available 100
-                                          | received 100 fee 2             | clearing -100, available 98, fees 2
-                                          | received 2 fee 2               | clearing -2, fees 2
available 10                               | received 5 fee 5               | clearing -5, available 10, fees 5
-                                          | received_pending 30 fee 30     | clearing -30, fees 30
available 5, owed -30                      | received 100                   | clearing -100, available 105, owed -30
-                                          | received_pending 100           | clearing -100, pending 100
-                                          | received_pending 100 fee 2     | clearing -100, pending 98, fees 2
-                                          | received_unapplied 100         | clearing -100, unapplied 100
-                                          | received_unidentified 100      | clearing -100, unidentified 100
pending 100                                | settled 60                     | pending 40, available 60
pending 100                                | settled 100                    | available 100
pending 99                                 | settled 100                    | refused
clearing -100, available 100               | cost_booked 3                  | clearing -97, available 100, costs -3
clearing -97, available 100, costs -3      | cost_returned 3                | clearing -100, available 100
costs -2                                   | cost_returned 3                | clearing -3, written_off 1
-                                          | cost_returned 3                | clearing -3, written_off 3
available 100                              | settled 1                      | refused

available 100                              | payout_held 100                | held 100
available 100                              | payout_held 98 fee 2           | held 100
available 100                              | payout_held 99 fee 2           | refused
available 100                              | payout_held 101                | refused
pending 100, unapplied 100, held 100       | payout_held 1                  | refused
clearing -100, held 100                    | payout_paid 100                | -
clearing -100, held 100                    | payout_paid 98 fee 2           | clearing -2, fees 2
held 100                                   | payout_paid 98 fee 3           | refused
clearing -100, available 100               | payout_paid 100                | refused
held 100                                   | payout_released 98 fee 2       | available 100
held 100, available 7                      | payout_released 60             | held 40, available 67
held 99                                    | payout_released 98 fee 2       | refused
-                                          | payout_returned 100            | clearing -100, available 100
clearing 40                                | payout_returned 30             | clearing 10, available 30
clearing -100, available 100               | payout_found 60                | clearing -40, available 40
clearing -100, available 100               | payout_found 100               | -
clearing -100, available 40, held 60       | payout_found 90                | clearing -10, held 60, owed -50
-                                          | payout_adopted 60              | clearing -60, available 60
clearing -10, held 60, owed -50            | payout_adopted 90              | clearing -100, available 40, held 60
-                                          | found_returned 60              | clearing -60, available 60
clearing -10, held 60, owed -50            | found_returned 90              | clearing -100, available 40, held 60

available 100                              | refund_held 100                | held 100
available 80                               | refund_held 100                | held 100, owed -20
available 74                               | refund_held 100                | refused
held 100, clearing -100                    | refunded 100                   | -
held 99                                    | refunded 100                   | refused
held 100                                   | refund_released 100            | available 100
held 99                                    | refund_released 100            | refused
available 100                              | refund_found 60                | available 40, held 60
available 40                               | refund_found 60                | held 60, owed -20
-                                          | refund_taken_back 60           | clearing -60, available 60
owed -20                                   | refund_taken_back 60           | clearing -60, available 40
fees 10                                    | fee_refunded 6                 | available 6, fees 4
fees 10, owed -4                           | fee_refunded 6                 | available 2, fees 4
fees 10                                    | fee_refunded 11                | refused
available 4                                | fee_recharged 6                | fees 6, owed -2
unidentified 60, clearing -60              | unidentified_returned 50       | unidentified 10, clearing -10
unidentified 60                            | unidentified_returned 61       | refused
-                                          | unidentified_back 50           | unidentified 50, clearing -50

available 100                              | dispute_opened 60              | available 40, disputed 60
available 60                               | dispute_opened 60              | disputed 60
available 40                               | dispute_opened 60              | disputed 60, owed -20
-                                          | dispute_opened 60              | disputed 60, owed -60
pending 100, held 100                      | dispute_opened 60              | pending 100, held 100, disputed 60, owed -60
owed -5, disputed 5                        | dispute_opened 60              | owed -65, disputed 65
disputed 60                                | dispute_won 60                 | available 60
disputed 60, owed -20                      | dispute_won 60                 | available 40
disputed 60, owed -60                      | dispute_won 60                 | -
disputed 60, owed -90                      | dispute_won 60                 | owed -30
pending 50, available 50                   | dispute_opened 60 fee 50       | available 40, disputed 60
pending 50, available 5                    | dispute_opened 60 fee 50       | disputed 60, owed -5
disputed 60, owed -30                      | dispute_won 60 fee 20          | pending 20, available 10
clearing -10, owed -10                     | chargeback_reversed 60 fee 60  | clearing -70, pending 60, owed -10
unapplied 60                               | unapplied_applied 60 fee 9     | pending 9, available 42, fees 9
disputed 59                                | dispute_won 60                 | refused
disputed 60, clearing -60                  | charged_back 60                | -
disputed 60, owed -20, clearing -60        | charged_back 60                | owed -20
disputed 59                                | charged_back 60                | refused
-                                          | chargeback_reversed 60         | clearing -60, available 60
owed -20                                   | chargeback_reversed 60         | clearing -60, available 40
owed -90                                   | chargeback_reversed 60         | clearing -60, owed -30

unapplied 60                               | unapplied_applied 60           | available 60
unapplied 60                               | unapplied_applied 61           | refused
unapplied 60, owed -20                     | unapplied_released 50          | unapplied 10, available 50, owed -20
unapplied 60                               | unapplied_released 61          | refused
unapplied 60                               | unapplied_written_off 50       | unapplied 10, written_off 50
written_off -70, unapplied 60              | unapplied_written_off 60       | written_off -10
unapplied 60                               | unapplied_written_off 61       | refused
written_off 60                             | unapplied_back 50              | unapplied 50, written_off 10
clearing -60, unidentified 60              | unidentified_moved 50          | clearing -10, unidentified 10
unidentified 60                            | unidentified_moved 61          | refused
-                                          | unidentified_arrived 50        | clearing -50, unapplied 50
unidentified 60                            | unidentified_kept 50           | unidentified 10, written_off 50
unidentified 60                            | unidentified_kept 61           | refused
clearing -100, available 100               | payout_paid_late 60            | clearing -40, available 40
clearing -100, available 20, held 80       | payout_paid_late 60            | clearing -40, held 80, owed -40
-                                          | payout_paid_late 60            | clearing 60, owed -60
clearing -100, available 100               | payout_paid_late 60 fee 5      | clearing -40, available 35, fees 5
clearing -100, available 62                | payout_paid_late 60 fee 5      | clearing -40, owed -3, fees 5
clearing -100, available 100               | payout_written_off 60          | clearing -40, available 100, written_off -60
clearing -40, available 40                 | found_written_off 60           | clearing -40, available 100, written_off -60
clearing -10, held 60, owed -50            | found_written_off 90           | clearing -10, available 40, held 60, written_off -90
clearing -40, available 100, written_off -60 | payout_recovered 60          | clearing -100, available 100

available 100, owed -30                    | owed_repaid                    | available 70
available 30, owed -30                     | owed_repaid                    | -
available 10, owed -30                     | owed_repaid                    | owed -20
owed -30                                   | owed_repaid                    | nothing to do
available 10                               | owed_repaid                    | nothing to do
`

func TestRecipesByExample(t *testing.T) {
	t.Parallel()
	applied := map[ledger.Kind]bool{}
	for _, line := range strings.Split(strings.TrimSpace(examples), "\n")[1:] {
		if line == "" {
			continue
		}
		cells := strings.Split(line, "|")
		opening, recipe, want := balancesOf(t, cells[0]), strings.Fields(cells[1]), strings.TrimSpace(cells[2])
		kind, amount, fee := ledger.Kind(recipe[0]), money.Cents(0), money.Cents(0)
		for i, word := range recipe {
			switch {
			case i == 1:
				amount = cents(t, word)
			case word == "fee":
				fee = cents(t, recipe[i+1])
			}
		}
		got := run(opening, kind, amount, fee)
		if want != "refused" && want != "nothing to do" {
			want = textOf(balancesOf(t, want))
			applied[kind] = true
		}
		if got != want {
			t.Errorf("%s| %s\n got %s\nwant %s", cells[0], strings.Join(recipe, " "), got, want)
		}
	}
	for _, r := range ledger.Recipes {
		if !applied[r.Kind] {
			t.Errorf("no example applies %s", r.Kind)
		}
	}
}

// A recipe's text names the accounts that its entries post to, by side: it is their shape, which
// every other entry under that kind violates.
func TestRecipesMoveWhatTheySay(t *testing.T) {
	t.Parallel()
	rich := ledger.Balances{}
	for _, a := range accounts {
		rich[a] = 1000
	}
	for _, r := range ledger.Recipes {
		poor := ledger.Balances{ledger.Available: 10, ledger.Owed: -10, ledger.Disputed: 1000}
		for _, b := range []ledger.Balances{rich, poor} {
			e, ok := entry(b, r.Kind, 100, 3)
			if !ok {
				continue
			}
			if e.Kind != r.Kind {
				t.Errorf("the entry of %s calls itself %s", r.Kind, e.Kind)
			}
			for _, p := range e.Postings {
				if !r.Kind.Posts(p) {
					t.Errorf("%s says %q and posts %d to %s", r.Kind, r.Moves, p.Amount, p.Account)
				}
			}
		}
		if len(r.Kind.From()) == 0 || len(r.Kind.To()) == 0 {
			t.Errorf("%s says %q, which names no two accounts", r.Kind, r.Moves)
		}
		if r.Meaning == "" {
			t.Errorf("%s says nothing", r.Kind)
		}
	}
}

// accounts are all that there are.
var accounts = []ledger.Account{
	ledger.Clearing(bank), ledger.Available, ledger.Pending, ledger.Held,
	ledger.Disputed, ledger.Unapplied, ledger.Owed, ledger.Fees, ledger.Costs, ledger.Unidentified, ledger.WrittenOff,
}

// entry makes the entry of a recipe over balances; ok is false if the recipe has
// nothing to do.
func entry(b ledger.Balances, kind ledger.Kind, amount, fee money.Cents) (e ledger.Entry, ok bool) {
	switch kind {
	case ledger.Funded:
		e = ledger.Fund(bank, amount)
	case ledger.Received:
		e = ledger.Receive(bank, amount, min(fee, max(amount, 0)))
	case ledger.ReceivedPending:
		e = ledger.ReceiveLater(bank, amount, min(fee, max(amount, 0)))
	case ledger.ReceivedUnapplied:
		e = ledger.ReceiveUnapplied(bank, amount)
	case ledger.ReceivedUnidentified:
		e = ledger.ReceiveUnidentified(bank, amount)
	case ledger.CostReturned:
		e = ledger.ReturnCost(bank, b[ledger.Costs], amount)
	case ledger.CostBooked:
		e = ledger.BookCost(bank, amount)
	case ledger.Settled:
		e = ledger.Settle(amount)
	case ledger.PayoutHeld:
		e = ledger.HoldPayout(amount, fee)
	case ledger.PayoutPaid:
		e = ledger.PayPayout(bank, amount, fee)
	case ledger.PayoutReleased:
		e = ledger.ReleasePayout(amount, fee)
	case ledger.PayoutReturned:
		e = ledger.ReturnPayout(bank, amount)
	case ledger.PayoutFound:
		e = ledger.FindPayout(bank, b[ledger.Available], amount)
	case ledger.FoundReturned:
		e = ledger.ReturnFound(bank, b[ledger.Owed], amount)
	case ledger.PayoutAdopted:
		e = ledger.AdoptPayout(bank, b[ledger.Owed], amount)
	case ledger.RefundHeld, ledger.Refunded, ledger.RefundReleased, ledger.RefundFound, ledger.RefundTakenBack, ledger.FeeRefunded, ledger.FeeRecharged:
		e = refundEntry(b, kind, amount)
	case ledger.DisputeOpened:
		e = ledger.OpenDispute(min(b[ledger.Pending], fee, amount), b[ledger.Available], amount)
	case ledger.DisputeWon:
		e = ledger.WinDispute(min(fee, amount), b[ledger.Owed], amount)
	case ledger.ChargedBack:
		e = ledger.LoseDispute(bank, amount)
	case ledger.ChargebackReversed:
		e = ledger.ReverseChargeback(bank, min(fee, amount), b[ledger.Owed], amount)
	case ledger.OwedRepaid:
		return ledger.RepayOwed(b[ledger.Available], b[ledger.Owed])
	default:
		e = resolution(b, kind, amount, fee)
	}
	return e, true
}

// resolution makes the entry of a recipe that a resolution of a case has.
func resolution(b ledger.Balances, kind ledger.Kind, amount, fee money.Cents) (e ledger.Entry) {
	switch kind {
	case ledger.UnappliedApplied:
		e = ledger.ApplyUnapplied(amount, min(fee, amount/2), min(fee, amount/3))
	case ledger.UnappliedReleased:
		e = ledger.ReleaseUnapplied(amount)
	case ledger.UnappliedWrittenOff:
		e = ledger.WriteOffUnapplied(amount)
	case ledger.UnappliedBack:
		e = ledger.BringBackUnapplied(amount)
	case ledger.UnidentifiedReturned:
		e = ledger.ReturnUnidentified(bank, amount)
	case ledger.UnidentifiedBack:
		e = ledger.TakeBackUnidentified(bank, amount)
	case ledger.UnidentifiedMoved:
		e = ledger.MoveUnidentified(bank, amount)
	case ledger.UnidentifiedArrived:
		e = ledger.TakeUnidentified(bank, amount)
	case ledger.UnidentifiedKept:
		e = ledger.WriteOffUnidentified(amount)
	case ledger.PayoutPaidLate:
		e = ledger.PayPayoutLate(bank, b[ledger.Available], amount, fee)
	case ledger.PayoutWrittenOff:
		e = ledger.WriteOffPayout(bank, amount)
	case ledger.FoundWrittenOff:
		e = ledger.WriteOffFound(b[ledger.Owed], amount)
	case ledger.PayoutRecovered:
		e = ledger.RecoverPayout(bank, amount)
	default:
		panic("no such recipe: " + kind)
	}
	return e
}

// refundEntry is entry for the recipes of refunds.
func refundEntry(b ledger.Balances, kind ledger.Kind, amount money.Cents) ledger.Entry {
	switch kind {
	case ledger.RefundHeld:
		return ledger.HoldRefund(ledger.Parts{}, b[ledger.Available], amount/4, amount)
	case ledger.Refunded:
		return ledger.PayRefund(bank, amount)
	case ledger.RefundReleased:
		return ledger.ReleaseRefund(ledger.Parts{}, amount)
	case ledger.RefundFound:
		return ledger.FindRefund(ledger.Parts{}, b[ledger.Available], amount)
	case ledger.FeeRefunded:
		return ledger.RefundFee(b[ledger.Owed], amount)
	case ledger.FeeRecharged:
		return ledger.RechargeFee(b[ledger.Available], amount)
	default:
		return ledger.TakeBackRefund(bank, ledger.Parts{}, b[ledger.Owed], amount)
	}
}

// A refund takes unapplied, pending and available money, and gives each back to where it was.
func TestPartsOfRefunds(t *testing.T) {
	t.Parallel()
	of := ledger.Parts{Unapplied: 20, Pending: 30}
	b := ledger.Balances{ledger.Unapplied: 60, ledger.Pending: 40, ledger.Available: 10}
	for _, step := range []struct {
		entry ledger.Entry
		want  string
	}{
		{ledger.HoldRefund(of, 10, 0, 55), "held 55, unapplied 40, pending 10, available 5"},
		{ledger.ReleaseRefund(of, 55), "unapplied 60, pending 40, available 10"},
		{ledger.FindRefund(of, 10, 65), "held 65, unapplied 40, pending 10, owed -5"},
		{ledger.PayRefund(bank, 65), "clearing 65, unapplied 40, pending 10, owed -5"},
		{ledger.TakeBackRefund(bank, of, -5, 65), "unapplied 60, pending 40, available 10"},
		{ledger.HoldRefund(ledger.Parts{Unapplied: 60}, 0, 0, 60), "held 60, pending 40, available 10"},
		{ledger.ReleaseRefund(ledger.Parts{Unapplied: 20}, 20), "held 40, unapplied 20, pending 40, available 10"},
		{ledger.PayRefund(bank, 40), "clearing 40, unapplied 20, pending 40, available 10"},
		{ledger.TakeBackRefund(bank, ledger.Parts{Unapplied: 40}, 0, 40), "unapplied 60, pending 40, available 10"},
	} {
		if err := b.Apply(step.entry); err != nil || textOf(b) != textOf(balancesOf(t, step.want)) {
			t.Errorf("%s: %v, %s, want %s", step.entry.Kind, err, textOf(b), step.want)
		}
	}
}

// run applies a recipe to b and returns the new balances, or why it was refused.
func run(b ledger.Balances, kind ledger.Kind, amount, fee money.Cents) string {
	before := textOf(b)
	e, ok := entry(b, kind, amount, fee)
	if !ok {
		return "nothing to do"
	}
	err := b.Apply(e)
	switch {
	case errors.Is(err, ledger.ErrInsufficient) && textOf(b) == before:
		return "refused"
	case err != nil:
		return fmt.Sprintf("%v, and stands at %s", err, textOf(b))
	}
	return textOf(b)
}

// balancesOf reads "available 100, owed -30"; clearing is the bank's.
func balancesOf(t *testing.T, text string) ledger.Balances {
	t.Helper()
	b := ledger.Balances{}
	for _, part := range strings.Split(strings.TrimSpace(text), ",") {
		if part == "-" {
			continue
		}
		name, amount, ok := strings.Cut(strings.TrimSpace(part), " ")
		account := ledger.Account(name)
		if name == "clearing" {
			account = ledger.Clearing(bank)
		}
		if !ok || !slices.Contains(accounts, account) {
			t.Fatalf("balances %q: no account in %q", text, part)
		}
		b[account] = cents(t, amount)
	}
	return b
}

func cents(t *testing.T, text string) money.Cents {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return money.Cents(n)
}

// textOf writes balances in one order, without zeros.
func textOf(b ledger.Balances) string {
	var parts []string
	for _, a := range b.Accounts() {
		if b[a] != 0 {
			parts = append(parts, fmt.Sprintf("%s %d", a, b[a]))
		}
	}
	if parts == nil {
		return "-"
	}
	return strings.Join(parts, ", ")
}
