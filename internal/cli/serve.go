package cli

import (
	"fmt"
	"io"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/config"
)

type serveCommand struct{ settings }

// Help says what serving can do so far.
func (c *serveCommand) Help() string {
	return `The database must have this program's schema (porteira migrate), and the master
key must be there. The only processor so far is the sandbox's bank, which a
gateway reaches by --bank; without one, orders are answered with 503.`
}

// Run runs a gateway in production until it is told to stop.
func (c *serveCommand) Run(r *runner) error {
	cfg, err := r.load(config.Serve, &c.settings)
	if err != nil {
		return err
	}
	ctx, stop := r.untilSignal()
	defer stop()
	a, err := app.New(ctx, cfg, app.Options{Log: r.log(cfg), Version: version(), Ready: func(a *app.App) {
		_ = r.out.show(struct {
			BaseURL string `json:"baseUrl"`
			Ops     string `json:"opsAddress"`
		}{a.BaseURL(), a.OpsAddress()}, func(w io.Writer) {
			_, _ = fmt.Fprintf(w, "Porteira serves at %s, for its operator at %s.\n", a.BaseURL(), a.OpsAddress())
		})
	}})
	if err != nil {
		return err
	}
	return a.Run(ctx)
}
