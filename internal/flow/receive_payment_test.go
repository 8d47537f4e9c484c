package flow_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/flow"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
	"github.com/porteira/porteira/internal/wire"
)

// What comes in for one pay-in of 100 cents, told as a bookkeeper would: what
// happens, then status, paid amount, accounts and news. "pay A 100" is payment
// A of 100 cents; the same letter again is the same payment told again.
var payinStories = []struct {
	name, happens               string
	status                      payment.PayinStatus
	paid                        int64
	available, unapplied, other string
	news                        string
	exceptions                  string
}{
	{"exact", "pay A 100", "PAID", 100, "100", "0", "", "payin.paid", ""},
	{"told three times", "pay A 100, pay A 100, pay A 100", "PAID", 100, "100", "0", "", "payin.paid", ""},
	{"one cent short", "pay A 99", "PENDING", 99, "99", "0", "", "payin.underpaid", ""},
	{"two parts", "pay A 40, pay B 60", "PAID", 100, "100", "0", "", "payin.underpaid payin.paid", ""},
	{"one cent over", "pay A 101", "PAID", 100, "100", "1", "", "payin.paid payin.overpaid", "overpaid"},
	{"parts that exceed", "pay A 60, pay B 60", "PAID", 100, "100", "20", "", "payin.underpaid payin.paid payin.overpaid", "overpaid"},
	{"two payers", "pay A 100, pay B 100", "PAID", 100, "100", "100", "", "payin.paid payin.overpaid", "overpaid"},
	{"after expiry", "expire, pay A 100", "PAID late", 100, "100", "0", "", "payin.expired payin.paid", ""},
	{"after cancel", "cancel, pay A 100", "PAID late", 100, "100", "0", "", "payin.canceled payin.paid", ""},
	{"part after expiry", "expire, pay A 10", "EXPIRED", 10, "10", "0", "", "payin.expired payin.underpaid", ""},
	{"part, expiry, rest", "pay A 10, expire, pay B 90", "PAID late", 100, "100", "0", "", "payin.underpaid payin.expired payin.paid", ""},
	{"after failure", "fail, pay A 100", "FAILED", 0, "0", "100", "", "payin.failed payin.overpaid", "overpaid"},
	{"late failure changes nothing", "pay A 100, fail", "PAID", 100, "100", "0", "", "payin.paid", ""},
	{"late analysis changes nothing", "pay A 100, analyse", "PAID", 100, "100", "0", "", "payin.paid", ""},
	{"analysis, then paid", "analyse, pay A 100", "PAID", 100, "100", "0", "", "payin.processing payin.paid", ""},
	{"analysis, then refused", "analyse, fail", "FAILED", 0, "0", "0", "", "payin.processing payin.failed", ""},
	{"card refused, tried again", "refuse, pay A 100", "PAID", 100, "100", "0", "", "payin.paid", ""},
	{"dispute won", "pay A 100, dispute open, dispute won", "PAID", 100, "100", "0", "", "payin.paid payin.disputed payin.dispute_won", ""},
	{"dispute open", "pay A 100, dispute open", "DISPUTED", 100, "0", "0", "disputed 100", "payin.paid payin.disputed", ""},
	{"dispute told twice", "pay A 100, dispute open, dispute open", "DISPUTED", 100, "0", "0", "disputed 100", "payin.paid payin.disputed", ""},
	{"dispute lost", "pay A 100, dispute open, dispute lost", "CHARGEBACK", 100, "0", "0", "", "payin.paid payin.disputed payin.chargeback", ""},
	{"lost at once", "pay A 100, dispute lost", "CHARGEBACK", 100, "0", "0", "", "payin.paid payin.disputed payin.chargeback", ""},
	{"chargeback reversed", "pay A 100, dispute lost, dispute reversed", "PAID", 100, "100", "0", "", "payin.paid payin.disputed payin.chargeback payin.dispute_won", ""},
	{"reversal told alone", "pay A 100, dispute reversed", "PAID", 100, "100", "0", "", "payin.paid payin.disputed payin.chargeback payin.dispute_won", ""},
	{"won, then told lost", "pay A 100, dispute open, dispute won, dispute lost", "PAID", 100, "100", "0", "", "payin.paid payin.disputed payin.dispute_won", ""},
	{"dispute of an unpaid order", "dispute open", "PENDING", 0, "0", "0", "", "", "dispute_unexpected"},
	{"paid again while disputed", "pay A 100, dispute open, pay B 100", "DISPUTED", 100, "0", "100", "disputed 100", "payin.paid payin.disputed payin.overpaid", "overpaid"},
	{"dispute of spent money", "pay A 100, spend 70, dispute open", "DISPUTED", 100, "0", "0", "disputed 100 owed -70", "payin.paid payout.processing payout.completed payin.disputed", ""},
	{"debt is repaid first", "pay A 100, spend 70, dispute open, dispute won", "PAID", 100, "30", "0", "", "payin.paid payout.processing payout.completed payin.disputed payin.dispute_won", ""},
	{"stranger's money", "stranger 55", "PENDING", 0, "0", "55", "", "", "unmatched_receipt"},
}

func TestPayinStories(t *testing.T) {
	w, clock := env.Virtual(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), 1)
	storetest.Each(t, w, func(t *testing.T, o store.Options) {
		s := storetest.Open(t, o)
		for i := range payinStories {
			t.Run(payinStories[i].name, func(t *testing.T) {
				tell := newTeller(t, s, w, clock)
				for _, what := range strings.Split(payinStories[i].happens, ", ") {
					tell.happens(strings.Fields(what))
				}
				tell.check(i)
			})
		}
	})
}

// teller makes one story happen to one order of a merchant of its own.
type teller struct {
	t     *testing.T
	s     *store.Store
	f     *flow.Flow
	clock *env.VirtualClock
	m     store.Merchant
	p     payment.Payin
	base  int // exceptions that were open before
}

func newTeller(t *testing.T, s *store.Store, w env.Env, clock *env.VirtualClock) *teller {
	t.Helper()
	v := &teller{t: t, s: s, clock: clock, f: flow.New(flow.Options{Store: s, Env: w, Processors: processor.Registry{"fake": fake{}}})}
	var err error
	v.must(v.f.Join(t.Context(), 0, false))
	v.m, err = v.f.CreateMerchant(t.Context(), store.Merchant{Name: t.Name(), Processor: "fake"}, "")
	v.must(err)
	v.p, _, err = v.f.CreatePayin(t.Context(), v.m, &wire.PayinRequest{
		Method: wire.Some("PIX"), Amount: wire.Some(int64(100)), ReferenceID: wire.Some("order"), ExpiresIn: wire.Some(int64(3600)),
	})
	v.must(err)
	open, err := s.OpenExceptions(t.Context(), 1000)
	v.must(err)
	v.base = len(open)
	return v
}

func (v *teller) must(err error) {
	v.t.Helper()
	if err != nil {
		v.t.Fatal(err)
	}
}

func (v *teller) happens(words []string) {
	v.t.Helper()
	report := processor.ChargeReport{Lookup: processor.Found}
	externalID := v.p.ExternalID
	var amount int64
	if len(words) > 1 {
		_, _ = fmt.Sscan(words[len(words)-1], &amount)
	}
	switch words[0] {
	case "pay":
		report.Payments = []processor.Payment{{ID: v.t.Name() + words[1], EndToEndID: "E" + words[1], Amount: money.Cents(amount), PaidAt: v.clock.Now()}}
	case "stranger":
		externalID = payment.ExternalID(v.s.Installation(), v.m.Number, v.m.ID, payment.OperationPayin, "unknown")
		report.Payments = []processor.Payment{{ID: v.t.Name() + "stranger", Amount: money.Cents(amount), PaidAt: v.clock.Now()}}
	case "expire":
		report.State = processor.ChargeExpired
	case "fail":
		report.State, report.Failure = processor.ChargeFailed, &payment.Failure{Code: "x", Message: "y"}
	case "refuse":
		report.State, report.Failure = processor.ChargeOpen, &payment.Failure{Code: "do_not_honor", Message: "y"}
	case "analyse":
		report.State = processor.ChargeAnalysis
	case "dispute":
		report.Disputes = []processor.Dispute{{ID: "D", Amount: 100, State: processor.DisputeState(words[1])}}
	case "cancel":
		_, err := v.f.CancelPayin(v.t.Context(), v.m.ID, v.p.ID)
		v.must(err)
		return
	case "spend":
		v.spend(amount)
		return
	default:
		v.t.Fatalf("what is %q?", words)
	}
	v.must(v.f.ApplyCharge(v.t.Context(), "fake", externalID, report, nil))
}

// spend pays money out to the end.
func (v *teller) spend(amount int64) {
	v.t.Helper()
	_, _, err := v.f.RequestPayout(v.t.Context(), v.m, &wire.PayoutRequest{
		Amount: wire.Some(amount), PIXKey: wire.Some("k"), PIXKeyType: wire.Some("EVP"), ReferenceID: wire.Some("spend"), NormalKey: "k",
	})
	v.must(err)
	sends, _, err := v.f.BeginSends(v.t.Context(), store.Due{Merchant: v.m.ID, Processor: "fake"}, 10)
	v.must(err)
	v.must(v.f.EndSend(v.t.Context(), sends[0], processor.TransferAnswer{Outcome: processor.Done, Report: processor.TransferReport{State: processor.TransferPaid}}))
}

func (v *teller) check(i int) {
	v.t.Helper()
	want := &payinStories[i]
	p, err := v.s.Payin(v.t.Context(), v.m.ID, v.p.ID)
	v.must(err)
	status := p.Status
	if p.Late {
		status += " late"
	}
	if status != want.status || int64(p.PaidAmount) != want.paid {
		v.t.Errorf("order is %s with %d paid, want %s with %d", status, p.PaidAmount, want.status, want.paid)
	}
	b, err := v.s.Balances(v.t.Context(), v.m.ID)
	v.must(err)
	var other []string
	for _, a := range []ledger.Account{ledger.Disputed, ledger.Owed, ledger.Held, ledger.Pending} {
		if b[a] != 0 {
			other = append(other, fmt.Sprintf("%s %d", a, b[a]))
		}
	}
	if got := fmt.Sprintf("%d/%d/%s", b[ledger.Available], b[ledger.Unapplied], strings.Join(other, " ")); got != want.available+"/"+want.unapplied+"/"+want.other {
		v.t.Errorf("available/unapplied/other %s, want %s/%s/%s", got, want.available, want.unapplied, want.other)
	}
	v.checkNews(want.news, want.exceptions)
}

func (v *teller) checkNews(news, exceptions string) {
	v.t.Helper()
	events, err := v.s.Events(v.t.Context(), v.m.ID, 0, 100)
	v.must(err)
	var types []string
	versions := map[payment.ID]int64{}
	for j := range events {
		types = append(types, string(events[j].Type))
		if events[j].Version <= versions[events[j].Subject] {
			v.t.Errorf("event %d repeats version %d of its order", j+1, events[j].Version)
		}
		versions[events[j].Subject] = events[j].Version
	}
	v.checkLastNews(events)
	if got := strings.Join(types, " "); got != news {
		v.t.Errorf("news %q, want %q", got, news)
	}
	open, err := v.s.OpenExceptions(v.t.Context(), 1000)
	v.must(err)
	var kinds []string
	for _, e := range open[v.base:] {
		kinds = append(kinds, e.Kind)
	}
	if got := strings.Join(kinds, " "); got != exceptions {
		v.t.Errorf("exceptions %q, want %q", got, exceptions)
	}
}

// checkLastNews compares what the last event of each order says of it with the
// order as it is: an event tells the status that the order came to.
func (v *teller) checkLastNews(events []payment.Event) {
	v.t.Helper()
	last := map[payment.ID]payment.Event{}
	for _, e := range events {
		last[e.Subject] = e
	}
	for id, e := range last {
		var told struct{ Data struct{ Status string } }
		v.must(json.Unmarshal(e.Body, &told, json.MatchCaseInsensitiveNames(true)))
		var status string
		if p, err := v.s.Payin(v.t.Context(), v.m.ID, id); err == nil {
			status = string(p.Status)
		} else {
			p, err := v.s.Payout(v.t.Context(), v.m.ID, id)
			v.must(err)
			status = string(p.Status)
		}
		if told.Data.Status != status {
			v.t.Errorf("%s tells that the order is %q; it is %s", e.Type, told.Data.Status, status)
		}
	}
}

// A payment is booked once, whichever merchant's order it is said to be for.
func TestReceiptIsBookedOnceForAll(t *testing.T) {
	w, clock := env.Virtual(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), 1)
	storetest.Each(t, w, func(t *testing.T, o store.Options) {
		s := storetest.Open(t, o)
		v := newTeller(t, s, w, clock)
		other, err := v.f.CreateMerchant(t.Context(), store.Merchant{Name: "other", Processor: "fake"}, "")
		v.must(err)
		q, _, err := v.f.CreatePayin(t.Context(), other, &wire.PayinRequest{Method: wire.Some("PIX"), Amount: wire.Some(int64(100)), ReferenceID: wire.Some("order")})
		v.must(err)
		report := processor.ChargeReport{Lookup: processor.Found, Payments: []processor.Payment{{ID: "E1", Amount: 100, PaidAt: clock.Now()}}}
		v.must(v.f.ApplyCharge(t.Context(), "fake", v.p.ExternalID, report, nil))
		v.must(v.f.ApplyCharge(t.Context(), "fake", q.ExternalID, report, nil))
		b, err := s.Balances(t.Context(), other.ID)
		v.must(err)
		if b[ledger.Available] != 0 || b[ledger.Unapplied] != 0 {
			t.Fatalf("the payment was booked a second time: %v", b)
		}
	})
}

// The same reference asked for differently is refused, and says what differs.
func TestReferenceConflictNamesFields(t *testing.T) {
	w, clock := env.Virtual(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), 1)
	storetest.Each(t, w, func(t *testing.T, o store.Options) {
		s := storetest.Open(t, o)
		v := newTeller(t, s, w, clock)
		fp := wire.NewFingerprint([]wire.FieldMAC{{Name: "amount", MAC: [16]byte{1}}})
		_, _, err := v.f.CreatePayin(t.Context(), v.m, &wire.PayinRequest{
			Method: wire.Some("PIX"), Amount: wire.Some(int64(7)), ReferenceID: wire.Some("order"), Fingerprint: fp,
		})
		if !problem.Is(err, problem.ReferenceConflict) || !strings.Contains(fmt.Sprint(problem.From(err).Fields), "amount") {
			t.Fatalf("got %v", err)
		}
		list, err := s.Payins(t.Context(), v.m.ID, store.Filter{Limit: 10})
		v.must(err)
		if len(list) != 1 || list[0].Amount != 100 {
			t.Fatalf("the refused request left %v", list)
		}
	})
}

// What comes in, by whichever order, repays debt before it is available.
func TestIncomeRepaysDebt(t *testing.T) {
	w, clock := env.Virtual(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), 1)
	storetest.Each(t, w, func(t *testing.T, o store.Options) {
		v := newTeller(t, storetest.Open(t, o), w, clock)
		for _, happens := range []string{"pay A 100", "spend 70", "dispute open"} {
			v.happens(strings.Fields(happens))
		}
		other, _, err := v.f.CreatePayin(t.Context(), v.m, &wire.PayinRequest{
			Method: wire.Some("PIX"), Amount: wire.Some(int64(100)), ReferenceID: wire.Some("other"), ExpiresIn: wire.Some(int64(3600)),
		})
		v.must(err)
		v.must(v.f.ApplyCharge(t.Context(), "fake", other.ExternalID, processor.ChargeReport{
			Lookup: processor.Found, Payments: []processor.Payment{{ID: "B", Amount: 100, PaidAt: clock.Now()}},
		}, nil))
		b, err := v.s.Balances(t.Context(), v.m.ID)
		v.must(err)
		if b[ledger.Owed] != 0 || b[ledger.Available] != 30 {
			t.Errorf("owed %d, available %d, want 0 and 30", b[ledger.Owed], b[ledger.Available])
		}
	})
}

// A dispute sets aside what the order was paid, and no more, whatever the
// processor says is contested.
func TestDisputeTakesNoMoreThanWasPaid(t *testing.T) {
	w, clock := env.Virtual(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), 1)
	storetest.Each(t, w, func(t *testing.T, o store.Options) {
		v := newTeller(t, storetest.Open(t, o), w, clock)
		v.must(v.f.Fund(t.Context(), v.m, 1000))
		v.happens([]string{"pay", "A", "100"})
		for range 2 {
			v.must(v.f.ApplyCharge(t.Context(), "fake", v.p.ExternalID, processor.ChargeReport{
				Lookup: processor.Found, Disputes: []processor.Dispute{{ID: "D", Amount: 500, State: processor.DisputeOpen}},
			}, nil))
		}
		b, err := v.s.Balances(t.Context(), v.m.ID)
		v.must(err)
		if b[ledger.Disputed] != 100 || b[ledger.Available] != 1000 {
			t.Errorf("disputed %d, available %d, want 100 and 1000", b[ledger.Disputed], b[ledger.Available])
		}
	})
}
