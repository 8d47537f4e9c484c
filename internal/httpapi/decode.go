package httpapi

import (
	"strconv"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
)

// decoding is what reading a body needs to know beside it.
type decoding struct {
	merchant payment.ID
	rules    payment.Rules
	mac      func([]byte) [32]byte
}

// decodePayin reads and checks the body of POST /payin. Where the problem is
// with values (422), the request comes with it: it may repeat an older one.
func decodePayin(body []byte, d *decoding) (*payment.PayinRequest, *problem.Error) {
	q := &payment.PayinRequest{}
	err := decode(body, func(r *reader) {
		r.payin(q)
		if q.Check(d.rules, r.errs); !r.unknown {
			q.Fingerprint = r.fingerprint(d.merchant, d.mac)
		}
	})
	if err == nil && !d.rules.Allows(payment.Method(q.Method.V)) {
		err = problem.New(problem.MethodNotEnabled, "The merchant may not use this payment method.")
	}
	return q, err
}

// decodePayout is decodePayin for POST /payout.
func decodePayout(body []byte, d *decoding) (*payment.PayoutRequest, *problem.Error) {
	q := &payment.PayoutRequest{}
	err := decode(body, func(r *reader) {
		r.payout(q)
		if q.Check(d.rules, r.errs); !r.unknown {
			q.Fingerprint = r.fingerprint(d.merchant, d.mac)
		}
	})
	return q, err
}

// decode parses a body, has it read, and sums up what is wrong with it.
func decode(body []byte, read func(r *reader)) *problem.Error {
	t := trees.Get().(*tree)
	defer t.release()
	if err := t.parse(body); err != nil {
		return err
	}
	var errs payment.Errors
	r := reader{tree: t, errs: &errs}
	read(&r)
	list := errs.List()
	if len(list) == 0 {
		return nil
	}
	kind, detail := problem.ValidationFailed, strconv.Itoa(len(list))+" fields are faulty."
	if len(list) == 1 {
		detail = "1 field is faulty."
	}
	if r.unknown {
		kind = problem.UnknownField
	}
	return problem.New(kind, detail).WithFields(list...)
}
