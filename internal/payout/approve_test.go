package payout_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/limits"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// approvalOf makes payouts above 5.00 need approvals, and requests one of 10.00 as asker.
func approvalOf(g *coretest.Gateway, approvals int64) payment.Payout {
	g.T.Helper()
	g.SetLimits(limits.Limits{Payout: limits.Payout{ApprovalAbove: cents(5_00), Approvals: &approvals, PerDay: cents(50_00)}})
	return approvalOfNext(g, "r")
}

// approvalOfNext requests another payout that needs approval.
func approvalOfNext(g *coretest.Gateway, reference string) payment.Payout {
	g.T.Helper()
	r := coretest.PayoutRequest(reference, 10_00)
	r.Actor = "credential:asker"
	p, _, err := g.Payouts.Request(g.T.Context(), g.Merchant, r)
	g.Must(err)
	return p
}

const (
	waits    = "+payouts PENDING approval 1000\n+approvals 0 requested credential:asker\n+limit_counters 1 20777 1000 1\n+postings payout_held available -1000\n+postings payout_held held 1000"
	rejected = `
		payouts approval:required→rejected next_at:in 72h0m0s→- status:PENDING→CANCELED step:approval→done version:1→2
		+approvals 1 rejected credential:boss no
		limit_counters amount:1000→0 payouts:1→0
		+postings payout_released held -1000
		+postings payout_released available 1000
		+events payout.canceled`
)

// Each act is an actor, who approves (+) or rejects (-), and the answer: the approval of the
// payout, or a problem.
func TestApproval(t *testing.T) {
	for _, row := range []struct {
		approvals int64
		acts      string
		status    payment.PayoutStatus
		calls     int // to the bank
	}{
		{1, "", payment.PayoutPending, 0},
		{1, "+boss=approved", payment.PayoutCompleted, 1},
		{1, "+boss=approved +boss=approved +other=approved -boss=invalid_state -other=invalid_state", payment.PayoutCompleted, 1},
		{1, "-boss=rejected -boss=rejected -other=rejected +boss=invalid_state", payment.PayoutCanceled, 0},
		{1, "+asker=forbidden_scope -asker=forbidden_scope", payment.PayoutPending, 0},
		{1, "+asker=forbidden_scope +boss=approved +asker=forbidden_scope", payment.PayoutCompleted, 1},
		{2, "+boss=required +boss=required", payment.PayoutPending, 0},
		{2, "+boss=required +asker=forbidden_scope", payment.PayoutPending, 0},
		{2, "+boss=required +other=approved", payment.PayoutCompleted, 1},
		{2, "+boss=required -other=rejected +third=invalid_state", payment.PayoutCanceled, 0},
		{2, "+boss=required -boss=rejected", payment.PayoutCanceled, 0},
	} {
		t.Run(fmt.Sprint(row.approvals, row.acts), func(t *testing.T) {
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				p := approvalOf(g, row.approvals)
				g.Send()
				g.WantBalances(coretest.Opening-10_00, 10_00)
				for act := range strings.FieldsSeq(row.acts) {
					name, want, _ := strings.Cut(act[1:], "=")
					var got payment.Payout
					var err error
					if act[0] == '+' {
						got, err = g.Payouts.Approve(t.Context(), p.Merchant, p.ID, actor.Author{Actor: actor.Credential(name)})
					} else {
						got, err = g.Payouts.Reject(t.Context(), p.Merchant, p.ID, actor.Author{Actor: actor.Credential(name), Reason: "no"})
					}
					answer := string(got.Approval)
					if err != nil {
						answer = string(problem.From(err).Kind)
					}
					if answer != want {
						t.Errorf("%s: %s", act, answer)
					}
				}
				g.Send()
				g.Jump(time.Minute)
				g.Send()
				if got := g.ReadPayout(p); got.Status != row.status {
					t.Errorf("the payout is %s, want %s", got.Status, row.status)
				}
				g.WantBank(row.calls, row.calls)
				g.WantProven()
			})
		})
	}
}

// A payout that waited for approval counts in the day and the night in which it is approved,
// and is approved only if there is space for it. Each step is at an hour of the first day's
// clock in São Paulo, 9 being the request of 10.00: an approval, or a payout of cents that
// needs none.
func TestApprovalCountsWhenItIsGiven(t *testing.T) {
	type step struct {
		hour   int
		amount int64  // 0: the approval
		want   string // the limit that refuses it
	}
	for _, row := range []struct {
		name   string
		limits limits.Payout
		steps  []step
	}{
		{"in the same day", limits.Payout{PerDay: cents(15_00)}, []step{{12, 5_00, ""}, {13, 0, ""}, {14, 1, limits.PerDay}, {24, 5_00, ""}}},
		{"on the next day", limits.Payout{PerDay: cents(12_00)}, []step{
			{23, 2_01, limits.PerDay}, {25, 3_00, ""}, {26, 0, limits.PerDay}, {49, 2_00, ""}, {50, 0, ""}, {51, 1, limits.PerDay}}},
		{"in the night", limits.Payout{PerNight: cents(12_00)}, []step{{20, 3_00, ""}, {21, 0, limits.PerNight}, {30, 0, ""}, {44, 5_00, ""}}},
		{"in a night with space", limits.Payout{PerNight: cents(12_00)}, []step{{20, 2_00, ""}, {21, 0, ""}, {22, 1, limits.PerNight}, {30, 5_00, ""}}},
		{"on another day, to the key", limits.Payout{PerKeyPerDay: cents(12_00)}, []step{
			{24, 3_00, ""}, {25, 0, limits.PerKeyPerDay}, {48, 2_00, ""}, {49, 0, ""}, {50, 1, limits.PerKeyPerDay}}},
		{"the count of the key", limits.Payout{CountPerKeyPerDay: new(int64(1))}, []step{
			{24, 1, ""}, {25, 0, limits.CountPerKeyPerDay}, {48, 0, ""}, {49, 1, limits.CountPerKeyPerDay}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				row.limits.ApprovalAbove = cents(5_00)
				g.SetLimits(limits.Limits{Payout: row.limits})
				p, _ := requestTo(g, "a", "r", 10_00)
				hour := 9 // [coretest.Start]
				for i, s := range row.steps {
					g.Jump(time.Duration(s.hour-hour) * time.Hour)
					hour = s.hour
					var got string
					changes := g.Changes(func() {
						if s.amount > 0 {
							_, got = requestTo(g, "a", fmt.Sprint(i), s.amount)
							return
						}
						_, err := g.Payouts.Approve(t.Context(), p.Merchant, p.ID, actor.Author{Actor: "credential:boss"})
						if problem.Is(err, problem.LimitExceeded) {
							got = problem.From(err).Limit
						} else {
							g.Must(err)
						}
					})
					if got != s.want || (changes == "") != (got != "") {
						t.Errorf("step %d: limit %q, want %q; changes\n%s", i, got, s.want, changes)
					}
					g.WantProven()
				}
				if _, err := g.Payouts.Cancel(t.Context(), p.Merchant, p.ID); err != nil {
					t.Error(err)
				}
				g.WantProven()
			})
		})
	}
}

// Approvals and new payouts at once never pass a limit together.
func TestApprovalsAndRequestsShareALimit(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.SetLimits(limits.Limits{Payout: limits.Payout{PerNight: cents(30_00), ApprovalAbove: cents(5_00)}})
		var waiting []payment.Payout
		for i := range 6 {
			p, _ := requestTo(g, "a", fmt.Sprint("waits ", i), 10_00)
			waiting = append(waiting, p)
		}
		g.Jump(12 * time.Hour) // 21:00
		g.Writer.Start()
		t.Cleanup(g.Writer.Stop)
		var wg sync.WaitGroup
		for i := range waiting {
			wg.Go(func() {
				_, err := g.Payouts.Approve(context.Background(), g.Merchant.ID, waiting[i].ID, actor.Author{Actor: "credential:boss"})
				if err != nil && !problem.Is(err, problem.LimitExceeded) {
					t.Error(err)
				}
			})
			wg.Go(func() {
				_, _, err := g.Payouts.Request(context.Background(), g.Merchant, coretest.PayoutRequest(fmt.Sprint("new ", i), 5_00))
				if err != nil && !problem.Is(err, problem.LimitExceeded) {
					t.Error(err)
				}
			})
		}
		g.Until(wg.Wait)
		used, err := g.Store.LimitsUsed(t.Context(), g.Merchant.ID, g.Clock.Now())
		g.Must(err)
		if used.Night.Amount > 30_00 || used.Night.Amount < 25_00 {
			t.Errorf("used in the night: %s of 30.00", used.Night.Amount.Decimal())
		}
		g.WantProven()
	})
}

// Two spellings of an operator's name are one person; key ids of credentials are exact.
func TestOneOperatorIsOnePerson(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := approvalOf(g, 2)
		for _, name := range []actor.Actor{"operator:André Silva", "operator:ANDRÉ SILVA", "operator: andre\u0301  silva ", "operator:André\u00a0Silva", "operator:\uff21ndré Silva", "operator:\u0410ndré Silva"} {
			got, err := g.Payouts.Approve(t.Context(), p.Merchant, p.ID, actor.Author{Actor: name})
			if err != nil || got.Approval != payment.ApprovalRequired {
				t.Errorf("%q: %s, %v", name, got.Approval, err)
			}
		}
		list, err := g.Store.Approvals(t.Context(), p.Merchant, p.ID)
		g.Must(err)
		if len(list) != 2 || list[1].Actor != "operator:André Silva" {
			t.Errorf("the record is %+v", list)
		}
		g.WantProven()
	})
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := approvalOf(g, 2)
		for _, key := range []string{"Key", "key"} {
			_, err := g.Payouts.Approve(t.Context(), p.Merchant, p.ID, actor.Author{Actor: actor.Credential(key)})
			g.Must(err)
		}
		if got := g.ReadPayout(p); got.Approval != payment.ApprovalApproved {
			t.Errorf("two credentials: %s", got.Approval)
		}
	})
}

// The changes of each decision, all of them.
func TestApprovalChanges(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		var p payment.Payout
		if got, want := g.Changes(func() { p = approvalOf(g, 1) }), coretest.Lines(waits); got != want {
			t.Errorf("changes\n%s\nwant\n%s", got, want)
		}
		got := g.Changes(func() {
			_, err := g.Payouts.Reject(t.Context(), p.Merchant, p.ID, actor.Author{Actor: "credential:boss", Reason: "no"})
			g.Must(err)
		})
		if want := coretest.Lines(rejected); got != want {
			t.Errorf("changes\n%s\nwant\n%s", got, want)
		}
		list, err := g.Store.Approvals(t.Context(), p.Merchant, p.ID)
		g.Must(err)
		if len(list) != 2 || list[0].Actor != "credential:asker" || list[0].Needed != 1 || list[1].Actor != "credential:boss" || list[1].CreatedAt.IsZero() {
			t.Errorf("the record is %+v", list)
		}
		g.WantProven()
	})
}

// A payout above no limit, or as large as the limit, needs no approval.
func TestApprovalIsNotNeeded(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.SetLimits(limits.Limits{Payout: limits.Payout{ApprovalAbove: cents(5_00)}})
		p := g.Payout("r", 5_00)
		if _, err := g.Payouts.Approve(t.Context(), p.Merchant, p.ID, actor.Author{Actor: "credential:boss"}); !problem.Is(err, problem.InvalidState) {
			t.Errorf("approve: %v", err)
		}
		if _, err := g.Payouts.Reject(t.Context(), p.Merchant, p.ID, actor.Author{Actor: "credential:boss"}); !problem.Is(err, problem.InvalidState) {
			t.Errorf("reject: %v", err)
		}
		for _, merchant := range []payment.ID{{}, p.Merchant} {
			if _, err := g.Payouts.Approve(t.Context(), merchant, payment.ID{1}, actor.Author{Actor: "credential:boss"}); !problem.Is(err, problem.NotFound) {
				t.Errorf("approve nothing: %v", err)
			}
		}
		g.Send()
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
	})
}

// A payout that nobody decided about is canceled after 72 hours, and the merchant can cancel
// it before.
func TestApprovalEnds(t *testing.T) {
	expire := func(g *coretest.Gateway) { g.T.Helper(); g.Run(g.Payouts.Expire) }
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := approvalOf(g, 1)
		g.Jump(72*time.Hour - time.Second)
		expire(g)
		g.WantPayout(p, payment.PayoutPending, payment.StepApproval)
		g.Jump(time.Second)
		if _, err := g.Payouts.Approve(t.Context(), p.Merchant, p.ID, actor.Author{Actor: "credential:boss"}); !problem.Is(err, problem.InvalidState) {
			t.Errorf("approve after 72 hours: %v", err)
		}
		expire(g)
		g.WantPayout(p, payment.PayoutCanceled, payment.StepDone)
		g.WantBalances(coretest.Opening, 0)
		g.WantEvents(payment.EventPayoutCanceled)
		g.Send()
		g.WantBank(0, 0)
		g.WantProven()
	})
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) { // the list of transfers is not read for long
		g.ReadFeeds()
		p, q := approvalOf(g, 1), approvalOfNext(g, "q")
		g.Jump(73 * time.Hour)
		expire(g)
		g.WantPayout(p, payment.PayoutPending, payment.StepApproval)
		if got, err := g.Payouts.Reject(t.Context(), q.Merchant, q.ID, actor.Author{Actor: "credential:boss", Reason: "no"}); err != nil || got.Status != payment.PayoutCanceled {
			t.Errorf("reject after 72 hours: %s, %v", got.Status, err)
		}
		g.Jump(30 * 24 * time.Hour)
		expire(g)
		g.WantPayout(p, payment.PayoutPending, payment.StepApproval)
		g.ReadFeeds()
		expire(g)
		g.WantPayout(p, payment.PayoutCanceled, payment.StepDone)
		g.WantBalances(coretest.Opening, 0)
		g.WantProven()
	})
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := approvalOf(g, 1)
		_, err := g.Payouts.Cancel(t.Context(), p.Merchant, p.ID)
		g.Must(err)
		if _, err := g.Payouts.Approve(t.Context(), p.Merchant, p.ID, actor.Author{Actor: "credential:boss"}); !problem.Is(err, problem.InvalidState) {
			t.Errorf("approve a canceled payout: %v", err)
		}
		g.Jump(73 * time.Hour)
		expire(g)
		g.WantEvents(payment.EventPayoutCanceled)
		g.WantBalances(coretest.Opening, 0)
		g.WantProven()
	})
}

// A payout that was approved and paid in a past that the database lacks is not canceled after 72
// hours: nothing shows that it is a copy, until transfers are listed.
func TestApprovalEndsOnceTransfersAreListed(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.ReadFeeds()
		p, q := approvalOf(g, 1), approvalOfNext(g, "q")
		g.Bank.Pay(processor.TransferRequest{ExternalID: p.ExternalID, Amount: p.Amount}, processor.TransferPaid)
		g.Jump(73 * time.Hour)
		g.Restart(nil)
		g.Run(g.Payouts.Expire)
		g.WantPayout(p, payment.PayoutPending, payment.StepApproval)
		g.ReadFeeds()
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		if g.Node.History() == 0 {
			t.Error("it is not recorded that the database is a copy")
		}
		g.Run(g.Payouts.Expire) // from now on, what was requested before is looked up first
		g.WantPayout(q, payment.PayoutProcessing, payment.StepUnknown)
		g.Jump(2 * g.Bank.Profiled.Transfer.QuietPeriod)
		g.LookUp()
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		g.WantPayout(q, payment.PayoutFailed, payment.StepDone)
		g.WantBalances(coretest.Opening-p.Amount, 0)
		g.WantCases()
		g.WantProven()
	})
}

// A payout that a restored database shows as not approved may have been paid: it is looked
// up, and never sent.
func TestApprovalAfterARestore(t *testing.T) {
	for _, paid := range []bool{true, false} {
		coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
			p := approvalOf(g, 1)
			if paid {
				g.Bank.Pay(processor.TransferRequest{ExternalID: p.ExternalID, Amount: 10_00}, processor.TransferPaid)
			}
			g.Execute("UPDATE installation SET epoch = epoch - 3")
			g.Heartbeat()
			_, err := g.Payouts.Reject(t.Context(), p.Merchant, p.ID, actor.Author{Actor: "credential:boss", Reason: "no"})
			g.Must(err)
			g.ClearAccount()
			for range 5 {
				g.LookUp()
				g.Send()
				g.Jump(g.Bank.Profiled.Transfer.QuietPeriod + time.Minute)
			}
			transfers := 0
			if paid {
				transfers = 1
				g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
			} else {
				g.WantPayout(p, payment.PayoutFailed, payment.StepDone)
				g.WantBalances(coretest.Opening, 0)
			}
			g.WantBank(0, transfers)
			g.WantCases()
			g.WantProven()
		})
	}
}

// A payout that was approved and sent after the backup was made does not wait for approval, though the
// decision is lost.
func TestApprovalThatARestoreLost(t *testing.T) {
	for _, state := range []processor.TransferState{processor.TransferPaid, processor.TransferProcessing} {
		coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
			p := approvalOf(g, 2)
			g.Bank.Pay(processor.TransferRequest{ExternalID: p.ExternalID, Amount: 10_00}, state)
			g.Execute("UPDATE installation SET epoch = epoch - 3")
			g.Heartbeat()
			g.ReadFeeds()
			got, err := g.Store.Payout(t.Context(), p.Merchant, p.ID)
			g.Must(err)
			if shown := string(wire.Payout(&got, false)); got.Status == payment.PayoutPending || !strings.Contains(shown, `"approval":"approved"`) {
				t.Errorf("the payout is shown as %s", shown)
			}
			if _, err := g.Payouts.Approve(t.Context(), p.Merchant, p.ID, actor.Author{Actor: "credential:boss"}); err != nil {
				t.Errorf("approved again: %v", err)
			}
			if _, err := g.Payouts.Reject(t.Context(), p.Merchant, p.ID, actor.Author{Actor: "credential:boss", Reason: "no"}); !problem.Is(err, problem.InvalidState) {
				t.Errorf("rejected: %v", err)
			}
			g.WantCases()
			g.WantProven()
		})
	}
}

// Of concurrent decisions one wins.
func TestApprovalUnderConcurrency(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := approvalOf(g, 2)
		g.Writer.Start()
		t.Cleanup(g.Writer.Stop)
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				var err error
				if i%2 == 0 {
					_, err = g.Payouts.Approve(context.Background(), p.Merchant, p.ID, actor.Author{Actor: actor.Credential(fmt.Sprint(i))})
				} else {
					_, err = g.Payouts.Reject(context.Background(), p.Merchant, p.ID, actor.Author{Actor: actor.Credential(fmt.Sprint(i)), Reason: "no"})
				}
				if err != nil && !problem.Is(err, problem.InvalidState) {
					t.Error(err)
				}
			})
		}
		g.Until(wg.Wait)
		list, err := g.Store.Approvals(t.Context(), p.Merchant, p.ID)
		g.Must(err)
		given, refused := 0, 0
		for i := range list {
			switch list[i].Action {
			case store.ApprovalGiven:
				given++
			case store.ApprovalRejected:
				refused++
			}
		}
		if approved := g.ReadPayout(p).Approval == payment.ApprovalApproved; refused > 1 || given > 2 || approved != (refused == 0) || approved != (given == 2) {
			t.Errorf("%d approved, %d rejected, the payout is %s", given, refused, g.ReadPayout(p).Approval)
		}
		g.WantProven()
	})
}

// A payout that cannot be decrypted has a case when its time ends, and delays no other.
func TestApprovalOfADamagedPayout(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		damaged := approvalOf(g, 1)
		other, _ := requestTo(g, "b", "other", 10_00)
		g.Damage("payouts", "beneficiary", "reference_id = 'r'")
		g.Jump(72 * time.Hour)
		g.Run(g.Payouts.Expire)
		g.WantPayout(other, payment.PayoutCanceled, payment.StepDone)
		g.WantCases(store.CaseDamaged)
		g.WantBalances(coretest.Opening-damaged.Amount, damaged.Amount)
		if due, err := g.Store.PayoutsUndecided(t.Context(), g.Clock.Now(), 10); err != nil || len(due) != 0 {
			t.Errorf("still due: %v, %v", due, err)
		}
		g.Send()
		g.WantBank(0, 0)
	})
}
