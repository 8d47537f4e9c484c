package app_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/config"
)

// Words that must stay where they are sent: in no log line, and in the database
// only sealed.
var canaries = map[string]string{
	"name": "Canarinha Quieta", "document": "39053344705", "e-mail": "canary@quiet.example", "phone": "11912345678", "street": "Rua do Segredo",
	"item": "Remedio Intimo", "key": "beneficiary@quiet.example", "beneficiary": "Benedito Calado", "beneficiary document": "11144477735",
	"secret": app.SandboxSecret, "webhook secret": strings.TrimPrefix(app.SandboxWebhookSecret, "whsec_"),
}

func TestWhatIsPrivateStaysPrivate(t *testing.T) {
	data := t.TempDir()
	cfg := load(t, config.Dev, nil, "data", data, "log-level", "debug")
	g := run(t, cfg)
	payin := fmt.Sprintf(`{"paymentMethod":"BOLETO","amount":100,"referenceId":"quiet","webhookUrl":"http://127.0.0.1:9/h","customer":{"name":%q,"document":%q,"email":%q,"phone":%q,"address":{"street":%q}},"items":[{"title":%q,"quantity":1,"unitPrice":1,"tangible":true}]}`,
		canaries["name"], canaries["document"], canaries["e-mail"], canaries["phone"], canaries["street"], canaries["item"])
	payout := fmt.Sprintf(`{"amount":100,"pixKey":%q,"pixKeyType":"EMAIL","beneficiaryName":%q,"beneficiaryDocument":%q,"webhookUrl":"http://127.0.0.1:9/h","referenceId":"quiet"}`,
		canaries["key"], canaries["beneficiary"], canaries["beneficiary document"])
	client := &http.Client{Timeout: time.Minute}
	// What goes well, what is faulty, what is refused, what fails half way.
	for _, body := range []string{payin, strings.Replace(payin, `"amount":100`, `"amount":"x"`, 1), payin[:len(payin)-3], strings.Replace(payin, "100", "101", 1)} {
		g.ask(client, "POST", "/payin", body, false)
	}
	for _, fault := range []string{"refuse", "server_error_after", "rubbish", "not_sent"} {
		g.ask(client, "POST", "/sandbox/faults", `{"operation":"transfer","kind":"`+fault+`","count":1}`, true)
		g.ask(client, "POST", "/payout", strings.Replace(payout, `"quiet"}`, `"`+fault+`"}`, 1), false)
	}
	g.ask(client, "GET", "/payout?pixKey="+canaries["key"], "", false)
	g.ask(client, "GET", "/"+canaries["document"], "", false)
	until(t, func() string {
		if bytes.Count([]byte(g.log.String()), []byte("webhook attempted")) < 4 {
			return "the webhooks are not attempted yet"
		}
		return ""
	}, g)
	client.CloseIdleConnections()
	g.stop()
	absent(t, "the log", g.log.String())
	for _, name := range []string{"porteira.db", "porteira.db-wal"} {
		text, err := os.ReadFile(filepath.Join(data, name))
		if err == nil {
			absent(t, name, string(text))
		} else if name == "porteira.db" {
			t.Error(err)
		}
	}
}

func absent(t *testing.T, where, text string) {
	t.Helper()
	if len(text) == 0 {
		t.Errorf("%s is empty: nothing is proved", where)
	}
	for what, canary := range canaries {
		if strings.Contains(text, canary) {
			t.Errorf("%s holds the %s", where, what)
		}
	}
}
