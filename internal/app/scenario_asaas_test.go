package app_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/app/apptest"
	"github.com/porteira/porteira/internal/config"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/processor/asaas"
	"github.com/porteira/porteira/internal/store"
)

// asaasBank is a bank as Asaas, in another process as far as the gateway can see.
type asaasBank struct {
	t    *testing.T
	data string
	bank app.AsaasBank
	way  *http.Transport
	key  string
	stop func()
}

// startAsaas runs a bank on its folder. address is that of its face.
func startAsaas(t *testing.T, data, address string) *asaasBank {
	t.Helper()
	b := &asaasBank{t: t, data: data}
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- app.RunBank(ctx, apptest.Config(t, config.Bank, apptest.Secrets(), "data", data, "asaas", address), app.BankOptions{
			Asaas: func(v app.AsaasBank) { b.bank = v }, Ready: func(string) { close(ready) },
		})
	}()
	select {
	case <-ready:
	case err := <-ended:
		cancel()
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(b.read(b.bank.RootFile)))
	b.key, b.way = b.read(b.bank.KeyFile), &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	b.stop = func() {
		b.way.CloseIdleConnections()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		b.stop = func() {}
	}
	t.Cleanup(func() { b.stop() })
	return b
}

func (b *asaasBank) read(path string) string {
	b.t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		b.t.Fatal(err)
	}
	return string(text)
}

// call calls the bank with its key.
func (b *asaasBank) call(method, address, body string) apptest.Answer {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	if body == "" {
		r.Body = http.NoBody
	}
	if strings.Contains(body, "=") {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	r.Header.Set("access_token", b.key)
	answer, err := b.way.RoundTrip(r)
	if err != nil {
		b.t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil || answer.StatusCode >= 400 {
		b.t.Fatalf("%s %s: %d %s %v", method, address, answer.StatusCode, text, err)
	}
	return apptest.Answer{Status: answer.StatusCode, Header: answer.Header, Body: string(text)}
}

// paymentOf is Asaas' id of the charge of an order.
func (b *asaasBank) paymentOf(externalID string) string {
	b.t.Helper()
	return b.call("GET", b.bank.BaseURL+"/payments?externalReference="+externalID, "").Get("data.0.id")
}

// connect adds the account to a gateway, installs it, and gives a merchant of it.
func (b *asaasBank) connect(g *apptest.Installed) *apptest.Client {
	b.t.Helper()
	ctx := b.t.Context()
	v, err := g.Admin.Accounts.Add(ctx, store.Account{
		ID: "asaas-main", Driver: asaas.Name,
		Settings: map[string]string{asaas.SettingBaseURL: b.bank.BaseURL, asaas.SettingValidation: "on"},
		Secrets: store.AccountSecrets{Current: map[string]string{
			asaas.SecretKey: b.key, asaas.SecretToken: b.read(b.bank.TokenFile), asaas.SecretAuthority: b.read(b.bank.RootFile),
		}},
	})
	if err == nil {
		_, err = g.Admin.Registry.Follow(ctx)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	if found := g.Admin.Inspect(ctx, &v); !slices.ContainsFunc(found, func(f processor.Finding) bool { return f.Check == "notices" && f.Problem != "" }) {
		b.t.Errorf("before the installation: %+v", found)
	}
	if err := g.Admin.Install(ctx, &v); err != nil {
		b.t.Fatal(err)
	}
	for _, f := range g.Admin.Inspect(ctx, &v) {
		if f.Problem != "" {
			b.t.Errorf("after the installation: %+v", f)
		}
	}
	address, err := g.App.NoticeURL(ctx, v.ID)
	if err != nil {
		b.t.Fatal(err)
	}
	b.call("PUT", b.bank.PanelURL+"/withdrawal-validation", fmt.Sprintf(`{"url":%q,"authToken":%q}`, address+"/consent", b.read(b.bank.TokenFile)))
	m, client := g.NewMerchant("of Asaas", 100_00)
	for _, operation := range []payment.Operation{payment.OperationPayin, payment.OperationPayout} {
		if err := g.Admin.Accounts.SetRoutes(ctx, &m, operation, "", []payment.Route{{Account: v.ID}}); err != nil {
			b.t.Fatal(err)
		}
	}
	apptest.Until(b.t, func() string { // the gateway follows
		if got := client.Ask("POST", "/payin", with(pixOf, "{ref}", "first")); got.Status != 201 {
			return got.Body
		}
		return ""
	})
	return client
}

// clearing is what the ledger says that Asaas holds, in cents.
func clearing(t *testing.T, g *apptest.Installed) (sum int) {
	t.Helper()
	if err := g.SQL.QueryRowContext(t.Context(), "SELECT COALESCE(-SUM(balance), 0) FROM balances WHERE account = 'clearing:asaas-main'").Scan(&sum); err != nil {
		t.Fatal(err)
	}
	return sum
}

// balance is what Asaas says, in cents.
func (b *asaasBank) balance() int {
	b.t.Helper()
	var body struct{ Balance json.Number }
	if err := json.Unmarshal([]byte(b.call("GET", b.bank.BaseURL+"/finance/balance", "").Body), &body); err != nil {
		b.t.Fatal(err)
	}
	cents, err := strconv.Atoi(strings.ReplaceAll(string(body.Balance), ".", ""))
	if err != nil {
		b.t.Fatal(err)
	}
	return cents
}

// wantSameRecords waits until the ledger and the bank agree, where the bank owes uncredited cents of
// cards.
func (b *asaasBank) wantSameRecords(g *apptest.Installed, uncredited int) {
	b.t.Helper()
	apptest.Until(b.t, func() string {
		g.FeedDue(b.t, "costs") // which is read every five minutes
		if ledger, bank := clearing(b.t, g), b.balance(); ledger != bank+uncredited {
			return fmt.Sprintf("the ledger has %d, the bank %d and %d", ledger, bank, uncredited)
		}
		return ""
	})
}

// awaitStatus waits for the status of an order or a refund.
func awaitStatus(t *testing.T, c *apptest.Client, path, status string) {
	t.Helper()
	apptest.Until(t, func() string {
		if got := c.Must(200, "GET", path, ""); got.Get("status") != status {
			return got.Body
		}
		return ""
	})
}

// The whole circle through the driver of Asaas, over TLS: Pix, boleto, a card in instalments, a
// payout with our consent, a refund, a refund at the panel, a chargeback, and a restart of the
// bank in between. The ledger equals the bank's balance, fees included.
func TestAsaas(t *testing.T) {
	onBoth(t, func(t *testing.T, g *apptest.Installed) {
		b := startAsaas(t, t.TempDir(), "127.0.0.1:0")
		c := b.connect(g)

		pix := c.Must(201, "POST", "/payin", with(pixOf, "{ref}", "asaas pix"))
		if pix.Get("pix.qrcode") == "" || pix.Get("processorId") != b.paymentOf(pix.Get("externalId")) {
			t.Errorf("Pix: %s", pix.Body)
		}
		c.Must(409, "POST", "/sandbox/payin/"+pix.Get("id")+"/pay", "") // which is for sandbox banks
		b.call("POST", b.bank.SandboxURL+"/payment/"+b.paymentOf(pix.Get("externalId"))+"/confirm", "")
		awaitStatus(t, c, "/payin/"+pix.Get("id"), "PAID")
		if got := c.Must(200, "GET", "/payin/"+pix.Get("id"), ""); got.Get("endToEndId") == "" {
			t.Errorf("paid Pix: %s", got.Body)
		}

		bill := c.Must(201, "POST", "/payin", with(billOf, "{ref}", "asaas bill"))
		if len(bill.Get("boleto.digitableLine")) != 47 || bill.Get("boleto.pixQrcode") == "" {
			t.Errorf("boleto: %s", bill.Body)
		}
		address, err := url.Parse(b.bank.BaseURL) // the bank restarts at its address
		if err != nil {
			t.Fatal(err)
		}
		b.stop()
		b = startAsaas(t, b.data, address.Host)
		b.call("POST", b.bank.SandboxURL+"/payment/"+b.paymentOf(bill.Get("externalId"))+"/confirm", "")
		awaitStatus(t, c, "/payin/"+bill.Get("id"), "PAID")
		b.wantSameRecords(g, 0)

		card := c.Must(201, "POST", "/payin", with(with(cardOf, "{ref}", "asaas card"), `"amount":7000`, `"amount":10000,"installments":3`))
		b.call("POST", card.Get("card.checkoutUrl"), "result=do_not_honor")
		b.call("POST", card.Get("card.checkoutUrl"), "result=approved")
		awaitStatus(t, c, "/payin/"+card.Get("id"), "PAID")
		if got := c.Must(200, "GET", "/payin/"+card.Get("id"), ""); got.Get("card.installments") != "3" || got.Get("card.last4") != "1111" {
			t.Errorf("paid card: %s", got.Body)
		}
		const net = 33_33 - 49 - 99 + 33_33 - 49 - 99 + 33_34 - 49 - 99
		b.wantSameRecords(g, net)

		payout := c.Must(201, "POST", "/payout", with(payoutOf, "{ref}", "asaas payout"))
		awaitStatus(t, c, "/payout/"+payout.Get("id"), "COMPLETED")
		if got := b.call("GET", b.bank.BaseURL+"/transfers", ""); got.Get("totalCount") != "1" || got.Get("data.0.externalReference") != payout.Get("externalId") {
			t.Errorf("transfers: %s", got.Body)
		}
		b.wantSameRecords(g, net)

		refund := c.Must(201, "POST", "/payin/"+pix.Get("id")+"/refunds", with(refundOf, "{ref}", "asaas refund"))
		awaitStatus(t, c, "/refunds/"+refund.Get("id"), "COMPLETED")
		b.call("POST", b.bank.BaseURL+"/payments/"+b.paymentOf(pix.Get("externalId"))+"/refund", `{"value":1.00,"description":"no painel"}`)
		apptest.Until(t, func() string {
			if got := c.Must(200, "GET", "/payin/"+pix.Get("id"), ""); got.Get("refundedAmount") != "500" {
				return got.Body
			}
			return ""
		})
		b.wantSameRecords(g, net)

		if text := get(t, g.Base+"/metrics"); !strings.Contains(text, `porteira_account_budget_requests{account="asaas-main"} 4`) {
			t.Error("the metrics lack what is left of the budget")
		}
		b.dispute(c, card, 3)
		b.cancel(c)
		b.wantSameRecords(g, net)
		g.Verify(t)
	})
}

// dispute disputes the card payment of an order twice; the merchant wins.
func (b *asaasBank) dispute(c *apptest.Client, card apptest.Answer, installments int) {
	t := b.t
	t.Helper()
	for range 2 {
		b.call("POST", b.bank.PanelURL+"/payment/"+b.paymentOf(card.Get("externalId"))+"/dispute", "")
		awaitStatus(t, c, "/payin/"+card.Get("id"), "DISPUTED")
		b.call("POST", b.bank.PanelURL+"/payment/"+b.paymentOf(card.Get("externalId"))+"/win", "")
		awaitStatus(t, c, "/payin/"+card.Get("id"), "PAID")
	}
	if got := c.Must(200, "GET", "/disputes?payinId="+card.Get("id"), ""); strings.Count(got.Body, `"WON"`) != 2*installments {
		t.Errorf("disputes: %s", got.Body)
	}
}

// cancel cancels an order, whose charge is deleted.
func (b *asaasBank) cancel(c *apptest.Client) {
	t := b.t
	t.Helper()
	canceled := c.Must(201, "POST", "/payin", with(pixOf, "{ref}", "asaas canceled"))
	c.Must(200, "POST", "/payin/"+canceled.Get("id")+"/cancel", "")
	apptest.Until(t, func() string {
		got := b.call("GET", b.bank.BaseURL+"/payments/"+canceled.Get("processorId"), "")
		if got.Get("deleted") != "true" {
			return got.Body
		}
		return ""
	})
}
