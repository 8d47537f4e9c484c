package drivers

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/processor/asaas"
	"github.com/porteira/porteira/internal/sandboxbank"
	"github.com/porteira/porteira/internal/sandboxbank/asaasface"
)

const (
	asaasKey   = "$aact_hmlg_0123456789"
	asaasToken = "0123456789abcdef0123456789abcdef"
	asaasURL   = "https://asaas.invalid"
)

// asaasBank is the bank as Asaas.
type asaasBank struct {
	*sandboxbank.Bank

	g    *gateway
	face *asaasface.Face
	asks bool // for consent to transfers
}

func newAsaasBank(g *gateway) bank { g.t.Helper(); return openAsaas(g, true) }

// newUnaskedBank is Asaas without withdrawal validation: no one stops a second transfer.
func newUnaskedBank(g *gateway) bank { g.t.Helper(); return openAsaas(g, false) }

func openAsaas(g *gateway, asks bool) *asaasBank {
	g.t.Helper()
	w, _ := env.Virtual(g.clock.Now(), 2)
	relay := &asaasface.Relay{Next: inbound{g}}
	main, err := sandboxbank.Open(sandboxbank.Options{Secret: bankSecret, Clock: g.clock, IDs: w.IDs, Notify: relay, Pause: g.clock.Pause})
	g.must(err)
	g.t.Cleanup(func() { g.must(main.Close()) })
	b := &asaasBank{g: g, asks: asks}
	b.Bank, err = main.Contract(asaasface.ContractRepeat, asaasface.ContractName)
	g.must(err)
	b.face, err = asaasface.Open(asaasface.Options{Bank: b.Bank, Key: asaasKey, Notify: inbound{g}, BaseURL: asaasURL})
	g.must(err)
	relay.Serve(b.face)
	return b
}

func (b *asaasBank) open(e processor.Env) processor.Processor {
	b.g.t.Helper()
	settings := map[string]string{asaas.SettingBaseURL: asaasURL + "/v3"}
	if b.asks {
		settings[asaas.SettingValidation] = "on"
	}
	p, err := asaas.Driver{}.Open(processor.Account{
		ID: account, Settings: settings,
		Secrets: map[string]string{asaas.SecretKey: asaasKey, asaas.SecretToken: asaasToken},
	}, e)
	b.g.must(err)
	return p
}

func (b *asaasBank) handler() http.Handler { return b.face.Handler() }

func (b *asaasBank) installed() {
	if b.asks {
		b.call(http.MethodPut, "/panel/withdrawal-validation", fmt.Sprintf(`{"url":%q,"authToken":%q}`, noticeURL+"/consent", asaasToken), nil)
	}
}

func (b *asaasBank) step(ctx context.Context, now time.Time) (int, error) { return b.Step(ctx, now) }

func (b *asaasBank) methods() []payment.Method {
	if b.asks {
		return payment.Methods
	}
	return nil // the others do not depend on it
}

func (b *asaasBank) questions() int {
	if b.asks {
		return 3
	}
	return 0
}

func (b *asaasBank) installments() int { return 3 }

func (b *asaasBank) paysOut() bool { return true }

func (b *asaasBank) disputes(m payment.Method) bool { return m == payment.CreditCard }

// call calls the face as its panel and its pages are called.
func (b *asaasBank) call(method, path, body string, into any) {
	b.g.t.Helper()
	r := httptest.NewRequestWithContext(b.g.t.Context(), method, asaasURL+path, strings.NewReader(body))
	if body == "" {
		r.Body = http.NoBody
	}
	if strings.HasPrefix(path, "/i/") {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	r.Header.Set("access_token", asaasKey)
	w := httptest.NewRecorder()
	b.face.Handler().ServeHTTP(w, r)
	if w.Code >= http.StatusBadRequest {
		b.g.t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
	}
	if into != nil {
		b.g.must(json.Unmarshal(w.Body.Bytes(), into))
	}
}

// reais are amounts as Asaas writes them.
type reais money.Cents

// UnmarshalJSON implements [json.Unmarshaler].
func (r *reais) UnmarshalJSON(text []byte) error {
	var whole, cents int64
	if n, err := fmt.Sscanf(string(text), "%d.%d", &whole, &cents); n < 1 {
		return err
	}
	*r = reais(whole*100 + cents)
	if strings.HasPrefix(string(text), "-") {
		*r = reais(whole*100 - cents)
	}
	return nil
}

type asaasPayment struct {
	ID       string `json:"id"`
	Status   string `json:"status"`
	Deleted  bool   `json:"deleted"`
	Method   string `json:"billingType"`
	Value    reais  `json:"value"`
	NetValue reais  `json:"netValue"`
	Refunds  []struct {
		Status      string `json:"status"`
		Value       reais  `json:"value"`
		Description string `json:"description"`
	} `json:"refunds"`
}

// payments are Asaas' charges under a reference; "" is all.
func (b *asaasBank) payments(reference string) []asaasPayment {
	b.g.t.Helper()
	var page struct {
		Data []asaasPayment `json:"data"`
	}
	query := url.Values{"limit": {"100"}}
	if reference != "" {
		query.Set("externalReference", reference)
	}
	b.call(http.MethodGet, "/v3/payments?"+query.Encode(), "", &page)
	return page.Data
}

func (b *asaasBank) pay(p *payment.Payin) {
	b.g.t.Helper()
	id := b.payments(p.ExternalID)[0].ID
	if p.Method == payment.CreditCard {
		b.call(http.MethodPost, "/i/"+id, "result=approved", nil)
		return
	}
	b.call(http.MethodPost, "/v3/sandbox/payment/"+id+"/confirm", "", nil)
}

func (b *asaasBank) panel(p *payment.Payin, action string) {
	b.g.t.Helper()
	b.call(http.MethodPost, "/panel/payment/"+b.payments(p.ExternalID)[0].ID+"/"+action, "", nil)
}

func (b *asaasBank) dispute(p *payment.Payin) { b.g.t.Helper(); b.panel(p, "dispute") }
func (b *asaasBank) lose(p *payment.Payin)    { b.g.t.Helper(); b.panel(p, "lose") }
func (b *asaasBank) win(p *payment.Payin)     { b.g.t.Helper(); b.panel(p, "win") }

func (b *asaasBank) failTransfer(p *payment.Payout) (failed bool) {
	b.g.t.Helper()
	for _, v := range b.listed(p) {
		if v.Status == "PENDING" {
			b.call(http.MethodPost, "/panel/transfer/"+v.ID+"/fail", "", nil)
			failed = true
		}
	}
	return failed
}

func (b *asaasBank) panelRefund(p *payment.Payin, amount money.Cents) {
	b.g.t.Helper()
	b.call(http.MethodPost, "/v3/payments/"+b.payments(p.ExternalID)[0].ID+"/refund", fmt.Sprintf(`{"value":%s,"description":"no painel"}`, amount.Decimal()), nil)
}

func (b *asaasBank) defends() bool { return false }

func (b *asaasBank) defenses(*payment.Payin) int { return 0 }

func (b *asaasBank) charges(p *payment.Payin) (registered, open int) {
	b.g.t.Helper()
	for _, v := range b.payments(p.ExternalID) {
		if registered++; !v.Deleted && (v.Status == "PENDING" || v.Status == "OVERDUE") {
			open++
		}
	}
	return registered, open
}

type asaasTransfer struct {
	ID        string `json:"id"`
	Status    string `json:"status"`
	Value     reais  `json:"value"`
	Reference string `json:"externalReference"`
}

func (b *asaasBank) listed(p *payment.Payout) (list []asaasTransfer) {
	b.g.t.Helper()
	var page struct {
		HasMore bool            `json:"hasMore"`
		Data    []asaasTransfer `json:"data"`
	}
	b.call(http.MethodGet, "/v3/transfers?limit=100", "", &page)
	if page.HasMore {
		b.g.t.Fatal("there are more transfers than a page has")
	}
	for _, v := range page.Data {
		if v.Reference == p.ExternalID {
			list = append(list, v)
		}
	}
	return list
}

func (b *asaasBank) transfers(p *payment.Payout) (list []money.Cents) {
	b.g.t.Helper()
	for _, v := range b.listed(p) {
		if v.Status != "FAILED" && v.Status != "CANCELLED" {
			list = append(list, money.Cents(v.Value))
		}
	}
	return list
}

func (b *asaasBank) refunds(p *payment.Payin) map[string][]money.Cents {
	b.g.t.Helper()
	all := map[string][]money.Cents{}
	for _, v := range b.payments(p.ExternalID) {
		for _, r := range v.Refunds {
			if r.Status != "CANCELLED" {
				all[r.Description] = append(all[r.Description], money.Cents(r.Value))
			}
		}
	}
	return all
}

// holds is the balance, and the net value of card payments that are not credited yet.
func (b *asaasBank) holds() (sum money.Cents) {
	b.g.t.Helper()
	var body struct {
		Balance reais `json:"balance"`
	}
	b.call(http.MethodGet, "/v3/finance/balance", "", &body)
	sum = money.Cents(body.Balance)
	for _, v := range b.payments("") {
		if v.Method != string(payment.CreditCard) || v.Status != "CONFIRMED" {
			continue
		}
		sum += money.Cents(v.NetValue)
		for _, r := range v.Refunds {
			if r.Status != "CANCELLED" {
				sum -= money.Cents(r.Value)
			}
		}
	}
	return sum
}
