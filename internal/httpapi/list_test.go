package httpapi_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/webhook"
)

// orders creates n pay-ins and payouts of the first merchant, a minute apart.
func (h *harness) orders(n int) {
	h.t.Helper()
	for i := range n {
		reference := fmt.Sprintf(`"o%d"`, i)
		body := strings.Replace(payinBody, `"r1"`, reference, 1)
		if i%2 == 1 {
			body = strings.Replace(body, "PIX", "CREDIT_CARD", 1)
		}
		h.want("order", h.do("POST", "/payin", body), 201, "")
		h.want("payout", h.do("POST", "/payout", strings.NewReplacer(`"r1"`, reference, "5000", "1").Replace(payoutBody)), 201, "")
		h.clock.Advance(time.Minute)
	}
}

// references lists the references of a page, and its next cursor.
func references(a answer) (list []string, next string) {
	data, _ := a.field("data").([]any)
	for _, entry := range data {
		list = append(list, entry.(map[string]any)["referenceId"].(string))
	}
	return list, a.text("nextCursor")
}

func TestListFilters(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.orders(5)
	h.want("cancel", h.do("POST", "/payin/"+h.gateway.payinRows[1].ID.String()+"/cancel", ""), 200, "")
	for query, want := range map[string]string{
		"":                          "o4 o3 o2 o1 o0",
		"limit=2":                   "o4 o3",
		"limit=200":                 "o4 o3 o2 o1 o0",
		"status=CANCELED":           "o1",
		"status=PENDING":            "o4 o3 o2 o0",
		"status=CANCELED,PENDING":   "o4 o3 o2 o1 o0",
		"status=PAID,CANCELED":      "o1",
		"paymentMethod=CREDIT_CARD": "o3 o1",
		"paymentMethod=CREDIT_CARD&status=PENDING":                        "o3",
		"paymentMethod=BOLETO":                                            "",
		"referenceId=o2":                                                  "o2",
		"referenceId=nothing":                                             "",
		"createdFrom=2026-03-01T12:03:00Z":                                "o4 o3",
		"createdTo=2026-03-01T12:03:00Z":                                  "o2 o1 o0",
		"createdFrom=2026-03-01T09:01:00.000-03:00":                       "o4 o3 o2 o1",
		"createdFrom=1950-01-01T00:00:00Z":                                "o4 o3 o2 o1 o0",
		"createdTo=1950-01-01T00:00:00Z":                                  "",
		"createdFrom=2026-03-01T12:01:00Z&createdTo=2026-03-01T12:02:00Z": "o1",
	} {
		a := h.do("GET", "/payin?"+strings.ReplaceAll(query, "+", "%2B"), "")
		if list, _ := references(a); a.status != 200 || strings.Join(list, " ") != want {
			t.Errorf("%s: answered %d with %q, want %s", query, a.status, list, want)
		}
	}
	if list, _ := references(h.do("GET", "/payout?referenceId=o3&status=PENDING", "")); len(list) != 1 || list[0] != "o3" {
		t.Errorf("payouts are %q", list)
	}
	for _, path := range []string{"/payin", "/payout"} {
		if list, next := references(h.do("GET", path, "", as("key2", "secret2"))); len(list) != 0 || next != "" {
			t.Errorf("%s shows another merchant's orders: %q", path, list)
		}
	}
}

// The pages of a list show every order once, for any page size, and if orders are created
// meanwhile.
func TestPages(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.orders(7)
	count := 7
	rapid.Check(t, func(rt *rapid.T) {
		path := rapid.SampledFrom([]string{"/payin", "/payout"}).Draw(rt, "list")
		before := count
		var all []string
		query := ""
		for {
			limit := rapid.IntRange(1, 4).Draw(rt, "limit")
			list, next := references(h.do("GET", fmt.Sprintf("%s?limit=%d%s", path, limit, query), ""))
			if all = append(all, list...); next == "" {
				break
			}
			if len(list) != limit {
				rt.Fatalf("a page of %d has %d entries and a next page", limit, len(list))
			}
			if query = "&cursor=" + url.QueryEscape(next); count < 40 && rapid.Bool().Draw(rt, "insert") {
				body := strings.NewReplacer(`"r1"`, fmt.Sprintf(`"o%d"`, count), "5000", "1")
				h.do("POST", "/payin", body.Replace(payinBody))
				h.do("POST", "/payout", body.Replace(payoutBody))
				h.clock.Advance(time.Millisecond)
				count++
			}
		}
		if len(all) != before {
			rt.Fatalf("%d orders were shown, want %d: %q", len(all), before, all)
		}
		for i, reference := range all {
			if want := fmt.Sprint("o", before-1-i); reference != want {
				rt.Fatalf("order %d is %s, want %s", i, reference, want)
			}
		}
	})
}

func TestInvalidQueries(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.orders(3)
	_, next := references(h.do("GET", "/payin?limit=1", ""))
	_, payouts := references(h.do("GET", "/payout?limit=1", ""))
	events := h.do("GET", "/events", "").text("nextCursor")
	if next == "" || payouts == "" || events == "" {
		t.Fatal("no cursors")
	}
	id := "/payin/" + h.gateway.payinRows[0].ID.String()
	for _, tt := range []struct{ path, invalid string }{
		{"/payin?limit=0", "limit out_of_range"}, {"/payin?limit=201", "limit out_of_range"}, {"/payin?limit=x", "limit invalid_format"},
		{"/payin?limit=", "limit invalid_format"}, {"/payin?limit=1&limit=1", "limit not_allowed"},
		{"/payin?status=paid", "status not_allowed"}, {"/payin?status=PAID,", "status not_allowed"}, {"/payin?status=PAID,PAID", "status not_allowed"},
		{"/payin?paidFrom=x&paidTo=y", "paidFrom invalid_format, paidTo invalid_format"}, {"/payin?expand=attempts", "expand not_allowed"}, {"/payout?paidFrom=x", "paidFrom unknown_field"}, {"/payin?status=COMPLETED", "status not_allowed"}, {"/payout?status=PAID", "status not_allowed"},
		{"/payin?paymentMethod=", "paymentMethod not_allowed"}, {"/payout?paymentMethod=PIX", "paymentMethod unknown_field"},
		{"/payin?referenceId=", "referenceId invalid_format"}, {"/payin?createdFrom=2026-03-01", "createdFrom invalid_format"},
		{"/payin?createdTo=now", "createdTo invalid_format"}, {"/payin?createdFrom=2026-03-01T9:00:00Z", "createdFrom invalid_format"},
		{"/payin?createdTo=2026-03-01T09:00:00,5Z&createdFrom=2026-03-01T09:00:00%2B24:00", "createdFrom invalid_format, createdTo invalid_format"},
		{"/payin?Status=PAID&merchantId=1", "Status unknown_field, merchantId unknown_field"},
		{"/payin?a=%zz", "query invalid_format"}, {"/payin?a=1;b=2", "query invalid_format"},
		{"/payin?cursor=", "cursor invalid_format"}, {"/payin?cursor=AAAA", "cursor invalid_format"}, {"/payin?cursor=" + next + "=", "cursor invalid_format"},
		{"/payin?cursor=" + flip(next, 5), "cursor invalid_format"}, {"/payin?cursor=" + flip(next, len(next)-2), "cursor invalid_format"},
		{"/payin?cursor=" + flip(next, 0), "cursor invalid_format"},
		{"/payin?cursor=" + payouts, "cursor invalid_format"}, {"/payin?cursor=" + events, "cursor invalid_format"}, {"/events?cursor=" + next, "cursor invalid_format"},
		{"/events?status=PAID", "status unknown_field"}, {"/balance?x=1", "x unknown_field"}, {"/webhook-secret?x=1", "x unknown_field"},
		{id + "?expand=", "expand not_allowed"}, {id + "?expand=beneficiary", "expand not_allowed"}, {id + "?expand=items,items", "expand not_allowed"},
		{id + "?expand=items&expand=customer", "expand not_allowed"}, {id + "?x=1", "x unknown_field"},
	} {
		a := h.do("GET", tt.path, "")
		h.want(tt.path, a, 422, "validation_failed")
		var got []string
		list, _ := a.field("errors").([]any)
		for _, e := range list {
			got = append(got, e.(map[string]any)["field"].(string)+" "+e.(map[string]any)["code"].(string))
		}
		if strings.Join(got, ", ") != tt.invalid {
			t.Errorf("%s: invalid are %q, want %s", tt.path, got, tt.invalid)
		}
	}
	h.want("another merchant's cursor", h.do("GET", "/payin?cursor="+next, "", as("key2", "secret2")), 422, "validation_failed")
}

// flip changes one character of a cursor.
func flip(cursor string, i int) string {
	c := byte('A')
	if cursor[i] == c {
		c = 'B'
	}
	return cursor[:i] + string(c) + cursor[i+1:]
}

func TestResources(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	payin, payout := h.do("POST", "/payin", payinBody), h.do("POST", "/payout", payoutBody)
	payinPath, payoutPath := "/payin/"+payin.text("id"), "/payout/"+payout.text("id")
	if read := h.do("GET", payinPath, ""); read.body != payin.body || strings.Contains(read.body, "Maria") {
		t.Errorf("read %s, want %s", read.body, payin.body)
	}
	if upper := h.do("GET", "/payin/"+strings.ToUpper(payin.text("id")), ""); upper.body != payin.body {
		t.Errorf("in capital letters: %s", upper.body)
	}
	if read := h.do("GET", payoutPath, ""); read.body != payout.body || strings.Contains(read.body, "Maria") {
		t.Errorf("read %s, want %s", read.body, payout.body)
	}
	customer := h.do("GET", payinPath+"?expand=customer", "")
	if customer.text("customer.name") != "Maria" || customer.field("items") != nil {
		t.Errorf("expanded to %s", customer.body)
	}
	if items := h.do("GET", payinPath+"?expand=items", ""); items.text("items.0.title") != "Livro" || items.field("customer") != nil {
		t.Errorf("expanded to %s", items.body)
	}
	both := h.do("GET", payinPath+"?expand=customer,items", "")
	if both.text("customer.document") != "52998224724" || both.text("items.0.title") != "Livro" {
		t.Errorf("expanded to %s", both.body)
	}
	if a := h.do("GET", payinPath+"?expand=attempts", ""); a.text("attempts.0.outcome") != "CHARGED" || a.field("customer") != nil {
		t.Errorf("expanded to %s", a.body)
	}
	at := h.gateway.payinRows[0].CreatedAt
	h.gateway.charges = map[payment.ID][]store.Charge{h.gateway.payinRows[0].ID: {
		{Account: "first", State: store.ChargeEnded, Outcome: "refused", CreatedAt: at, UpdatedAt: at},
		{Account: "second", State: store.ChargeEnded, Outcome: "not_sent", CreatedAt: at, UpdatedAt: at},
		{Account: "third", State: store.ChargeWanted, Outcome: "unknown", CreatedAt: at, UpdatedAt: at},
	}}
	tried := h.do("GET", payinPath+"?expand=attempts", "")
	if got := tried.text("attempts.0.outcome") + tried.text("attempts.1.outcome") + tried.text("attempts.2.outcome"); got != "REFUSEDNOT_SENTPENDING" {
		t.Errorf("expanded to %s", tried.body)
	}
	if a := h.do("GET", payoutPath+"?expand=beneficiary", ""); a.text("beneficiary.name") != "Maria" {
		t.Errorf("expanded to %s", a.body)
	}
	unknown := h.do("GET", "/payin/019ca9a0-7c00-7c41-8f59-1f2e3d4c5b6a", "")
	bare := strings.Replace(unknown.body, unknown.text("requestId"), "", 1)
	for _, path := range []string{payinPath, payinPath + "?expand=customer", payoutPath, "/payin/1", "/payin/x%2Fy", "/payin/" + payin.text("id")[:35]} {
		a := h.do("GET", path, "", as("key2", "secret2"))
		h.want("foreign "+path, a, 404, "not_found")
		if strings.Replace(a.body, a.text("requestId"), "", 1) != bare {
			t.Errorf("%s looks different: %s", path, a.body)
		}
	}
	h.want("foreign cancel", h.do("POST", payinPath+"/cancel", "", as("key2", "secret2")), 404, "not_found")
	for range 2 {
		if a := h.do("POST", payinPath+"/cancel", ""); a.status != 200 || a.text("status") != "CANCELED" {
			t.Errorf("cancel answered %d %s", a.status, a.body)
		}
		if a := h.do("POST", payoutPath+"/cancel", "ignored"); a.status != 200 || a.text("status") != "CANCELED" {
			t.Errorf("cancel answered %d %s", a.status, a.body)
		}
	}
	h.gateway.payinRows[0].Status = payment.PayinPaid
	h.want("cancel what is paid", h.do("POST", payinPath+"/cancel", ""), 409, "invalid_state")
	if a := h.do("GET", "/balance", ""); a.body != `{"currency":"BRL","available":95000,"pending":0,"held":0,"disputed":0,"unapplied":0,"owed":7}` {
		t.Errorf("balance is %s", a.body)
	}
	if a := h.do("GET", "/webhook-secret", ""); a.text("secret") != "whsec_c2VjcmV0" {
		t.Errorf("secret is %s", a.body)
	}
}

// A payout whose beneficiary cannot be decrypted is shown without it, like a pay-in.
func TestDamagedPayout(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.orders(3)
	row := &h.gateway.payoutRows[1]
	row.Beneficiary, row.err = payment.Beneficiary{}, fmt.Errorf("payout: %w", db.ErrSealed)
	path := "/payout/" + row.ID.String()
	if a := h.do("GET", path, ""); a.status != 200 || a.text("id") != row.ID.String() || a.field("pixKey") != nil {
		t.Errorf("answered %d %s", a.status, a.body)
	}
	h.want("with its beneficiary", h.do("GET", path+"?expand=beneficiary", ""), 500, "internal_error")
	list := h.do("GET", "/payout", "")
	if list.status != 200 || list.field("data.1.pixKey") != nil || list.text("data.0.pixKey") == "" || list.text("data.2.pixKey") == "" {
		t.Errorf("listed %d %s", list.status, list.body)
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	payin := h.do("POST", "/payin", payinBody)
	for i := range int64(3) {
		e := payment.Event{Merchant: h.first.ID, Number: i + 1, ID: payment.ID{0xe, byte(i)}, Type: payment.EventPayinPaid, Version: 2, CreatedAt: start}
		body, err := e.Envelope([]byte(payin.body))
		if err != nil {
			t.Fatal(err)
		}
		e.Body = body
		h.gateway.events = append(h.gateway.events, e)
	}
	page := h.do("GET", "/events?limit=2", "")
	first := page.text("data.0.id")
	if first != payment.PublicEventID(h.gateway.events[0].ID) || page.text("data.1.type") != "payin.paid" || page.text("data.0.data.id") != payin.text("id") {
		t.Errorf("page is %s", page.body)
	}
	page = h.do("GET", "/events?limit=2&cursor="+page.text("nextCursor"), "")
	if data, _ := page.field("data").([]any); len(data) != 1 {
		t.Errorf("second page is %s", page.body)
	}
	end := page.text("nextCursor")
	if page = h.do("GET", "/events?cursor="+end, ""); page.text("nextCursor") != end || page.body != `{"data":[],"nextCursor":"`+end+`"}` {
		t.Errorf("the end is %s", page.body)
	}
	if a := h.do("GET", "/events/"+first, ""); a.body != string(h.gateway.events[0].Body) {
		t.Errorf("event is %s", a.body)
	}
	h.gateway.attempts[1] = []store.Attempt{
		{URL: "https://shop.example/hook", Number: 1, Latency: 12 * time.Millisecond, Error: "connection refused", CreatedAt: start, EndedAt: start.Add(time.Second)},
		{URL: "https://shop.example/hook", Number: 2, Status: 200, Response: "o\xffk", CreatedAt: start, EndedAt: start},
		{URL: "https://shop.example/hook", Number: 3, CreatedAt: start},
	}
	a := h.do("GET", "/events/"+first+"/attempts", "")
	if a.text("data.0.error") != "connection refused" || a.text("data.1.response") != "o\ufffdk" || a.field("data.0.status") != nil || a.field("data.2.latencyMs") != nil {
		t.Errorf("attempts are %s", a.body)
	}
	h.want("redeliver", h.do("POST", "/events/"+first+"/redeliver", ""), 202, "")
	for _, path := range []string{"", "/attempts"} {
		for _, id := range []string{first, "evt_1", payin.text("id"), "evt_" + strings.Repeat("0", 32)} {
			h.want("foreign event", h.do("GET", "/events/"+id+path, "", as("key2", "secret2")), 404, "not_found")
		}
	}
	h.want("foreign redelivery", h.do("POST", "/events/"+first+"/redeliver", "", as("key2", "secret2")), 404, "not_found")
}

// Merchants cannot distinguish a blocked address from a host that does not exist, or they
// could list the names of the gateway's network.
func TestReasonsHideTheNetwork(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.gateway.events = []payment.Event{{Merchant: h.first.ID, Number: 1, ID: payment.ID{0xe}, Type: payment.EventPayinPaid, Version: 2, CreatedAt: start}}
	attempt := store.Attempt{URL: "http://db.internal.example/hook", CreatedAt: start, EndedAt: start}
	for i, reason := range []webhook.Reason{webhook.ReasonDNS, webhook.ReasonBlocked, webhook.ReasonTLS} {
		attempt.Number, attempt.Error = i+1, string(reason)
		h.gateway.attempts[1] = append(h.gateway.attempts[1], attempt)
	}
	a := h.do("GET", "/events/"+payment.PublicEventID(payment.ID{0xe})+"/attempts", "")
	if a.text("data.0.error") != "host_unreachable" || a.text("data.1.error") != "host_unreachable" || a.text("data.2.error") != "tls_failed" {
		t.Errorf("attempts are %s", a.body)
	}
}

// One merchant has one range of events counted at a time, which another merchant does not
// notice.
func TestRangesOfEventsAreCountedOneAtATime(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	const body = `{"from":"2026-01-01T00:00:00Z","to":"2026-02-01T00:00:00Z"}`
	h.gateway.begun, h.gateway.proceed = make(chan struct{}), make(chan struct{})
	ended := make(chan answer)
	go func() { ended <- h.do("POST", "/events/redeliver", body) }()
	<-h.gateway.begun
	second := h.do("POST", "/events/redeliver", body)
	h.want("a second one", second, 503, "overloaded")
	if second.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	go func() { ended <- h.do("POST", "/events/redeliver", body, as("key2", "secret2")) }()
	<-h.gateway.begun
	close(h.gateway.proceed)
	for range 2 {
		h.want("range", <-ended, 202, "")
	}
	h.gateway.begun = nil
	h.want("afterwards", h.do("POST", "/events/redeliver", body), 202, "")
	for _, id := range []string{"1", "00000000-0000-0000-0000-000000000000"} { // the zero id is not every URL
		a := h.do("POST", "/events/redeliver", strings.TrimSuffix(body, "}")+`,"endpointId":"`+id+`"}`)
		if h.want("endpoint "+id, a, 422, "validation_failed"); a.text("errors.0.field") != "endpointId" {
			t.Errorf("endpoint %s: %s", id, a.body)
		}
	}
}

// An unknown parameter or path is answered with the one that was meant.
func TestSuggestions(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for query, want := range map[string]string{
		"/payin?cpf=52998224725": "use customerDocument", "/payout?cpf=52998224725": "use beneficiaryDocument", "/payin?e2e=E1": "use endToEndId",
		"/payin?reference_id=1": "use referenceId", "/payin?createdfrom=1": "use createdFrom", "/payin?email=a": "use customerEmail", "/payin?statuss=PAID": "use status",
		"/payin?page=2": "use cursor", "/statement?since=x": "use from", "/events?xyzzy=1": "which has cursor, limit", "/balance?x=1": "which has at", "/limits?x=1": "which has none",
	} {
		a := h.do("GET", query, "")
		if h.want(query, a, 422, "validation_failed"); !strings.Contains(a.text("errors.0.detail"), want) {
			t.Errorf("%s: %s", query, a.body)
		}
	}
	for path, want := range map[string]string{
		"/payin/x/refund": "Use /payin/{id}/refunds.", "/payin/": "Use /payin, without a slash", "/payout/x/": "Use /payout/{id},", "/payins": "Use /payin.", "/v1/payin": "Use /payin.", "/Payin": "Use /payin.",
		"/payout-batch": "Use /payout-batches.", "/refund/x": "Use /refunds/{id}.", "/charges": "GET /openapi.json", "/" + strings.Repeat("a/", 99): "GET /openapi.json", "/inbound/x": "GET /openapi.json",
	} {
		a := h.do("POST", path, "{}")
		if h.want(path, a, 404, "not_found"); !strings.Contains(a.text("detail"), want) {
			t.Errorf("%s: %s", path, a.body)
		}
	}
}

// Lists show personal data if they are asked to, as one order does.
func TestExpandedLists(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.do("POST", "/payin", payinBody)
	h.do("POST", "/payout", payoutBody)
	if a := h.do("GET", "/payin?expand=customer,items", ""); a.text("data.0.customer.name") != "Maria" || a.text("data.0.items.0.title") != "Livro" {
		t.Errorf("the list is expanded to %s", a.body)
	}
	if a := h.do("GET", "/payin?expand=items", ""); strings.Contains(a.body, "Maria") || a.text("data.0.items.0.title") != "Livro" {
		t.Errorf("the list is expanded to %s", a.body)
	}
	if a := h.do("GET", "/payout?expand=beneficiary", ""); a.text("data.0.beneficiary.name") != "Maria" {
		t.Errorf("the list is expanded to %s", a.body)
	}
	if a := h.do("GET", "/payin", ""); strings.Contains(a.body, "Maria") || strings.Contains(a.body, "Livro") {
		t.Errorf("the list shows %s", a.body)
	}
}
