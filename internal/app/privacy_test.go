package app_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/app/apptest"
	"github.com/porteira/porteira/internal/merchant"
)

// quiet are private values, which may not be in the log and may be only sealed in the
// database. They occur nowhere else.
var quiet = map[string]string{
	"name": "Quirina Zuleica", "document": "98765432100", "e-mail": "quirina@zuleica.example", "phone": "21976543210", "street": "Travessa Zuleica",
	"item": "Zuleica por dentro", "beneficiary": "Quixote Zenobio", "beneficiary's document": "12345678000195",
	"e-mail key": "quixote@zenobio.example", "phone key": "+5521965432109", "CPF key": "11223344556", "EVP key": "7c1d9a52-4b0e-4f6a-9d3c-2e8f5a6b7c8d",
}

// quietBodies are valid and invalid requests with these values.
func quietBodies(hook string) map[string][]string {
	payin := fmt.Sprintf(`{"paymentMethod":"BOLETO","amount":100,"referenceId":"quiet","webhookUrl":%q,"customer":{"name":%q,"document":%q,"email":%q,"phone":%q,"address":{"street":%q}},"items":[{"title":%q,"quantity":1,"unitPrice":1,"tangible":true}]}`,
		hook, quiet["name"], quiet["document"], quiet["e-mail"], quiet["phone"], quiet["street"], quiet["item"])
	bodies := map[string][]string{"/payin": {
		payin, with(payin, `"amount":100`, `"amount":"x"`), payin[:len(payin)-9], with(payin, "100", "101"), with(payin, `"name"`, `"name":"x","name"`),
		with(payin, `"email"`, `"`+quiet["e-mail"]+`"`), with(payin, `"name"`, `"nickname":"`+quiet["name"]+`","name"`),
	}}
	for _, kind := range []string{"EMAIL", "PHONE", "CPF", "EVP"} {
		key := map[string]string{"EMAIL": "e-mail key", "PHONE": "phone key", "CPF": "CPF key", "EVP": "EVP key"}[kind]
		payout := fmt.Sprintf(`{"amount":100,"pixKey":%q,"pixKeyType":%q,"beneficiaryName":%q,"beneficiaryDocument":%q,"webhookUrl":%q,"referenceId":%q}`,
			quiet[key], kind, quiet["beneficiary"], quiet["beneficiary's document"], hook, "quiet "+kind)
		bodies["/payout"] = append(bodies["/payout"], payout, with(payout, `100`, `99999999999`), with(payout, kind, "CNPJ"), with(payout, `"amount"`, `"`+quiet[key]+`":1,"amount"`))
	}
	return bodies
}

// The test sends every private value in every field that can have it, in valid and
// invalid requests, with faults of the bank and of a receiver. Then it searches the log,
// from level debug on, and every row of the database.
func TestNothingPrivateIsLoggedOrReadable(t *testing.T) {
	onBoth(t, func(t *testing.T, g *apptest.Installed) {
		m, client := g.NewMerchant("Quiet", 1_000_000)
		secret, err := g.Admin.Store.WebhookSecret(t.Context(), m.ID)
		if err != nil {
			t.Fatal(err)
		}
		hidden := map[string]string{"secret": client.Secret, "webhook secret": strings.TrimPrefix(secret, merchant.WebhookSecretPrefix)}
		for what, value := range quiet {
			hidden[what] = value
		}
		v := apptest.NewReceiver(t, secret, nil)
		for path, list := range quietBodies(v.URL + "/quiet") {
			for i, body := range list {
				operation := map[string]string{"/payin": "charge", "/payout": "transfer"}[path]
				arm(g, operation, []string{"server_error_after", "rubbish", "refuse"}[i/3%3], 1)
				client.Ask("POST", path, body)
			}
		}
		for _, value := range hidden {
			q := url.QueryEscape(value)
			client.Ask("GET", "/payin?referenceId="+q+"&"+q+"=1&cursor="+q, "")
			client.Ask("GET", "/"+url.PathEscape(value), "")
			client.Ask("GET", "/payin/"+url.PathEscape(value), "")
			client.Ask("GET", "/balance", "", "X-Api-Key: "+value)
			client.Ask("GET", "/balance", "", "X-Api-Secret: "+value)
			client.Ask("GET", "/balance", "", "User-Agent: "+value, "Referer: "+value)
			g.Anonymous().Ask("POST", g.NoticePath(), `{"id":"`+value+`"}`, "X-Porteira-Bank-Signature: "+value)
		}
		awaitFinal(t, client)
		apptest.Until(t, func() string {
			for _, word := range []string{"webhook attempted", "payout not confirmed", "notice refused"} {
				if g.Log.Lines(word) == "" {
					return "the log does not contain " + word
				}
			}
			return ""
		})
		g.Stop()
		log, text := g.Log.String(), everyRow(t, g)
		if !strings.Contains(text, "quiet PHONE") { // a reference is no secret
			t.Error("the dump of the database is incomplete")
		}
		for what, value := range hidden {
			for form, written := range map[string]string{"as it is": value, "in a URL": url.QueryEscape(value), "in hex": hex.EncodeToString([]byte(value)), "in base64": base64.StdEncoding.EncodeToString([]byte(value))} {
				if strings.Contains(log, written) {
					t.Errorf("the log holds the %s, %s: %s", what, form, g.Log.Lines(written))
				}
				if strings.Contains(text, written) {
					t.Errorf("the database holds the %s, %s", what, form)
				}
			}
		}
	})
}

// awaitFinal waits until all payouts of a client are final.
func awaitFinal(t *testing.T, client *apptest.Client) {
	t.Helper()
	apptest.Until(t, func() string {
		for _, status := range []string{"PENDING", "PROCESSING"} {
			if list := client.Must(200, "GET", "/payout?status="+status, "").List("id"); len(list) > 0 {
				return fmt.Sprintf("%d payouts are %s", len(list), status)
			}
		}
		return ""
	})
}

// everyRow returns the contents of the database as text, bytes in hex too.
func everyRow(t *testing.T, g *apptest.Installed) string {
	t.Helper()
	if g.Engine == "sqlite" {
		var text strings.Builder
		names, err := filepath.Glob(g.Database + "*")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			content, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			text.Write(content)
		}
		return text.String()
	}
	var text string
	err := g.SQL.QueryRowContext(context.Background(), "SELECT database_to_xml(true, true, '')::text").Scan(&text)
	if err != nil {
		t.Fatal(err)
	}
	// Binary columns are in base64: decode them as well.
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == '<' || r == '>' }) {
		if raw, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(part, "\n", "")); err == nil && len(raw) > 8 {
			text += string(raw)
		}
	}
	return text
}
