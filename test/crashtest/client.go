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

// workload is the behaviour of clients.
type workload struct {
	clients int
	// plain clients only place Pix orders: no payments, cancellations, webhooks, aborted
	// or concurrent requests.
	plain bool
}

// clientCount is the default number of clients.
const clientCount = 8

// Waits of clients. They are shorter than Retry-After, to increase the load.
const (
	pauseMin = 5 * time.Millisecond
	pauseMax = 40 * time.Millisecond
	retryMin = 10 * time.Millisecond
	retryMax = 100 * time.Millisecond
	// answerMax is longer than any answer of the gateway may take.
	answerMax = 30 * time.Second
	// hangUpPercent of requests are aborted before their answer, and repeated.
	hangUpPercent = 3
	hangUpMin     = time.Millisecond
	hangUpMax     = 30 * time.Millisecond
	// sandboxMax bounds requests to the sandbox's routes, which wait for an effect that
	// faults may delay.
	sandboxMax = 2 * time.Second
)

// referencePrefix distinguishes the clients' orders from those of a load generator.
const referencePrefix = "order-"

// client places orders one after another, and writes a journal.
type client struct {
	*clients

	number  int
	random  random
	journal *journal
	api     *httpClient
	sandbox *httpClient
}

func (c *clients) newClient(number int, stream uint64) (*client, error) {
	j, err := openJournal(journalPath(c.run.folder, number))
	return &client{
		clients: c, number: number, random: newRandom(c.run.seed, stream), journal: j,
		api: c.run.api, sandbox: newHTTPClient(sandboxMax, nil),
	}, err
}

// work places orders until ctx ends.
func (c *client) work(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, c.journal.close()) }()
	for i := 0; wait(ctx, c.random.between(pauseMin, pauseMax)); i++ {
		if err := c.turn(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// turn is one order, from the request to the client's last action on it.
func (c *client) turn(ctx context.Context, i int) error {
	a, err := c.order(i)
	if err := errors.Join(err, c.journal.write(a, false)); err != nil {
		return err
	}
	c.begin(&a)
	if err := c.place(ctx, &a); err != nil || len(a.Acked) == 0 || c.plain {
		return err
	}
	c.look(ctx, &a)
	if a.Kind == payin {
		return c.followPayin(ctx, &a)
	}
	return c.followPayout(ctx, &a)
}

// request is the body of a pay-in or a payout.
type request struct {
	Amount              int64     `json:"amount"` // cents
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

// newRequest is a request for an order of a kind.
func newRequest(kind, reference string, amount int64) request {
	r := request{Amount: amount, ReferenceID: reference}
	if kind == payout {
		r.PIXKey, r.PIXKeyType = "a@b.example", "EMAIL"
		r.BeneficiaryName, r.BeneficiaryDocument = "Maria Silva", "52998224725"
	} else {
		r.PaymentMethod, r.Customer = "PIX", &customer{"Maria Silva", "52998224725"}
	}
	return r
}

// order draws the next order.
func (c *client) order(i int) (placement, error) {
	a := placement{Kind: payin, Reference: fmt.Sprintf("%s%d-%d", referencePrefix, c.number, i)}
	if c.random.percent(50) {
		a.Kind = payout
	}
	body := newRequest(a.Kind, a.Reference, int64(1+c.random.below(500)))
	if !c.plain {
		if c.random.percent(80) {
			body.WebhookURL = pick(c.random, c.run.receiverURLs) + "/hook/" + a.Reference
		}
		if a.Kind == payin {
			body.PaymentMethod = pick(c.random, []string{"PIX", "PIX", "PIX", "BOLETO", "CREDIT_CARD"})
		} else if c.random.percent(2) {
			body.Amount = tooMuch
		}
	}
	var err error
	a.Body, err = json.Marshal(body)
	return a, err
}

// place requests an order repeatedly until there is a final answer or ctx ends.
func (c *client) place(ctx context.Context, a *placement) error {
	for ctx.Err() == nil {
		got := c.post(ctx, a)
		c.note(got)
		if len(got.body) > 0 && got.status == http.StatusCreated {
			a.Acked = slices.Clone(got.body)
			c.acknowledged(a, got.replayed)
			return c.journal.write(placement{Kind: a.Kind, Reference: a.Reference, Acked: a.Acked}, true)
		}
		if code := got.problem().Code; got.status == http.StatusUnprocessableEntity && code == "insufficient_balance" && a.amount() == tooMuch {
			return c.journal.write(placement{Kind: a.Kind, Reference: a.Reference, Refused: code}, true)
		}
		if objection := objection(a.Kind, got, c.run.bankFaults); objection != "" && ctx.Err() == nil {
			c.run.report(violation{kind: "wrong answer", reference: a.Reference, details: []string{fmt.Sprintf("POST /%s of %s %s", a.Kind, a.Body, objection)}})
			return nil
		}
		wait(ctx, c.random.between(retryMin, retryMax))
	}
	return nil
}

// objection returns why an answer other than 201 is wrong, or "". Faults explain answers
// after which the contract allows a repeat. A refusal by the processor requires a bank with
// faults.
func objection(kind string, got reply, bankFaults bool) string {
	code := got.problem().Code
	seconds, err := strconv.Atoi(got.retryAfter)
	switch {
	case got.status == 0:
		return ""
	case got.status == http.StatusGatewayTimeout && kind == payin && code == "processor_timeout":
		return ""
	case got.status == http.StatusBadGateway && kind == payin && code == "processor_refused" && bankFaults:
		return ""
	case got.status != http.StatusServiceUnavailable:
		return fmt.Sprintf("is answered %d: %s", got.status, got.body)
	case got.contentType != "application/problem+json" || code == "":
		return fmt.Sprintf("is answered 503 as %s: %s", got.contentType, got.body)
	case err != nil || seconds < 1:
		return fmt.Sprintf("is answered 503 with Retry-After %q", got.retryAfter)
	}
	return ""
}

// send sends a request to some gateway, and reports an internal error as a violation.
func (c *client) send(ctx context.Context, by *httpClient, method, path, body string) reply {
	c.run.totals.add("requests", "", 1)
	if !c.plain && c.random.percent(hangUpPercent) {
		short, cancel := clock.WithTimeout(ctx, c.random.between(hangUpMin, hangUpMax))
		defer cancel()
		ctx = short
	}
	got := by.send(ctx, method, pick(c.random, c.run.gatewayURLs)+path, body)
	if got.status == http.StatusInternalServerError {
		c.run.report(violation{kind: "internal error", details: []string{method + " " + path + " " + body, string(got.body)}})
	}
	return got
}

// post sends an order's request to some gateway, sometimes several times at once.
func (c *client) post(ctx context.Context, a *placement) reply {
	if c.plain || !c.random.percent(10) {
		return c.send(ctx, c.api, http.MethodPost, "/"+a.Kind, string(a.Body))
	}
	replies := make([]reply, 2+c.random.below(4))
	var all sync.WaitGroup
	for i := range replies {
		all.Go(func() { replies[i] = c.send(ctx, c.api, http.MethodPost, "/"+a.Kind, string(a.Body)) })
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
		c.run.report(violation{kind: "created twice", reference: a.Reference, details: []string{fmt.Sprintf("simultaneous requests were answered with the ids %v", ids)}})
	}
	return best
}

// lookPercent is how often a client reads an order right after its acknowledgement.
const lookPercent = 10

// look reads an acknowledged order at once, at any gateway, and the balance.
func (c *client) look(ctx context.Context, a *placement) {
	if !c.random.percent(lookPercent) {
		return
	}
	got := c.send(ctx, c.api, http.MethodGet, "/"+a.Kind+"/"+orderOf(a.Acked).ID, "")
	switch {
	case got.status == http.StatusOK && orderOf(got.body).ReferenceID == a.Reference:
	case got.status != 0 && got.status != http.StatusServiceUnavailable:
		c.run.report(violation{kind: "acknowledged but not readable", reference: a.Reference,
			details: []string{fmt.Sprintf("acknowledged %s", a.Acked), fmt.Sprintf("read at once: %d %s", got.status, got.body)}})
	}
	got = c.send(ctx, c.api, http.MethodGet, "/balance", "")
	var b balance
	if got.status != http.StatusOK || json.Unmarshal(got.body, &b) != nil {
		return
	}
	if min(b.Available, b.Pending, b.Held, b.Disputed, b.Unapplied) < 0 {
		c.run.report(violation{kind: "negative balance", details: []string{string(got.body)}})
	}
}

// Actions of clients and payers on an order.
const (
	actionPay      = "pay"
	actionExpire   = "expire"
	actionCancel   = "cancel"
	actionComplete = "complete"
	actionFail     = "fail"
	actionReturn   = "return"
)

// followPayin makes the payer pay, or not, too much, in parts, or late.
func (c *client) followPayin(ctx context.Context, a *placement) error {
	do := func(action, body string) {
		c.send(ctx, c.sandbox, http.MethodPost, "/sandbox/payin/"+orderOf(a.Acked).ID+"/"+action, body)
	}
	switch n := c.random.below(100); {
	case n < 50:
		do(actionPay, "")
	case n < 55: // twice, which is too much
		do(actionPay, "")
		do(actionPay, "")
	case n < 62: // in parts
		do(actionPay, `{"amount":1}`)
		do(actionPay, fmt.Sprintf(`{"amount":%d}`, a.amount()))
	case n < 66:
		do(actionExpire, "")
	case n < 70: // late
		do(actionExpire, "")
		do(actionPay, "")
	case n < 80:
		err := c.cancel(ctx, a)
		if c.random.percent(30) {
			do(actionPay, "")
		}
		return err
	}
	return nil
}

// followPayout cancels some payouts, and makes others fail or return.
func (c *client) followPayout(ctx context.Context, a *placement) error {
	switch n := c.random.below(100); {
	case n < 10:
		return c.cancel(ctx, a)
	case n < 20:
		action := pick(c.random, []string{actionComplete, actionFail, actionReturn})
		if err := c.journal.write(placement{Kind: a.Kind, Reference: a.Reference, Action: action}, false); err != nil {
			return err
		}
		c.send(ctx, c.sandbox, http.MethodPost, "/sandbox/payout/"+orderOf(a.Acked).ID+"/"+action, "")
	}
	return nil
}

func (c *client) cancel(ctx context.Context, a *placement) error {
	if err := c.journal.write(placement{Kind: a.Kind, Reference: a.Reference, Action: actionCancel}, false); err != nil {
		return err
	}
	got := c.send(ctx, c.api, http.MethodPost, "/"+a.Kind+"/"+orderOf(a.Acked).ID+"/cancel", "")
	if got.status != http.StatusOK {
		return nil
	}
	c.run.totals.add("cancellations acknowledged", a.Kind, 1)
	return c.journal.write(placement{Kind: a.Kind, Reference: a.Reference, Canceled: true}, true)
}
