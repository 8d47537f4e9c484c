package cli

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
)

type merchantClose struct {
	author

	Name string `arg:"" help:"The merchant's name."`
	Yes  bool   `help:"Close it although it has money, or orders, disputes or cases that are not final. Takes --as and --reason."`
}

// unfinishedView is what keeps a merchant from being closed. Balances are cents.
type unfinishedView struct {
	Merchant string                         `json:"merchant"`
	Balances map[ledger.Account]money.Cents `json:"balances"`
	Open     []openView                     `json:"open"`
}

type openView struct {
	Noun   string `json:"noun"` // payin, payout, refund, dispute or case
	Status string `json:"status,omitempty"`
	Count  int64  `json:"count"`
}

// Run closes a merchant, or lists why it is not closed.
func (c *merchantClose) Run(r *runner, root *commands) error {
	by, err := c.author.author()
	if c.Yes {
		by, err = c.named()
	}
	if err != nil {
		return err
	}
	if c.Yes && by.Reason == "" {
		return configError{errors.New("--yes takes --reason TEXT: why the merchant is closed with money or work left")}
	}
	return r.changeAs(&root.Merchant.settings, by, func(a *app.Admin) error {
		m, err := merchantNamed(r, a, c.Name)
		if err != nil {
			return err
		}
		if err := checkOpen(&m); err != nil {
			return err
		}
		left, err := a.Merchants.Close(r.ctx, m.ID, c.Yes)
		if problem.Is(err, problem.InvalidState) {
			return showUnfinished(r, m.Name, &left)
		}
		if err != nil {
			return err
		}
		if m, err = a.Store.Merchant(r.ctx, m.ID); err != nil {
			return err
		}
		return r.out.show(viewMerchant(&m), func(w io.Writer) {
			_, _ = fmt.Fprintf(w, "Closed merchant %q: its credentials are refused within 2 seconds.\n", m.Name)
			if !left.Nothing() {
				_, _ = fmt.Fprintf(w, "\nIt still has this, which goes on:\n\n")
				table(w, unfinishedRows(m.Name, &left))
			}
		})
	})
}

// showUnfinished lists why a merchant is not closed, and returns the refusal.
func showUnfinished(r *runner, name string, left *store.Unfinished) error {
	v := unfinishedView{Merchant: name, Balances: left.Balances, Open: []openView{}}
	for _, w := range left.Work {
		v.Open = append(v.Open, openView(w))
	}
	if err := r.out.show(v, func(w io.Writer) { table(w, unfinishedRows(name, left)) }); err != nil {
		return err
	}
	return fmt.Errorf("merchant %q was not closed: it still has the above; end it first, or close the merchant nevertheless with --yes --as NAME --reason TEXT", name)
}

// unfinishedRows are the lines of a list of what a merchant has left, with what shows or ends it.
func unfinishedRows(name string, left *store.Unfinished) [][]string {
	list := func(noun, status string) string {
		command := fmt.Sprintf("porteira %s list --merchant %q", noun, name)
		if status != "" {
			command += " --status " + status
		}
		return command
	}
	ends := map[ledger.Account]string{
		ledger.Available: "the merchant pays it out: POST /payout",
		ledger.Pending:   fmt.Sprintf("it settles by itself: porteira balance show %q", name),
		ledger.Held:      list("payout", ""), ledger.Disputed: list("dispute", ""), ledger.Unapplied: list("case", ""),
		ledger.Owed: fmt.Sprintf("later payments repay it: porteira balance show %q", name),
	}
	rows := [][]string{{"WHAT", "LEFT", "SEE"}}
	for _, account := range ledger.StatementAccounts {
		amount := left.Balances[account]
		if account == ledger.Owed {
			amount = -amount
		}
		if amount != 0 {
			rows = append(rows, []string{string(account), amount.English(), ends[account]})
		}
	}
	for _, w := range left.Work {
		what := strings.TrimSpace(w.Noun + " " + w.Status)
		if w.Status == "" {
			what = "open " + w.Noun
		}
		rows = append(rows, []string{what, strconv.FormatInt(w.Count, 10), list(w.Noun, w.Status)})
	}
	return rows
}

type merchantReopen struct {
	author

	Name string `arg:"" help:"The merchant's name."`
}

// Run reopens a merchant.
func (c *merchantReopen) Run(r *runner, root *commands) error {
	if strings.TrimSpace(c.Reason) == "" {
		return configError{errors.New("reopening a merchant takes --reason TEXT: its credentials are accepted again")}
	}
	return r.change(&root.Merchant.settings, &c.author, func(a *app.Admin) error {
		m, err := merchantNamed(r, a, c.Name)
		if err != nil {
			return err
		}
		if m.ClosedAt.IsZero() {
			return fmt.Errorf("merchant %q is not closed", m.Name)
		}
		if err := a.Merchants.Reopen(r.ctx, m.ID); err != nil {
			return err
		}
		if m, err = a.Store.Merchant(r.ctx, m.ID); err != nil {
			return err
		}
		return r.out.show(viewMerchant(&m), func(w io.Writer) {
			_, _ = fmt.Fprintf(w, "Reopened merchant %q: those of its credentials that are not revoked or expired are accepted within 2 seconds.\n", m.Name)
		})
	})
}

// checkOpen returns an error if a merchant is closed.
func checkOpen(m *store.Merchant) error {
	if m.ClosedAt.IsZero() {
		return nil
	}
	return fmt.Errorf("merchant %q was closed at %s", m.Name, stamp(m.ClosedAt))
}
