package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/httpapi"
)

// A URL of a receiver with a port to which nothing would be sent is an invalid field at once; a
// payer's way back may have any port.
func TestPortsOfReceivers(t *testing.T) {
	h := newHarness(t, func(o *httpapi.Options) { o.AllowHTTP = false })
	for _, v := range []struct{ path, field, body string }{
		{"/webhook-endpoints", "url", `{"url":"https://shop.example/hook","events":["*"]}`},
		{"/payin", "webhookUrl", strings.Replace(payinBody, "http://127.0.0.1:1/hook", "https://shop.example/hook", 1)},
		{"/payout", "webhookUrl", strings.Replace(payoutBody, `{`, `{"webhookUrl":"https://shop.example/hook",`, 1)},
	} {
		for _, host := range []string{"shop.example:8443", "shop.example:8080", "[2606:4700::1111]:81"} {
			a := h.do(http.MethodPost, v.path, strings.Replace(v.body, "shop.example", host, 1))
			h.want(v.path+" with "+host, a, 422, "validation_failed")
			if a.text("errors.0.field") != v.field || a.text("errors.0.code") != "not_allowed" {
				t.Errorf("%s with %s: %s", v.path, host, a.body)
			}
		}
	}
	h.want("another port", h.do(http.MethodPost, "/payin", strings.Replace(payinBody, "http://127.0.0.1:1/hook", "https://shop.example:443/hook", 1)), 201, "")
}
