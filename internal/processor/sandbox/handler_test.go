package sandbox

import (
	"context"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/processor"
)

func TestHandlerIsStrict(t *testing.T) {
	r := newRig(t, nil)
	good := `{"externalId":"abc","amount":1,"keyType":"EVP","key":"k","name":"n","document":"d"}`
	cases := []struct {
		name, method, path, auth, media, body string
		status                                int
	}{
		{"good", "POST", "/transfers", "Bearer " + testSecret, "application/json; charset=utf-8", good, 200},
		{"no secret", "POST", "/transfers", "", jsonType, good, 401},
		{"empty secret", "POST", "/transfers", "Bearer ", jsonType, good, 401},
		{"wrong secret", "POST", "/transfers", "Bearer " + testSecret + "x", jsonType, good, 401},
		{"bare secret", "POST", "/transfers", testSecret, jsonType, good, 401},
		{"unknown route, no secret", "GET", "/nowhere", "", "", "", 401},
		{"unknown route", "GET", "/nowhere", "Bearer " + testSecret, "", "", 404},
		{"other type", "POST", "/transfers", "Bearer " + testSecret, "text/plain", good, 415},
		{"unknown member", "POST", "/transfers", "Bearer " + testSecret, jsonType, `{"fee":1,` + good[1:], 400},
		{"double member", "POST", "/transfers", "Bearer " + testSecret, jsonType, `{"amount":1,` + good[1:], 400},
		{"trailing data", "POST", "/transfers", "Bearer " + testSecret, jsonType, good + "{}", 400},
		{"half", "POST", "/transfers", "Bearer " + testSecret, jsonType, good[:30], 400},
		{"amount of 0", "POST", "/transfers", "Bearer " + testSecret, jsonType, strings.Replace(good, "1", "0", 1), 400},
		{"fraction", "POST", "/transfers", "Bearer " + testSecret, jsonType, strings.Replace(good, "1", "1.5", 1), 400},
		{"too large", "POST", "/transfers", "Bearer " + testSecret, jsonType, strings.Repeat(" ", requestLimit) + good, 413},
		{"bad fault", "POST", "/control/faults", "Bearer " + testSecret, jsonType, `{"operation":"charge","kind":"explode","count":1}`, 400},
		{"bad listener", "PUT", "/notify-urls", "Bearer " + testSecret, jsonType, `{"url":"file:///etc/passwd","ttlSeconds":60}`, 400},
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
		r.bank.Handler().ServeHTTP(w, request)
		if w.Code != c.status || w.Header().Get("Content-Type") != jsonType {
			t.Errorf("%s: %d %s %s, want %d", c.name, w.Code, w.Header().Get("Content-Type"), w.Body, c.status)
		}
	}
}

// TestWaitsEnd: calls that a fault holds end with their caller, with the clock,
// or with the bank.
func TestWaitsEnd(t *testing.T) {
	for _, w := range []struct {
		name string
		kind Kind
		end  func(r *rig, hangUp context.CancelFunc)
		want processor.Outcome
	}{
		{"caller hangs up", TimeoutBefore, func(_ *rig, hangUp context.CancelFunc) { hangUp() }, processor.Unknown},
		{"caller hangs up on a late answer", Late, func(_ *rig, hangUp context.CancelFunc) { hangUp() }, processor.Unknown},
		{"time passes", Late, func(r *rig, _ context.CancelFunc) { r.clock.BlockUntil(1); r.clock.Advance(lateBy) }, processor.Done},
		{"bank closes", TimeoutAfter, func(r *rig, _ context.CancelFunc) { _ = r.bank.Close() }, processor.Unknown},
	} {
		t.Run(w.name, func(t *testing.T) {
			r := newRig(t, func(o *BankOptions) { o.Pause = nil })
			r.arm(OpTransfer, w.kind)
			ctx, hangUp := context.WithCancel(t.Context())
			defer hangUp()
			answer := make(chan processor.TransferAnswer)
			request := r.transferRequest()
			go func() { answer <- r.adapter.Transfer(ctx, request, func() error { return nil }) }()
			for r.bank.FaultsFired()[Fault{Operation: OpTransfer, Kind: w.kind}] == 0 {
				runtime.Gosched()
			}
			w.end(r, hangUp)
			if got := <-answer; got.Outcome != w.want {
				t.Errorf("outcome %v (%v), want %v", got.Outcome, got.Cause, w.want)
			}
		})
	}
}
