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

// bankProcessor is the name of the bank's processor.
const bankProcessor = "sandbox"

// Headers of a notice of the sandbox's bank.
const (
	headerTimestamp = "X-Porteira-Bank-Timestamp"
	headerSignature = "X-Porteira-Bank-Signature"
)

// bank replaces the sandbox's bank. It keeps everything in memory, so it does not
// compete with the gateway for the disk. Charges are paid by pay; every transfer is
// paid immediately.
type bank struct {
	*server

	clock  env.Clock
	secret string

	mu        sync.Mutex
	paid      map[string]int64    // cents, by external id
	transfers map[string]transfer // by external id
	repeated  int64               // transfers requested again
	changed   int64               // ... with another amount
}

// transfer is an accepted transfer.
type transfer struct {
	amount     int64         // cents
	receivedAt time.Duration // by the monotonic clock
}

func openBank(ctx context.Context, clock env.Clock, secret string) (*bank, error) {
	b := &bank{clock: clock, secret: secret, paid: map[string]int64{}, transfers: map[string]transfer{}}
	var err error
	if b.server, err = listen(ctx, "127.0.0.1:0", b.handle); err != nil {
		return nil, fmt.Errorf("bench: open bank: %w", err)
	}
	return b, nil
}

var (
	emptyList = []byte(`{"data":[],"nextCursor":""}`)
	notFound  = []byte(`{"code":"not_found","message":"Not found."}`)
)

// handle answers a call of the gateway.
func (b *bank) handle(method, path, body, out []byte) []byte {
	var text []byte
	switch {
	case bytes.HasPrefix(path, []byte("/charges/")) && string(method) == "PUT":
		text = createCharge(string(path[len("/charges/"):]), body)
	case bytes.HasPrefix(path, []byte("/charges/")):
		text = b.charge(string(path[len("/charges/"):]))
	case bytes.Equal(path, []byte("/transfers")) && string(method) == "POST":
		text = b.transfer(body)
	case bytes.HasPrefix(path, []byte("/transfers/")):
		text = b.transferView(string(path[len("/transfers/"):]))
	case bytes.HasPrefix(path, []byte("/payments")), bytes.HasPrefix(path, []byte("/changes")):
		text = emptyList
	case bytes.Equal(path, []byte("/notify-urls")):
		text = []byte("{}")
	case bytes.Equal(path, []byte("/control/clock")):
		text = []byte(`{"offset":0}`)
	}
	if text == nil {
		return appendAnswer(out, "404 Not Found", notFound)
	}
	return appendAnswer(out, "200 OK", text)
}

func (b *bank) now() string { return string(wire.TimestampOf(b.clock.Now())) }

// createCharge answers with a BR Code.
func createCharge(externalID string, body []byte) []byte {
	var terms struct {
		Amount    int64     `json:"amount"`
		ExpiresAt time.Time `json:"expiresAt"`
	}
	if err := json.Unmarshal(body, &terms); err != nil {
		return nil
	}
	code, err := brCode(externalID, terms.Amount)
	if err != nil {
		return nil
	}
	return fmt.Appendf(nil, `{"externalId":%q,"method":"PIX","amount":%d,"state":"open","expiresAt":%q,"pix":{"qrcode":%q,"txid":%q,"expiresAt":%q}}`,
		externalID, terms.Amount, wire.TimestampOf(terms.ExpiresAt), code, externalID, wire.TimestampOf(terms.ExpiresAt))
}

// brCode generates a BR Code with a host that does not resolve.
func brCode(externalID string, amount int64) (string, error) {
	return brcode.Dynamic{
		URL: "pix.porteira.invalid/qr/v2/" + externalID, MerchantName: "SEM VALOR - bench", City: "SAO PAULO", Amount: amount,
	}.Encode()
}

// charge is the bank's answer for a paid charge.
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

// transfer accepts a transfer, once per id.
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
			b.changed++
		}
	} else {
		b.transfers[order.ExternalID] = transfer{order.Amount, b.clock.Monotonic()}
	}
	b.mu.Unlock()
	return b.transferView(order.ExternalID)
}

func (b *bank) transferView(externalID string) []byte {
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

// pay marks a charge as paid. amount is in cents.
func (b *bank) pay(externalID string, amount int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.paid[externalID] = amount
}

// appendNotice appends the body and the header lines of the notice of a paid charge.
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

// repeats returns the number of transfers requested again with the same amount or
// not, and the number with another amount.
func (b *bank) repeats() (repeated, altered int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.repeated, b.changed
}
