package payin_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payin"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/pricing"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/wire"
)

// priced is a pay-in of 100.00 that was created under a price.
type priced struct {
	*coretest.Gateway

	payin    payment.Payin
	payments int
}

func newPriced(t *testing.T, terms payment.Terms) *priced {
	t.Helper()
	return newPricedBy(t, payment.PIX, terms)
}

func newPricedBy(t *testing.T, method payment.Method, terms payment.Terms) *priced {
	t.Helper()
	g := coretest.NewWith(t, 0)
	g.SetPrice(method, terms)
	if method == payment.CreditCard {
		g.Bank.AnswerCharge = func(*coretest.Bank, processor.ChargeRequest) processor.ChargeAnswer {
			return processor.ChargeAnswer{Outcome: processor.Done, Charge: processor.Charge{Card: &payment.CardDetail{}}}
		}
	}
	o := &priced{Gateway: g}
	o.creates(method, "order")
	return o
}

// creates creates an order, which the next reports are about.
func (o *priced) creates(method payment.Method, reference string) {
	o.T.Helper()
	r := coretest.PayinRequest(reference, "")
	r.Method = wire.Some(string(method))
	var err error
	o.payin, _, err = o.Payins.Create(o.T.Context(), o.Merchant, r)
	o.Must(err)
}

// receives books a payment.
func (o *priced) receives(amount money.Cents) {
	o.T.Helper()
	o.payments++
	o.reports(processor.ChargeReport{Payments: []processor.Payment{{ID: fmt.Sprint("E", o.payments), Amount: amount, PaidAt: o.Clock.Now()}}})
}

// disputes books a report about a dispute, or several.
func (o *priced) disputes(id string, state processor.DisputeState, amount money.Cents) {
	o.T.Helper()
	o.reports(processor.ChargeReport{Disputes: []processor.Dispute{{ID: id, State: state, Amount: amount}}})
}

func (o *priced) reports(r processor.ChargeReport) {
	o.T.Helper()
	r.Lookup = processor.Found
	op, err := o.Payins.NewReceive(o.T.Context(), coretest.BankName, o.payin.ExternalID, r, nil)
	o.Must(err)
	o.Must(o.Commit(op))
	o.WantProven()
}

// settles settles all receivables that are due.
func (o *priced) settles() {
	o.T.Helper()
	o.Settle()
	o.WantProven()
}

// wants compares the balances that are not zero, in cents, and the order's fee.
func (o *priced) wants(when, balances string, fee money.Cents) {
	o.T.Helper()
	var list []string
	for _, a := range o.Balances().Accounts() {
		if amount := o.Balances()[a]; amount != 0 {
			list = append(list, fmt.Sprintf("%s %d", a, amount))
		}
	}
	if got := strings.Join(list, ", "); got != balances {
		o.T.Errorf("%s: %s; want %s", when, got, balances)
	}
	if got := o.ReadPayin(o.payin).Fee; got != fee {
		o.T.Errorf("%s: the order's fee is %d, want %d", when, got, fee)
	}
}

var atOnce = payment.Terms{BasisPoints: 99, Fixed: 10}

func TestFeeOfReceipts(t *testing.T) {
	t.Parallel()
	t.Run("paid in full", func(t *testing.T) {
		o := newPriced(t, atOnce)
		o.receives(100_00)
		o.wants("paid", "available 9891, clearing:bank -10000, fees 109", 109)
	})
	t.Run("in parts the fee is that of the sum", func(t *testing.T) {
		o := newPriced(t, atOnce)
		o.receives(3)
		o.wants("3 cents", "clearing:bank -3, fees 3", 3) // never above what came in
		o.receives(49_97)
		o.wants("half", "available 4940, clearing:bank -5000, fees 60", 60)
		o.receives(50_00)
		o.wants("all", "available 9891, clearing:bank -10000, fees 109", 109)
	})
	t.Run("beyond the amount there is no fee", func(t *testing.T) {
		o := newPriced(t, atOnce)
		o.receives(120_00)
		o.receives(5_00)
		o.wants("overpaid", "available 9891, clearing:bank -12500, fees 109, unapplied 2500", 109)
	})
	t.Run("late money has a fee", func(t *testing.T) {
		o := newPriced(t, atOnce)
		o.reports(processor.ChargeReport{State: processor.ChargeExpired})
		o.receives(100_00)
		o.wants("late", "available 9891, clearing:bank -10000, fees 109", 109)
	})
	t.Run("the fee may be all of it", func(t *testing.T) {
		o := newPriced(t, payment.Terms{Minimum: 200_00, Days: 2})
		o.receives(100_00)
		o.wants("paid", "clearing:bank -10000, fees 10000", 100_00)
		if n := o.Count("receivables", "id > ''"); n != 0 {
			t.Errorf("%d receivables", n)
		}
	})
	t.Run("without a price", func(t *testing.T) {
		o := newPriced(t, payment.Terms{})
		o.receives(100_00)
		o.wants("paid", "available 10000, clearing:bank -10000", 0)
	})
}

// The processor's cut of a payment is the platform's cost, never the merchant's.
func TestCostOfProcessor(t *testing.T) {
	t.Parallel()
	o := newPriced(t, atOnce)
	o.reports(processor.ChargeReport{Payments: []processor.Payment{{ID: "E", Amount: 120_00, Cost: 35, PaidAt: o.Clock.Now()}}})
	o.wants("paid", "available 9891, clearing:bank -11965, costs -35, fees 109, unapplied 2000", 109)
	o.reports(processor.ChargeReport{Payments: []processor.Payment{{ID: "E", Amount: 120_00, Cost: 35, PaidAt: o.Clock.Now()}}})
	o.wants("reported again", "available 9891, clearing:bank -11965, costs -35, fees 109, unapplied 2000", 109)
	o.reports(processor.ChargeReport{Payments: []processor.Payment{{ID: "G", Amount: 50, Cost: 199, PaidAt: o.Clock.Now()}}})
	o.wants("a cost above the amount", "available 9891, clearing:bank -11816, costs -234, fees 109, unapplied 2050", 109)
	for _, cost := range []money.Cents{-1, money.Max + 1} {
		report := processor.ChargeReport{Payments: []processor.Payment{{ID: "F", Amount: 100, Cost: cost}}}
		if _, err := o.Payins.NewReceive(t.Context(), coretest.BankName, o.payin.ExternalID, report, nil); !errors.Is(err, payin.ErrInvalidPayment) {
			t.Errorf("a cost of %d: %v", cost, err)
		}
	}
}

// The tests begin on Friday 20 November, a holiday, at 09:00 in São Paulo: the second business
// day is Tuesday the 24th, 09:00 UTC.
func TestSettle(t *testing.T) {
	t.Parallel()
	o := newPriced(t, payment.Terms{BasisPoints: 99, Fixed: 10, Days: 2, Business: true})
	o.receives(100_00)
	o.wants("paid", "clearing:bank -10000, fees 109, pending 9891", 109)
	at := time.Date(2026, 11, 24, 9, 0, 0, 0, time.UTC)
	o.Clock.Advance(at.Sub(o.Clock.Now()) - time.Microsecond)
	o.settles()
	o.wants("before", "clearing:bank -10000, fees 109, pending 9891", 109)
	o.Clock.Advance(time.Microsecond)
	o.settles()
	o.wants("settled", "available 9891, clearing:bank -10000, fees 109", 109)
	o.settles()
	o.wants("again", "available 9891, clearing:bank -10000, fees 109", 109)
	if n := o.Count("receivables", fmt.Sprintf("state = 'settled' AND settled_at = %[1]d AND settles_at = %[1]d", at.UnixMicro())); n != 1 {
		t.Errorf("%d receivables settled at %s", n, at)
	}
}

// A card payment in instalments settles in parts. Money that is reported late is available at once
// as far as its days have passed.
func TestSettlePerInstallment(t *testing.T) {
	t.Parallel()
	o := newPricedBy(t, payment.CreditCard, payment.Terms{Fixed: 1_00, Days: 30, PerInstallment: true})
	report := processor.Payment{ID: "E", Amount: 100_00, PaidAt: o.Clock.Now().Add(-40 * 24 * time.Hour), Card: &payment.CardDetail{Installments: 3}}
	o.reports(processor.ChargeReport{Payments: []processor.Payment{report}})
	o.wants("40 days later", "available 3300, clearing:bank -10000, fees 100, pending 6600", 100)
	o.Clock.Advance(30 * 24 * time.Hour)
	o.settles()
	o.wants("the second part", "available 6600, clearing:bank -10000, fees 100, pending 3300", 100)
	o.Clock.Advance(30 * 24 * time.Hour)
	o.settles()
	o.wants("the third part", "available 9900, clearing:bank -10000, fees 100", 100)
}

// A processor whose clock is ahead, or that reports no time, does not delay settlement.
func TestSettleByOwnClock(t *testing.T) {
	t.Parallel()
	for _, paidAt := range []time.Time{{}, coretest.Start.Add(100 * 24 * time.Hour)} {
		o := newPriced(t, payment.Terms{Days: 1})
		o.reports(processor.ChargeReport{Payments: []processor.Payment{{ID: "E", Amount: 100_00, PaidAt: paidAt}}})
		at := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
		if n := o.Count("receivables", fmt.Sprint("settles_at = ", at.UnixMicro())); n != 1 {
			t.Errorf("paid at %s, it does not settle at %s", paidAt, at)
		}
	}
}

// A dispute takes what is pending of its order, then what is available, then makes debt; and
// what a dispute took of pending money becomes pending again if it is won before that settles:
// not what another dispute took.
func TestDisputeOfPending(t *testing.T) {
	t.Parallel()
	terms := payment.Terms{Fixed: 1_00, Days: 2}
	t.Run("won before it settles", func(t *testing.T) {
		o := newPriced(t, terms)
		o.receives(100_00)
		o.disputes("D", processor.DisputeOpen, 40_00)
		o.wants("a part", "clearing:bank -10000, disputed 4000, fees 100, pending 5900", 1_00)
		o.disputes("E", processor.DisputeOpen, 60_00)
		o.wants("all", "clearing:bank -10000, disputed 10000, fees 100, owed -100", 1_00)
		o.disputes("E", processor.DisputeWon, 60_00)
		o.wants("the second won", "clearing:bank -10000, disputed 4000, fees 100, pending 5900", 1_00)
		o.disputes("D", processor.DisputeWon, 40_00)
		o.wants("both won", "clearing:bank -10000, fees 100, pending 9900", 1_00)
		o.Clock.Advance(48 * time.Hour)
		o.settles()
		o.wants("settled", "available 9900, clearing:bank -10000, fees 100", 1_00)
	})
	t.Run("won after it settled", func(t *testing.T) {
		o := newPriced(t, terms)
		o.receives(100_00)
		o.disputes("D", processor.DisputeOpen, 40_00)
		o.Clock.Advance(48 * time.Hour)
		o.settles()
		o.wants("settled", "available 5900, clearing:bank -10000, disputed 4000, fees 100", 1_00)
		o.disputes("D", processor.DisputeWon, 40_00)
		o.wants("won", "available 9900, clearing:bank -10000, fees 100", 1_00)
	})
	t.Run("lost, and reversed before it settles", func(t *testing.T) {
		o := newPriced(t, terms)
		o.receives(100_00)
		o.disputes("D", processor.DisputeLost, 100_00)
		o.wants("lost", "fees 100, owed -100", 1_00)
		o.disputes("D", processor.DisputeReversed, 100_00)
		o.wants("reversed", "clearing:bank -10000, fees 100, pending 9900", 1_00)
	})
	t.Run("in the report of the payment", func(t *testing.T) {
		o := newPriced(t, terms)
		o.reports(processor.ChargeReport{
			Payments: []processor.Payment{{ID: "E", Amount: 100_00, PaidAt: o.Clock.Now()}},
			Disputes: []processor.Dispute{{ID: "D", State: processor.DisputeOpen, Amount: 30_00}},
		})
		o.wants("disputed", "clearing:bank -10000, disputed 3000, fees 100, pending 6900", 1_00)
	})
	t.Run("another order's pending money is not taken", func(t *testing.T) {
		o := newPriced(t, terms)
		o.receives(100_00)
		first := o.payin
		o.creates(payment.PIX, "other")
		o.receives(100_00)
		o.disputes("D", processor.DisputeOpen, 100_00)
		o.payin = first
		o.wants("disputed", "clearing:bank -20000, disputed 10000, fees 200, owed -100, pending 9900", 1_00)
	})
}

// histories is how many are played, of those that rapid draws: each is committed and verified.
const histories = 25

// TestMoneyOfOrder plays any history of an order under any price: what is credited, pending,
// taken and charged adds up after each step, and no fee exceeds what came in.
func TestMoneyOfOrder(t *testing.T) {
	t.Parallel()
	left := histories
	rapid.Check(t, func(r *rapid.T) {
		if left--; left < 0 {
			return
		}
		terms := payment.Terms{
			BasisPoints: rapid.Int64Range(0, pricing.BasisPointsMax).Draw(r, "basis points"), Fixed: money.Cents(rapid.Int64Range(0, 300).Draw(r, "fixed")),
			Days: rapid.IntRange(0, 20).Draw(r, "days"),
		}
		terms.PerInstallment = terms.Days > 0 && rapid.Bool().Draw(r, "per instalment")
		o := newPricedBy(t, payment.CreditCard, terms)
		disputes := map[string]money.Cents{}
		card := &payment.CardDetail{Installments: rapid.IntRange(0, 12).Draw(r, "instalments")}
		for range rapid.IntRange(1, 12).Draw(r, "steps") {
			amount := money.Cents(rapid.Int64Range(1, 120_00).Draw(r, "amount"))
			id := rapid.SampledFrom([]string{"A", "B", "C"}).Draw(r, "dispute")
			switch rapid.IntRange(0, 3).Draw(r, "step") {
			case 0:
				o.payments++
				o.reports(processor.ChargeReport{Payments: []processor.Payment{{ID: fmt.Sprint("E", o.payments), Amount: amount, PaidAt: o.Clock.Now(), Card: card}}})
			case 1:
				if disputes[id] == 0 {
					disputes[id] = amount
				}
				o.disputes(id, processor.DisputeOpen, disputes[id])
			case 2:
				if disputes[id] > 0 {
					o.disputes(id, rapid.SampledFrom([]processor.DisputeState{processor.DisputeWon, processor.DisputeLost, processor.DisputeReversed}).Draw(r, "state"), disputes[id])
				}
			case 3:
				o.Clock.Advance(time.Duration(rapid.IntRange(1, 40).Draw(r, "pass")) * 24 * time.Hour)
				o.settles()
			}
			p := o.ReadPayin(o.payin)
			if p.Fee < 0 || p.Fee > p.PaidAmount || o.Balances()[ledger.Fees] != p.Fee {
				r.Fatalf("fee %d of %d, and %d in the ledger", p.Fee, p.PaidAmount, o.Balances()[ledger.Fees])
			}
		}
		o.Clock.Advance(365 * 24 * time.Hour)
		o.settles()
		if pending := o.Balances()[ledger.Pending]; pending != 0 || t.Failed() {
			r.Fatalf("%d still pending", pending)
		}
	})
}
