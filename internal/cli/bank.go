package cli

import (
	"fmt"
	"io"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/config"
)

type bankCommand struct{ settings }

// Run runs the sandbox's bank until a signal stops it.
func (c *bankCommand) Run(r *runner) error {
	cfg, err := r.load(config.Bank, &c.settings)
	if err != nil {
		return err
	}
	ctx, stop := r.untilSignal()
	defer stop()
	return app.RunBank(ctx, cfg, app.BankOptions{Log: r.log(cfg), Ready: func(url string) {
		_ = r.out.show(struct {
			BaseURL string `json:"baseUrl"`
		}{url}, func(w io.Writer) {
			_, _ = fmt.Fprintf(w, "The sandbox bank listens on %s.\nTo use it: porteira dev --bank %s, with the same PORTEIRA_BANK_SECRET.\n", url, url)
		})
	}})
}
