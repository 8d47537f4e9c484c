package cli

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/config"
)

type devCommand struct{ settings }

// Run runs a gateway with its sandbox until a signal stops it.
func (c *devCommand) Run(r *runner) error {
	cfg, err := r.load(config.Dev, &c.settings)
	if err != nil {
		return err
	}
	ctx, stop := r.untilSignal()
	defer stop()
	log := r.log(cfg)
	limitMemory(log, memlimit.FromCgroup)
	r.growHeap()
	a, err := app.New(ctx, cfg, app.Options{Log: log, Version: version(), Ready: func(a *app.App) {
		secret, err := a.WebhookSecret(ctx)
		if err != nil {
			log.WarnContext(ctx, "webhook secret not read", "error", err)
		}
		g := greetingOf(a, cfg, secret)
		_ = r.out.show(g, func(w io.Writer) { greet(w, a, cfg, &g) })
	}})
	if err != nil {
		return err
	}
	return a.Run(ctx)
}

// greeting is the output of `porteira dev` when it serves.
type greeting struct {
	BaseURL       string `json:"baseUrl"`
	APIKey        string `json:"apiKey"`
	APISecret     string `json:"apiSecret"`
	WebhookSecret string `json:"webhookSecret"`
	Ops           string `json:"opsAddress,omitempty"`
	Data          string `json:"data"`
	Database      string `json:"database"`
}

func greetingOf(a *app.App, cfg *config.Config, webhookSecret string) greeting {
	data, err := filepath.Abs(cfg.Data)
	if err != nil {
		data = cfg.Data
	}
	return greeting{
		BaseURL: a.BaseURL(), APIKey: app.SandboxKey, APISecret: app.SandboxSecret, WebhookSecret: webhookSecret,
		Ops: a.OpsAddress(), Data: data, Database: cfg.ShownDatabase(),
	}
}

const greetingText = `
Porteira is running with a sandbox bank. It moves no real money, and its codes cannot be paid.

Open BASE/ in a browser: a button there creates a Pix and opens its page.

NETWORK  API             BASE
  x-api-key       KEY
  x-api-secret    SECRET
  webhook secret  WEBHOOK
  balance         FUNDS (merchant "sandbox", at first)
  API contract    BASE/docs, and BASE/openapi.json for tools
  metrics         METRICS/metrics
  data            DATA

Charge a customer by Pix; the "checkoutUrl" in the answer is the customer's page:

  curl BASE/payin -H 'Content-Type: application/json' \
    -H 'x-api-key: KEY' -H 'x-api-secret: SECRET' -d '{
    "paymentMethod": "PIX", "amount": 1990, "referenceId": "hello-payin-1",
    "customer": {"name": "Maria da Silva", "document": "52998224725"}}'

Send money by Pix:

  curl BASE/payout -H 'Content-Type: application/json' \
    -H 'x-api-key: KEY' -H 'x-api-secret: SECRET' -d '{
    "amount": 500, "pixKey": "maria@example.com", "pixKeyType": "EMAIL", "referenceId": "hello-payout-1",
    "beneficiaryName": "Maria da Silva", "beneficiaryDocument": "52998224725"}'

Read the balance and all events:

  curl BASE/balance -H 'x-api-key: KEY' -H 'x-api-secret: SECRET'
  curl BASE/events -H 'x-api-key: KEY' -H 'x-api-secret: SECRET'

Ctrl-C stops it. Its data stays in the data folder; delete the folder to start again.
`

// networkText warns of a listener that other machines reach, and names its addresses.
func networkText(urls []string) string {
	if len(urls) == 0 {
		return ""
	}
	return "WARNING: other machines reach this gateway, and its credentials are known. Its addresses: " + strings.Join(urls, ", ") + "\n\n"
}

func greet(w io.Writer, a *app.App, cfg *config.Config, g *greeting) {
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
		"NETWORK", networkText(a.NetworkURLs()), "FUNDS", app.SandboxFunds.English(), "METRICS", metrics, "DATA", data,
	).Replace(greetingText))
}
