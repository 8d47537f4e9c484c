package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/httpapi"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// controls records the calls of the sandbox.
type controls struct {
	calls []string
	err   error
}

func (s *controls) record(format string, args ...any) error {
	s.calls = append(s.calls, fmt.Sprintf(format, args...))
	return s.err
}

func (s *controls) PayinAction(_ context.Context, id payment.ID, action string, how wire.SandboxPayin) error {
	return s.record("%s payin %d %d", action, id[0], how.Amount)
}

func (s *controls) PayoutAction(_ context.Context, id payment.ID, action string) error {
	return s.record("%s payout %d", action, id[0])
}

func (s *controls) ArmFault(_ context.Context, f wire.SandboxFault) error {
	return s.record("%s %s %d%s", f.Operation, f.Kind, f.Count, f.Account)
}

func (s *controls) ClearFaults(context.Context) error { return s.record("clear") }

func (s *controls) AdvanceClock(_ context.Context, d time.Duration) error { return s.record("%v", d) }

func (s *controls) Transfers(_ context.Context, account, externalID string) ([]wire.SandboxTransfer, error) {
	return []wire.SandboxTransfer{{
		ExternalID: strings.Repeat("0", 32), Amount: 5000, PIXKey: "m@example.com", EndToEndID: "E1", Status: "paid", CreatedAt: start,
	}}, s.record("transfers %s%s", externalID, account)
}

func TestSandbox(t *testing.T) {
	t.Parallel()
	const id = "01000000-0000-7000-8000-000000000000"
	s := &controls{}
	h := newHarness(t, func(o *httpapi.Options) { o.Sandbox = s })
	for _, tt := range []struct {
		method, path, body string
		status             int
		want               string // the call, or the invalid fields
	}{
		{"POST", "/sandbox/payin/" + id + "/pay", "", 204, "pay payin 1 0"},
		{"POST", "/sandbox/payin/" + id + "/pay", "{}", 204, "pay payin 1 0"},
		{"POST", "/sandbox/payin/" + id + "/pay", `{"amount":500}`, 204, "pay payin 1 500"},
		{"POST", "/sandbox/payin/" + id + "/pay", `{"amount":0}`, 422, "amount"},
		{"POST", "/sandbox/payin/" + id + "/pay", `{"amount":"1"}`, 422, "amount"},
		{"POST", "/sandbox/payin/" + id + "/pay", `{"sum":1}`, 400, "sum"},
		{"POST", "/sandbox/payin/" + id + "/win", `{"amount":1}`, 422, "amount"},
		{"POST", "/sandbox/payin/" + id + "/lose", "", 204, "lose payin 1 0"},
		{"POST", "/sandbox/payin/" + id + "/explode", "", 404, ""},
		{"POST", "/sandbox/payin/1/pay", "", 404, ""},
		{"POST", "/sandbox/payout/" + id + "/return", "", 204, "return payout 1"},
		{"POST", "/sandbox/payout/" + id + "/pay", "", 404, ""},
		{"POST", "/sandbox/faults", `{"operation":"transfer","kind":"late","count":3}`, 204, "transfer late 3"},
		{"POST", "/sandbox/faults", `{"operation":"query","kind":"rubbish"}`, 204, "query rubbish 1"},
		{"POST", "/sandbox/faults", `{"operation":"query","kind":"rubbish","account":"second"}`, 204, "query rubbish 1second"},
		{"POST", "/sandbox/faults", `{"operation":"x","kind":"y","count":0,"z":1}`, 400, "z count operation kind"},
		{"POST", "/sandbox/faults", `{"count":1000001}`, 422, "count operation kind"},
		{"DELETE", "/sandbox/faults", "", 204, "clear"},
		{"POST", "/sandbox/clock", `{"advance":3600}`, 204, "1h0m0s"},
		{"POST", "/sandbox/clock", `{"advance":-1}`, 422, "advance"},
		{"POST", "/sandbox/clock", `{"advance":315360001}`, 422, "advance"},
		{"POST", "/sandbox/clock", `{}`, 422, "advance"},
		{"GET", "/sandbox/processor/transfers", "", 200, "transfers "},
		{"GET", "/sandbox/processor/transfers?externalId=" + strings.Repeat("0", 32), "", 200, "transfers " + strings.Repeat("0", 32)},
		{"GET", "/sandbox/processor/transfers?account=second", "", 200, "transfers second"},
		{"GET", "/sandbox/processor/transfers?x=1", "", 422, "x"},
	} {
		s.calls = nil
		a := h.do(tt.method, tt.path, tt.body, anonymously)
		got := strings.Join(s.calls, " ")
		if errs, ok := a.field("errors").([]any); ok {
			for _, e := range errs {
				got += " " + e.(map[string]any)["field"].(string)
			}
			got = strings.TrimSpace(got)
		}
		if a.status != tt.status || got != tt.want {
			t.Errorf("%s %s %s: answered %d %s, calls %q, want %d %q", tt.method, tt.path, tt.body, a.status, a.body, got, tt.status, tt.want)
		}
	}
	s.err = problem.New(problem.InvalidState, "No.")
	h.want("refused", h.do("POST", "/sandbox/payin/"+id+"/pay", ""), 409, "invalid_state")
	s.err = fmt.Errorf("read receipts: %w", store.ErrUnavailable)
	for _, route := range [][3]string{
		{"POST", "/sandbox/payin/" + id + "/pay", ""}, {"POST", "/sandbox/payout/" + id + "/fail", ""},
		{"POST", "/sandbox/faults", `{"operation":"query","kind":"late"}`}, {"DELETE", "/sandbox/faults", ""},
		{"POST", "/sandbox/clock", `{"advance":1}`}, {"GET", "/sandbox/processor/transfers", ""},
	} {
		h.want(route[1]+" without a database", h.do(route[0], route[1], route[2]), 503, "unavailable")
	}
	s.err = errors.New("bug")
	h.want("bug", h.do("DELETE", "/sandbox/faults", ""), 500, "internal_error")
}

func TestServiceRoutes(t *testing.T) {
	t.Parallel()
	var down error
	h := newHarness(t, func(o *httpapi.Options) {
		o.Ready = func(context.Context) error { return down }
		o.Inbound = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if body, _ := io.ReadAll(r.Body); string(body) == `"good"` && r.PathValue("account") == "sandbox" && r.PathValue("token") == "token" {
				return
			}
			problem.Write(w, problem.New(problem.Unauthorized, "No."), w.Header().Get("X-Request-Id"))
		})
	})
	h.want("alive", h.do("GET", "/healthz", "", anonymously), 200, "")
	h.want("ready", h.do("GET", "/readyz", "", anonymously), 200, "")
	down = errors.New("database is gone")
	h.want("not ready", h.do("GET", "/readyz", "", anonymously), 503, "unavailable")
	h.want("still alive", h.do("GET", "/healthz", "", anonymously), 200, "")
	if a := h.do("GET", "/openapi.json", "", anonymously); a.text("openapi") != "3.0.3" {
		t.Errorf("the contract is %.100s", a.body)
	}
	h.want("notice", h.do("POST", "/inbound/sandbox/token", `"good"`, anonymously), 200, "")
	h.want("forged notice", h.do("POST", "/inbound/sandbox/token", `"bad"`, anonymously), 401, "unauthorized")
	if text := h.log.String(); !strings.Contains(text, `"route":"/inbound/{account}/{token}","status":401`) {
		t.Errorf("log is %s", text)
	}
}
