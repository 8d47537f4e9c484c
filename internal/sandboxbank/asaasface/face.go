package asaasface

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/sandboxbank"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// Options make a face. Bank, Key and Notify are needed.
type Options struct {
	// Bank is a contract that asks for consent to transfers: see [ContractName].
	Bank *sandboxbank.Bank
	// Key authenticates callers, in the header access_token.
	Key string
	// Path is the file of the book; "" keeps it in memory only.
	Path string
	// Notify carries notices and questions to the gateway.
	Notify http.RoundTripper
	// BaseURL is the address of the face, for the payer's pages. It may be set later.
	BaseURL string
	Log     *slog.Logger // may be nil
}

// The contract of the bank that a face serves.
const (
	ContractRepeat = bankapi.RepeatAsksConsent
	ContractName   = "asaas"
)

// Face is the bank as Asaas. It is safe for concurrent use.
type Face struct {
	Options

	handlers sandboxbank.Handlers
	book     *book
	handler  http.Handler
	failures failures
	critical atomic.Bool // each transfer and refund has to be confirmed in the panel
	// statement is held while due entries are added to it.
	statement sync.Mutex
}

var errOptions = errors.New("asaasface: a face needs a bank, a key and a transport")

// Open opens a face on its book.
func Open(o Options) (*Face, error) {
	if o.Bank == nil || o.Key == "" || o.Notify == nil {
		return nil, errOptions
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	b, err := openBook(o.Path)
	if err != nil {
		return nil, err
	}
	f := &Face{Options: o, handlers: o.Bank.Handlers(), book: b}
	f.handler = f.routes()
	o.Bank.SetNotifyURL(noticeURL)
	return f, nil
}

// Close closes the book.
func (f *Face) Close() error { return f.book.close() }

// Handler serves the face: Asaas' API under /v3, and the payer's pages.
func (f *Face) Handler() http.Handler { return f.handler }

// call is an authenticated request whose body has been read.
type call struct {
	*http.Request

	body  []byte
	fault bankapi.FaultKind
}

// problem is an error answer.
type problem struct {
	status      int
	code        string
	description string
}

// Error implements error.
func (p *problem) Error() string { return p.code }

func refuse(code, description string) error {
	return &problem{http.StatusBadRequest, code, description}
}

// The errors of every route.
var (
	errNotFound = &problem{http.StatusNotFound, "not_found", "Recurso não encontrado."}
	errToken    = &problem{http.StatusUnauthorized, "invalid_access_token", "A chave de API fornecida é inválida"}
	errBody     = &problem{http.StatusBadRequest, "invalid_object", "O corpo da requisição é inválido."}
	errBusy     = &problem{http.StatusTooManyRequests, "too_many_requests", "Limite de requisições excedido."}
)

// serve handles a call and returns the body of its answer.
type serve func(f *Face, c *call) (body any, err error)

// table is Asaas' API, with the faults of the bank that hit each route; "" for none.
var table = []struct {
	pattern   string
	operation bankapi.Operation
	serve     serve
}{
	{"POST /v3/customers", "", (*Face).postCustomer},
	{"GET /v3/customers", "", (*Face).listCustomers},

	{"POST /v3/payments", bankapi.OpCharge, (*Face).postPayment},
	{"GET /v3/payments", bankapi.OpQuery, (*Face).listPayments},
	{"GET /v3/payments/{id}", bankapi.OpQuery, (*Face).getPayment},
	{"DELETE /v3/payments/{id}", "", (*Face).deletePayment},
	{"GET /v3/payments/{id}/pixQrCode", "", (*Face).getPix},
	{"GET /v3/payments/{id}/identificationField", "", (*Face).getBill},
	{"POST /v3/payments/{id}/refund", bankapi.OpRefund, (*Face).postRefund},
	{"GET /v3/pix/transactions/{id}", "", (*Face).getTransaction},
	{"GET /v3/pix/addressKeys", "", (*Face).listKeys},

	{"POST /v3/transfers", bankapi.OpTransfer, (*Face).postTransfer},
	{"GET /v3/transfers", bankapi.OpQuery, (*Face).listTransfers},
	{"GET /v3/transfers/{id}", bankapi.OpQuery, (*Face).getTransfer},

	{"GET /v3/finance/balance", "", (*Face).getBalance},
	{"GET /v3/financialTransactions", bankapi.OpQuery, (*Face).listMovements},
	{"GET /v3/webhooks", "", (*Face).listWebhooks},
	{"POST /v3/webhooks", "", (*Face).postWebhook},
	{"PUT /v3/webhooks/{id}", "", (*Face).putWebhook},

	{"POST /v3/sandbox/payment/{id}/confirm", "", (*Face).confirm},

	// Asaas has these in its panel, or they happen there.
	{"PUT /panel/withdrawal-validation", "", (*Face).putValidation},
	{"PUT /panel/critical-authorization/{state}", "", (*Face).putCritical},
	{"POST /panel/payment/{id}/{action}", "", (*Face).panelPayment},
	{"POST /panel/transfer/{id}/{action}", "", (*Face).panelTransfer},
}

// putCritical switches the critical authorization on or off.
func (f *Face) putCritical(c *call) (any, error) {
	f.critical.Store(c.PathValue("state") == "on")
	return struct{}{}, nil
}

// errCritical is the answer to a transfer while a person has to confirm each one.
var errCritical = refuse("invalid_action", "Sua conta possui autorização crítica habilitada. Para efetuar esta ação informe o código de confirmação.")

func (f *Face) routes() http.Handler {
	mux := http.NewServeMux()
	for _, r := range table {
		mux.Handle(r.pattern, f.authenticated(func(w http.ResponseWriter, c *call) {
			if r.operation != "" {
				f.serveWithFaults(w, c, r.operation, r.serve)
				return
			}
			body, err := r.serve(f, c)
			respond(w, body, err)
		}))
	}
	mux.HandleFunc("GET /i/{id}", f.showPage)
	mux.HandleFunc("POST /i/{id}", f.payOnPage)
	mux.Handle("/", f.authenticated(func(w http.ResponseWriter, _ *call) { respond(w, nil, errNotFound) }))
	return mux
}

// requestLimit is the largest body that the face reads, in bytes.
const requestLimit = 64 << 10

// authenticated checks the key and reads the body before next is called.
func (f *Face) authenticated(next func(w http.ResponseWriter, c *call)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		want, got := sha256.Sum256([]byte(f.Key)), sha256.Sum256([]byte(r.Header.Get("access_token")))
		if subtle.ConstantTimeCompare(want[:], got[:]) != 1 || strings.HasPrefix(r.URL.Path, "/v3/") && f.handlers.CredentialsRefused() {
			respond(w, nil, errToken)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, requestLimit))
		switch {
		case err != nil:
			respond(w, nil, errBody)
		case r.Method == http.MethodGet && len(body) > 0: // as at Asaas
			respond(w, nil, &problem{http.StatusForbidden, "forbidden", "Requisições GET não aceitam corpo."})
		default:
			next(w, &call{Request: r, body: body})
		}
	})
}

func (c *call) decode(into any) error {
	if len(c.body) == 0 {
		return nil
	}
	if json.Unmarshal(c.body, into) != nil {
		return errBody
	}
	return nil
}

// lateBy is how long a late answer takes.
const lateBy = 3 * time.Second

// serveWithFaults serves a call with its operation's next fault, if there is one.
func (f *Face) serveWithFaults(w http.ResponseWriter, c *call, op bankapi.Operation, next serve) {
	c.fault = f.handlers.Fault(op)
	switch c.fault {
	case bankapi.Later:
		w.Header().Set("RateLimit-Reset", "5")
		respond(w, nil, errBusy)
		return
	case bankapi.NotSent, bankapi.TimeoutBefore:
		f.hangUp(c)
	case bankapi.ServerErrorBefore:
		write(w, http.StatusServiceUnavailable, nil)
		return
	case bankapi.Refuse:
		if op == bankapi.OpQuery {
			respond(w, nil, &problem{http.StatusForbidden, "forbidden", "Consulta recusada."})
			return
		}
	}
	body, err := next(f, c)
	switch c.fault {
	case bankapi.TimeoutAfter:
		f.hangUp(c)
	case bankapi.ServerErrorAfter:
		write(w, http.StatusInternalServerError, nil)
	case bankapi.Delayed:
		write(w, http.StatusGatewayTimeout, nil)
	case bankapi.Garbage:
		if err != nil {
			respond(w, nil, err)
			return
		}
		text := encode(body)
		write(w, http.StatusOK, text[:len(text)/2])
	case bankapi.Late:
		f.handlers.Pause(c.Context(), lateBy)
		respond(w, body, err)
	default:
		respond(w, body, err)
	}
}

// hangUp waits until the caller gives up or the bank closes, and ends the connection.
func (f *Face) hangUp(c *call) {
	f.handlers.Pause(c.Context(), -1)
	panic(http.ErrAbortHandler)
}

// errorBody is the body of an error answer.
type errorBody struct {
	Errors []errorEntry `json:"errors"`
}

type errorEntry struct {
	Code        string `json:"code"`
	Description string `json:"description"`
}

// respond answers 200 with a body, or the error. A code of the bank is an invalid action.
func respond(w http.ResponseWriter, body any, err error) {
	if err == nil {
		write(w, http.StatusOK, encode(body))
		return
	}
	p, ok := errors.AsType[*problem](err)
	if code, known := errors.AsType[bankapi.Code](err); !ok && known {
		p, ok = &problem{http.StatusBadRequest, "invalid_action", code.Problem().Message}, true
	}
	if !ok {
		p = &problem{http.StatusInternalServerError, "internal_error", "Erro interno."}
	}
	write(w, p.status, encode(errorBody{[]errorEntry{{p.code, p.description}}}))
}

func encode(body any) []byte {
	text, err := json.Marshal(body)
	if err != nil {
		panic(http.ErrAbortHandler) // the caller sees a broken connection: unknown
	}
	return text
}

func write(w http.ResponseWriter, status int, body []byte) {
	if body != nil {
		w.Header().Set("Content-Type", "application/json")
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // a caller that disconnected will call again
}
