package checker

import "testing"

// Changes of refunds that no gateway makes; each breaks at least the rule that it names.
var refundCorruptions = []struct {
	name      string
	invariant Invariant
	words     string
	sql       []string
}{
	{"a part that ended begins again", SingleRefund, "changes from done to queued", []string{"UPDATE refund_parts SET step = 'queued', outcome = '', next_at = 1"}},
	{"a part that was paid fails", SingleRefund, "ended as paid, and then as failed", []string{"UPDATE refund_parts SET outcome = 'failed'"}},
	{"a part came back without an entry", Amounts, "entries refund_taken_back sum to 0, not 200", []string{"UPDATE refund_parts SET outcome = 'taken_back'"}},
	{"a part that is sent without a claim", SingleRefund, "with 1 sends", []string{"UPDATE refund_parts SET sends = sends + 1"}},
	{"a refund that says less than its parts", Amounts, "paid 200 of 100", []string{"UPDATE refunds SET refunded_amount = 100, version = version + 1"}},
	{"a refund that failed although it was paid", States, "0 of 1 parts are in progress", []string{"UPDATE refunds SET status = 'FAILED', version = version + 1"}},
	{"a refund without its event", Events, "has no event refund.failed", []string{"UPDATE refunds SET status = 'FAILED', refunded_amount = 0, version = version + 1"}},
	{"a refund of another request", SingleOrder, `becomes "other" by processor`, []string{"UPDATE refunds SET reference_id = 'other'"}},
	{"a pay-in that says less than its refunds", Amounts, "100 is refunded, its refunds say 200", []string{
		"UPDATE payins SET refunded_amount = 100, version = version + 1 WHERE refunded_amount > 0"}},
	{"a refund of unapplied money that there is not", Amounts, "part 1 has 1 of unapplied money, after 0", []string{"UPDATE refund_parts SET unapplied = 1"}},
	{"a refund of unapplied money without a case", Incoming, "of which 1 is given back", []string{"UPDATE refund_parts SET unapplied = 1"}},
	{"a refund of a receivable that there is not", Amounts, "which is not of the order", []string{
		`UPDATE refund_parts SET taken_from = '[{"receivable":"01020304-0506-0708-090a-0b0c0d0e0f10","amount":5}]'`}},
	{"a refund that took more than it is", Amounts, "and 201 that had not settled", []string{
		`UPDATE refund_parts SET taken_from = '[{"receivable":"01020304-0506-0708-090a-0b0c0d0e0f10","amount":201}]'`}},
	{"a fee given back without an entry", Amounts, "gave 5 of the fee back, 0 is booked", []string{"UPDATE refund_parts SET fee_refunded = 5"}},
	{"a fee given back although no price says so", Amounts, "gave 5 of the fee back, not 0", []string{"UPDATE refund_parts SET fee_refunded = 5"}},
	{"a refund of nothing", States, "which is not a pay-in", []string{
		`INSERT INTO refunds (merchant_id, id, payin_id, external_id, reference_id, origin, amount, status, version, reason, webhook_url, webhook_disabled, fingerprint,
			refunded_amount, end_to_end_id, failure, completed_at, created_at, updated_at) SELECT merchant_id, $1, $1, '01234567890123456789012345678901', 'x', 'merchant', 7,
			'PENDING', 1, '', '', 0, '', 0, '', '', 0, 1, 1 FROM refunds`}},
}

func TestRefundCorruptionsAreReported(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(s *scene) {
		s.refundAtPanel("back")
		s.relax()
		for _, row := range refundCorruptions {
			s.want(row.name, s.corrupt(row.sql, nil), row.invariant, row.words)
		}
	})
}

// The refunds of the bank and those of the gateway are the same.
func TestRefundsAreCompared(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(s *scene) {
		s.refundAtPanel("back")
		s.wantSound()
		booked := s.records.Refunds
		for _, row := range []struct {
			name   string
			change func(r *BankRefund)
			words  string
		}{
			{"another amount", func(r *BankRefund) { r.Amount++ }, "the bank refunded 201"},
			{"another payment", func(r *BankRefund) { r.PaymentID = "other" }, "the bank refunded 200 of other"},
			{"another return", func(r *BankRefund) { r.EndToEndID = "other" }, "the bank's is other"},
			{"it came back", func(r *BankRefund) { r.Failed = true }, "part 1 is paid, the bank says"},
			{"another refund", func(r *BankRefund) { r.ExternalID = "other" }, "the bank has a refund that the gateway has not"},
		} {
			r := booked[0]
			row.change(&r)
			s.records.Refunds = []BankRefund{r}
			s.want(row.name, s.checker.Compare(&s.records, true), SingleRefund, row.words)
		}
		s.records.Refunds = nil
		s.want("no refund", s.checker.Compare(&s.records, false), SingleRefund, "part 1 is paid, the bank says <nil>")
	})
}
