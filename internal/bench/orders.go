package bench

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"strconv"

	"github.com/porteira/porteira/internal/payment"
)

// referenceLength is the length of a referenceId: 128 random bits, as a shop's
// are in no order.
const referenceLength = 32

// Amounts of orders, in cents.
const (
	amountMin  = 100
	amountSpan = 50_000
)

// What a pay-in's body is made of. It is an order as a shop sends it, with
// customer, address and an item.
const (
	payinOpen  = `{"paymentMethod":"PIX","amount":`
	payinRef   = `,"referenceId":"`
	payinHook  = `","webhookUrl":"`
	payinClose = `","customer":{"name":"Maria da Silva","email":"maria@example.com","document":"52998224725","phone":"11987654321","address":{"street":"Rua das Flores","number":"123","neighborhood":"Centro","city":"Sao Paulo","state":"SP","zipCode":"01001000"}},"items":[{"title":"Camiseta","quantity":1,"unitPrice":12990,"tangible":true}]}`
	// defaultHook is named where nothing is delivered during the run.
	defaultHook = "https://merchant.example/webhooks"
)

// What a payout's body is made of.
const (
	payoutOpen  = `{"amount":`
	payoutKey   = `,"pixKeyType":"EMAIL","beneficiaryName":"Maria da Silva","beneficiaryDocument":"52998224725","pixKey":"p`
	payoutRef   = `@example.com","referenceId":"`
	payoutClose = `"}`
	keyLength   = 12 // of what tells one receiver from another
)

// draft draws a new order: reference, amount and merchant.
func (w *worker) draft() {
	hex.Encode(w.reference[:], w.draw(referenceLength/2))
	w.amount = amountMin + int64(w.pick(amountSpan))
	w.merchant = w.pick(len(w.run.target.merchants))
}

// post writes a request with w.body.
func (w *worker) post(path string) {
	w.begin("POST", path)
	w.request = append(w.request, "Content-Type: application/json\r\nContent-Length: "...)
	w.request = strconv.AppendInt(w.request, int64(len(w.body)), 10)
	w.request = append(w.request, "\r\n\r\n"...)
	w.request = append(w.request, w.body...)
}

// get writes a request without a body.
func (w *worker) get(path string) {
	w.begin("GET", path)
	w.request = append(w.request, "\r\n"...)
}

func (w *worker) begin(method, path string) {
	w.request = append(w.request[:0], method...)
	w.request = append(w.request, ' ')
	w.request = append(w.request, path...)
	w.request = append(w.request, " HTTP/1.1\r\n"...)
	w.request = append(w.request, w.run.target.heads[w.merchant]...)
}

// payin writes the body of a new pay-in, with its news for hook.
func (w *worker) payin(hook string) {
	w.draft()
	w.body = append(w.body[:0], payinOpen...)
	w.body = strconv.AppendInt(w.body, w.amount, 10)
	w.body = append(w.body, payinRef...)
	w.body = append(w.body, w.reference[:]...)
	w.body = append(w.body, payinHook...)
	w.body = append(w.body, hook...)
	w.body = append(w.body, payinClose...)
}

// payout writes the body of a new payout.
func (w *worker) payout() {
	w.draft()
	w.body = append(w.body[:0], payoutOpen...)
	w.body = strconv.AppendInt(w.body, w.amount, 10)
	w.body = append(w.body, payoutKey...)
	w.body = append(w.body, w.reference[:keyLength]...)
	w.body = append(w.body, payoutRef...)
	w.body = append(w.body, w.reference[:]...)
	w.body = append(w.body, payoutClose...)
}

var (
	errNoID    = errors.New("the answer has no id at its beginning")
	errForeign = errors.New("the answer is about another order")
	errNoList  = errors.New("the answer is no list")
)

// Lengths of what an answer begins with.
const (
	idLength       = 36
	externalLength = payment.ExternalIDLength
)

var (
	idOpen       = []byte(`{"id":"`)
	externalOpen = []byte(`","externalId":"`)
)

// made notes an acknowledged order. Its answer must be about it.
func (w *worker) made(body []byte, payout, whole bool) error {
	rest, ok := bytes.CutPrefix(body, idOpen)
	if !ok || len(rest) < idLength {
		return errNoID
	}
	id, err := payment.ParseID(string(rest[:idLength]))
	if err != nil {
		return errNoID
	}
	if !bytes.Contains(body, w.reference[:]) {
		return errForeign
	}
	o := order{id: id, amount: w.amount, merchant: w.merchant, payout: payout, due: w.due}
	if whole {
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

// creating is the plan of making orders: pay-ins, or payouts.
type creating struct {
	plain

	run  *run
	task task
	path string
	hook string
	sent *series // from a payout's request to its transfer at the bank; nil without
}

// newCreating makes it; whole says that what the answers tell is kept.
func (r *run) newCreating(path, hook string, whole bool) *creating {
	c := &creating{run: r, path: path, hook: hook}
	payout := path == "/payout"
	c.task = task{series: newSeries("POST " + path), want: 201, judge: func(w *worker, body []byte) error {
		return w.made(body, payout, whole)
	}}
	return c
}

func (c *creating) next(_ context.Context, w *worker) *task {
	if c.path == "/payout" && !c.run.Bare {
		w.payout()
	} else {
		w.payin(c.hook)
	}
	w.post(c.path)
	return &c.task
}

func (c *creating) list() []*series {
	if c.sent != nil {
		return []*series{c.task.series, c.sent}
	}
	return []*series{c.task.series}
}

// settle counts the transfers that the bank was asked for. It waits for none:
// payouts leave at the gateway's own pace, behind the requests.
func (c *creating) settle(context.Context) error {
	if c.sent == nil {
		return nil
	}
	b := c.run.target.own.bank
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range c.run.acked {
		o := &c.run.acked[i]
		if t, ok := b.transfers[o.externalID]; ok {
			c.sent.well(&c.run.pace.window, o.due, t.at, t.at-o.due)
		}
	}
	return nil
}

// plain is a plan that needs nothing before and leaves nothing open behind.
type plain struct{}

func (plain) prepare(context.Context) error { return nil }
func (plain) settle(context.Context) error  { return nil }
func (plain) missing() []string             { return nil }
func (plain) close()                        {}
