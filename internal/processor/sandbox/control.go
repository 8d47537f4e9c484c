package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// Control calls the bank's routes that force an outcome, in this process or
// another.
type Control struct{ client client }

// NewControl returns the control of the bank that opts name.
func NewControl(opts Options) (*Control, error) {
	c, err := newClient(opts)
	if err != nil {
		return nil, err
	}
	return &Control{c}, nil
}

// What a control route answers besides success.
var (
	// ErrState says that this cannot happen in the present state.
	ErrState = errors.New("sandbox: not possible in the present state")
	// ErrNotFound says that the bank does not know the id, or the verb.
	ErrNotFound = errors.New("sandbox: not found")
	// ErrInvalid says that a value is out of range or unknown.
	ErrInvalid = errors.New("sandbox: invalid value")
)

// call asks a control route and reads its answer.
func (c *Control) call(ctx context.Context, method, path string, in any) (response, error) {
	result := c.client.do(ctx, method, path, in, nil)
	cause := result.cause()
	switch {
	case cause == nil:
		return result, nil
	case result.err != nil:
		return result, cause
	case result.status == http.StatusConflict:
		return result, fmt.Errorf("%w: %w", ErrState, cause)
	case result.status == http.StatusNotFound:
		return result, fmt.Errorf("%w: %w", ErrNotFound, cause)
	case result.status == http.StatusBadRequest:
		return result, fmt.Errorf("%w: %w", ErrInvalid, cause)
	default:
		return result, cause
	}
}

// Payment says how a charge is to be paid. The zero value pays it in full by
// its own method.
type Payment struct {
	Amount money.Cents    // cents; 0 stands for the charge's amount
	Method payment.Method // a bill may be paid by PIX; "" stands for the charge's own
}

// Charge does to a charge what verb says: pay, expire, fail, dispute, win or
// lose; how is for pay only. A charge that the bank has not seen, as it was
// minted, is registered from r. It returns [ErrState], [ErrNotFound] or
// [ErrInvalid] where the bank answers so.
func (c *Control) Charge(ctx context.Context, r processor.ChargeRequest, verb string, how Payment) error {
	terms := termsOf(r)
	order := chargeOrder{Terms: &terms, Amount: how.Amount, Method: how.Method}
	_, err := c.call(ctx, http.MethodPost, controlPath("charges", r.ExternalID, verb), order)
	return err
}

// DeclineCard lets one attempt to pay by card fail; the charge stays open.
// Errors are those of Charge.
func (c *Control) DeclineCard(ctx context.Context, r processor.ChargeRequest) error {
	terms := termsOf(r)
	order := chargeOrder{Terms: &terms, Attempt: true}
	_, err := c.call(ctx, http.MethodPost, controlPath("charges", r.ExternalID, "fail"), order)
	return err
}

// Transfer ends a transfer as verb says: complete, fail or return; returned is
// for return only, in cents, 0 for all. It returns [ErrState], [ErrNotFound]
// or [ErrInvalid] where the bank answers so.
func (c *Control) Transfer(ctx context.Context, externalID, verb string, returned money.Cents) error {
	_, err := c.call(ctx, http.MethodPost, controlPath("transfers", externalID, verb), transferForce{returned})
	return err
}

func controlPath(noun, externalID, verb string) string {
	return "/control/" + noun + "/" + url.PathEscape(externalID) + "/" + url.PathEscape(verb)
}

// Arm makes the next calls misbehave; [ErrInvalid] where there is no such fault.
func (c *Control) Arm(ctx context.Context, fault Fault) error {
	_, err := c.call(ctx, http.MethodPost, "/control/faults", fault)
	return err
}

// Disarm clears all armed faults.
func (c *Control) Disarm(ctx context.Context) error {
	_, err := c.call(ctx, http.MethodDelete, "/control/faults", nil)
	return err
}

// Listen registers a gateway's address for notices; see [Bank.Listen].
func (c *Control) Listen(ctx context.Context, address string, ttl time.Duration) error {
	_, err := c.call(ctx, http.MethodPut, "/notify-urls", listenRequest{address, int64(ttl / time.Second)})
	return err
}

// SetOffset moves the bank's clock; see [Bank.SetOffset]. A bank in the
// gateway's process shares its clock, and needs none of its own.
func (c *Control) SetOffset(ctx context.Context, d time.Duration) error {
	_, err := c.call(ctx, http.MethodPost, "/control/clock", clockOffset{int64(d / time.Second)})
	return err
}

// Transfer is a line of the bank's books.
type Transfer struct {
	ExternalID string      `json:"externalId"`
	Amount     money.Cents `json:"amount"`
	PIXKey     string      `json:"pixKey"`
	EndToEndID string      `json:"endToEndId"`
	Status     string      `json:"status"` // processing, paid, failed or returned
	CreatedAt  time.Time   `json:"createdAt"`
}

// Transfers lists what the bank really took, oldest first, after cursor, and
// the cursor to go on from; a page that is empty is the end. With an external
// id it lists those under that id only.
func (c *Control) Transfers(ctx context.Context, externalID, cursor string) (page []Transfer, next string, err error) {
	query := url.Values{"externalId": {externalID}, "cursor": {cursor}}
	result, err := c.call(ctx, http.MethodGet, "/transfers?"+query.Encode(), nil)
	if err != nil {
		return nil, "", err
	}
	body := parse[transferPage](&result)
	return body.Data, body.NextCursor, result.cause()
}
