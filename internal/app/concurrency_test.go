package app_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/porteira/porteira/internal/store/storetest"
)

// crowd sends n requests at the same instant, spread over the gateways.
func crowd(gateways []*program, n int, path string, body func(i int) string) []answer {
	answers := make([]answer, n)
	var wait sync.WaitGroup
	var gate sync.WaitGroup
	gate.Add(1)
	for i := range n {
		wait.Go(func() {
			gate.Wait()
			answers[i] = gateways[i%len(gateways)].send("POST", path, body(i))
		})
	}
	gate.Done()
	wait.Wait()
	return answers
}

// A thousand requests of one reference at the same instant make one order, and
// all are answered with it; on PostgreSQL across two processes.
func TestThousandRequestsOfOneReference(t *testing.T) {
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			place := newSite(t, engine, 2)
			for _, p := range place.gateways {
				p.start()
			}
			for path, body := range map[string]string{
				"/payin": fmt.Sprintf(payinBody, 1000, "one"), "/payout": fmt.Sprintf(payoutBody, 1000, "one"),
			} {
				ids, fresh := map[any]int{}, 0
				for _, got := range crowd(place.gateways, 1000, path, func(int) string { return body }) {
					if got.status != 201 {
						t.Fatalf("%s: answered %d: %v", path, got.status, got.body)
					}
					ids[got.body["id"]]++
					if !got.replayed {
						fresh++
					}
				}
				if len(ids) != 1 || fresh != 1 {
					t.Errorf("%s: %d orders, %d of them new, want one", path, len(ids), fresh)
				}
			}
			if balance := place.gateways[0].send("GET", "/balance", "").body; balance["available"] != float64(100_000_000-1000) {
				t.Errorf("balance after one payout of 1000: %v", balance)
			}
			if code, out := place.gateways[0].command(append([]string{"verify"}, place.storage...)...); code != 0 {
				t.Errorf("verify exits %d:\n%s", code, out)
			}
		})
	}
}

// Payouts beyond the balance, at the same instant: just those are taken that it
// covers, whichever they are; on PostgreSQL across two processes.
func TestPayoutsBeyondTheBalance(t *testing.T) {
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			place := newSite(t, engine, 2)
			for _, p := range place.gateways {
				p.start()
			}
			taken, refused := 0, 0 // R$ 1,000,000.00 covers 100 of R$ 10,000.00
			for _, got := range crowd(place.gateways, 300, "/payout", func(i int) string { return fmt.Sprintf(payoutBody, 1_000_000, fmt.Sprint("p", i)) }) {
				switch {
				case got.status == 201:
					taken++
				case got.status == 422 && got.body["code"] == "insufficient_balance":
					refused++
				default:
					t.Fatalf("answered %d: %v", got.status, got.body)
				}
			}
			if taken != 100 || refused != 200 {
				t.Errorf("%d taken, %d refused, want 100 and 200", taken, refused)
			}
			if balance := place.gateways[0].send("GET", "/balance", "").body; balance["available"] != float64(0) {
				t.Errorf("available is %v, want 0", balance["available"])
			}
			if code, out := place.gateways[0].command(append([]string{"verify"}, place.storage...)...); code != 0 {
				t.Errorf("verify exits %d:\n%s", code, out)
			}
		})
	}
}
