package cli

import (
	"fmt"
	"io"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/config"
)

type migrateCommand struct{ settings }

// Run creates or upgrades the database schema.
func (c *migrateCommand) Run(r *runner) error {
	cfg, err := r.load(config.Admin, &c.settings)
	if err != nil {
		return err
	}
	applied, err := app.Migrate(r.ctx, cfg, r.log(cfg))
	if err != nil {
		return err
	}
	if applied == nil {
		applied = []int64{}
	}
	return r.out.show(struct {
		Applied []int64 `json:"applied"`
	}{applied}, func(w io.Writer) {
		if len(applied) == 0 {
			_, _ = fmt.Fprintln(w, "The schema is up to date.")
			return
		}
		_, _ = fmt.Fprintf(w, "Applied %s; the schema is at version %d.\n",
			plural(len(applied), "migration", "migrations"), applied[len(applied)-1])
	})
}
