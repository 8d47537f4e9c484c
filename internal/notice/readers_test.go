package notice_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/notice"
	"github.com/porteira/porteira/internal/processor"
)

// sender sends a body slowly.
type sender struct {
	*io.PipeWriter
	answer *httptest.ResponseRecorder
	ended  chan struct{}
}

// slowly begins to send a notice from an address, and returns when the body is read or the
// notice is answered.
func slowly(h http.Handler, address string) *sender {
	body, sent := io.Pipe()
	s := &sender{sent, httptest.NewRecorder(), make(chan struct{})}
	r := httptest.NewRequest(http.MethodPost, "/inbound/bank/bank", body)
	r.RemoteAddr = address
	go func() {
		defer close(s.ended)
		h.ServeHTTP(deadlines{s.answer, body}, r)
		_ = body.Close()
	}()
	_, _ = sent.Write([]byte("x")) // returns when it is read or the body is closed
	return s
}

// deadlines ends a body at its deadline, as a connection would.
type deadlines struct {
	http.ResponseWriter
	body *io.PipeReader
}

func (d deadlines) SetReadDeadline(time.Time) error {
	return d.body.CloseWithError(os.ErrDeadlineExceeded)
}

// One address cannot use all readers: notices of others are read.
func TestOneAddressHasAShareOfTheReaders(t *testing.T) {
	t.Parallel()
	j := &journal{}
	h := newHandler(j, 4) // 64 readers, 8 for an address
	var senders []*sender
	for i := range 20 {
		address := "[2001:db8::" + strconv.Itoa(i+1) + "]:1" // one /64
		senders = append(senders, slowly(h, address))
	}
	for i, s := range senders[8:] {
		if <-s.ended; s.answer.Code != 503 {
			t.Errorf("sender %d was answered with %d", i+9, s.answer.Code)
		}
	}
	if w := post(h, "/inbound/bank/bank", "paid", "Signature", "word", "Notice-Id", "n1"); w.Code != 200 || len(j.lines) != 1 {
		t.Errorf("a notice of another address: %d, %q", w.Code, j.lines)
	}
	for _, s := range senders[:8] {
		_ = s.Close()
		<-s.ended
	}
	again := slowly(h, "[2001:db8::1]:1")
	_ = again.Close()
	if <-again.ended; again.answer.Code != 401 {
		t.Errorf("after the others: %d", again.answer.Code)
	}
}

// While more than half of the readers are in use, a body has two seconds, and while nearly all are,
// a quarter of one.
func TestBodiesHaveLessTimeUnderLoad(t *testing.T) {
	t.Parallel()
	w, clock := env.Virtual(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), 1)
	handler := notice.NewHandler(notice.HandlerOptions{
		Recorder: &journal{}, Clock: w.Clock, Concurrent: 1, // 16 readers, 2 for an address
		Processors: processor.Registry{"bank": bank{}},
	})
	mux := http.NewServeMux()
	mux.Handle("POST /inbound/{account}/{token}", handler)
	var early, late []*sender
	for i := range 16 {
		s := slowly(mux, "192.0.2."+strconv.Itoa(i/2+1)+":1")
		if i < 8 {
			early = append(early, s)
		} else {
			late = append(late, s)
		}
	}
	clock.Advance(250 * time.Millisecond)
	for _, s := range late[6:] {
		if <-s.ended; s.answer.Code != 503 {
			t.Errorf("one of the last bodies was answered with %d", s.answer.Code)
		}
	}
	select {
	case <-late[0].ended:
		t.Error("a body ended before its two seconds")
	default:
	}
	clock.Advance(1750 * time.Millisecond)
	for _, s := range late[:6] {
		if <-s.ended; s.answer.Code != 503 {
			t.Errorf("a slow body under load was answered with %d", s.answer.Code)
		}
	}
	var closing sync.WaitGroup
	for _, s := range early {
		select {
		case <-s.ended:
			t.Error("a body that began before the load was ended")
		default:
		}
		closing.Go(func() {
			_ = s.CloseWithError(errors.New("the client has disconnected"))
			<-s.ended
		})
	}
	closing.Wait()
}
