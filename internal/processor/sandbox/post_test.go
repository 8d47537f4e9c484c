package sandbox

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor/processortest"
)

// about lists, in order of arrival, whom the gateway's notices are about.
func (r *rig) about() (ids []string) {
	r.t.Helper()
	for _, n := range r.gateway.received() {
		hints, err := r.adapter.ParseNotice(n.Body)
		if err != nil {
			r.t.Fatalf("parse notice: %v", err)
		}
		ids = append(ids, hints[0].ExternalID)
	}
	return ids
}

func (r *rig) noticeID(n processortest.Notice) string {
	r.t.Helper()
	id, err := r.adapter.VerifyNotice(n.Header, n.Body, r.clock.Now())
	if err != nil {
		r.t.Fatalf("verify notice: %v", err)
	}
	return id
}

func TestNotifyTwice(t *testing.T) {
	r := newRig(t, nil)
	r.arm(OpTransfer, NotifyTwice)
	r.transfer(r.transferRequest())
	r.settle()
	notices := r.gateway.received()
	if len(notices) != 2 || !bytes.Equal(notices[0].Body, notices[1].Body) || r.noticeID(notices[0]) != r.noticeID(notices[1]) {
		t.Errorf("%d notices, want the same one twice", len(notices))
	}
}

func TestNotifyNever(t *testing.T) {
	r := newRig(t, nil)
	r.arm(OpTransfer, NotifyNever)
	request := r.transferRequest()
	r.transfer(request)
	r.settle()
	if n := len(r.gateway.received()); n != 0 {
		t.Errorf("%d notices", n)
	}
	if lines := r.books(request.ExternalID); lines[0].Status != "paid" {
		t.Errorf("books: %+v", lines)
	}
}

func TestNotifyReordered(t *testing.T) {
	r := newRig(t, nil)
	r.arm(OpTransfer, NotifyReordered)
	first, second := r.transferRequest(), r.transferRequest()
	r.transfer(first)
	r.transfer(second)
	if err := r.control.Transfer(t.Context(), first.ExternalID, "complete", 0); err != nil {
		t.Fatal(err)
	}
	if err := r.control.Transfer(t.Context(), first.ExternalID, "return", 0); err != nil {
		t.Fatal(err)
	}
	r.settle()
	want := []string{first.ExternalID, second.ExternalID, first.ExternalID} // returned, the other, paid
	if got := r.about(); !slices.Equal(got, want) {
		t.Errorf("notices about %v, want %v", got, want)
	}
}

// TestRefusedNoticeIsRepeated: the same bytes, later and later, until a
// gateway takes them; each time signed anew.
func TestRefusedNoticeIsRepeated(t *testing.T) {
	r := newRig(t, nil)
	var at []time.Duration
	r.gateway.answer = func(string) (int, error) {
		at = append(at, r.clock.Now().Sub(start))
		if len(at) < 5 {
			return http.StatusInternalServerError, nil
		}
		return http.StatusOK, nil
	}
	r.pay(r.chargeRequest(payment.PIX), Payment{})
	for range 60 {
		r.step()
		r.clock.Advance(time.Second)
	}
	want := []time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second, 15 * time.Second}
	if !slices.Equal(at, want) {
		t.Errorf("tried at %v, want %v", at, want)
	}
	if got := r.gateway.received(); len(got) != 1 {
		t.Errorf("accepted %d", len(got))
	}
	if stats := r.bank.Post(); stats.Waiting != 0 || stats.LastFailure != "answered 500" {
		t.Errorf("stats: %+v", stats)
	}
}

// TestUnreachableGateway: while nobody is reached one notice tries at a time,
// so a dead gateway is not knocked at a thousand times, and none is lost.
func TestUnreachableGateway(t *testing.T) {
	r := newRig(t, onDisk(t))
	dead := true
	r.gateway.answer = func(string) (int, error) {
		if dead {
			return 0, errors.New("connection refused")
		}
		return http.StatusOK, nil
	}
	const payments = 300
	for range payments {
		r.pay(r.chargeRequest(payment.PIX), Payment{})
	}
	for range 60 {
		r.step()
		r.clock.Advance(time.Second)
	}
	if tries := len(r.gateway.urls); tries < 10 || tries > 16 {
		t.Errorf("a dead gateway was tried %d times in a minute", tries)
	}
	_ = r.bank.Close()
	r.open()
	if due, ok := r.bank.NextDue(); !ok || due.After(r.clock.Now()) {
		t.Errorf("reopened: next due %v, %v", due, ok)
	}
	dead = false
	r.step()
	if got := r.about(); len(got) != payments {
		t.Errorf("%d notices arrived, want %d", len(got), payments)
	}
}

// TestSeveralGateways: addresses are tried in order until one accepts, and a
// registration runs out.
func TestSeveralGateways(t *testing.T) {
	r := newRig(t, func(o *BankOptions) { onDisk(t)(o); o.NotifyURL = "" })
	r.pay(r.chargeRequest(payment.PIX), Payment{})
	r.step()
	if _, ok := r.bank.NextDue(); ok || len(r.gateway.urls) != 0 {
		t.Fatal("a notice is due though nobody listens")
	}
	const one, two = "http://one.invalid/", "http://two.invalid/"
	if err := errors.Join(
		r.control.Listen(t.Context(), one, time.Minute), r.control.Listen(t.Context(), two, time.Hour),
	); err != nil {
		t.Fatal(err)
	}
	down := ""
	r.gateway.answer = func(url string) (int, error) {
		if url == down {
			return http.StatusServiceUnavailable, nil
		}
		return http.StatusOK, nil
	}
	expect := func(what string, want ...string) {
		t.Helper()
		r.step()
		if !slices.Equal(r.gateway.urls, want) {
			t.Errorf("%s: tried %v, want %v", what, r.gateway.urls, want)
		}
		r.gateway.urls = nil
	}
	expect("waiting notice, now that someone listens", one)
	_ = r.bank.Close()
	r.open()
	down = one
	r.pay(r.chargeRequest(payment.PIX), Payment{})
	expect("first is down", one, two)
	r.pay(r.chargeRequest(payment.PIX), Payment{})
	expect("whoever accepted goes first", two)
	if err := r.control.SetOffset(t.Context(), 30*24*time.Hour); err != nil {
		t.Fatal(err)
	}
	r.pay(r.chargeRequest(payment.PIX), Payment{})
	expect("the bank's clock was moved a month", two)
	r.clock.Advance(2 * time.Minute)
	down = two
	r.pay(r.chargeRequest(payment.PIX), Payment{})
	expect("first has run out", two)
}

// TestNoticeWorkers: several workers deliver each notice once.
func TestNoticeWorkers(t *testing.T) {
	r := newRig(t, func(o *BankOptions) { o.NoticeWorkers = 4 })
	const payments = 50
	for range payments {
		r.pay(r.chargeRequest(payment.PIX), Payment{})
	}
	r.step()
	ids := r.about()
	slices.Sort(ids)
	if len(slices.Compact(ids)) != payments {
		t.Errorf("%d notices, want each of %d once", len(ids), payments)
	}
}

// TestRun: the bank's own loop sleeps until something is due, and wakes for
// what is new.
func TestRun(t *testing.T) {
	arrived := make(chan struct{}, 1)
	r := newRig(t, nil)
	r.gateway.answer = func(string) (int, error) {
		arrived <- struct{}{}
		return http.StatusOK, nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- r.bank.Run(ctx) }()
	r.clock.BlockUntil(1)
	request := r.transferRequest()
	r.transfer(request)
	for r.books(request.ExternalID)[0].Status != "paid" {
		r.clock.BlockUntil(1)
		r.clock.Advance(settleAfter)
	}
	<-arrived
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("run ended with %v", err)
	}
}
