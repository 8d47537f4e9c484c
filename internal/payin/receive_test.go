package payin_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
)

// Sequences of payments of one pay-in of 100.00: what happens, then the order's status
// and paid amount, the merchant's accounts, the events and the open cases. Amounts are
// in reais. "pay A 100" is payment A of 100.00; the same letter again is the same
// payment, reported again.
var receiveStories = []struct {
	name, happens               string
	status                      string
	paid                        money.Cents
	available, unapplied, other string // what has changed
	events                      string
	cases                       string
}{
	{"exact", "pay A 100", "PAID", 100_00, "100.00", "0.00", "", "payin.paid", ""},
	{"reported three times", "pay A 100, pay A 100, pay A 100", "PAID", 100_00, "100.00", "0.00", "", "payin.paid", ""},
	{"one cent short", "pay A 99.99", "PENDING", 99_99, "99.99", "0.00", "", "payin.underpaid", ""},
	{"two parts", "pay A 40, pay B 60", "PAID", 100_00, "100.00", "0.00", "", "payin.underpaid payin.paid", ""},
	{"one cent over", "pay A 100.01", "PAID", 100_00, "100.00", "0.01", "", "payin.paid payin.overpaid", "overpaid"},
	{"parts that exceed", "pay A 60, pay B 60", "PAID", 100_00, "100.00", "20.00", "", "payin.underpaid payin.paid payin.overpaid", "overpaid"},
	{"two payers", "pay A 100, pay B 100", "PAID", 100_00, "100.00", "100.00", "", "payin.paid payin.overpaid", "overpaid"},
	{"after expiry", "expire, pay A 100", "PAID late", 100_00, "100.00", "0.00", "", "payin.expired payin.paid", ""},
	{"after cancel", "cancel, pay A 100", "PAID late", 100_00, "100.00", "0.00", "", "payin.canceled payin.paid", ""},
	{"part after expiry", "expire, pay A 10", "EXPIRED", 10_00, "10.00", "0.00", "", "payin.expired payin.underpaid", ""},
	{"part after cancel", "cancel, pay A 10", "CANCELED", 10_00, "10.00", "0.00", "", "payin.canceled payin.underpaid", ""},
	{"part, expiry, rest", "pay A 10, expire, pay B 90", "PAID late", 100_00, "100.00", "0.00", "", "payin.underpaid payin.expired payin.paid", ""},
	{"after failure", "fail, pay A 100", "FAILED", 0, "0.00", "100.00", "", "payin.failed payin.overpaid", "overpaid"},
	{"part, failure, rest", "pay A 10, fail, pay B 90", "FAILED", 10_00, "10.00", "90.00", "", "payin.underpaid payin.failed payin.overpaid", "overpaid"},
	{"late failure changes nothing", "pay A 100, fail", "PAID", 100_00, "100.00", "0.00", "", "payin.paid", ""},
	{"late analysis changes nothing", "pay A 100, analyze", "PAID", 100_00, "100.00", "0.00", "", "payin.paid", ""},
	{"late expiry changes nothing", "pay A 100, expire", "PAID", 100_00, "100.00", "0.00", "", "payin.paid", ""},
	{"analysis, then paid", "analyze, pay A 100", "PAID", 100_00, "100.00", "0.00", "", "payin.processing payin.paid", ""},
	{"analysis, then a part", "analyze, pay A 40", "PROCESSING", 40_00, "40.00", "0.00", "", "payin.processing payin.underpaid", ""},
	{"analysis, then refused", "analyze, fail", "FAILED", 0, "0.00", "0.00", "", "payin.processing payin.failed", ""},
	{"card refused, tried again", "refuse, pay A 100", "PAID", 100_00, "100.00", "0.00", "", "payin.paid", ""},
	{"dispute won", "pay A 100, dispute open, dispute won", "PAID", 100_00, "100.00", "0.00", "", "payin.paid payin.disputed payin.dispute_won", ""},
	{"dispute open", "pay A 100, dispute open", "DISPUTED", 100_00, "0.00", "0.00", "disputed 100.00", "payin.paid payin.disputed", ""},
	{"dispute reported twice", "pay A 100, dispute open, dispute open", "DISPUTED", 100_00, "0.00", "0.00", "disputed 100.00", "payin.paid payin.disputed", ""},
	{"dispute lost", "pay A 100, dispute open, dispute lost", "CHARGEBACK", 100_00, "0.00", "0.00", "", "payin.paid payin.disputed payin.chargeback", ""},
	{"lost at once", "pay A 100, dispute lost", "CHARGEBACK", 100_00, "0.00", "0.00", "", "payin.paid payin.disputed payin.chargeback", ""},
	{"chargeback reversed", "pay A 100, dispute lost, dispute reversed", "PAID", 100_00, "100.00", "0.00", "", "payin.paid payin.disputed payin.chargeback payin.dispute_won", ""},
	{"only the reversal is reported", "pay A 100, dispute reversed", "PAID", 100_00, "100.00", "0.00", "", "payin.paid payin.disputed payin.chargeback payin.dispute_won", ""},
	{"won, then reported as lost", "pay A 100, dispute open, dispute won, dispute lost", "PAID", 100_00, "100.00", "0.00", "", "payin.paid payin.disputed payin.dispute_won", "dispute_unexpected"},
	{"dispute of an unpaid order", "dispute open", "PENDING", 0, "0.00", "0.00", "", "", "dispute_unexpected"},
	{"paid again while disputed", "pay A 100, dispute open, pay B 100", "DISPUTED", 100_00, "0.00", "100.00", "disputed 100.00", "payin.paid payin.disputed payin.overpaid", "overpaid"},
	{"paid again after a chargeback", "pay A 100, dispute lost, pay B 100", "CHARGEBACK", 100_00, "0.00", "100.00", "", "payin.paid payin.disputed payin.chargeback payin.overpaid", "overpaid"},
	{"dispute of spent money", "pay A 100, spend 70, dispute open", "DISPUTED", 100_00, "0.00", "0.00", "disputed 100.00 owed -70.00", "payin.paid payout.processing payout.completed payin.disputed", ""},
	{"debt is repaid first", "pay A 100, spend 70, dispute open, dispute won", "PAID", 100_00, "30.00", "0.00", "", "payin.paid payout.processing payout.completed payin.disputed payin.dispute_won", ""},
	{"unmatched money", "unmatched 55", "PENDING", 0, "0.00", "0.00", "", "", "unmatched_receipt"},
}

func TestReceiveStories(t *testing.T) {
	for i := range receiveStories {
		want := &receiveStories[i]
		t.Run(want.name, func(t *testing.T) {
			s := newStory(t)
			s.happens(want.happens)
			s.check(i)
			s.WantProven()
		})
	}
}

func (s *story) check(i int) {
	s.T.Helper()
	want := &receiveStories[i]
	p := s.ReadPayin(s.payin)
	status := string(p.Status)
	if p.Late {
		status += " late"
	}
	if status != want.status || p.PaidAmount != want.paid {
		s.T.Errorf("order is %s with %s paid, want %s with %s", status, p.PaidAmount.Decimal(), want.status, want.paid.Decimal())
	}
	b := s.Balances()
	var other []string
	for _, a := range []ledger.Account{ledger.Disputed, ledger.Owed, ledger.Held, ledger.Pending} {
		if b[a] != 0 {
			other = append(other, fmt.Sprintf("%s %s", a, b[a].Decimal()))
		}
	}
	got := fmt.Sprintf("%s/%s/%s", b[ledger.Available].Decimal(), b[ledger.Unapplied].Decimal(), strings.Join(other, " "))
	if got != want.available+"/"+want.unapplied+"/"+want.other {
		s.T.Errorf("available/unapplied/other %s, want %s/%s/%s", got, want.available, want.unapplied, want.other)
	}
	s.checkEvents(want.events)
	var cases []string
	open, err := s.Store.OpenCases(s.T.Context(), 100)
	s.Must(err)
	for _, v := range open {
		cases = append(cases, string(v.Kind))
	}
	if got := strings.Join(cases, " "); got != want.cases {
		s.T.Errorf("cases %q, want %q", got, want.cases)
	}
}

// checkEvents compares the types of all events, and the status in the last event of the
// order with the stored order: an event shows the new status.
func (s *story) checkEvents(want string) {
	s.T.Helper()
	var types []string
	var last payment.Event
	for _, e := range s.Events() {
		if strings.HasPrefix(string(e.Type), "dispute.") {
			continue // of no order
		}
		types = append(types, string(e.Type))
		if e.Subject == s.payin.ID {
			last = e
		}
	}
	if got := strings.Join(types, " "); got != want {
		s.T.Errorf("events %q, want %q", got, want)
	}
	if last.Body == nil {
		return
	}
	var body struct {
		Data struct {
			Status payment.PayinStatus `json:"status"`
		} `json:"data"`
	}
	s.Must(json.Unmarshal(last.Body, &body))
	if stored := s.ReadPayin(s.payin).Status; body.Data.Status != stored {
		s.T.Errorf("%s shows the status %q; the order is %s", last.Type, body.Data.Status, stored)
	}
}
