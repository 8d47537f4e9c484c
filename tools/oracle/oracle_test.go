package oracle_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/porteira/porteira/boleto"
	"github.com/porteira/porteira/brcode"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/webhook"
	"github.com/porteira/porteira/pixkey"
	"github.com/porteira/porteira/taxid"
)

// examples is how many of each kind are checked.
const examples = 150

// item is one line for check.mjs.
type item struct {
	Kind   string         `json:"kind"`
	Value  any            `json:"value"`
	Expect map[string]any `json:"expect"`
}

// check sends items to the published packages and fails for each difference.
func check(t *testing.T, items []item) {
	t.Helper()
	needPackages(t)
	var in bytes.Buffer
	for _, it := range items {
		line, err := json.Marshal(it)
		if err != nil {
			t.Fatal(err)
		}
		in.Write(append(line, '\n'))
	}
	cmd := exec.CommandContext(t.Context(), "node", "check.mjs")
	cmd.Stdin = &in
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("checked "+strconv.Itoa(len(items))+", wrong 0")) {
		t.Errorf("%v\n%s", err, out)
	}
}

// needPackages skips the test without Node and its packages.
func needPackages(t *testing.T) {
	t.Helper()
	_, missing := exec.LookPath("node")
	if _, err := os.Stat("node_modules"); missing != nil || err != nil {
		withoutPackages(t)
	}
}

// The contract passes the strict rules of Redocly.
func TestContract(t *testing.T) {
	t.Parallel()
	needPackages(t)
	out, err := exec.CommandContext(t.Context(), "node", "lint.mjs", "../../api/openapi.yaml").CombinedOutput()
	if err != nil || !bytes.HasSuffix(out, []byte("linted, wrong 0\n")) {
		t.Errorf("%v\n%s", err, out)
	}
}

// The lint fails for a contract with one error.
func TestLintFindsErrors(t *testing.T) {
	t.Parallel()
	needPackages(t)
	contract, err := os.ReadFile("../../api/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for rule, change := range map[string][2]string{
		"operation-operationId-unique":   {"operationId: listPayins", "operationId: createPayin"},
		"no-unresolved-refs":             {`schema: {$ref: "#/components/schemas/PayinRequest"}`, `schema: {$ref: "#/components/schemas/Nothing"}`},
		"path-parameters-defined":        {"  /payin/{id}:\n", "  /payin/{id}/{other}:\n"},
		"no-invalid-media-type-examples": {"paymentMethod: PIX\n              amount: 12345", "paymentMethod: PIX\n              amount: much"},
		"operation-summary":              {"      summary: Create a payment order\n", ""},
	} {
		if !bytes.Contains(contract, []byte(change[0])) {
			t.Errorf("%s: %q is not in the contract", rule, change[0])
			continue
		}
		file := filepath.Join(t.TempDir(), "openapi.yaml")
		if err := os.WriteFile(file, bytes.Replace(contract, []byte(change[0]), []byte(change[1]), 1), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), "node", "lint.mjs", file).CombinedOutput()
		if err != nil || !bytes.Contains(out, []byte(rule+" ")) || bytes.HasSuffix(out, []byte("linted, wrong 0\n")) {
			t.Errorf("%s: %v\n%s", rule, err, out)
		}
	}
}

// withoutPackages skips the test on a developer's machine without Node's packages, and
// fails it if they are required.
func withoutPackages(t *testing.T) {
	t.Helper()
	const advice = "Node or the published packages are not installed: run `make oracle`"
	if os.Getenv("CI") == "true" || os.Getenv("PORTEIRA_REQUIRE_NODE") == "1" {
		t.Fatal(advice)
	}
	t.Skip(advice)
}

// broken changes one digit or letter of a text, so that it must be rejected.
func broken(s string, at int) string {
	at %= len(s)
	c := byte('0')
	if s[at] == c {
		c = '1'
	}
	return s[:at] + string(c) + s[at+1:]
}

func document(t *rapid.T) string {
	base := rapid.OneOf(rapid.StringMatching(`[0-9]{8}[1-9]`), rapid.StringMatching(`[0-9]{11}[1-9]`), rapid.StringMatching(`[A-Z0-9]{11}[1-9]`)).
		Filter(func(s string) bool { _, err := taxid.CheckDigits(s); return err == nil }).Draw(t, "base")
	check, err := taxid.CheckDigits(base)
	if err != nil {
		t.Fatal(err)
	}
	return base + check
}

func TestDocuments(t *testing.T) {
	var items []item
	for seed := range examples {
		doc := rapid.Custom(document).Example(seed)
		wrong := doc[:len(doc)-1] + string('0'+(doc[len(doc)-1]-'0'+1)%10)
		items = append(items, item{"taxid", doc, map[string]any{"valid": true}}, item{"taxid", wrong, map[string]any{"valid": false}})
		if _, err := taxid.Parse(wrong); err == nil {
			t.Errorf("%s is accepted", wrong)
		}
	}
	check(t, items)
}

func TestBRCodes(t *testing.T) {
	static := rapid.Custom(func(t *rapid.T) brcode.Static {
		return brcode.Static{
			Key:          rapid.SampledFrom([]string{"12345678909", "11222333000181", "12ABC34501DE35", "pix@bcb.gov.br", "+5511987654321", "123e4567-e12b-12d1-a456-426655440000"}).Draw(t, "key"),
			MerchantName: rapid.StringMatching(`[A-Z][A-Z0-9]{0,20}`).Draw(t, "name"), City: rapid.StringMatching(`[A-Z]{1,15}`).Draw(t, "city"),
			Amount: rapid.Int64Range(1, 99_999_999).Draw(t, "amount"), TxID: rapid.StringMatching(`[A-Za-z0-9]{1,25}`).Draw(t, "txid"),
		}
	})
	dynamic := rapid.Custom(func(t *rapid.T) brcode.Dynamic {
		return brcode.Dynamic{
			URL:          "pix.porteira.invalid/qr/v2/" + rapid.StringMatching(`[0-9A-Za-z]{32}`).Draw(t, "token"),
			MerchantName: "SEM VALOR - LOJA", City: "SAO PAULO", Amount: rapid.Int64Range(1, 99_999_999_999).Draw(t, "amount"),
		}
	})
	var items []item
	for seed := range examples {
		s := static.Example(seed)
		code, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, item{"brcode", code, map[string]any{
			"valid": true, "type": "STATIC", "key": s.Key, "name": s.MerchantName, "city": s.City, "cents": s.Amount, "txid": s.TxID,
		}}, item{"brcode", broken(code, 100+seed), map[string]any{"valid": false}})
		d := dynamic.Example(seed)
		if code, err = d.Encode(); err != nil {
			t.Fatal(err)
		}
		items = append(items, item{"brcode", code, map[string]any{ // pix-utils does not read their amount
			"valid": true, "type": "DYNAMIC", "url": d.URL, "name": d.MerchantName, "city": d.City,
		}})
	}
	check(t, items)
}

func TestBoletos(t *testing.T) {
	bill := rapid.Custom(func(t *rapid.T) boleto.Bill {
		return boleto.Bill{
			Bank:   rapid.SampledFrom([]string{"001", "033", "104", "237", "341", "999"}).Draw(t, "bank"),
			Amount: rapid.Int64Range(1, boleto.AmountMax).Draw(t, "amount"), Factor: rapid.IntRange(1000, 9999).Draw(t, "factor"),
			FreeField: rapid.StringMatching(`[0-9]{25}`).Draw(t, "free"),
		}
	})
	var items []item
	for seed := range examples {
		b := bill.Example(seed)
		barcode, err := b.Barcode()
		if err != nil {
			t.Fatal(err)
		}
		line, err := boleto.Line(barcode)
		if err != nil {
			t.Fatal(err)
		}
		items = append(items,
			item{"boleto", line, map[string]any{"valid": true, "cents": b.Amount, "bank": b.Bank}},
			item{"boleto", boleto.FormatLine(line), map[string]any{"valid": true, "cents": b.Amount, "bank": b.Bank}},
			item{"boleto", broken(line, seed%32), map[string]any{"valid": false}})
	}
	check(t, items)
}

func TestPixKeys(t *testing.T) {
	var items []item
	for seed := range examples {
		key := rapid.Custom(func(t *rapid.T) string {
			switch rapid.IntRange(0, 3).Draw(t, "type") {
			case 0:
				return document(t)
			case 1:
				return "+55" + rapid.StringMatching(`(1[1-9]|2[124]|31|41|51|61|71|81|91)9[1-9][0-9]{7}`).Draw(t, "phone")
			case 2:
				return rapid.StringMatching(`[a-z][a-z0-9.]{0,10}[a-z0-9]@[a-z]{2,10}\.(com|com\.br|org)`).
					Filter(func(s string) bool { return !bytes.Contains([]byte(s), []byte("..")) }).Draw(t, "e-mail")
			default:
				return rapid.StringMatching(`[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`).Draw(t, "evp")
			}
		}).Example(seed)
		ours := false
		for _, kind := range []pixkey.Type{pixkey.CPF, pixkey.CNPJ, pixkey.Phone, pixkey.Email, pixkey.EVP} {
			ours = ours || pixkey.Valid(kind, key)
		}
		if !ours {
			t.Errorf("%s is not accepted as a key", key)
		}
		items = append(items, item{"pixkey", key, map[string]any{"valid": true}})
	}
	check(t, items)
}

func TestWebhookSignatures(t *testing.T) {
	random := env.SeededRandom(1)
	now := time.Now() // the package checks that a timestamp is recent
	var items []item
	for i := range examples {
		secret, other := webhook.NewSecret(random), webhook.NewSecret(random)
		body := `{"id":"evt_` + strconv.Itoa(i) + `","data":{"name":"São João"}}`
		headers := map[string]string{
			"webhook-id": "evt_" + strconv.Itoa(i), "webhook-timestamp": strconv.FormatInt(now.Unix(), 10),
			"webhook-signature": webhook.Sign([]webhook.Secret{other, secret}, "evt_"+strconv.Itoa(i), now, []byte(body)),
		}
		value := map[string]any{"secret": secret.Reveal(), "body": body, "headers": headers}
		forged := map[string]any{"secret": secret.Reveal(), "body": body + " ", "headers": headers}
		items = append(items, item{"webhook", value, map[string]any{"valid": true}}, item{"webhook", forged, map[string]any{"valid": false}})
	}
	check(t, items)
}
