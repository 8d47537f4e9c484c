package cli

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/store"
)

type rekeyCommand struct {
	settings
	author
}

// Help is printed with the usage of the command.
func (c *rekeyCommand) Help() string {
	return `Run it after a change of the master key, with the new key, and the old one in
retired-master-keys: it seals again what was sealed with the old key. It may be
interrupted and run again. The exit code is 1 if something still needs the old key.`
}

// Run seals everything with the present master key.
func (c *rekeyCommand) Run(r *runner) error {
	by, err := c.author.author()
	if err != nil {
		return err
	}
	return r.admin(&c.settings, func(a *app.Admin) error {
		var result struct {
			Tables []store.Rekeyed `json:"tables"`
			Left   int64           `json:"left"` // values that may need a retired key
		}
		err := a.Store.Rekey(r.ctx, by, func(t store.Rekeyed) {
			result.Tables = append(result.Tables, t)
			result.Left += t.Changed + t.Damaged
		})
		if err != nil {
			return err
		}
		err = r.out.show(result, func(w io.Writer) {
			rows := [][]string{{"TABLE", "SEALED AGAIN", "KEPT", "CHANGED MEANWHILE", "DAMAGED"}}
			for _, t := range result.Tables {
				row := []string{t.Table}
				for _, n := range []int64{t.Sealed, t.Kept, t.Changed, t.Damaged} {
					row = append(row, strconv.FormatInt(n, 10))
				}
				rows = append(rows, row)
			}
			table(w, rows)
			if result.Left > 0 {
				_, _ = fmt.Fprintln(w, "\nKeep the old key in retired-master-keys. Run the command again; porteira verify lists damaged rows.")
				return
			}
			_, _ = fmt.Fprintln(w, "\nNothing in the database needs an old key. Remove it from retired-master-keys of all gateways; keep it with the backups of its time.")
		})
		return errors.Join(err, leftOf(result.Left))
	})
}

func leftOf(n int64) error {
	if n > 0 {
		return errDefects
	}
	return nil
}
