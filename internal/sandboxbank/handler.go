package sandboxbank

import (
	"net/http"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// lateBy is how long a late answer takes.
const lateBy = 3 * time.Second

// Handler serves the bank over HTTP.
func (b *Bank) Handler() http.Handler { return b.handler }

// call is an authenticated request whose body has been read.
type call struct {
	*http.Request

	body  []byte
	fault bankapi.FaultKind
}

// serve handles a call and returns the body of its answer. An error that is no
// bankapi.Code is answered as an internal one.
type serve func(b *Bank, c *call) (body any, err error)

// routes is the bank's HTTP API.
var routes = []struct {
	pattern   string
	operation bankapi.Operation // the faults that hit it; "" for none
	serve     serve
}{
	{"PUT /charges/{externalId}", bankapi.OpCharge, serveCharge},
	{"PUT /charges/{externalId}/cards/{attempt}", bankapi.OpCharge, serveCard},
	{"POST /charges/{externalId}/cards/{attempt}/confirm", bankapi.OpCharge, serveConfirmCard},
	{"POST /charges/{externalId}/cancel", "", serveCancelCharge},
	{"POST /transfers", bankapi.OpTransfer, serveTransfer},
	{"POST /refunds", bankapi.OpRefund, serveRefund},
	{"PUT /disputes/{id}/defense", bankapi.OpDefense, serveDefense},
	{"GET /disputes/{id}/defense", bankapi.OpQuery, serveGetDefense},
	{"GET /charges/{externalId}", bankapi.OpQuery, serveGetCharge},
	{"GET /transfers/{externalId}", bankapi.OpQuery, serveGetTransfer},
	{"GET /refunds/{externalId}", bankapi.OpQuery, serveGetRefund},

	{"GET /payments", "", servePayments},
	{"GET /changes", "", serveChanges},
	{"GET /transfers", "", serveTransfers},
	{"GET /refunds", "", serveRefunds},
	{"GET /balance", "", serveBalance},
	{"PUT /notify-urls", "", serveListener},

	{"POST /control/charges/{externalId}/{action}", "", serveForceCharge},
	{"POST /control/transfers/{externalId}/{action}", "", serveForceTransfer},
	{"POST /control/refunds", "", servePanelRefund},
	{"POST /control/refunds/{externalId}/{action}", "", serveForceRefund},
	{"POST /control/faults", "", serveArm},
	{"DELETE /control/faults", "", serveDisarm},
	{"POST /control/clock", "", serveClock},

	{"/", "", func(*Bank, *call) (any, error) { return nil, bankapi.CodeNotFound }},
}

func (b *Bank) routes() http.Handler {
	mux := http.NewServeMux()
	for _, r := range routes {
		mux.Handle(r.pattern, b.authenticated(func(w http.ResponseWriter, c *call) {
			if r.operation != "" {
				b.serveWithFaults(w, c, r.operation, r.serve)
				return
			}
			body, err := r.serve(b, c)
			respond(w, body, err)
		}))
	}
	if b.contracts != nil {
		mux.Handle("/contracts/{repeat}/{name}/", b.contracts)
	}
	return mux
}

// authenticated checks the secret and reads the body before next is called.
func (b *Bank) authenticated(next func(w http.ResponseWriter, c *call)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := strings.HasPrefix(r.URL.Path, "/control/")
		if !b.authentic(r) || !control && b.faults.refuseCredentials() {
			respond(w, nil, bankapi.CodeUnauthorized)
			return
		}
		body, err := readBody(w, r)
		if err != nil {
			respond(w, nil, err)
			return
		}
		next(w, &call{Request: r, body: body})
	})
}

// laterSeconds is the wait that an answer with the fault Later names.
const laterSeconds = "5"

// serveWithFaults serves a call, with its operation's next fault if there is one.
func (b *Bank) serveWithFaults(w http.ResponseWriter, c *call, op bankapi.Operation, next serve) {
	c.fault = b.faults.draw(op)
	switch c.fault {
	case bankapi.NotSent:
		w.Header().Set(bankapi.FaultHeader, string(bankapi.NotSent))
		respond(w, nil, bankapi.CodeNotSent)
		return
	case bankapi.Later:
		w.Header().Set("Retry-After", laterSeconds)
		respond(w, nil, bankapi.CodeTooManyRequests)
		return
	case bankapi.TimeoutBefore:
		b.hangUp(c)
	case bankapi.ServerErrorBefore:
		respondStatus(w, http.StatusServiceUnavailable)
		return
	case bankapi.Refuse:
		if op == bankapi.OpQuery {
			respond(w, nil, bankapi.CodeQueryRefused)
			return
		}
	}
	body, err := next(b, c)
	switch c.fault {
	case bankapi.TimeoutAfter:
		b.hangUp(c)
	case bankapi.Known:
		if err == nil && op != bankapi.OpQuery {
			err = bankapi.CodeIDInUse
		}
		respond(w, body, err)
	case bankapi.ServerErrorAfter:
		respondStatus(w, http.StatusInternalServerError)
	case bankapi.Delayed:
		respondStatus(w, http.StatusGatewayTimeout)
	case bankapi.Garbage:
		respondHalf(w, body, err)
	case bankapi.Late:
		b.opts.Pause(c.Context(), lateBy)
		respond(w, body, err)
	default:
		respond(w, body, err)
	}
}

// hangUp waits until the caller gives up or the bank closes, and ends the
// connection without an answer.
func (b *Bank) hangUp(c *call) {
	b.opts.Pause(c.Context(), -1)
	panic(http.ErrAbortHandler)
}
