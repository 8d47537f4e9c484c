package httpapi

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
)

// Sandbox is what the sandbox's routes control. Each method returns once its
// effect can be seen through the API; errors that the caller may be told about
// are [problem.Error], such as not_found and invalid_state.
type Sandbox interface {
	// PayinAction lets something happen to a pay-in: pay, expire, fail,
	// dispute, win or lose. amount is what is paid, 0 for the order's own.
	PayinAction(ctx context.Context, id payment.ID, action string, amount money.Cents) error
	// PayoutAction is PayinAction for payouts: complete, fail or return.
	PayoutAction(ctx context.Context, id payment.ID, action string) error
	// ArmFault lets the next count calls of an operation misbehave.
	ArmFault(ctx context.Context, operation, kind string, count int) error
	// ClearFaults disarms all faults.
	ClearFaults(ctx context.Context) error
	// AdvanceClock moves time forward.
	AdvanceClock(ctx context.Context, d time.Duration) error
	// Transfers lists what the sandbox processor really did, from its own
	// books, oldest first; under one external id, or all where it is "".
	Transfers(ctx context.Context, externalID string) ([]SandboxTransfer, error)
}

// SandboxTransfer is a transfer in the sandbox processor's own books.
type SandboxTransfer struct {
	ExternalID string
	Amount     money.Cents
	PIXKey     string
	EndToEndID string
	Status     string // processing, paid, failed or returned
	CreatedAt  time.Time
}

// What the sandbox can be asked for.
var (
	payinActions    = []string{"pay", "expire", "fail", "dispute", "win", "lose"}
	payoutActions   = []string{"complete", "fail", "return"}
	faultOperations = []string{"charge", "transfer", "refund", "query"}
	faultKinds      = []string{
		"refuse", "not_sent", "timeout_before", "timeout_after", "server_error_after", "late", "rubbish",
		"notify_twice", "notify_reordered", "notify_never",
	}
)

// externalIDForm is the form of the ids under which processors know orders.
var externalIDForm = regexp.MustCompile(`^[0-9A-Za-z]{32}$`)

// Limits of the sandbox's controls.
const (
	faultCountMax = 1_000_000
	advanceMax    = 10 * 365 * 24 * time.Hour
)

// action reads the word in the path; one that is not allowed names nothing.
func (c *call) action(allowed []string) (string, error) {
	action := c.r.PathValue("action")
	if !slices.Contains(allowed, action) {
		return "", problem.New(problem.NotFound, "There is no such action.")
	}
	return action, nil
}

// decode has a body read, which may be missing where it is optional.
func (c *call) decode(optional bool, read func(*reader)) error {
	if optional && c.r.ContentLength == 0 {
		return nil
	}
	body, release, err := c.body()
	if err != nil {
		return err
	}
	defer release()
	if optional && len(body) == 0 {
		return nil
	}
	if fault := decode(body, read); fault != nil {
		return fault
	}
	return nil
}

func (r *reader) inRange(p payment.Path, f payment.Field[int64], high int64) {
	if f.Set && (f.V < 1 || f.V > high) {
		r.errs.Add(p, payment.CodeOutOfRange, "must be at least 1 and not too large")
	}
}

func (r *reader) oneOf(name string, f payment.Field[string], allowed []string) {
	p := payment.At("", name)
	switch {
	case !f.Set:
		r.errs.Add(p, payment.CodeRequired, "must be sent")
	case !slices.Contains(allowed, f.V):
		r.errs.Add(p, payment.CodeNotAllowed, "must be one of "+strings.Join(allowed, ", "))
	}
}

func (a *API) sandboxPayin(c *call) error {
	action, err := c.action(payinActions)
	if err != nil {
		return err
	}
	id, err := c.id()
	if err != nil {
		return err
	}
	var amount payment.Field[int64]
	err = c.decode(true, func(r *reader) {
		r.each(0, func(i int32, name string) {
			if p := payment.At("", name); name == "amount" {
				amount = r.integer(i, p)
				r.inRange(p, amount, int64(money.Max))
			} else {
				r.unknownField(p)
			}
		})
		if amount.Set && action != "pay" {
			r.errs.Add(payment.At("", "amount"), payment.CodeNotAllowed, "belongs to pay")
		}
	})
	if err != nil {
		return err
	}
	if err := readError(a.sandbox.PayinAction(c.r.Context(), id, action, money.Cents(amount.V))); err != nil {
		return err
	}
	return c.empty(http.StatusNoContent)
}

func (a *API) sandboxPayout(c *call) error {
	action, err := c.action(payoutActions)
	if err != nil {
		return err
	}
	id, err := c.id()
	if err != nil {
		return err
	}
	if err := readError(a.sandbox.PayoutAction(c.r.Context(), id, action)); err != nil {
		return err
	}
	return c.empty(http.StatusNoContent)
}

func (a *API) armFault(c *call) error {
	var operation, kind payment.Field[string]
	count := payment.Field[int64]{}
	err := c.decode(false, func(r *reader) {
		r.each(0, func(i int32, name string) {
			p := payment.At("", name)
			switch name {
			case "operation":
				operation = r.text(i, p)
			case "kind":
				kind = r.text(i, p)
			case "count":
				count = r.integer(i, p)
				r.inRange(p, count, faultCountMax)
			default:
				r.unknownField(p)
			}
		})
		r.oneOf("operation", operation, faultOperations)
		r.oneOf("kind", kind, faultKinds)
	})
	if err != nil {
		return err
	}
	if !count.Set {
		count.V = 1
	}
	if err := readError(a.sandbox.ArmFault(c.r.Context(), operation.V, kind.V, int(count.V))); err != nil {
		return err
	}
	return c.empty(http.StatusNoContent)
}

func (a *API) clearFaults(c *call) error {
	if err := readError(a.sandbox.ClearFaults(c.r.Context())); err != nil {
		return err
	}
	return c.empty(http.StatusNoContent)
}

func (a *API) advanceClock(c *call) error {
	var advance payment.Field[int64]
	err := c.decode(false, func(r *reader) {
		at := payment.At("", "advance")
		r.each(0, func(i int32, name string) {
			if name == "advance" {
				advance = r.integer(i, at)
				r.inRange(at, advance, int64(advanceMax/time.Second))
			} else {
				r.unknownField(payment.At("", name))
			}
		})
		if !advance.Set {
			r.errs.Add(at, payment.CodeRequired, "must be sent")
		}
	})
	if err != nil {
		return err
	}
	if err := readError(a.sandbox.AdvanceClock(c.r.Context(), time.Duration(advance.V)*time.Second)); err != nil {
		return err
	}
	return c.empty(http.StatusNoContent)
}

type transferView struct {
	ExternalID string        `json:"externalId"`
	Amount     money.Cents   `json:"amount"`
	PIXKey     string        `json:"pixKey"`
	EndToEndID string        `json:"endToEndId"`
	Status     string        `json:"status"`
	CreatedAt  payment.Stamp `json:"createdAt"`
}

func (a *API) listSandboxTransfers(c *call) error {
	q := c.query()
	externalID, given := q.get("externalId")
	if given && !externalIDForm.MatchString(externalID) {
		q.fault("externalId", payment.CodeInvalidFormat, "must be the externalId of an order")
	}
	if err := q.done(); err != nil {
		return err
	}
	list, err := a.sandbox.Transfers(c.r.Context(), externalID)
	if err != nil {
		return readError(err)
	}
	views := make([]transferView, len(list))
	for i, t := range list {
		views[i] = transferView{t.ExternalID, t.Amount, t.PIXKey, t.EndToEndID, t.Status, payment.StampOf(t.CreatedAt)}
	}
	return c.marshal(views)
}
