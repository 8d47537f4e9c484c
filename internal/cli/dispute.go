package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/query"
	"github.com/porteira/porteira/internal/store"
)

type disputeCommand struct {
	settings

	List  disputeList  `cmd:"" help:"List disputes, newest first."`
	Show  disputeShow  `cmd:"" help:"Show a dispute and its answers."`
	Files disputeFiles `cmd:"" help:"Write the defense of a dispute to files, for the processor's panel."`
}

type disputeList struct {
	listFlags

	Status payment.DisputeStatus `help:"Only those with this status." placeholder:"STATUS"`
}

type disputeShow struct {
	ID string `arg:"" help:"The dispute's id."`
}

type disputeFiles struct {
	ID string `arg:"" help:"The dispute's id."`
	To string `help:"The folder, which is created." placeholder:"FOLDER" required:""`
}

// disputeView is a dispute as the commands show it.
type disputeView struct {
	ID         string                `json:"id"`
	Payin      string                `json:"payinId"`
	Merchant   string                `json:"merchant"`
	Reference  string                `json:"referenceId,omitempty"` // if one dispute is shown
	Processor  string                `json:"processor"`
	ExternalID string                `json:"externalId"`
	PaymentID  string                `json:"paymentId,omitempty"`
	Kind       payment.DisputeKind   `json:"kind"`
	Status     payment.DisputeStatus `json:"status"`
	Amount     money.Cents           `json:"amount"`           // cents
	Taken      money.Cents           `json:"takenAmount"`      // cents
	Reason     string                `json:"reason,omitempty"` // the processor's
	RespondBy  *time.Time            `json:"respondBy,omitempty"`
	Answers    []answerView          `json:"answers,omitempty"`
}

type answerView struct {
	Action   payment.AnswerAction `json:"action"`
	Step     payment.PayoutStep   `json:"step"`
	Outcome  string               `json:"outcome,omitempty"`
	Evidence string               `json:"evidence,omitempty"`
	At       time.Time            `json:"createdAt"`
}

func viewDispute(d *payment.Dispute) disputeView {
	v := disputeView{
		ID: d.ID.String(), Payin: d.Payin.String(), Processor: d.Processor, ExternalID: d.ExternalID, PaymentID: d.PaymentID,
		Kind: d.Kind, Status: d.Status, Amount: d.Amount, Taken: d.InUse(), Reason: d.Reason,
	}
	if !d.RespondBy.IsZero() {
		v.RespondBy = &d.RespondBy
	}
	return v
}

func (v *disputeView) write(w io.Writer) {
	respondBy := "-"
	if v.RespondBy != nil {
		respondBy = stamp(*v.RespondBy)
	}
	_, _ = fmt.Fprintf(w, "%s  %-10s  %-9s  %s, taken %s  until %s  pay-in %s, at %s %s\n",
		v.ID, v.Kind, v.Status, v.Amount.English(), v.Taken.English(), respondBy, v.Payin, v.Processor, v.ExternalID)
	_, _ = fmt.Fprintf(w, "  merchant %q, reference %s\n", v.Merchant, v.Reference)
	if v.Reason != "" {
		_, _ = fmt.Fprintf(w, "  reason: %s\n", oneLine(v.Reason))
	}
	for _, a := range v.Answers {
		state := string(a.Step)
		if a.Outcome != "" {
			state += ", " + a.Outcome
		}
		if a.Evidence != "" {
			state += " (" + oneLine(a.Evidence) + ")"
		}
		_, _ = fmt.Fprintf(w, "  %s  %s: %s\n", stamp(a.At), a.Action, state)
	}
}

// Run lists disputes.
func (c *disputeList) Run(r *runner, root *commands) error {
	status, err := checkStatus(c.Status, payment.DisputeStatuses)
	if err != nil {
		return err
	}
	return list(r, &root.Dispute.settings, &c.listFlags, lister[store.DefendedDispute, disputeView]{
		Filter: query.Filter{Status: status}, read: query.Disputes,
		head: []string{"CREATED", "ID", "KIND", "STATUS", "AMOUNT", "RESPOND BY", "MERCHANT"}, cut: [][]int{{6}}, none: "No disputes.",
		show: func(o *store.DefendedDispute, names map[payment.ID]string, now time.Time) (disputeView, []string, error) {
			d, v := &o.Dispute, viewDispute(&o.Dispute)
			v.Merchant = names[d.Merchant]
			return v, []string{tableTime(d.CreatedAt, now), d.ID.String(), string(d.Kind), string(d.Status), d.Amount.Decimal(), tableTime(d.RespondBy, now), v.Merchant}, nil
		},
	})
}

// find reads a dispute and its answers.
func findDispute(r *runner, a *app.Admin, text string) (d payment.Dispute, answers []payment.DisputeAnswer, err error) {
	id, err := payment.ParseID(strings.TrimSpace(text))
	if err != nil {
		return d, nil, configError{fmt.Errorf("%q is not the id of a dispute", text)}
	}
	if d, err = a.Store.FindDispute(r.ctx, id); isNotFound(err) {
		return d, nil, fmt.Errorf("dispute %s not found", id)
	}
	if err == nil {
		answers, err = a.Store.DisputeAnswers(r.ctx, d.Merchant, d.ID)
	}
	return d, answers, err
}

// Run shows a dispute.
func (c *disputeShow) Run(r *runner, root *commands) error {
	return r.admin(&root.Dispute.settings, func(a *app.Admin) error {
		d, answers, err := findDispute(r, a, c.ID)
		if err != nil {
			return err
		}
		v := viewDispute(&d)
		m, err := a.Store.Merchant(r.ctx, d.Merchant)
		if err != nil {
			return err
		}
		v.Merchant = m.Name
		if p, err := a.Store.FindPayin(r.ctx, d.Payin); err == nil { // its row may be damaged
			v.Reference = p.ReferenceID
		}
		for i := range answers {
			v.Answers = append(v.Answers, answerView{answers[i].Action, answers[i].Step, answers[i].Outcome, answers[i].Evidence, answers[i].CreatedAt})
		}
		return r.out.show(v, v.write)
	})
}

// Run writes the defense to files: its text and its documents, named by their numbers, as a
// name from outside could be a path.
func (c *disputeFiles) Run(r *runner, root *commands) error {
	return r.admin(&root.Dispute.settings, func(a *app.Admin) error {
		d, answers, err := findDispute(r, a, c.ID)
		if err != nil {
			return err
		}
		for i := range answers {
			if answers[i].Action != payment.AnswerDefend {
				continue
			}
			defense, contents, err := a.Store.DefenseFiles(r.ctx, &answers[i])
			if err != nil {
				return err
			}
			files, err := writeDefense(c.To, defense, contents)
			if err != nil {
				return err
			}
			return r.out.show(files, func(w io.Writer) { _, _ = fmt.Fprintln(w, strings.Join(files, "\n")) })
		}
		return fmt.Errorf("dispute %s has no defense", d.ID)
	})
}

// extensions of the types that a defense may have.
var extensions = map[string]string{"application/pdf": ".pdf", "image/png": ".png", "image/jpeg": ".jpg"}

func writeDefense(folder string, defense *payment.Defense, contents [][]byte) (files []string, err error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	write := func(name string, content []byte) {
		path := filepath.Join(folder, name)
		files = append(files, path)
		f, failed := app.CreateFile(path)
		if failed == nil {
			_, failed = f.Write(content)
			failed = errors.Join(failed, f.Close())
		}
		err = errors.Join(err, failed)
	}
	write("defense.txt", []byte(defense.Text))
	for i, f := range defense.Files {
		write(fmt.Sprintf("file-%d%s", i+1, extensions[f.Type]), contents[i])
	}
	return files, err
}
