package bench

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/porteira/porteira/brcode"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/wire"
)

// processorName is the processor that the bank plays: the sandbox's.
const processorName = "sandbox"

// Headers of a notice, as the sandbox's bank signs it.
const (
	headerTimestamp = "X-Porteira-Bank-Timestamp"
	headerSignature = "X-Porteira-Bank-Signature"
)

// bank plays the sandbox's bank on paper: it knows what was paid because the
// run says so, takes every transfer as paid at once, and writes nothing to a
// disk that the gateway may need.
type bank struct {
	*server

	clock  env.Clock
	secret string

	mu        sync.Mutex
	paid      map[string]int64    // cents, by external id
	transfers map[string]transfer // by external id
	repeated  int64               // transfers that were asked for again
	altered   int64               // ... with another amount
}

// transfer is a Pix that the bank took.
type transfer struct {
	amount int64         // cents
	at     time.Duration // by the monotonic clock
}

func openBank(ctx context.Context, clock env.Clock, secret string) (*bank, error) {
	b := &bank{clock: clock, secret: secret, paid: map[string]int64{}, transfers: map[string]transfer{}}
	var err error
	if b.server, err = listen(ctx, "127.0.0.1:0", b.answer); err != nil {
		return nil, fmt.Errorf("bench: open bank: %w", err)
	}
	return b, nil
}

var (
	nothingListed = []byte(`{"data":[],"nextCursor":""}`)
	unknownOrder  = []byte(`{"code":"not_found","message":"The bank does not know it."}`)
)

// answer answers the gateway's calls.
func (b *bank) answer(method, path, body, out []byte) []byte {
	var text []byte
	switch {
	case bytes.HasPrefix(path, []byte("/charges/")) && string(method) == "PUT":
		text = newCharge(string(path[len("/charges/"):]), body)
	case bytes.HasPrefix(path, []byte("/charges/")):
		text = b.charge(string(path[len("/charges/"):]))
	case bytes.Equal(path, []byte("/transfers")) && string(method) == "POST":
		text = b.transfer(body)
	case bytes.HasPrefix(path, []byte("/transfers/")):
		text = b.transferred(string(path[len("/transfers/"):]))
	case bytes.HasPrefix(path, []byte("/payments")), bytes.HasPrefix(path, []byte("/changes")):
		text = nothingListed
	case bytes.Equal(path, []byte("/notify-urls")):
		text = []byte("{}")
	case bytes.Equal(path, []byte("/control/clock")):
		text = []byte(`{"offset":0}`)
	}
	if text == nil {
		return appendAnswer(out, "404 Not Found", unknownOrder)
	}
	return appendAnswer(out, "200 OK", text)
}

func (b *bank) now() string { return string(wire.TimestampOf(b.clock.Now())) }

// newCharge takes a pay-in, and answers with the code that its payer needs.
func newCharge(externalID string, body []byte) []byte {
	var terms struct {
		Amount    int64     `json:"amount"`
		ExpiresAt time.Time `json:"expiresAt"`
	}
	if err := json.Unmarshal(body, &terms); err != nil {
		return nil
	}
	code, err := payCode(externalID, terms.Amount)
	if err != nil {
		return nil
	}
	return fmt.Appendf(nil, `{"externalId":%q,"method":"PIX","amount":%d,"state":"open","expiresAt":%q,"pix":{"qrcode":%q,"txid":%q,"expiresAt":%q}}`,
		externalID, terms.Amount, wire.TimestampOf(terms.ExpiresAt), code, externalID, wire.TimestampOf(terms.ExpiresAt))
}

// payCode makes the code that a payer needs, of a host that no name resolves to.
func payCode(externalID string, amount int64) (string, error) {
	return brcode.Dynamic{
		URL: "pix.porteira.invalid/qr/v2/" + externalID, MerchantName: "SEM VALOR - bench", City: "SAO PAULO", Amount: amount,
	}.Encode()
}

// charge is a pay-in as the bank shows it, where it was paid.
func (b *bank) charge(externalID string) []byte {
	b.mu.Lock()
	amount, ok := b.paid[externalID]
	b.mu.Unlock()
	if !ok {
		return nil
	}
	now := b.now()
	return fmt.Appendf(nil, `{"externalId":%q,"method":"PIX","amount":%d,"state":"open","expiresAt":%q,"payments":[{"id":"E%s","externalId":%q,"endToEndId":"E%s","amount":%d,"paidAt":%q}]}`,
		externalID, amount, now, externalID, externalID, externalID, amount, now)
}

// transfer takes an order to send money, once per id.
func (b *bank) transfer(body []byte) []byte {
	var order struct {
		ExternalID string `json:"externalId"`
		Amount     int64  `json:"amount"`
	}
	if err := json.Unmarshal(body, &order); err != nil {
		return nil
	}
	b.mu.Lock()
	if taken, again := b.transfers[order.ExternalID]; again {
		b.repeated++
		if taken.amount != order.Amount {
			b.altered++
		}
	} else {
		b.transfers[order.ExternalID] = transfer{order.Amount, b.clock.Monotonic()}
	}
	b.mu.Unlock()
	return b.transferred(order.ExternalID)
}

func (b *bank) transferred(externalID string) []byte {
	b.mu.Lock()
	taken, ok := b.transfers[externalID]
	b.mu.Unlock()
	if !ok {
		return nil
	}
	now := b.now()
	return fmt.Appendf(nil, `{"externalId":%q,"amount":%d,"state":"paid","endToEndId":"E%s","createdAt":%q,"changedAt":%q}`,
		externalID, taken.amount, externalID, now, now)
}

// pay lets a pay-in be paid: from now on the bank says so when it is asked.
func (b *bank) pay(externalID string, amount int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.paid[externalID] = amount
}

// appendNotice appends the body and the headers, each with its line break, of
// a notice that a pay-in was paid.
func (b *bank) appendNotice(body, headers []byte, externalID string) (newBody, newHeaders []byte) {
	now := b.clock.Now()
	body = fmt.Appendf(body, `{"id":"n-%s","subject":"charge","externalId":%q,"createdAt":%q}`, externalID, externalID, wire.TimestampOf(now))
	timestamp := strconv.FormatInt(now.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(b.secret))
	mac.Write([]byte(timestamp))
	mac.Write([]byte{'.'})
	mac.Write(body)
	headers = append(headers, headerTimestamp+": "+timestamp+"\r\n"+headerSignature+": "...)
	headers = hex.AppendEncode(headers, mac.Sum(nil))
	return body, append(headers, "\r\n"...)
}

// doubtful tells what the bank was asked for that it should not have been.
func (b *bank) doubtful() (repeated, altered int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.repeated, b.altered
}
