package sandbox

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/processor"
)

const (
	jsonType = "application/json"
	// faultHeader tells the adapter to behave as if its connection had been
	// refused, which only a client can see.
	faultHeader = "X-Porteira-Bank-Fault"
	// requestLimit is the largest body that the bank reads.
	requestLimit = 64 << 10
	// lateBy is how long a late answer takes.
	lateBy = 3 * time.Second
	// longestDelay bounds how long an order waits that was delayed by seed.
	longestDelay = 30 * time.Minute
	// pageLimit is how many entries a list shows at once.
	pageLimit = 500
)

// Handler is the bank's HTTP face.
func (b *Bank) Handler() http.Handler { return b.handler }

// call is one request to the bank, read whole.
type call struct {
	request *http.Request
	body    []byte
	fault   Kind
}

// reply is the answer to a call: a value to show, or an error.
type reply struct {
	value any
	err   error
}

// routes are all that the bank answers to.
func (b *Bank) routes() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, wrap func(func(call) reply) func(call) reply, effect func(call) reply) {
		mux.Handle(pattern, b.guarded(wrap(effect)))
	}
	plain := func(effect func(call) reply) func(call) reply { return effect }
	faulty := func(op Operation) func(func(call) reply) func(call) reply {
		return func(effect func(call) reply) func(call) reply {
			return func(c call) reply { return b.misbehave(op, c, effect) }
		}
	}

	handle("PUT /charges/{externalId}", faulty(OpCharge), b.serveCharge)
	handle("PUT /charges/{externalId}/cards/{attempt}", faulty(OpCharge), b.serveCard)
	handle("POST /charges/{externalId}/cards/{attempt}/confirm", faulty(OpCharge), b.serveConfirmCard)
	handle("POST /transfers", faulty(OpTransfer), b.serveTransfer)
	handle("POST /refunds", faulty(OpRefund), b.serveRefund)
	handle("GET /charges/{externalId}", faulty(OpQuery), func(c call) reply {
		return answer(b.getCharge(c.request.PathValue("externalId")))
	})
	handle("GET /transfers/{externalId}", faulty(OpQuery), func(c call) reply {
		return answer(b.getOrder(processor.SubjectTransfer, c.request.PathValue("externalId")))
	})
	handle("GET /refunds/{externalId}", faulty(OpQuery), func(c call) reply {
		return answer(b.getOrder(processor.SubjectRefund, c.request.PathValue("externalId")))
	})
	handle("GET /payments", plain, func(c call) reply {
		return answer(b.paymentsAfter(c.request.URL.Query().Get("cursor"), pageLimit))
	})
	handle("GET /changes", plain, func(c call) reply {
		return answer(b.changesAfter(c.request.URL.Query().Get("cursor"), pageLimit))
	})
	handle("GET /transfers", plain, func(c call) reply {
		query := c.request.URL.Query()
		return answer(b.transfersAfter(query.Get("externalId"), query.Get("cursor"), pageLimit))
	})

	handle("PUT /notify-urls", plain, b.serveListener)
	handle("POST /control/charges/{externalId}/{verb}", plain, b.serveForceCharge)
	handle("POST /control/transfers/{externalId}/{verb}", plain, b.serveForceTransfer)
	handle("POST /control/faults", plain, b.serveArm)
	handle("DELETE /control/faults", plain, func(call) reply { b.faults.clear(); return reply{value: struct{}{}} })
	handle("POST /control/clock", plain, b.serveClock)
	mux.Handle("/", b.guarded(func(call) reply { return reply{err: codeNotFound} }))
	return mux
}

func answer[T any](value T, err error) reply { return reply{value, err} }

// guarded authenticates and reads a request before it is acted upon.
func (b *Bank) guarded(serve func(call) reply) http.Handler {
	want := sha256.Sum256([]byte("Bearer " + b.opts.Secret))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Digests are of one length, so the comparison tells nothing by its time.
		got := sha256.Sum256([]byte(r.Header.Get("Authorization")))
		if subtle.ConstantTimeCompare(want[:], got[:]) != 1 {
			write(w, reply{err: codeUnauthorized}, whole)
			return
		}
		body, err := readBody(w, r)
		if err != nil {
			write(w, reply{err: err}, whole)
			return
		}
		result := serve(call{request: r, body: body})
		switch kind, isFault := errors.AsType[faultError](result.err); {
		case !isFault:
			write(w, result, whole)
		case kind == faultError(Rubbish):
			write(w, reply{value: result.value}, half)
		case kind == faultError(NotSent):
			w.Header().Set(faultHeader, string(NotSent))
			write(w, reply{err: codeNotSent}, whole)
		default: // the caller gave up, or the bank closes
			panic(http.ErrAbortHandler)
		}
	})
}

// faultError is what misbehave asks the outer layer to do to the answer.
type faultError Kind

// Error implements error.
func (e faultError) Error() string { return "sandbox: fault " + string(e) }

// statusError answers with a status and nothing that could be relied upon.
type statusError int

// Error implements error.
func (e statusError) Error() string { return "sandbox: status " + strconv.Itoa(int(e)) }

// misbehave runs effect, or does not, as the next fault of op says.
func (b *Bank) misbehave(op Operation, c call, effect func(call) reply) reply {
	ctx := c.request.Context()
	c.fault = b.faults.draw(op)
	switch c.fault {
	case NotSent:
		return reply{err: faultError(NotSent)}
	case TimeoutBefore:
		b.opts.Pause(ctx, -1)
		return reply{err: faultError(TimeoutBefore)}
	case ServerErrorBefore:
		return reply{err: statusError(http.StatusServiceUnavailable)}
	case Refuse:
		if op == OpQuery {
			return reply{err: codeQueryRefused}
		}
	}
	result := effect(c)
	switch c.fault {
	case TimeoutAfter:
		b.opts.Pause(ctx, -1)
		return reply{err: faultError(TimeoutAfter)}
	case ServerErrorAfter:
		return reply{err: statusError(http.StatusInternalServerError)}
	case Delayed:
		return reply{err: statusError(http.StatusGatewayTimeout)}
	case Late:
		b.opts.Pause(ctx, lateBy)
	case Rubbish:
		if result.err == nil {
			result.err = faultError(Rubbish)
		}
	}
	return result
}

func (b *Bank) serveCharge(c call) reply {
	var terms chargeTerms
	if err := decode(c.body, &terms); err != nil {
		return reply{err: err}
	}
	return answer(b.putCharge(c.request.PathValue("externalId"), terms, c.fault))
}

func (b *Bank) serveTransfer(c call) reply {
	var r transferRequest
	if err := decode(c.body, &r); err != nil {
		return reply{err: err}
	}
	made, err := r.order()
	return b.serveOrder(c, made, err)
}

func (b *Bank) serveRefund(c call) reply {
	var r refundRequest
	if err := decode(c.body, &r); err != nil {
		return reply{err: err}
	}
	made, err := r.order()
	return b.serveOrder(c, made, err)
}

func (b *Bank) serveOrder(c call, made orderMade, err error) reply {
	if err != nil {
		return reply{err: err}
	}
	if c.fault == Delayed {
		return reply{err: b.delay(made, b.faults.delay())}
	}
	return answer(b.putOrder(made, c.fault))
}

// listenRequest registers a gateway's address for notices.
type listenRequest struct {
	URL        string `json:"url"`
	TTLSeconds int64  `json:"ttlSeconds"`
}

func (b *Bank) serveListener(c call) reply {
	var r listenRequest
	if err := decode(c.body, &r); err != nil {
		return reply{err: err}
	}
	const day = 24 * 60 * 60
	if r.TTLSeconds < 1 || r.TTLSeconds > day || checkURL(r.URL) != nil {
		return reply{err: codeRequestInvalid}
	}
	return reply{value: struct{}{}, err: b.Listen(r.URL, time.Duration(r.TTLSeconds)*time.Second)}
}

func (b *Bank) serveForceCharge(c call) reply {
	var order chargeOrder
	if err := decode(c.body, &order); err != nil {
		return reply{err: err}
	}
	return answer(b.forceCharge(c.request.PathValue("externalId"), c.request.PathValue("verb"), order))
}

// transferForce is what a control route may say about a transfer.
type transferForce struct {
	Amount money.Cents `json:"amount,omitzero"` // to return; 0 is all
}

func (b *Bank) serveForceTransfer(c call) reply {
	var order transferForce
	if err := decode(c.body, &order); err != nil {
		return reply{err: err}
	}
	return answer(b.forceTransfer(c.request.PathValue("externalId"), c.request.PathValue("verb"), order.Amount))
}

func (b *Bank) serveArm(c call) reply {
	var fault Fault
	if err := decode(c.body, &fault); err != nil {
		return reply{err: err}
	}
	if b.faults.arm(fault) != nil {
		return reply{err: codeRequestInvalid}
	}
	return reply{value: struct{}{}}
}

// clockOffset is how far the bank's clock runs ahead, in seconds.
type clockOffset struct {
	Offset int64 `json:"offset"`
}

func (b *Bank) serveClock(c call) reply {
	var r clockOffset
	if err := decode(c.body, &r); err != nil {
		return reply{err: err}
	}
	const century = 100 * 365 * 24 * 60 * 60
	if r.Offset < 0 || r.Offset > century {
		return reply{err: codeRequestInvalid}
	}
	inForce, err := b.SetOffset(time.Duration(r.Offset) * time.Second)
	return answer(clockOffset{int64(inForce / time.Second)}, err)
}

// readBody reads a body whole: only then does the server notice that its
// client has gone.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, requestLimit))
	if err != nil {
		return nil, codeBodyTooLarge
	}
	if len(body) > 0 && !isJSON(r.Header) {
		return nil, codeMediaUnsupported
	}
	return body, nil
}

func isJSON(h http.Header) bool {
	media, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && media == jsonType
}

// decode reads strict JSON; no body at all is an empty object.
func decode(body []byte, into any) error {
	if len(body) == 0 {
		return nil
	}
	if err := json.Unmarshal(body, into, json.RejectUnknownMembers(true)); err != nil {
		return codeRequestInvalid
	}
	return nil
}

// portion is how much of an answer is sent.
type portion int

const (
	whole portion = iota
	half
)

// problemBody is an answer that is an error.
type problemBody struct {
	Code    failureCode `json:"code"`
	Message string      `json:"message"`
}

// write answers. What is not one of the bank's own errors is its fault.
func write(w http.ResponseWriter, r reply, p portion) {
	status, value := http.StatusOK, r.value
	if r.err != nil {
		code, ok := errors.AsType[failureCode](r.err)
		if !ok {
			code = codeInternal
		}
		status, value = code.status(), problemBody{code, failureTexts[code]}
		if s, ok := errors.AsType[statusError](r.err); ok {
			status = int(s)
		}
	}
	body, err := json.Marshal(value)
	if err != nil {
		panic(http.ErrAbortHandler) // the caller sees a broken connection, and knows nothing
	}
	if p == half {
		body = body[:len(body)/2]
	}
	w.Header().Set("Content-Type", jsonType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // a caller that has gone will ask again
}
