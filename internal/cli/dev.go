package cli

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/config"
)

type devCommand struct{ settings }

// Run runs a gateway with its sandbox until it is told to stop.
func (c *devCommand) Run(r *runner) error {
	cfg, err := r.load(config.Dev, &c.settings)
	if err != nil {
		return err
	}
	ctx, stop := r.untilSignal()
	defer stop()
	a, err := app.New(ctx, cfg, app.Options{Log: r.log(cfg), Version: version(), Ready: func(a *app.App) {
		_ = r.out.show(greetingOf(a, cfg), func(w io.Writer) { greet(w, a, cfg) })
	}})
	if err != nil {
		return err
	}
	return a.Run(ctx)
}

// greeting is what a program that starts the gateway wants to know.
type greeting struct {
	BaseURL       string `json:"baseUrl"`
	APIKey        string `json:"apiKey"`
	APISecret     string `json:"apiSecret"`
	WebhookSecret string `json:"webhookSecret"`
	Ops           string `json:"opsAddress,omitempty"`
	Data          string `json:"data"`
	Database      string `json:"database"`
}

func greetingOf(a *app.App, cfg *config.Config) greeting {
	data, err := filepath.Abs(cfg.Data)
	if err != nil {
		data = cfg.Data
	}
	return greeting{
		BaseURL: a.BaseURL(), APIKey: app.SandboxKey, APISecret: app.SandboxSecret, WebhookSecret: app.SandboxWebhookSecret,
		Ops: a.OpsAddress(), Data: data, Database: cfg.ShownDatabase(),
	}
}

const greetingText = `
Porteira is running, with a sandbox: no real money moves, and no code that it
makes can be paid.

  base address    BASE
  x-api-key       KEY
  x-api-secret    SECRET
  webhook secret  WEBHOOK
  balance         FUNDS of the merchant "sandbox" at first
  API contract    BASE/openapi.json
  metrics         METRICS/metrics
  data            DATA

Ask for a payment by Pix (needs no credentials here):

  curl BASE/payin -H 'Content-Type: application/json' -d '{
    "paymentMethod": "PIX", "amount": 1990, "referenceId": "order-1",
    "customer": {"name": "Maria Silva", "document": "52998224725"}}'

Open the "checkoutUrl" of the answer in a browser: it is the payer's page. Or let
its payer pay from here (ID is the "id" of the answer):

  curl -X POST BASE/sandbox/payin/ID/pay

Send money by Pix:

  curl BASE/payout -H 'Content-Type: application/json' \
    -H 'x-api-key: KEY' -H 'x-api-secret: SECRET' -d '{
    "amount": 500, "pixKey": "maria@example.com", "pixKeyType": "EMAIL", "referenceId": "payout-1",
    "beneficiaryName": "Maria Silva", "beneficiaryDocument": "52998224725"}'

See the balance, and everything that happened:

  curl BASE/balance -H 'x-api-key: KEY' -H 'x-api-secret: SECRET'
  curl BASE/events -H 'x-api-key: KEY' -H 'x-api-secret: SECRET'

Ctrl-C stops it; what it knows is kept in the data folder.
`

func greet(w io.Writer, a *app.App, cfg *config.Config) {
	g := greetingOf(a, cfg)
	metrics := g.BaseURL
	if ops := a.OpsAddress(); ops != "" {
		metrics = "http://" + ops
	}
	data := g.Data
	if !strings.HasPrefix(g.Database, cfg.Data) {
		data += ", database " + g.Database
	}
	_, _ = fmt.Fprintln(w, strings.NewReplacer(
		"BASE", g.BaseURL, "KEY", g.APIKey, "SECRET", g.APISecret, "WEBHOOK", g.WebhookSecret,
		"FUNDS", app.SandboxFunds.English(), "METRICS", metrics, "DATA", data,
	).Replace(greetingText))
}
