package payout_test

import (
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/limits"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
)

// forgeries are changes in the database that would let a payout leave without its two approvals, and
// the row that verify names.
var forgeries = []struct{ name, sql, table string }{
	{"two approvals by nobody", `INSERT INTO approvals SELECT merchant_id, payout_id, 1, 'approved', 'credential:x', '', 0, created_at, mac FROM approvals;
		INSERT INTO approvals SELECT merchant_id, payout_id, 2, 'approved', 'credential:y', '', 0, created_at, mac FROM approvals WHERE number = 0;
		UPDATE payouts SET approval = 'approved', step = 'queued', next_at = created_at WHERE reference_id = 'r'`, "approvals"},
	{"approved", "UPDATE payouts SET approval = 'approved', step = 'queued', next_at = created_at WHERE reference_id = 'r'", "payouts"},
	{"needs none", "UPDATE payouts SET approval = 'none', step = 'queued', next_at = created_at WHERE reference_id = 'r'", "payouts"},
	{"the hash of another payout", `UPDATE payouts SET approval = 'none', step = 'queued', next_at = created_at,
		approval_mac = (SELECT p.approval_mac FROM payouts p WHERE p.reference_id = 'beside') WHERE reference_id = 'r'`, "payouts"},
	{"due without approval", "UPDATE payouts SET step = 'queued', next_at = created_at WHERE reference_id = 'r'", ""},
	{"one approval is enough", "UPDATE approvals SET needed = 1", "approvals"},
	{"one approval is there", "INSERT INTO approvals SELECT merchant_id, payout_id, 1, 'approved', 'credential:x', '', 0, created_at, mac FROM approvals", "approvals"},
	{"the request is forgotten", "UPDATE approvals SET number = 1, action = 'approved'", "approvals"},
}

// A payout whose approval was changed in the database is not sent, has a case, and delays no other;
// no further approval helps it. Verify names the row.
func TestForgedApproval(t *testing.T) {
	for _, f := range forgeries {
		t.Run(f.name, func(t *testing.T) {
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				p := approvalOf(g, 2)
				beside, _ := requestTo(g, "b", "beside", 1_00)
				g.Execute(strings.Split(f.sql, ";")...)
				if _, err := g.Payouts.Approve(t.Context(), p.Merchant, p.ID, actor.Author{Actor: "credential:boss"}); err == nil {
					t.Error("it was approved")
				}
				g.Send()
				g.WantPayout(beside, payment.PayoutCompleted, payment.StepDone)
				g.WantBank(1, 1)
				if strings.Contains(f.sql, "queued") {
					g.WantPayout(p, payment.PayoutPending, payment.StepReview)
					g.WantCases(store.CaseDamaged)
				}
				proofs, err := g.Store.Verify(t.Context(), p.Merchant)
				g.Must(err)
				named := ""
				for _, proof := range proofs {
					if proof.Check == "hashes" {
						for _, d := range proof.Defects {
							named += d.ID + " " + d.Detail + "\n"
						}
					}
				}
				if f.table != "" && !strings.Contains(named, p.ID.String()+" a row of "+f.table) {
					t.Errorf("verify names %q", named)
				}
			})
		})
	}
}

// settingsChanged are changes in the database that lift a limit or redirect money.
var settingsChanged = []struct{ name, sql string }{
	{"no limits", "UPDATE merchants SET limits = '{}' WHERE number = 1"},
	{"another host", "UPDATE merchants SET webhook_hosts = 'evil.example' WHERE number = 1"},
	{"opened again", "UPDATE merchants SET closed_at = 1 WHERE number = 1"},
	{"another route", "INSERT INTO routes SELECT id, 'payout', 'PIX', 1, 'other', 0, 0, 0 FROM merchants WHERE number = 1"},
	{"no route", "DELETE FROM routes"},
	{"no price", "DELETE FROM prices"},
	{"a lower price", "UPDATE prices SET basis_points = 0"},
}

// If limits, hosts, routes or prices of a merchant were changed in the database, its new orders are
// refused, what was accepted goes on, and verify names it, until a person accepts them.
func TestChangedSettings(t *testing.T) {
	for _, row := range settingsChanged {
		t.Run(row.name, func(t *testing.T) {
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				g.SetPrice(payment.PIX, payment.Terms{BasisPoints: 99})
				g.SetLimits(limits.Limits{Payout: limits.Payout{PerDay: cents(50_00)}})
				before := g.Payout("before", 10_00)
				g.Execute(row.sql)
				m, err := g.Store.Merchant(t.Context(), g.Merchant.ID)
				g.Must(err)
				if _, _, err := g.Payouts.Request(t.Context(), m, coretest.PayoutRequest("r", 60_00)); !problem.Is(err, problem.Unavailable) {
					t.Errorf("payout: %v", err)
				}
				if _, _, err := g.Payins.Create(t.Context(), m, coretest.PayinRequest("r", "")); !problem.Is(err, problem.Unavailable) {
					t.Errorf("pay-in: %v", err)
				}
				if _, err := g.Merchants.SetLimits(t.Context(), m.ID, func(*limits.Limits) {}); !problem.Is(err, problem.Unavailable) {
					t.Errorf("a change makes the settings look sound: %v", err)
				}
				if _, replayed, err := g.Payouts.Request(t.Context(), m, coretest.PayoutRequest("before", 10_00)); err != nil || !replayed {
					t.Errorf("a repeated request: %v", err)
				}
				g.Send()
				g.WantPayout(before, payment.PayoutCompleted, payment.StepDone)
				proofs, err := g.Store.Verify(t.Context(), m.ID)
				g.Must(err)
				for _, p := range proofs {
					if p.Check == "hashes" && (len(p.Defects) != 1 || p.Defects[0].ID != m.ID.String()) {
						t.Errorf("verify names %+v", p.Defects)
					}
				}
				g.Must(g.Merchants.Accept(t.Context(), m.ID))
				m, err = g.Store.Merchant(t.Context(), m.ID)
				if err != nil || m.Damaged != nil {
					t.Errorf("after it was accepted: %v, %v", err, m.Damaged)
				}
			})
		})
	}
}
