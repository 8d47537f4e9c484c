package checkout_test

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/net/html"

	"github.com/porteira/porteira/internal/checkout"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// eachPage runs a test for each kind of page in both languages.
func eachPage(t *testing.T, test func(t *testing.T, h *harness, path string)) {
	t.Helper()
	t.Parallel()
	for _, language := range []string{"pt-BR", "en-US,en;q=0.9"} {
		for _, m := range payment.Methods {
			for _, s := range payment.PayinStatuses {
				t.Run(language[:2]+" "+string(m)+" "+string(s), func(t *testing.T) {
					t.Parallel()
					h := newHarness(t)
					h.headers.Set("Accept-Language", language)
					test(t, h, h.order(m, status(s)))
				})
			}
		}
	}
}

// A page loads nothing from other hosts, and the policy names its inline styles
// and scripts.
func TestContentSecurityPolicy(t *testing.T) {
	eachPage(t, func(t *testing.T, h *harness, path string) {
		a := h.get(path)
		policy := a.Header().Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"} {
			if !strings.Contains(policy, want) {
				t.Errorf("the policy lacks %s: %s", want, policy)
			}
		}
		if strings.Contains(policy, "unsafe") {
			t.Errorf("the policy allows unsafe sources: %s", policy)
		}
		for _, name := range []string{"style", "script"} {
			for _, n := range a.all(name) {
				sum := sha256.Sum256([]byte(n.FirstChild.Data))
				if hash := base64.StdEncoding.EncodeToString(sum[:]); !strings.Contains(policy, name+"-src 'sha256-") || !strings.Contains(policy, hash) {
					t.Errorf("a %s is not in the policy", name)
				}
			}
		}
		for n := range a.root.Descendants() {
			for _, at := range n.Attr {
				if at.Key == "style" || strings.HasPrefix(at.Key, "on") || (at.Key == "src" || at.Key == "href" || at.Key == "action") && !strings.HasPrefix(at.Val, "/pay/") {
					t.Errorf("<%s %s=%q>", n.Data, at.Key, at.Val)
				}
			}
		}
		if len(a.body) > 60<<10 {
			t.Errorf("the page has %d bytes", len(a.body))
		}
		for name, want := range map[string]string{
			"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Robots-Tag": "noindex, nofollow, noarchive", "X-Content-Type-Options": "nosniff", "Set-Cookie": "",
		} {
			if got := a.Header().Get(name); got != want {
				t.Errorf("%s: %q", name, got)
			}
		}
	})
}

// Each page is accessible: it has a language, one heading, names for its fields
// and buttons, and unique ids.
func TestPagesAreAccessible(t *testing.T) {
	eachPage(t, func(t *testing.T, h *harness, path string) {
		a := h.get(path)
		if lang := attr(a.all("html")[0], "lang"); lang != a.Header().Get("Content-Language") || lang == "" {
			t.Errorf("language %q, header %q", lang, a.Header().Get("Content-Language"))
		}
		if heads := a.all("h1"); len(heads) != 1 || text(heads[0]) == "" || strings.Contains(text(heads[0]), ".") {
			t.Errorf("%d headings", len(heads))
		}
		ids := map[string]bool{}
		for n := range a.root.Descendants() {
			if id := attr(n, "id"); id != "" {
				if ids[id] {
					t.Errorf("two elements are %q", id)
				}
				ids[id] = true
			}
		}
		labels := map[string]bool{}
		for _, n := range a.all("label") {
			labels[attr(n, "for")] = text(n) != ""
		}
		for _, n := range slices.Concat(a.all("input"), a.all("select")) {
			if attr(n, "type") != "hidden" && !labels[attr(n, "id")] {
				t.Errorf("the field %q has no label", attr(n, "name"))
			}
			for _, id := range strings.Fields(attr(n, "aria-describedby")) {
				if !ids[id] {
					t.Errorf("the field %q is described by %q, which does not exist", attr(n, "name"), id)
				}
			}
		}
		for _, n := range slices.Concat(a.all("button"), a.all("a")) {
			if text(n) == "" {
				t.Error("a button has no name")
			}
		}
	})
}

// The payer's personal data is masked, except on a boleto that can be paid.
func TestPagesMaskPersonalData(t *testing.T) {
	eachPage(t, func(t *testing.T, h *harness, path string) {
		a := h.get(path)
		says := a.text()
		if text(a.byID("line")) != "" {
			if !strings.Contains(says, payerName) || !strings.Contains(says, "529.982.247-25") {
				t.Error("the boleto does not name the payer")
			}
			return
		}
		for _, secret := range []string{payerName, "Aparecida", payerDocument, "529.982.247-25", "maria@example.com", "98765", "Flores", "50000"} {
			if strings.Contains(a.body, secret) {
				t.Errorf("the page contains %q", secret)
			}
		}
	})
}

// Neither pages nor logs contain an order's id or token.
func TestPagesAndLogsHoldNoIDs(t *testing.T) {
	eachPage(t, func(t *testing.T, h *harness, path string) {
		a := h.get(path)
		for id := range h.store.orders {
			if strings.Contains(a.body, id.String()) {
				t.Error("the page contains the order's id")
			}
		}
		if strings.Contains(h.log.String(), path[len("/pay/"):]) {
			t.Error("the log contains the token")
		}
		if !strings.Contains(h.log.String(), "route=/pay/{token}") {
			t.Errorf("log %q", h.log.String())
		}
	})
}

func TestOutcomePages(t *testing.T) {
	t.Parallel()
	for s, want := range map[payment.PayinStatus]string{
		payment.PayinProcessing: "Pagamento em análise", payment.PayinPaid: "Pagamento confirmado", payment.PayinExpired: "O prazo terminou",
		payment.PayinCanceled: "Pagamento cancelado", payment.PayinFailed: "Pagamento recusado", payment.PayinPartiallyRefunded: "Pagamento devolvido em parte",
		payment.PayinRefunded: "Pagamento devolvido", payment.PayinDisputed: "Pagamento contestado", payment.PayinChargeback: "Pagamento estornado",
	} {
		h := newHarness(t)
		a := h.get(h.order(payment.PIX, status(s)))
		if got := text(a.byID("heading")); got != want {
			t.Errorf("%s: %q", s, got)
		}
		if code := a.byID("code"); code != nil {
			t.Errorf("%s: there is still a code to pay", s)
		}
		receipt := a.byID("receipt") != nil
		if wanted := strings.Contains(a.text(), "E99999999202611220130abcdefghijk"); receipt != wanted || receipt != (s == payment.PayinPaid || s == payment.PayinPartiallyRefunded || s == payment.PayinRefunded || s == payment.PayinDisputed || s == payment.PayinChargeback) {
			t.Errorf("%s: receipt %v", s, receipt)
		}
	}
}

func TestPixPage(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	path := h.order(payment.PIX)
	a := h.get(path)
	for _, want := range []string{"R$ 1.234,56", "LIVRARIA LTDA", "Pague até 21/11/2026 às 23:30", "pedido-1", "Um livro", "2 × R$ 49,50", merchantName} {
		if !strings.Contains(a.text(), want) {
			t.Errorf("%q is not on the page: %s", want, a.text())
		}
	}
	for id := range h.store.orders {
		if code := h.store.orders[id].Details.PIX.QRCode; text(a.byID("code")) != code {
			t.Errorf("the code is %q, want %q", text(a.byID("code")), code)
		}
	}
	if copying := strings.Index(a.body, `data-copy="code"`); copying < 0 || copying > strings.Index(a.body, `class="qr"`) {
		t.Error("the copy button does not come before the QR code")
	}
	page := a.byID("page")
	if attr(page, "data-stream") != path+"/events?v=1" || attr(page, "data-state") != path+"/state" {
		t.Errorf("the stream's URL is %q", attr(page, "data-stream"))
	}
	if !strings.Contains(a.body, `<noscript><meta http-equiv="refresh"`) {
		t.Error("without script the page does not reload")
	}
}

// A dispute of a part shows the part, above and in the receipt.
func TestPartlyDisputed(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		status   payment.PayinStatus
		disputed money.Cents
		language string
		want     []string
	}{
		{payment.PayinDisputed, 120_00, "pt", []string{"Pagamento contestado em parte", "R$ 120,00 de R$ 1.234,56 foram contestados", "Valor contestado R$ 120,00"}},
		{payment.PayinDisputed, 120_00, "en", []string{"Payment partly disputed", "R$ 120,00 of R$ 1.234,56 was disputed", "Disputed amount R$ 120,00"}},
		{payment.PayinChargeback, 120_00, "pt", []string{"Pagamento estornado em parte", "R$ 120,00 de R$ 1.234,56 voltam para quem pagou", "Valor estornado R$ 120,00"}},
		{payment.PayinChargeback, 120_00, "en", []string{"Payment partly charged back", "R$ 120,00 of R$ 1.234,56 goes back to the payer", "Amount charged back R$ 120,00"}},
		{payment.PayinDisputed, 1234_56, "pt", []string{"O pagamento foi confirmado e depois contestado."}},
		{payment.PayinChargeback, 1234_56, "pt", []string{"A contestação foi aceita e o valor volta para quem pagou."}},
	} {
		h := newHarness(t)
		h.headers.Set("Accept-Language", row.language)
		a := h.get(h.order(payment.PIX, status(row.status), func(p *payment.Payin) { p.DisputedAmount = row.disputed }))
		for _, want := range row.want {
			if !strings.Contains(a.text(), want) {
				t.Errorf("%s %s of %d: %q is not on the page: %s", row.language, row.status, row.disputed, want, a.text())
			}
		}
	}
}

// If an order ended with a part of its money, the page neither requests the
// rest nor says that nothing was charged.
func TestUnderpaidOutcome(t *testing.T) {
	t.Parallel()
	for _, s := range []payment.PayinStatus{payment.PayinPending, payment.PayinExpired, payment.PayinCanceled, payment.PayinFailed} {
		h := newHarness(t)
		path := h.order(payment.PIX, status(s), func(p *payment.Payin) { p.PaidAmount = 100000 })
		h.clock.Advance(time.Hour)
		a := h.get(path)
		if want := "Recebemos R$ 1.000,00 de R$ 1.234,56. Fale com " + merchantName + " sobre esse valor."; !strings.Contains(a.text(), want) || strings.Contains(a.text(), "Faltam") || strings.Contains(a.text(), "Nada foi cobrado") {
			t.Errorf("%s: page text %q", s, a.text())
		}
	}
}

func TestPendingOrderWithoutCharge(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	a := h.get(h.order(payment.PIX, func(p *payment.Payin) { p.Details.PIX = nil }))
	if text(a.byID("heading")) != "Preparando o pagamento" || attr(a.byID("page"), "data-stream") == "" {
		t.Errorf("page text %q", a.text())
	}
}

func TestUnderpaid(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	a := h.get(h.order(payment.Boleto, func(p *payment.Payin) { p.PaidAmount = 100000 }))
	if want := "Recebemos R$ 1.000,00. Faltam R$ 234,56."; !strings.Contains(a.text(), want) {
		t.Errorf("page text %q", a.text())
	}
}

func TestBoletoPage(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.store.brand = store.Brand{Document: "11222333000181"}
	path := h.order(payment.Boleto)
	a := h.get(path)
	for _, want := range []string{"25/11/2026", "11.222.333/0001-81", "Rua das Flores, 100", "Pague o mesmo boleto com Pix", "SEM VALOR"} {
		if !strings.Contains(a.text(), want) {
			t.Errorf("%q is not on the page: %s", want, a.text())
		}
	}
	if attr(a.byID("line"), "data-bare") == "" {
		t.Error("there is no digitable line to copy")
	}
	pdf := h.do(http.MethodGet, path+"/boleto.pdf", "")
	if pdf.Code != 200 || !strings.HasPrefix(pdf.body, "%PDF-") || pdf.Header().Get("Content-Type") != "application/pdf" {
		t.Errorf("the PDF is %d %q", pdf.Code, pdf.Header())
	}
	h.clock.Advance(5 * 24 * time.Hour)
	for id, o := range h.store.orders {
		o.ExpiresAt = start.AddDate(0, 0, 33)
		h.store.orders[id] = o
	}
	if a := h.get(path); !strings.Contains(a.text(), "Venceu em 25/11/2026. Ainda pode ser pago até 24/12/2026.") {
		t.Errorf("page text when overdue: %q", a.text())
	}
}

// The PDF of a paid boleto is not served.
func TestPaidBoletoHasNoPDF(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	path := h.order(payment.Boleto, status(payment.PayinPaid))
	if a := h.do(http.MethodGet, path+"/boleto.pdf", ""); a.Code != http.StatusSeeOther || a.Header().Get("Location") != path {
		t.Errorf("%d %q", a.Code, a.Header())
	}
	if a := h.do(http.MethodGet, h.order(payment.PIX)+"/boleto.pdf", ""); a.Code != http.StatusNotFound {
		t.Errorf("a Pix order has a boleto: %d", a.Code)
	}
}

// The link back to the merchant has the reference, and is shown only if its
// host is still the merchant's.
func TestReturnLink(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"":                             "",
		"https://shop.example/thanks":  "https://shop.example/thanks?referenceId=a%26b",
		"https://shop.example/?x=1":    "https://shop.example/?referenceId=a%26b&x=1",
		"HTTPS://Shop.Example/São":     "https://shop.example/S%C3%A3o?referenceId=a%26b",
		"https://other.example/thanks": "",
		"javascript:alert(1)":          "",
	} {
		h := newHarness(t)
		for _, s := range []payment.PayinStatus{payment.PayinPending, payment.PayinPaid, payment.PayinExpired} {
			a := h.get(h.order(payment.PIX, status(s), func(p *payment.Payin) { p.Details.ReturnURL, p.ReferenceID = url, "a&b" }))
			got := ""
			for _, n := range a.all("a") {
				got = attr(n, "href")
			}
			if got != want {
				t.Errorf("%s %s: %q", url, s, got)
			}
		}
	}
}

// Hostile text in every field is shown as text. (A browser test tries a corpus
// of published payloads.)
func TestHostileTextsAreEscaped(t *testing.T) {
	t.Parallel()
	const evil = `"'><img src=x onerror=alert(1)></textarea></title></style><script>alert(1)</script>{{.Base}}&#x27;`
	quoted, err := json.Marshal(evil)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range payment.Methods {
		for _, s := range payment.PayinStatuses {
			h := newHarness(t)
			h.store.merchant.Name, h.store.brand.Title = evil, evil
			h.store.personal = payment.PersonalData{
				Customer: []byte(`{"name":` + string(quoted) + `,"document":"52998224725","address":{"street":` + string(quoted) + `}}`),
				Items:    []byte(`[{"title":` + string(quoted) + `,"quantity":1,"unitPrice":1}]`),
			}
			a := h.get(h.order(m, status(s), func(p *payment.Payin) {
				p.ReferenceID, p.Details.Description = evil, evil
				p.Failure = &payment.Failure{Code: evil, Message: evil}
				p.Details.ReturnURL = "https://shop.example/" + evil
				if s == payment.PayinPaid {
					p.EndToEndID = evil
				}
			}))
			if n := len(a.all("script")); n != 1 {
				t.Errorf("%s %s: %d scripts", m, s, n)
			}
			if n := len(a.all("img")); n != 0 {
				t.Errorf("%s %s: %d pictures", m, s, n)
			}
			if !strings.Contains(a.text(), strings.Join(strings.Fields(evil), " ")) {
				t.Errorf("%s %s: the text is not shown as it is", m, s)
			}
		}
	}
}

// Every invalid token gets the same response, which reveals nothing.
func TestInvalidTokensLookAlike(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	path := h.order(payment.PIX)
	gone := h.order(payment.PIX)
	delete(h.store.orders, payment.ID{0: 2, 6: 0x70, 8: 0x80, 15: 9})
	other := payment.Payin{ExternalID: "00008" + strings.Repeat("x", 27), ID: payment.ID{1}}
	var first string
	for _, p := range []string{
		"/pay/", "/pay/x", "/pay/" + payment.ID{0: 1, 6: 0x70, 8: 0x80, 15: 9}.String(), path[:len(path)-1], path + "A", path + "/", path + "/nothing",
		path + "/logo/x", gone, checkout.Links("", h.keys)(&other).Checkout, "/pay/" + strings.Repeat("0", 48),
	} {
		a := h.do(http.MethodGet, p, "")
		if first == "" {
			first = a.body
		}
		if a.Code != http.StatusNotFound || a.body != first {
			t.Errorf("%s: %d", p, a.Code)
		}
	}
	if strings.Contains(first, merchantName) {
		t.Error("the page names a merchant")
	}
	if a := h.do(http.MethodPut, path, ""); a.Code != http.StatusMethodNotAllowed || a.Header().Get("Allow") != "GET" {
		t.Errorf("PUT: %d", a.Code)
	}
	if a := h.do(http.MethodHead, path, ""); a.Code != http.StatusOK {
		t.Errorf("HEAD: %d", a.Code)
	}
}

func TestBrandOnThePage(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.store.brand = store.Brand{Title: "Livros & Cia", Color: "#ffff00", Logo: []byte("\x89PNG..."), LogoType: "image/png"}
	path := h.order(payment.PIX)
	a := h.get(path)
	if !strings.Contains(a.text(), "Livros & Cia") || strings.Contains(a.text(), merchantName+" ") {
		t.Errorf("page text %q", a.text())
	}
	logos := a.all("img")
	if len(logos) != 1 {
		t.Fatalf("%d pictures", len(logos))
	}
	logo := h.do(http.MethodGet, attr(logos[0], "src"), "")
	if logo.Code != 200 || logo.body != "\x89PNG..." || logo.Header().Get("Content-Type") != "image/png" || !strings.Contains(logo.Header().Get("Cache-Control"), "immutable") {
		t.Errorf("the logo is %d %q", logo.Code, logo.Header())
	}
	if rules := a.all("style")[1].FirstChild.Data; strings.Contains(rules, "#ffff00}@media") || !strings.Contains(rules, "--accent:#") {
		t.Errorf("yellow on white: %s", rules)
	}
	// A new brand is shown once the cached one has expired.
	h.store.brand.Title = "Outra"
	h.clock.Advance(6 * time.Second)
	if a := h.get(path); !strings.Contains(a.text(), "Outra") {
		t.Error("the old brand is still shown")
	}
}

// Browsers that accept gzip get it.
func TestPagesAreSmall(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.headers.Set("Accept-Encoding", "gzip, br")
	for _, m := range payment.Methods {
		a := h.get(h.order(m))
		if a.Header().Get("Content-Encoding") != "gzip" || len(a.body) > 14<<10 {
			t.Errorf("%s: %d bytes, which do not fit the first ten packets", m, len(a.body))
		}
	}
}

var placeholder = regexp.MustCompile(`\{\}|ZgotmplZ|%!|<nil>|(?:pix|boleto|card|row|failure|error|paid|sandbox)\.[a-z_]+\b`)

// Every text exists and has its placeholders filled.
func TestPlaceholdersAreFilled(t *testing.T) {
	eachPage(t, func(t *testing.T, h *harness, path string) {
		a := h.get(path)
		says := strings.ReplaceAll(a.text(), "pix.example.invalid", "")
		if found := placeholder.FindAllString(strings.ReplaceAll(says, "br.gov.bcb.pix", ""), -1); len(found) > 0 {
			t.Errorf("%q in %q", found, says)
		}
		var visit func(n *html.Node)
		visit = func(n *html.Node) {
			if n.Type == html.CommentNode {
				t.Errorf("a comment: %q", n.Data)
			}
			for c := n.FirstChild; c != nil; c = c.NextSibling {
				visit(c)
			}
		}
		visit(a.root)
	})
}

// A merchant's name may contain a placeholder.
func TestNamesWithBraces(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.store.brand.Title = "Loja {}"
	a := h.get(h.order(payment.PIX, status(payment.PayinRefunded)))
	if want := "Loja {} devolveu R$ 1.234,56."; !strings.Contains(a.text(), want) {
		t.Errorf("page text %q", a.text())
	}
}
