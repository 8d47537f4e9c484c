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
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// every is each page that an order can have, in both languages.
func every(t *testing.T, test func(t *testing.T, h *harness, path string)) {
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

// A page is whole in itself: nothing comes from elsewhere, and what stands in
// it is named by the policy.
func TestPagesKeepTheirPolicy(t *testing.T) {
	every(t, func(t *testing.T, h *harness, path string) {
		a := h.get(path)
		policy := a.Header().Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"} {
			if !strings.Contains(policy, want) {
				t.Errorf("the policy lacks %s: %s", want, policy)
			}
		}
		if strings.Contains(policy, "unsafe") {
			t.Errorf("the policy allows what is unsafe: %s", policy)
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

// Each page can be read aloud: it has a language, one heading, names for its
// fields and buttons, and no two elements of one id.
func TestPagesCanBeReadAloud(t *testing.T) {
	every(t, func(t *testing.T, h *harness, path string) {
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
					t.Errorf("the field %q is described by %q, which is not there", attr(n, "name"), id)
				}
			}
		}
		for _, n := range slices.Concat(a.all("button"), a.all("a")) {
			if text(n) == "" {
				t.Error("a button says nothing")
			}
		}
	})
}

// What is of the payer is masked, except on a bill that is to be paid.
func TestPagesMaskThePayer(t *testing.T) {
	every(t, func(t *testing.T, h *harness, path string) {
		a := h.get(path)
		says := a.says()
		if text(a.byID("line")) != "" {
			if !strings.Contains(says, payerName) || !strings.Contains(says, "529.982.247-25") {
				t.Error("the bill does not name who pays")
			}
			return
		}
		for _, secret := range []string{payerName, "Aparecida", payerDocument, "529.982.247-25", "maria@example.com", "98765", "Flores", "50000"} {
			if strings.Contains(a.body, secret) {
				t.Errorf("the page tells %q", secret)
			}
		}
	})
}

// Nothing that an order names, but what pages are to show, can be read off it.
func TestPagesTellNoIDs(t *testing.T) {
	every(t, func(t *testing.T, h *harness, path string) {
		a := h.get(path)
		for id := range h.shop.orders {
			if strings.Contains(a.body, id.String()) {
				t.Error("the page tells the order's id")
			}
		}
		if strings.Contains(h.log.String(), path[len("/pay/"):]) {
			t.Error("the log tells the token")
		}
		if !strings.Contains(h.log.String(), "route=/pay/{token}") {
			t.Errorf("the log says %q", h.log.String())
		}
	})
}

func TestEndsAreHonest(t *testing.T) {
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
		if wanted := strings.Contains(a.says(), "E99999999202611220130abcdefghijk"); receipt != wanted || receipt != (s == payment.PayinPaid || s == payment.PayinPartiallyRefunded || s == payment.PayinRefunded || s == payment.PayinDisputed || s == payment.PayinChargeback) {
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
		if !strings.Contains(a.says(), want) {
			t.Errorf("%q is not said: %s", want, a.says())
		}
	}
	for id := range h.shop.orders {
		if code := h.shop.orders[id].Details.PIX.QRCode; text(a.byID("code")) != code {
			t.Errorf("the code is %q, want %q", text(a.byID("code")), code)
		}
	}
	if copying := strings.Index(a.body, `data-copy="code"`); copying < 0 || copying > strings.Index(a.body, `class="qr"`) {
		t.Error("the copy button does not come before the QR code")
	}
	page := a.byID("page")
	if attr(page, "data-stream") != path+"/events?v=1" || attr(page, "data-state") != path+"/state" {
		t.Errorf("it waits at %q", attr(page, "data-stream"))
	}
	if !strings.Contains(a.body, `<noscript><meta http-equiv="refresh"`) {
		t.Error("without script it does not ask again")
	}
}

// An order that nobody has expired yet is shown as what it is.
func TestPageAtTheEndOfTime(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	path := h.order(payment.PIX)
	h.clock.Advance(time.Hour)
	if a := h.get(path); text(a.byID("heading")) != "O prazo terminou" || a.byID("code") != nil || attr(a.byID("page"), "data-stream") == "" {
		t.Errorf("it says %q", text(a.byID("heading")))
	}
}

// Of an order that ended with a part of its money, the rest is not asked for,
// and nobody is told that nothing was charged.
func TestUnderpaidAndEnded(t *testing.T) {
	t.Parallel()
	for _, s := range []payment.PayinStatus{payment.PayinPending, payment.PayinExpired, payment.PayinCanceled, payment.PayinFailed} {
		h := newHarness(t)
		path := h.order(payment.PIX, status(s), func(p *payment.Payin) { p.PaidAmount = 100000 })
		h.clock.Advance(time.Hour)
		a := h.get(path)
		if want := "Recebemos R$ 1.000,00 de R$ 1.234,56. Fale com " + merchantName + " sobre esse valor."; !strings.Contains(a.says(), want) || strings.Contains(a.says(), "Faltam") || strings.Contains(a.says(), "Nada foi cobrado") {
			t.Errorf("%s: it says %q", s, a.says())
		}
	}
}

func TestOrderThatIsNotReady(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	a := h.get(h.order(payment.PIX, func(p *payment.Payin) { p.Details.PIX = nil }))
	if text(a.byID("heading")) != "Preparando o pagamento" || attr(a.byID("page"), "data-stream") == "" {
		t.Errorf("it says %q", a.says())
	}
}

func TestUnderpaid(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	a := h.get(h.order(payment.Boleto, func(p *payment.Payin) { p.PaidAmount = 100000 }))
	if want := "Recebemos R$ 1.000,00. Faltam R$ 234,56."; !strings.Contains(a.says(), want) {
		t.Errorf("it says %q", a.says())
	}
}

func TestBoletoPage(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.shop.brand = store.Brand{Document: "11222333000181"}
	path := h.order(payment.Boleto)
	a := h.get(path)
	for _, want := range []string{"25/11/2026", "11.222.333/0001-81", "Rua das Flores, 100", "Pague o mesmo boleto com Pix", "SEM VALOR"} {
		if !strings.Contains(a.says(), want) {
			t.Errorf("%q is not said: %s", want, a.says())
		}
	}
	if attr(a.byID("line"), "data-bare") == "" {
		t.Error("there is no line to copy")
	}
	pdf := h.ask(http.MethodGet, path+"/boleto.pdf", "")
	if pdf.Code != 200 || !strings.HasPrefix(pdf.body, "%PDF-") || pdf.Header().Get("Content-Type") != "application/pdf" {
		t.Errorf("the PDF is %d %q", pdf.Code, pdf.Header())
	}
	h.clock.Advance(5 * 24 * time.Hour)
	for id, o := range h.shop.orders {
		o.ExpiresAt = start.AddDate(0, 0, 33)
		h.shop.orders[id] = o
	}
	if a := h.get(path); !strings.Contains(a.says(), "Venceu em 25/11/2026. Ainda pode ser pago até 24/12/2026.") {
		t.Errorf("overdue, it says %q", a.says())
	}
}

// A bill that was paid cannot be had any more.
func TestBillOfAPaidOrder(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	path := h.order(payment.Boleto, status(payment.PayinPaid))
	if a := h.ask(http.MethodGet, path+"/boleto.pdf", ""); a.Code != http.StatusSeeOther || a.Header().Get("Location") != path {
		t.Errorf("%d %q", a.Code, a.Header())
	}
	if a := h.ask(http.MethodGet, h.order(payment.PIX)+"/boleto.pdf", ""); a.Code != http.StatusNotFound {
		t.Errorf("a Pix has a bill: %d", a.Code)
	}
}

// The payer goes back with the reference, to a host that is still the
// merchant's.
func TestReturn(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"":                             "",
		"https://shop.example/thanks":  "https://shop.example/thanks?referenceId=a%26b",
		"https://shop.example/?x=1":    "https://shop.example/?referenceId=a%26b&x=1",
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

// Hostile texts in every field stay texts. (A corpus of published payloads is
// tried in a browser.)
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	const evil = `"'><img src=x onerror=alert(1)></textarea></title></style><script>alert(1)</script>{{.Base}}&#x27;`
	quoted, err := json.Marshal(evil)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range payment.Methods {
		for _, s := range payment.PayinStatuses {
			h := newHarness(t)
			h.shop.merchant.Name, h.shop.brand.Title = evil, evil
			h.shop.personal = payment.PersonalData{
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
			if !strings.Contains(a.says(), strings.Join(strings.Fields(evil), " ")) {
				t.Errorf("%s %s: the text is not shown as it is", m, s)
			}
		}
	}
}

// A stranger learns nothing: whatever is not a token is answered alike.
func TestStrangers(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	path := h.order(payment.PIX)
	gone := h.order(payment.PIX)
	delete(h.shop.orders, payment.ID{0: 2, 6: 0x70, 8: 0x80, 15: 9})
	other := payment.Payin{ExternalID: "00008" + strings.Repeat("x", 27), ID: payment.ID{1}}
	var first string
	for _, p := range []string{
		"/pay/", "/pay/x", "/pay/" + payment.ID{0: 1, 6: 0x70, 8: 0x80, 15: 9}.String(), path[:len(path)-1], path + "A", path + "/", path + "/nothing",
		path + "/logo/x", gone, checkout.Links("", h.keys)(&other).Checkout, "/pay/" + strings.Repeat("0", 48),
	} {
		a := h.ask(http.MethodGet, p, "")
		if first == "" {
			first = a.body
		}
		if a.Code != http.StatusNotFound || a.body != first {
			t.Errorf("%s: %d", p, a.Code)
		}
	}
	if strings.Contains(first, merchantName) {
		t.Error("it names a merchant")
	}
	if a := h.ask(http.MethodPut, path, ""); a.Code != http.StatusMethodNotAllowed || a.Header().Get("Allow") != "GET" {
		t.Errorf("PUT: %d", a.Code)
	}
	if a := h.ask(http.MethodHead, path, ""); a.Code != http.StatusOK {
		t.Errorf("HEAD: %d", a.Code)
	}
}

func TestBrandOnThePage(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.shop.brand = store.Brand{Title: "Livros & Cia", Color: "#ffff00", Logo: []byte("\x89PNG..."), LogoType: "image/png"}
	path := h.order(payment.PIX)
	a := h.get(path)
	if !strings.Contains(a.says(), "Livros & Cia") || strings.Contains(a.says(), merchantName+" ") {
		t.Errorf("it says %q", a.says())
	}
	logos := a.all("img")
	if len(logos) != 1 {
		t.Fatalf("%d pictures", len(logos))
	}
	logo := h.ask(http.MethodGet, attr(logos[0], "src"), "")
	if logo.Code != 200 || logo.body != "\x89PNG..." || logo.Header().Get("Content-Type") != "image/png" || !strings.Contains(logo.Header().Get("Cache-Control"), "immutable") {
		t.Errorf("the logo is %d %q", logo.Code, logo.Header())
	}
	if rules := a.all("style")[1].FirstChild.Data; strings.Contains(rules, "#ffff00}@media") || !strings.Contains(rules, "--accent:#") {
		t.Errorf("yellow on white: %s", rules)
	}
	// A new brand is seen after a moment.
	h.shop.brand.Title = "Outra"
	h.clock.Advance(6 * time.Second)
	if a := h.get(path); !strings.Contains(a.says(), "Outra") {
		t.Error("the brand is the old one")
	}
}

// Browsers that take gzip get it.
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

var unfilled = regexp.MustCompile(`\{\}|ZgotmplZ|%!|<nil>|(?:pix|boleto|card|row|failure|error|paid|sandbox)\.[a-z_]+\b`)

// Every sentence is there and filled in.
func TestSentencesAreWhole(t *testing.T) {
	every(t, func(t *testing.T, h *harness, path string) {
		a := h.get(path)
		says := strings.ReplaceAll(a.says(), "pix.example.invalid", "")
		if found := unfilled.FindAllString(strings.ReplaceAll(says, "br.gov.bcb.pix", ""), -1); len(found) > 0 {
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

// A merchant's name may hold what stands for a name in our sentences.
func TestNamesWithBraces(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.shop.brand.Title = "Loja {}"
	a := h.get(h.order(payment.PIX, status(payment.PayinRefunded)))
	if want := "Loja {} devolveu R$ 1.234,56."; !strings.Contains(a.says(), want) {
		t.Errorf("it says %q", a.says())
	}
}
