package cli

import (
	"fmt"
	"io"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/config"
)

type serveCommand struct{ settings }

// Help explains the requirements of production.
func (c *serveCommand) Help() string {
	return `The database must have this program's schema (porteira migrate), and the master
key must exist. Orders go to the accounts of porteira account; with --bank there
is a sandbox bank too. Without an account, orders are answered with 503.`
}

// Run runs a gateway in production until a signal stops it.
func (c *serveCommand) Run(r *runner) error {
	cfg, err := r.load(config.Serve, &c.settings)
	if err != nil {
		return err
	}
	ctx, stop := r.untilSignal()
	defer stop()
	log := r.log(cfg)
	limitMemory(log, memlimit.FromCgroup)
	r.growHeap()
	a, err := app.New(ctx, cfg, app.Options{Log: log, Version: version(), Ready: func(a *app.App) {
		_ = r.out.show(struct {
			BaseURL string `json:"baseUrl"`
			Ops     string `json:"opsAddress"`
		}{a.BaseURL(), a.OpsAddress()}, func(w io.Writer) {
			_, _ = fmt.Fprintf(w, "Porteira listens on %s; metrics and health on %s.\n", a.BaseURL(), a.OpsAddress())
		})
	}})
	if err != nil {
		return err
	}
	return a.Run(ctx)
}
