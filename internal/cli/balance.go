package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

type balanceCommand struct {
	settings

	List balanceList `cmd:"" help:"List the balances of all merchants."`
	Show balanceShow `cmd:"" help:"Show every account of a merchant's ledger, or of the platform's."`
}

type balanceList struct{}

type balanceShow struct {
	Merchant string `arg:"" help:"The merchant's name, or platform."`
}

// balanceView is the balances of a merchant: as the API shows them, and of every account of its ledger,
// in cents.
type balanceView struct {
	Merchant string                         `json:"merchant"`
	Balance  json.RawMessage                `json:"balance"`
	Ledger   map[ledger.Account]money.Cents `json:"ledger"`
}

func viewBalance(r *runner, a *app.Admin, m *store.Merchant) (v balanceView, err error) {
	b, err := a.Store.Balances(r.ctx, m.ID)
	if err != nil {
		return v, err
	}
	v = balanceView{Merchant: m.Name, Ledger: b}
	v.Balance, err = wire.Balance(b)
	return v, err
}

// Run lists the balances of merchants.
func (c *balanceList) Run(r *runner, root *commands) error {
	return r.admin(&root.Balance.settings, func(a *app.Admin) error {
		merchants, err := a.Store.Merchants(r.ctx)
		if err != nil {
			return err
		}
		views, rows := make([]balanceView, len(merchants)), [][]string{{"MERCHANT", "AVAILABLE", "PENDING", "HELD", "DISPUTED", "UNAPPLIED", "OWED"}}
		for i := range merchants {
			if views[i], err = viewBalance(r, a, &merchants[i]); err != nil {
				return err
			}
			row := []string{oneLine(merchants[i].Name)}
			for _, account := range ledger.StatementAccounts {
				amount := views[i].Ledger[account]
				if account == ledger.Owed {
					amount = -amount
				}
				row = append(row, amount.Decimal())
			}
			rows = append(rows, row)
		}
		return r.out.show(views, func(w io.Writer) { tableOr(w, fit(rows, 0), "No merchants.") })
	})
}

// Run shows the balances of a merchant's ledger.
func (c *balanceShow) Run(r *runner, root *commands) error {
	return r.admin(&root.Balance.settings, func(a *app.Admin) error {
		m, err := merchantOrPlatform(r, a, c.Merchant)
		if err != nil {
			return err
		}
		v, err := viewBalance(r, a, &m)
		if err != nil {
			return err
		}
		return r.out.show(v, func(w io.Writer) {
			rows := [][]string{{"ACCOUNT", "BALANCE"}}
			for _, account := range ledger.StatementAccounts {
				rows = append(rows, []string{string(account), v.Ledger[account].English()})
			}
			for _, account := range slices.Sorted(maps.Keys(v.Ledger)) {
				if !account.InStatement() {
					rows = append(rows, []string{string(account), v.Ledger[account].English()})
				}
			}
			table(w, rows)
			_, _ = fmt.Fprintln(w, "\nThe clearing account of a processor is what the processor owes: it is negative while money is there.")
		})
	})
}
