package notice_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/notice"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
)

// bank signs its notices with a word.
type bank struct{ processor.Notifier }

func (bank) Profile() processor.Profile { return processor.Profile{Name: "bank"} }

func (bank) VerifyNotice(h http.Header, body []byte, now time.Time) (string, error) {
	if h.Get("Signature") != "word" || now.IsZero() || len(body) == 0 {
		return "", errors.New("the signature is not the word")
	}
	return h.Get("Notice-Id"), nil
}

// silent is a processor that sends no notices.
type silent struct{}

func (silent) Profile() processor.Profile { return processor.Profile{Name: "silent"} }

// journal remembers notices that were recorded.
type journal struct {
	lines []string
	err   error
	hold  chan struct{} // if set, recording waits for it to be closed
}

func (j *journal) Record(_ context.Context, name, id, headers string, body []byte) error {
	if j.hold != nil {
		j.hold <- struct{}{}
		<-j.hold
	}
	if j.err == nil {
		j.lines = append(j.lines, name+" "+id+" "+string(body)+" "+headers)
	}
	return j.err
}

func newHandler(j *journal, concurrent int) http.Handler {
	w, _ := env.Virtual(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), 1)
	h := notice.NewHandler(notice.HandlerOptions{
		Recorder: j, Clock: w.Clock, Concurrent: concurrent,
		Processors: processor.Registry{"bank": bank{}, "silent": silent{}},
	})
	mux := http.NewServeMux()
	mux.Handle("POST /inbound/{account}/{token}", h)
	return mux
}

func post(h http.Handler, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestVerifiedNoticeIsRecorded(t *testing.T) {
	t.Parallel()
	j := &journal{}
	w := post(newHandler(j, 0), "/inbound/bank/bank", "{not json", "Signature", "word", "Notice-Id", "n1",
		"Authorization", "Bearer secret", "X-Odd", "a\xffb")
	want := "bank n1 {not json Notice-Id: n1\nSignature: word\nX-Odd: a\ufffdb\n"
	if w.Code != 200 || len(j.lines) != 1 || j.lines[0] != want {
		t.Errorf("answered %d, recorded %q", w.Code, j.lines)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, path, body string
		headers          []string
		want             int
	}{
		{"unknown processor", "/inbound/nobody/nobody", "x", []string{"Signature", "word", "Notice-Id", "n1"}, 404},
		{"processor without notices", "/inbound/silent/silent", "x", []string{"Signature", "word", "Notice-Id", "n1"}, 404},
		{"no signature", "/inbound/bank/bank", "x", []string{"Notice-Id", "n1"}, 401},
		{"wrong signature", "/inbound/bank/bank", "x", []string{"Signature", "worD", "Notice-Id", "n1"}, 401},
		{"no body", "/inbound/bank/bank", "", []string{"Signature", "word", "Notice-Id", "n1"}, 401},
		{"no id", "/inbound/bank/bank", "x", []string{"Signature", "word"}, 401},
		{"largest", "/inbound/bank/bank", strings.Repeat("x", 256<<10), []string{"Signature", "word", "Notice-Id", "n1"}, 200},
		{"too large", "/inbound/bank/bank", strings.Repeat("x", 256<<10+1), []string{"Signature", "word", "Notice-Id", "n1"}, 413},
	} {
		j := &journal{}
		w := post(newHandler(j, 0), tt.path, tt.body, tt.headers...)
		if w.Code != tt.want || (len(j.lines) == 1) != (tt.want == 200) {
			t.Errorf("%s: answered %d with %d recorded, want %d", tt.name, w.Code, len(j.lines), tt.want)
		}
		if tt.want != 200 && w.Header().Get("Content-Type") != problem.MediaType {
			t.Errorf("%s: answered with %s", tt.name, w.Header().Get("Content-Type"))
		}
	}
}

// A notice that is not durable is not acknowledged: the processor sends it again.
func TestNoticeThatCannotBeRecorded(t *testing.T) {
	t.Parallel()
	for want, err := range map[int]error{500: errors.New("bug"), 503: problem.New(problem.Unavailable, "no database")} {
		w := post(newHandler(&journal{err: err}, 0), "/inbound/bank/bank", "x", "Signature", "word", "Notice-Id", "n1")
		if w.Code != want {
			t.Errorf("%v: answered %d, want %d", err, w.Code, want)
		}
	}
}

func TestNoticesAreBounded(t *testing.T) {
	t.Parallel()
	j := &journal{hold: make(chan struct{})}
	h := newHandler(j, 1)
	first := make(chan int)
	go func() { first <- post(h, "/inbound/bank/bank", "x", "Signature", "word", "Notice-Id", "n1").Code }()
	<-j.hold // it is being recorded now
	if w := post(h, "/inbound/bank/bank", "x", "Signature", "word", "Notice-Id", "n2"); w.Code != 503 || w.Header().Get("Retry-After") == "" {
		t.Errorf("a second notice was answered with %d", w.Code)
	}
	close(j.hold)
	if code := <-first; code != 200 {
		t.Errorf("the first notice was answered with %d", code)
	}
}

// A slow sender, which need not be a processor at all, does not block notices
// that have arrived.
func TestSlowSendersKeepNobodyOut(t *testing.T) {
	t.Parallel()
	const concurrent = 2
	h := newHandler(&journal{}, concurrent)
	var slow sync.WaitGroup
	var open []*io.PipeWriter
	for i := range 4 * concurrent {
		body, sent := io.Pipe()
		open = append(open, sent)
		slow.Go(func() {
			r := httptest.NewRequest(http.MethodPost, "/inbound/bank/bank", body)
			r.RemoteAddr = fmt.Sprintf("198.51.100.%d:1", i+1) // each has a share
			h.ServeHTTP(httptest.NewRecorder(), r)
			_ = body.Close()
		})
		_, _ = sent.Write([]byte("x")) // it is read: the rest is awaited
	}
	if w := post(h, "/inbound/bank/bank", "x", "Signature", "word", "Notice-Id", "n1"); w.Code != 200 {
		t.Errorf("the notice was answered with %d", w.Code)
	}
	for _, sent := range open {
		_ = sent.Close()
	}
	slow.Wait()
}
