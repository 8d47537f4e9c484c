package cli

import (
	"fmt"
	"io"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/config"
)

type bankCommand struct{ settings }

// bankView is a bank as the command shows it.
type bankView struct {
	BaseURL string         `json:"baseUrl"`
	Asaas   *app.AsaasBank `json:"asaas,omitempty"`
}

// Run runs the sandbox's bank until a signal stops it.
func (c *bankCommand) Run(r *runner) error {
	cfg, err := r.load(config.Bank, &c.settings)
	if err != nil {
		return err
	}
	ctx, stop := r.untilSignal()
	defer stop()
	var view bankView
	return app.RunBank(ctx, cfg, app.BankOptions{
		Log:   r.log(cfg),
		Asaas: func(b app.AsaasBank) { view.Asaas = &b },
		Ready: func(url string) {
			view.BaseURL = url
			_ = r.out.show(view, view.print)
		},
	})
}

func (v *bankView) print(w io.Writer) {
	_, _ = fmt.Fprintf(w, "The sandbox bank listens on %s.\nTo use it: porteira dev --bank %s, with the same PORTEIRA_BANK_SECRET.\n", v.BaseURL, v.BaseURL)
	if v.Asaas != nil {
		_, _ = fmt.Fprintf(w, "\nIt is Asaas at %s. To use it in a running gateway:\n  %s\n  porteira account install asaas\n  porteira route set sandbox --operation payin asaas\n  porteira route set sandbox --operation payout asaas\n",
			v.Asaas.BaseURL, v.Asaas.AccountAdd("asaas"))
	}
}
