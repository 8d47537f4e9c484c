package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

type caseCommand struct {
	settings

	List    caseList    `cmd:"" help:"List open cases: those that stop payouts first, then the oldest; or closed ones."`
	Show    caseShow    `cmd:"" help:"Show a case: what happened, what to check, and how it can be resolved."`
	Resolve caseResolve `cmd:"" help:"Resolve a case, or propose a resolution that a second person confirms."`
}

type caseList struct {
	Closed   bool           `help:"Closed cases instead: who decided, when and how, newest first." xor:"which"`
	All      bool           `help:"Open and closed cases, newest first."                           xor:"which"`
	Merchant string         `help:"Only those of this merchant, or of the platform."               placeholder:"NAME"`
	Kind     store.CaseKind `help:"Only those of this kind, such as payout_unknown."               placeholder:"KIND"`
	Limit    int            `default:"200"                                                         help:"Maximum number of cases to list; the output says if there are more."`
}

// caseView is a case as the command shows it. Amounts are cents.
type caseView struct {
	ID        string       `json:"id"`
	Merchant  string       `json:"merchant"` // "" if unknown
	Kind      string       `json:"kind"`
	Subject   string       `json:"subject"` // id of the order or receipt
	Amount    int64        `json:"amount"`
	Params    store.Params `json:"params"`
	Text      string       `json:"text"`
	CreatedAt time.Time    `json:"createdAt"`

	StopsPayouts bool       `json:"stopsPayouts,omitempty"` // of the merchant, while it is open
	StopsAccount string     `json:"stopsAccount,omitempty"` // whose payouts are not sent while it is open
	Resolution   string     `json:"resolution,omitempty"`
	ClosedAt     *time.Time `json:"closedAt,omitempty"`
	ClosedBy     []string   `json:"closedBy,omitempty"` // the people; empty if nobody decided
	Reason       string     `json:"reason,omitempty"`
}

// Run lists cases.
func (c *caseList) Run(r *runner, root *commands) error {
	if c.Limit < 1 {
		return configError{fmt.Errorf("--limit must be at least 1, not %d", c.Limit)}
	}
	return r.admin(&root.Case.settings, func(a *app.Admin) error {
		owners, names, err := c.owners(r, a)
		if err != nil {
			return err
		}
		list, err := c.read(r, a, owners)
		if err != nil {
			return err
		}
		total := len(list)
		list = list[:min(total, c.Limit)]
		views := make([]caseView, len(list))
		for i := range list {
			views[i] = viewCase(&list[i], names[list[i].Merchant])
			if err := views[i].readDecision(r, a, &list[i]); err != nil {
				return err
			}
		}
		err = r.out.show(views, func(w io.Writer) { c.print(w, list, views, total) })
		if r.out.json {
			r.sayMore(total > len(list), "There are more cases: --limit lists them.")
		}
		return err
	})
}

// owners are the merchants whose cases are listed, with the platform, and the names of merchants.
func (c *caseList) owners(r *runner, a *app.Admin) (owners []payment.ID, names map[payment.ID]string, err error) {
	names = map[payment.ID]string{}
	if c.Merchant != "" {
		m, err := merchantOrPlatform(r, a, c.Merchant)
		if !m.ID.IsZero() {
			names[m.ID] = m.Name
		}
		return []payment.ID{m.ID}, names, err
	}
	merchants, err := a.Store.Merchants(r.ctx)
	for i := range merchants {
		owners = append(owners, merchants[i].ID)
		names[merchants[i].ID] = merchants[i].Name
	}
	return append(owners, payment.ID{}), names, err
}

// casesRead bounds how many cases of a merchant are read.
const casesRead = 10_000

// read reads the cases: open ones that stop payouts first, and then the oldest; closed ones by when
// they were closed, newest first.
func (c *caseList) read(r *runner, a *app.Admin, owners []payment.ID) (list []store.Case, err error) {
	for _, owner := range owners {
		for _, closed := range []bool{false, true} {
			if c.Closed && !closed || closed && !c.Closed && !c.All {
				continue
			}
			part, err := a.Store.Cases(r.ctx, owner, store.CaseFilter{Kind: c.Kind, Closed: closed}, casesRead)
			if err != nil {
				return nil, err
			}
			list = append(list, part...)
		}
	}
	slices.SortStableFunc(list, func(a, b store.Case) int {
		switch {
		case c.Closed:
			return b.ClosedAt.Compare(a.ClosedAt)
		case c.All:
			return b.CreatedAt.Compare(a.CreatedAt)
		case stops(&a) != stops(&b):
			if stops(&a) {
				return -1
			}
			return 1
		}
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), payment.CompareIDs(a.ID, b.ID))
	})
	return list, nil
}

// readDecision reads who closed a case, and why.
func (v *caseView) readDecision(r *runner, a *app.Admin, of *store.Case) error {
	if of.ClosedAt.IsZero() {
		return nil
	}
	decisions, err := a.Store.Decisions(r.ctx, of.Merchant, of.ID)
	for i := range decisions {
		if d := &decisions[i]; d.Resolution == of.Resolution {
			v.ClosedBy, v.Reason = append(v.ClosedBy, d.Actor.Shown()), d.Reason
		}
	}
	return err
}

// stops reports whether a case stops payouts while it is open, as [store.Store.StoppingCases].
func stops(v *store.Case) bool {
	return v.StopsPayouts || v.StopsAccount != "" || v.Kind == store.CaseAccountRefused
}

func viewCase(v *store.Case, merchant string) caseView {
	view := caseView{
		ID: v.ID.String(), Merchant: merchant, Kind: string(v.Kind), Amount: int64(v.Amount), Params: v.Params, Text: caseText(v),
		StopsPayouts: v.StopsPayouts, StopsAccount: v.StopsAccount, CreatedAt: v.CreatedAt, Resolution: string(v.Resolution),
	}
	if !v.Subject.IsZero() {
		view.Subject = v.Subject.String()
	}
	if !v.ClosedAt.IsZero() {
		view.ClosedAt = &v.ClosedAt
	}
	return view
}

func (c *caseList) print(w io.Writer, list []store.Case, views []caseView, total int) {
	kind := "open "
	switch {
	case c.Closed:
		kind = "closed "
	case c.All:
		kind = ""
	}
	if len(list) == 0 {
		_, _ = fmt.Fprintf(w, "No %scases.\n", kind)
		return
	}
	for i := range list {
		if i > 0 {
			_, _ = fmt.Fprintln(w)
		}
		printListed(w, &list[i], &views[i])
	}
	count := plural(total, kind+"case", kind+"cases")
	if total > len(list) {
		count = fmt.Sprintf("%d of %s", len(list), count)
	}
	_, _ = fmt.Fprintf(w, "\n%s. porteira case show ID shows how to resolve one.\n", count)
}

func printListed(w io.Writer, of *store.Case, v *caseView) {
	amount, merchant := "", v.Merchant
	if of.Amount != 0 {
		amount = "  " + of.Amount.English()
	}
	if merchant == "" {
		merchant = "(no merchant)"
	}
	_, _ = fmt.Fprintf(w, "%s  %s  %s%s\n  %s\n  case %s\n", stamp(of.CreatedAt), merchant, of.Kind, amount, oneLine(v.Text), v.ID)
	if v.Subject != "" {
		_, _ = fmt.Fprintf(w, "  subject %s\n", v.Subject)
	}
	for _, effect := range stopTexts(v) {
		_, _ = fmt.Fprintf(w, "  stops %s\n", effect)
	}
	if v.ClosedAt != nil {
		by := "the gateway"
		if len(v.ClosedBy) > 0 {
			by = strings.Join(v.ClosedBy, " and ")
		}
		_, _ = fmt.Fprintf(w, "  closed %s, %s, by %s\n", stamp(*v.ClosedAt), v.Resolution, oneLine(strings.TrimSpace(by+" "+v.Reason)))
	}
}

// stopTexts are what a case stops while it is open.
func stopTexts(v *caseView) (list []string) {
	if v.ClosedAt != nil {
		return nil
	}
	if v.StopsPayouts {
		list = append(list, "the merchant's payouts, until it is resolved")
	}
	if v.StopsAccount != "" {
		list = append(list, "sending of payouts at account "+v.StopsAccount+", until it is resolved")
	}
	return list
}
