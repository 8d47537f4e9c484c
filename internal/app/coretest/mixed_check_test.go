package coretest_test

import (
	"database/sql"
	"fmt"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/processor"
)

// check checks the rows. A result that was not recorded, because the database ended the
// connection of a process that was paused, is lost: a test does not record it again.
func (b *mixedRun) check() {
	b.T.Helper()
	if lost := b.Log.Lines("not recorded"); lost != "" {
		b.T.Fatalf("the database failed: %s", lost)
	}
	b.WantProven()
	balances, err := b.Store.Balances(b.T.Context(), b.Merchant.ID)
	b.Must(err)
	for account, balance := range balances {
		negative := account.IsClearing() || account == ledger.Owed || account == ledger.Costs || account == ledger.WrittenOff
		if balance < 0 && !negative || account == ledger.Owed && balance > 0 {
			b.T.Errorf("%s is %d", account, balance)
		}
	}
	over := b.rows(`SELECT p.reference_id, 0, 0, 0, '' FROM payins p WHERE
		(SELECT coalesce(SUM(r.refunded_amount), 0) FROM refunds r WHERE r.merchant_id = p.merchant_id AND r.payin_id = p.id) +
		(SELECT coalesce(SUM(d.taken), 0) FROM disputes d WHERE d.merchant_id = p.merchant_id AND d.payin_id = p.id AND d.status IN ('OPEN', 'SUBMITTED', 'LOST')) >
		(SELECT coalesce(SUM(r.amount), 0) FROM receipts r WHERE r.merchant_id = p.merchant_id AND r.payin_id = p.id)`)
	for _, r := range over {
		b.T.Errorf("more was refunded or charged back of %s than was paid", r.text)
	}
	b.checkLimits()
	b.checkNewKeys()
	b.checkBatches()
}

// checkLimits adds the payouts up that count, by the days and nights of São Paulo, which is
// three hours behind UTC.
func (b *mixedRun) checkLimits() {
	b.T.Helper()
	days, nights, keys, counts := map[int64]money.Cents{}, map[int64]money.Cents{}, map[string]money.Cents{}, map[string]int64{}
	for _, p := range b.rows("SELECT status, amount, created_at, counted_at, key_hash FROM payouts WHERE status NOT IN ('FAILED', 'CANCELED')") {
		at := time.UnixMicro(p.created)
		if p.counted > 0 {
			at = time.UnixMicro(p.counted)
		}
		at = at.UTC().Add(-3 * time.Hour)
		day := at.Unix() / 86400
		key := fmt.Sprint(day, " ", p.key)
		days[day] += p.amount
		keys[key] += p.amount
		counts[key]++
		if at.Hour() >= 20 || at.Hour() < 6 {
			nights[at.Add(-6*time.Hour).Unix()/86400] += p.amount
		}
		if p.amount > mixedMaximum {
			b.T.Errorf("a payout of %d", p.amount)
		}
	}
	for day, sum := range days {
		if sum > mixedPerDay {
			b.T.Errorf("payouts of %d on day %d", sum, day)
		}
	}
	for night, sum := range nights {
		if sum > mixedPerNight {
			b.T.Errorf("payouts of %d in the night of day %d", sum, night)
		}
	}
	for key, sum := range keys {
		if sum > mixedPerKey || counts[key] > mixedKeyCount {
			b.T.Errorf("%d payouts of %d to one key on a day", counts[key], sum)
		}
	}
}

// checkNewKeys adds the payouts up to each key until a day after the first one to it. A payout that
// needs approval is the first one only once it has it.
func (b *mixedRun) checkNewKeys() {
	b.T.Helper()
	first, sums := map[string]int64{}, map[string]money.Cents{}
	list := b.rows(`SELECT status, amount, created_at, CASE approval WHEN 'none' THEN created_at WHEN 'approved' THEN
		(SELECT MAX(a.created_at) FROM approvals a WHERE a.merchant_id = t.merchant_id AND a.payout_id = t.id AND a.action = 'approved') ELSE 0 END, key_hash FROM payouts t`)
	for _, p := range list {
		if since, ok := first[p.key]; p.counted > 0 && (!ok || p.counted < since) {
			first[p.key] = p.counted
		}
	}
	for _, p := range list {
		since, known := first[p.key]
		if p.text != "FAILED" && p.text != "CANCELED" && (!known || p.created < since+(24*time.Hour).Microseconds()) {
			sums[p.key] += p.amount
		}
	}
	for key, sum := range sums {
		if sum > mixedNewKey {
			b.T.Errorf("payouts of %d to a new key %s", sum, key)
		}
	}
}

// checkBatches compares the batches with their payouts.
func (b *mixedRun) checkBatches() {
	b.T.Helper()
	for _, v := range b.rows(`SELECT t.reference_id, t.amount, t.items, t.completed_at, '' FROM payout_batches t WHERE
		t.amount <> (SELECT SUM(p.amount) FROM payouts p WHERE p.merchant_id = t.merchant_id AND p.batch_id = t.id) OR
		t.items <> (SELECT count(*) FROM payouts p WHERE p.merchant_id = t.merchant_id AND p.batch_id = t.id) OR
		t.completed_at > 0 AND EXISTS (SELECT 1 FROM payouts p WHERE p.merchant_id = t.merchant_id AND p.batch_id = t.id AND p.status IN ('PENDING', 'PROCESSING'))`) {
		b.T.Errorf("batch %s does not fit its payouts", v.text)
	}
}

// compare compares the ledger with the bank's records.
func (b *mixedRun) compare() {
	b.T.Helper()
	for _, v := range b.rows("SELECT reference_id, amount, 0, 0, '' FROM payout_batches WHERE completed_at = 0") {
		b.T.Errorf("batch %s did not end", v.text)
	}
	var received, lost, sent, returned, given money.Cents
	for _, v := range b.receipts {
		received += v.amount
		if v.state == processor.DisputeLost {
			lost += v.disputed
		}
	}
	for _, t := range b.Bank.Transfers {
		if t.State == processor.TransferPaid {
			sent += t.Request.Amount
			returned += t.Returned
		}
	}
	for _, r := range b.Bank.Refunds.Made {
		if r.State == processor.TransferPaid {
			given += r.Request.Amount
		}
	}
	// A dispute of an order that cannot be disputed, or of more than the order has, is left to a
	// person in whole or in part.
	var booked, unbooked money.Cents
	for _, k := range b.rows("SELECT kind, amount, 0, 0, '' FROM postings WHERE account LIKE 'clearing:%' AND kind IN ('charged_back', 'chargeback_reversed')") {
		booked += k.amount
	}
	for _, c := range b.rows("SELECT kind, amount, 0, 0, '' FROM cases WHERE kind = 'dispute_unexpected' AND closed_at = 0") {
		unbooked += c.amount
	}
	if lost < booked || lost > booked+unbooked {
		b.T.Errorf("%d was charged back, the bank has %d, cases %d", booked, lost, unbooked)
	}
	want := sent - returned + given + booked - received - coretest.Opening - b.funded
	balances, err := b.Store.Balances(b.T.Context(), b.Merchant.ID)
	b.Must(err)
	if got := balances[ledger.Clearing(coretest.BankName)]; got != want || balances[ledger.Held] != 0 {
		b.T.Errorf("clearing is %d, the bank has %d; held %d", got, want, balances[ledger.Held])
		for _, p := range b.rows("SELECT step, amount, created_at, sent_at, key_hash FROM payouts WHERE step NOT IN ('done', 'paid_late')") {
			b.T.Logf("payout %s of %d", p.text, p.amount)
		}
		for _, k := range b.rows("SELECT kind, SUM(amount), 0, 0, '' FROM postings WHERE account LIKE 'clearing:%' GROUP BY kind") {
			b.T.Logf("%s moved %d", k.text, k.amount)
		}
		for _, c := range b.rows("SELECT kind, amount, created_at, 0, params FROM cases WHERE closed_at = 0 AND kind <> 'overpaid'") {
			b.T.Logf("case %s of %d: %s", c.text, c.amount, c.key)
		}
		b.T.Logf("the bank: received %d, charged back %d, sent %d, returned %d, given back %d", received, lost, sent, returned, given)
	}
}

// row is a row of a query of five columns.
type row struct {
	text             string
	amount           money.Cents
	created, counted int64
	key              string
}

func (b *mixedRun) rows(text string) (list []row) {
	b.T.Helper()
	b.Query(text, func(rows *sql.Rows) error {
		var r row
		var key any
		err := rows.Scan(&r.text, (*int64)(&r.amount), &r.created, &r.counted, &key)
		r.key = fmt.Sprint(key)
		list = append(list, r)
		return err
	})
	return list
}
