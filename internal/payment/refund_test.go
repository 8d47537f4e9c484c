package payment_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/porteira/porteira/internal/effect"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
)

// sources are payments of an order, the oldest first: "60/100" has 60 left of the order's
// amount, and 100 in all.
func sources(t *testing.T, text string) (list []payment.RefundSource) {
	t.Helper()
	for i, word := range strings.Fields(text) {
		s := payment.RefundSource{Receipt: payment.Receipt{ID: payment.ID{byte(i + 1)}}}
		if _, err := fmt.Sscanf(word, "%d/%d", &s.Applied, &s.Surplus); err != nil {
			t.Fatal(err)
		}
		s.Surplus -= s.Applied
		list = append(list, s)
	}
	return list
}

func TestSplitRefund(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		amount    money.Cents
		of        string
		unapplied money.Cents
		want      string // payment:amount
	}{
		{100, "100/100", 0, "1:100"},
		{40, "100/100", 0, "1:40"},
		{101, "100/100", 0, "too much"},
		{60, "50/50 60/60", 0, "2:60"},
		{70, "50/50 60/60", 0, "1:50 2:20"},
		{110, "50/50 60/60", 0, "1:50 2:60"},
		{111, "50/50 60/60", 0, "too much"},
		{50, "0/0 50/50", 0, "2:50"},
		{60, "50/80 10/10", 0, "1:50 2:10"},
		{70, "50/80 10/10", 0, "1:60 2:10"}, // money of the order that came as surplus
		{90, "50/80 10/10", 0, "1:80 2:10"},
		{70, "50/80 10/10", 20, "1:60 2:10"}, // the rest of the surplus is still unapplied
		{71, "50/80 10/10", 20, "too much"},
		{1, "", 0, "too much"},
	} {
		parts, ok := payment.SplitRefund(row.amount, sources(t, row.of), row.unapplied)
		var got []string
		for _, p := range parts {
			got = append(got, fmt.Sprintf("%d:%d", p.Receipt.ID[0], p.Amount))
		}
		text := strings.Join(got, " ")
		if !ok {
			text = "too much"
		}
		if text != row.want {
			t.Errorf("%d of %s: %s, want %s", row.amount, row.of, text, row.want)
		}
	}
}

// No payment gives back more than it has, and the parts add up to the amount.
func TestSplitRefundAddsUp(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		var list []payment.RefundSource
		var most money.Cents
		for i := range rapid.IntRange(0, 5).Draw(r, "payments") {
			left := money.Cents(rapid.IntRange(0, 50).Draw(r, "left"))
			list = append(list, payment.RefundSource{
				Receipt: payment.Receipt{ID: payment.ID{byte(i + 1)}}, Applied: money.Cents(rapid.IntRange(0, int(left)).Draw(r, "applied")),
			})
			list[i].Surplus = left - list[i].Applied
			most += left
		}
		amount := money.Cents(rapid.IntRange(1, 120).Draw(r, "amount"))
		parts, ok := payment.SplitRefund(amount, list, 0)
		if ok != (amount <= most) {
			r.Fatalf("%d of %d: %t", amount, most, ok)
		}
		var sum money.Cents
		for _, p := range parts {
			sum += p.Amount
			if left := list[p.Receipt.ID[0]-1].Left(); p.Amount <= 0 || p.Amount > left {
				r.Fatalf("takes %d of %d", p.Amount, left)
			}
		}
		if ok && sum != amount {
			r.Fatalf("the parts add up to %d of %d", sum, amount)
		}
	})
}

func part(refund, receipt byte, amount money.Cents, outcome payment.RefundPartOutcome) payment.RefundPart {
	p := payment.RefundPart{Refund: payment.ID{refund}, Receipt: payment.ID{receipt}, Amount: amount, Outcome: outcome, Effect: effect.Effect{State: effect.Done}}
	if outcome == "" {
		p.State = effect.Queued
	}
	return p
}

func TestRefundSources(t *testing.T) {
	t.Parallel()
	paid := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	receipts := []payment.Receipt{
		{ID: payment.ID{2}, Amount: 80, Applied: 30, PaidAt: paid.Add(time.Hour)},
		{ID: payment.ID{1}, Amount: 70, Applied: 70, PaidAt: paid},
	}
	parts := []payment.RefundPart{
		part(1, 1, 20, payment.PartPaid), part(2, 1, 10, ""), part(3, 1, 40, payment.PartFailed),
		part(4, 1, 40, payment.PartTakenBack), part(5, 2, 40, payment.PartPaid),
	}
	parts[4].Unapplied = 40
	list := payment.RefundSources(receipts, parts)
	if len(list) != 2 || list[0].Receipt.ID != (payment.ID{1}) || list[0].Applied != 40 || list[0].Surplus != 0 || list[1].Applied != 30 || list[1].Surplus != 10 {
		t.Errorf("%+v", list)
	}
	p := payment.Payin{PaidAmount: 100}
	if left := payment.RefundLeft(&p, nil, parts, 0); left != 70 {
		t.Errorf("%d is left, want 70: 20 are refunded and 10 in flight; unapplied money is not of the order", left)
	}
	p.DisputedAmount = 50 // 10 of it of what exceeds the order and was not given back
	if left := payment.RefundLeft(&p, receipts, parts, 0); left != 30 {
		t.Errorf("%d is left, want 30", left)
	}
	p.PaidAmount, p.DisputedAmount = 10, 0
	if left := payment.RefundLeft(&p, nil, parts, 0); left != 0 {
		t.Errorf("%d is left of too little", left)
	}
}

func TestRefundTrigger(t *testing.T) {
	t.Parallel()
	open, paid, failed := part(1, 1, 1, ""), part(1, 2, 1, payment.PartPaid), part(1, 3, 1, payment.PartFailed)
	for _, row := range []struct {
		status payment.RefundStatus
		others []payment.RefundPart
		end    payment.PartEnd
		want   payment.Trigger
	}{
		{payment.RefundProcessing, nil, payment.EndPaid, payment.OnComplete},
		{payment.RefundProcessing, nil, payment.EndFailed, payment.OnFail},
		{payment.RefundPending, nil, payment.EndFailed, payment.OnFail},
		{payment.RefundCompleted, nil, payment.EndTakenBack, payment.OnTakeBack},
		{payment.RefundFailed, nil, payment.EndPaid, payment.OnComplete},
		{payment.RefundProcessing, []payment.RefundPart{open}, payment.EndPaid, payment.OnCompletePart},
		{payment.RefundProcessing, []payment.RefundPart{open, failed}, payment.EndPaid, payment.OnCompletePart},
		{payment.RefundProcessing, []payment.RefundPart{open}, payment.EndFailed, payment.OnFailPart},
		{payment.RefundProcessing, []payment.RefundPart{open}, payment.EndTakenBack, payment.OnTakeBackPart},
		{payment.RefundProcessing, []payment.RefundPart{paid}, payment.EndPaid, payment.OnComplete},
		{payment.RefundProcessing, []payment.RefundPart{failed}, payment.EndPaid, payment.OnCompleteFailed},
		{payment.RefundProcessing, []payment.RefundPart{paid}, payment.EndFailed, payment.OnFail},
		{payment.RefundCompleted, []payment.RefundPart{paid}, payment.EndTakenBack, payment.OnTakeBack},
		{payment.RefundFailed, []payment.RefundPart{failed}, payment.EndPaid, payment.OnCompleteFailed},
		{payment.RefundFailed, []payment.RefundPart{paid}, payment.EndPaid, payment.OnComplete},
		{payment.RefundFailed, []payment.RefundPart{paid}, payment.EndTakenBack, payment.OnTakeBack},
	} {
		got := payment.RefundTrigger(row.status, row.others, row.end)
		if _, legal := payment.RefundTable.Next(row.status, got); got != row.want || !legal {
			t.Errorf("%s, %v ends as %d: %s, want %s", row.status, row.others, row.end, got, row.want)
		}
	}
}

func TestPayinRefundTrigger(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		paid, before, after money.Cents
		want                payment.Trigger
	}{
		{100, 0, 40, payment.OnRefundPart},
		{100, 40, 99, payment.OnRefundPart},
		{100, 0, 100, payment.OnRefundAll},
		{100, 40, 100, payment.OnRefundAll},
		{100, 100, 60, payment.OnRefundUndonePart},
		{100, 100, 0, payment.OnRefundUndone},
		{100, 40, 0, payment.OnRefundUndone},
		// 40 were given back before it was paid in full.
		{140, 40, 50, payment.OnRefundPart},
		{140, 40, 140, payment.OnRefundAll},
		{140, 60, 40, payment.OnRefundUndone},
		{140, 60, 20, payment.OnRefundUndone},
		{140, 60, 50, payment.OnRefundUndonePart},
	} {
		p := payment.Payin{Amount: 100, Status: payment.PayinPaid, PaidAmount: row.paid, RefundedAmount: row.after}
		if got := payment.PayinRefundTrigger(&p, row.before); got != row.want {
			t.Errorf("of %d, from %d to %d: %s, want %s", row.paid, row.before, row.after, got, row.want)
		}
	}
}

// Unapplied money is only of what exceeded the order.
func TestSplitUnapplied(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		amount money.Cents
		of     string
		want   string
	}{
		{30, "0/30", "[{1 30}]"},
		{30, "100/130", "[{1 30}]"},
		{40, "100/130 0/10", "[{1 30} {2 10}]"},
		{41, "100/130 0/10", "too much"},
		{1, "100/100", "too much"},
	} {
		list, ok := payment.SplitUnapplied(row.amount, sources(t, row.of))
		var got []string
		for _, p := range list {
			got = append(got, fmt.Sprintf("{%d %d}", p.Receipt.ID[0], p.Amount))
		}
		text := fmt.Sprint(got)
		if !ok {
			text = "too much"
		}
		if text != row.want {
			t.Errorf("%d of %s: %s, want %s", row.amount, row.of, text, row.want)
		}
	}
}

// A part can take money of the order beyond what was applied of its payment: surplus that was
// applied later; what it gave back of unapplied money is not of the order.
func TestSourcesOfParts(t *testing.T) {
	t.Parallel()
	receipts := []payment.Receipt{{ID: payment.ID{1}, Amount: 130, Applied: 100}}
	of := func(amount, unapplied money.Cents) payment.RefundPart {
		p := part(1, 1, amount, payment.PartPaid)
		p.Unapplied = unapplied
		return p
	}
	for _, row := range []struct {
		parts            []payment.RefundPart
		applied, surplus money.Cents
	}{
		{nil, 100, 30},
		{[]payment.RefundPart{of(100, 0)}, 0, 30},
		{[]payment.RefundPart{of(30, 30)}, 100, 0},
		{[]payment.RefundPart{of(50, 30)}, 80, 0},
		{[]payment.RefundPart{of(110, 0)}, 0, 20},
		{[]payment.RefundPart{of(110, 0), of(20, 20)}, 0, 0},
	} {
		if s := payment.RefundSources(receipts, row.parts)[0]; s.Applied != row.applied || s.Surplus != row.surplus {
			t.Errorf("%v: %d of the order and %d of surplus are left, want %d and %d", row.parts, s.Applied, s.Surplus, row.applied, row.surplus)
		}
	}
}

func TestTakes(t *testing.T) {
	t.Parallel()
	takes := payment.Takes{{payment.ID{1}, 10}, {payment.ID{2}, 20}}
	for _, row := range []struct {
		amount      money.Cents
		first, last payment.Takes
	}{
		{0, takes, nil},
		{5, payment.Takes{{payment.ID{1}, 10}, {payment.ID{2}, 15}}, payment.Takes{{payment.ID{2}, 5}}},
		{25, payment.Takes{{payment.ID{1}, 5}}, payment.Takes{{payment.ID{2}, 20}, {payment.ID{1}, 5}}},
		{99, nil, payment.Takes{{payment.ID{2}, 20}, {payment.ID{1}, 10}}},
	} {
		first, last := takes.Last(row.amount)
		if fmt.Sprint(first) != fmt.Sprint(row.first) || fmt.Sprint(last) != fmt.Sprint(row.last) || first.Sum()+last.Sum() != takes.Sum() {
			t.Errorf("%d: %v and %v, want %v and %v", row.amount, first, last, row.first, row.last)
		}
	}
}
