package payment_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/payment"
)

// The API's contract: a status, and the statuses that may follow it. Written from
// the contract, not from the tables.
const (
	payinPromise = `
PENDING            PROCESSING PAID EXPIRED CANCELED FAILED
PROCESSING         PAID FAILED
EXPIRED            PAID
CANCELED           PAID
PAID               PARTIALLY_REFUNDED REFUNDED DISPUTED
PARTIALLY_REFUNDED PARTIALLY_REFUNDED REFUNDED DISPUTED PAID
DISPUTED           PAID PARTIALLY_REFUNDED CHARGEBACK REFUNDED
CHARGEBACK         PAID PARTIALLY_REFUNDED REFUNDED
FAILED             -
REFUNDED           PARTIALLY_REFUNDED PAID DISPUTED`
	payoutPromise = `
PENDING            PROCESSING CANCELED FAILED
PROCESSING         COMPLETED FAILED
COMPLETED          RETURNED
CANCELED           -
FAILED             -
RETURNED           -`
	refundPromise = `
PENDING            PROCESSING FAILED
PROCESSING         COMPLETED FAILED
COMPLETED          FAILED
FAILED             COMPLETED`
	disputePromise = `
OPEN               SUBMITTED WON LOST
SUBMITTED          WON LOST
WON                -
LOST               REVERSED
REVERSED           -`
)

// Every cell: the status that each trigger leads to from each status. "=" stays,
// with an event or another change of the order; "." is illegal.
const (
	payinCells = `
                   process    pay  pay_short apply apply_short pay_more expire  cancel   fail   attempt_refused register refund_part        refund_all refund_undone refund_undone_part paid_again dispute  dispute_more disputed_before charged_back_before win  win_refunded       win_refunded_all win_charged_back win_part lose       lose_part reverse reverse_refunded   reverse_refunded_all reverse_part
PENDING            PROCESSING PAID =         PAID  =           .        EXPIRED CANCELED FAILED =               =        =                  =          =             =                  PAID       .        =            .               .                   .    .                  .                .                =        .          =         .       .                  .                    =
PROCESSING         .          PAID =         PAID  =           .        .       .        FAILED .               .        =                  =          =             =                  PAID       .        =            .               .                   .    .                  .                .                =        .          =         .       .                  .                    =
PAID               .          .    .         .     .           =        .       .        .      .               .        PARTIALLY_REFUNDED REFUNDED   =             .                  .          DISPUTED .            DISPUTED        .                   .    .                  .                .                .        .          .         .       .                  .                    .
EXPIRED            .          PAID =         PAID  =           .        .       .        .      .               .        =                  =          =             =                  PAID       .        =            .               .                   .    .                  .                .                =        .          =         .       .                  .                    =
CANCELED           .          PAID =         PAID  =           .        .       .        .      .               .        =                  =          =             =                  PAID       .        =            .               .                   .    .                  .                .                =        .          =         .       .                  .                    =
FAILED             .          .    .         .     .           =        .       .        .      .               .        =                  =          =             =                  .          .        =            .               .                   .    .                  .                .                =        .          =         .       .                  .                    =
PARTIALLY_REFUNDED .          .    .         .     .           =        .       .        .      .               .        =                  REFUNDED   PAID          =                  .          DISPUTED .            .               .                   .    .                  .                .                .        .          .         .       .                  .                    .
REFUNDED           .          .    .         .     .           =        .       .        .      .               .        .                  .          PAID          PARTIALLY_REFUNDED .          DISPUTED .            .               .                   .    .                  .                .                .        .          .         .       .                  .                    .
DISPUTED           .          .    .         .     .           =        .       .        .      .               .        =                  =          =             =                  .          .        =            .               CHARGEBACK          PAID PARTIALLY_REFUNDED REFUNDED         CHARGEBACK       =        CHARGEBACK =         .       .                  .                    =
CHARGEBACK         .          .    .         .     .           =        .       .        .      .               .        =                  =          =             =                  .          .        =            .               .                   PAID PARTIALLY_REFUNDED REFUNDED         .                =        .          =         PAID    PARTIALLY_REFUNDED REFUNDED             =`
	payoutCells = `
                   send       cancel   fail   complete  return   return_part
PENDING            PROCESSING CANCELED FAILED .         .        .
PROCESSING         .          .        FAILED COMPLETED .        .
COMPLETED          .          .        .      .         RETURNED =
FAILED             .          .        .      .         .        .
CANCELED           .          .        .      .         .        .
RETURNED           .          .        .      .         .        .`
	refundCells = `
                   send       fail   fail_part complete  complete_part complete_failed take_back take_back_part
PENDING            PROCESSING FAILED .         .         .             .               .         .
PROCESSING         .          FAILED =         COMPLETED =             FAILED          .         =
COMPLETED          .          .      .         .         .             .               FAILED    .
FAILED             .          .      .         COMPLETED .             =               =         .`
	disputeCells = `
                   dispute submit    accept win lose reverse  reverse_part
OPEN               =       SUBMITTED LOST   WON LOST .        .
SUBMITTED          .       .         LOST   WON LOST .        .
WON                .       .         .      .   .    .        .
LOST               .       .         .      .   .    REVERSED =
REVERSED           .       .         .      .   .    .        .`
)

// The ledger entry and event of each trigger, from any status; "-" is none.
const (
	payinEffects = `
process          -                   payin.processing
pay              received            payin.paid
pay_short        received            payin.underpaid
pay_more         received_unapplied  payin.overpaid
apply            unapplied_applied   payin.paid
apply_short      unapplied_applied   payin.underpaid
expire           -                   payin.expired
cancel           -                   payin.canceled
fail             -                   payin.failed
attempt_refused  -                   -
register         -                   payin.updated
refund_part      -                   payin.partially_refunded
refund_all       -                   payin.refunded
refund_undone    -                   payin.updated
refund_undone_part - payin.partially_refunded
paid_again       -                   payin.paid
dispute          dispute_opened      payin.disputed
dispute_more     dispute_opened      payin.disputed
disputed_before  -                   payin.disputed
charged_back_before -                payin.chargeback
win              dispute_won         payin.dispute_won
win_refunded     dispute_won         payin.dispute_won
win_refunded_all dispute_won         payin.dispute_won
win_charged_back dispute_won         payin.dispute_won
win_part         dispute_won         payin.dispute_won
lose             charged_back        payin.chargeback
lose_part        charged_back        payin.chargeback
reverse          chargeback_reversed payin.dispute_won
reverse_refunded chargeback_reversed payin.dispute_won
reverse_refunded_all chargeback_reversed payin.dispute_won
reverse_part     chargeback_reversed payin.dispute_won`
	payoutEffects = `
send             -                   payout.processing
cancel           payout_released     payout.canceled
fail             payout_released     payout.failed
complete         payout_paid         payout.completed
return           payout_returned     payout.returned
return_part      payout_returned     payout.returned`
	refundEffects = `
send             -                   -
fail             refund_released     refund.failed
fail_part        refund_released     -
complete         refunded            refund.completed
complete_part    refunded            -
complete_failed  refunded            refund.failed
take_back        refund_taken_back   refund.failed
take_back_part   refund_taken_back   -`
	disputeEffects = `
dispute          -                   dispute.opened
submit           -                   dispute.submitted
accept           -                   dispute.closed
win              -                   dispute.closed
lose             -                   dispute.closed
reverse          -                   dispute.closed
reverse_part     -                   dispute.closed`
)

// The events of the contract. Creation announces the first of each group.
const webhookTypes = `
payin.created payin.processing payin.paid payin.expired payin.canceled payin.failed payin.partially_refunded payin.refunded
payin.disputed payin.dispute_won payin.chargeback payin.underpaid payin.overpaid payin.updated
payout.created payout.processing payout.completed payout.failed payout.canceled payout.returned
refund.completed refund.failed
dispute.opened dispute.submitted dispute.closed`

func TestPayinTable(t *testing.T) {
	t.Parallel()
	checkTable(t, payment.PayinTable, payment.PayinStatuses, payment.PayinTriggers, payinCells, payinEffects, payinPromise)
}

func TestPayoutTable(t *testing.T) {
	t.Parallel()
	checkTable(t, payment.PayoutTable, payment.PayoutStatuses, payment.PayoutTriggers, payoutCells, payoutEffects, payoutPromise)
}

func TestRefundTable(t *testing.T) {
	t.Parallel()
	checkTable(t, payment.RefundTable, payment.RefundStatuses, payment.RefundTriggers, refundCells, refundEffects, refundPromise)
}

func TestDisputeTable(t *testing.T) {
	t.Parallel()
	checkTable(t, payment.DisputeTable, payment.DisputeStatuses, payment.DisputeTriggers, disputeCells, disputeEffects, disputePromise)
}

// checkTable visits every cell of a table, legal and illegal.
func checkTable[S ~string](t *testing.T, table payment.Table[S], statuses []S, triggers []payment.Trigger, cells, effects, promise string) {
	t.Helper()
	rows := rowsOf(cells)
	header, rows := rows[0], rows[1:]
	if len(rows) != len(statuses) || len(header) != len(triggers) {
		t.Fatalf("%d statuses and %d triggers, want %d and %d", len(statuses), len(triggers), len(rows), len(header))
	}
	want := map[string][]string{}
	for _, row := range rowsOf(effects) {
		want[row[0]] = row[1:]
	}
	legal := 0
	for _, row := range rows {
		from := S(row[0])
		if !slices.Contains(statuses, from) {
			t.Errorf("%s is not listed as a status", from)
		}
		for i, trigger := range header {
			cell, ok := table.Next(from, payment.Trigger(trigger))
			expected := row[i+1]
			if ok != (expected != ".") {
				t.Errorf("%s on %s: legal is %v", from, trigger, ok)
			}
			if !ok {
				if cell != (payment.Transition[S]{}) {
					t.Errorf("%s on %s is illegal and returns %v", from, trigger, cell)
				}
				continue
			}
			legal++
			if expected == "=" {
				expected = string(from)
			}
			recipe, event := or(string(cell.Recipe)), or(string(cell.Event))
			if string(cell.To) != expected || recipe != want[trigger][0] || event != want[trigger][1] {
				t.Errorf("%s on %s: %s, recipe %s, event %s; want %s, %q", from, trigger, cell.To, recipe, event, expected, want[trigger])
			}
			if cell.Recipe != "" && !cell.Recipe.Known() {
				t.Errorf("%s on %s: there is no recipe %q", from, trigger, cell.Recipe)
			}
		}
	}
	if legal != len(table) {
		t.Errorf("the table has %d cells, of which %d can be met: one is listed twice or has an unlisted trigger", len(table), legal)
	}
	keepsPromise(t, table, statuses, promise)
}

// keepsPromise compares a table with the public list of the statuses that may
// follow another.
func keepsPromise[S ~string](t *testing.T, table payment.Table[S], statuses []S, promise string) {
	t.Helper()
	reached := map[S]bool{statuses[0]: true}
	for _, row := range rowsOf(promise) {
		from := S(row[0])
		var want, got []string
		for _, to := range row[1:] {
			if to != "-" && to != row[0] {
				want = append(want, to)
			}
		}
		for _, cell := range table {
			if cell.From == from && cell.To != from && !slices.Contains(got, string(cell.To)) {
				got = append(got, string(cell.To))
			}
			reached[cell.To] = true
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s may become %v, the contract says %v", from, got, want)
		}
	}
	for _, s := range statuses {
		if !reached[s] {
			t.Errorf("nothing leads to %s", s)
		}
	}
}

func TestEveryEventIsAnnounced(t *testing.T) {
	t.Parallel()
	announced := map[string]bool{string(payment.EventPayinCreated): true, string(payment.EventPayoutCreated): true}
	note(announced, payment.PayinTable)
	note(announced, payment.PayoutTable)
	note(announced, payment.RefundTable)
	note(announced, payment.DisputeTable)
	promised := strings.Fields(webhookTypes)
	for _, event := range promised {
		if !announced[event] {
			t.Errorf("nothing announces %s", event)
		}
		delete(announced, event)
	}
	for event := range announced {
		t.Errorf("%q is announced and not in the contract", event)
	}
}

func note[S ~string](announced map[string]bool, table payment.Table[S]) {
	for _, cell := range table {
		if cell.Event != "" {
			announced[string(cell.Event)] = true
		}
	}
}

// Every recipe about an order is posted by some transition or creation, so that
// none is unused.
func TestEveryOrderRecipeIsBooked(t *testing.T) {
	t.Parallel()
	booked := map[ledger.Kind]bool{
		ledger.PayoutHeld: true, ledger.RefundHeld: true, ledger.RefundFound: true, // creation
		ledger.Funded: true, ledger.OwedRepaid: true, ledger.ReceivedUnidentified: true, // of no order
		ledger.UnappliedReleased: true, ledger.UnappliedWrittenOff: true, ledger.UnappliedBack: true, ledger.PayoutPaidLate: true, ledger.PayoutWrittenOff: true, ledger.PayoutRecovered: true, // of a case
		ledger.UnidentifiedMoved: true, ledger.UnidentifiedArrived: true, ledger.UnidentifiedKept: true,
		ledger.PayoutFound: true, ledger.PayoutAdopted: true, ledger.FoundReturned: true, ledger.FoundWrittenOff: true, // of a transfer that a restored backup lacks
		ledger.UnidentifiedReturned: true, ledger.UnidentifiedBack: true, // of no order, at the processor's panel
		ledger.FeeRefunded: true, ledger.FeeRecharged: true, // with a refund, about the pay-in
		ledger.CostBooked: true, ledger.CostReturned: true, // of the platform: with a receipt, and by the list of costs
		ledger.ReceivedPending: true, ledger.Settled: true, // if the merchant's money settles later
	}
	for _, cell := range payment.PayinTable {
		booked[cell.Recipe] = true
	}
	for _, cell := range payment.PayoutTable {
		booked[cell.Recipe] = true
	}
	for _, cell := range payment.RefundTable {
		booked[cell.Recipe] = true
	}
	for _, r := range ledger.Recipes {
		if !booked[r.Kind] {
			t.Errorf("nothing posts %s", r.Kind)
		}
	}
}

func rowsOf(text string) [][]string {
	var rows [][]string
	for line := range strings.Lines(strings.TrimPrefix(text, "\n")) {
		rows = append(rows, strings.Fields(line))
	}
	return rows
}

func or(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
