package refund_test

import (
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/review"
	"github.com/porteira/porteira/internal/store"
)

// sequences is how many sequences of operations run.
const sequences = 40

// mixed is a pay-in of 100.00 under random operations.
type mixed struct {
	*coretest.Gateway
	payin    payment.Payin
	number   int
	received int // how many payments
	reviews  *review.Service

	disputes map[string]*processor.Dispute
}

// disputed is the money that disputes took of a payment at the bank, including lost ones.
func (m *mixed) disputed(paymentID string) (sum money.Cents) {
	for _, d := range m.disputes {
		if d.PaymentID == paymentID && (d.State == processor.DisputeOpen || d.State == processor.DisputeLost) {
			sum += d.Amount
		}
	}
	return sum
}

// dispute opens a dispute of a payment at the bank, or moves one.
func (m *mixed) dispute(r *rapid.T) {
	id := rapid.SampledFrom([]string{"D", "E", "F"}).Draw(r, "dispute")
	d := m.disputes[id]
	switch {
	case d == nil:
		of, left := m.left(r)
		if left <= 0 {
			return
		}
		d = &processor.Dispute{ID: id, PaymentID: of, Amount: money.Cents(rapid.IntRange(1, int(left)).Draw(r, "amount")), State: processor.DisputeOpen}
		m.disputes[id] = d
	case d.State == processor.DisputeOpen:
		d.State = rapid.SampledFrom([]processor.DisputeState{processor.DisputeWon, processor.DisputeLost}).Draw(r, "decided")
	case d.State == processor.DisputeLost:
		d.State = processor.DisputeReversed
	}
	m.Bank.Disputes(m.payin.ExternalID, *d)
	m.Notify(fmt.Sprint("dispute ", id, d.State), "charge "+m.payin.ExternalID)
	m.Apply()
}

// given is the money that the bank gave back of a payment, or is giving back.
func (m *mixed) given(paymentID string) (sum money.Cents) {
	for _, r := range m.Bank.Refunds.Made {
		if r.Request.PaymentID == paymentID && r.State != processor.TransferFailed {
			sum += r.Request.Amount
		}
	}
	return sum
}

// payments are received one after another: the second one pays the rest, the others are too much.
var payments = []string{"p 1", "p 2", "p 3", "p 4"}

var amounts = map[string]money.Cents{"p 1": 30_00, "p 2": 80_00, "p 3": 25_00, "p 4": 100_00}

// left draws a received payment and returns the rest of it at the bank.
func (m *mixed) left(r *rapid.T) (of string, left money.Cents) {
	if m.received == 0 {
		return "", 0
	}
	of = rapid.SampledFrom(payments[:m.received]).Draw(r, "payment")
	return of, amounts[of] - m.given(of) - m.disputed(of)
}

// pay lets the next payment come.
func (m *mixed) pay() {
	if m.received == len(payments) {
		return
	}
	id := payments[m.received]
	m.received++
	m.Bank.Receive(m.payin.ExternalID, id, amounts[id])
	m.Notify(id, "charge "+m.payin.ExternalID)
	m.Apply()
}

// resolve lets an operator decide about money that exceeded the order.
func (m *mixed) resolve(r *rapid.T) {
	list, err := m.Store.OpenCases(m.T.Context(), 100)
	m.Must(err)
	how := rapid.SampledFrom([]store.Resolution{store.ResolvedApply, store.ResolvedReturn, store.ResolvedWriteOff}).Draw(r, "resolution")
	for i := range list {
		if list[i].Kind != store.CaseOverpaid {
			continue
		}
		who := rapid.SampledFrom([]actor.Actor{"operator:ana", "operator:bia"}).Draw(r, "person") // a write-off takes both
		_, err := m.reviews.Resolve(m.T.Context(), review.Request{Case: list[i].ID, How: how, Actor: who, Reason: "compared", Evidence: "line 7"})
		if err != nil && !problem.Is(err, problem.InvalidState) && !problem.Is(err, problem.RefundNotPossible) {
			r.Fatalf("resolve: %v", err)
		}
		return
	}
}

// answer is the bank's answer to a request: it never gives back more than it received.
func (m *mixed) answer(state processor.TransferState, outcome processor.Outcome) {
	m.Bank.Refunds.Answer = func(b *coretest.Bank, r processor.RefundRequest) processor.TransferAnswer {
		switch {
		case outcome == processor.Refused || outcome == processor.Later || outcome == processor.NotSent:
			if b.Refunds.Made[r.ExternalID] == nil {
				return processor.TransferAnswer{Outcome: outcome, Evidence: "answer", Cause: errors.New("answer")}
			}
			fallthrough
		case b.Refunds.Made[r.ExternalID] != nil:
			return processor.TransferAnswer{Outcome: processor.Done, Report: b.GiveBack(r, state)}
		case m.given(r.PaymentID)+m.disputed(r.PaymentID)+r.Amount > amounts[r.PaymentID]:
			return processor.TransferAnswer{Outcome: processor.Refused, Evidence: "too much"}
		case outcome == processor.Unknown && state == "":
			return processor.TransferAnswer{Cause: errors.New("timeout")}
		default:
			return processor.TransferAnswer{Outcome: outcome, Report: b.GiveBack(r, state), Cause: errors.New("timeout")}
		}
	}
}

func (m *mixed) do(r *rapid.T) {
	switch rapid.IntRange(0, 16).Draw(r, "operation") {
	case 10, 11, 12:
		m.dispute(r)
	case 13, 14:
		m.pay()
	case 15:
		m.resolve(r)
	case 16:
		m.Jump(2 * time.Hour)
		m.Run(m.Payins.Expire)
	case 0, 1, 2:
		m.number++
		_, _, err := m.Refunds.Create(m.T.Context(), m.Merchant, m.payin.ID,
			coretest.RefundRequest(fmt.Sprint(m.number), int64(rapid.IntRange(0, 60_00).Draw(r, "amount"))))
		if err != nil && !problem.Is(err, problem.ValidationFailed) && !problem.Is(err, problem.InvalidState) && !problem.Is(err, problem.RefundNotPossible) {
			r.Fatalf("create: %v", err)
		}
	case 3, 4:
		m.answer(rapid.SampledFrom([]processor.TransferState{processor.TransferPaid, processor.TransferProcessing}).Draw(r, "state"),
			rapid.SampledFrom([]processor.Outcome{processor.Done, processor.Done, processor.Unknown, processor.Refused, processor.Later, processor.NotSent}).Draw(r, "outcome"))
		m.Send()
	case 5:
		m.Jump(time.Duration(rapid.IntRange(1, 300).Draw(r, "seconds")) * time.Second)
		m.LookUp()
	case 6:
		m.ReadFeeds()
	case 7, 8:
		if ids := slices.Sorted(maps.Keys(m.Bank.Refunds.Made)); len(ids) > 0 {
			id := rapid.SampledFrom(ids).Draw(r, "refund")
			if m.Bank.Refunds.Made[id].State != processor.TransferFailed {
				m.Bank.EndRefund(id, rapid.SampledFrom([]processor.TransferState{processor.TransferPaid, processor.TransferFailed}).Draw(r, "end"))
			}
		}
	default:
		if of, left := m.left(r); left > 0 {
			m.number++
			m.Bank.RefundAtPanel(fmt.Sprint("panel", m.number), of, money.Cents(rapid.IntRange(1, int(left)).Draw(r, "at the panel")))
		}
	}
}

// checkWrittenOff compares the written-off money of each payment with its rest at the bank.
func (m *mixed) checkWrittenOff(r *rapid.T) {
	list, err := m.Store.Receipts(m.T.Context(), m.Merchant.ID, m.payin.ID)
	m.Must(err)
	for _, v := range list {
		var sum money.Cents
		m.Query(fmt.Sprintf(`SELECT coalesce(sum(CASE WHEN params LIKE '%%"reason"%%' THEN -amount ELSE 0 END + CASE WHEN resolution = 'write-off' THEN amount ELSE 0 END), 0)
			FROM cases WHERE kind = 'overpaid' AND params LIKE '%%%s%%'`, v.ID), func(rows *sql.Rows) error { return rows.Scan(&sum) })
		if left := v.Amount - m.given(v.ExternalID) - m.disputed(v.ExternalID); sum > left {
			r.Fatalf("%d of %s is written off, the bank has %d left\n%s", sum, v.ExternalID, left, m.Log)
		}
	}
}

// finish lets every refund end.
func (m *mixed) finish() {
	m.Bank.Refunds.Answer = nil
	m.answer(processor.TransferPaid, processor.Done)
	for range 12 {
		for id, r := range m.Bank.Refunds.Made {
			if r.State == processor.TransferProcessing {
				m.Bank.EndRefund(id, processor.TransferPaid)
			}
		}
		m.Jump(time.Hour)
		m.Send()
		m.LookUp()
		m.ReadFeeds()
		m.Apply() // a listed refund may have waited for one that was not decided
	}
}

// After any operations the rows are consistent, no payment was given back twice, and in the end the
// ledger equals the bank's records.
func TestMixedOperations(t *testing.T) {
	runs := 0
	rapid.Check(t, func(r *rapid.T) {
		if runs++; runs > sequences {
			return
		}
		m := &mixed{Gateway: coretest.New(t, "sqlite"), disputes: map[string]*processor.Dispute{}}
		m.payin = m.Payin(m.Merchant, "p", "")
		m.reviews = review.New(review.Options{
			Store: m.Store, Writer: m.Writer, Env: m.Env, Links: func(*payment.Payin) payment.Links { return payment.Links{} }, Processors: m.Outgoing.Processors,
		})
		for range rapid.IntRange(0, 3).Draw(r, "paid before") {
			m.pay()
		}
		for range rapid.IntRange(1, 25).Draw(r, "operations") {
			m.do(r)
		}
		m.WantProven()
		m.finish()
		m.WantProven()
		var given, received money.Cents
		for _, id := range payments[:m.received] {
			given, received = given+m.given(id), received+amounts[id]
		}
		b, err := m.Store.Balances(t.Context(), m.Merchant.ID)
		m.Must(err)
		var lost, open money.Cents
		for _, d := range m.disputes {
			switch d.State {
			case processor.DisputeLost:
				lost += d.Amount
			case processor.DisputeOpen:
				open += d.Amount
			}
		}
		if b[ledger.Disputed] != open {
			r.Fatalf("%d is disputed, the bank's records say %d\n%s", b[ledger.Disputed], open, m.Log)
		}
		if want := given + lost - received - coretest.Opening; b[ledger.Clearing(coretest.BankName)] != want || b[ledger.Held] != 0 {
			r.Fatalf("clearing is %d, the bank's records say %d; held %d\n%s", b[ledger.Clearing(coretest.BankName)], want, b[ledger.Held], m.Log)
		}
		if left := received - given - lost - open; b[ledger.WrittenOff] > left {
			r.Fatalf("%d is written off, the bank has %d left\n%s", b[ledger.WrittenOff], left, m.Log)
		}
		m.checkWrittenOff(r)
		if p := m.ReadPayin(m.payin); p.RefundedAmount > p.PaidAmount {
			r.Fatalf("%d of %d is refunded", p.RefundedAmount, p.PaidAmount)
		}
	})
}
