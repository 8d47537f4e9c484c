package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/query"
	"github.com/porteira/porteira/internal/store"
)

type backupCommand struct {
	settings

	To string `help:"The file to write; it must not exist." placeholder:"FILE" required:""`
}

// Run copies the database.
func (c *backupCommand) Run(r *runner) error {
	to, err := filepath.Abs(c.To)
	if err != nil {
		return err
	}
	return r.admin(&c.settings, func(a *app.Admin) error {
		err := a.Store.Backup(r.ctx, to)
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%s already exists: choose another file", to)
		}
		if err != nil {
			return err
		}
		if err := query.Record(r.ctx, a.Store, store.SettingBackedUp, query.BackedUp{At: a.Clock.Now()}); err != nil {
			return err
		}
		return r.out.show(struct {
			File string `json:"file"`
		}{to}, func(w io.Writer) {
			_, _ = fmt.Fprintf(w, "Copied the database to %s. The copy does not contain the master key: back up the key separately.\n", to)
		})
	})
}
