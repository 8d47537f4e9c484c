package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// clientCount is how many clients ask at once.
const clientCount = 8

// How clients pace themselves.
const (
	pauseMin   = 5 * time.Millisecond
	pauseMax   = 60 * time.Millisecond
	retryMin   = 10 * time.Millisecond
	retryMax   = 100 * time.Millisecond
	askTimeout = 15 * time.Second
	// Some clients hang up before they have an answer, and ask again.
	hangUpPercent = 3
	hangUpMin     = time.Millisecond
	hangUpMax     = 30 * time.Millisecond
	// pushTimeout is for the sandbox's routes, which wait for an effect that
	// may be long in coming while all sorts of things are dead.
	pushTimeout = 2 * time.Second
)

// crowd are the clients. They outlive whatever they ask.
type crowd struct {
	stop  context.CancelFunc
	done  sync.WaitGroup
	mu    sync.Mutex
	fails []error
}

// client asks for orders, one after the other, and keeps a journal.
type client struct {
	*ordeal

	number  int
	chance  chance
	journal *journal
	ask     *caller // the API
	push    *caller // the sandbox's routes
}

// begin lets the clients loose.
func (o *ordeal) begin(ctx context.Context, folder string) *crowd {
	ctx, stop := context.WithCancel(ctx)
	c := &crowd{stop: stop}
	for n := range clientCount {
		c.done.Go(func() {
			if err := o.client(ctx, folder, n); err != nil && ctx.Err() == nil {
				c.mu.Lock()
				c.fails = append(c.fails, err)
				c.mu.Unlock()
			}
		})
	}
	return c
}

// end stops the clients and waits for them.
func (c *crowd) end() error {
	c.stop()
	c.done.Wait()
	return errors.Join(c.fails...)
}

func (o *ordeal) client(ctx context.Context, folder string, n int) (err error) {
	j, err := openJournal(journalPath(folder, n))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.close()) }()
	c := &client{
		ordeal: o, number: n, chance: newChance(o.seed, 100+uint64(n)), journal: j,
		ask: newCaller(askTimeout, merchantHeaders), push: newCaller(pushTimeout, nil),
	}
	for i := 0; wait(ctx, c.chance.between(pauseMin, pauseMax)); i++ {
		if err := c.turn(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// turn is one order from the request to whatever the client does with it.
func (c *client) turn(ctx context.Context, i int) error {
	a, err := c.order(i)
	if err := errors.Join(err, c.journal.write(a, false)); err != nil {
		return err
	}
	c.figures.add("orders asked for", a.Kind, 1)
	if err := c.place(ctx, &a); err != nil || len(a.Acked) == 0 {
		return err
	}
	c.figures.add("orders acknowledged", a.Kind, 1)
	c.look(ctx, &a)
	if a.Kind == payin {
		return c.followPayin(ctx, &a)
	}
	return c.followPayout(ctx, &a)
}

// order draws the next order.
func (c *client) order(i int) (asked, error) {
	a := asked{Kind: payin, Reference: fmt.Sprintf("c%d-%d", c.number, i)}
	if c.chance.percent(50) {
		a.Kind = payout
	}
	body := request{Amount: int64(1 + c.chance.below(500)), ReferenceID: a.Reference}
	if c.chance.percent(80) {
		body.WebhookURL = pick(c.chance, c.receivers) + "/hook/" + a.Reference
	}
	if a.Kind == payout {
		body.PIXKey, body.PIXKeyType = "a@b.example", "EMAIL"
		body.BeneficiaryName, body.BeneficiaryDocument = "Maria Silva", "52998224725"
		if c.chance.percent(2) {
			body.Amount = tooMuch
		}
	} else {
		body.PaymentMethod = pick(c.chance, []string{"PIX", "PIX", "PIX", "BOLETO", "CREDIT_CARD"})
		body.Customer = &customer{"Maria Silva", "52998224725"}
	}
	var err error
	a.Body, err = json.Marshal(body)
	return a, err
}

// request is what is sent for a pay-in or a payout.
type request struct {
	Amount              int64     `json:"amount"`
	ReferenceID         string    `json:"referenceId"`
	WebhookURL          string    `json:"webhookUrl,omitempty"`
	PaymentMethod       string    `json:"paymentMethod,omitempty"`
	Customer            *customer `json:"customer,omitempty"`
	PIXKey              string    `json:"pixKey,omitempty"`
	PIXKeyType          string    `json:"pixKeyType,omitempty"`
	BeneficiaryName     string    `json:"beneficiaryName,omitempty"`
	BeneficiaryDocument string    `json:"beneficiaryDocument,omitempty"`
}

type customer struct {
	Name     string `json:"name"`
	Document string `json:"document"`
}

// tooMuch is more than the merchant will ever have, in cents.
const tooMuch = 90_000_000_000

// place asks for an order, and again until it is answered for good or ctx ends.
func (c *client) place(ctx context.Context, a *asked) error {
	for ctx.Err() == nil {
		got := c.post(ctx, a)
		if len(got.body) > 0 && got.status == http.StatusCreated {
			a.Acked = slices.Clone(got.body)
			return c.journal.write(asked{Kind: a.Kind, Reference: a.Reference, Acked: a.Acked}, true)
		}
		if code := got.problem().Code; got.status == http.StatusUnprocessableEntity && code == "insufficient_balance" && amountOf(a) == tooMuch {
			return c.journal.write(asked{Kind: a.Kind, Reference: a.Reference, Refused: code}, true)
		}
		if !c.mayBeAnswered(a.Kind, got) && ctx.Err() == nil {
			c.blame(violation{
				kind: "strange answer", reference: a.Reference,
				says: []string{fmt.Sprintf("POST /%s of %s is answered %d, Retry-After %q: %s", a.Kind, a.Body, got.status, got.retryAfter, got.body)},
			})
			return nil
		}
		wait(ctx, c.chance.between(retryMin, retryMax))
	}
	return nil
}

// request sends a request to some gateway. Whatever happens to databases and
// banks, no answer may be one that stands for a bug.
func (c *client) request(ctx context.Context, by *caller, method, path, body string) reply {
	c.figures.add("requests", "", 1)
	if c.chance.percent(hangUpPercent) {
		short, cancel := clock.WithTimeout(ctx, c.chance.between(hangUpMin, hangUpMax))
		defer cancel()
		ctx = short
	}
	got := by.send(ctx, method, pick(c.chance, c.bases)+path, body)
	if got.status == http.StatusInternalServerError {
		c.blame(violation{kind: "internal error", says: []string{method + " " + path + " " + body, string(got.body)}})
	}
	return got
}

// lookPercent is how often a client looks at what it was just told.
const lookPercent = 10

// look reads an acknowledged order at once, at any gateway, and the balance.
func (c *client) look(ctx context.Context, a *asked) {
	if !c.chance.percent(lookPercent) {
		return
	}
	got := c.request(ctx, c.ask, http.MethodGet, "/"+a.Kind+"/"+orderOf(a.Acked).ID, "")
	switch {
	case got.status == http.StatusOK && orderOf(got.body).ReferenceID == a.Reference:
	case got.status != 0 && got.status != http.StatusServiceUnavailable:
		c.blame(violation{kind: "acknowledged but not readable", reference: a.Reference,
			says: []string{fmt.Sprintf("acknowledged %s", a.Acked), fmt.Sprintf("read at once: %d %s", got.status, got.body)}})
	}
	got = c.request(ctx, c.ask, http.MethodGet, "/balance", "")
	var b balance
	if got.status != http.StatusOK || json.Unmarshal(got.body, &b) != nil {
		return
	}
	if min(b.Available, b.Pending, b.Held, b.Disputed, b.Unapplied) < 0 {
		c.blame(violation{kind: "negative balance", says: []string{string(got.body)}})
	}
}

// post sends an order's request to some gateway, now and then several times at
// the same moment, as impatient clients do.
func (c *client) post(ctx context.Context, a *asked) reply {
	if !c.chance.percent(10) {
		return c.request(ctx, c.ask, http.MethodPost, "/"+a.Kind, string(a.Body))
	}
	replies := make([]reply, 2+c.chance.below(4))
	var all sync.WaitGroup
	for i := range replies {
		all.Go(func() { replies[i] = c.request(ctx, c.ask, http.MethodPost, "/"+a.Kind, string(a.Body)) })
	}
	all.Wait()
	best, ids := replies[0], map[string]bool{}
	for _, r := range replies {
		if r.status == http.StatusCreated {
			best = r
			ids[orderOf(r.body).ID] = true
		}
	}
	if len(ids) > 1 {
		c.blame(violation{kind: "made twice", reference: a.Reference, says: []string{fmt.Sprintf("requests side by side were answered with the ids %v", ids)}})
	}
	return best
}

// mayBeAnswered says whether an answer is one that faults explain, and that the
// contract allows: those say when to try again, or that it can be tried again.
func (c *client) mayBeAnswered(kind string, got reply) bool {
	switch got.status {
	case 0:
		return true
	case http.StatusServiceUnavailable:
		seconds, err := strconv.Atoi(got.retryAfter)
		return err == nil && seconds > 0
	case http.StatusBadGateway:
		return kind == payin && got.problem().Code == "processor_refused"
	case http.StatusGatewayTimeout:
		return kind == payin && got.problem().Code == "processor_timeout"
	}
	return false
}

func amountOf(a *asked) int64 {
	var body struct {
		Amount int64 `json:"amount"`
	}
	_ = json.Unmarshal(a.Body, &body) // it was made here
	return body.Amount
}

// followPayin lets the payer pay, or not, too much, in parts, or late.
func (c *client) followPayin(ctx context.Context, a *asked) error {
	id := orderOf(a.Acked).ID
	do := func(verb, body string) {
		c.request(ctx, c.push, http.MethodPost, "/sandbox/payin/"+id+"/"+verb, body)
	}
	switch n := c.chance.below(100); {
	case n < 50:
		do("pay", "")
	case n < 55: // twice, which the order cannot take
		do("pay", "")
		do("pay", "")
	case n < 62: // in parts
		do("pay", `{"amount":1}`)
		do("pay", fmt.Sprintf(`{"amount":%d}`, amountOf(a)))
	case n < 66:
		do("expire", "")
	case n < 70: // late
		do("expire", "")
		do("pay", "")
	case n < 80:
		err := c.cancel(ctx, a, id)
		if c.chance.percent(30) {
			do("pay", "")
		}
		return err
	}
	return nil
}

// followPayout tries to cancel some, and to let others fail or come back.
func (c *client) followPayout(ctx context.Context, a *asked) error {
	id := orderOf(a.Acked).ID
	switch n := c.chance.below(100); {
	case n < 10:
		return c.cancel(ctx, a, id)
	case n < 20:
		c.request(ctx, c.push, http.MethodPost, "/sandbox/payout/"+id+"/"+pick(c.chance, []string{"complete", "fail", "return"}), "")
	}
	return nil
}

func (c *client) cancel(ctx context.Context, a *asked, id string) error {
	got := c.request(ctx, c.ask, http.MethodPost, "/"+a.Kind+"/"+id+"/cancel", "")
	if got.status != http.StatusOK {
		return nil
	}
	c.figures.add("cancellations acknowledged", a.Kind, 1)
	return c.journal.write(asked{Kind: a.Kind, Reference: a.Reference, Canceled: true}, true)
}
