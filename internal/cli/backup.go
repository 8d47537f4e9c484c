package cli

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/porteira/porteira/internal/app"
)

type backupCommand struct {
	settings

	To string `help:"The file to write; there must be none." placeholder:"FILE" required:""`
}

// Run copies the database.
func (c *backupCommand) Run(r *runner) error {
	to, err := filepath.Abs(c.To)
	if err != nil {
		return err
	}
	return r.admin(&c.settings, func(a *app.Admin) error {
		if err := a.Store.Backup(r.ctx, to); err != nil {
			return err
		}
		return r.out.show(struct {
			File string `json:"file"`
		}{to}, func(w io.Writer) {
			_, _ = fmt.Fprintf(w, "The database is copied to %s. The master key is not in it: keep that apart.\n", to)
		})
	})
}
