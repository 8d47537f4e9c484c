package app_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/store/storetest"
)

// withCluster runs a test on one process on SQLite, and on two processes on PostgreSQL
// that share a bank. Afterwards it verifies the ledger.
func withCluster(t *testing.T, test func(t *testing.T, gateways []*program)) {
	t.Helper()
	t.Parallel()
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			cluster := newCluster(t, engine, 2)
			for _, p := range cluster.gateways {
				p.start()
			}
			test(t, cluster.gateways)
			cluster.verify(t)
		})
	}
}

// together calls do n times concurrently.
func together(n int, do func(i int)) {
	var all, gate sync.WaitGroup
	gate.Add(1)
	for i := range n {
		all.Go(func() {
			gate.Wait()
			do(i)
		})
	}
	gate.Done()
	all.Wait()
}

// sendTogether sends n requests concurrently, spread over the gateways. Like a client, it
// repeats requests that an overloaded gateway rejects, that had no answer within the gateway's
// 25 s because the machine is busy, or whose connection is closed. Any other 503 is a fault: no
// request gets one because it lost a race.
func sendTogether(gateways []*program, n int, path string, body func(i int) string) []answer {
	answers := make([]answer, n)
	together(n, func(i int) {
		for range 600 {
			answers[i] = gateways[i%len(gateways)].send("POST", path, body(i))
			if !answers[i].isBusy() && answers[i].cause == nil {
				return
			}
			wait(100 * time.Millisecond)
		}
	})
	return answers
}

// isBusy reports whether a gateway had no time for the request.
func (a answer) isBusy() bool {
	tooLong := a.body["detail"] == "The request took too long. Send the same request again."
	return a.status == 503 && (a.body["code"] == "overloaded" || tooLong)
}

// wantBalance compares the available balance, and checks that nothing is held.
func wantBalance(t *testing.T, p *program, available int) {
	t.Helper()
	if got := p.send("GET", "/balance", "").body; got["available"] != float64(available) || got["held"] != float64(0) {
		t.Errorf("the balance is %v, want %d available and nothing held", got, available)
	}
}

// A thousand concurrent requests with one reference create one order, and all get it as
// their answer.
func TestThousandRequestsOfOneReference(t *testing.T) {
	withCluster(t, func(t *testing.T, gateways []*program) {
		for path, body := range map[string]string{"/payin": payinBody, "/payout": payoutBody} {
			ids, fresh := map[any]int{}, 0
			for _, got := range sendTogether(gateways, 1000, path, func(int) string { return fmt.Sprintf(body, 1000, "one") }) {
				if got.status != 201 {
					t.Fatalf("%s: %+v", path, got)
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
		awaitPayouts(t, gateways[0])
		wantBalance(t, gateways[0], int(app.SandboxFunds)-1000)
	})
}

// Of two different requests with one reference, each sent many times concurrently, one
// wins and all copies of the other get 409.
func TestTwoRequestsOfOneReference(t *testing.T) {
	withCluster(t, func(t *testing.T, gateways []*program) {
		amount := func(i int) int { return 100 + i/2%2 } // both amounts at both gateways
		for path, body := range map[string]string{"/payin": payinBody, "/payout": payoutBody} {
			ids, amounts := map[any]int{}, map[int]int{}
			for i, got := range sendTogether(gateways, 200, path, func(i int) string { return fmt.Sprintf(body, amount(i), "contested") }) {
				switch {
				case got.status == 201:
					ids[got.body["id"]]++
					amounts[amount(i)]++
				case got.status != 409 || got.body["code"] != "reference_conflict":
					t.Fatalf("%s: %+v", path, got)
				}
			}
			if len(ids) != 1 || amounts[100]+amounts[101] != 100 || len(amounts) != 1 {
				t.Errorf("%s: orders %v with amounts %v, want one with a hundred answers", path, ids, amounts)
			}
		}
	})
}

// Of concurrent payouts beyond the balance, exactly as many are accepted as it covers.
func TestPayoutsBeyondTheBalance(t *testing.T) {
	withCluster(t, func(t *testing.T, gateways []*program) {
		taken, refused := 0, 0 // R$ 1,000,000.00 covers 100 of R$ 10,000.00
		for _, got := range sendTogether(gateways, 300, "/payout", func(i int) string { return fmt.Sprintf(payoutBody, 1_000_000, fmt.Sprint("p", i)) }) {
			switch {
			case got.status == 201:
				taken++
			case got.status == 422 && got.body["code"] == "insufficient_balance":
				refused++
			default:
				t.Fatalf("%+v", got)
			}
		}
		if taken != 100 || refused != 200 {
			t.Errorf("%d taken, %d refused, want 100 and 200", taken, refused)
		}
		awaitPayouts(t, gateways[0])
		wantBalance(t, gateways[0], 0)
	})
}

// Orders that are canceled and paid concurrently are paid in the end, unless the charge was
// canceled at the bank first: a payment that the bank takes is never dropped.
func TestCanceledWhilePaid(t *testing.T) {
	withCluster(t, func(t *testing.T, gateways []*program) {
		const orders = 60
		made := sendTogether(gateways, orders, "/payin", func(i int) string { return fmt.Sprintf(payinBody, 100, fmt.Sprint("race ", i)) })
		taken := make([]bool, orders) // by the bank
		together(2*orders, func(i int) {
			p, id := gateways[i/2%len(gateways)], fmt.Sprint(made[i/2].body["id"])
			if i%2 == 0 {
				if got := p.send("POST", "/sandbox/payin/"+id+"/pay", ""); got.status == 204 {
					taken[i/2] = true
				} else if got.status != 409 {
					t.Errorf("pay: %+v", got)
				}
				return
			}
			for range i % 11 { // the payment takes longer, because it passes the bank
				p.send("GET", "/payin/"+id, "")
			}
			if got := p.send("POST", "/payin/"+id+"/cancel", ""); got.status != 200 && got.status != 409 {
				t.Errorf("cancel: %+v", got)
			}
		})
		late, paid := 0, 0
		for i := range made {
			got := gateways[0].send("GET", "/payin/"+fmt.Sprint(made[i].body["id"]), "").body
			if isPaid := got["status"] == "PAID" && got["paidAmount"] == float64(100); isPaid != taken[i] || !isPaid && got["status"] != "CANCELED" {
				t.Errorf("order %v is %v, paid %v; the bank took a payment: %v", got["id"], got["status"], got["paidAmount"], taken[i])
			}
			if taken[i] {
				paid++
			}
			if got["late"] == true {
				late++
			}
		}
		t.Logf("%d of %d were canceled first", late, orders)
		if paid == 0 {
			t.Error("no payment was first")
		}
		wantBalance(t, gateways[0], int(app.SandboxFunds)+100*paid)
	})
}

// Payouts that are canceled while they are sent are either canceled or paid, never both.
func TestCanceledWhileSent(t *testing.T) {
	withCluster(t, func(t *testing.T, gateways []*program) {
		const payouts = 100
		made, canceled := make([]answer, payouts), make([]bool, payouts)
		together(payouts, func(i int) {
			p := gateways[i%len(gateways)]
			made[i] = p.send("POST", "/payout", fmt.Sprintf(payoutBody, 100, fmt.Sprint("race ", i)))
			got := p.send("POST", "/payout/"+fmt.Sprint(made[i].body["id"])+"/cancel", "")
			if canceled[i] = got.status == 200; !canceled[i] && got.status != 409 {
				t.Errorf("cancel: %+v", got)
			}
		})
		awaitPayouts(t, gateways[0])
		taken := 0
		for i := range made {
			got := gateways[0].send("GET", "/payout/"+fmt.Sprint(made[i].body["id"]), "").body
			list, _ := gateways[0].send("GET", "/sandbox/processor/transfers?externalId="+fmt.Sprint(got["externalId"]), "").body["data"].([]any)
			want, transfers := "COMPLETED", 1
			if canceled[i] {
				want, transfers, taken = "CANCELED", 0, taken+1
			}
			if got["status"] != want || len(list) != transfers {
				t.Errorf("payout %v is %v with %d transfers, want %s with %d", got["id"], got["status"], len(list), want, transfers)
			}
		}
		t.Logf("%d of %d were canceled in time", taken, payouts)
		wantBalance(t, gateways[0], int(app.SandboxFunds)-100*(payouts-taken))
	})
}
