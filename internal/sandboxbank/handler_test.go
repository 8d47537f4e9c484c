package sandboxbank

import (
	"context"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

func TestHandlerIsStrict(t *testing.T) {
	h := newHarness(t, nil)
	good := `{"externalId":"abc","amount":1,"keyType":"EVP","key":"k","name":"n","document":"d"}`
	cases := []struct {
		name, method, path, auth, media, body string
		status                                int
	}{
		{"good", "POST", "/transfers", "Bearer " + testSecret, "application/json; charset=utf-8", good, 200},
		{"no secret", "POST", "/transfers", "", bankapi.JSONType, good, 401},
		{"empty secret", "POST", "/transfers", "Bearer ", bankapi.JSONType, good, 401},
		{"wrong secret", "POST", "/transfers", "Bearer " + testSecret + "x", bankapi.JSONType, good, 401},
		{"bare secret", "POST", "/transfers", testSecret, bankapi.JSONType, good, 401},
		{"unknown route, no secret", "GET", "/nowhere", "", "", "", 401},
		{"unknown route", "GET", "/nowhere", "Bearer " + testSecret, "", "", 404},
		{"other type", "POST", "/transfers", "Bearer " + testSecret, "text/plain", good, 415},
		{"unknown member", "POST", "/transfers", "Bearer " + testSecret, bankapi.JSONType, `{"fee":1,` + good[1:], 400},
		{"double member", "POST", "/transfers", "Bearer " + testSecret, bankapi.JSONType, `{"amount":1,` + good[1:], 400},
		{"trailing data", "POST", "/transfers", "Bearer " + testSecret, bankapi.JSONType, good + "{}", 400},
		{"half", "POST", "/transfers", "Bearer " + testSecret, bankapi.JSONType, good[:30], 400},
		{"amount of 0", "POST", "/transfers", "Bearer " + testSecret, bankapi.JSONType, strings.Replace(good, "1", "0", 1), 400},
		{"fraction", "POST", "/transfers", "Bearer " + testSecret, bankapi.JSONType, strings.Replace(good, "1", "1.5", 1), 400},
		{"too large", "POST", "/transfers", "Bearer " + testSecret, bankapi.JSONType, strings.Repeat(" ", requestLimit) + good, 413},
		{"bad fault", "POST", "/control/faults", "Bearer " + testSecret, bankapi.JSONType, `{"operation":"charge","kind":"explode","count":1}`, 400},
		{"bad listener", "PUT", "/notify-urls", "Bearer " + testSecret, bankapi.JSONType, `{"url":"file:///etc/passwd","ttlSeconds":60}`, 400},
		{"bad cursor", "GET", "/payments?cursor=7", "Bearer " + testSecret, "", "", 400},
	}
	for _, c := range cases {
		request := httptest.NewRequestWithContext(t.Context(), c.method, c.path, strings.NewReader(c.body))
		if c.auth != "" {
			request.Header.Set("Authorization", c.auth)
		}
		if c.media != "" {
			request.Header.Set("Content-Type", c.media)
		}
		w := httptest.NewRecorder()
		h.bank.Handler().ServeHTTP(w, request)
		if w.Code != c.status || w.Header().Get("Content-Type") != bankapi.JSONType {
			t.Errorf("%s: %d %s %s, want %d", c.name, w.Code, w.Header().Get("Content-Type"), w.Body, c.status)
		}
	}
}

// TestWaitsEnd: calls that wait for a fault end with their caller, with the
// clock, or with the bank.
func TestWaitsEnd(t *testing.T) {
	for _, w := range []struct {
		name string
		kind bankapi.FaultKind
		end  func(h *harness, hangUp context.CancelFunc)
		want processor.Outcome
	}{
		{"caller hangs up", bankapi.TimeoutBefore, func(_ *harness, hangUp context.CancelFunc) { hangUp() }, processor.Unknown},
		{"caller hangs up on a late answer", bankapi.Late, func(_ *harness, hangUp context.CancelFunc) { hangUp() }, processor.Unknown},
		{"time passes", bankapi.Late, func(h *harness, _ context.CancelFunc) { h.clock.BlockUntil(1); h.clock.Advance(lateBy) }, processor.Done},
		{"bank closes", bankapi.TimeoutAfter, func(h *harness, _ context.CancelFunc) { _ = h.bank.Close() }, processor.Unknown},
	} {
		t.Run(w.name, func(t *testing.T) {
			h := newHarness(t, func(o *Options) { o.Pause = nil })
			h.arm(bankapi.OpTransfer, w.kind)
			ctx, hangUp := context.WithCancel(t.Context())
			defer hangUp()
			answer := make(chan processor.TransferAnswer)
			request := h.transferRequest()
			go func() { answer <- h.driver.Transfer(ctx, request, willing) }()
			for h.bank.FaultsFired()[bankapi.Fault{Operation: bankapi.OpTransfer, Kind: w.kind}] == 0 {
				runtime.Gosched()
			}
			w.end(h, hangUp)
			if got := <-answer; got.Outcome != w.want {
				t.Errorf("outcome %v (%v), want %v", got.Outcome, got.Cause, w.want)
			}
		})
	}
}

// TestLateTakesThreeSeconds: an answer after three seconds is an answer.
func TestLateTakesThreeSeconds(t *testing.T) {
	h := newHarness(t, nil)
	h.arm(bankapi.OpTransfer, bankapi.Late)
	before := h.clock.Now()
	if answer := h.transfer(h.transferRequest()); answer.Outcome != processor.Done {
		t.Errorf("answer: %+v", answer)
	}
	if took := h.clock.Now().Sub(before); took != 3*time.Second {
		t.Errorf("took %v", took)
	}
}
