package wire

import (
	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
)

// Decoder decodes the requests of one merchant.
type Decoder struct {
	Merchant payment.ID
	Rules    Rules
	// MAC is a keyed hash, for fingerprints.
	MAC func(data []byte) [32]byte
	// IdempotencyKey is the header of that name, which is stored with the order.
	IdempotencyKey string
	// Public: the requests have no credentials.
	Public bool
	// Actor is who sends the requests: see [PayoutRequest].
	Actor actor.Actor
}

// Payin decodes and validates the body of POST /payin. The error has status 400
// or 422. The request is returned in any case: see [PayinRequest.MayRepeat].
func (d *Decoder) Payin(body []byte) (*PayinRequest, *problem.Error) {
	q := &PayinRequest{IdempotencyKey: d.IdempotencyKey, Public: d.Public}
	err := d.decode(body, q, &q.Fingerprint)
	if err == nil && !d.Rules.enables(payment.Method(q.Method.V)) {
		err = problem.New(problem.MethodNotEnabled, "This payment method is not enabled for the merchant.")
	}
	return q, err
}

// Payout is Payin for POST /payout.
func (d *Decoder) Payout(body []byte) (*PayoutRequest, *problem.Error) {
	q := &PayoutRequest{IdempotencyKey: d.IdempotencyKey, Actor: d.Actor}
	return q, d.decode(body, q, &q.Fingerprint)
}

// Refund is Payin for POST /payin/{id}/refunds.
func (d *Decoder) Refund(body []byte) (*RefundRequest, *problem.Error) {
	q := &RefundRequest{}
	return q, d.decode(body, q, &q.Fingerprint)
}

// request is a request of a merchant.
type request interface {
	read(body value)
	Check(rules Rules, errs *Errors)
}

// decode reads a body into q, validates it, and computes its fingerprint.
func (d *Decoder) decode(body []byte, q request, fingerprint *Fingerprint) *problem.Error {
	return decode(body, func(v value) {
		q.read(v)
		q.Check(d.Rules, &v.r.errs)
		*fingerprint = d.fingerprint(v)
	})
}

// decode parses a body, passes it to read, and returns what is invalid.
func decode(body []byte, read func(body value)) *problem.Error {
	t := trees.Get().(*tree)
	defer t.release()
	if err := t.parse(body); err != nil {
		return err
	}
	r := reader{tree: t}
	read(value{&r, root})
	if r.unknown {
		return r.errs.problem(problem.UnknownField)
	}
	return r.errs.problem(problem.ValidationFailed)
}

// isWellFormed reports whether a request with this problem is invalid only in its
// values.
func isWellFormed(invalid *problem.Error) bool {
	return invalid.Kind == problem.ValidationFailed || invalid.Kind == problem.MethodNotEnabled
}
