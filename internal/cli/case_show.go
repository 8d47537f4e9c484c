package cli

import (
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/query"
	"github.com/porteira/porteira/internal/review"
	"github.com/porteira/porteira/internal/store"
)

type caseShow struct {
	ID string `arg:"" help:"The case's id: porteira case list shows it."`
}

// caseDetail is a case with everything that helps to decide. Amounts are cents.
type caseDetail struct {
	caseView

	Order *caseOrder `json:"order,omitempty"`
	subjectView

	Compare     []compareView  `json:"compare,omitempty"` // with the processor's panel or statement
	Decisions   []caseDecision `json:"decisions"`
	Resolutions []caseOption   `json:"resolutions"`
}

// caseOrder is the order, receipt, dispute or refund that a case is about. Of a receipt that names no
// order, Merchant is the one for which this gateway derived the external id, and PayinID its pay-in
// with that id, if it was requested since.
type caseOrder struct {
	Type        string `json:"type"` // payin, payout, receipt, dispute, refund
	ID          string `json:"id"`
	ReferenceID string `json:"referenceId,omitempty"`
	ExternalID  string `json:"externalId"`
	Processor   string `json:"processor,omitempty"`
	ProcessorID string `json:"processorId,omitempty"`
	PayinID     string `json:"payinId,omitempty"` // of a refund or a receipt
	Merchant    string `json:"merchant,omitempty"`
	Status      string `json:"status,omitempty"`
	Step        string `json:"step,omitempty"`
	Amount      int64  `json:"amount"`
	PaidAmount  int64  `json:"paidAmount,omitempty"`
	EndToEndID  string `json:"endToEndId,omitempty"`
}

type caseDecision struct {
	Number     int64        `json:"number"`
	Action     string       `json:"action"`
	Resolution string       `json:"resolution"`
	Actor      string       `json:"actor"`
	Reason     string       `json:"reason"`
	Evidence   string       `json:"evidence"`
	Params     store.Params `json:"params"`
	CreatedAt  time.Time    `json:"createdAt"`
	Hash       string       `json:"hash"` // hexadecimal
}

// caseOption is a possible resolution, and the command for it.
type caseOption struct {
	How     string `json:"how"`
	Effect  string `json:"effect"`
	Persons int    `json:"persons"`
	Waiting string `json:"proposedBy,omitempty"` // another person confirms it
	Command string `json:"command"`
}

// Run shows a case.
func (c *caseShow) Run(r *runner, root *commands) error {
	return r.admin(&root.Case.settings, func(a *app.Admin) error {
		v, err := c.read(r, a)
		if err != nil {
			return err
		}
		return r.out.show(v, func(w io.Writer) { printCase(w, v) })
	})
}

// compareView is money at a processor that a case is about. Personal data is masked.
type compareView struct {
	What        string     `json:"what"` // payment, charge, transfer, refund or entry
	Account     string     `json:"account"`
	ExternalID  string     `json:"externalId,omitempty"`
	ProcessorID string     `json:"processorId,omitempty"`
	EndToEndID  string     `json:"endToEndId,omitempty"`
	Amount      int64      `json:"amount,omitempty"`
	At          *time.Time `json:"at,omitempty"`
	Party       string     `json:"party,omitempty"` // the payer, or the receiver
	PIXKey      string     `json:"pixKey,omitempty"`
}

func viewCompare(list []query.Movement) (views []compareView) {
	for i := range list {
		m := &list[i]
		views = append(views, compareView{m.What, m.Account, m.ExternalID, m.ProcessorID, m.EndToEndID, int64(m.Amount), timeIfAny(m.At), m.Party, m.PIXKey})
	}
	return views
}

// printCompare prints each movement on lines of its own: ids are long.
func printCompare(w io.Writer, list []compareView) {
	if len(list) == 0 {
		return
	}
	_, _ = fmt.Fprintln(w, "\nCompare with the processor's panel or statement:")
	for i := range list {
		v := &list[i]
		at, ids := "", [][]string{{"    endToEndId", v.EndToEndID}, {"    processor id", v.ProcessorID}, {"    external id", v.ExternalID}, {"    Pix key", v.PIXKey}, {"    of or to", v.Party}}
		if v.At != nil {
			at = stamp(*v.At)
		}
		if v.ProcessorID == v.EndToEndID {
			ids[1][1] = ""
		}
		_, _ = fmt.Fprintf(w, "  %s at %s, %s, %s\n", v.What, v.Account, money.Cents(v.Amount).English(), at)
		pairs(w, ids)
	}
}

func (c *caseShow) read(r *runner, a *app.Admin) (*caseDetail, error) {
	found, err := findCase(r, a, c.ID)
	if err != nil {
		return nil, err
	}
	m, err := a.Store.Merchant(r.ctx, found.Merchant)
	if err != nil {
		return nil, err
	}
	name := m.Name
	if found.Merchant.IsZero() {
		name = ""
	}
	v := &caseDetail{caseView: viewCase(&found, name), subjectView: subjectView{Sends: []sendView{}, Postings: []postingView{}}, Decisions: []caseDecision{}, Resolutions: []caseOption{}}
	var subject *query.Subject
	if !found.Subject.IsZero() {
		if subject, err = v.readSubject(r, a, &found); err != nil {
			return nil, err
		}
		if v.Order != nil && v.Order.Type == "receipt" {
			v.Order.findPayin(r, a)
		}
	}
	compare, err := query.Compare(r.ctx, a.Store, &found, subject)
	if err != nil {
		return nil, err
	}
	v.Compare = viewCompare(compare)
	decisions, err := a.Store.Decisions(r.ctx, found.Merchant, found.ID)
	if err != nil {
		return nil, err
	}
	for i := range decisions {
		d := &decisions[i]
		v.Decisions = append(v.Decisions, caseDecision{
			Number: d.Number, Action: string(d.Action), Resolution: string(d.Resolution), Actor: d.Actor.Shown(), Reason: d.Reason, Evidence: d.Evidence,
			Params: d.Params, CreatedAt: d.CreatedAt, Hash: hex.EncodeToString(d.Hash),
		})
	}
	if found.ClosedAt.IsZero() {
		possible, err := a.Reviews.Possible(r.ctx, &found)
		if err != nil {
			return nil, err
		}
		proposal, outdated := review.Proposal(decisions), false
		if proposal != nil {
			if outdated, err = a.Reviews.Outdated(r.ctx, &found, proposal); err != nil {
				return nil, err
			}
		}
		v.Resolutions = caseOptions(&found, possible, proposal, outdated)
	}
	return v, nil
}

// findCase finds a case by its id.
func findCase(r *runner, a *app.Admin, text string) (store.Case, error) {
	unknown := fmt.Errorf("case %q not found: porteira case list lists open cases with their ids", text)
	id, err := payment.ParseID(strings.TrimSpace(text))
	if err != nil {
		return store.Case{}, configError{fmt.Errorf("%q is not the id of a case: porteira case list lists open cases with their ids", text)}
	}
	v, err := a.Store.FindCase(r.ctx, id)
	if isNotFound(err) {
		err = unknown
	}
	return v, err
}

// readSubject reads what the case is about. A subject that cannot be read is left out: the case may
// be about that, or about something without a row.
func (v *caseDetail) readSubject(r *runner, a *app.Admin, of *store.Case) (*query.Subject, error) {
	s, err := query.Explain(r.ctx, a.Store, of.Merchant, of.Subject)
	if err != nil {
		if isNotFound(err) {
			err = nil
		}
		return nil, err
	}
	s.Cases = slices.DeleteFunc(s.Cases, func(other store.Case) bool { return other.ID == of.ID })
	v.Order, v.subjectView = orderOf(s), viewSubject(s)
	return s, nil
}

// findPayin finds the merchant and the pay-in of a receipt by its external id: a restored backup may
// have lacked the pay-in when the money came, and the merchant has requested it again, or can.
func (o *caseOrder) findPayin(r *runner, a *app.Admin) {
	owner, err := a.Store.MerchantOf(r.ctx, o.ExternalID)
	if err != nil || owner.IsZero() {
		return
	}
	if m, err := a.Store.Merchant(r.ctx, owner); err == nil {
		o.Merchant = m.Name
	}
	if p, _, err := a.Store.PayinByExternalID(r.ctx, owner, o.ExternalID); err == nil {
		o.PayinID, o.ReferenceID, o.Status = p.ID.String(), p.ReferenceID, string(p.Status)
	}
}

// caseOptions are the resolutions of an open case with the commands for them. While a
// proposal waits, they are to confirm or to withdraw it; one that is outdated can only be withdrawn.
func caseOptions(v *store.Case, possible []review.Option, proposal *store.Decision, outdated bool) []caseOption {
	list := []caseOption{}
	for _, o := range possible {
		option := caseOption{How: string(o.How), Effect: resolutionTexts[resolutionOf{v.Kind, o.How}], Persons: o.Persons, Command: resolveCommand(v, o.How)}
		if o.Evidence {
			option.Command += " --evidence TEXT"
		}
		switch {
		case proposal == nil:
			option.Command += inputs(&o)
		case proposal.Resolution == o.How && !outdated:
			option.Command += review.Flags(proposal.Params)
			option.Waiting = proposal.Actor.Shown()
		default:
			continue
		}
		list = append(list, option)
	}
	if proposal != nil {
		effect := "withdraws the proposal"
		if outdated {
			effect += " of " + proposal.Actor.Shown() + ": since then the order was sent again, or the processor has reported on it"
		}
		list = append(list, caseOption{How: string(review.Withdraw), Effect: effect, Persons: 1, Command: resolveCommand(v, review.Withdraw)})
	}
	return list
}

func resolveCommand(v *store.Case, how store.Resolution) string {
	return fmt.Sprintf("porteira case resolve %s --how %s --as NAME --reason TEXT", v.ID, how)
}

// inputs are the options of a resolution.
func inputs(o *review.Option) (text string) {
	if o.EndToEndID {
		text += " --end-to-end-id ID"
	}
	if o.Named != nil {
		return text + " --merchant " + o.Named.Merchant.String() + " --order " + o.Named.Order.String()
	}
	if o.Merchant {
		text += " --merchant NAME"
	}
	if o.Order {
		text += " [--order PAYIN]"
	}
	return text
}

func printCase(w io.Writer, v *caseDetail) {
	rows := [][]string{{"case", v.ID}, {"kind", v.Kind}, {"merchant", v.Merchant}, {"opened", stamp(v.CreatedAt)}}
	if v.Amount != 0 {
		rows = append(rows, []string{"amount", money.Cents(v.Amount).English()})
	}
	if v.ClosedAt != nil {
		rows = append(rows, []string{"closed", stamp(*v.ClosedAt) + ", " + v.Resolution})
	}
	for _, effect := range stopTexts(&v.caseView) {
		rows = append(rows, []string{"stops", effect})
	}
	if o := v.Order; o != nil {
		rows = append(rows, []string{o.Type, o.ID}, []string{"  reference", o.ReferenceID}, []string{"  externalId", o.ExternalID},
			[]string{"  merchant", o.Merchant}, []string{"  payin", o.PayinID},
			[]string{"  processor", strings.TrimSpace(o.Processor + " " + o.ProcessorID)}, []string{"  status", strings.TrimSpace(o.Status + " " + o.Step)},
			[]string{"  amount", money.Cents(o.Amount).English()}, []string{"  endToEndId", o.EndToEndID})
	}
	pairs(w, rows)
	_, _ = fmt.Fprintf(w, "\n%s\n", oneLine(v.Text))
	printCompare(w, v.Compare)
	printCaseRows(w, v)
	if len(v.Resolutions) == 0 {
		return
	}
	_, _ = fmt.Fprintln(w, "\nPossible resolutions:")
	for _, o := range v.Resolutions {
		persons := ""
		switch {
		case o.Waiting != "":
			persons = " Proposed by " + oneLine(o.Waiting) + "; another person confirms it."
		case o.Persons > 1:
			persons = " Two people: one proposes, another confirms with the same command."
		}
		_, _ = fmt.Fprintf(w, "  %s: %s.%s\n    %s\n", o.How, o.Effect, persons, o.Command)
	}
}

// printCaseRows prints what belongs to the subject, and decisions.
func printCaseRows(w io.Writer, v *caseDetail) {
	v.print(w)
	var rows [][]string
	for _, d := range v.Decisions {
		rows = append(rows, []string{fmt.Sprintf("  %d", d.Number), stamp(d.CreatedAt), d.Actor, d.Action, d.Resolution + review.Flags(d.Params), d.Reason, d.Evidence})
	}
	section(w, "Decisions", rows)
}
