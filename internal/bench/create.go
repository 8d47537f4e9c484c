package bench

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"strconv"

	"github.com/porteira/porteira/internal/payment"
)

// referenceLength is the length of a referenceId: 128 random bits, because real
// references are not sequential.
const referenceLength = 32

// Amounts of orders, in cents.
const (
	amountMin  = 100
	amountSpan = 50_000
)

// Parts of a pay-in's body: a realistic order with customer, address and an item.
const (
	payinOpen    = `{"paymentMethod":"PIX","amount":`
	payinRef     = `,"referenceId":"`
	payinWebhook = `","webhookUrl":"`
	payinClose   = `","customer":{"name":"Maria da Silva","email":"maria@example.com","document":"52998224725","phone":"11987654321","address":{"street":"Rua das Flores","number":"123","neighborhood":"Centro","city":"Sao Paulo","state":"SP","zipCode":"01001000"}},"items":[{"title":"Camiseta","quantity":1,"unitPrice":12990,"tangible":true}]}`
	// unusedWebhookURL is used if nothing is delivered during the run.
	unusedWebhookURL = "https://merchant.example/webhooks"
)

// Parts of a payout's body.
const (
	payoutOpen  = `{"amount":`
	payoutKey   = `,"pixKeyType":"EMAIL","beneficiaryName":"Maria da Silva","beneficiaryDocument":"52998224725","pixKey":"p`
	payoutRef   = `@example.com","referenceId":"`
	payoutClose = `"}`
	keyLength   = 12 // of the variable part of the key
)

// newOrder draws the reference, amount and merchant of a new order.
func (w *worker) newOrder() {
	hex.Encode(w.reference[:], w.draw(referenceLength/2))
	w.amount = amountMin + int64(w.pick(amountSpan))
	w.merchant = w.pick(len(w.run.target.merchants))
}

// post writes a request with w.body.
func (w *worker) post(path string) {
	w.startLine("POST", path)
	w.request = append(w.request, "Content-Type: application/json\r\nContent-Length: "...)
	w.request = strconv.AppendInt(w.request, int64(len(w.body)), 10)
	w.request = append(w.request, "\r\n\r\n"...)
	w.request = append(w.request, w.body...)
}

// get writes a request without a body.
func (w *worker) get(path string) {
	w.startLine("GET", path)
	w.request = append(w.request, "\r\n"...)
}

func (w *worker) startLine(method, path string) {
	w.request = append(w.request[:0], method...)
	w.request = append(w.request, ' ')
	w.request = append(w.request, path...)
	w.request = append(w.request, " HTTP/1.1\r\n"...)
	w.request = append(w.request, w.run.target.headers[w.merchant]...)
}

// payin writes the body of a new pay-in whose events go to hook.
func (w *worker) payin(hook string) {
	w.newOrder()
	w.body = append(w.body[:0], payinOpen...)
	w.body = strconv.AppendInt(w.body, w.amount, 10)
	w.body = append(w.body, payinRef...)
	w.body = append(w.body, w.reference[:]...)
	w.body = append(w.body, payinWebhook...)
	w.body = append(w.body, hook...)
	w.body = append(w.body, payinClose...)
}

// payout writes the body of a new payout.
func (w *worker) payout() {
	w.newOrder()
	w.body = append(w.body[:0], payoutOpen...)
	w.body = strconv.AppendInt(w.body, w.amount, 10)
	w.body = append(w.body, payoutKey...)
	w.body = append(w.body, w.reference[:keyLength]...)
	w.body = append(w.body, payoutRef...)
	w.body = append(w.body, w.reference[:]...)
	w.body = append(w.body, payoutClose...)
}

var (
	errNoID       = errors.New("the answer has no id at its beginning")
	errOtherOrder = errors.New("the answer has another order")
	errNoList     = errors.New("the answer is not a list")
)

// Lengths of the parts at the beginning of an answer.
const (
	idLength       = 36
	externalLength = payment.ExternalIDLength
)

var (
	idOpen       = []byte(`{"id":"`)
	externalOpen = []byte(`","externalId":"`)
)

// recordCreated records an acknowledged order, and checks that the answer is about it.
// If full is set, it stores the fields that later requests need.
func (w *worker) recordCreated(body []byte, payout, full bool) error {
	rest, ok := bytes.CutPrefix(body, idOpen)
	if !ok || len(rest) < idLength {
		return errNoID
	}
	id, err := payment.ParseID(string(rest[:idLength]))
	if err != nil {
		return errNoID
	}
	if !bytes.Contains(body, w.reference[:]) {
		return errOtherOrder
	}
	o := order{id: id, amount: w.amount, merchant: w.merchant, payout: payout, due: w.due}
	if full {
		o.reference = string(w.reference[:])
		rest, ok = bytes.CutPrefix(rest[idLength:], externalOpen)
		if !ok || len(rest) < externalLength {
			return errNoID
		}
		o.externalID = string(rest[:externalLength])
	}
	w.acked = append(w.acked, o)
	return nil
}

// createWorkload creates pay-ins or payouts.
type createWorkload struct {
	noSetup

	run        *run
	request    requestKind
	path       string
	webhookURL string
	sent       *series    // from a payout's request to its transfer at the bank; may be nil
	endpoints  *endpoints // nil if the merchants have none
}

// newCreateWorkload returns the workload of a path; full is that of recordCreated.
func (r *run) newCreateWorkload(path, hook string, full bool) *createWorkload {
	c := &createWorkload{run: r, path: path, webhookURL: hook}
	payout := path == "/payout"
	c.request = requestKind{series: newSeries("POST " + path), wantStatus: 201, check: func(w *worker, body []byte) error {
		return w.recordCreated(body, payout, full)
	}}
	return c
}

func (c *createWorkload) next(_ context.Context, w *worker) *requestKind {
	if c.endpoints != nil {
		c.endpoints.window.Store(&c.run.schedule.window)
	}
	if c.path == "/payout" {
		w.payout()
	} else {
		w.payin(c.webhookURL)
	}
	w.post(c.path)
	return &c.request
}

func (c *createWorkload) series() []*series {
	list := []*series{c.request.series}
	if c.sent != nil {
		list = append(list, c.sent)
	}
	if c.endpoints != nil {
		list = append(list, c.endpoints.delivered)
	}
	return list
}

func (c *createWorkload) prepare(ctx context.Context) error {
	if c.endpoints == nil {
		return nil
	}
	return c.endpoints.prepare(ctx)
}

func (c *createWorkload) close() {
	if c.endpoints != nil {
		c.endpoints.receiver.close()
	}
}

// drain counts the transfers that the bank got so far. It does not wait for the
// others: the gateway may throttle payouts.
func (c *createWorkload) drain(context.Context) error {
	if c.sent == nil {
		return nil
	}
	b := c.run.target.gateway.bank
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range c.run.acked {
		o := &c.run.acked[i]
		if t, ok := b.transfers[o.externalID]; ok {
			c.sent.success(&c.run.schedule.window, o.due, t.receivedAt, t.receivedAt-o.due)
		}
	}
	return nil
}

// noSetup is a workload without cleanup.
type noSetup struct{}

func (noSetup) drain(context.Context) error { return nil }
func (noSetup) missing() []string           { return nil }
func (noSetup) close()                      {}
