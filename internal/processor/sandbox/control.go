package sandbox

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// Control calls the bank's routes that force an outcome. If the bank answers
// with an error, it is a [bankapi.Code].
type Control struct{ client client }

// NewControl returns the control of a bank. The error says which option is
// missing or invalid.
func NewControl(o Options) (*Control, error) {
	o.Rate = 0 // it is no part of the account's traffic
	c, err := newClient(o)
	if err != nil {
		return nil, err
	}
	return &Control{c}, nil
}

func (c *Control) call(ctx context.Context, method, path string, in any) error {
	return c.client.do(ctx, method, path, in, nil).cause()
}

// Charge forces an outcome of a charge: pay, expire, fail, dispute, win or
// lose. The bank registers from r a charge that was generated offline.
func (c *Control) Charge(ctx context.Context, r processor.ChargeRequest, action string, how bankapi.ForceCharge) error {
	terms := termsOf(r)
	how.Terms = &terms
	return c.call(ctx, http.MethodPost, controlPath("charges", r.ExternalID, action), how)
}

// Transfer forces an outcome of a transfer: complete, fail or return. returned
// is for return only, in cents; 0 returns all.
func (c *Control) Transfer(ctx context.Context, externalID, action string, returned money.Cents) error {
	return c.call(ctx, http.MethodPost, controlPath("transfers", externalID, action), bankapi.ForceTransfer{Amount: returned})
}

// Refund forces an outcome of a refund: complete, or fail, also after it was completed.
func (c *Control) Refund(ctx context.Context, externalID, action string) error {
	return c.call(ctx, http.MethodPost, controlPath("refunds", externalID, action), nil)
}

// RefundPayment makes a refund at the bank itself, as at its panel; amount is in cents.
func (c *Control) RefundPayment(ctx context.Context, paymentID string, amount money.Cents) error {
	return c.call(ctx, http.MethodPost, "/control/refunds", bankapi.RefundRequest{PaymentID: paymentID, Amount: amount})
}

func controlPath(noun, externalID, action string) string {
	return "/control/" + noun + "/" + url.PathEscape(externalID) + "/" + url.PathEscape(action)
}

// Arm makes the next calls misbehave.
func (c *Control) Arm(ctx context.Context, fault bankapi.Fault) error {
	return c.call(ctx, http.MethodPost, "/control/faults", fault)
}

// Disarm clears all armed faults.
func (c *Control) Disarm(ctx context.Context) error {
	return c.call(ctx, http.MethodDelete, "/control/faults", nil)
}

// Listen registers a gateway's address for notices, for ttl, cut to seconds.
func (c *Control) Listen(ctx context.Context, address string, ttl time.Duration) error {
	return c.call(ctx, http.MethodPut, "/notify-urls", bankapi.Listener{URL: address, TTLSeconds: int64(ttl / time.Second)})
}

// SetOffset moves the bank's clock ahead of its machine's by d, cut to seconds. A
// bank in the gateway's process shares its clock and needs no offset.
func (c *Control) SetOffset(ctx context.Context, d time.Duration) error {
	return c.call(ctx, http.MethodPost, "/control/clock", bankapi.ClockOffset{Offset: int64(d / time.Second)})
}

// Transfers lists the transfers that the bank accepted, oldest first, after
// cursor, and the next cursor; an empty page is the end. With an external id it
// lists only those under that id.
func (c *Control) Transfers(ctx context.Context, externalID, cursor string) (page []bankapi.TransferEntry, next string, err error) {
	query := url.Values{"externalId": {externalID}, "cursor": {cursor}}
	result := c.client.do(ctx, http.MethodGet, "/transfers?"+query.Encode(), nil, nil)
	body := parse[bankapi.TransferPage](&result)
	return body.Data, body.NextCursor, result.cause()
}
