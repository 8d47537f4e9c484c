// Package accounthttp is the HTTP client of one account at a processor. Drivers have no
// other way to call.
//
// [Client.Do] sends one request and returns one [Result]: an answer, or why there is none
// and whether bytes of the request may have left. Without an answer the outcome is
// NotSent (none left), Later (none left: the budget is used up) or Unknown (the zero
// value). A call never follows a redirect and is never repeated, except a query, which has
// no effect.
//
//	Do ─▶ token ─▶ budget ─▶ guard ─▶ first byte ─▶ answer: bounded, JSON or empty
//
// The account's [Identity] is its client certificate, roots, fixed headers and token
// credentials. After a rotation the previous identity stays in use until the new one has
// worked once: until the token endpoint has issued a token to it or, without tokens, until
// a query has succeeded.
//
// A token is fetched by one caller for all, and renewed at 80 % of its life. An answer 401
// drops it: a query is then sent once more with a new one, an effect is Unknown.
//
// The budget is a number of requests per second, of which effects cannot use a fifth. An
// effect without budget is Later; a query waits. Retry-After stops both for its time.
//
// Errors name statuses and kinds of failures, never content: no body, path, header or
// secret appears in them.
package accounthttp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/processor"
)

// Limits of an answer's body, in bytes.
const (
	answerDefault = 1 << 20
	answerMax     = 4 << 20
)

// Options configure a Client. BaseURL, Transport and Clock are needed.
type Options struct {
	// BaseURL is the address to which paths are appended.
	BaseURL string
	// Transport is that of [processor.Env].
	Transport http.RoundTripper
	Clock     env.Clock
	Identity  Identity
	// Previous is the identity before the last rotation, while it is valid; else nil.
	Previous *Identity
	// Rate is the budget in requests per second; 0: none. Saved is how many unused requests
	// it saves up; 0 is those of one second.
	Rate  float64
	Saved int
	// AnswerLimit bounds the body of an answer in bytes, at most 4 MiB; 0 is 1 MiB.
	AnswerLimit int
}

// Identity is how the processor recognises the account.
type Identity struct {
	// Certificate is the client's; nil: none. Roots are the authorities that it accepts;
	// nil: those of the transport.
	Certificate *tls.Certificate
	Roots       *x509.CertPool
	// Header is sent with each request, such as an API key.
	Header http.Header
	// Credentials are for tokens; nil if requests need none.
	Credentials *Credentials
}

// Credentials fetch tokens: the client credentials of OAuth 2 by HTTP Basic.
type Credentials struct {
	URL    string // of the token endpoint: https
	ID     string
	Secret string
	Scope  string // may be ""
	// JSON: the request for a token is JSON; else it is a form, as the standard says.
	JSON bool
}

// Client calls a processor with one account. It is safe for concurrent use.
type Client struct {
	base    string
	clock   env.Clock
	limit   int64
	budget  *budget
	end     time.Time
	current *identity
	// previous is nil once current has worked.
	previous atomic.Pointer[identity]
	refused  atomic.Bool // see Refused
}

// identity is an open Identity.
type identity struct {
	transport http.RoundTripper
	header    http.Header
	tokens    *tokenSource // nil: none
}

// New returns the client of an account; it calls nobody. The error says which option is
// invalid.
func New(o Options) (*Client, error) {
	base, err := url.Parse(o.BaseURL)
	switch {
	case err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" || base.RawQuery != "" || base.Fragment != "" || base.User != nil:
		return nil, errors.New("accounthttp: BaseURL must be an absolute HTTP address without user, query and fragment")
	case base.Scheme == "http" && (o.Identity.Certificate != nil || o.Identity.Credentials != nil):
		return nil, errors.New("accounthttp: certificates and tokens need an HTTPS address")
	case o.Transport == nil || o.Clock == nil:
		return nil, errors.New("accounthttp: Transport or Clock is missing")
	case o.AnswerLimit < 0 || o.AnswerLimit > answerMax:
		return nil, errors.New("accounthttp: AnswerLimit must be 0 to 4 MiB")
	case o.Rate != 0 && !validRate(o.Rate):
		return nil, errRate
	case o.Previous != nil && (o.Previous.Credentials == nil) != (o.Identity.Credentials == nil):
		return nil, errors.New("accounthttp: both identities need credentials, or neither")
	}
	limit := int64(o.AnswerLimit)
	if limit == 0 {
		limit = answerDefault
	}
	c := &Client{base: strings.TrimSuffix(o.BaseURL, "/"), clock: o.Clock, limit: limit, budget: newBudget(o.Clock, o.Rate, max(0, o.Saved))}
	if c.current, err = open(&o, &o.Identity); err != nil {
		return nil, err
	}
	if c.end, err = certificateEnd(o.Identity.Certificate); err != nil {
		return nil, err
	}
	if o.Previous != nil {
		previous, err := open(&o, o.Previous)
		if err != nil {
			return nil, err
		}
		c.previous.Store(previous)
	}
	return c, nil
}

func open(o *Options, i *Identity) (*identity, error) {
	v := &identity{transport: env.WithIdentity(o.Transport, i.Certificate, i.Roots), header: i.Header}
	if i.Credentials != nil {
		address, err := url.Parse(i.Credentials.URL)
		if err != nil || address.Scheme != "https" || address.Host == "" || address.User != nil {
			return nil, errors.New("accounthttp: the token endpoint must be an absolute HTTPS address")
		}
		v.tokens = &tokenSource{clock: o.Clock, transport: v.transport, credentials: *i.Credentials}
	}
	return v, nil
}

func certificateEnd(c *tls.Certificate) (time.Time, error) {
	if c == nil {
		return time.Time{}, nil
	}
	if c.Leaf != nil {
		return c.Leaf.NotAfter, nil
	}
	if len(c.Certificate) == 0 {
		return time.Time{}, errors.New("accounthttp: the certificate is empty")
	}
	leaf, err := x509.ParseCertificate(c.Certificate[0])
	if err != nil {
		return time.Time{}, fmt.Errorf("accounthttp: parse certificate: %w", err)
	}
	return leaf.NotAfter, nil
}

// CertificateEnd is when the certificate of the identity expires; zero if it has none.
func (c *Client) CertificateEnd() time.Time { return c.end }

// Request is one call.
type Request struct {
	Method string
	// Path is appended to the base address; it may have a query.
	Path string
	// Body is of type ContentType; nil: none.
	Body        []byte
	ContentType string
	// Effect: the call may change something at the processor. It is sent at most once.
	Effect bool
	// Guard is called right before the first byte, if it is not nil; if it fails, nothing
	// is sent.
	Guard func() error
}

// Answer is a complete answer, of any status. Its body is JSON by its type, or empty.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Result is how a call ended.
type Result struct {
	// Answer is nil if there is none, or none that can be read.
	Answer *Answer
	// Outcome is that of a call without an answer: NotSent, Later or Unknown.
	Outcome processor.Outcome
	// Wait is how long to wait before the next effect, if that is known.
	Wait time.Duration
	// Cause is why there is no answer; nil if there is one.
	Cause error

	status int // of an answer, also of one that cannot be read
	header http.Header
}

// Why there is no answer.
var (
	errBudget       = fmt.Errorf("accounthttp: %w", processor.ErrBudget)
	errPaused       = errors.New("accounthttp: the processor asked for a pause")
	errUnauthorized = errors.New("accounthttp: an effect was answered 401, which does not prove that it has none")
)

func notSent(err error) Result { return Result{Outcome: processor.NotSent, Cause: err} }

// BudgetLeft is the number of requests that the budget allows at once; false without a budget.
func (c *Client) BudgetLeft() (requests int, limited bool) { return c.budget.left() }

// BudgetLow reports whether less than half of the requests that can be saved up are left; false
// without a budget that saves them up.
func (c *Client) BudgetLow() bool { return c.budget.low() }

// Refused reports whether the last answer was 401 or 403, or the token endpoint refused the
// credentials. It is a hint: a token may have expired, or a permission be missing.
func (c *Client) Refused() bool { return c.refused.Load() }

// Refused reports whether a query proves that the processor refuses the credentials: its
// answer is 401 or 403, also with a new token, or the token endpoint refuses them.
func (r *Result) Refused() bool {
	return r.Answer != nil && isRefusal(r.status) || errors.Is(r.Cause, processor.ErrCredentials)
}

func isRefusal(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden
}

// Do makes one call. The context bounds it; what it waits for before the first byte too.
func (c *Client) Do(ctx context.Context, r Request) Result {
	if !r.Effect {
		return c.query(ctx, r)
	}
	a, err := c.access(ctx, true)
	if err != nil {
		return notSent(err)
	}
	if wait, why := c.budget.effect(); why != nil {
		return Result{Outcome: processor.Later, Wait: wait, Cause: why}
	}
	result := c.send(ctx, a, r)
	if result.status == http.StatusUnauthorized {
		return Result{Cause: errUnauthorized, Wait: result.Wait}
	}
	return result
}

// query makes a call without an effect: once more with a new token after an answer 401,
// and once more with the previous identity if the new one does not work yet.
func (c *Client) query(ctx context.Context, r Request) Result {
	a, err := c.access(ctx, false)
	if err != nil {
		return notSent(err)
	}
	result := c.ask(ctx, a, r)
	if result.status == http.StatusUnauthorized && a.token != nil {
		if a, err = c.access(ctx, false); err != nil {
			return notSent(err)
		}
		return c.ask(ctx, a, r)
	}
	previous := c.previous.Load()
	if previous == nil || a.identity == previous {
		return result
	}
	switch status := result.status; {
	case status >= 200 && status <= 299:
		c.previous.CompareAndSwap(previous, nil)
	case result.Cause != nil, status == http.StatusBadRequest, status == http.StatusUnauthorized, status == http.StatusForbidden:
		return c.ask(ctx, access{identity: previous}, r)
	}
	return result
}

// ask sends a query once there is budget.
func (c *Client) ask(ctx context.Context, a access, r Request) Result {
	if err := c.budget.query(ctx); err != nil {
		return notSent(err)
	}
	return c.send(ctx, a, r)
}

// access is what a call is sent with.
type access struct {
	identity *identity
	token    *token // nil: none
}

// access chooses the identity. It fetches a token if there is none, which proves that an
// identity works. Without tokens only a query can prove it, so effects have the previous
// identity until then.
func (c *Client) access(ctx context.Context, effect bool) (access, error) {
	previous := c.previous.Load()
	if c.current.tokens == nil {
		if effect && previous != nil {
			return access{identity: previous}, nil
		}
		return access{identity: c.current}, nil
	}
	t, err := c.current.tokens.get(ctx)
	if err == nil {
		c.previous.CompareAndSwap(previous, nil)
		return access{c.current, t}, nil
	}
	if previous != nil {
		if t, other := previous.tokens.get(ctx); other == nil {
			return access{previous, t}, nil
		}
	}
	if errors.Is(err, processor.ErrCredentials) {
		c.refused.Store(true)
	}
	return access{}, err
}
