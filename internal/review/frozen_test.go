package review_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/review"
	"github.com/porteira/porteira/internal/store"
)

// endWait asks to end the wait of the account, as a person.
func (d *desk) endWait(by actor.Actor) (review.Result, error) {
	return d.reviews.EndWait(d.T.Context(), coretest.BankName, review.Request{Actor: by, Reason: "compared", Evidence: "statement of 20/11"})
}

// Two people let the payouts of an account continue: decisions, which verify checks.
func TestTwoPeopleEndTheWait(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		if _, err := d.endWait("operator:ana"); !problem.Is(err, problem.InvalidState) {
			t.Errorf("of an account that does not wait: %v", err)
		}
		d.Bank.Unlisted = true
		d.ColdStart()
		want := func(by actor.Actor, frozen bool, changes string) {
			t.Helper()
			got := strings.ReplaceAll(d.Changes(func() { _, err := d.endWait(by); d.Must(err) }), fmt.Sprint(d.Node.History()), "H")
			if got != coretest.Lines(changes) {
				t.Errorf("%s changes %s", by, got)
			}
			d.Heartbeat()
			wantFrozen(d, frozen)
		}
		want("operator:ana", true, `
			+feeds transfers
			+cases account_frozen 0 history:H processor:bank
			+decisions proposed compared operator:ana`)
		if _, err := d.endWait("operator:АNA"); !problem.Is(err, problem.InvalidState) { // Cyrillic
			t.Errorf("the same person: %v", err)
		}
		want("operator:bia", false, `
			feeds cleared:0→H cleared_at:-→now
			cases closed_at:-→now resolution:→compared
			+decisions confirmed compared operator:bia`)
		d.WantCases()
		d.WantProven()
		if _, err := d.endWait("operator:ana"); !problem.Is(err, problem.InvalidState) {
			t.Errorf("again: %v", err)
		}
		d.Execute("UPDATE decisions SET evidence = 'none'")
		proofs, err := d.Store.Verify(t.Context(), payment.ID{})
		d.Must(err)
		if !slices.ContainsFunc(proofs, func(p store.Proof) bool { return p.Check == "decisions" && len(p.Defects) > 0 }) {
			t.Error("a changed decision is not found")
		}
	})
}

// A proposal counts for its start alone, and its case closes once the lists have been read.
func TestProposalToEndTheWaitIsOutdated(t *testing.T) {
	t.Parallel()
	d := newDesk(coretest.New(t, "sqlite"))
	d.ColdStart()
	first, err := d.endWait("operator:ana")
	d.Must(err)
	d.ColdStart()
	if _, err := d.endWait("operator:bia"); err != nil {
		t.Fatal(err)
	}
	r := request(&first.Case, store.ResolvedCompared)
	r.Actor = "operator:caio"
	d.refused(r, problem.InvalidState)
	wantFrozen(d, true)
	d.Clear()
	d.WantCases()
}
