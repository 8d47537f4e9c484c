package store_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/flow"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
	"github.com/porteira/porteira/internal/wire"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }

// obedient is a processor that says what it is told to.
type obedient struct{}

func (obedient) Profile() processor.Profile {
	return processor.Profile{Name: "fake", IdempotentByOurID: true, ChargeTimeout: time.Second, TransferTimeout: 5 * time.Second}
}
func (obedient) Mint(r processor.ChargeRequest) (processor.Charge, bool) {
	return processor.Charge{PIX: &payment.PIXDetail{QRCode: "x", TxID: r.ExternalID, ExpiresAt: r.ExpiresAt}}, true
}
func (obedient) Charge(context.Context, processor.ChargeRequest) (a processor.ChargeAnswer) { return a }
func (obedient) QueryCharge(context.Context, string) (r processor.ChargeReport)             { return r }
func (obedient) Transfer(context.Context, processor.TransferRequest, func() error) (a processor.TransferAnswer) {
	return a
}
func (obedient) QueryTransfer(context.Context, string) (r processor.TransferReport) { return r }

// history is a merchant to whom everything happened once.
type history struct {
	t *testing.T
	f *flow.Flow
	s *store.Store
	m store.Merchant
}

func newHistory(t *testing.T, o store.Options) *history {
	t.Helper()
	s := storetest.Open(t, o)
	f := flow.New(flow.Options{Store: s, Env: o.Env, Processors: processor.Registry{"fake": obedient{}}})
	h := &history{t: t, f: f, s: s}
	h.must(f.Join(t.Context(), 0, true))
	m, err := f.CreateMerchant(t.Context(), store.Merchant{Name: "Loja", City: "RECIFE", Processor: "fake"}, "")
	h.must(err)
	h.m = m
	h.must(f.Fund(t.Context(), m, 1_000_00))
	h.payin("paid", 100_00, 100_00)
	h.payin("overpaid", 10_00, 15_00)
	h.payin("short", 10_00, 5_00)
	h.payin("open", 10_00)
	disputed := h.payin("disputed", 20_00, 20_00)
	h.apply(disputed.ExternalID, processor.ChargeReport{Disputes: []processor.Dispute{{ID: "d", Amount: 20_00, State: processor.DisputeOpen}}})
	unknown := payment.ExternalID(s.Installation(), m.Number, m.ID, payment.OperationPayin, "never asked for")
	h.apply(unknown, processor.ChargeReport{Payments: []processor.Payment{{ID: "stray", Amount: 1_00}}})

	done := func(state processor.TransferState, returned money.Cents) processor.TransferAnswer {
		return processor.TransferAnswer{Outcome: processor.Done, Report: processor.TransferReport{State: state, EndToEndID: "E1", Returned: returned}}
	}
	h.payout("completed", done(processor.TransferPaid, 0))
	h.payout("returned", done(processor.TransferPaid, 3_00))
	h.payout("failed", processor.TransferAnswer{Outcome: processor.Refused})
	h.payout("under-way", done(processor.TransferProcessing, 0))
	h.payout("unknown", processor.TransferAnswer{Outcome: processor.Unknown})
	canceled, _, err := f.RequestPayout(t.Context(), m, payoutRequest("canceled"))
	h.must(err)
	_, err = f.CancelPayout(t.Context(), m.ID, canceled.ID)
	h.must(err)
	return h
}

func (h *history) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *history) payin(reference string, amount int64, payments ...int64) payment.Payin {
	h.t.Helper()
	p, _, err := h.f.CreatePayin(h.t.Context(), h.m, &wire.PayinRequest{
		Method: wire.Some("PIX"), Amount: wire.Some(amount), ReferenceID: wire.Some(reference),
		WebhookURL: wire.Some("https://loja.example/" + reference),
	})
	h.must(err)
	var report processor.ChargeReport
	for i, a := range payments {
		report.Payments = append(report.Payments, processor.Payment{
			ID: reference + strings.Repeat("+", i), Amount: money.Cents(a), PaidAt: p.CreatedAt,
		})
	}
	h.apply(p.ExternalID, report)
	return p
}

func (h *history) apply(externalID string, r processor.ChargeReport) {
	h.t.Helper()
	r.Lookup = processor.Found
	h.must(h.f.ApplyCharge(h.t.Context(), "fake", externalID, r, nil))
}

func payoutRequest(reference string) *wire.PayoutRequest {
	return &wire.PayoutRequest{
		Amount: wire.Some(int64(10_00)), PIXKey: wire.Some("a@b.c"), PIXKeyType: wire.Some("EMAIL"), NormalKey: "a@b.c",
		BeneficiaryName: wire.Some("x"), BeneficiaryDocument: wire.Some("1"), ReferenceID: wire.Some(reference),
		WebhookURL: wire.Some("https://loja.example/" + reference),
	}
}

func (h *history) payout(reference string, answer processor.TransferAnswer) {
	h.t.Helper()
	_, _, err := h.f.RequestPayout(h.t.Context(), h.m, payoutRequest(reference))
	h.must(err)
	list, _, err := h.f.BeginSends(h.t.Context(), store.Due{Merchant: h.m.ID, Processor: "fake"}, 1)
	h.must(err)
	if len(list) != 1 {
		h.t.Fatalf("%d payouts to send", len(list))
	}
	h.must(h.f.EndSend(h.t.Context(), list[0], answer))
}

// corruptions break one thing each, and name the checks that must say so.
var corruptions = []struct {
	name       string
	statements string // separated by ;
	checks     string
}{
	{"a balance drifts", "UPDATE balances SET balance = balance + 1 WHERE account = 'available'", "balances"},
	{"a balance is lost", "DELETE FROM balances WHERE account = 'clearing:fake'", "balances"},
	{"a debt turns into an asset", "UPDATE balances SET balance = -1 WHERE account = 'unapplied'", "balances signs"},
	{"an account that nobody knows", "UPDATE balances SET account = 'slush' WHERE account = 'available'; UPDATE postings SET account = 'slush' WHERE account = 'available'", "signs"},
	{"a posting is lost", "DELETE FROM postings WHERE kind = 'funded' AND account = 'available'", "balances entries trail"},
	{"an entry is lost, and its balances follow",
		"DELETE FROM postings WHERE kind = 'funded'; UPDATE balances SET balance = balance - 100000 WHERE account = 'available'; UPDATE balances SET balance = balance + 100000 WHERE account = 'clearing:fake'", "trail"},
	{"an entry grows, and its balances follow",
		"UPDATE postings SET amount = amount + CASE WHEN account = 'available' THEN 1 ELSE -1 END WHERE kind = 'funded'; UPDATE balances SET balance = balance + 1 WHERE account = 'available'; UPDATE balances SET balance = balance - 1 WHERE account = 'clearing:fake'", "trail"},
	{"one posting grows", "UPDATE postings SET amount = amount + 1 WHERE kind = 'payout_paid' AND account = 'held'", "balances entries payouts trail"},
	{"a payout in flight is forgotten", "UPDATE payouts SET amount = amount - 1 WHERE reference_id = 'under-way'", "held payouts"},
	{"a dispute is forgotten", "DELETE FROM disputes", "disputed"},
	{"a payout completes by itself", "UPDATE payouts SET status = 'COMPLETED', version = version + 1, end_to_end_id = 'E' WHERE reference_id = 'unknown'", "held news payouts transfers"},
	{"a paid payout fails", "UPDATE payouts SET status = 'FAILED' WHERE reference_id = 'completed'", "payouts transfers"},
	{"a payout is paid twice",
		"UPDATE postings SET subject_id = (SELECT id FROM payouts WHERE reference_id = 'completed') WHERE kind = 'payout_paid'", "payouts"},
	{"a payout is gone", "DELETE FROM payouts WHERE reference_id = 'canceled'", "payouts"},
	{"a return is forgotten", "UPDATE payouts SET returned_amount = 0", "returns"},
	{"no proof of a payment", "UPDATE payouts SET end_to_end_id = '' WHERE reference_id = 'completed'", "transfers"},
	{"no transfer of a paid payout", "DELETE FROM payout_sends WHERE outcome = 'paid'", "transfers"},
	{"a transfer of a failed payout", "UPDATE payout_sends SET outcome = 'paid' WHERE outcome = 'refused'", "transfers"},
	{"a transfer still open", "UPDATE payout_sends SET outcome = 'unknown' WHERE outcome = 'refused'", "transfers"},
	{"a pay-in pays itself", "UPDATE payins SET status = 'PAID', paid_amount = amount WHERE reference_id = 'open'", "news payins"},
	{"a paid pay-in expires", "UPDATE payins SET status = 'EXPIRED' WHERE reference_id = 'paid'", "news payins"},
	{"a receipt is lost", "DELETE FROM receipts WHERE external_id = 'paid'", "all+claims payins receipts"},
	{"a receipt of a stranger is lost", "DELETE FROM receipts WHERE external_id = 'stray'", "all+claims receipts"},
	{"a surplus is taken", "UPDATE receipts SET amount = applied WHERE external_id = 'overpaid'", "receipts"},
	{"a claim is lost", "DELETE FROM receipt_claims WHERE external_id = 'paid'", "claims"},
	{"a claim is another's", "UPDATE receipt_claims SET receipt_id = merchant_id WHERE external_id = 'paid'", "all+claims claims"},
	{"an event is lost", "DELETE FROM events WHERE number = 1", "events news"},
	{"the last event is lost", "UPDATE event_counters SET last_number = last_number + 1", "events"},
	{"an event is told twice", "UPDATE events SET version = 2 WHERE type = 'payout.completed'", "news"},
	{"a delivery is lost", "DELETE FROM deliveries WHERE event_number = 4", "deliveries"},
}

func TestVerify(t *testing.T) {
	t.Parallel()
	w := env.System(env.OutboundOptions{})
	storetest.Each(t, w, func(t *testing.T, o store.Options) {
		h := newHistory(t, o)
		for _, of := range []payment.ID{h.m.ID, {}} {
			proofs, err := h.s.Verify(t.Context(), of)
			h.must(err)
			for _, p := range proofs {
				if len(p.Faults) > 0 || p.More {
					t.Errorf("%s of sound books: %+v", p.Check, p.Faults)
				}
				if p.Count == 0 && !of.IsZero() {
					t.Errorf("%s looked at nothing: the history lacks what it is about", p.Check)
				}
			}
		}
		seen := map[string]bool{}
		for _, c := range corruptions {
			proofs, err := store.VerifyCorrupted(t.Context(), h.s, h.m.ID, strings.Split(c.statements, ";"))
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
				continue
			}
			var failed []string
			for _, p := range proofs {
				if len(p.Faults) > 0 {
					failed = append(failed, strings.ReplaceAll(p.Check, " ", "+"))
					seen[p.Check] = true
				}
			}
			for check := range strings.FieldsSeq(c.checks) {
				if !strings.Contains(" "+strings.Join(failed, " ")+" ", " "+check+" ") {
					t.Errorf("%s: %s does not see it, only %v", c.name, check, failed)
				}
			}
		}
		proofs, err := h.s.Verify(t.Context(), payment.ID{})
		h.must(err)
		for _, p := range proofs {
			if !seen[p.Check] {
				t.Errorf("no corruption shows that %s can fail", p.Check)
			}
		}
	})
}

// Offenders are named, and no more than a bounded number of them.
func TestVerifyNames(t *testing.T) {
	t.Parallel()
	w := env.System(env.OutboundOptions{})
	h := newHistory(t, storetest.Prepare(t, "sqlite", w))
	list, err := h.s.Payouts(t.Context(), h.m.ID, store.Filter{Limit: 10, Status: "FAILED"})
	h.must(err)
	want := list[0].ID.String()
	proofs, err := store.VerifyCorrupted(t.Context(), h.s, h.m.ID, []string{"UPDATE payouts SET status = 'COMPLETED' WHERE status = 'FAILED'"})
	h.must(err)
	for _, p := range proofs {
		if p.Check == "payouts" && (len(p.Faults) != 1 || p.Faults[0].ID != want || !strings.Contains(p.Faults[0].Detail, "COMPLETED: held 1 times, paid 0 times")) {
			t.Errorf("found %+v, want %s", p.Faults, want)
		}
	}
	many := `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 150)
		INSERT INTO receipt_claims SELECT 'fake', 'x' || i, randomblob(16), randomblob(16) FROM n`
	proofs, err = store.VerifyCorrupted(t.Context(), h.s, h.m.ID, []string{many})
	h.must(err)
	for _, p := range proofs {
		if p.Check == "all claims" && (len(p.Faults) != store.FaultsMax || !p.More) {
			t.Errorf("%d faults named, more: %v", len(p.Faults), p.More)
		}
	}
}

// Books that are being written stay provable: no check sees half a commit.
func TestVerifyBesideWriters(t *testing.T) {
	t.Parallel()
	w := env.System(env.OutboundOptions{})
	storetest.Each(t, w, func(t *testing.T, o store.Options) {
		h := newHistory(t, o)
		h.f.Start()
		defer h.f.Stop()
		done := make(chan error, 1)
		go func() {
			var err error
			for i := 0; i < 40 && err == nil; i++ {
				_, _, err = h.f.RequestPayout(t.Context(), h.m, payoutRequest("busy"+strings.Repeat("-", i)))
			}
			done <- err
		}()
		for busy := true; busy; {
			select {
			case err := <-done:
				h.must(err)
				busy = false
			default:
			}
			proofs, err := h.s.Verify(t.Context(), h.m.ID)
			h.must(err)
			for _, p := range proofs {
				if len(p.Faults) > 0 {
					t.Fatalf("%s: %+v", p.Check, p.Faults)
				}
			}
		}
		b, err := h.s.Balances(t.Context(), h.m.ID)
		h.must(err)
		if b[ledger.Held] < 400_00 {
			t.Errorf("held is %d: the writers did nothing", b[ledger.Held])
		}
	})
}
