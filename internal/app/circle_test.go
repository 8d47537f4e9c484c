package app_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/app/apptest"
	"github.com/porteira/porteira/internal/sandboxbank/apipixface"
)

// circle is a bank and a gateway as two commands of the real program, as the guides of the
// processors say.
type circle struct {
	t             *testing.T
	bank, gateway *program
	said          string // what the bank printed when it first started
	data          string // of the gateway
	client        *apptest.Client
	pix           *pixBank
	asaas         *asaasBank
}

func newCircle(t *testing.T) *circle {
	t.Helper()
	c, said := &circle{t: t, data: t.TempDir()}, &apptest.Log{}
	folder, pix, asaas := t.TempDir(), freePort(t), freePort(t)
	c.bank = newProgram(t, apptest.Secrets(), "bank", "--data", folder, "--api-pix", pix, "--asaas", asaas)
	c.bank.out = said
	c.bank.start()
	apptest.Until(t, func() string { // it prints once it serves
		if c.said = said.String(); !strings.Contains(c.said, "curl") {
			return "the bank prints only " + c.said
		}
		return ""
	})
	c.gateway = newProgram(t, apptest.Secrets(), "dev", "--log-level", "warn", "--data", c.data, "--bank", c.bank.base)
	c.gateway.start()
	c.client = apptest.NewClient(t, c.gateway.base, app.SandboxKey, app.SandboxSecret)
	c.pix = &pixBank{t: t, url: c.bank.base, account: app.APIPixBank{Control: apipixface.ControlPath()}}
	c.asaas = &asaasBank{t: t, bank: app.AsaasBank{
		BaseURL: "https://" + asaas + "/v3", SandboxURL: "https://" + asaas + "/v3/sandbox", PanelURL: "https://" + asaas + "/panel",
	}}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(c.asaas.read(filepath.Join(folder, "asaas", "ca.pem"))))
	c.asaas.key = c.asaas.read(filepath.Join(folder, "asaas", "api-key"))
	c.asaas.way = &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	return c
}

// connect runs the commands that the bank printed about an account, in a shell.
func (c *circle) connect(account string) {
	c.t.Helper()
	ran := 0
	for line := range strings.Lines(c.said) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "porteira ") || !strings.Contains(line+" ", " "+account+" ") {
			continue
		}
		ran++
		line = strings.ReplaceAll(line, "MERCHANT", "sandbox")
		shell := exec.CommandContext(c.t.Context(), "sh", "-c", line+" --data '"+c.data+"'")
		shell.Env = append(append(ambient(), apptest.Secrets()...), "PATH="+binaryFolder+":"+os.Getenv("PATH"))
		if out, err := shell.CombinedOutput(); err != nil {
			c.t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
	if ran < 4 {
		c.t.Fatalf("the bank printed %d commands about %s:\n%s", ran, account, c.said)
	}
	if code, out := c.gateway.command("account", "test", account, "--data", c.data); code != 0 || strings.Contains(out, "wrong") || strings.Contains(out, "note") {
		c.t.Errorf("account test exits %d:\n%s", code, out)
	}
}

// payin creates an order at an account, which the gateway follows within 2 s.
func (c *circle) payin(account, body, reference string) apptest.Answer {
	c.t.Helper()
	a := c.client.Must(201, "POST", "/payin", with(body, "{ref}", reference))
	for n := 0; !strings.Contains(c.attempts(a), account); n++ {
		if n == 50 {
			c.t.Fatalf("orders do not go to %s: %s", account, c.attempts(a))
		}
		wait(100 * time.Millisecond)
		a = c.client.Must(201, "POST", "/payin", with(body, "{ref}", fmt.Sprint(reference, " ", n)))
	}
	return a
}

func (c *circle) attempts(a apptest.Answer) string {
	c.t.Helper()
	return c.client.Must(200, "GET", "/payin/"+a.Get("id")+"?expand=attempts", "").Get("attempts")
}

// kill kills the bank, and starts it again.
func (c *circle) kill() {
	c.t.Helper()
	c.bank.kill()
	c.bank.start()
}

// wantSameRecords waits until an account's clearing account is what the bank holds, in cents.
func (c *circle) wantSameRecords(account string, holds func() int64) {
	c.t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(c.data, "porteira.db")+"?_pragma=busy_timeout(5000)")
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	apptest.Until(c.t, func() string {
		if _, err := db.ExecContext(context.Background(), apptest.FeedDue, "costs"); err != nil {
			c.t.Fatal(err)
		}
		var clearing int64
		err := db.QueryRowContext(context.Background(), "SELECT COALESCE(-SUM(balance), 0) FROM balances WHERE account = 'clearing:' || ?", account).Scan(&clearing)
		if err != nil {
			c.t.Fatal(err)
		}
		if bank := holds(); clearing != bank {
			return fmt.Sprintf("the ledger has %d at %s, and the bank holds %d", clearing, account, bank)
		}
		return ""
	})
	if code, out := c.gateway.command("account", "test", account, "--data", c.data); code != 0 || !strings.Contains(out, "in the ledger") || strings.Contains(out, "note") {
		c.t.Errorf("account test exits %d:\n%s", code, out)
	}
}

// TestCircle: two commands start bank and gateway, and those that the bank prints connect both
// drivers. Pix, boleto, card and payouts go through each, with a refund and a dispute; the bank
// is killed in between. The ledger is sound, and equals the bank's records to the cent.
func TestCircle(t *testing.T) {
	t.Parallel()
	c := newCircle(t)
	c.connect("asaas")
	held := c.playAsaas()
	c.connect("api-pix")
	c.playPIX()
	c.wantSameRecords("api-pix", c.pix.balance)
	c.wantSameRecords("asaas", func() int64 { return int64(c.asaas.balance()) + held })
	if code, out := c.gateway.command("account", "list", "--data", c.data, "--json"); code != 0 || strings.Count(out, `"certificate": "20`) != 1 {
		t.Errorf("the accounts lack the end of a certificate:\n%s", out)
	}
	if code, out := c.gateway.command("verify", "--data", c.data); code != 0 {
		t.Errorf("verify exits %d:\n%s", code, out)
	}
	if code, out := c.gateway.command("case", "list", "--data", c.data, "--json"); code != 0 || strings.Contains(out, `"kind"`) {
		t.Errorf("there are cases:\n%s", out)
	}
	c.asaas.call("POST", c.asaas.bank.BaseURL+"/transfers", `{"value":1.00,"pixAddressKey":"a@b.example","pixAddressKeyType":"EMAIL"}`)
	if code, out := c.gateway.command("account", "test", "asaas", "--data", c.data); code != 0 || !strings.Contains(out, "note   ledger: ") || !strings.Contains(out, "differ by -R$ 1.") {
		t.Errorf("after a transfer past the gateway account test exits %d:\n%s", code, out)
	}
}

// playAsaas returns what Asaas owes for cards, in cents.
func (c *circle) playAsaas() int64 {
	c.t.Helper()
	pix := c.payin("asaas", pixOf, "asaas pix")
	if page := get(c.t, pix.Get("checkoutUrl")); !strings.Contains(page, pix.Get("pix.qrcode")) {
		c.t.Error("the payer's page lacks the code")
	}
	bill, card := c.payin("asaas", billOf, "asaas bill"), c.payin("asaas", cardOf, "asaas card")
	confirm := func(a apptest.Answer) {
		c.t.Helper()
		c.asaas.call("POST", c.asaas.bank.SandboxURL+"/payment/"+c.asaas.paymentOf(a.Get("externalId"))+"/confirm", "")
	}
	confirm(pix)
	c.kill() // the notice has hardly left
	confirm(bill)
	payout := c.client.Must(201, "POST", "/payout", with(payoutOf, "{ref}", "asaas payout"))
	c.asaas.call("POST", card.Get("card.checkoutUrl"), "result=approved")
	for _, a := range []apptest.Answer{pix, bill, card} {
		awaitStatus(c.t, c.client, "/payin/"+a.Get("id"), "PAID")
	}
	refund := c.client.Must(201, "POST", "/payin/"+pix.Get("id")+"/refunds", with(refundOf, "{ref}", "asaas refund"))
	c.asaas.dispute(c.client, card, 1)
	awaitStatus(c.t, c.client, "/refunds/"+refund.Get("id"), "COMPLETED")
	awaitStatus(c.t, c.client, "/payout/"+payout.Get("id"), "COMPLETED")
	return 70_00 - 49 - 2_09 // the bank's fee of a card is R$ 0.49 and 2.99 %
}

func (c *circle) playPIX() {
	c.t.Helper()
	first := c.payin("api-pix", pixOf, "pix first")
	pay := func(a apptest.Answer) {
		c.t.Helper()
		c.pix.call("POST", "/control/charges/"+a.Get("externalId")+"/pay")
	}
	pay(first)
	c.kill() // the notice has hardly left, and all tokens are forgotten
	second := c.payin("api-pix", pixOf, "pix second")
	pay(second)
	payout := c.client.Must(201, "POST", "/payout", with(payoutOf, "{ref}", "pix payout"))
	for _, a := range []apptest.Answer{first, second} {
		awaitStatus(c.t, c.client, "/payin/"+a.Get("id"), "PAID")
	}
	refund := c.client.Must(201, "POST", "/payin/"+first.Get("id")+"/refunds", with(refundOf, "{ref}", "pix refund"))
	c.pix.call("POST", "/control/charges/"+second.Get("externalId")+"/dispute")
	awaitStatus(c.t, c.client, "/payin/"+second.Get("id"), "DISPUTED")
	c.pix.call("POST", "/control/charges/"+second.Get("externalId")+"/lose")
	awaitStatus(c.t, c.client, "/payin/"+second.Get("id"), "CHARGEBACK")
	awaitStatus(c.t, c.client, "/refunds/"+refund.Get("id"), "COMPLETED")
	awaitStatus(c.t, c.client, "/payout/"+payout.Get("id"), "COMPLETED")
}
