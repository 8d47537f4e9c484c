package wire

import (
	"time"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
)

// RedeliverRequest is the body of POST /events/redeliver.
type RedeliverRequest struct {
	From, To time.Time // from inclusive, to exclusive
	Types    Field[[]string]
	Endpoint payment.ID // zero if it was not sent
}

// DecodeRedeliver decodes and validates the body of POST /events/redeliver.
func DecodeRedeliver(body []byte) (*RedeliverRequest, *problem.Error) {
	q := &RedeliverRequest{}
	return q, decode(body, func(body value) {
		var from, to Field[time.Time]
		for v := range body.children() {
			switch v.name() {
			case "from":
				from = v.time()
			case "to":
				to = v.time()
			case "types":
				q.Types = v.filters()
			case "endpointId":
				q.Endpoint = v.id()
			default:
				v.failUnknown()
			}
		}
		errs := &body.r.errs
		errs.require(At("", "from"), from.Set)
		errs.require(At("", "to"), to.Set)
		if from.Set && to.Set && !to.V.After(from.V) && len(errs.List()) == 0 {
			errs.Add(At("", "to"), problem.CodeOutOfRange, "must be later than from")
		}
		q.From, q.To = from.V, to.V
	})
}

// time reads a time (RFC 3339), from 1970 to 9999.
func (v value) time() Field[time.Time] {
	text := v.text()
	if !text.Set {
		return Field[time.Time]{}
	}
	t, err := time.Parse(time.RFC3339Nano, text.V)
	if err != nil || t.Unix() < 0 || t.UTC().Year() > 9999 {
		v.fail(problem.CodeInvalidFormat, "must be an RFC 3339 time, such as 2026-03-01T00:00:00Z")
	}
	return Some(t.UTC())
}

// id reads an id.
func (v value) id() payment.ID {
	text := v.text()
	if !text.Set {
		return payment.ID{}
	}
	id, err := payment.ParseID(text.V)
	if err != nil {
		v.fail(problem.CodeInvalidFormat, "must be a UUID")
	}
	return id
}

// Redelivered is the answer of POST /events/redeliver.
func Redelivered(count int) ([]byte, error) {
	return json.Marshal(struct {
		Count int `json:"count"`
	}{count})
}
