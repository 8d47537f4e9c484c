package apipixface

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// The application at the bank, and the key of its account.
const (
	ClientID = "porteira-sandbox"
	Key      = "9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d"
)

// The contract that is served. It is one of its own: the account sandbox of a gateway at the same
// bank has the bank's other contract, and would book the payments too.
const (
	Contract = "api-pix"
	Repeat   = bankapi.RepeatReturnsFirst
)

// ControlPath is the path of the bank's own protocol that forces outcomes of the contract.
func ControlPath() string { return bankapi.ContractPath(Repeat, Contract) + "/control" }

// tokenLifeDefault is how long a token lives.
const tokenLifeDefault = time.Hour

// Bank is the sandbox's bank.
type Bank interface {
	Transport() http.RoundTripper
	Now() time.Time
	PeekCharge(externalID string) (bankapi.Charge, bool, error)
	PeekOrder(subject bankapi.Subject, externalID string) (bankapi.Order, bool, error)
	PeekPayment(id string) (bankapi.PaymentDetail, bool, error)
	PeekDefense(disputeID string) (bool, error)
	PeekPayments(from, to time.Time) ([]bankapi.PaymentDetail, error)
	PeekTransfers(from, to time.Time) ([]bankapi.TransferEntry, error)
}

// Options make a face. All but Path, TokenLife, Certificate and TestEnvironment are needed.
type Options struct {
	Path       string // of the file of notes; "" keeps them in memory
	BankURL    string // of the bank's own protocol, for Bank.Transport
	BankSecret string
	Secret     string // of the application
	Clock      env.Clock
	Random     env.Random
	// Webhooks carries notices; Certificate is shown to their receivers.
	Webhooks    http.RoundTripper
	Certificate *tls.Certificate
	TokenLife   time.Duration // 0 is an hour
	// TestEnvironment answers as Efí's test environment does, which has no infractions.
	TestEnvironment bool
}

// Face serves a bank as one of the API Pix. It is safe for concurrent use.
type Face struct {
	opts    Options
	book    *book
	handler http.Handler
	// bank is set by Connect, before the first request.
	bank            Bank
	proved, unknown http.RoundTripper // for notices: with the bank's certificate, and without one

	mu     sync.Mutex
	tokens map[[sha256.Size]byte]time.Duration // the end of each, by the monotonic clock
}

var errOptions = errors.New("apipixface: an option is missing")

// New opens a face on its notes. It has no bank yet: see Connect.
func New(o Options) (*Face, error) {
	if o.BankURL == "" || o.BankSecret == "" || o.Secret == "" || o.Clock == nil || o.Random == nil || o.Webhooks == nil {
		return nil, errOptions
	}
	if o.TokenLife == 0 {
		o.TokenLife = tokenLifeDefault
	}
	b, err := openBook(o.Path)
	if err != nil {
		return nil, err
	}
	f := &Face{opts: o, book: b, tokens: map[[sha256.Size]byte]time.Duration{}, unknown: o.Webhooks, proved: o.Webhooks}
	if o.Certificate != nil {
		f.proved = env.WithIdentity(o.Webhooks, o.Certificate, nil)
	}
	f.handler = f.routes()
	return f, nil
}

// Connect gives the face its bank, whose notices are to go to [NotifyURL] through the transport
// that Notify returns.
func (f *Face) Connect(b Bank) { f.bank = b }

// Close closes the file of notes.
func (f *Face) Close() error { return f.book.close() }

// Handler serves the API Pix.
func (f *Face) Handler() http.Handler { return f.handler }

// request is an authorized request whose body has been read.
type request struct {
	*http.Request

	body []byte
}

// decode reads JSON; unknown members are an error, as they would be ignored.
func (r *request) decode(into any) error {
	if json.Unmarshal(r.body, into, json.RejectUnknownMembers(true)) != nil {
		return invalid("RequisicaoInvalida", "body")
	}
	return nil
}

// answer is a body and its status. An error of type *fault is answered as such.
type serve func(f *Face, r *request) (status int, body any, err error)

var routes = []struct {
	pattern string
	serve   serve
}{
	{"PUT /v2/cob/{txid}", putCharge},
	{"PATCH /v2/cob/{txid}", patchCharge},
	{"GET /v2/cob/{txid}", getCharge},
	{"GET /v2/cob", listCharges},
	{"GET /v2/pix", listPayments},
	{"GET /v2/pix/{e2eid}", getPayment},
	{"PUT /v2/pix/{e2eid}/devolucao/{id}", putReturn},
	{"GET /v2/pix/{e2eid}/devolucao/{id}", getReturn},
	{"PUT /v2/webhook/{chave}", putWebhook},
	{"GET /v2/webhook/{chave}", getWebhook},
	{"DELETE /v2/webhook/{chave}", deleteWebhook},

	{"PUT /v3/gn/pix/{idEnvio}", putTransfer},
	{"PUT /v2/gn/pix/{idEnvio}", putTransfer},
	{"GET /v2/gn/pix/enviados/id-envio/{idEnvio}", getTransfer},
	{"GET /v2/gn/pix/enviados", listTransfers},
	{"GET /v2/gn/saldo", getBalance},
	{"GET /v2/gn/infracoes", listInfractions},
	{"POST /v2/gn/infracoes/{id}/defesa", postDefense},

	{"/", func(*Face, *request) (int, any, error) { return 0, nil, missing("NaoEncontrado") }},
}

// requestLimit is the largest body that is read, in bytes.
const requestLimit = 64 << 10

func (f *Face) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /oauth/token", f.serveToken)
	for _, route := range routes {
		mux.HandleFunc(route.pattern, func(w http.ResponseWriter, r *http.Request) {
			f.setDate(w)
			body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, requestLimit))
			switch {
			case err != nil:
				writeFault(w, invalid("RequisicaoInvalida", "body"))
				return
			case !f.authorized(r):
				write(w, http.StatusUnauthorized, "application/json", encode(oauthFault{"invalid_token"}))
				return
			}
			status, answer, err := route.serve(f, &request{r, body})
			f.respond(w, status, answer, err)
		})
	}
	return mux
}

// setDate sets the bank's time, which may differ from the machine's.
func (f *Face) setDate(w http.ResponseWriter) {
	w.Header().Set("Date", f.bank.Now().UTC().Format(http.TimeFormat))
}

type oauthFault struct {
	Error string `json:"error"`
}

// serveToken issues a token by client credentials: RFC 6749, section 4.4, with a form or JSON.
func (f *Face) serveToken(w http.ResponseWriter, r *http.Request) {
	f.setDate(w)
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, requestLimit))
	if err != nil {
		write(w, http.StatusBadRequest, "application/json", encode(oauthFault{"invalid_request"}))
		return
	}
	id, secret, _ := r.BasicAuth()
	id, err1 := url.QueryUnescape(id)
	secret, err2 := url.QueryUnescape(secret)
	if err1 != nil || err2 != nil || !same(id, ClientID) || !same(secret, f.opts.Secret) {
		write(w, http.StatusUnauthorized, "application/json", encode(oauthFault{"invalid_client"}))
		return
	}
	if grantType(r.Header, body) != "client_credentials" {
		write(w, http.StatusBadRequest, "application/json", encode(oauthFault{"unsupported_grant_type"}))
		return
	}
	random := make([]byte, 32)
	f.opts.Random.Read(random)
	token, now := hex.EncodeToString(random), f.opts.Clock.Monotonic()
	f.mu.Lock()
	for old, end := range f.tokens {
		if end <= now {
			delete(f.tokens, old)
		}
	}
	f.tokens[sha256.Sum256([]byte(token))] = now + f.opts.TokenLife
	f.mu.Unlock()
	write(w, http.StatusOK, "application/json", encode(struct {
		AccessToken string `json:"access_token"`
		TokenType   string `json:"token_type"`
		ExpiresIn   int64  `json:"expires_in"`
		Scope       string `json:"scope"`
	}{token, "Bearer", int64(f.opts.TokenLife / time.Second), "cob.read cob.write pix.read pix.write webhook.read webhook.write pix.send gn.pix.send.read gn.balance.read gn.infractions.read gn.infractions.write"}))
}

func grantType(h http.Header, body []byte) string {
	if strings.HasPrefix(h.Get("Content-Type"), "application/json") {
		var v struct {
			GrantType string `json:"grant_type"`
		}
		if json.Unmarshal(body, &v) != nil {
			return ""
		}
		return v.GrantType
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return ""
	}
	return form.Get("grant_type")
}

// same compares in constant time.
func same(given, want string) bool {
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(want))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// authorized reports whether a request has a token that has not expired.
func (f *Face) authorized(r *http.Request) bool {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	f.mu.Lock()
	defer f.mu.Unlock()
	end, known := f.tokens[sha256.Sum256([]byte(token))]
	return ok && known && f.opts.Clock.Monotonic() < end
}

// ForgetTokens makes all tokens invalid, as a restart does.
func (f *Face) ForgetTokens() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.tokens)
}

// bankAnswer is an answer of the bank in its own protocol.
type bankAnswer struct {
	status int
	code   bankapi.Code // of an error
	header http.Header
	body   []byte
}

// errHungUp is a connection that the bank has ended: so is that of the caller.
var errHungUp = errors.New("apipixface: the bank hung up")

// errHalf is half an answer: so is that to the caller.
var errHalf = errors.New("apipixface: the bank's answer broke off")

// call calls the bank in its own protocol, with its faults.
func (f *Face) call(ctx context.Context, method, path string, in any) (*bankAnswer, error) {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return nil, err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, f.opts.BankURL+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+f.opts.BankSecret)
	r.Header.Set("Content-Type", bankapi.JSONType)
	response, err := f.bank.Transport().RoundTrip(r)
	if err != nil {
		return nil, errHungUp
	}
	defer func() { _ = response.Body.Close() }()
	a := &bankAnswer{status: response.StatusCode, header: response.Header}
	if a.body, err = io.ReadAll(response.Body); err != nil || a.header.Get(bankapi.FaultHeader) == string(bankapi.NotSent) {
		return nil, errHungUp
	}
	if a.status != http.StatusOK {
		var p bankapi.Problem
		if json.Unmarshal(a.body, &p) != nil {
			return nil, errHungUp
		}
		a.code = p.Code
		return a, a.fault()
	}
	return a, nil
}

// read reads the body of a success.
func (a *bankAnswer) read(into any) error {
	if json.Unmarshal(a.body, into) != nil {
		return errHalf
	}
	return nil
}

// fault is the error answer that means the same for every request; nil if there is none.
func (a *bankAnswer) fault() error {
	switch {
	case a.status == http.StatusUnauthorized:
		return &fault{status: http.StatusUnauthorized, oauth: "invalid_token"}
	case a.status == http.StatusTooManyRequests:
		return &fault{status: a.status, kind: "BaldeFichasVazio", title: "Balde de Fichas Vazio", wait: a.header.Get("Retry-After")}
	case a.status >= 500:
		return serverFault(a.status)
	default:
		return nil
	}
}

// respond answers a request.
func (f *Face) respond(w http.ResponseWriter, status int, body any, err error) {
	var known *fault
	switch {
	case err == nil && body == nil:
		w.WriteHeader(status)
	case err == nil:
		write(w, status, "application/json", encode(body))
	case errors.As(err, &known):
		writeFault(w, known)
	case errors.Is(err, errHalf):
		write(w, http.StatusOK, "application/json", []byte(`{"txid":"`))
	case errors.Is(err, errHungUp):
		panic(http.ErrAbortHandler)
	default:
		writeFault(w, serverFault(http.StatusInternalServerError))
	}
}

func encode(body any) []byte {
	text, err := json.Marshal(body)
	if err != nil {
		panic(http.ErrAbortHandler) // the caller sees a broken connection
	}
	return text
}

func write(w http.ResponseWriter, status int, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // a caller that disconnected will call again
}
