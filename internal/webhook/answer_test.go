package webhook_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/webhook"
)

// TestSendEveryStatus answers with each final HTTP status.
func TestSendEveryStatus(t *testing.T) {
	t.Parallel()
	var status, requests int
	sender := &webhook.Sender{Clock: env.NewVirtualClock(epoch)}
	sender.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
		requests++
		header := http.Header{"Location": {"https://elsewhere.example/"}, "Retry-After": {"60"}}
		return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader("said")), Request: r}, nil
	})
	for status = 200; status <= 599; status++ {
		want := webhook.Attempt{Outcome: webhook.Retry, At: epoch, StatusCode: status, Response: "said", Reason: webhook.ReasonStatus}
		switch {
		case status < 300:
			want.Outcome, want.Reason = webhook.Delivered, ""
		case status < 400:
			want.Reason = webhook.ReasonRedirect
		case status == 410:
			want.Outcome = webhook.Gone
		case status == 429, status == 503:
			want.RetryAfter = time.Minute
		}
		if got := sender.Send(t.Context(), deliveryTo(t, "https://merchant.example/")); got != want {
			t.Errorf("%d: %+v, want %+v", status, got, want)
		}
	}
	if requests != 400 {
		t.Errorf("%d requests for 400 deliveries: a redirect was followed", requests)
	}
}

// TestSendFollowsNoRedirect redirects from one receiver to another.
func TestSendFollowsNoRedirect(t *testing.T) {
	t.Parallel()
	var elsewhere atomic.Int64
	target := newReceiver(t, func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) })
	sender, _ := newSender(t, nil)
	for _, status := range []int{301, 302, 303, 307, 308} {
		receiver := newReceiver(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, target.URL, status)
		})
		got := sender.Send(t.Context(), deliveryTo(t, receiver.URL))
		if got.Outcome != webhook.Retry || got.Reason != webhook.ReasonRedirect || got.StatusCode != status {
			t.Errorf("%d: %+v", status, got)
		}
	}
	if n := elsewhere.Load(); n != 0 {
		t.Errorf("%d requests went elsewhere", n)
	}
}

// TestSendExpandsNothing has a receiver answer with 16 MiB of zeros in 16 KiB of
// gzip.
func TestSendExpandsNothing(t *testing.T) {
	t.Parallel()
	var bomb bytes.Buffer
	pack := gzip.NewWriter(&bomb)
	if _, err := io.CopyN(pack, zeros{}, 16<<20); err != nil {
		t.Fatal(err)
	}
	if err := pack.Close(); err != nil {
		t.Fatal(err)
	}
	var accepted atomic.Value
	receiver := newReceiver(t, func(w http.ResponseWriter, r *http.Request) {
		accepted.Store(r.Header.Get("Accept-Encoding"))
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(bomb.Bytes())
	})
	sender, _ := newSender(t, nil)
	got := sender.Send(t.Context(), deliveryTo(t, receiver.URL))
	if got.Outcome != webhook.Delivered || len(got.Response) > 4096 {
		t.Errorf("%s, %d bytes kept", got.Outcome, len(got.Response))
	}
	// Expanded it would be only NUL, which is not kept.
	if !strings.HasPrefix(got.Response, "\x1f\uFFFD\b") {
		t.Errorf("kept %.20q, want what came over the wire", got.Response)
	}
	if accepted.Load() != "" {
		t.Errorf("requested %q", accepted.Load())
	}
}

// zeros is an endless reader of zero bytes.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestSendSwitchesNoProtocol has a receiver switch the connection to another
// protocol, and then send nothing. net/http no longer controls such a connection:
// no timeout would end a read from it.
func TestSendSwitchesNoProtocol(t *testing.T) {
	t.Parallel()
	hungUp := make(chan struct{})
	receiver := newReceiver(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: silence\r\n\r\n")
		_, _ = io.Copy(io.Discard, conn) // until the sender hangs up
		_ = conn.Close()
		close(hungUp)
	})
	sender, _ := newSender(t, nil)
	want := webhook.Attempt{Outcome: webhook.Retry, At: epoch, StatusCode: 101, Reason: webhook.ReasonStatus}
	if got := sender.Send(t.Context(), deliveryTo(t, receiver.URL)); got != want {
		t.Errorf("attempt = %+v, want %+v", got, want)
	}
	<-hungUp
}
