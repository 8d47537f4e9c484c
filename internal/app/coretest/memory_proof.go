package coretest

import (
	"slices"
	"strings"

	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
)

// WantProven checks that the merchant's rows are consistent, as the command verify does.
func (m *Memory) WantProven() {
	m.T.Helper()
	m.wantPostingsProven()
	m.wantPayinsProven()
	m.wantPayoutsProven()
	versions := map[payment.ID]int64{}
	for i, e := range m.Rows.Events {
		if e.Number != int64(i+1) || e.Version <= versions[e.Subject] {
			m.T.Errorf("event %d has number %d, and version %d of its order after version %d", i+1, e.Number, e.Version, versions[e.Subject])
		}
		versions[e.Subject] = e.Version
	}
}

// wantPostingsProven checks that each entry adds up to zero, and that each balance is the
// sum of its postings and has a permitted sign.
func (m *Memory) wantPostingsProven() {
	m.T.Helper()
	sums, entries := ledger.Balances{ledger.Available: m.Opening}, map[payment.ID]money.Cents{}
	for _, p := range m.Rows.Postings {
		entries[p.Entry] += p.Amount
		if sums[p.Account] += p.Amount; sums[p.Account] != p.BalanceAfter {
			m.T.Errorf("posting %+v: the balance is %d", p, sums[p.Account])
		}
	}
	for id, sum := range entries {
		if sum != 0 {
			m.T.Errorf("entry %s adds up to %d", id, sum)
		}
	}
	for _, account := range m.Balances().Accounts() {
		got := m.Balances()[account]
		if got != sums[account] {
			m.T.Errorf("%s is %d, and its postings add up to %d", account, got, sums[account])
		}
		negative := account == ledger.Owed || account == ledger.Costs
		if !strings.HasPrefix(string(account), "clearing:") && (got > 0 && negative || got < 0 && !negative) {
			m.T.Errorf("forbidden balance %d of %s", got, account)
		}
	}
}

// paidStatuses are those of a pay-in that is paid in full.
var paidStatuses = []payment.PayinStatus{
	payment.PayinPaid, payment.PayinPartiallyRefunded, payment.PayinRefunded, payment.PayinDisputed, payment.PayinChargeback,
}

// wantPayinsProven checks that receipts add up to what was paid and to what is unapplied,
// receivables to what is pending, and open disputes to what is disputed.
func (m *Memory) wantPayinsProven() {
	m.T.Helper()
	applied := map[payment.ID]money.Cents{}
	var unapplied, disputed money.Cents
	for _, r := range m.Rows.Receipts {
		if applied[r.Payin] += r.Applied; r.Merchant == m.Merchant.ID {
			unapplied += r.Amount - r.Applied
		}
	}
	for _, v := range m.Rows.Payins {
		p := v.Payin
		counts := p.PaidAmount - p.RefundedAmount // until it is paid in full
		if slices.Contains(paidStatuses, p.Status) {
			counts = p.PaidAmount
		}
		if p.PaidAmount != applied[p.ID] || (counts >= p.Amount) != slices.Contains(paidStatuses, p.Status) && p.Status != payment.PayinFailed {
			m.T.Errorf("%s: %d of %d are paid, and %d were received", p.Status, p.PaidAmount, p.Amount, applied[p.ID])
		}
	}
	var pending money.Cents
	for i := range m.Rows.Receivables {
		if r := &m.Rows.Receivables[i]; r.Open() {
			pending += r.Net()
		}
	}
	for _, d := range m.Rows.Disputes {
		if d.Live() {
			disputed += d.InUse()
		}
	}
	if got := m.Balances()[ledger.Pending]; got != pending {
		m.T.Errorf("%d pending, and receivables of %d", got, pending)
	}
	if b := m.Balances(); b[ledger.Unapplied] != unapplied || b[ledger.Disputed] != disputed {
		m.T.Errorf("unapplied %d and disputed %d, want %d and %d", b[ledger.Unapplied], b[ledger.Disputed], unapplied, disputed)
	}
}

// wantPayoutsProven checks that the held money is that of the payouts in flight, and that
// at most one send of each is undecided.
func (m *Memory) wantPayoutsProven() {
	m.T.Helper()
	var hold money.Cents
	for _, v := range m.Rows.Payouts {
		p, undecided := v.Payout, 0
		final := p.Status != payment.PayoutPending && p.Status != payment.PayoutProcessing
		if !final {
			hold += p.Amount + p.Fee
		}
		if final != (p.Step == payment.StepDone) {
			m.T.Errorf("it is %s/%s", p.Status, p.Step)
		}
		for _, s := range m.Rows.Sends {
			if s.Payout == p.ID && s.Outcome.Undecided() {
				undecided++
			}
		}
		if undecided > 1 {
			m.T.Errorf("%d undecided sends", undecided)
		}
	}
	if got := m.Balances()[ledger.Held]; got != hold {
		m.T.Errorf("%d held, want %d", got, hold)
	}
}
