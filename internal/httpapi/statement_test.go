package httpapi_test

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/porteira/porteira/internal/httpapi"
	"github.com/porteira/porteira/internal/httpapi/apitest"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// numbers lists the numbers of a page of a statement, and its next cursor.
func numbers(a answer) (list []int, next string) {
	data, _ := a.field("data").([]any)
	for _, row := range data {
		list = append(list, int(row.(map[string]any)["number"].(float64)))
	}
	return list, a.text("nextCursor")
}

func upTo(first, last int) (list []int) {
	for n := first; n <= last; n++ {
		list = append(list, n)
	}
	return list
}

// The weights of Accept decide between JSON and CSV.
func TestStatementAccept(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for accept, want := range map[string]string{
		"": "application/json", "*/*": "application/json", "text/*": "application/json", "text/csv": "text/csv", "text/csv, application/json": "text/csv",
		"TEXT/CSV;q=0.1": "text/csv", "text/csv;q=0": "application/json", "text/csv;q=0.2, application/json;q=0.3": "application/json",
		"application/json, text/csv;q=0.9": "application/json", "text/csv;q=x": "application/json", "image/png": "application/json",
	} {
		got := h.do("GET", "/statement", "", func(r *http.Request) { r.Header.Set("Accept", accept) })
		if media, _, _ := strings.Cut(got.header.Get("Content-Type"), ";"); got.status != 200 || media != want {
			t.Errorf("%q: %d %s, want %s", accept, got.status, media, want)
		}
	}
}

func TestStatement(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.gateway.statement = 7
	for query, want := range map[string][]int{
		"":                          upTo(1, 7),
		"limit=3":                   upTo(1, 3),
		"from=2000-01-01T00:00:03Z": upTo(3, 7),
		"from=2000-01-01T00:00:03Z&to=2000-01-01T00:00:05Z":      upTo(3, 4),
		"to=2000-01-01T00:00:00Z":                                nil,
		"to=2000-01-01T00:00:03-03:00&account=available&limit=4": upTo(1, 4),
	} {
		if got, next := numbers(h.do("GET", "/statement?"+query, "")); !slices.Equal(got, want) || next == "" {
			t.Errorf("%s: %v, want %v; next %q", query, got, want, next)
		}
	}
	row := h.do("GET", "/statement?limit=1", "").field("data.0")
	if got, want := fmt.Sprint(row), "map[account:available amount:5 balanceAfter:5 createdAt:2000-01-01T00:00:01.000Z "+
		"entryId:00000000-0000-0000-0000-000000000001 kind:received number:1 orderId:01000000-0000-0000-0000-000000000000 "+
		`orderType:payin referenceId:pedido 1, "ção"]`; got != want {
		t.Errorf("row %s, want %s", got, want)
	}
	var all []int
	for cursor := ""; ; {
		page, next := numbers(h.do("GET", "/statement?limit=2"+cursor, ""))
		if cursor = "&cursor=" + next; len(page) == 0 {
			break
		}
		all = append(all, page...)
	}
	if !slices.Equal(all, upTo(1, 7)) {
		t.Errorf("by pages: %v", all)
	}
}

// A reader at the end of a statement continues with later rows. After a restored backup it
// continues where histories part; if that is not known yet, it is not given other rows in the
// place of those that it has.
func TestStatementCursor(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.gateway.statement = 3
	_, end := numbers(h.do("GET", "/statement", ""))
	if _, again := numbers(h.do("GET", "/statement?cursor="+end, "")); again != end {
		t.Errorf("the cursor moved from %s to %s without rows", end, again)
	}
	h.gateway.statement = 5
	if got, _ := numbers(h.do("GET", "/statement?cursor="+end, "")); !slices.Equal(got, upTo(4, 5)) {
		t.Errorf("later rows: %v", got)
	}
	h.gateway.statement = 2
	a := h.do("GET", "/statement?cursor="+end, "")
	h.want("a row that a backup lacks", a, 422, "validation_failed")
	if a.text("errors.0.field") != "cursor" {
		t.Errorf("errors: %s", a.body)
	}
	h.gateway.history, h.gateway.kept = 1, 2
	got, after := numbers(h.do("GET", "/statement?cursor="+end, ""))
	if len(got) != 0 || after == "" {
		t.Errorf("after the restore: %v", got)
	}
	h.gateway.statement = 6
	for _, cursor := range []string{end, after} {
		if got, _ := numbers(h.do("GET", "/statement?cursor="+cursor, "")); !slices.Equal(got, upTo(3, 6)) {
			t.Errorf("rows after the restore: %v", got)
		}
	}
	h.gateway.history, h.gateway.kept = 2, 0
	if got, _ := numbers(h.do("GET", "/statement?cursor="+after, "")); !slices.Equal(got, upTo(1, 6)) {
		t.Errorf("rows after a restore that kept none: %v", got)
	}
}

func TestStatementAsCSV(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	const rows = 2345 // several parts
	h.gateway.statement = rows
	accept := func(r *http.Request) { r.Header.Set("Accept", "application/json;q=0.5, text/csv; charset=utf-8") }
	a := h.do("GET", "/statement", "", accept)
	if a.status != 200 || !strings.HasPrefix(a.header.Get("Content-Type"), "text/csv") || !strings.HasSuffix(a.body, "Z,,,,\r\n") {
		t.Fatalf("%d %v: %.300s", a.status, a.header, a.body)
	}
	lines, err := csv.NewReader(strings.NewReader(a.body)).ReadAll()
	if err != nil || len(lines) != rows+1 || !slices.Equal(lines[0], wire.StatementColumns) {
		t.Fatalf("%d lines, %v, %v", len(lines), lines[0], err)
	}
	for i, line := range lines[1:] {
		if line[0] != strconv.Itoa(i+1) || line[4] != "5" || line[8] != fmt.Sprintf(`pedido %d, "ção"`, i+1) {
			t.Fatalf("line %d: %q", i+1, line)
		}
	}
	if head := h.do("GET", "/statement?to=2000-01-01T00:00:00Z", "", accept); head.body != strings.Join(wire.StatementColumns, ",")+"\r\n" {
		t.Errorf("without rows: %q", head.body)
	}
	h.want("limit", h.do("GET", "/statement?limit=3", "", accept), 422, "validation_failed")
	if br := h.do("GET", "/statement?format=br", ""); !strings.HasPrefix(br.body, "\ufeff"+strings.Join(wire.StatementColumns, ";")+"\r\n") || !strings.Contains(br.body, ";0,05;") {
		t.Errorf("for Brazil: %.300s", br.body)
	}
	h.want("another format", h.do("GET", "/statement?format=us", ""), 422, "validation_failed")
}

func TestStatementParameters(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for query, field := range map[string]string{
		"account=fees": "account", "account=clearing:bank": "account", "kind=gift": "kind", "from=yesterday": "from", "to=2026-13-01T00:00:00Z": "to",
		"limit=201": "limit", "cursor=x": "cursor", "page=2": "page",
	} {
		a := h.do("GET", "/statement?"+query, "")
		h.want(query, a, 422, "validation_failed")
		if a.text("errors.0.field") != field {
			t.Errorf("%s: %s", query, a.body)
		}
	}
}

func TestBalanceAt(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.gateway.available = 12
	for query, want := range map[string]string{"": "12 7", "?at=2026-01-01T00:00:00Z": "12 7", "?at=1999-12-31T23:59:59-03:00": "12 7", "?at=1999-12-31T23:59:59Z": "0 0"} {
		a := h.do("GET", "/balance"+query, "")
		if got := fmt.Sprint(a.field("available"), " ", a.field("owed")); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	h.want("a date", h.do("GET", "/balance?at=2026-01-01", ""), 422, "validation_failed")
}

// The contract lists the kinds and accounts that the ledger has.
func TestStatementContract(t *testing.T) {
	t.Parallel()
	schemas := apitest.Document(t).Components.Schemas
	for name, want := range map[string][]string{"EntryKind": kinds(), "StatementAccount": accounts()} {
		var got []string
		for _, v := range schemas[name].Value.Enum {
			got = append(got, v.(string))
		}
		slices.Sort(got)
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}

func kinds() (list []string) {
	for _, r := range ledger.Recipes {
		list = append(list, string(r.Kind))
	}
	return list
}

func accounts() (list []string) {
	for _, a := range ledger.StatementAccounts {
		list = append(list, string(a))
	}
	return list
}

// failing is a database that fails after the first rows of a statement.
type failing struct{ httpapi.Reader }

func (f failing) Statement(ctx context.Context, m payment.ID, of store.StatementFilter) ([]store.StatementRow, error) {
	if of.After > 0 {
		return nil, store.ErrUnavailable
	}
	return f.Reader.Statement(ctx, m, of)
}

// A CSV that ends early is not taken for a complete one.
func TestStatementAsCSVEndsEarly(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(o *httpapi.Options) { o.Reader = failing{o.Reader} })
	h.gateway.statement = 5000
	server := httptest.NewServer(h.api)
	defer server.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/statement", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	as("key1", "secret1")(r)
	r.Header.Set("Accept", "text/csv")
	answer, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if answer.StatusCode != 200 || len(body) == 0 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%d, %d bytes, %v", answer.StatusCode, len(body), err)
	}
}

// A merchant's statements as CSV are bounded, as each may be read slowly for hours.
func TestStatementsAsCSVAtOnce(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}), make(chan struct{})
	h := newHarness(t, func(o *httpapi.Options) { o.Reader = slow{o.Reader, entered, leave} })
	accept := func(r *http.Request) { r.Header.Set("Accept", "text/csv") }
	var running sync.WaitGroup
	for range 2 {
		running.Go(func() { h.want("one of two", h.do("GET", "/statement", "", accept), 200, "") })
		<-entered
	}
	h.want("a third", h.do("GET", "/statement", "", accept), 503, "overloaded")
	close(leave)
	running.Wait()
	go func() { <-entered }()
	h.want("after them", h.do("GET", "/statement", "", accept), 200, "")
}

// slow is a database whose rows arrive once leave is closed.
type slow struct {
	httpapi.Reader

	entered, leave chan struct{}
}

func (s slow) Statement(ctx context.Context, m payment.ID, f store.StatementFilter) ([]store.StatementRow, error) {
	s.entered <- struct{}{}
	<-s.leave
	return s.Reader.Statement(ctx, m, f)
}
