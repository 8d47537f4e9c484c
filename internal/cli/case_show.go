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
	"github.com/porteira/porteira/internal/review"
	"github.com/porteira/porteira/internal/store"
)

type caseShow struct {
	ID string `arg:"" help:"The case's id: porteira case list shows it."`
}

// casePostings is how many postings of a case's order are shown.
const casePostings = 100

// caseDetail is a case with everything that helps to decide. Amounts are cents.
type caseDetail struct {
	caseView

	Order       *caseOrder     `json:"order,omitempty"`
	Parts       []casePart     `json:"parts,omitempty"` // of a refund
	Sends       []caseSend     `json:"sends"`
	Postings    []casePosting  `json:"postings"`
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

// casePart is the part of a refund that gives one payment back.
type casePart struct {
	Number     int64      `json:"number"`
	Processor  string     `json:"processor"`
	PaymentID  string     `json:"paymentId"`
	ExternalID string     `json:"externalId"`
	Amount     int64      `json:"amount"`
	Step       string     `json:"step"`
	Outcome    string     `json:"outcome,omitempty"`
	Sends      int        `json:"sends"`
	SentAt     *time.Time `json:"sentAt,omitempty"` // the last one
	Evidence   string     `json:"evidence,omitempty"`
}

type caseSend struct {
	Number    int64     `json:"number"`
	Processor string    `json:"processor"`
	Outcome   string    `json:"outcome"`
	Evidence  string    `json:"evidence"`
	CreatedAt time.Time `json:"createdAt"`
}

type casePosting struct {
	Kind      string    `json:"kind"`
	Account   string    `json:"account"`
	Amount    int64     `json:"amount"`
	CreatedAt time.Time `json:"createdAt"`
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
	v := &caseDetail{caseView: viewCase(&found, name), Sends: []caseSend{}, Postings: []casePosting{}, Decisions: []caseDecision{}, Resolutions: []caseOption{}}
	if !found.Subject.IsZero() {
		if err := v.readSubject(r, a, &found); err != nil {
			return nil, err
		}
		if v.Order != nil && v.Order.Type == "receipt" {
			v.Order.findPayin(r, a)
		}
	}
	decisions, err := a.Store.Decisions(r.ctx, found.Merchant, found.ID)
	if err != nil {
		return nil, err
	}
	for i := range decisions {
		d := &decisions[i]
		v.Decisions = append(v.Decisions, caseDecision{
			Number: d.Number, Action: string(d.Action), Resolution: string(d.Resolution), Actor: d.Actor, Reason: d.Reason, Evidence: d.Evidence,
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

// readSubject reads the order or the receipt, and the postings about it. A subject that
// cannot be read is left out: the case may be about that.
func (v *caseDetail) readSubject(r *runner, a *app.Admin, of *store.Case) error {
	m, id := of.Merchant, of.Subject
	if p, err := a.Store.Payin(r.ctx, m, id); err == nil {
		v.Order = &caseOrder{
			Type: "payin", ID: p.ID.String(), ReferenceID: p.ReferenceID, ExternalID: p.ExternalID, Processor: p.Processor, ProcessorID: p.ProcessorID,
			Status: string(p.Status), Amount: int64(p.Amount), PaidAmount: int64(p.PaidAmount), EndToEndID: p.EndToEndID,
		}
	} else if p, err := a.Store.Payout(r.ctx, m, id); err == nil {
		v.Order = &caseOrder{
			Type: "payout", ID: p.ID.String(), ReferenceID: p.ReferenceID, ExternalID: p.ExternalID, Processor: p.Processor, ProcessorID: p.ProcessorID,
			Status: string(p.Status), Step: string(p.Step), Amount: int64(p.Amount), EndToEndID: p.EndToEndID,
		}
	} else if p, err := a.Store.Receipt(r.ctx, m, id); err == nil {
		v.Order = &caseOrder{
			Type: "receipt", ID: p.ID.String(), ExternalID: p.OrderID, Processor: p.Processor, ProcessorID: p.ExternalID,
			Amount: int64(p.Amount), EndToEndID: p.EndToEndID,
		}
	} else if d, _, err := a.Store.Dispute(r.ctx, m, id); err == nil {
		v.Order = &caseOrder{
			Type: "dispute", ID: d.ID.String(), ExternalID: d.ExternalID, Processor: d.Processor, ProcessorID: d.PaymentID, Status: string(d.Status), Amount: int64(d.Amount),
		}
	} else if p, err := a.Store.Refund(r.ctx, m, id); err == nil {
		v.Order = &caseOrder{
			Type: "refund", ID: p.ID.String(), ReferenceID: p.ReferenceID, ExternalID: p.ExternalID, PayinID: p.Payin.String(),
			Status: string(p.Status), Amount: int64(p.Amount), EndToEndID: p.EndToEndID,
		}
	} else if p, err := a.Store.DamagedOrder(r.ctx, m, id); err == nil {
		v.Order = &caseOrder{
			Type: p.Type, ID: id.String(), ReferenceID: p.ReferenceID, ExternalID: p.ExternalID, Processor: p.Processor, ProcessorID: p.ProcessorID,
			Status: p.Status, Step: p.Step, Amount: int64(p.Amount),
		}
	}
	parts, err := a.Store.RefundParts(r.ctx, m, id)
	if err != nil && of.Kind != store.CaseDamaged { // the case has their external ids
		return err
	}
	for i := range parts {
		p := &parts[i]
		part := casePart{
			Number: p.Number, Processor: p.Processor, PaymentID: p.PaymentID, ExternalID: p.ExternalID, Amount: int64(p.Amount),
			Step: string(p.Step), Outcome: string(p.Outcome), Sends: p.Sends, Evidence: p.Evidence,
		}
		if !p.SentAt.IsZero() {
			part.SentAt = &p.SentAt
		}
		v.Parts = append(v.Parts, part)
	}
	sends, err := a.Store.Sends(r.ctx, m, id)
	if err != nil {
		return err
	}
	for i := range sends {
		s := &sends[i]
		v.Sends = append(v.Sends, caseSend{s.Number, s.Processor, string(s.Outcome), s.Evidence, s.CreatedAt})
	}
	charges, err := a.Store.Charges(r.ctx, m, id)
	if err != nil {
		return err
	}
	for i := range charges {
		s := &charges[i]
		v.Sends = append(v.Sends, caseSend{s.Number, s.Account, s.Outcome, s.Cause, s.CreatedAt})
	}
	postings, err := a.Store.PostingsAbout(r.ctx, m, id, casePostings)
	for i := range postings {
		p := &postings[i]
		v.Postings = append(v.Postings, casePosting{string(p.Kind), string(p.Account), int64(p.Amount), p.CreatedAt})
	}
	return err
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
			option.Waiting = proposal.Actor
		default:
			continue
		}
		list = append(list, option)
	}
	if proposal != nil {
		effect := "withdraws the proposal"
		if outdated {
			effect += " of " + proposal.Actor + ": since then the order was sent again, or the processor has reported on it"
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
	table(w, slices.DeleteFunc(rows, func(row []string) bool { return row[1] == "" }))
	_, _ = fmt.Fprintf(w, "\n%s\n", oneLine(v.Text))
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
			persons = " Two persons: one proposes, another confirms with the same command."
		}
		_, _ = fmt.Fprintf(w, "  %s: %s.%s\n    %s\n", o.How, o.Effect, persons, o.Command)
	}
}

// printCaseRows prints parts, sends, postings and decisions, if there are any.
func printCaseRows(w io.Writer, v *caseDetail) {
	section := func(title string, rows [][]string) {
		if len(rows) > 0 {
			_, _ = fmt.Fprintf(w, "\n%s:\n", title)
			table(w, rows)
		}
	}
	var rows [][]string
	for _, p := range v.Parts {
		sent := ""
		if p.SentAt != nil {
			sent = ", the last at " + stamp(*p.SentAt)
		}
		rows = append(rows, []string{
			fmt.Sprintf("  %d", p.Number), p.Processor, p.ExternalID, "of payment " + p.PaymentID, money.Cents(p.Amount).English(),
			strings.TrimSpace(p.Step + " " + p.Outcome), fmt.Sprintf("sends: %d%s", p.Sends, sent), p.Evidence,
		})
	}
	section("Parts", rows)
	rows = nil
	for _, s := range v.Sends {
		rows = append(rows, []string{fmt.Sprintf("  %d", s.Number), stamp(s.CreatedAt), s.Processor, s.Outcome, s.Evidence})
	}
	section("Sends", rows)
	rows = nil
	for _, p := range v.Postings {
		rows = append(rows, []string{"  " + stamp(p.CreatedAt), p.Kind, p.Account, money.Cents(p.Amount).Decimal()})
	}
	section("Postings", rows)
	rows = nil
	for _, d := range v.Decisions {
		rows = append(rows, []string{fmt.Sprintf("  %d", d.Number), stamp(d.CreatedAt), d.Actor, d.Action, d.Resolution + review.Flags(d.Params), d.Reason, d.Evidence})
	}
	section("Decisions", rows)
}
