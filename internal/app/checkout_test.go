package app_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/porteira/porteira/internal/app/apptest"
)

// payer is a browser without scripts: it requests pages and sends forms.
type payer struct {
	t    *testing.T
	page string // address of the order's page
}

func (p *payer) ask(method, path string, form url.Values) (status int, location, body string) {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), method, p.page+path, strings.NewReader(form.Encode()))
	if err != nil {
		p.t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	answer, body := p.do(r)
	return answer.StatusCode, answer.Header.Get("Location"), body
}

// do sends a request and follows no redirect.
func (p *payer) do(r *http.Request) (answer *http.Response, body string) {
	p.t.Helper()
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return answer, string(text)
}

// sees waits until the page contains want.
func (p *payer) sees(want string) {
	p.t.Helper()
	apptest.Until(p.t, func() string {
		if _, _, body := p.ask(http.MethodGet, "", nil); !strings.Contains(body, want) {
			return fmt.Sprintf("the page does not say %q:\n%s", want, body[strings.Index(body, "<h1"):])
		}
		return ""
	})
}

func card(attempt, number string) url.Values {
	return url.Values{
		"attempt": {attempt}, "number": {number}, "expiry": {"12/40"}, "code": {"123"}, "holder": {"MARIA"}, "installments": {"2"},
	}
}

// order creates an order and returns it with its payer.
func order(t *testing.T, g *apptest.Installed, method, reference string) (apptest.Answer, *payer) {
	t.Helper()
	more := ""
	if method == "CREDIT_CARD" {
		more = `,"installments":6`
	}
	a := g.In(t).Must(201, "POST", "/payin", `{"paymentMethod":"`+method+`","amount":1990,"referenceId":"`+reference+`","customer":{"name":"Maria","document":"52998224725"}`+more+`}`)
	return a, &payer{t, a.Get("checkoutUrl")}
}

// Every answer and every event has the same checkout URL.
func TestCheckoutAddress(t *testing.T) {
	onBoth(t, func(t *testing.T, g *apptest.Installed) {
		a, p := order(t, g, "BOLETO", "address")
		if !strings.HasPrefix(p.page, g.Base+"/pay/") || a.Get("boleto.pdfUrl") != p.page+"/boleto.pdf" {
			t.Errorf("%q, %q", p.page, a.Get("boleto.pdfUrl"))
		}
		g.In(t).Must(204, "POST", "/sandbox/payin/"+a.Get("id")+"/pay", "")
		for _, got := range []string{
			g.In(t).Must(200, "GET", "/payin/"+a.Get("id"), "").Get("checkoutUrl"),
			g.In(t).Must(200, "GET", "/payin", "").Get("data.0.checkoutUrl"),
			g.In(t).Must(200, "GET", "/events", "").Get("data.0.data.checkoutUrl"),
		} {
			if got != p.page {
				t.Errorf("%q, at first %q", got, p.page)
			}
		}
		p.sees("Pagamento confirmado")
		if status, _, _ := p.ask(http.MethodGet, "/boleto.pdf", nil); status != http.StatusSeeOther {
			t.Errorf("the bill of a paid order: %d", status)
		}
		if strings.Contains(g.Log.String(), p.page[len(g.Base+"/pay/"):]) {
			t.Error("the log contains the address")
		}
	})
}

// A card is refused, and the next one pays.
func TestCardsOnTheCheckoutPage(t *testing.T) {
	onBoth(t, func(t *testing.T, g *apptest.Installed) {
		a, p := order(t, g, "CREDIT_CARD", "second try")
		if a.Get("card.checkoutUrl") != p.page {
			t.Errorf("card.checkoutUrl is %q", a.Get("card.checkoutUrl"))
		}
		for i, number := range []string{"4000000000009995", "4000000000009995", "378734493671000"} {
			form := card(fmt.Sprint(i+1), number)
			if number[0] == '3' {
				form.Set("code", "1234")
			}
			if status, _, body := p.ask(http.MethodPost, "/card", form); status != http.StatusSeeOther {
				t.Fatalf("try %d: %d %s", i+1, status, body)
			}
			p.sees(fmt.Sprintf(`name="attempt" value="%d"`, i+2))
		}
		got := g.In(t).Must(200, "GET", "/payin/"+a.Get("id"), "")
		if got.Get("status") != "PENDING" || got.Get("failure.code") != "card_blocked" {
			t.Errorf("after three refusals: %s", got.Body)
		}
		p.ask(http.MethodPost, "/card", card("4", "5555555555554444"))
		p.sees("Mastercard final 4444, 2x")
		got = g.In(t).Must(200, "GET", "/payin/"+a.Get("id"), "")
		if got.Get("status") != "PAID" || got.Get("card.last4") != "4444" || got.Get("card.installments") != "2" || got.Get("failure") != "" {
			t.Errorf("paid: %s", got.Body)
		}
		for _, secret := range []string{"5555555555554444", "4000000000009995"} {
			if strings.Contains(g.Log.String(), secret) {
				t.Error("the log contains a card number")
			}
		}
		g.Verify(t)
	})
}

// The payer is charged once, even if the form is sent several times, concurrently, with
// different cards.
func TestNoDoubleCharge(t *testing.T) {
	onBoth(t, func(t *testing.T, g *apptest.Installed) {
		a, p := order(t, g, "CREDIT_CARD", "double click")
		var all sync.WaitGroup
		for i := range 20 {
			number := []string{"4111111111111111", "5555555555554444"}[i%2]
			all.Go(func() {
				if status, _, body := p.ask(http.MethodPost, "/card", card(fmt.Sprint(1+i%3), number)); status != http.StatusSeeOther {
					t.Errorf("%d %s", status, body)
				}
			})
		}
		all.Wait()
		p.sees("Pagamento confirmado")
		p.ask(http.MethodPost, "/card", card("1", "4111111111111111"))
		p.ask(http.MethodPost, "/card", card("2", "4111111111111111"))
		got := g.In(t).Must(200, "GET", "/payin/"+a.Get("id"), "")
		if got.Get("paidAmount") != "1990" {
			t.Errorf("paid: %s", got.Body)
		}
		if b := g.In(t).Must(200, "GET", "/balance", ""); b.Get("unapplied") != "0" {
			t.Errorf("received more than the order's amount: %s", b.Body)
		}
		g.Verify(t)
	})
}

func TestCardsThatTakeTime(t *testing.T) {
	onBoth(t, func(t *testing.T, g *apptest.Installed) {
		_, p := order(t, g, "CREDIT_CARD", "challenge")
		if _, location, _ := p.ask(http.MethodPost, "/card", card("1", "4000000000003220")); !strings.HasSuffix(location, "/card/1") {
			t.Fatalf("it leads to %q", location)
		}
		if _, _, body := p.ask(http.MethodGet, "/card/1", nil); !strings.Contains(body, "Confirme com o seu banco") {
			t.Errorf("it says %s", body)
		}
		p.ask(http.MethodPost, "/confirm/1", url.Values{"answer": {"no"}})
		p.sees("a confirmação não foi concluída")
		p.ask(http.MethodPost, "/card", card("2", "4000000000003220"))
		p.ask(http.MethodPost, "/confirm/2", url.Values{"answer": {"yes"}})
		p.ask(http.MethodPost, "/confirm/2", url.Values{"answer": {"yes"}})
		p.sees("Visa final 3220")

		_, approved := order(t, g, "CREDIT_CARD", "analysis")
		_, refused := order(t, g, "CREDIT_CARD", "analysis, refused")
		approved.ask(http.MethodPost, "/card", card("1", "4000000000000036"))
		refused.ask(http.MethodPost, "/card", card("1", "4000000000000044"))
		approved.sees("Pagamento em análise")
		approved.sees("Pagamento confirmado")
		refused.sees("recusado após análise")
		g.Verify(t)
	})
}

// A waiting page gets an event when its order changes, and a process that stops does not
// wait for its pages.
func TestPagesGetChanges(t *testing.T) {
	onBoth(t, func(t *testing.T, g *apptest.Installed) {
		_, p := order(t, g, "PIX", "heard")
		_, idle := order(t, g, "PIX", "idle")
		next, idleNext := p.stream(), idle.stream()
		if status, _, _ := p.ask(http.MethodPost, "/sandbox/pay", nil); status != http.StatusSeeOther {
			t.Fatalf("status %d", status)
		}
		if got := next() + next(); got != "event: changedata: 2" {
			t.Errorf("stream got %q", got)
		}
		p.sees("Pagamento confirmado")
		_, expired := order(t, g, "BOLETO", "expired")
		expired.ask(http.MethodPost, "/sandbox/expire", nil)
		expired.sees("O prazo terminou")
		_, refused := order(t, g, "CREDIT_CARD", "refused")
		refused.ask(http.MethodPost, "/sandbox/refuse", nil)
		refused.sees("recusado pelo banco emissor")
		g.Stop()
		if got := idleNext(); got != "END" {
			t.Errorf("after the end the stream got %q", got)
		}
	})
}

// stream opens the page's stream and returns its lines.
func (p *payer) stream() (next func() string) {
	p.t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, p.page+"/events?v=1", http.NoBody)
	if err != nil {
		p.t.Fatal(err)
	}
	got, err := http.DefaultTransport.RoundTrip(r)
	if err != nil || got.StatusCode != http.StatusOK {
		p.t.Fatalf("stream: %v %v", got, err)
	}
	p.t.Cleanup(func() { _ = got.Body.Close() })
	reader := bufio.NewReader(got.Body)
	next = func() string {
		for {
			line, err := reader.ReadString('\n')
			if err != nil {
				return "END"
			}
			if line = strings.TrimSpace(line); line != "" {
				return line
			}
		}
	}
	if first := next(); first != "retry: 3000" {
		p.t.Fatalf("the stream begins with %q", first)
	}
	return next
}
