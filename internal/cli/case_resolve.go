package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/review"
	"github.com/porteira/porteira/internal/store"
)

type caseResolve struct {
	author

	ID         string `arg:""                                                                help:"The case's id: porteira case list shows it."`
	How        string `help:"Resolution; porteira case show ID lists the possible ones."      placeholder:"RESOLUTION"                          required:""`
	Evidence   string `help:"The proof, such as a line of the processor's statement."    placeholder:"TEXT"`
	Order      string `help:"The pay-in that unapplied money pays; without it the money becomes available." placeholder:"PAYIN"`
	Merchant   string `help:"The merchant whose money it is: its name or id."                        placeholder:"NAME"`
	EndToEndID string `help:"The Pix id of a payout that was paid."                           name:"end-to-end-id"                              placeholder:"ID"`
}

// resolved is a recorded decision.
type resolved struct {
	caseView

	Action string `json:"action"`             // resolved, proposed, confirmed, withdrawn
	Rest   string `json:"restCase,omitempty"` // the case about the money that the order did not need
}

// Run records a decision about a case.
func (c *caseResolve) Run(r *runner, root *commands) error {
	by, err := c.named()
	if err != nil {
		return err
	}
	return r.admin(&root.Case.settings, func(a *app.Admin) error {
		found, err := findCase(r, a, c.ID)
		if err != nil {
			return err
		}
		request := review.Request{
			Case: found.ID, How: store.Resolution(c.How), Actor: by.Actor, Reason: by.Reason, Evidence: c.Evidence, EndToEndID: strings.TrimSpace(c.EndToEndID),
		}
		if c.Order != "" {
			if request.Order, err = payment.ParseID(strings.TrimSpace(c.Order)); err != nil {
				return configError{fmt.Errorf("--order must be the id of a pay-in, not %q", c.Order)}
			}
		}
		if c.Merchant != "" {
			if request.Merchant, err = merchantOf(r, a, c.Merchant); err != nil {
				return err
			}
		}
		if err := a.CheckDecisions(r.ctx); err != nil {
			return err
		}
		result, err := a.Reviews.Resolve(r.ctx, request)
		if err != nil {
			return err
		}
		m, err := a.Store.Merchant(r.ctx, found.Merchant)
		if err != nil {
			return err
		}
		v := resolved{caseView: viewCase(&result.Case, m.Name), Action: string(result.Action)}
		if !result.Rest.IsZero() {
			v.Rest = result.Rest.String()
		}
		return r.out.show(v, func(w io.Writer) { printResolved(w, &v, c.How) })
	})
}

// merchantOf is the merchant of a name or, as a proposal shows it, of an id.
func merchantOf(r *runner, a *app.Admin, text string) (payment.ID, error) {
	if id, err := payment.ParseID(strings.TrimSpace(text)); err == nil {
		m, err := a.Store.Merchant(r.ctx, id)
		if isNotFound(err) {
			err = fmt.Errorf("merchant %s not found: porteira merchant list lists all merchants", id)
		}
		return m.ID, err
	}
	m, err := merchantNamed(r, a, text)
	return m.ID, err
}

// proposedText says what a second person must do.
func proposedText(what string) string {
	return "Proposed: " + what + ". Nothing has changed yet: another person must confirm it with the same command and another --as."
}

func printResolved(w io.Writer, v *resolved, how string) {
	switch store.DecisionAction(v.Action) {
	case store.DecisionProposed:
		_, _ = fmt.Fprintln(w, proposedText(how))
	case store.DecisionWithdrawn:
		_, _ = fmt.Fprintln(w, "Withdrew the proposal. The case is open.")
	default:
		_, _ = fmt.Fprintf(w, "Resolved case %s: %s.\n", v.ID, how)
	}
	if v.Rest != "" {
		_, _ = fmt.Fprintf(w, "The order did not need all of the money; the rest has case %s.\n", v.Rest)
	}
}
