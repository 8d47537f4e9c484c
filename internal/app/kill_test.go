package app_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/apptest"
)

// Parameters of the test.
const (
	kills       = 10
	killClients = 8
)

// sentRequest is a request of a client, and the order in its acknowledgement.
type sentRequest struct {
	path, body string
	amount     int
	reference  string
	acked      map[string]any // nil if no 201 was received
}

// clients load a gateway and record its acknowledgements. They keep running when it is
// killed.
type clients struct {
	p    *program
	stop atomic.Bool
	done sync.WaitGroup

	mu    sync.Mutex
	list  []*sentRequest
	acked int // of list
}

func (c *clients) begin(seed uint64) {
	for n := range killClients {
		c.done.Go(func() { c.client(rand.New(rand.NewPCG(seed, uint64(n))), n) })
	}
}

// client sends one request after another, each repeatedly until it is answered.
func (c *clients) client(r *rand.Rand, n int) {
	for i := 0; !c.stop.Load(); i++ {
		a := &sentRequest{path: "/payin", amount: 1 + r.IntN(500), reference: fmt.Sprintf("c%d-%d", n, i)}
		a.body = fmt.Sprintf(payinBody, a.amount, a.reference)
		if r.IntN(2) == 0 {
			a.path, a.body = "/payout", fmt.Sprintf(payoutBody, a.amount, a.reference)
		}
		c.mu.Lock()
		c.list = append(c.list, a)
		c.mu.Unlock()
		for tries := 0; tries < 20 && !c.stop.Load(); tries++ {
			got := c.p.send("POST", a.path, a.body)
			if got.status == 201 {
				c.mu.Lock()
				a.acked = got.body
				c.acked++
				c.mu.Unlock()
				break
			}
			if got.status != 0 && got.status != 503 {
				c.p.t.Errorf("%s was answered %d: %v", a.body, got.status, got.body)
				return
			}
			wait(20 * time.Millisecond)
		}
		if a.path == "/payin" && a.acked != nil && r.IntN(2) == 0 {
			c.p.send("POST", "/sandbox/payin/"+a.acked["id"].(string)+"/pay", "")
		}
	}
}

// The real program, with its bank in process, is killed repeatedly under load by SIGKILL.
// Afterwards each acknowledged order exists, each payout has one transfer, and the ledger
// is correct. make crashtest does the same with a bank process and on PostgreSQL.
func TestKilledUnderLoad(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	cluster := newCluster(t, "sqlite", 1)
	p := cluster.gateways[0]
	slowest := p.start()
	c := &clients{p: p}
	c.begin(seed)
	for n := range kills {
		apptest.Until(t, func() string {
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.acked < (n+1)*killClients {
				return fmt.Sprintf("only %d requests were acknowledged before death %d\n%s", c.acked, n+1, p.log)
			}
			return ""
		})
		wait(time.Duration(r.IntN(300)) * time.Millisecond)
		p.kill()
		slowest = max(slowest, p.start())
	}
	c.stop.Store(true)
	c.done.Wait()
	resumed := awaitPayouts(t, p)
	c.check(t)
	cluster.verify(t)
	t.Logf("%d kills, %d requests, slowest start %v, all payouts final %v after the last start", kills, len(c.list), slowest, resumed)
}

// awaitPayouts waits until every payout is final, and returns how long that took.
func awaitPayouts(t *testing.T, p *program) time.Duration {
	t.Helper()
	began := time.Now()
	apptest.Until(t, func() string {
		open := 0
		for _, status := range []string{"PENDING", "PROCESSING"} {
			got := p.send("GET", "/payout?limit=200&status="+status, "")
			if got.status != 200 {
				t.Fatalf("list: %v", got)
			}
			open += len(got.body["data"].([]any))
		}
		if open > 0 {
			return fmt.Sprintf("%d payouts are not final:\n%s", open, p.log)
		}
		return ""
	})
	return time.Since(began)
}

// check reads every acknowledged order, repeats every request, and compares the payouts
// with the bank's records.
func (c *clients) check(t *testing.T) {
	t.Helper()
	payouts := map[string]int{}
	for _, a := range c.list {
		var again answer
		apptest.Until(t, func() string { // new payouts wait after the last kill
			if again = c.p.send("POST", a.path, a.body); again.status == 503 {
				return fmt.Sprintf("%s again is answered 503: %v", a.body, again.body)
			}
			return ""
		})
		if again.status != 201 {
			t.Fatalf("%s again is answered %d: %v", a.body, again.status, again.body)
		}
		if a.path == "/payout" {
			payouts[again.body["externalId"].(string)] = a.amount
		}
		if a.acked == nil {
			continue
		}
		read := c.p.send("GET", a.path+"/"+a.acked["id"].(string), "")
		for _, field := range []string{"id", "externalId", "referenceId", "amount", "createdAt", "paymentMethod", "pix", "pixKey"} {
			want := fmt.Sprint(a.acked[field])
			if fmt.Sprint(read.body[field]) != want || fmt.Sprint(again.body[field]) != want {
				t.Errorf("%s: %s was acknowledged as %s, is read as %v, repeated as %v", a.reference, field, want, read.body[field], again.body[field])
			}
		}
		if !again.replayed {
			t.Errorf("%s was acknowledged, and its repeat created a new order", a.reference)
		}
	}
	awaitPayouts(t, c.p) // repeats of requests that never arrived
	for id, amount := range payouts {
		got := c.p.send("GET", "/sandbox/processor/transfers?externalId="+id, "")
		list, _ := got.body["data"].([]any)
		if len(list) != 1 || list[0].(map[string]any)["amount"] != float64(amount) {
			t.Errorf("payout %s of %d has the transfers %v", id, amount, list)
		}
	}
}
