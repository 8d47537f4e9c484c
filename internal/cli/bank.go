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
	BaseURL string          `json:"baseUrl"`
	Asaas   *app.AsaasBank  `json:"asaas,omitempty"`
	APIPix  *app.APIPixBank `json:"apiPix,omitempty"`
}

// Run runs the sandbox's bank until a signal stops it.
func (c *bankCommand) Run(r *runner) error {
	cfg, err := r.load(config.Bank, &c.settings)
	if err != nil {
		return err
	}
	ctx, stop := r.untilSignal()
	defer stop()
	r.growHeap()
	var view bankView
	return app.RunBank(ctx, cfg, app.BankOptions{
		Log:    r.log(cfg),
		Asaas:  func(b app.AsaasBank) { view.Asaas = &b },
		APIPix: func(b app.APIPixBank) { view.APIPix = &b },
		Ready: func(url string) {
			view.BaseURL = url
			_ = r.out.show(view, view.print)
		},
	})
}

func (v *bankView) print(w io.Writer) {
	_, _ = fmt.Fprintf(w, "The sandbox bank listens on %s.\nTo use it: porteira dev --bank %s, with the same PORTEIRA_BANK_SECRET.\n", v.BaseURL, v.BaseURL)
	if v.Asaas != nil {
		_, _ = fmt.Fprintf(w, `
It is also Asaas, at %s. To use it in a running gateway, each with its --data:
  %s
  porteira account install asaas
  porteira account test asaas
  porteira route set MERCHANT --operation payin asaas
  porteira route set MERCHANT --operation payout asaas
To pay a charge, by the processorId of its order: curl --cacert %s -H "access_token: $(cat %s)" -X POST %s/payment/PROCESSORID/confirm
A card is paid on the page at card.checkoutUrl.
`, v.Asaas.BaseURL, v.Asaas.AccountAdd("asaas"), app.Quoted(v.Asaas.RootFile), app.Quoted(v.Asaas.KeyFile), v.Asaas.SandboxURL)
	}
	if p := v.APIPix; p != nil {
		_, _ = fmt.Fprintf(w, `
It is also a bank of the API Pix, at %s. To use it in a running gateway, each with its --data:
  %s
  porteira account install api-pix
  porteira account test api-pix
  porteira route set MERCHANT --operation payin --method PIX api-pix
  porteira route set MERCHANT --operation payout api-pix
To pay a charge, by the externalId of its order: curl -X POST %s%s/charges/EXTERNALID/pay -H "Authorization: Bearer $PORTEIRA_BANK_SECRET"
`, p.BaseURL, p.AccountAdd("api-pix"), v.BaseURL, p.Control)
	}
}
