package asaas

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// answerer answers each path with a status and a body; the longest matching suffix counts.
type answerer struct {
	answers map[string]string // "METHOD path" to "status body"
	header  http.Header
	body    func(text string) io.Reader
	asked   []string
}

// RoundTrip implements [http.RoundTripper].
func (a *answerer) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
	}
	a.asked = append(a.asked, r.Method+" "+r.URL.RequestURI())
	text, ok := a.answers[r.Method+" "+strings.TrimPrefix(r.URL.Path, "/v3")]
	if !ok {
		return nil, errors.New("unexpected call " + r.Method + " " + r.URL.Path)
	}
	var status int
	if _, err := fmt.Sscan(text, &status); err != nil {
		return nil, err
	}
	_, body, _ := strings.Cut(text, " ")
	header := http.Header{"Content-Type": {"application/json;charset=UTF-8"}}
	for name, values := range a.header {
		header[name] = values
	}
	reader := io.Reader(strings.NewReader(body))
	if a.body != nil {
		reader = a.body(body)
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(reader), ContentLength: -1}, nil
}

const (
	ref      = "0000000000000000000000000000test"
	noErrors = `{"errors":[]}`
	// customerRef is the reference of the customer of chargeOf.
	customerRef = "porteira-7f4ecb1fdf144faec7c515da"
	refusal     = `{"errors":[{"code":"invalid_action","description":"Não permitido."}]}`
	html        = `<html><body>502 Bad Gateway</body></html>`
	customers1  = `{"object":"list","hasMore":false,"data":[{"id":"cus_1","cpfCnpj":"529.982.247-25","externalReference":"` + customerRef + `","deleted":false}]}`
	pixAnswer   = `{"payload":"00020126","expirationDate":"2027-11-20 23:59:59"}`
)

func paymentJSON(change ...string) string {
	text := `{"object":"payment","id":"pay_1","billingType":"PIX","status":"PENDING","value":10.00,"netValue":9.01,"dueDate":"2026-11-21",` +
		`"dateCreated":"2026-11-20","externalReference":"` + ref + `","deleted":false,"refunds":null}`
	for i := 0; i < len(change); i += 2 {
		if !strings.Contains(text, change[i]) {
			panic(change[i])
		}
		text = strings.Replace(text, change[i], change[i+1], 1)
	}
	return text
}

func transferJSON(change ...string) string {
	text := `{"object":"transfer","id":"t-1","dateCreated":"2026-11-20","value":10.00,"status":"PENDING","endToEndIdentifier":null,` +
		`"failReason":null,"externalReference":"` + ref + `","bankAccount":{"pixAddressKey":"a@example.com"}}`
	for i := 0; i < len(change); i += 2 {
		if !strings.Contains(text, change[i]) {
			panic(change[i])
		}
		text = strings.Replace(text, change[i], change[i+1], 1)
	}
	return text
}

func listJSON(rows ...string) string {
	return `{"object":"list","hasMore":false,"totalCount":1,"data":[` + strings.Join(rows, ",") + `]}`
}

func openAnswerer(t testing.TB, a *answerer, settings ...string) *Processor {
	t.Helper()
	_, clock := env.Virtual(start, 1)
	return openDriver(t, a, clock, settings...)
}

func willing() error { return nil }

var (
	transferOf = processor.TransferRequest{ExternalID: ref, Amount: 10_00, KeyType: "EMAIL", Key: "a@example.com"}
	chargeOf   = processor.ChargeRequest{
		ExternalID: ref, Method: payment.PIX, Amount: 10_00, ExpiresAt: start.Add(time.Hour),
		Personal: payment.PersonalData{Customer: []byte(`{"name":"Maria da Silva","document":"52998224725"}`)},
	}
)

// hostile are answers that prove nothing about an effect.
var hostile = map[string]string{
	"nothing": "200", "HTML with 200": "200 " + html, "HTML with 400": "400 " + html, "an array": "200 []", "a number": "200 7", "null": "200 null",
	"an empty object": "200 {}", "half": "200 " + transferJSON()[:40], "twice a member": `200 {"id":"a","id":"b"}`, "not UTF-8": "200 {\"id\":\"\xff\"}",
	"400 without errors": "400 " + noErrors, "400 with nothing": "400", "400 with a code that is none": `400 {"errors":[{"code":"a b","description":""}]}`,
	"201": "201 " + transferJSON(), "202": "202 " + transferJSON(), "204": "204", "302": "302", "401": "401 " + refusal, "403": "403 " + refusal,
	"404": "404 " + refusal, "408": "408 " + refusal, "500": "500 " + refusal, "502": "502 " + html, "503": "503 " + refusal, "599": "599",
	"2 MB": "200 {\"id\":\"" + strings.Repeat("a", 2<<20) + `"}`, "deep": "200 " + strings.Repeat("[", 20_000),
}

func TestHostileTransferAnswers(t *testing.T) {
	t.Parallel()
	answers := map[string]string{
		"another reference": "200 " + transferJSON(ref, "another"), "another amount": "200 " + transferJSON("10.00", "10.01"),
		"a thousandth": "200 " + transferJSON("10.00", "10.001"), "an exponent": "200 " + transferJSON("10.00", "1e1"), "text": "200 " + transferJSON("10.00", `"10.00"`),
		"negative": "200 " + transferJSON("10.00", "-10.00"), "no id": "200 " + transferJSON(`"t-1"`, `""`), "an id with a space": "200 " + transferJSON(`"t-1"`, `"t 1"`),
		"an id with NUL": "200 " + transferJSON(`"t-1"`, `"t\u0000"`), "an unknown status": "200 " + transferJSON("PENDING", "SETTLED"),
		"done without an endToEndId": "200 " + transferJSON("PENDING", "DONE"), "409 without errors": "409 {}", "409 in HTML": "409 " + html,
	}
	for name, text := range hostile {
		answers[name] = text
	}
	for name, text := range answers {
		a := &answerer{answers: map[string]string{"POST /transfers": text}}
		got := openAnswerer(t, a).Transfer(t.Context(), transferOf, willing)
		if got.Outcome != processor.Unknown || got.Cause == nil || got.Report.Lookup == processor.Found || len(a.asked) != 1 {
			t.Errorf("%s: %+v after %v", name, got, a.asked)
		}
		if got.Cause != nil && (strings.Contains(got.Cause.Error(), testKey) || strings.Contains(got.Cause.Error(), "a@example.com")) {
			t.Errorf("%s: the cause has a secret or personal data: %v", name, got.Cause)
		}
	}
}

func TestTransferAnswers(t *testing.T) {
	t.Parallel()
	const e2e = "E9999999920261120183000000000001"
	for name, want := range map[string]struct {
		answer  string
		outcome processor.Outcome
		state   processor.TransferState
	}{
		"pending":        {"200 " + transferJSON(), processor.Done, processor.TransferProcessing},
		"at the bank":    {"200 " + transferJSON("PENDING", "BANK_PROCESSING"), processor.Done, processor.TransferProcessing},
		"blocked":        {"200 " + transferJSON("PENDING", "BLOCKED"), processor.Done, processor.TransferProcessing},
		"done":           {"200 " + transferJSON("PENDING", "DONE", `"endToEndIdentifier":null`, `"endToEndIdentifier":"`+e2e+`"`), processor.Done, processor.TransferPaid},
		"failed":         {"200 " + transferJSON("PENDING", "FAILED"), processor.Done, processor.TransferFailed},
		"one decimal":    {"200 " + transferJSON("10.00", "10.0"), processor.Done, processor.TransferProcessing},
		"no decimals":    {"200 " + transferJSON("10.00", "10"), processor.Done, processor.TransferProcessing},
		"refused":        {"400 " + refusal, processor.Refused, ""},
		"no balance":     {`400 {"errors":[{"code":"invalid_action","description":"Saldo insuficiente para a transferência."}]}`, processor.Later, ""},
		"too many":       {"429 {}", processor.Later, ""},
		"equal transfer": {`409 {"errors":[{"code":"conflict","description":"Já existe."}]}`, processor.Later, ""},
	} {
		a := &answerer{answers: map[string]string{"POST /transfers": want.answer}}
		got := openAnswerer(t, a).Transfer(t.Context(), transferOf, willing)
		if got.Outcome != want.outcome || got.Report.State != want.state {
			t.Errorf("%s: %+v", name, got)
		}
		if want.outcome == processor.Refused && (got.Failure == nil || got.Failure.Code != "invalid_action" || got.Evidence == "") {
			t.Errorf("%s: no reason: %+v", name, got)
		}
		if name == "equal transfer" && got.Wait != equalWait {
			t.Errorf("%s: wait %v", name, got.Wait)
		}
	}
}

// An answer that arrives byte by byte ends with its time, and proves nothing.
func TestSlowAnswer(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	a := &answerer{answers: map[string]string{"POST /transfers": "200 " + transferJSON()}, body: func(text string) io.Reader {
		return io.MultiReader(iotest.OneByteReader(strings.NewReader(text[:50])), readerFunc(func([]byte) (int, error) {
			cancel()
			return 0, ctx.Err()
		}))
	}}
	if got := openAnswerer(t, a).Transfer(ctx, transferOf, willing); got.Outcome != processor.Unknown || !errors.Is(got.Cause, context.Canceled) {
		t.Errorf("%+v", got)
	}
}

type readerFunc func(p []byte) (int, error)

// Read implements [io.Reader].
func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestHostileChargeAnswers(t *testing.T) {
	t.Parallel()
	answers := map[string]string{
		"another reference": "200 " + paymentJSON(ref, "another"), "another amount": "200 " + paymentJSON(`"value":10.00`, `"value":10.01`),
		"another method": "200 " + paymentJSON(`"PIX"`, `"BOLETO"`), "an unknown status": "200 " + paymentJSON("PENDING", "AUTHORIZED"),
		"in cash": "200 " + paymentJSON("PENDING", "RECEIVED_IN_CASH"), "no id": "200 " + paymentJSON(`"pay_1"`, `null`), "409": "409 " + refusal,
	}
	for name, text := range hostile {
		answers[name] = text
	}
	for name, text := range answers {
		a := &answerer{answers: map[string]string{"GET /customers": "200 " + customers1, "POST /payments": text}}
		if got := openAnswerer(t, a).Charge(t.Context(), chargeOf, willing); got.Outcome != processor.Unknown || got.Cause == nil || len(a.asked) != 2 {
			t.Errorf("%s: %+v after %v", name, got, a.asked)
		}
	}
	for name, text := range hostile { // the charge exists, and its code cannot be read
		a := &answerer{answers: map[string]string{"GET /customers": "200 " + customers1, "POST /payments": "200 " + paymentJSON(), "GET /payments/pay_1/pixQrCode": text}}
		got := openAnswerer(t, a).Charge(t.Context(), chargeOf, willing)
		if name == "an empty object" || name == "null" || name == "not UTF-8" { // payin compares the code with the order
			continue
		}
		if got.Outcome != processor.Unknown || got.Cause == nil {
			t.Errorf("code, %s: %+v", name, got)
		}
	}
}

// A customer that cannot be found or made ends the call before the charge is requested.
func TestCustomers(t *testing.T) {
	t.Parallel()
	const made = `200 {"id":"cus_2","cpfCnpj":"52998224725"}`
	none := "200 " + listJSON()
	for name, want := range map[string]struct {
		list, post string
		outcome    processor.Outcome
		asked      int
	}{
		"found":                      {"200 " + customers1, "", processor.Done, 3},
		"made":                       {none, made, processor.Done, 4},
		"of another program":         {"200 " + strings.Replace(customers1, customerRef, "cliente 7", 1), made, processor.Done, 4},
		"a deleted one":              {"200 " + strings.Replace(customers1, `"deleted":false`, `"deleted":true`, 1), made, processor.Done, 4},
		"the filter is ignored":      {"200 " + strings.Replace(customers1, "529.982.247-25", "11144477735", 1), made, processor.Done, 4},
		"a list that cannot be read": {"200 " + html, "", processor.NotSent, 1},
		"a list that fails":          {"500 " + refusal, "", processor.NotSent, 1},
		"refused":                    {none, "400 " + refusal, processor.Refused, 2},
		"too many":                   {none, "429 {}", processor.Later, 2},
		"unknown":                    {none, "500 {}", processor.NotSent, 2},
		"of another document":        {none, `200 {"id":"cus_2","cpfCnpj":"11144477735"}`, processor.NotSent, 2},
	} {
		a := &answerer{answers: map[string]string{
			"GET /customers": want.list, "POST /customers": want.post, "POST /payments": "200 " + paymentJSON(), "GET /payments/pay_1/pixQrCode": "200 " + pixAnswer,
		}}
		p := openAnswerer(t, a)
		if got := p.Charge(t.Context(), chargeOf, willing); got.Outcome != want.outcome || len(a.asked) != want.asked {
			t.Errorf("%s: %+v after %v", name, got, a.asked)
		}
		if before := len(a.asked); want.outcome == processor.Done {
			if got := p.Charge(t.Context(), chargeOf, willing); got.Outcome != processor.Done || len(a.asked) != before+2 {
				t.Errorf("%s, again: %+v after %v", name, got, a.asked[before:])
			}
		}
	}
	a := &answerer{}
	without := chargeOf
	without.Personal = payment.PersonalData{}
	if got := openAnswerer(t, a).Charge(t.Context(), without, willing); got.Outcome != processor.NotSent || len(a.asked) != 0 {
		t.Errorf("no payer: %+v", got)
	}
}

// Another name with the same document is another customer: the first one's name stands in no charge
// of the second.
func TestCustomersOfOneDocument(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	names := map[string]bool{}
	for _, name := range []string{"Maria da Silva", "Maria Souza", " Maria da Silva "} {
		r := chargeOf
		r.ExternalID, r.Personal.Customer = h.newID(), []byte(`{"name":"`+name+`","document":"52998224725"}`)
		if got := h.driver.Charge(t.Context(), r, willing); got.Outcome != processor.Done {
			t.Fatalf("%+v", got)
		}
	}
	for _, c := range rows[customer](h, "/v3/customers?cpfCnpj=52998224725") {
		names[c.ExternalReference] = true
	}
	if len(names) != 2 {
		t.Errorf("customers %v", names)
	}
}

// A customer that this process remembers and Asaas has deleted is forgotten, and the order is
// charged again.
func TestForgottenCustomer(t *testing.T) {
	t.Parallel()
	a := &answerer{answers: map[string]string{"GET /customers": "200 " + customers1, "POST /payments": "200 " + paymentJSON(), "GET /payments/pay_1/pixQrCode": "200 " + pixAnswer}}
	p := openAnswerer(t, a)
	if got := p.Charge(t.Context(), chargeOf, willing); got.Outcome != processor.Done {
		t.Fatalf("%+v", got)
	}
	a.answers["POST /payments"] = `400 {"errors":[{"code":"invalid_customer","description":"Customer inválido."}]}`
	if got := p.Charge(t.Context(), chargeOf, willing); got.Outcome != processor.NotSent {
		t.Errorf("remembered: %+v", got)
	}
	if got := p.Charge(t.Context(), chargeOf, willing); got.Outcome != processor.Refused {
		t.Errorf("found again: %+v", got)
	}
}

// TestDisputeReports checks the reason of a dispute and the deadline for documents. Neither, in any
// form, hides the state.
func TestDisputeReports(t *testing.T) {
	t.Parallel()
	end := time.Date(2026, 12, 1, 2, 59, 59, 0, time.UTC) // the day's end in São Paulo
	for chargeback, want := range map[string]processor.Dispute{
		`{"status":"REQUESTED","reason":"COMMERCIAL_DISAGREEMENT","deadlineToSendDisputeDocuments":"2026-11-30"}`: {Reason: "COMMERCIAL_DISAGREEMENT", RespondBy: end},
		`{"status":"REQUESTED","reason":null,"deadlineToSendDisputeDocuments":null}`:                              {},
		`{"status":"REQUESTED","reason":{"code":7},"deadlineToSendDisputeDocuments":["2026-11-30"]}`:              {},
		`{"status":"REQUESTED","reason":"of a@b.example","deadlineToSendDisputeDocuments":"soon"}`:                {},
		`{"status":"REVERSED","reason":7,"deadlineToSendDisputeDocuments":7}`:                                     {},
	} {
		want.ID, want.PaymentID, want.Amount, want.Current, want.State = "chargeback-pay_1", "pay_1", 10_00, true, processor.DisputeOpen
		status := "CHARGEBACK_REQUESTED"
		if strings.Contains(chargeback, "REVERSED") {
			status, want.State = "RECEIVED", processor.DisputeWon
		}
		list := listJSON(paymentJSON(`"status":"PENDING"`, `"status":"`+status+`","clientPaymentDate":"2026-11-20","paymentDate":"2026-11-20"`, `"deleted"`, `"chargeback":`+chargeback+`,"deleted"`))
		a := &answerer{answers: map[string]string{"GET /payments": "200 " + list}}
		if got := openAnswerer(t, a).QueryCharge(t.Context(), ref); len(got.Disputes) != 1 || !reflect.DeepEqual(got.Disputes[0], want) {
			t.Errorf("%s: %+v", chargeback, got)
		}
	}
}

func TestChargeReports(t *testing.T) {
	t.Parallel()
	paid := []string{`"status":"PENDING"`, `"status":"RECEIVED","clientPaymentDate":"2026-11-20","paymentDate":"2026-11-20"`}
	with := func(change ...string) string { return paymentJSON(append(append([]string{}, paid...), change...)...) }
	for name, want := range map[string]struct {
		list     string
		lookup   processor.Lookup
		state    processor.ChargeState
		paid     []money.Cents
		disputes processor.DisputeState
	}{
		"none":                 {listJSON(), processor.NotFound, "", nil, ""},
		"open":                 {listJSON(paymentJSON()), processor.Found, processor.ChargeOpen, nil, ""},
		"overdue":              {listJSON(paymentJSON("PENDING", "OVERDUE")), processor.Found, processor.ChargeOpen, nil, ""},
		"in analysis":          {listJSON(paymentJSON("PENDING", "AWAITING_RISK_ANALYSIS", `"PIX"`, `"CREDIT_CARD"`)), processor.Found, processor.ChargeAnalysis, nil, ""},
		"deleted":              {listJSON(paymentJSON(`"deleted":false`, `"deleted":true`)), processor.Found, processor.ChargeCanceled, nil, ""},
		"deleted and made":     {listJSON(paymentJSON(), paymentJSON(`"deleted":false`, `"deleted":true`)), processor.Found, processor.ChargeOpen, nil, ""},
		"paid":                 {listJSON(with()), processor.Found, processor.ChargeOpen, []money.Cents{10_00}, ""},
		"paid twice":           {listJSON(with(), with("pay_1", "pay_2")), processor.Found, processor.ChargeOpen, []money.Cents{10_00, 10_00}, ""},
		"refunded":             {listJSON(with("RECEIVED", "REFUNDED")), processor.Found, processor.ChargeOpen, []money.Cents{10_00}, ""},
		"reproved":             {listJSON(paymentJSON("PENDING", "REFUNDED")), processor.Found, processor.ChargeFailed, nil, ""},
		"disputed":             {listJSON(with("RECEIVED", "CHARGEBACK_DISPUTE")), processor.Found, processor.ChargeOpen, []money.Cents{10_00}, processor.DisputeOpen},
		"won":                  {listJSON(with(`"deleted"`, `"chargeback":{"status":"REVERSED"},"deleted"`)), processor.Found, processor.ChargeOpen, []money.Cents{10_00}, processor.DisputeWon},
		"lost":                 {listJSON(with("RECEIVED", "REFUNDED", `"deleted"`, `"chargeback":{"status":"DONE"},"deleted"`)), processor.Found, processor.ChargeOpen, []money.Cents{10_00}, processor.DisputeLost},
		"won, then given back": {listJSON(with("RECEIVED", "REFUNDED", `"refunds":null`, `"refunds":[{"status":"DONE","value":6.00},{"status":"DONE","value":4.00}]`, `"deleted"`, `"chargeback":{"status":"REVERSED"},"deleted"`)), processor.Found, processor.ChargeOpen, []money.Cents{10_00}, processor.DisputeWon},
		"given back in part":   {listJSON(with("RECEIVED", "REFUNDED", `"refunds":null`, `"refunds":[{"status":"DONE","value":6.00},{"status":"PENDING","value":4.00}]`, `"deleted"`, `"chargeback":{"status":"REVERSED"},"deleted"`)), processor.Found, processor.ChargeOpen, []money.Cents{10_00}, ""},
		"a dispute as text":    {listJSON(with(`"deleted"`, `"chargeback":"cb_1","deleted"`)), processor.Found, processor.ChargeOpen, []money.Cents{10_00}, ""},
		"in cash":              {listJSON(with("RECEIVED", "RECEIVED_IN_CASH")), processor.LookupUnknown, "", nil, ""},
		"of others":            {listJSON(paymentJSON(ref, "another")), processor.LookupUnknown, "", nil, ""},
		"a wrong amount":       {listJSON(with(`"value":10.00`, `"value":0.00`)), processor.LookupUnknown, "", nil, ""},
		"a wrong date":         {listJSON(with("2026-11-20\",\"paymentDate", "yesterday\",\"paymentDate")), processor.LookupUnknown, "", nil, ""},
		"no hasMore":           {`{"data":[]}`, processor.LookupUnknown, "", nil, ""},
		"more of nothing":      {`{"hasMore":true,"data":[]}`, processor.LookupUnknown, "", nil, ""},
		"more without end":     {`{"hasMore":true,"data":[` + paymentJSON() + `]}`, processor.LookupUnknown, "", nil, ""},
	} {
		a := &answerer{answers: map[string]string{"GET /payments": "200 " + want.list, "GET /payments/pay_1/pixQrCode": "200 " + pixAnswer}}
		got := openAnswerer(t, a).QueryCharge(t.Context(), ref)
		if got.Lookup != want.lookup || got.State != want.state || len(got.Payments) != len(want.paid) || (got.Lookup == processor.LookupUnknown) != (got.Cause != nil) {
			t.Errorf("%s: %+v", name, got)
			continue
		}
		for i, p := range got.Payments {
			if p.Amount != want.paid[i] || p.Cost != 99 || !p.PaidAt.Equal(start) {
				t.Errorf("%s: payment %+v", name, p)
			}
		}
		if len(got.Disputes) > 0 != (want.disputes != "") || len(got.Disputes) > 0 && (got.Disputes[0].State != want.disputes || got.Disputes[0].Amount != 10_00) {
			t.Errorf("%s: disputes %+v", name, got.Disputes)
		}
	}
	for name, text := range hostile {
		a := &answerer{answers: map[string]string{"GET /payments": text, "GET /payments/pay_1": text}}
		p := openAnswerer(t, a)
		if got := p.QueryCharge(t.Context(), ref); got.Lookup != processor.LookupUnknown || got.Cause == nil {
			t.Errorf("%s: %+v", name, got)
		}
		if got := p.FindCharge(t.Context(), processor.Ref{ExternalID: ref, ProcessorID: "pay_1"}); got.Lookup != processor.LookupUnknown || got.Cause == nil {
			t.Errorf("by id, %s: %+v", name, got)
		}
	}
}
