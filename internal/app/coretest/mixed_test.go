package coretest_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/limits"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/wire"
)

var (
	mixedOperations = flag.Int("mixed", 400, "operations of TestMixedOperations on each engine")
	mixedSeed       = flag.Uint64("mixed-seed", 1, "seed of TestMixedOperations")
)

// Limits of the merchant of the test, in force from its first payout on.
const (
	mixedPerDay   money.Cents = 900_00
	mixedPerNight money.Cents = 200_00
	mixedPerKey   money.Cents = 400_00
	mixedKeyCount int64       = 8
	mixedMaximum  money.Cents = 90_00
	mixedApproval money.Cents = 60_00
	mixedNewKey   money.Cents = 120_00
	mixedKeysFor              = 2000 // numbers of operations, after which a new key comes
)

// pool is how many orders of each kind the operations choose from: the newest.
const pool = 40

// receipt is a payment that the bank received, and what of it the bank gave back or lost.
type receipt struct {
	id            string
	amount, given money.Cents
	disputed      money.Cents // open or lost
	dispute       string      // "" for none
	state         processor.DisputeState
}

// mixedRun is a run of random operations on one merchant, with the bank's side. The bank errs as
// banks do, but it never gives back more than it received.
type mixedRun struct {
	*coretest.Gateway

	rnd      *rand.Rand
	number   int
	funded   money.Cents
	payins   []payment.Payin
	payouts  []payment.Payout
	receipts map[string]*receipt   // by the bank's id
	of       map[string][]*receipt // by the external id of the pay-in
	refunds  []string              // external ids of refunds that the bank processes
	done     map[string]int        // operations that were not refused, by kind
}

func (b *mixedRun) next() string { b.number++; return fmt.Sprint(b.number) }

func (b *mixedRun) cents(most money.Cents) money.Cents {
	return 1 + money.Cents(b.rnd.Int64N(int64(most)))
}

// allow fails for an error that is not one of these kinds, and counts the operation else.
func (b *mixedRun) allow(what string, err error, kinds ...problem.Kind) bool {
	b.T.Helper()
	if err == nil {
		b.done[what]++
		return true
	}
	if !slices.ContainsFunc(kinds, func(k problem.Kind) bool { return problem.Is(err, k) }) {
		b.T.Fatalf("operation %d, %s: %v", b.number, what, err)
	}
	b.done[what+" refused"]++
	return false
}

func newest[T any](list []T, v T) []T {
	if list = append(list, v); len(list) > pool {
		list = list[1:]
	}
	return list
}

func (b *mixedRun) createPayin() {
	r := coretest.PayinRequest("in "+b.next(), "")
	r.Amount = wire.Some(int64(b.cents(200_00)))
	p, _, err := b.Payins.Create(b.T.Context(), b.Merchant, r)
	if b.allow("pay-in", err) {
		b.payins = newest(b.payins, p)
	}
}

// pay pays a pay-in: a part, all or too much; it may be canceled, expired or paid already.
func (b *mixedRun) pay() {
	if len(b.payins) == 0 {
		return
	}
	p := b.payins[b.rnd.IntN(len(b.payins))]
	amount := p.Amount
	if b.rnd.IntN(3) == 0 {
		amount = b.cents(2 * p.Amount)
	}
	id := "pay " + b.next()
	v := &receipt{id: id, amount: amount}
	b.receipts[id], b.of[p.ExternalID] = v, append(b.of[p.ExternalID], v)
	b.Bank.Receive(p.ExternalID, id, amount)
	b.Bank.Charges[p.ExternalID].Payments[len(b.of[p.ExternalID])-1].PaidAt = b.Clock.Now()
	b.report("charge " + p.ExternalID)
	b.done["payment"]++
}

// report sends a notice of the bank, unless it is lost.
func (b *mixedRun) report(line string) {
	if b.rnd.IntN(10) > 0 {
		b.Notify("notice "+b.next(), line)
		b.Apply()
	}
}

func (b *mixedRun) refund() {
	if len(b.payins) == 0 {
		return
	}
	p := b.payins[b.rnd.IntN(len(b.payins))]
	amount := int64(0)
	if b.rnd.IntN(3) > 0 {
		amount = int64(b.cents(p.Amount))
	}
	_, _, err := b.Refunds.Create(b.T.Context(), b.Merchant, p.ID, coretest.RefundRequest(b.next(), amount))
	b.allow("refund", err, problem.ValidationFailed, problem.InvalidState, problem.RefundNotPossible, problem.InsufficientBalance)
}

// outcomes are what a bank answers.
var outcomes = []processor.Outcome{
	processor.Done, processor.Done, processor.Done, processor.Unknown, processor.Unknown, processor.Refused, processor.Later, processor.NotSent,
}

// answers changes what the bank answers to transfers and refunds until the next change.
func (b *mixedRun) answers() {
	outcome := outcomes[b.rnd.IntN(len(outcomes))]
	state := []processor.TransferState{processor.TransferPaid, processor.TransferPaid, processor.TransferProcessing}[b.rnd.IntN(3)]
	effect := outcome == processor.Done || outcome == processor.Unknown && b.rnd.IntN(2) == 0
	b.Bank.AnswerTransfer = func(bank *coretest.Bank, r processor.TransferRequest) processor.TransferAnswer {
		if bank.Transfers[r.ExternalID] != nil {
			return processor.TransferAnswer{Outcome: processor.Done, Report: bank.Report(r.ExternalID)}
		}
		answer := processor.TransferAnswer{Outcome: outcome, Evidence: "answer", Cause: errors.New("answer")}
		if effect {
			answer.Report = bank.Pay(r, state)
		}
		return answer
	}
	b.Bank.Refunds.Answer = func(bank *coretest.Bank, r processor.RefundRequest) processor.TransferAnswer {
		v := b.receipts[r.PaymentID]
		switch {
		case bank.Refunds.Made[r.ExternalID] != nil:
			return processor.TransferAnswer{Outcome: processor.Done, Report: bank.RefundReport(r.ExternalID)}
		case v.given+v.disputed+r.Amount > v.amount:
			return processor.TransferAnswer{Outcome: processor.Refused, Evidence: "too much"}
		}
		answer := processor.TransferAnswer{Outcome: outcome, Evidence: "answer", Cause: errors.New("answer")}
		if effect {
			answer.Report = bank.GiveBack(r, state)
			v.given += r.Amount
			b.refunds = newest(b.refunds, r.ExternalID)
		}
		return answer
	}
}

// endRefund makes a refund end at the bank; one that was paid may still fail.
func (b *mixedRun) endRefund() {
	if len(b.refunds) == 0 {
		return
	}
	id := b.refunds[b.rnd.IntN(len(b.refunds))]
	made := b.Bank.Refunds.Made[id]
	switch {
	case made.State == processor.TransferFailed:
	case b.rnd.IntN(4) == 0:
		b.receipts[made.Request.PaymentID].given -= made.Request.Amount
		b.Bank.EndRefund(id, processor.TransferFailed)
		b.done["refund failed"]++
	default:
		b.Bank.EndRefund(id, processor.TransferPaid)
	}
	b.report("refund " + id)
}

// dispute opens a dispute of a payment, or ends it.
func (b *mixedRun) dispute() {
	if len(b.payins) == 0 {
		return
	}
	p := b.payins[b.rnd.IntN(len(b.payins))]
	list := b.of[p.ExternalID]
	if len(list) == 0 {
		return
	}
	v := list[0] // the bank's disputes are of the first payment
	switch left := v.amount - v.given - v.disputed; {
	case v.dispute == "" && left <= 0:
		return
	case v.dispute == "":
		v.dispute, v.state, v.disputed = "dispute "+b.next(), processor.DisputeOpen, b.cents(left)
		b.done["dispute"]++
	case v.state == processor.DisputeOpen && b.rnd.IntN(2) == 0:
		v.state = processor.DisputeLost
		b.done["dispute lost"]++
	case v.state == processor.DisputeOpen:
		v.state = processor.DisputeWon
	case v.state == processor.DisputeLost && b.rnd.IntN(3) == 0:
		v.state = processor.DisputeReversed
	default:
		return
	}
	b.Bank.Dispute(p.ExternalID, v.dispute, max(v.disputed, 1), v.state)
	if v.state == processor.DisputeWon || v.state == processor.DisputeReversed {
		v.disputed = 0
	}
	b.report("charge " + p.ExternalID)
}

func (b *mixedRun) payoutRequest() *wire.PayoutRequest {
	r := coretest.PayoutRequest("out "+b.next(), int64(b.cents(mixedMaximum+5_00)))
	key := fmt.Sprintf("key%d@example.com", b.number/mixedKeysFor+b.rnd.IntN(5))
	r.PIXKey, r.NormalKey, r.Actor = wire.Some(key), key, "credential:asker"
	return r
}

func (b *mixedRun) payout() {
	p, _, err := b.Payouts.Request(b.T.Context(), b.Merchant, b.payoutRequest())
	if b.allow("payout", err, problem.LimitExceeded, problem.InsufficientBalance) {
		b.payouts = newest(b.payouts, p)
	}
}

// batch requests some payouts together: all or none.
func (b *mixedRun) batch() {
	r := &wire.PayoutBatchRequest{ReferenceID: wire.Some("batch " + b.next()), Fingerprint: wire.Fingerprint("items")}
	for range 1 + b.rnd.IntN(4) {
		item := b.payoutRequest()
		item.Amount = wire.Some((item.Amount.V + 3) / 4)
		r.Items = append(r.Items, item)
	}
	_, _, err := b.Payouts.RequestBatch(b.T.Context(), b.Merchant, r)
	if !b.allow("batch", err, problem.LimitExceeded, problem.InsufficientBalance) {
		return
	}
	for _, item := range r.Items { // the same request again is answered with its payout
		p, replayed, err := b.Payouts.Request(b.T.Context(), b.Merchant, item)
		b.Must(err)
		if !replayed {
			b.T.Fatalf("operation %d: a payout of a batch was requested twice", b.number)
		}
		b.payouts = newest(b.payouts, p)
	}
}

// decide approves, rejects or cancels a payout.
func (b *mixedRun) decide() {
	if len(b.payouts) == 0 {
		return
	}
	p := b.payouts[b.rnd.IntN(len(b.payouts))]
	by := actor.Author{Actor: actor.Credential(fmt.Sprint(b.rnd.IntN(3))), Reason: "no"}
	switch b.rnd.IntN(8) {
	case 0:
		_, err := b.Payouts.Reject(b.T.Context(), p.Merchant, p.ID, by)
		b.allow("reject", err, problem.InvalidState)
	case 1:
		_, err := b.Payouts.Cancel(b.T.Context(), p.Merchant, p.ID)
		b.allow("cancel", err, problem.InvalidState)
	default:
		_, err := b.Payouts.Approve(b.T.Context(), p.Merchant, p.ID, by)
		b.allow("approve", err, problem.InvalidState, problem.LimitExceeded)
	}
}

// endTransfer makes a transfer end at the bank, or come back.
func (b *mixedRun) endTransfer() {
	if len(b.payouts) == 0 {
		return
	}
	p := b.payouts[b.rnd.IntN(len(b.payouts))]
	t := b.Bank.Transfers[p.ExternalID]
	switch {
	case t == nil || t.State == processor.TransferFailed:
		return
	case t.State == processor.TransferProcessing:
		t.State = []processor.TransferState{processor.TransferPaid, processor.TransferPaid, processor.TransferFailed}[b.rnd.IntN(3)]
	case b.rnd.IntN(4) == 0 && t.Returned < t.Request.Amount:
		b.Bank.Return(p.ExternalID, t.Returned+b.cents(t.Request.Amount-t.Returned))
		b.done["return"]++
	}
	b.report(p.ExternalID)
}

// pass advances the clock, and runs the workers that follow it.
func (b *mixedRun) pass() {
	b.Jump(time.Duration(b.rnd.IntN(4*3600)) * time.Second)
	b.Settle()
	b.Run(b.Payins.Expire)
	b.Run(b.Payouts.Expire)
	b.Run(b.Payouts.CompleteBatches)
	b.LookUp()
}

// price changes a price: orders keep that of their creation.
func (b *mixedRun) price() {
	method := []payment.Method{payment.PIX, payment.PayoutPrice}[b.rnd.IntN(2)]
	terms := payment.Terms{BasisPoints: b.rnd.Int64N(500), Fixed: money.Cents(b.rnd.Int64N(60))}
	if method == payment.PIX {
		terms.Days = b.rnd.IntN(3)
		terms.Business = terms.Days > 0 && b.rnd.IntN(2) == 0
	}
	b.SetPrice(method, terms)
}

func (b *mixedRun) fund() {
	amount := b.cents(500_00)
	b.funded += amount
	b.Must(b.Merchants.Fund(b.T.Context(), b.Merchant, amount))
}

// operations are all kinds of operations, with how often each one runs.
var operations = []struct {
	weight int
	do     func(*mixedRun)
}{
	{14, (*mixedRun).createPayin},
	{18, (*mixedRun).pay},
	{10, (*mixedRun).refund},
	{4, (*mixedRun).answers},
	{14, func(b *mixedRun) { b.Send() }},
	{6, (*mixedRun).endRefund},
	{7, (*mixedRun).dispute},
	{14, (*mixedRun).payout},
	{2, (*mixedRun).batch},
	{8, (*mixedRun).decide},
	{6, (*mixedRun).endTransfer},
	{4, (*mixedRun).pass},
	{1, (*mixedRun).price},
	{1, (*mixedRun).fund},
	{2, func(b *mixedRun) { b.ReadFeeds() }},
}

// TestMixedOperations runs random operations, and checks the rows every now and then: that
// the balances are not below zero, that no more is refunded or charged back than was paid,
// that limits were never passed, and all that porteira verify checks. In the end the ledger
// has what the bank has. -mixed 100000 runs for minutes.
func TestMixedOperations(t *testing.T) {
	coretest.EachEngine(t, func(t *testing.T, g *coretest.Gateway) {
		b := &mixedRun{
			Gateway: g, rnd: rand.New(rand.NewPCG(*mixedSeed, 0)), receipts: map[string]*receipt{}, of: map[string][]*receipt{}, done: map[string]int{},
		}
		approvals, keyCount := int64(2), mixedKeyCount
		perDay, perNight, perKey, newKey, maximum, approval := mixedPerDay, mixedPerNight, mixedPerKey, mixedNewKey, mixedMaximum, mixedApproval
		g.SetLimits(limits.Limits{Payout: limits.Payout{
			Range: limits.Range{Maximum: &maximum}, PerDay: &perDay, PerNight: &perNight, PerKeyPerDay: &perKey, CountPerKeyPerDay: &keyCount,
			NewKeyMaximum: &newKey, ApprovalAbove: &approval, Approvals: &approvals,
		}})
		var all []func(*mixedRun)
		for _, o := range operations {
			all = append(all, slices.Repeat([]func(*mixedRun){o.do}, o.weight)...)
		}
		every := max(100, *mixedOperations/20)
		for i := range *mixedOperations {
			all[b.rnd.IntN(len(all))](b)
			if (i+1)%every == 0 {
				b.check()
				if t.Failed() {
					t.Fatalf("after %d operations, seed %d: %v", i+1, *mixedSeed, b.done)
				}
			}
		}
		b.finish()
		b.check()
		b.compare()
		t.Logf("seed %d: %v", *mixedSeed, b.done)
	})
}

// finish lets everything end.
func (b *mixedRun) finish() {
	for range 12 {
		b.Bank.AnswerTransfer = nil
		b.answers()
		for _, t := range b.Bank.Transfers {
			if t.State == processor.TransferProcessing {
				t.State = processor.TransferPaid
			}
		}
		for id, r := range b.Bank.Refunds.Made {
			if r.State == processor.TransferProcessing {
				b.Bank.EndRefund(id, processor.TransferPaid)
			}
		}
		b.Jump(12 * time.Hour)
		b.Send()
		b.LookUp()
		b.ReadFeeds()
		b.Apply()
		b.Run(b.Payouts.Expire)
		b.Run(b.Payouts.CompleteBatches)
		b.Settle()
	}
}
