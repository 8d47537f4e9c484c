package asaas

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/processor/processortest"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// Every fault of the settings is reported, with its field, and no secret.
func TestSettings(t *testing.T) {
	t.Parallel()
	secrets := map[string]string{SecretKey: testKey, SecretToken: testToken}
	for name, want := range map[string]struct {
		settings, secrets map[string]string
		fields            string
	}{
		"the least":          {nil, nil, ""},
		"all":                {map[string]string{SettingBaseURL: "https://api-sandbox.asaas.com/v3/", SettingAccount: "11222333000181", SettingValidation: "on", SettingBudget: "5000", SettingEmail: "ops@example.com", SettingCodeHosts: "pix.asaas.example"}, nil, ""},
		"http, this machine": {map[string]string{SettingBaseURL: "http://127.0.0.1:8091/v3"}, nil, ""},
		"http, IPv6":         {map[string]string{SettingBaseURL: "http://[::1]/v3"}, nil, ""},
		"http, another host": {map[string]string{SettingBaseURL: "http://bank.example/v3"}, nil, "settings.base-url"},
		"a name that lies":   {map[string]string{SettingBaseURL: "http://127.0.0.1.example/v3"}, nil, "settings.base-url"},
		"a user":             {map[string]string{SettingBaseURL: "https://a:b@asaas.example/v3"}, nil, "settings.base-url"},
		"all settings wrong": {map[string]string{SettingBaseURL: "asaas", SettingValidation: "yes", SettingBudget: "1", SettingEmail: "nobody", SettingCodeHosts: "asaas,", "rate": "3"}, nil, "settings.rate settings.base-url settings.withdrawal-validation settings.budget settings.email settings.code-hosts"},
		"no secrets":         {nil, map[string]string{SecretKey: "", SecretToken: ""}, "secrets.api-key secrets.notice-token"},
		"a key from a shell": {nil, map[string]string{SecretKey: "_prod_0123"}, "secrets.api-key"},
		"a key with a space": {nil, map[string]string{SecretKey: "$aact_prod_ 0123"}, "secrets.api-key"},
		"a short token":      {nil, map[string]string{SecretToken: strings.Repeat("a", 31)}, "secrets.notice-token"},
		"a long token":       {nil, map[string]string{SecretToken: strings.Repeat("a", 256)}, "secrets.notice-token"},
		"a wrong authority":  {nil, map[string]string{SecretAuthority: "-----BEGIN CERTIFICATE-----"}, "secrets.ca"},
		"an unknown secret":  {nil, map[string]string{"password": "x"}, "secrets.password"},
	} {
		given := maps.Clone(secrets)
		maps.Copy(given, want.secrets)
		_, err := Driver{}.Open(processor.Account{ID: "a", Settings: want.settings, Secrets: given}, processor.Env{Transport: http.DefaultTransport})
		var got []string
		if err != nil {
			for _, f := range problem.From(err).Fields {
				got = append(got, f.Field)
			}
			if strings.Contains(err.Error(), "0123456789") {
				t.Errorf("%s: the error has a secret: %v", name, err)
			}
		}
		if text := strings.Join(got, " "); text != want.fields {
			t.Errorf("%s: faults %q, want %q (%v)", name, text, want.fields, err)
		}
	}
	one, two := processor.Account{Settings: map[string]string{SettingAccount: "1"}}, processor.Account{Settings: map[string]string{SettingAccount: "2", SettingBaseURL: productionURL}}
	if (Driver{}).Contract(one) == (Driver{}).Contract(two) || (Driver{}).Contract(one) != productionURL+" 1" {
		t.Errorf("contracts %q and %q", Driver{}.Contract(one), Driver{}.Contract(two))
	}
}

// The previous key stays in use until the new one has worked once.
func TestRotatedKey(t *testing.T) {
	t.Parallel()
	_, clock := env.Virtual(start, 1)
	var keys []string
	way := roundTrip(func(r *http.Request) (*http.Response, error) {
		keys = append(keys, strings.Join(r.Header.Values("access_token"), "+"))
		return (&answerer{answers: map[string]string{"GET /finance/balance": `200 {"balance":1.00}`, "POST /transfers": "200 " + transferJSON()}}).RoundTrip(r)
	})
	p, err := Driver{}.Open(processor.Account{
		ID: "a", Secrets: map[string]string{SecretKey: "$aact_new", SecretToken: testToken}, Previous: map[string]string{SecretKey: "$aact_old", SecretToken: testToken + "-old"},
	}, processor.Env{Clock: clock, Transport: way})
	must(t, err)
	driver := p.(*Processor)
	driver.Transfer(t.Context(), transferOf, willing)
	must(t, driver.Authenticate(t.Context()))
	driver.Transfer(t.Context(), transferOf, willing)
	if want := []string{"$aact_old", "$aact_new", "$aact_new"}; !slices.Equal(keys, want) {
		t.Errorf("keys %v, want %v", keys, want)
	}
	for token, ok := range map[string]bool{testToken: true, testToken + "-old": true, testToken + "-older": false} {
		if _, err := driver.VerifyNotice(http.Header{tokenHeader: {token}}, []byte(`{"id":"evt_1","event":"PAYMENT_RECEIVED"}`), start); (err == nil) != ok {
			t.Errorf("token %q: %v", token, err)
		}
	}
}

type roundTrip func(r *http.Request) (*http.Response, error)

// RoundTrip implements [http.RoundTripper].
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// The budget of 12 hours may be used in bursts, of which a share is left for questions.
func TestBudget(t *testing.T) {
	t.Parallel()
	a := &answerer{answers: map[string]string{"POST /transfers": "200 " + transferJSON(), "GET /transfers": "200 " + listJSON(transferJSON())}}
	p := openAnswerer(t, a, SettingBudget, "1000") // 200 at once
	sent := 0
	var last processor.TransferAnswer
	for range 300 {
		if low := sent > 100; p.BudgetLow() != low {
			t.Errorf("low: %v after %d", !low, sent)
		}
		if last = p.Transfer(t.Context(), transferOf, willing); last.Outcome != processor.Done {
			break
		}
		sent++
	}
	if sent != 160 || last.Outcome != processor.Later || last.Wait <= 0 || last.Evidence == "" {
		t.Errorf("%d transfers at once, then %+v", sent, last)
	}
	if got := p.QueryTransfer(t.Context(), ref); got.Lookup != processor.Found {
		t.Errorf("a question: %+v", got)
	}
	if left, limited := p.BudgetLeft(); left != 39 || !limited {
		t.Errorf("left %d %v", left, limited)
	}
}

// A 429 pauses the account for the time that it names, and does not take what was saved up.
func TestPause(t *testing.T) {
	t.Parallel()
	a := &answerer{answers: map[string]string{"POST /transfers": "429 {}"}, header: http.Header{"Ratelimit-Reset": {"7"}}}
	p := openAnswerer(t, a)
	if got := p.Transfer(t.Context(), transferOf, willing); got.Outcome != processor.Later || got.Wait != 7*time.Second {
		t.Errorf("%+v", got)
	}
	if got := p.Transfer(t.Context(), transferOf, willing); got.Outcome != processor.Later || len(a.asked) != 1 {
		t.Errorf("at once: %+v after %v", got, a.asked)
	}
	if left, _ := p.BudgetLeft(); left != budgetDefault/budgetSaved-1 {
		t.Errorf("left %d", left)
	}
}

func TestPixKeys(t *testing.T) {
	t.Parallel()
	for _, k := range []struct{ keyType, key, sent string }{
		{"PHONE", "+5511987654321", "11987654321"}, {"CPF", "52998224725", "52998224725"}, {"CNPJ", "12ABC34501DE35", "12ABC34501DE35"},
		{"EMAIL", "a@example.com", "a@example.com"}, {"EVP", "123e4567-e12b-12d1-a456-426655440000", "123e4567-e12b-12d1-a456-426655440000"},
	} {
		if got, ok := keyOf(k.keyType, k.key); !ok || got != k.sent {
			t.Errorf("%s is sent as %q", k.key, got)
		}
		if q := (&processor.Question{}); true {
			if q.Key, q.OtherKey = keysOf(k.sent); !q.IsTo(k.key) || q.IsTo("") || q.IsTo("b@example.com") {
				t.Errorf("%q is read as %q or %q, want %s", k.sent, q.Key, q.OtherKey, k.key)
			}
		}
	}
	abroad := transferOf
	abroad.KeyType, abroad.Key = "PHONE", "+12025550123"
	a := &answerer{}
	if got := openAnswerer(t, a).Transfer(t.Context(), abroad, willing); got.Outcome != processor.Refused || got.Failure == nil || got.Evidence == "" || len(a.asked) != 0 {
		t.Errorf("a phone of another country: %+v", got)
	}
}

// The request of a charge has the dates of its order in São Paulo.
func TestRequests(t *testing.T) {
	t.Parallel()
	r := chargeOf
	r.ExpiresAt = time.Date(2026, 11, 21, 2, 59, 59, 0, time.UTC)
	if got := requestOf("cus_1", &r); got.DueDate != "2026-11-20" || got.DaysAfterDue != nil || *got.Value != 10_00 {
		t.Errorf("Pix: %+v", got)
	}
	r.Method, r.DueDate, r.ExpiresAt = payment.Boleto, "2026-12-01", time.Date(2027, 1, 1, 2, 59, 59, 0, time.UTC)
	if got := requestOf("cus_1", &r); got.DueDate != "2026-12-01" || *got.DaysAfterDue != 30 {
		t.Errorf("boleto: %+v, %d days", got, *got.DaysAfterDue)
	}
	r.Method, r.Installments = payment.CreditCard, 3
	if got := requestOf("cus_1", &r); got.Value != nil || got.InstallmentCount != 3 || *got.TotalValue != 10_00 {
		t.Errorf("card: %+v", got)
	}
}

func genuine(t *testing.T, h *harness) processortest.Notice {
	t.Helper()
	r := chargeOf
	r.ExternalID = h.newID()
	if got := h.driver.Charge(t.Context(), r, willing); got.Outcome != processor.Done {
		t.Fatalf("%+v", got)
	}
	h.pay(r.ExternalID)
	h.elapse(t)
	return h.gateway.notices[len(h.gateway.notices)-1]
}

// Only the token authenticates a notice: any other token is refused, and any body is looked up.
func TestForgedNotices(t *testing.T) {
	t.Parallel()
	h := newHarness(t, SettingValidation, "on")
	n := genuine(t, h)
	read := func(header http.Header, body []byte) error {
		_, err := h.driver.VerifyNotice(header, body, h.clock.Now())
		return err
	}
	must(t, read(n.Header, n.Body))
	flipped := []byte(testToken)
	flipped[5] ^= 1
	for name, header := range map[string]http.Header{
		"none": {}, "empty": {tokenHeader: {""}}, "twice": {tokenHeader: {testToken, testToken}}, "padded": {tokenHeader: {testToken + " "}},
		"in part": {tokenHeader: {testToken[:31]}}, "longer": {tokenHeader: {testToken + "a"}}, "a flipped bit": {tokenHeader: {string(flipped)}},
		"in another header": {"Authorization": {testToken}},
	} {
		if err := read(header, n.Body); err == nil {
			t.Errorf("token %s: accepted", name)
		}
		if _, err := h.driver.Question(processor.RawNotice{Header: header, Body: []byte(`{"type":"TRANSFER","transfer":` + transferJSON() + `}`), At: h.clock.Now()}); err == nil {
			t.Errorf("token %s: question accepted", name)
		}
	}
	for name, body := range map[string]string{
		"nothing": "", "an object": "{}", "half": string(n.Body[:len(n.Body)/2]), "no id": `{"id":"","event":"PAYMENT_RECEIVED"}`,
		"an id with a space": `{"id":"a b","event":"PAYMENT_RECEIVED"}`, "no event": `{"id":"evt_1"}`, "a long id": `{"id":"` + strings.Repeat("a", 101) + `","event":"X"}`,
	} {
		if err := read(n.Header, []byte(body)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	question := processor.RawNotice{Header: n.Header, Body: n.Body, At: h.clock.Now()}
	if _, err := h.driver.Question(question); err == nil {
		t.Error("a notice is read as a question")
	}
	question.Body = []byte(`{"type":"TRANSFER","transfer":` + transferJSON() + `}`)
	if q, err := h.driver.Question(question); err != nil || q.Transfer != "t-1" || q.ExternalID != ref || q.Amount != 10_00 || !q.IsTo("a@example.com") {
		t.Errorf("question %+v, %v", q, err)
	}
	for name, body := range map[string]string{
		"of another type": `{"type":"BILL","transfer":` + transferJSON() + `}`, "no transfer": `{"type":"TRANSFER"}`,
		"no amount": `{"type":"TRANSFER","transfer":` + transferJSON("10.00", "0") + `}`, "no id": `{"type":"TRANSFER","transfer":` + transferJSON("t-1", "") + `}`,
		"a long key": `{"type":"TRANSFER","transfer":` + transferJSON("a@example.com", strings.Repeat("a", 78)) + `}`,
	} {
		question.Body = []byte(body)
		if q, err := h.driver.Question(question); err == nil {
			t.Errorf("%s: %+v", name, q)
		}
	}
	question.Body = []byte(`{"type":"PIX_REFUND","pixRefund":{"id":"r-1","payment":"pay_1","value":200}}`)
	if q, err := h.driver.Question(question); err != nil || q.Refusal == "" {
		t.Errorf("a question about a refund: %+v, %v", q, err)
	}
	question.Body = []byte(`{"type":"TRANSFER","transfer":` + transferJSON(ref, "") + `}`)
	if q, err := h.driver.Question(question); err != nil || q.ExternalID != "" {
		t.Errorf("without a reference: %+v, %v", q, err)
	}
	h.driver.requested.put("t-1", ref) // by the answer to its request
	if q, err := h.driver.Question(question); err != nil || q.ExternalID != ref {
		t.Errorf("without a reference, of a known transfer: %+v, %v", q, err)
	}
	question.Body = []byte(`{"type":"TRANSFER","transfer":` + transferJSON() + `}`)
	if q, err := newHarness(t).driver.Question(question); err == nil {
		t.Errorf("without withdrawal-validation: %+v", q)
	}
}

func TestNotices(t *testing.T) {
	t.Parallel()
	p := openAnswerer(t, &answerer{})
	notice := func(event, noun, body string) string {
		return fmt.Sprintf(`{"id":"evt_1&2","event":%q,"dateCreated":"2026-11-20 15:30:00","account":{"id":"x"},%q:%s}`, event, noun, body)
	}
	paid := paymentJSON(`"status":"PENDING"`, `"status":"RECEIVED","paymentDate":"2026-11-20"`)
	refunded := strings.Replace(paid, `"refunds":null`, `"refunds":[{"dateCreated":"2026-11-20 15:30:00","status":"DONE","value":1.00,"description":"`+ref+`"},`+
		`{"dateCreated":"2026-11-20 15:31:00","status":"DONE","value":1.00,"description":"painel"},{"dateCreated":"2026-11-20 15:31:00","status":"PENDING","value":1.00,"description":null}]`, 1)
	for name, want := range map[string]struct {
		body  string
		hints []string
	}{
		"paid":     {notice("PAYMENT_RECEIVED", "payment", paid), []string{"charge " + ref + " pay_1 paid"}},
		"deleted":  {notice("PAYMENT_DELETED", "payment", paymentJSON(`"deleted":false`, `"deleted":true`)), []string{"charge " + ref + " pay_1"}},
		"refunded": {notice("PAYMENT_REFUNDED", "payment", refunded), []string{"charge " + ref + " pay_1 paid", "refund " + ref + " of pay_1", "refund refund-", "refund refund-"}},
		"disputed": {
			notice("PAYMENT_CHARGEBACK_REQUESTED", "payment", strings.Replace(refunded, "RECEIVED", "CHARGEBACK_REQUESTED", 1)),
			[]string{"refund " + ref + " of pay_1", "refund refund-", "refund refund-", "charge " + ref + " pay_1 paid"}, // the dispute has what they leave
		},
		"disputed, with all of it taken": {
			notice("PAYMENT_CHARGEBACK_REQUESTED", "payment", strings.NewReplacer("RECEIVED", "CHARGEBACK_REQUESTED", `"value":1.00,"description":"painel"`, `"value":10.00,"description":"painel"`, `"value":1.00,"description":null`, `"value":10.00,"description":null`).Replace(refunded)),
			[]string{"refund " + ref + " of pay_1", "charge " + ref + " pay_1 paid"},
		},
		"after a chargeback was won":  {notice("PAYMENT_REFUNDED", "payment", strings.Replace(refunded, `"deleted"`, `"chargeback":{"status":"REVERSED"},"deleted"`, 1)), []string{"charge " + ref + " pay_1 paid", "refund " + ref + " of pay_1", "refund refund-", "refund refund-"}},
		"after a chargeback was lost": {notice("PAYMENT_REFUNDED", "payment", strings.Replace(refunded, `"deleted"`, `"chargeback":{"status":"DONE"},"deleted"`, 1)), []string{"charge " + ref + " pay_1 paid", "refund " + ref + " of pay_1"}},
		"of another program":          {notice("PAYMENT_RECEIVED", "payment", strings.Replace(paid, ref, "pedido 1", 1)), nil},
		"without reference":           {notice("PAYMENT_RECEIVED", "payment", strings.Replace(paid, `"`+ref+`"`, "null", 1)), nil},
		"created":                     {notice("PAYMENT_CREATED", "payment", "[]"), nil},
		"unknown":                     {notice("PAYMENT_INVENTED", "payment", "7"), nil},
		"transfer":                    {notice("TRANSFER_FAILED", "transfer", transferJSON("PENDING", "FAILED")), []string{"transfer " + ref + " t-1 failed"}},
		"transfer of others":          {notice("TRANSFER_DONE", "transfer", transferJSON(ref, "x")), nil},
	} {
		hints, err := p.ParseNotice([]byte(want.body))
		if err != nil || len(hints) != len(want.hints) {
			t.Errorf("%s: %+v, %v", name, hints, err)
			continue
		}
		for i, h := range hints {
			text := fmt.Sprint(h.Subject, " ", h.ExternalID)
			if h.Subject == processor.SubjectRefund {
				text += " of " + h.PaymentID
			} else {
				text += " " + h.ProcessorID
			}
			if h.Payment != nil {
				text += " paid"
			}
			if h.Transfer != "" {
				text += " " + string(h.Transfer)
			}
			if !strings.HasPrefix(text, want.hints[i]) {
				t.Errorf("%s: hint %q, want %q", name, text, want.hints[i])
			}
		}
	}
	for name, body := range map[string]string{
		"no charge": `{"id":"evt_1","event":"PAYMENT_RECEIVED"}`, "a charge that is none": notice("PAYMENT_RECEIVED", "payment", "[]"),
		"a transfer without id": notice("TRANSFER_DONE", "transfer", transferJSON("t-1", "")),
	} {
		if hints, err := p.ParseNotice([]byte(body)); err == nil {
			t.Errorf("%s: %+v", name, hints)
		}
	}
}

// Asaas interrupts the queue of notices after failures; install starts it again, and test says
// what is wrong.
func TestInstall(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	installed := func() string { return h.driver.Installed(t.Context(), gatewayURL).Problem }
	if got := installed(); got != "" {
		t.Errorf("installed: %q", got)
	}
	if got := h.driver.Installed(t.Context(), gatewayURL+"x").Problem; !strings.Contains(got, "another address") {
		t.Errorf("at another address: %q", got)
	}
	must(t, h.driver.Install(t.Context(), gatewayURL+"x"))
	if list, err := h.driver.webhooks(t.Context()); err != nil || len(list) != 1 || list[0].URL != gatewayURL+"x" {
		t.Errorf("moved: %+v, %v", list, err)
	}
	hook := rows[webhook](h, "/v3/webhooks?")[0]
	h.call(http.MethodPut, "/v3/webhooks/"+hook.ID, `{"interrupted":true,"events":["PAYMENT_RECEIVED"]}`)
	if got := h.driver.Installed(t.Context(), gatewayURL+"x").Problem; !strings.Contains(got, "interrupted") {
		t.Errorf("interrupted: %q", got)
	}
	must(t, h.driver.Install(t.Context(), gatewayURL))
	if got := installed(); got != "" {
		t.Errorf("started again: %q", got)
	}
	for _, f := range h.driver.Inspect(t.Context()) {
		if f.Problem != "" {
			t.Errorf("finding %+v", f)
		}
	}
	h.arm(t, bankapi.OpCredentials, bankapi.Refuse)
	if got := h.driver.Inspect(t.Context()); len(got) != 1 || !strings.Contains(got[0].Action, "API key") || !h.driver.Refused() {
		t.Errorf("refused: %+v", got)
	}
	h.arm(t, bankapi.OpCredentials, bankapi.Refuse)
	if err := h.driver.Authenticate(t.Context()); err == nil || !strings.Contains(err.Error(), processor.ErrCredentials.Error()) {
		t.Errorf("authenticate: %v", err)
	}
	must(t, h.driver.Authenticate(t.Context()))
}

// The lists show what no notice has: payments in instalments, a refund of the panel, a dispute.
func TestFeeds(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	card := chargeOf
	card.ExternalID, card.Method, card.Installments, card.Amount = h.newID(), payment.CreditCard, 3, 100_00
	answer := h.driver.Charge(t.Context(), card, willing)
	if answer.Outcome != processor.Done || answer.Charge.Card == nil || !strings.HasPrefix(answer.Charge.Card.HostedURL, faceURL+"/i/") {
		t.Fatalf("%+v", answer)
	}
	page := h.call(http.MethodGet, strings.TrimPrefix(answer.Charge.Card.HostedURL, faceURL), "")
	if !strings.Contains(string(page), card.Amount.BRL()+" em 3 vezes") {
		t.Errorf("the payer's page shows %s", page)
	}
	h.pay(card.ExternalID)
	report := h.driver.QueryCharge(t.Context(), card.ExternalID)
	if len(report.Payments) != 3 || report.Payments[0].Card.Installments != 3 {
		t.Fatalf("%+v", report)
	}
	var sum money.Cents
	ids := map[string]bool{}
	for _, p := range report.Payments {
		sum += p.Amount
		ids[p.ID] = true
		if p.Cost <= 0 || p.Cost >= p.Amount {
			t.Errorf("cost of %+v", p)
		}
	}
	if sum != 100_00 || len(ids) != 3 {
		t.Errorf("the instalments are %+v", report.Payments)
	}
	first := report.Payments[0].ID
	h.call(http.MethodPost, "/v3/payments/"+first+"/refund", `{"value":33.33,"description":"painel"}`)
	h.elapse(t)
	if got := h.listed(); got[processor.FeedPayments] != "payment payment" || got[processor.FeedRefunds] != "payment refund" || got[processor.FeedChanges] != "" {
		t.Errorf("after a refund: %v", got)
	}
	if got := h.listed()[processor.FeedCosts]; got != refundCost {
		t.Errorf("costs of a refund: %q", got)
	}
	body := h.call(http.MethodGet, "/v3/payments/"+first, "")
	refunded := parse[wirePayment](&response{status: 200, body: body})
	if got := h.driver.QueryRefund(t.Context(), first, refundIDs(&refunded)[0]); got.Lookup != processor.Found || got.Amount != 33_33 || got.State != processor.TransferPaid {
		t.Errorf("the listed refund is looked up as %+v", got)
	}
	h.call(http.MethodPost, "/panel/payment/"+report.Payments[1].ID+"/dispute", "")
	if got := h.listed(); got[processor.FeedChanges] != "payment dispute payment dispute payment dispute" {
		t.Errorf("after a dispute: %v", got)
	}
	for _, cursor := range []string{"x", "|||", "2026-13-01|0|0|", "2026-11-20|9|0|", "2026-11-20|0|-1|", "2026-11-20|0|0|noon", "2026-11-20|0|0||"} {
		if page, err := h.driver.Read(t.Context(), processor.FeedPayments, cursor); err == nil {
			t.Errorf("cursor %q: %+v", cursor, page)
		}
	}
	if _, err := h.driver.Read(t.Context(), "other", ""); err == nil {
		t.Error("a feed that is none")
	}
}

// listed reads all feeds from this day on, and names their facts.
func (h *harness) listed() map[processor.Feed]string {
	h.t.Helper()
	all := map[processor.Feed]string{}
	for feed, spec := range h.driver.Feeds() {
		var names []string
		for page := (processor.Page{Next: spec.From(h.clock.Now()), More: true}); page.More; {
			var err error
			page, err = h.driver.Read(h.t.Context(), feed, page.Next)
			must(h.t, err)
			for _, fact := range page.Facts {
				switch {
				case fact.Payment != nil:
					names = append(names, "payment")
				case fact.Refund != nil:
					names = append(names, "refund")
				case fact.Change != nil:
					names = append(names, "dispute")
				case fact.Cost != nil:
					names = append(names, fact.Cost.Amount.Decimal())
				case fact.Unreadable != nil:
					names = append(names, "unreadable")
				}
			}
			if !page.More && !page.Through.Equal(h.clock.Now()) {
				h.t.Errorf("%s is complete through %v", feed, page.Through)
			}
		}
		all[feed] = strings.Join(names, " ")
	}
	return all
}

// While the account wants each transfer confirmed by a person, a payout waits and a refund is processing: a
// person has to act, and neither has failed.
func TestCriticalAuthorization(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	pix := chargeOf
	pix.ExternalID = h.newID()
	if a := h.driver.Charge(t.Context(), pix, willing); a.Outcome != processor.Done {
		t.Fatalf("%+v", a)
	}
	h.pay(pix.ExternalID)
	h.call(http.MethodPut, "/panel/critical-authorization/on", "")
	if a := h.driver.Transfer(t.Context(), transferOf, willing); a.Outcome != processor.Later || !a.Person || a.Failure != nil ||
		!strings.Contains(a.Evidence, "autorização crítica") {
		t.Errorf("transfer: %+v", a)
	}
	refund := processor.RefundRequest{ExternalID: h.newID(), PaymentID: h.payments(pix.ExternalID)[0].ID, Amount: 4_00}
	if a := h.driver.Refund(t.Context(), refund, willing); a.Outcome != processor.Done || a.Report.State != processor.TransferProcessing || !a.Report.Person {
		t.Errorf("refund: %+v", a)
	}
	h.call(http.MethodPut, "/panel/critical-authorization/off", "")
	h.call(http.MethodPost, "/panel/payment/"+refund.PaymentID+"/confirm-refunds", "")
	h.elapse(t)
	if r := h.driver.QueryRefund(t.Context(), refund.PaymentID, refund.ExternalID); r.State != processor.TransferPaid || r.Person {
		t.Errorf("confirmed refund: %+v", r)
	}
	if a := h.driver.Transfer(t.Context(), transferOf, willing); a.Outcome != processor.Done {
		t.Errorf("transfer: %+v", a)
	}
}
