package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/httpapi"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
)

const batchHeader = "referenceId,amount,pixKeyType,pixKey,beneficiaryName,beneficiaryDocument\n"

// batchBody is a batch in JSON with payouts of some references.
func batchBody(reference string, items ...string) string {
	for i, item := range items {
		items[i] = strings.Replace(payoutBody, `"r1"`, `"`+item+`"`, 1)
	}
	return `{"referenceId":"` + reference + `","items":[` + strings.Join(items, ",") + `]}`
}

// sendsCSV makes a request's body CSV.
func sendsCSV(r *http.Request) { r.Header.Set("Content-Type", "text/csv; charset=utf-8") }

func TestPayoutBatchRoutes(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	first := h.do("POST", "/payout-batches", batchBody("b", "x", "y"))
	h.want("batch", first, 201, "")
	if first.text("status") != "PENDING" || first.text("referenceId") != "b" || !strings.Contains(first.body, `"counts":{"PENDING":2}`) {
		t.Errorf("batch is %s", first.body)
	}
	again := h.do("POST", "/payout-batches", batchBody("b", "x", "y"))
	h.want("again", again, 201, "")
	if again.header.Get("Idempotency-Replayed") != "true" || again.text("id") != first.text("id") {
		t.Errorf("again: %s", again.body)
	}
	h.want("other items", h.do("POST", "/payout-batches", batchBody("b", "x")), 409, "reference_conflict")
	h.want("an invalid item", h.do("POST", "/payout-batches", strings.Replace(batchBody("c", "x"), "5000", "0", 1)), 422, "validation_failed")
	h.want("a parameter", h.do("POST", "/payout-batches?referenceId=c", batchBody("c", "x")), 422, "validation_failed")
	h.want("another type", h.do("POST", "/payout-batches", "x", func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }), 415, "unsupported_media_type")
	h.want("too large", h.do("POST", "/payout-batches", `{"referenceId":"`+strings.Repeat("x", 4<<20)), 413, "body_too_large")
	h.want("another merchant", h.do("GET", "/payout-batches/"+first.text("id"), "", as("key2", "secret2")), 404, "not_found")
	h.want("one", h.do("GET", "/payout-batches/"+first.text("id"), ""), 200, "")
	row := batchHeader + "x,5000,EMAIL,maria@example.com,Maria da Silva,52998224725\n"
	h.want("CSV", h.do("POST", "/payout-batches?referenceId=csv", row, sendsCSV), 201, "")
	h.want("CSV without a reference", h.do("POST", "/payout-batches", row, sendsCSV), 422, "validation_failed")
	h.want("CSV twice", h.do("POST", "/payout-batches?referenceId=a&referenceId=b", row, sendsCSV), 422, "validation_failed")
	h.want("no CSV", h.do("POST", "/payout-batches?referenceId=d", `"`, sendsCSV), 400, "malformed_csv")
	h.want("CSV without a header", h.do("POST", "/payout-batches?referenceId=d", row, func(r *http.Request) { r.Header.Set("Content-Type", "text/csv; header=absent") }), 415, "unsupported_media_type")
	if got, next := references(h.do("GET", "/payout-batches?limit=1", "")); fmt.Sprint(got) != "[csv]" || next == "" {
		t.Errorf("list is %v, %q", got, next)
	}
	if got, next := references(h.do("GET", "/payout-batches?referenceId=b", "")); fmt.Sprint(got) != "[b]" || next != "" {
		t.Errorf("list of a reference is %v, %q", got, next)
	}
}

// A large body is accepted; a merchant sends one batch at a time, which another merchant does
// not notice.
func TestPayoutBatchMemory(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	var items []string
	for i := range 5000 {
		items = append(items, fmt.Sprint("item-", i))
	}
	body := batchBody("large", items...)
	if len(body) < 512<<10 {
		t.Fatalf("the body has only %d bytes", len(body))
	}
	h.gateway.begun, h.gateway.proceed = make(chan struct{}), make(chan struct{})
	ended := make(chan answer)
	go func() { ended <- h.do("POST", "/payout-batches", body) }()
	<-h.gateway.begun
	h.want("a second one", h.do("POST", "/payout-batches", batchBody("b", "x")), 503, "overloaded")
	go func() { ended <- h.do("POST", "/payout-batches", batchBody("b", "x"), as("key2", "secret2")) }()
	<-h.gateway.begun
	close(h.gateway.proceed)
	for range 2 {
		h.want("batch", <-ended, 201, "")
	}
	h.gateway.begun = nil
	h.want("afterwards", h.do("POST", "/payout-batches", batchBody("b", "x")), 201, "")
}

// The items of batches that are not new count against the credential's rate, for later
// batches only.
func TestRefusedBatchesAreCounted(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(o *httpapi.Options) {
		o.CredentialLimits = httpapi.CredentialLimits{Rate: httpapi.Rate{PerSecond: 2, Burst: 10}}
	})
	var items []string
	for i := range 20 {
		items = append(items, fmt.Sprint("item-", i))
	}
	body := batchBody("b", items...)
	h.want("new", h.do("POST", "/payout-batches", body), 201, "")
	h.want("another new one", h.do("POST", "/payout-batches", strings.Replace(body, `"b"`, `"c"`, 1)), 201, "")
	h.want("invalid", h.do("POST", "/payout-batches", strings.Replace(strings.Replace(body, `"b"`, `"d"`, 1), `"amount":5000`, `"amount":0`, 1)), 422, "validation_failed")
	const policy = `"refused-items";q=10;w=5`
	again := h.do("POST", "/payout-batches", body) // 20 of 10 tokens are taken, and one is needed
	h.wantLimited("after it", again, "6", `"refused-items";r=0;t=6`, policy)
	h.want("another credential", h.do("POST", "/payout-batches", body, as("key2", "secret2")), 201, "")
	h.want("another request", h.do("GET", "/balance", ""), 200, "")
	h.clock.Advance(5500 * time.Millisecond)
	again = h.do("POST", "/payout-batches", body)
	h.want("later", again, 201, "")
	if again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("replayed: %s", again.body)
	}
	h.want("after a replay", h.do("POST", "/payout-batches", body), 429, "rate_limited")
	h.clock.Advance(time.Minute)
	h.want("malformed", h.do("POST", "/payout-batches", "{"+strings.Repeat(" ", 20<<10)), 400, "malformed_json")
	h.want("after 20 KiB", h.do("POST", "/payout-batches", body), 429, "rate_limited")
	h.clock.Advance(time.Minute)
	h.gateway.err = problem.New(problem.Unavailable, "no database")
	h.want("a failure of ours", h.do("POST", "/payout-batches", body), 503, "unavailable")
	h.gateway.err = nil
	h.want("after it", h.do("POST", "/payout-batches", body), 201, "")
}

// Parameters of finding become a filter; a short page has a cursor if there is more to
// examine.
func TestFind(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.orders(3)
	for query, field := range map[string]string{
		"/payin?endToEndId=E-1": "endToEndId", "/payin?endToEndId=": "endToEndId", "/payout?externalId=x": "externalId", "/payin?minAmount=0": "minAmount",
		"/payin?maxAmount=1e3": "maxAmount", "/payin?minAmount=2&maxAmount=1": "maxAmount", "/payin?customerDocument=123": "customerDocument",
		"/payin?customerEmail=maria": "customerEmail", "/payin?customerEmail=maria+loja@example.com": "customerEmail", "/payout?pixKey=a+b@example.com": "pixKey", "/payout?pixKey=maria": "pixKey", "/payout?beneficiaryDocument=": "beneficiaryDocument",
		"/refunds?endToEndId=D-1": "endToEndId", "/refunds?externalId=x": "externalId", "/refunds?minAmount=2&maxAmount=1": "maxAmount", "/refunds?pixKey=52998224725": "pixKey",
		"/payout?batchId=1": "batchId", "/payout?batchId=00000000-0000-0000-0000-000000000000": "batchId",
		"/disputes?payinId=00000000-0000-0000-0000-000000000000": "payinId", "/payin?pixKey=52998224725": "pixKey", "/payout?customerEmail=a@b.br": "customerEmail",
	} {
		a := h.do("GET", query, "")
		h.want(query, a, 422, "validation_failed")
		if a.text("errors.0.field") != field {
			t.Errorf("%s: %s", query, a.body)
		}
	}
	for _, query := range []string{
		"/payin?customerDocument=529.982.247-25&customerEmail=MARIA@example.com&minAmount=1&maxAmount=99999999999", "/payout?pixKey=11987654321&beneficiaryDocument=12.ABC.345/01DE-35",
		"/payin?customerEmail=maria%2Bloja@example.com", "/payout?pixKey=+5511987654321",
		"/payout?endToEndId=E99999999202611220130abcdefghijk&externalId=" + h.gateway.payoutRows[0].ExternalID,
		"/payout?batchId=019ca9a0-7c00-7c41-8f59-1f2e3d4c5b6e",
	} {
		h.want(query, h.do("GET", query, ""), 200, "")
	}
	validated := h.handler
	h.handler = h.api // the contract wants a + to be encoded, many programs do not
	h.want("offsets", h.do("GET", "/payin?createdFrom=2026-01-01T00:00:00+00:00&createdTo=2027-01-01T00:00:00.5%2B03:00", ""), 200, "")
	h.handler = validated
	h.findRefunds()
	h.gateway.scanned = h.gateway.payinRows[1].ID
	got, next := references(h.do("GET", "/payin?minAmount=1", ""))
	if len(got) != 3 || next == "" { // the fake gateway reads all
		t.Errorf("a page that ends early has %v, %q", got, next)
	}
	if got, _ := references(h.do("GET", "/payin?minAmount=1&cursor="+next, "")); fmt.Sprint(got) != "[o0]" {
		t.Errorf("the next page has %v", got)
	}
	if _, next := references(h.do("GET", "/payin", "")); next != "" {
		t.Error("a list that examines nothing has a cursor")
	}
}

// findRefunds lists refunds by each of their parameters, of a merchant and of a pay-in.
func (h *harness) findRefunds() {
	h.t.Helper()
	payin := h.gateway.payinRows[0].ID
	h.want("refund", h.do("POST", "/payin/"+payin.String()+"/refunds", `{"referenceId":"back"}`), 201, "")
	refund := h.gateway.refundRows[0]
	for path, of := range map[string]payment.ID{"/refunds": {}, "/payin/" + payin.String() + "/refunds": payin} {
		a := h.do("GET", path+"?endToEndId=D99999999202611220130abcdefghijk&externalId="+refund.ExternalID+"&minAmount=1&maxAmount=99999999999", "")
		h.want(path, a, 200, "")
		got := h.gateway.refundFilter
		if got.EndToEndID != "D99999999202611220130abcdefghijk" || got.Identified != refund.ExternalID || got.MinAmount != 1 || got.MaxAmount != 99_999_999_999 || got.Payin != of {
			h.t.Errorf("%s reads %+v", path, got)
		}
	}
	h.gateway.scanned, h.gateway.scannedOf = refund.ID, ""
	_, next := references(h.do("GET", "/refunds?minAmount=1", ""))
	if next == "" || h.gateway.scannedOf != payment.OperationRefund {
		h.t.Errorf("a page of refunds that ends early has the cursor %q, and examined those of %q", next, h.gateway.scannedOf)
	}
	if _, next := references(h.do("GET", "/payin/"+payin.String()+"/refunds?minAmount=1", "")); next != "" {
		h.t.Error("the refunds of one pay-in are scanned")
	}
}
