package httpapi_test

import (
	"testing"

	"github.com/porteira/porteira/internal/payment"
)

func TestReceivables(t *testing.T) {
	h := newHarness(t)
	const first, second = `{"date":"2026-11-24","amount":9891,"count":1}`, `{"date":"2026-11-25","amount":9891,"count":2}`
	for _, tt := range []struct{ path, body string }{
		{"/receivables", `{"data":[` + first + "," + second + `]}`},
		{"/receivables?from=2026-11-24&to=2026-11-24", `{"data":[` + first + `]}`},
		{"/receivables?from=2026-11-25", `{"data":[` + second + `]}`},
		{"/receivables?to=2026-11-24", `{"data":[` + first + `]}`},
		{"/receivables?from=2026-11-26&to=2026-12-01", `{"data":[]}`},
		{"/receivables?from=0001-01-01&to=9999-12-31", `{"data":[` + first + "," + second + `]}`},
	} {
		if a := h.do("GET", tt.path, ""); a.status != 200 || a.body != tt.body {
			t.Errorf("%s answers %d %s", tt.path, a.status, a.body)
		}
	}
	for _, query := range []string{"from=2026-11-31", "from=24/11/2026", "to=", "from=2026-11-24T09:00:00Z", "from=2026-11-24&to=2026-11-23", "limit=1", "date=2026-11-24"} {
		h.want(query, h.do("GET", "/receivables?"+query, ""), 422, "validation_failed")
	}
}

func TestReceivablesOfDate(t *testing.T) {
	h := newHarness(t)
	entry := func(n string) string {
		return `{"orderType":"payin","orderId":"` + payment.ID{9}.String() + `","referenceId":"r","installment":` + n + `,"gross":100,"fee":3,"taken":2,"net":95}`
	}
	if a := h.do("GET", "/receivables/2026-11-24", ""); a.body != `{"data":[`+entry("1")+","+entry("2")+","+entry("3")+`],"nextCursor":null}` {
		t.Errorf("it answers %d %s", a.status, a.body)
	}
	page := h.do("GET", "/receivables/2026-11-24?limit=2", "")
	next := page.text("nextCursor")
	if a := h.do("GET", "/receivables/2026-11-24?limit=2&cursor="+next, ""); a.body != `{"data":[`+entry("3")+`],"nextCursor":null}` {
		t.Errorf("the second page is %d %s", a.status, a.body)
	}
	h.want("a cursor of another list", h.do("GET", "/payin?cursor="+next, ""), 422, "validation_failed")
	h.want("an unknown parameter", h.do("GET", "/receivables/2026-11-24?from=2026-11-24", ""), 422, "validation_failed")
	for _, date := range []string{"2026-11-31", "tomorrow", "20261124", "2026-11-24T00:00:00Z"} {
		h.want(date, h.do("GET", "/receivables/"+date, ""), 404, "not_found")
	}
}
