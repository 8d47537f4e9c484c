package sandboxbank

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// about lists the ids that the gateway's notices are about, in order of arrival.
func (h *harness) about() (ids []string) {
	h.t.Helper()
	for _, n := range h.gateway.received() {
		hints, err := h.driver.ParseNotice(n.body)
		if err != nil {
			h.t.Fatalf("parse notice: %v", err)
		}
		ids = append(ids, hints[0].ExternalID)
	}
	return ids
}

// TestRefusedNoticeIsRepeated: the same bytes, at growing intervals, until a
// gateway accepts them; each time signed anew.
func TestRefusedNoticeIsRepeated(t *testing.T) {
	h := newHarness(t, nil)
	var at []time.Duration
	h.gateway.answer = func(string) (int, error) {
		at = append(at, h.clock.Now().Sub(start))
		if len(at) < 5 {
			return http.StatusInternalServerError, nil
		}
		return http.StatusOK, nil
	}
	h.pay(h.chargeRequest(payment.PIX), bankapi.ForceCharge{})
	for range 60 {
		h.step()
		h.clock.Advance(time.Second)
	}
	want := []time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second, 15 * time.Second}
	if !slices.Equal(at, want) {
		t.Errorf("tried at %v, want %v", at, want)
	}
	if got := h.gateway.received(); len(got) != 1 {
		t.Errorf("accepted %d", len(got))
	}
	if stats := h.bank.NoticeStats(); stats.Pending != 0 || stats.LastFailure != "answered 500" {
		t.Errorf("stats: %+v", stats)
	}
}

// TestUnreachableGateway: while no gateway is reached one notice is tried at a
// time, so a dead gateway is not tried a thousand times, and none is lost.
func TestUnreachableGateway(t *testing.T) {
	h := newHarness(t, onDisk(t))
	dead := true
	h.gateway.answer = func(string) (int, error) {
		if dead {
			return 0, errors.New("connection refused")
		}
		return http.StatusOK, nil
	}
	const payments = 300
	for range payments {
		h.pay(h.chargeRequest(payment.PIX), bankapi.ForceCharge{})
	}
	for range 60 {
		h.step()
		h.clock.Advance(time.Second)
	}
	if tries := len(h.gateway.urls); tries < 10 || tries > 16 {
		t.Errorf("a dead gateway was tried %d times in a minute", tries)
	}
	h.reopen()
	if due, ok := h.bank.NextDue(); !ok || due.After(h.clock.Now()) {
		t.Errorf("reopened: next due %v, %v", due, ok)
	}
	dead = false
	h.step()
	if got := h.about(); len(got) != payments {
		t.Errorf("%d notices arrived, want %d", len(got), payments)
	}
}

// TestSeveralGateways: addresses are tried in order until one accepts, and
// registrations expire.
func TestSeveralGateways(t *testing.T) {
	h := newHarness(t, func(o *Options) { onDisk(t)(o); o.NotifyURL = "" })
	h.pay(h.chargeRequest(payment.PIX), bankapi.ForceCharge{})
	h.step()
	if _, ok := h.bank.NextDue(); ok || len(h.gateway.urls) != 0 {
		t.Fatal("a notice is due though no gateway is registered")
	}
	const one, two = "http://one.invalid/", "http://two.invalid/"
	if err := errors.Join(
		h.control.Listen(t.Context(), one, time.Minute), h.control.Listen(t.Context(), two, time.Hour),
	); err != nil {
		t.Fatal(err)
	}
	down := ""
	h.gateway.answer = func(url string) (int, error) {
		if url == down {
			return http.StatusServiceUnavailable, nil
		}
		return http.StatusOK, nil
	}
	expect := func(what string, want ...string) {
		t.Helper()
		h.step()
		if !slices.Equal(h.gateway.urls, want) {
			t.Errorf("%s: tried %v, want %v", what, h.gateway.urls, want)
		}
		h.gateway.urls = nil
	}
	expect("pending notice, after a registration", one)
	h.reopen()
	down = one
	h.pay(h.chargeRequest(payment.PIX), bankapi.ForceCharge{})
	expect("first is down", one, two)
	h.pay(h.chargeRequest(payment.PIX), bankapi.ForceCharge{})
	expect("the one that accepted is first", two)
	if err := h.control.SetOffset(t.Context(), 30*24*time.Hour); err != nil {
		t.Fatal(err)
	}
	h.pay(h.chargeRequest(payment.PIX), bankapi.ForceCharge{})
	expect("the bank's clock was moved a month", two)
	h.clock.Advance(2 * time.Minute)
	down = two
	h.pay(h.chargeRequest(payment.PIX), bankapi.ForceCharge{})
	expect("first has expired", two)
}

// TestRun: the bank's own loop sleeps until a timer is due, and wakes for new
// ones.
func TestRun(t *testing.T) {
	arrived := make(chan struct{}, 1)
	h := newHarness(t, nil)
	h.gateway.answer = func(string) (int, error) {
		arrived <- struct{}{}
		return http.StatusOK, nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- h.bank.Run(ctx) }()
	h.clock.BlockUntil(1)
	request := h.transferRequest()
	h.transfer(request)
	for h.transfers(request.ExternalID)[0].Status != "paid" {
		h.clock.BlockUntil(1)
		h.clock.Advance(completeAfter)
	}
	<-arrived
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("run ended with %v", err)
	}
}
