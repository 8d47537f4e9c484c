package payout_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/limits"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// newKeys are limits for new keys; payouts above 5.00 need approvals.
func newKeys(approvals int64) limits.Payout {
	return limits.Payout{NewKeyMaximum: cents(10_00), ApprovalAbove: cents(5_00), Approvals: &approvals}
}

// wantKey compares the counter of all payouts to the only key: its amount, its payouts without
// those that wait, and how long ago the first one was.
func wantKey(g *coretest.Gateway, step int, want string) {
	g.T.Helper()
	var got []string
	g.Query("SELECT amount, payouts, since FROM limit_counters WHERE counter = 8", func(rows *sql.Rows) error {
		var amount, payouts, since int64
		err := rows.Scan(&amount, &payouts, &since)
		row := fmt.Sprint(amount, " in ", payouts)
		if payouts > 0 {
			row += fmt.Sprint(" for ", g.Clock.Now().Sub(time.UnixMicro(since)).Round(time.Minute))
		}
		got = append(got, row)
		return err
	})
	if text := strings.Join(got, ", "); text != want {
		g.T.Errorf("step %d: the key has %s, want %s", step, text, want)
	}
}

// The first payout to a key that is sent, or can be, begins the time for which the key is new. One
// that waits for approval does not, but its amount counts. Each step is at an hour, 9 being the
// first: a payout of cents with the limit that refuses it, or what happens to the payout of a step
// before; and what the counter of the key has after it.
func TestPayoutThatWaitsMakesNoKeyKnown(t *testing.T) {
	type step struct {
		hour   int
		amount int64
		act    string // and the step of its payout
		want   string
		key    string
	}
	for _, row := range []struct {
		name      string
		approvals int64
		steps     []step
	}{
		{"nobody decides", 1, []step{
			{9, 6_00, "", "", "600 in 0"}, {34, 4_99, "", limits.NewKeyMaximum, "600 in 0"}, {34, 4_00, "", "", "1000 in 1 for 0s"},
			{57, 1, "", limits.NewKeyMaximum, "1000 in 1 for 23h0m0s"}, {58, 4_99, "", "", "1499 in 2 for 24h0m0s"}}},
		{"it is approved", 1, []step{
			{9, 6_00, "", "", "600 in 0"}, {19, 0, "approve 0", "", "600 in 1 for 0s"}, {42, 4_01, "", limits.NewKeyMaximum, "600 in 1 for 23h0m0s"},
			{43, 4_99, "", "", "1099 in 2 for 24h0m0s"}}},
		{"the last approval decides", 2, []step{
			{9, 6_00, "", "", "600 in 0"}, {10, 0, "approve 0", "", "600 in 0"}, {33, 4_01, "", limits.NewKeyMaximum, "600 in 0"}, {34, 0, "approve 0", "", "600 in 1 for 0s"},
			{57, 4_01, "", limits.NewKeyMaximum, "600 in 1 for 23h0m0s"}, {58, 4_01, "", "", "1001 in 2 for 24h0m0s"}}},
		{"it is approved in the night of another day", 1, []step{
			{9, 6_00, "", "", "600 in 0"}, {45, 0, "approve 0", "", "600 in 1 for 0s"}, {68, 4_01, "", limits.NewKeyMaximum, "600 in 1 for 23h0m0s"}, {69, 4_01, "", "", "1001 in 2 for 24h0m0s"}}},
		{"it is canceled", 1, []step{
			{9, 6_00, "", "", "600 in 0"}, {10, 0, "cancel 0", "", "0 in 0"}, {34, 4_00, "", "", "400 in 1 for 0s"}, {57, 10_00, "", limits.NewKeyMaximum, "400 in 1 for 23h0m0s"}}},
		{"it is rejected while another one counts", 1, []step{
			{9, 6_00, "", "", "600 in 0"}, {32, 4_00, "", "", "1000 in 1 for 0s"}, {33, 0, "reject 0", "", "400 in 1 for 1h0m0s"},
			{34, 6_01, "", limits.NewKeyMaximum, "400 in 1 for 2h0m0s"}, {56, 6_01, "", "", "1001 in 1 for 24h0m0s"}}},
		{"another one is approved, and canceled", 1, []step{
			{9, 5_50, "", "", "550 in 0"}, {9, 4_00, "", "", "950 in 1 for 0s"}, {33, 0, "cancel 1", "", "550 in 0"}, {34, 4_51, "", limits.NewKeyMaximum, "550 in 0"},
			{34, 0, "approve 0", "", "550 in 1 for 0s"}, {35, 0, "cancel 0", "", "0 in 0"}, {59, 10_01, "", limits.NewKeyMaximum, "0 in 0"}}},
		{"a first one fails", 1, []step{
			{9, 4_00, "", "", "400 in 1 for 0s"}, {10, 0, "fail", "", "0 in 0"}, {11, 6_00, "", "", "600 in 0"}, {36, 4_01, "", limits.NewKeyMaximum, "600 in 0"}}},
		{"it expires", 1, []step{
			{9, 6_00, "", "", "600 in 0"}, {81, 0, "expire", "", "0 in 0"}, {81, 10_01, "", limits.NewKeyMaximum, "0 in 0"}}},
		{"it is approved after the key is known", 1, []step{
			{9, 4_00, "", "", "400 in 1 for 0s"}, {10, 6_00, "", "", "1000 in 1 for 1h0m0s"}, {33, 0, "approve 1", "", "1000 in 2 for 24h0m0s"}, {33, 4_99, "", "", "1499 in 3 for 24h0m0s"}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				g.SetLimits(limits.Limits{Payout: newKeys(row.approvals)})
				hour := 9 // [coretest.Start]
				payouts := make([]payment.Payout, len(row.steps))
				for i, s := range row.steps {
					g.Jump(time.Duration(s.hour-hour) * time.Hour)
					hour = s.hour
					var got string
					changes := g.Changes(func() {
						if s.amount > 0 {
							payouts[i], got = requestTo(g, "a", fmt.Sprint(i), s.amount)
						} else {
							act(g, i, s.act, payouts)
						}
					})
					if got != s.want || (changes == "") != (got != "") {
						t.Errorf("step %d: limit %q, want %q; changes\n%s", i, got, s.want, changes)
					}
					wantKey(g, i, s.key)
					g.WantProven()
				}
			})
		})
	}
}

// act does what a step says, as an actor of its own.
func act(g *coretest.Gateway, i int, what string, payouts []payment.Payout) {
	g.T.Helper()
	var of int
	how, number, _ := strings.Cut(what, " ")
	_, _ = fmt.Sscan(number, &of)
	p, by := payouts[of], actor.Author{Actor: actor.Credential(fmt.Sprint(i)), Reason: "no"}
	var err error
	switch how {
	case "approve":
		_, err = g.Payouts.Approve(g.T.Context(), p.Merchant, p.ID, by)
	case "reject":
		_, err = g.Payouts.Reject(g.T.Context(), p.Merchant, p.ID, by)
	case "cancel":
		_, err = g.Payouts.Cancel(g.T.Context(), p.Merchant, p.ID)
	case "fail":
		g.Bank.AnswerTransfer = refuse
		g.Send()
	case "expire":
		g.Run(g.Payouts.Expire)
	}
	g.Must(err)
}

// The approval in the same day changes the number of payouts to the key, and no amount.
func TestApprovalMakesAKeyKnown(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		all := newKeys(1)
		all.PerDay, all.PerKeyPerDay = cents(50_00), cents(50_00)
		g.SetLimits(limits.Limits{Payout: all})
		p, _ := requestTo(g, "a", "r", 6_00)
		g.Jump(time.Hour)
		got := g.Changes(func() {
			_, err := g.Payouts.Approve(t.Context(), p.Merchant, p.ID, actor.Author{Actor: "credential:boss"})
			g.Must(err)
		})
		lines := strings.Split(got, "\n")
		if len(lines) != 3 || !strings.HasPrefix(lines[0], "payouts approval:required→approved") || strings.Contains(lines[0], "counte") ||
			!strings.HasPrefix(lines[1], "+approvals") || !strings.HasPrefix(lines[2], "limit_counters payouts:0→1 since:") {
			t.Errorf("changes\n%s", got)
		}
		g.WantProven()
	})
}

// Items of one batch that need approval make no key known, and those beside them do.
func TestItemThatWaitsMakesNoKeyKnown(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.SetLimits(limits.Limits{Payout: newKeys(1)})
		r := batchOf("b", 6_00, 1_00, 6_00)
		for i, key := range []string{"a", "b", "b"} {
			r.Items[i].PIXKey, r.Items[i].NormalKey = wire.Some(key), key
		}
		requestBatch(g, r)
		g.Jump(24 * time.Hour)
		if _, got := requestTo(g, "a", "a", 4_01); got != limits.NewKeyMaximum {
			t.Errorf("to a key with an item that waits: limit %q", got)
		}
		if _, got := requestTo(g, "b", "b", 4_01); got != "" {
			t.Errorf("to a key with another item: limit %q", got)
		}
		g.WantProven()
	})
}

// The money of a found transfer has left, so that its payout makes the key known when it is
// requested again, although payouts of its amount need approval.
func TestAdoptedPayoutMakesItsKeyKnown(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Bank.Pay(processor.TransferRequest{
			ExternalID: g.Store.ExternalID(&g.Merchant, payment.OperationPayout, "lost"), Amount: 6_00,
		}, processor.TransferPaid)
		g.Execute("UPDATE installation SET epoch = epoch - 3")
		g.Heartbeat()
		g.Clear()
		g.WantCases(store.CasePayoutFound)
		g.SetLimits(limits.Limits{Payout: newKeys(1)})
		p, _ := requestTo(g, "a", "lost", 6_00)
		wantKey(g, 0, "600 in 1 for 0s")
		g.LookUp()
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		wantKey(g, 1, "600 in 1 for 0s")
		g.WantProven()
	})
}

// A payout that was paid without the approval that a restored database lacks makes no key known.
func TestPayoutPaidWithoutItsApprovalMakesNoKeyKnown(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.SetLimits(limits.Limits{Payout: newKeys(1)})
		p, _ := requestTo(g, "a", "r", 6_00)
		g.Bank.Pay(processor.TransferRequest{ExternalID: p.ExternalID, Amount: p.Amount}, processor.TransferPaid)
		g.Execute("UPDATE installation SET epoch = epoch - 3")
		g.Heartbeat()
		_, err := g.Payouts.Reject(t.Context(), p.Merchant, p.ID, actor.Author{Actor: "credential:boss", Reason: "no"})
		g.Must(err)
		g.ClearAccount()
		g.LookUp()
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		wantKey(g, 0, "600 in 0")
		g.WantProven()
	})
}

// Requests, approvals, rejections and cancellations at once, on two gateways, agree about what
// makes the key known.
func TestKeyUnderConcurrency(t *testing.T) {
	coretest.EachEngine(t, func(t *testing.T, g *coretest.Gateway) {
		all := newKeys(1)
		all.NewKeyMaximum = cents(200_00)
		g.SetLimits(limits.Limits{Payout: all})
		gateways := []*coretest.Gateway{g}
		if g.Engine == "postgres" {
			gateways = append(gateways, g.Second())
		}
		for _, v := range gateways {
			v.Writer.Start()
			t.Cleanup(v.Writer.Stop)
		}
		var wg sync.WaitGroup
		for i := range 32 {
			wg.Go(func() {
				v, ctx := gateways[i%len(gateways)], context.Background()
				r := coretest.PayoutRequest(fmt.Sprint(i), []int64{6_00, 1_00}[i/2%2])
				r.PIXKey, r.NormalKey = wire.Some("a"), "a"
				p, _, err := v.Payouts.Request(ctx, g.Merchant, r)
				if err != nil {
					t.Error(err)
					return
				}
				decide := []func(){
					func() { _, err = v.Payouts.Approve(ctx, p.Merchant, p.ID, actor.Author{Actor: "credential:boss"}) },
					func() {
						_, err = v.Payouts.Reject(ctx, p.Merchant, p.ID, actor.Author{Actor: "credential:boss", Reason: "no"})
					},
					func() { _, err = v.Payouts.Cancel(ctx, p.Merchant, p.ID) },
					func() {},
				}
				if decide[i/4%4](); err != nil && !problem.Is(err, problem.InvalidState) {
					t.Error(err)
				}
			})
		}
		g.Until(wg.Wait)
		var held money.Cents
		known := 0
		list, err := g.Store.Payouts(t.Context(), g.Merchant.ID, store.Filter{Limit: 100})
		g.Must(err)
		for i := range list {
			if list[i].Status != payment.PayoutCanceled {
				held += list[i].Amount
				if !list[i].Unapproved() {
					known++
				}
			}
		}
		if known == 0 || known == len(list) {
			t.Errorf("%d of %d payouts make the key known", known, len(list))
		}
		wantKey(g, 0, fmt.Sprint(int64(held), " in ", known, " for 0s"))
		g.WantProven()
	})
}
