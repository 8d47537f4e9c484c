package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

type payoutCommand struct {
	settings

	List    payoutList    `cmd:"" help:"List the payouts of a merchant, newest first."`
	Show    payoutShow    `cmd:"" help:"Show a payout: sends, cases, postings and the record of its approval; with --reveal its Pix key and its beneficiary, as an approver needs them."`
	Approve payoutApprove `cmd:"" help:"Approve a payout that needs approval."`
	Reject  payoutReject  `cmd:"" help:"Reject a payout that needs approval: it is canceled."`
}

// payoutDecision is who decides about which payout.
type payoutDecision struct {
	author

	ID string `arg:"" help:"The payout's id."`
}

type payoutApprove struct{ payoutDecision }

type payoutReject struct{ payoutDecision }

// decidedPayout is a payout about which was decided, and the record of its approval.
type decidedPayout struct {
	ID          string           `json:"id"`
	Merchant    string           `json:"merchant"`
	ReferenceID string           `json:"referenceId"`
	Status      string           `json:"status"`
	Approval    payment.Approval `json:"approval"`
	Amount      money.Cents      `json:"amount"`          // cents
	Recorded    bool             `json:"recorded"`        // by this command; else it was decided before
	Given       int64            `json:"approvalsGiven"`  // by different people
	Needed      int64            `json:"approvalsNeeded"` // of them
	Record      []approvalView   `json:"record"`
}

type approvalView struct {
	Action    store.ApprovalAction `json:"action"`
	Actor     actor.Actor          `json:"actor,omitempty"`
	Reason    string               `json:"reason,omitempty"`
	CreatedAt time.Time            `json:"createdAt"`
}

// Run approves a payout.
func (c *payoutApprove) Run(r *runner, root *commands) error {
	return c.decide(r, root, store.ApprovalGiven, func(a *app.Admin, p *payment.Payout, by actor.Author) (payment.Payout, error) {
		return a.Payouts.Approve(context.WithoutCancel(r.ctx), p.Merchant, p.ID, by)
	})
}

// Run rejects a payout.
func (c *payoutReject) Run(r *runner, root *commands) error {
	return c.decide(r, root, store.ApprovalRejected, func(a *app.Admin, p *payment.Payout, by actor.Author) (payment.Payout, error) {
		return a.Payouts.Reject(context.WithoutCancel(r.ctx), p.Merchant, p.ID, by)
	})
}

func (c *payoutDecision) decide(r *runner, root *commands, action store.ApprovalAction, act func(a *app.Admin, p *payment.Payout, by actor.Author) (payment.Payout, error)) error {
	by, err := c.named()
	if err != nil {
		return err
	}
	return r.admin(&root.Payout.settings, func(a *app.Admin) error {
		p, err := findPayout(r, a, c.ID)
		if err != nil {
			return err
		}
		if err := a.CheckDecisions(r.ctx); err != nil {
			return err
		}
		before, err := a.Store.Approvals(r.ctx, p.Merchant, p.ID)
		if err != nil {
			return err
		}
		if p, err = act(a, &p, by); err != nil {
			return err
		}
		v, err := viewDecided(r, a, &p)
		if err != nil {
			return err
		}
		v.Recorded = len(v.Record) > len(before)
		return r.out.show(v, func(w io.Writer) { v.write(w, action, by.Actor.Name()) })
	})
}

// findPayout finds a payout by its id.
func findPayout(r *runner, a *app.Admin, text string) (payment.Payout, error) {
	id, err := payment.ParseID(strings.TrimSpace(text))
	if err != nil {
		return payment.Payout{}, configError{fmt.Errorf("%q is not the id of a payout", text)}
	}
	p, err := a.Store.FindPayout(r.ctx, id)
	if isNotFound(err) {
		err = fmt.Errorf("payout %s not found", id)
	}
	return p, err
}

// by lists who did it, in order.
func (v *decidedPayout) by(action store.ApprovalAction) []string {
	var names []string
	for i := range v.Record {
		if v.Record[i].Action == action {
			names = append(names, v.Record[i].Actor.Shown())
		}
	}
	return names
}

// write prints what a command of a person did, and what is still needed. A decision that was
// made before is not made again: then it names who made it.
func (v *decidedPayout) write(w io.Writer, action store.ApprovalAction, person string) {
	done := "Approved as " + person
	if action == store.ApprovalRejected {
		done = "Rejected as " + person
	}
	if !v.Recorded {
		done = "Nothing changed, already " + string(action) + " by " + strings.Join(v.by(action), " and ")
		if len(v.by(action)) == 0 {
			done = "Nothing changed, already " + string(action) + " before a restore; who decided is lost"
		}
	}
	_, _ = fmt.Fprintf(w, "%s: payout %s of merchant %q, %s, is %s, approval %s", done, v.ID, v.Merchant, v.Amount.English(), v.Status, v.Approval)
	if v.Approval == payment.ApprovalRequired {
		_, _ = fmt.Fprintf(w, "; %d of %d approvals: another person is needed", v.Given, v.Needed)
	}
	_, _ = fmt.Fprintln(w, ".")
}

func viewDecided(r *runner, a *app.Admin, p *payment.Payout) (decidedPayout, error) {
	v := decidedPayout{ID: p.ID.String(), ReferenceID: p.ReferenceID, Status: string(p.Status), Approval: p.ShownApproval(), Amount: p.Amount, Record: []approvalView{}}
	m, err := a.Store.Merchant(r.ctx, p.Merchant)
	if err != nil {
		return v, err
	}
	v.Merchant = m.Name
	list, err := a.Store.Approvals(r.ctx, p.Merchant, p.ID)
	for i := range list {
		v.Record = append(v.Record, approvalView{list[i].Action, list[i].Actor, list[i].Reason, list[i].CreatedAt})
		v.Needed = max(v.Needed, list[i].Needed)
	}
	v.Given = int64(len(v.by(store.ApprovalGiven)))
	return v, err
}
