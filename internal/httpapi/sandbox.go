package httpapi

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/wire"
)

// Sandbox controls the sandbox. Each method returns once its effect is visible
// through the API. Errors that a client may see are [problem.Error], such as
// not_found and invalid_state.
type Sandbox interface {
	// PayinAction applies an action to a pay-in: pay, expire, fail, dispute, block, win, lose or
	// reverse.
	PayinAction(ctx context.Context, id payment.ID, action string, how wire.SandboxPayin) error
	// PayoutAction applies an action to a payout: complete, fail or return.
	PayoutAction(ctx context.Context, id payment.ID, action string) error
	// RefundAction applies an action to a refund: complete or fail, also after it was completed.
	RefundAction(ctx context.Context, id payment.ID, action string) error
	// ArmFault makes the next calls of an operation fail.
	ArmFault(ctx context.Context, fault wire.SandboxFault) error
	// ClearFaults disarms all faults, of all accounts.
	ClearFaults(ctx context.Context) error
	// AdvanceClock moves the clock forward.
	AdvanceClock(ctx context.Context, d time.Duration) error
	// Transfers lists the transfers in the ledger of the sandbox's bank, oldest
	// first: those of one external id, or all if it is ""; of an account, or of the bank's own
	// contract if it is "".
	Transfers(ctx context.Context, account, externalID string) ([]wire.SandboxTransfer, error)
}

var (
	payinActions  = []string{"pay", "expire", "fail", "dispute", "block", "win", "lose", "reverse"}
	payoutActions = []string{"complete", "fail", "return"}
)

// externalIDForm is the format of external ids.
var externalIDForm = regexp.MustCompile(`^[0-9A-Za-z]{32}$`)

// action parses id and action in the path; otherwise not_found.
func (c *call) action(allowed []string) (id payment.ID, action string, err error) {
	action = c.r.PathValue("action")
	if !slices.Contains(allowed, action) {
		return id, "", problem.New(problem.NotFound, "Unknown action.")
	}
	id, err = c.id()
	return id, action, err
}

// noContent answers 204, or with err.
func (c *call) noContent(err error) error {
	if err != nil {
		return readError(err)
	}
	return c.empty(http.StatusNoContent)
}

func (a *API) sandboxPayin(c *call) error {
	id, action, err := c.action(payinActions)
	if err != nil {
		return err
	}
	var how wire.SandboxPayin
	if c.r.ContentLength != 0 {
		var invalid *problem.Error
		how, invalid = readJSON(c, func(body []byte) (wire.SandboxPayin, *problem.Error) {
			return wire.DecodeSandboxPayin(body, action)
		})
		if invalid != nil {
			return invalid
		}
	}
	return c.noContent(a.sandbox.PayinAction(c.ctx, id, action, how))
}

func (a *API) sandboxPayout(c *call) error {
	id, action, err := c.action(payoutActions)
	if err != nil {
		return err
	}
	return c.noContent(a.sandbox.PayoutAction(c.ctx, id, action))
}

func (a *API) armFault(c *call) error {
	fault, invalid := readJSON(c, wire.DecodeSandboxFault)
	if invalid != nil {
		return invalid
	}
	return c.noContent(a.sandbox.ArmFault(c.ctx, fault))
}

func (a *API) clearFaults(c *call) error {
	return c.noContent(a.sandbox.ClearFaults(c.ctx))
}

func (a *API) advanceClock(c *call) error {
	advance, invalid := readJSON(c, wire.DecodeSandboxClock)
	if invalid != nil {
		return invalid
	}
	return c.noContent(a.sandbox.AdvanceClock(c.ctx, advance))
}

func (a *API) listSandboxTransfers(c *call) error {
	q := c.query()
	account, _ := q.get("account")
	externalID, given := q.get("externalId")
	if given && !externalIDForm.MatchString(externalID) {
		q.fail("externalId", problem.CodeInvalidFormat, "must be the externalId of an order")
	}
	if err := q.done(); err != nil {
		return err
	}
	transfers, err := a.sandbox.Transfers(c.ctx, account, externalID)
	if err != nil {
		return readError(err)
	}
	body, err := wire.SandboxTransfers(transfers)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, body)
}
