package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/app/apptest"
	"github.com/porteira/porteira/internal/config"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/processor/apipix"
	"github.com/porteira/porteira/internal/store"
)

// pixBank is a sandbox bank that is served as one of the API Pix, in this process.
type pixBank struct {
	t       *testing.T
	data    string
	address string // of the API Pix, kept over a restart
	url     string // of the bank's own protocol
	account app.APIPixBank
	stop    func()
}

func startPIXBank(t *testing.T) *pixBank {
	t.Helper()
	b := &pixBank{t: t, data: t.TempDir(), address: "127.0.0.1:0"}
	b.start()
	t.Cleanup(func() { b.stop() })
	return b
}

func (b *pixBank) start() {
	b.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	cfg := apptest.Config(b.t, config.Bank, apptest.Secrets(), "data", b.data, "api-pix", b.address)
	go func() {
		ended <- app.RunBank(ctx, cfg, app.BankOptions{
			APIPix: func(v app.APIPixBank) { b.account = v },
			Ready:  func(url string) { b.url = url; close(ready) },
		})
	}()
	select {
	case <-ready:
	case err := <-ended:
		cancel()
		b.t.Fatalf("the bank did not start: %v", err)
	}
	b.address = strings.TrimPrefix(b.account.BaseURL, "https://")
	b.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			b.t.Errorf("the bank stopped with %v", err)
		}
		b.stop = func() {}
	}
}

// call calls the bank's own protocol for the account.
func (b *pixBank) call(method, path string) string {
	b.t.Helper()
	status, body := b.try(method, path)
	if status != http.StatusOK {
		b.t.Fatalf("%s %s: %d %s", method, path, status, body)
	}
	return body
}

// ask is call for the status alone.
func (b *pixBank) ask(method, path string) int {
	b.t.Helper()
	status, _ := b.try(method, path)
	return status
}

func (b *pixBank) try(method, path string) (status int, body string) {
	b.t.Helper()
	base := strings.TrimSuffix(b.account.Control, "/control")
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.url+base+path, http.NoBody)
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+apptest.BankSecret)
	answer, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		b.t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil {
		b.t.Fatalf("%s %s: %v", method, path, err)
	}
	return answer.StatusCode, string(text)
}

func (b *pixBank) balance() (cents int64) {
	b.t.Helper()
	var v struct {
		Amount int64 `json:"amount"`
	}
	if err := json.Unmarshal([]byte(b.call(http.MethodGet, "/balance")), &v); err != nil {
		b.t.Fatal(err)
	}
	return v.Amount
}

// defenses is the number of disputes of a charge whose answer the bank has.
func (b *pixBank) defenses(txid string) (n int) {
	b.t.Helper()
	var charge struct {
		Disputes []struct {
			ID string `json:"id"`
		} `json:"disputes"`
	}
	if err := json.Unmarshal([]byte(b.call(http.MethodGet, "/charges/"+txid)), &charge); err != nil {
		b.t.Fatal(err)
	}
	for _, d := range charge.Disputes {
		if b.ask(http.MethodGet, "/disputes/"+d.ID+"/defense") == http.StatusOK {
			n++
		}
	}
	return n
}

// connect adds the account as the printed command does, and sends all of a merchant's orders
// there.
func (b *pixBank) connect(g *apptest.Installed, merchant *store.Merchant) {
	b.t.Helper()
	ctx := b.t.Context()
	file := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			b.t.Fatal(err)
		}
		return strings.TrimSpace(string(text))
	}
	v, err := g.Admin.Accounts.Add(ctx, store.Account{
		ID: "pix", Driver: apipix.Name,
		Settings: map[string]string{
			apipix.SettingProfile: apipix.ProfileEfi, apipix.SettingBaseURL: b.account.BaseURL,
			apipix.SettingClientID: b.account.ClientID, apipix.SettingPIXKey: b.account.PIXKey,
		},
		Secrets: store.AccountSecrets{Current: map[string]string{
			apipix.SecretClient: file(b.account.SecretFile), apipix.SecretCertificate: file(b.account.Certificate), apipix.SecretCA: file(b.account.CA),
		}},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := g.Admin.Registry.Follow(ctx); err != nil {
		b.t.Fatal(err)
	}
	if err := g.Admin.Install(ctx, &v); err != nil {
		b.t.Fatal(err)
	}
	for _, f := range g.Admin.Inspect(ctx, &v) {
		if f.Problem != "" {
			b.t.Errorf("%s: %s", f.Check, f.Problem)
		}
	}
	end := g.Admin.Registry.Find(v.ID).(processor.Certified).CertificateEnd()
	if want := fmt.Sprintf("porteira_account_certificate_expiry_timestamp_seconds{account=%q} %v\n", v.ID, float64(end.Unix())); !strings.Contains(get(b.t, g.Base+"/metrics"), want) {
		b.t.Errorf("the metrics lack %s", want)
	}
	for _, operation := range []payment.Operation{payment.OperationPayin, payment.OperationPayout} {
		if err := g.Admin.Accounts.SetRoutes(ctx, merchant, operation, payment.PIX, []payment.Route{{Account: v.ID}}); err != nil {
			b.t.Fatal(err)
		}
	}
}

// wantSameRecords compares the bank's records with the gateway's.
func (b *pixBank) wantSameRecords(g *apptest.Installed) {
	b.t.Helper()
	var clearing int64
	if err := g.SQL.QueryRowContext(b.t.Context(), "SELECT SUM(balance) FROM balances WHERE account = 'clearing:pix'").Scan(&clearing); err != nil {
		b.t.Fatal(err)
	}
	if bank := b.balance(); clearing != -bank {
		b.t.Errorf("clearing is %d, the bank has %d", clearing, bank)
	}
	g.Verify(b.t)
	for _, secret := range []string{"PRIVATE KEY", "Maria"} {
		if strings.Contains(g.Log.String(), secret) {
			b.t.Errorf("the log has %q", secret)
		}
	}
}

// defend has two pay-ins disputed: the defense of third reaches the bank, that of fourth has files.
func (b *pixBank) defend(g *apptest.Installed, c *apptest.Client, third, fourth apptest.Answer) {
	b.t.Helper()
	for _, v := range []struct {
		disputed apptest.Answer
		defense  string
	}{{third, `{"text":"Entregue."}`}, {fourth, defenseOf}} {
		disputed := v.disputed
		b.call("POST", "/control/charges/"+disputed.Get("externalId")+"/pay")
		awaitStatus(b.t, c, "/payin/"+disputed.Get("id"), "PAID")
		b.call("POST", "/control/charges/"+disputed.Get("externalId")+"/dispute")
		awaitStatus(b.t, c, "/payin/"+disputed.Get("id"), "DISPUTED")
		dispute := c.Must(200, "GET", "/disputes?payinId="+disputed.Get("id"), "")
		if dispute.Get("data.0.respondBy") == "" || dispute.Get("data.0.paymentId") == "" {
			b.t.Errorf("dispute %s", dispute.Body)
		}
		c.Must(200, "POST", "/disputes/"+dispute.Get("data.0.id")+"/defense", v.defense)
	}
	apptest.Until(b.t, func() string {
		if n := b.defenses(third.Get("externalId")); n != 1 {
			return "the bank does not have the defense"
		}
		return ""
	})
	apptest.Until(b.t, func() string { // the API takes no files: a person gives it in the bank's panel
		cases, err := g.Admin.Store.OpenCases(b.t.Context(), 10)
		if err != nil || len(cases) != 1 || cases[0].Kind != store.CaseDisputeAnswer || cases[0].Params["cause"] != "refused" {
			return fmt.Sprintf("cases %+v, %v", cases, err)
		}
		return ""
	})
	if n := b.defenses(fourth.Get("externalId")); n != 0 {
		b.t.Error("a defense was sent without its files")
	}
	b.call("POST", "/control/charges/"+third.Get("externalId")+"/win")
	awaitStatus(b.t, c, "/payin/"+third.Get("id"), "PAID")
}

// TestAPIPix goes through the real driver over TLS: a charge is paid, a part is given back, a
// payout leaves, a payer disputes; the bank is restarted in between. At the end the bank's records
// equal the gateway's clearing account.
func TestAPIPix(t *testing.T) {
	onBoth(t, func(t *testing.T, g *apptest.Installed) {
		b := startPIXBank(t)
		merchant, c := g.NewMerchant("Pix", 1_000_00)
		b.connect(g, &merchant)
		create := func(reference string) apptest.Answer {
			t.Helper()
			var a apptest.Answer
			apptest.Until(t, func() string { // the gateway follows the routes within 2 s, or the bank was restarted
				if a = c.Ask("POST", "/payin", with(pixOf, "{ref}", reference)); a.Status != 201 {
					return a.Body
				}
				return ""
			})
			return a
		}
		apptest.Until(t, func() string { // the gateway follows
			if _, err := g.Admin.Registry.Of("pix"); err != nil {
				return err.Error()
			}
			return ""
		})

		first := create("first")
		if txid := first.Get("pix.txid"); txid != first.Get("externalId") || first.Get("pix.expiresAt") != first.Get("expiresAt") {
			t.Errorf("pay-in %s", first.Body)
		}
		g.Must(409, "POST", "/sandbox/payin/"+first.Get("id")+"/pay", "") // it is not at the sandbox's own bank
		b.call("POST", "/control/charges/"+first.Get("externalId")+"/pay")
		awaitStatus(t, c, "/payin/"+first.Get("id"), "PAID")

		refund := c.Must(201, "POST", "/payin/"+first.Get("id")+"/refunds", `{"referenceId":"back","amount":400}`).Get("id")
		awaitStatus(t, c, "/refunds/"+refund, "COMPLETED")

		b.stop()
		b.start() // and all tokens are forgotten
		second := create("second")
		b.call("POST", "/control/charges/"+second.Get("externalId")+"/pay")
		awaitStatus(t, c, "/payin/"+second.Get("id"), "PAID")
		out := c.Must(201, "POST", "/payout", with(payoutOf, "{ref}", "out")).Get("id")
		awaitStatus(t, c, "/payout/"+out, "COMPLETED")

		b.call("POST", "/control/charges/"+second.Get("externalId")+"/dispute")
		awaitStatus(t, c, "/payin/"+second.Get("id"), "DISPUTED")
		b.call("POST", "/control/charges/"+second.Get("externalId")+"/lose")
		awaitStatus(t, c, "/payin/"+second.Get("id"), "CHARGEBACK")

		b.defend(g, c, create("third"), create("fourth"))
		b.wantSameRecords(g)
	})
}

// TestAPIPixNeedsItsCertificate: the bank's server speaks with the application alone.
func TestAPIPixNeedsItsCertificate(t *testing.T) {
	t.Parallel()
	b := startPIXBank(t)
	if _, _, err := net.SplitHostPort(b.address); err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.account.BaseURL+"/v2/pix", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r); err == nil {
		_ = answer.Body.Close()
		t.Errorf("answered %d", answer.StatusCode)
	}
}
