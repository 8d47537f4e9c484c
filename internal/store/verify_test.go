package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/limits"
	"github.com/porteira/porteira/internal/merchant"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/review"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// history is a merchant with every kind of event once.
type history struct{ *coretest.Gateway }

func newHistory(t *testing.T, engine string) *history {
	t.Helper()
	h := &history{coretest.New(t, engine)}
	wide := new(money.Max)
	h.SetLimits(limits.Limits{Payout: limits.Payout{PerDay: wide, PerNight: wide, PerKeyPerDay: wide, NewKeyMaximum: wide, ApprovalAbove: new(money.Cents(10_00))}})
	h.payin("paid", 100_00, 100_00)
	h.payin("overpaid", 10_00, 15_00)
	h.payin("short", 10_00, 5_00)
	h.open("open")
	disputed := h.payin("disputed", 20_00, 20_00)
	h.receive(disputed.ExternalID, processor.ChargeReport{Disputes: []processor.Dispute{{ID: "d", Amount: 20_00, State: processor.DisputeOpen}}})
	unknown := h.Store.ExternalID(&h.Merchant, payment.OperationPayin, "never requested")
	h.receive(unknown, processor.ChargeReport{Payments: []processor.Payment{{ID: "stray", Amount: 1_00}}})
	h.Bank.Costs = []processor.ListedCost{{ID: "fee", Amount: 45}}
	h.ReadFeeds()

	done := func(state processor.TransferState, returned money.Cents) processor.TransferAnswer {
		return processor.TransferAnswer{Outcome: processor.Done, Report: processor.TransferReport{State: state, EndToEndID: "E1", Returned: returned}}
	}
	h.payout("completed", done(processor.TransferPaid, 0))
	h.payout("returned", done(processor.TransferPaid, 3_00))
	h.payout("failed", processor.TransferAnswer{Outcome: processor.Refused})
	h.payout("under-way", done(processor.TransferProcessing, 0))
	h.payout("unknown", processor.TransferAnswer{Outcome: processor.Unknown})
	r := coretest.PayoutRequest("approved", 11_00)
	r.Actor = "credential:a"
	approved, _, err := h.Payouts.Request(t.Context(), h.Merchant, r)
	h.Must(err)
	_, err = h.Payouts.Approve(t.Context(), h.Merchant.ID, approved.ID, actor.Author{Actor: "credential:b"})
	h.Must(err)
	h.Bank.AnswerTransfer = func(*coretest.Bank, processor.TransferRequest) processor.TransferAnswer {
		return done(processor.TransferPaid, 0)
	}
	h.Send()
	h.refund()
	canceled := h.request("canceled")
	_, err = h.Payouts.Cancel(t.Context(), h.Merchant.ID, canceled.ID)
	h.Must(err)
	list, err := h.Store.OpenCases(t.Context(), 1)
	h.Must(err)
	h.Must(commit(t, h.Store, func(n *store.Needs) { n.Case(list[0].Merchant, list[0].ID) }, func(_ *store.Loaded, c *store.Changes) error {
		c.AddDecision(store.Decision{Merchant: list[0].Merchant, ID: c.NewID(), Case: list[0].ID, Action: store.DecisionProposed, Actor: "operator:ana"})
		return nil
	}))
	_, _, err = h.Merchants.CreateCredential(t.Context(), merchant.NewCredential{Merchant: h.Merchant.ID})
	h.Must(err)
	h.SetPrice(payment.PIX, payment.Terms{BasisPoints: 99, Fixed: 10, Days: 2})
	h.payin("settled", 100_00, 100_00)
	h.Jump(72 * time.Hour)
	h.Settle()
	h.payin("pending", 100_00, 100_00)
	h.open("priced")
	h.batch()
	h.Jump(time.Hour)
	h.refundFee()
	h.resolve()
	_, _, err = h.Endpoints.Create(t.Context(), actor.System, h.Merchant.ID, &wire.EndpointRequest{URL: wire.Some("https://loja.example/events"), Events: wire.Some([]string{"payin.paid"})})
	h.Must(err)
	return h
}

// open creates a pay-in of 10.00 from a real request: coretest makes fingerprints without an amount.
func (h *history) open(reference string) {
	h.T.Helper()
	d := wire.Decoder{Merchant: h.Merchant.ID, MAC: func(b []byte) [32]byte { return h.Store.Keys().MAC(db.PurposeFingerprint, b) }}
	r, invalid := d.Payin([]byte(`{"paymentMethod": "PIX", "amount": 1000, "expiresIn": 3600, "customer": {"name": "Ana", "document": "52998224725"}, "referenceId": "` + reference + `"}`))
	if invalid != nil {
		h.T.Fatal(invalid.Fields, invalid)
	}
	_, _, err := h.Payins.Create(h.T.Context(), h.Merchant, r)
	h.Must(err)
}

// resolve finds a transfer of no payout, and money of no order and beyond an order, and decides about them.
func (h *history) resolve() {
	h.T.Helper()
	id := h.Store.ExternalID(&h.Merchant, payment.OperationPayout, "lost")
	h.Bank.Mu.Lock()
	h.Bank.Pay(processor.TransferRequest{ExternalID: id, Amount: 9_00}, processor.TransferPaid)
	h.Bank.Mu.Unlock()
	h.ReadFeeds()
	h.Clear()
	h.receive(h.Store.ExternalID(&h.Merchant, payment.OperationPayin, "nor this"), processor.ChargeReport{Payments: []processor.Payment{{ID: "assigned", Amount: 6_00}}})
	h.payin("written-off", 10_00, 17_00)
	reviews := review.New(review.Options{
		Store: h.Store, Writer: h.Writer, Env: h.Env, Links: func(*payment.Payin) payment.Links { return payment.Links{} }, Processors: h.Outgoing.Processors,
	})
	cases, err := h.Store.OpenCases(h.T.Context(), 100)
	h.Must(err)
	for i := range cases {
		v := &cases[i]
		r := review.Request{Case: v.ID, How: store.ResolvedWriteOff, Actor: "operator:ana", Reason: "compared", Evidence: "statement"}
		switch {
		case v.Kind == store.CaseUnmatchedReceipt && v.Amount == 6_00:
			r.How, r.Merchant = store.ResolvedApply, h.Merchant.ID
		case v.Kind != store.CasePayoutFound && !(v.Kind == store.CaseOverpaid && v.Amount == 7_00):
			continue
		}
		result, err := reviews.Resolve(h.T.Context(), r)
		h.Must(err)
		if r.Actor = "operator:bia"; result.Action == store.DecisionProposed {
			_, err = reviews.Resolve(h.T.Context(), r)
			h.Must(err)
		}
	}
}

// refundFee refunds a half of a pay-in, of which the processor kept a cost, and of its fee.
func (h *history) refundFee() {
	h.T.Helper()
	h.SetPrice(payment.PIX, payment.Terms{BasisPoints: 100, RefundsFee: true})
	p := h.payin("fee-back", 100_00)
	h.receive(p.ExternalID, processor.ChargeReport{Payments: []processor.Payment{{ID: "fee-back", Amount: 100_00, Cost: 45, PaidAt: p.CreatedAt}}})
	h.Bank.Refunds.Answer = nil
	h.Refund(p, "fee-back", 50_00)
	h.Send()
}

// batch requests a batch of two payouts, which are canceled.
func (h *history) batch() {
	h.T.Helper()
	r := &wire.PayoutBatchRequest{ReferenceID: wire.Some("batch")}
	for i := range 2 {
		r.Items = append(r.Items, coretest.PayoutRequest(fmt.Sprint("batch-", i), 1_00))
	}
	b, _, err := h.Payouts.RequestBatch(h.T.Context(), h.Merchant, r)
	h.Must(err)
	for _, id := range []payment.ID{b.First, b.Last} {
		_, err := h.Payouts.Cancel(h.T.Context(), h.Merchant.ID, id)
		h.Must(err)
	}
	h.Run(h.Payouts.CompleteBatches)
}

// refund refunds a half of a pay-in, and a part more that is in flight.
func (h *history) refund() {
	h.T.Helper()
	p := h.payin("refunded", 80_00, 80_00)
	h.Refund(p, "half", 40_00)
	h.Send()
	h.Bank.Refunds.Answer = func(b *coretest.Bank, r processor.RefundRequest) processor.TransferAnswer {
		return processor.TransferAnswer{Outcome: processor.Done, Report: b.GiveBack(r, processor.TransferProcessing)}
	}
	h.Refund(p, "in-flight", 10_00)
	h.Send()
}

// payin creates a pay-in of some cents, which is paid by the given payments.
func (h *history) payin(reference string, amount int64, payments ...money.Cents) payment.Payin {
	h.T.Helper()
	r := coretest.PayinRequest(reference, "https://loja.example/"+reference)
	r.Amount = wire.Some(amount)
	p, _, err := h.Payins.Create(h.T.Context(), h.Merchant, r)
	h.Must(err)
	var report processor.ChargeReport
	for i, a := range payments {
		report.Payments = append(report.Payments, processor.Payment{ID: reference + strings.Repeat("+", i), Amount: a, PaidAt: p.CreatedAt})
	}
	h.receive(p.ExternalID, report)
	return p
}

func (h *history) receive(externalID string, r processor.ChargeReport) {
	h.T.Helper()
	r.Lookup = processor.Found
	h.Must(h.Payins.Receive(h.T.Context(), coretest.BankName, externalID, r, nil))
}

func (h *history) request(reference string) payment.Payout {
	h.T.Helper()
	r := coretest.PayoutRequest(reference, 10_00)
	r.WebhookURL = wire.Some("https://loja.example/" + reference)
	p, _, err := h.Payouts.Request(h.T.Context(), h.Merchant, r)
	h.Must(err)
	return p
}

// payout requests a payout of 10.00, whose send gets this answer.
func (h *history) payout(reference string, answer processor.TransferAnswer) {
	h.T.Helper()
	h.request(reference)
	calls := len(h.Bank.Calls)
	h.Bank.AnswerTransfer = func(*coretest.Bank, processor.TransferRequest) processor.TransferAnswer { return answer }
	h.Send()
	if len(h.Bank.Calls) != calls+1 {
		h.T.Fatalf("%d payouts were sent", len(h.Bank.Calls)-calls)
	}
}

// owner is the merchant of the history, in SQL.
const owner = "(SELECT merchant_id FROM payins WHERE reference_id = 'paid')"

// entry is an entry more of the merchant, of two postings, about a subject in SQL. Signs, numbers and
// balances are right.
func entry(kind, subject, from, to string, amount int) string {
	var list []string
	for i, account := range []string{from, to} {
		numbered := "account = '" + account + "'"
		if ledger.Account(account).InStatement() {
			numbered = "account IN ('available', 'pending', 'held', 'disputed', 'unapplied', 'owed')"
		}
		moved := fmt.Sprint([]int{-amount, amount}[i])
		list = append(list,
			"INSERT INTO balances SELECT "+owner+", '"+account+"', 0, 0, 0, substr("+owner+", 1, 0), 0 WHERE NOT EXISTS (SELECT 1 FROM balances WHERE merchant_id = "+owner+" AND account = '"+account+"')",
			"UPDATE balances SET balance = balance + "+moved+", postings = postings + 1 WHERE merchant_id = "+owner+" AND account = '"+account+"'",
			"INSERT INTO postings SELECT merchant_id, "+subject+", "+fmt.Sprint(i)+", '"+kind+"', "+subject+", account, "+moved+", balance, 1, 1 + (SELECT coalesce(MAX(number), 0) FROM postings WHERE merchant_id = "+owner+" AND "+numbered+
				"), 0, substr(merchant_id, 1, 0), substr(merchant_id, 1, 0) FROM balances WHERE merchant_id = "+owner+" AND account = '"+account+"'")
	}
	return strings.Join(list, ";")
}

const (
	foundTransfer = "(SELECT id FROM found_transfers)"
	paidPayout    = "(SELECT id FROM payouts WHERE reference_id = 'completed')"
	paidPayin     = "(SELECT id FROM payins WHERE reference_id = 'paid')"
	atBank        = "clearing:bank"
)

// corruptions change one thing each, and name the checks that must find it.
var corruptions = []struct {
	name       string
	statements string // separated by ;
	checks     string
}{
	{"a balance drifts", "UPDATE balances SET balance = balance + 1 WHERE account = 'available'", "balances chain"},
	{"a balance is lost", "DELETE FROM balances WHERE account = 'clearing:bank'", "balances chain"},
	{"a debt turns into an asset", "UPDATE balances SET balance = -1 WHERE account = 'unapplied'", "balances signs"},
	{"an account without a recipe", "UPDATE balances SET account = 'slush' WHERE account = 'available'; UPDATE postings SET account = 'slush' WHERE account = 'available'", "signs"},
	{"a posting is lost", "DELETE FROM postings WHERE kind = 'funded' AND account = 'available'", "balances entries statement trail"},
	{"a number of the statement is lost", "UPDATE postings SET number = 0 WHERE number = 1 AND account = 'available'", "statement"},
	{"a number of the platform's account is lost", "UPDATE postings SET number = 1000 WHERE account = 'clearing:bank' AND kind = 'funded'", "statement"},
	{"a balance counts a posting that is not there", "UPDATE balances SET postings = postings + 1 WHERE account = 'clearing:bank'", "statement"},
	{"an entry is lost, and its balances follow",
		"DELETE FROM postings WHERE kind = 'funded'; UPDATE balances SET balance = balance - 100000 WHERE account = 'available'; UPDATE balances SET balance = balance + 100000 WHERE account = 'clearing:bank'", "chain trail"},
	{"an entry grows, and its balances follow",
		"UPDATE postings SET amount = amount + CASE WHEN account = 'available' THEN 1 ELSE -1 END WHERE kind = 'funded'; UPDATE balances SET balance = balance + 1 WHERE account = 'available'; UPDATE balances SET balance = balance - 1 WHERE account = 'clearing:bank'", "chain trail"},
	{"one posting grows", "UPDATE postings SET amount = amount + 1 WHERE kind = 'payout_paid' AND account = 'held'", "balances entries payouts trail"},
	{"an entry is added, and its balances follow",
		"INSERT INTO postings SELECT b.merchant_id, b.merchant_id, CASE WHEN b.account = 'available' THEN 0 ELSE 1 END, 'funded', b.merchant_id, b.account, " +
			"CASE WHEN b.account = 'available' THEN 500 ELSE -500 END, b.balance + CASE WHEN b.account = 'available' THEN 500 ELSE -500 END, h.entry_at, " +
			"CASE WHEN b.account = 'available' THEN (SELECT SUM(s.postings) FROM balances s WHERE s.merchant_id = b.merchant_id AND s.account IN ('available', 'pending', 'held', 'disputed', 'unapplied', 'owed')) ELSE b.postings END + 1, " +
			"h.entry_number + 1, h.entry_hash, substr(b.merchant_id, 1, 0) FROM balances b JOIN balances h ON h.merchant_id = b.merchant_id AND h.account = 'available' WHERE b.account IN ('available', 'clearing:bank') AND b.merchant_id IN (SELECT id FROM merchants WHERE number = 1); " +
			"UPDATE balances SET balance = balance + CASE WHEN account = 'available' THEN 500 ELSE -500 END, postings = postings + 1, entry_number = CASE WHEN account = 'available' THEN entry_number + 1 ELSE 0 END WHERE account IN ('available', 'clearing:bank') AND merchant_id IN (SELECT id FROM merchants WHERE number = 1)", "chain"},
	{"an entry is re-dated", "UPDATE postings SET created_at = created_at - 1 WHERE entry_number = 2", "chain"},
	{"an entry is about another order", "UPDATE postings SET subject_id = merchant_id WHERE entry_number = 2", "chain"},
	{"an entry is about another part of its order", "UPDATE postings SET part_id = merchant_id WHERE entry_number = 2", "chain"},
	{"an entry changes its place", "UPDATE postings SET entry_number = 5 - entry_number WHERE entry_number IN (2, 3)", "chain"},
	{"an entry is not in the chain", "UPDATE postings SET entry_number = 0 WHERE entry_number = 2", "chain"},
	{"an entry takes the hash of another one", "UPDATE postings SET entry_hash = (SELECT p.entry_hash FROM postings p WHERE p.entry_number = 1 AND p.line = 0 AND p.merchant_id IN (SELECT id FROM merchants WHERE number = 1)) WHERE entry_number = 2 AND line = 0", "chain"},
	{"the last entry is of the past", "UPDATE balances SET entry_at = entry_at - 1 WHERE account = 'available'", "chain"},
	{"an entry that is not there is the last one", "UPDATE balances SET entry_number = entry_number + 1 WHERE account = 'available'", "chain"},
	{"the last entry has another hash", "UPDATE balances SET entry_hash = (SELECT p.entry_hash FROM postings p WHERE p.entry_number = 1 AND p.line = 0 AND p.merchant_id = balances.merchant_id) WHERE account = 'available'", "chain"},
	{"a payout in flight shrinks", "UPDATE payouts SET amount = amount - 1 WHERE reference_id = 'under-way'", "held payouts"},
	{"a counter of a limit drifts", "UPDATE limit_counters SET amount = amount - 1 WHERE counter = 1", "limits"},
	{"a counter of a limit misses a payout", "UPDATE limit_counters SET payouts = payouts - 1 WHERE counter = 4", "limits"},
	{"a counter has one more payout that makes its key known", "UPDATE limit_counters SET payouts = payouts + 1 WHERE counter = 8", "limits"},
	{"a counter of a limit is lost", "DELETE FROM limit_counters WHERE counter = 8", "limits"},
	{"a counter counts another day", "UPDATE limit_counters SET day = day - 1 WHERE counter = 1", "limits"},
	{"a counted payout is not counted", "UPDATE payouts SET counters = 0 WHERE reference_id = 'completed'", "limits"},
	{"an approval is lost", "DELETE FROM approvals WHERE action = 'approved'", "approvals"},
	{"the one who asked approved", "UPDATE approvals SET actor = 'credential:a'", "approvals"},
	{"an approval gets another author", "UPDATE approvals SET actor = 'credential:c' WHERE action = 'approved'", "hashes"},
	{"a webhook endpoint moves", "UPDATE webhook_endpoints SET url = 'https://evil.example'", "hashes"},
	{"a webhook endpoint gets more events", "UPDATE webhook_endpoints SET events = '*'", "hashes"},
	{"a replaced price changes", "UPDATE prices SET basis_points = basis_points + 1 WHERE until > 0", "hashes"},
	{"a payout needs no approval", "UPDATE payouts SET approval = 'none' WHERE reference_id = 'approved'", "hashes"},
	{"a payout was sent without approval", "UPDATE payouts SET approval = 'required' WHERE reference_id = 'approved'", "approvals"},
	{"a payout leaves its batch", "UPDATE payouts SET batch_id = merchant_id WHERE reference_id = 'batch-0'", "batches"},
	{"a payout of a batch grows", "UPDATE payouts SET amount = amount + 1 WHERE reference_id = 'batch-0'", "batches payouts"},
	{"a batch is complete too early", "UPDATE payouts SET status = 'PENDING' WHERE reference_id = 'batch-0'", "batches payouts"},
	{"a dispute is lost", "DELETE FROM disputes", "disputed disputes"},
	{"a pay-in forgets its dispute", "UPDATE payins SET disputed_amount = 0", "disputes"},
	{"a dispute is won by itself", "UPDATE disputes SET status = 'WON'", "disputed disputes"},
	{"a payout completes by itself", "UPDATE payouts SET status = 'COMPLETED', version = version + 1, end_to_end_id = 'E' WHERE reference_id = 'unknown'", "held changes payouts transfers"},
	{"a paid payout fails", "UPDATE payouts SET status = 'FAILED' WHERE reference_id = 'completed'", "payouts transfers"},
	{"a payout is paid twice",
		"UPDATE postings SET subject_id = (SELECT id FROM payouts WHERE reference_id = 'completed') WHERE kind = 'payout_paid'", "payouts"},
	{"a payout is lost", "DELETE FROM payouts WHERE reference_id = 'canceled'", "payouts"},
	{"a return is lost", "UPDATE payouts SET returned_amount = 0", "returns"},
	{"no proof of a payment", "UPDATE payouts SET end_to_end_id = '' WHERE reference_id = 'completed'", "transfers"},
	{"no transfer of a paid payout", "DELETE FROM payout_sends WHERE outcome = 'paid'", "transfers"},
	{"a transfer of a failed payout", "UPDATE payout_sends SET outcome = 'paid' WHERE outcome = 'refused'", "transfers"},
	{"a transfer still undecided", "UPDATE payout_sends SET outcome = 'unknown' WHERE outcome = 'refused'", "transfers"},
	{"a pay-in pays itself", "UPDATE payins SET status = 'PAID', paid_amount = amount WHERE reference_id = 'open'", "changes payins"},
	{"a paid pay-in expires", "UPDATE payins SET status = 'EXPIRED' WHERE reference_id = 'paid'", "changes payins"},
	{"a receipt is lost", "DELETE FROM receipts WHERE external_id = 'paid'", "all+claims payins receipts"},
	{"an unmatched receipt is lost", "DELETE FROM receipts WHERE external_id = 'stray'", "all+claims receipts"},
	{"unapplied money without a case", "DELETE FROM cases WHERE kind = 'overpaid'", "surplus unapplied"},
	{"a case of unapplied money grows", "UPDATE cases SET amount = amount + 1 WHERE kind = 'overpaid'", "surplus unapplied"},
	{"a pay-in hides its surplus", "UPDATE payins SET unapplied_amount = 0", "surplus"},
	{"a case is resolved without a decision", "UPDATE cases SET resolution = 'write-off', closed_at = 1 WHERE kind = 'overpaid'", "resolutions surplus unapplied"},
	{"a decision without its case", "UPDATE decisions SET action = 'confirmed', resolution = 'paid'", "decisions resolutions"},
	{"a decision is rewritten", "UPDATE decisions SET actor = 'bia'", "decisions"},
	{"an entry of the audit is rewritten", "UPDATE audit SET actor = 'operator:bia' WHERE number = 2", "audit"},
	{"an entry of the audit has another time", "UPDATE audit SET created_at = created_at + 1 WHERE number = 2", "audit"},
	{"an entry of the audit is lost", "DELETE FROM audit WHERE number = 2", "audit"},
	{"the audit is lost", "DELETE FROM audit", "audit"},
	{"a surplus is taken", "UPDATE receipts SET amount = applied WHERE external_id = 'overpaid'", "receipts"},
	{"a cost is lost", "DELETE FROM postings WHERE kind = 'cost_booked'; DELETE FROM balances WHERE account = 'costs'; UPDATE balances SET balance = balance - 45, postings = postings - 1 WHERE account = 'clearing:bank' AND merchant_id IN (SELECT id FROM merchants WHERE number = 0)", "all+costs"},
	{"the claim of a cost is of another one", "UPDATE receipt_claims SET receipt_id = (SELECT receipt_id FROM receipt_claims WHERE external_id = 'stray') WHERE external_id = 'cost fee'", "all+costs"},
	{"a claim is lost", "DELETE FROM receipt_claims WHERE external_id = 'paid'", "claims"},
	{"a claim is of another receipt", "UPDATE receipt_claims SET receipt_id = merchant_id WHERE external_id = 'paid'", "all+claims claims"},
	{"a refund completes by itself", "UPDATE refunds SET status = 'COMPLETED', refunded_amount = amount WHERE reference_id = 'in-flight'", "refunds"},
	{"a refund is lost", "DELETE FROM refund_parts WHERE outcome = 'paid'; DELETE FROM refunds WHERE reference_id = 'half'", "refunds refunded"},
	{"a pay-in forgets its refund", "UPDATE payins SET refunded_amount = 0 WHERE reference_id = 'refunded'", "refunded"},
	{"more is refunded than was received", "UPDATE receipts SET amount = 3999, applied = 3999 WHERE external_id = 'refunded'", "refunded"},
	{"a refund in flight is lost", "UPDATE refund_parts SET step = 'done', outcome = 'failed' WHERE step <> 'done'", "held refunds"},
	{"an event is lost", "DELETE FROM events WHERE number = 1", "events changes"},
	{"the last event is lost", "UPDATE event_counters SET last_number = last_number + 1", "events"},
	{"two events of one change", "UPDATE events SET version = 2 WHERE type = 'payout.completed'", "changes"},
	{"a credential gets a scope", "UPDATE credentials SET scopes = 'payout:write'", "credentials"},
	{"a beneficiary is damaged", "UPDATE payouts SET beneficiary = substr(beneficiary, 2) WHERE reference_id = 'completed'", "rows"},
	{"a payer is that of another order", "UPDATE payins SET personal = (SELECT p.personal FROM payins p WHERE p.reference_id = 'open') WHERE reference_id = 'paid'", "rows"},
	{"a document is damaged", "UPDATE refunds SET failure = '{' WHERE reference_id = 'half'", "rows"},
	{"an event is damaged", "UPDATE events SET body = substr(body, 2) WHERE number = 2", "rows"},
	{"a receivable is lost", "DELETE FROM receivables WHERE state = 'pending'", "pending"},
	{"a receivable settles by itself", "UPDATE receivables SET state = 'settled' WHERE state = 'pending'", "pending settled"},
	{"a receivable settles again", "UPDATE receivables SET state = 'pending' WHERE state = 'settled'", "pending settled"},
	{"a fee is forgotten", "UPDATE payins SET fee = 0", "fees"},
	{"an entry moves a debt to available money", entry("fee_recharged", paidPayin, "owed", "available", 500), "recipes"},
	{"an entry changes its kind", "UPDATE postings SET kind = 'received_pending' WHERE kind = 'settled' AND account = 'available'", "recipes"},
	{"money is funded in production", "DELETE FROM settings WHERE name = 'sandbox'", "funds"},
	{"a transfer is found again", entry("payout_found", foundTransfer, "available", atBank, 900), "found"},
	{"a transfer of nothing is found", entry("payout_found", paidPayin, "available", atBank, 900), "found"},
	{"a found transfer is adopted by itself", entry("payout_adopted", foundTransfer, atBank, "available", 900), "found"},
	{"a found transfer returns by itself", entry("found_returned", foundTransfer, atBank, "available", 900), "found"},
	{"a found transfer is written off again", entry("found_written_off", foundTransfer, "written_off", "available", 900), "found"},
	{"a found transfer is recovered by itself", entry("payout_recovered", foundTransfer, atBank, "written_off", 900), "found"},
	{"a payout is paid late by itself", entry("payout_paid_late", paidPayout, "available", atBank, 900), "found"},
	{"a payout is written off by itself", entry("payout_written_off", paidPayout, "written_off", atBank, 900), "found"},
	{"the platform bears a transfer by itself", "UPDATE found_transfers SET written_off = 0", "found"},
	{"a transfer is written off without a decision", "DELETE FROM decisions WHERE resolution = 'write-off'", "bearers resolutions"},
	{"money that names no order arrives by itself", entry("unidentified_arrived", paidPayin, atBank, "unapplied", 700) + ";" + entry("unapplied_released", paidPayin, "unapplied", "available", 700), "all+assigned causes"},
	{"unapplied money is released twice", entry("unapplied_released", "(SELECT subject_id FROM postings WHERE kind = 'unapplied_released' AND account = 'unapplied' LIMIT 1)", "unapplied", "available", 600), "causes"},
	{"assigned money does not arrive", "DELETE FROM postings WHERE kind = 'unidentified_arrived'", "all+assigned"},
	{"a cost is booked by itself", entry("cost_booked", paidPayin, "costs", atBank, 5), "costs"},
	{"a cost of a merchant returns", entry("cost_returned", paidPayin, atBank, "costs", 5), "costs"},
	{"the fee of a payout changes", "UPDATE payouts SET fee = fee + 1 WHERE reference_id = 'completed'", "payout+fees"},
	{"a refund gives more of the fee back", "UPDATE refund_parts SET fee_refunded = fee_refunded + 5 WHERE fee_refunded > 0", "refunded+fees"},
	{"the amount of an open order changes", "UPDATE payins SET amount = amount + 1 WHERE reference_id = 'open'", "orders"},
	{"the prices of an open order change", "UPDATE payins SET details = replace(details, '\"basisPoints\":99', '\"basisPoints\":1') WHERE reference_id = 'priced'", "orders"},
	{"the prices of an open order are lost", "UPDATE payins SET details = '{}' WHERE reference_id = 'priced'", "orders"},
	{"the fee of a paid order is forgotten, and so are its postings", "UPDATE payins SET fee = 0 WHERE reference_id = 'settled'", "orders fees"},
	{"a reference changes", "UPDATE payins SET reference_id = 'other' WHERE reference_id = 'open'", "orders"},
	{"an external id changes", "UPDATE payouts SET external_id = substr(external_id, 2) || 'a' WHERE reference_id = 'completed'", "orders"},
	{"the reference of a refund changes", "UPDATE refunds SET reference_id = 'other' WHERE reference_id = 'half'", "orders"},
	{"a receivable settles earlier", "UPDATE receivables SET settles_at = settles_at - 172800000000 WHERE state = 'pending'", "receivables"},
	{"a receivable and its fee grow", "UPDATE receivables SET gross = gross + 5, fee = fee + 5 WHERE state = 'pending'", "receivables"},
	{"a delivery is lost", "DELETE FROM deliveries WHERE event_number = 4", "deliveries"},
}

func TestVerify(t *testing.T) {
	t.Parallel()
	eachHistory(t, func(t *testing.T, h *history) {
		for _, of := range []payment.ID{h.Merchant.ID, {}} {
			proofs, err := h.Store.Verify(t.Context(), of)
			h.Must(err)
			for _, p := range proofs {
				if len(p.Defects) > 0 || p.More {
					t.Errorf("%s of sound rows: %+v", p.Check, p.Defects)
				}
				if p.Count == 0 && !of.IsZero() {
					t.Errorf("%s looked at nothing: the history lacks what it is about", p.Check)
				}
			}
		}
		found := map[string]bool{}
		for _, c := range corruptions {
			proofs, err := store.VerifyCorrupted(t.Context(), h.Store, h.Merchant.ID, strings.Split(c.statements, ";"))
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
				continue
			}
			var failed []string
			for _, p := range proofs {
				if len(p.Defects) > 0 {
					failed = append(failed, strings.ReplaceAll(p.Check, " ", "+"))
					found[p.Check] = true
				}
			}
			for check := range strings.FieldsSeq(c.checks) {
				if !strings.Contains(" "+strings.Join(failed, " ")+" ", " "+check+" ") {
					t.Errorf("%s: %s does not find it, only %v", c.name, check, failed)
				}
			}
		}
		proofs, err := h.Store.Verify(t.Context(), payment.ID{})
		h.Must(err)
		for _, p := range proofs {
			if !found[p.Check] {
				t.Errorf("no corruption shows that %s can fail", p.Check)
			}
			if len(p.Defects) > 0 {
				t.Errorf("%s after the corruptions were undone: %+v", p.Check, p.Defects)
			}
		}
	})
}

// eachHistory runs a test on every engine, with a history of its own.
func eachHistory(t *testing.T, run func(t *testing.T, h *history)) {
	t.Helper()
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			run(t, newHistory(t, engine))
		})
	}
}

// Defects are named, and no more than a bounded number of them.
func TestVerifyNamesDefects(t *testing.T) {
	t.Parallel()
	h := newHistory(t, "sqlite")
	list, err := h.Store.Payouts(t.Context(), h.Merchant.ID, store.Filter{Limit: 10, Status: "FAILED"})
	h.Must(err)
	want := list[0].ID.String()
	proofs, err := store.VerifyCorrupted(t.Context(), h.Store, h.Merchant.ID, []string{"UPDATE payouts SET status = 'COMPLETED' WHERE status = 'FAILED'"})
	h.Must(err)
	var found []store.Defect // the merchant's; the platform has no payouts
	for _, p := range proofs {
		if p.Check == "payouts" {
			found = append(found, p.Defects...)
		}
	}
	if len(found) != 1 || found[0].ID != want || !strings.Contains(found[0].Detail, "COMPLETED: held 1 times, paid 0 times") {
		t.Errorf("found %+v, want %s", found, want)
	}
	many := `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 150)
		INSERT INTO receipt_claims SELECT 'bank', 'x' || i, randomblob(16), randomblob(16) FROM n`
	proofs, err = store.VerifyCorrupted(t.Context(), h.Store, h.Merchant.ID, []string{many})
	h.Must(err)
	for _, p := range proofs {
		if p.Check == "all claims" && (len(p.Defects) != store.DefectsMax || !p.More) {
			t.Errorf("%d defects listed, more: %v", len(p.Defects), p.More)
		}
	}
}

// Rows that are being written can be verified: no check sees half a commit.
func TestVerifyBesideWriters(t *testing.T) {
	t.Parallel()
	eachHistory(t, func(t *testing.T, h *history) {
		h.Writer.Start()
		defer h.Writer.Stop()
		done := make(chan error, 1)
		go func() {
			var err error
			for i := 0; i < 40 && err == nil; i++ {
				_, _, err = h.Payouts.Request(t.Context(), h.Merchant, coretest.PayoutRequest(fmt.Sprintf("busy %d", i), 10_00))
			}
			done <- err
		}()
		for busy := true; busy; {
			select {
			case err := <-done:
				h.Must(err)
				busy = false
			default:
			}
			proofs, err := h.Store.Verify(t.Context(), h.Merchant.ID)
			h.Must(err)
			for _, p := range proofs {
				if len(p.Defects) > 0 {
					t.Fatalf("%s: %+v", p.Check, p.Defects)
				}
			}
		}
		b, err := h.Store.Balances(t.Context(), h.Merchant.ID)
		h.Must(err)
		if b[ledger.Held] < 400_00 {
			t.Errorf("held is %d: the writers did nothing", b[ledger.Held])
		}
	})
}
