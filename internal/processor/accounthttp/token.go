package accounthttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/processor"
)

const (
	tokenTimeout     = 10 * time.Second // of one fetch
	tokenBackoffMin  = time.Second
	tokenBackoffMax  = time.Minute
	tokenWaitersMax  = 1024
	tokenAnswerLimit = 64 << 10 // bytes
	tokenValueMax    = 16 << 10 // bytes
	tokenLifeDefault = time.Minute
	tokenLifeMax     = 24 * time.Hour
)

// tokenSource has the token of one identity. It is safe for concurrent use.
type tokenSource struct {
	clock       env.Clock
	transport   http.RoundTripper
	credentials Credentials

	mu        sync.Mutex
	token     *token // nil: none
	fetching  *fetch // in flight; nil: none
	waiters   int
	failures  int           // fetches in a row that failed
	refused   int           // tokens in a row of which none was ever accepted
	notBefore time.Duration // of the next fetch, by the monotonic clock
	last      error         // why there is no fetch before that
}

// token is a bearer token. Its times are by the monotonic clock.
type token struct {
	value        string
	renewAt, end time.Duration
	worked       bool // guarded by the source
}

// fetch is one request for a token, on which all callers wait.
type fetch struct {
	done  chan struct{}
	token *token
	err   error
}

// Why there is no token.
var (
	errTokenWaiters = errors.New("accounthttp: too many calls wait for a token")
	errTokenRefused = fmt.Errorf("accounthttp: the processor refuses the tokens that it issues: %w", processor.ErrCredentials)
	errTokenForm    = errors.New("accounthttp: the answer of the token endpoint is not a token")
)

// get returns a valid token. At 80 % of its life one fetch begins beside the callers.
func (s *tokenSource) get(ctx context.Context) (*token, error) {
	s.mu.Lock()
	now := s.clock.Monotonic()
	valid := s.token
	if valid != nil && now >= valid.end {
		valid = nil
	}
	if (valid == nil || now >= valid.renewAt) && s.fetching == nil && now >= s.notBefore {
		s.fetching = &fetch{done: make(chan struct{})}
		go s.run(s.fetching) //nolint:contextcheck // it must outlive the caller that began it
	}
	f := s.fetching
	var err error
	switch {
	case valid != nil:
	case f == nil:
		err = fmt.Errorf("accounthttp: no token, the next is fetched later: %w", s.last)
	case s.waiters >= tokenWaitersMax:
		err = errTokenWaiters
	default:
		s.waiters++
	}
	s.mu.Unlock()
	if valid != nil || err != nil {
		return valid, err
	}
	err = env.Wait(ctx, f.done)
	s.mu.Lock()
	s.waiters--
	s.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("accounthttp: wait for a token: %w", err)
	}
	return f.token, f.err
}

// run fetches a token for all that wait.
func (s *tokenSource) run(f *fetch) {
	ctx, cancel := s.clock.WithTimeout(context.Background(), tokenTimeout)
	defer cancel()
	var wait time.Duration
	f.token, wait, f.err = s.fetch(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fetching = nil
	if f.err == nil {
		s.token, s.failures = f.token, 0
	} else {
		s.last = f.err
		s.notBefore = s.clock.Monotonic() + max(tokenBackoff(s.failures), min(wait, tokenBackoffMax))
		s.failures++
	}
	close(f.done)
}

func tokenBackoff(failures int) time.Duration {
	return min(tokenBackoffMin<<min(failures, 10), tokenBackoffMax)
}

// observe records how a request with the token was answered. 401 drops it. If a token was
// never accepted, the one after it waits, except for the first such token: a processor may
// have lost all tokens.
func (s *tokenSource) observe(t *token, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if status != http.StatusUnauthorized {
		t.worked, s.refused = true, 0
		return
	}
	if s.token != t {
		return // dropped already
	}
	s.token = nil
	if t.worked {
		return
	}
	if s.refused > 0 {
		s.notBefore, s.last = s.clock.Monotonic()+tokenBackoff(s.refused-1), errTokenRefused
	}
	s.refused++
}

// fetch asks the token endpoint once; wait is what it names in Retry-After.
func (s *tokenSource) fetch(ctx context.Context) (t *token, wait time.Duration, err error) {
	body, media, err := s.credentials.request()
	if err != nil {
		return nil, 0, err
	}
	request, err := newRequest(ctx, http.MethodPost, s.credentials.URL, body)
	if err != nil {
		return nil, 0, err
	}
	request.Header.Set("Content-Type", media)
	request.SetBasicAuth(url.QueryEscape(s.credentials.ID), url.QueryEscape(s.credentials.Secret))
	begin := s.clock.Monotonic()
	result := exchange(s.transport, request, tokenAnswerLimit)
	if result.Answer == nil {
		return nil, 0, fmt.Errorf("fetch token: %w", result.Cause)
	}
	if result.status != http.StatusOK {
		code := oauthError(result.Answer.Body)
		err := fmt.Errorf("fetch token: status %d%s", result.status, code)
		if isRefusal(result.status) || code == " invalid_client" || code == " unauthorized_client" {
			err = fmt.Errorf("%w: %w", err, processor.ErrCredentials)
		}
		return nil, retryAfter(result.header, s.clock.Now()), err
	}
	value, life, err := parseToken(result.Answer.Body)
	if err != nil {
		return nil, 0, err
	}
	return &token{value: value, renewAt: begin + life*8/10, end: begin + life}, 0, nil
}

// request is the body of the request for a token, and its type.
func (c *Credentials) request() (body []byte, media string, err error) {
	if !c.JSON {
		form := url.Values{"grant_type": {"client_credentials"}}
		if c.Scope != "" {
			form.Set("scope", c.Scope)
		}
		return []byte(form.Encode()), "application/x-www-form-urlencoded", nil
	}
	body, err = json.Marshal(struct {
		GrantType string `json:"grant_type"`
		Scope     string `json:"scope,omitempty"`
	}{"client_credentials", c.Scope})
	if err != nil {
		return nil, "", errors.New("accounthttp: the request for a token cannot be written")
	}
	return body, "application/json", nil
}

// oauthErrors are the codes of RFC 6749, section 5.2.
var oauthErrors = []string{"invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type", "invalid_scope"}

// oauthError is " " and the code of an error answer, if it is a known one.
func oauthError(body []byte) string {
	var answer struct {
		Error string `json:"error"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || !slices.Contains(oauthErrors, answer.Error) {
		return ""
	}
	return " " + answer.Error
}

// parseToken reads the answer of a token endpoint: RFC 6749, section 5.1. Without
// expires_in a token lives a minute.
func parseToken(body []byte) (value string, life time.Duration, err error) {
	var answer struct {
		AccessToken string `json:"access_token"`
		TokenType   string `json:"token_type"`
		ExpiresIn   *int64 `json:"expires_in"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || !isBearer(answer.TokenType) || !isTokenValue(answer.AccessToken) {
		return "", 0, errTokenForm
	}
	if answer.ExpiresIn == nil {
		return answer.AccessToken, tokenLifeDefault, nil
	}
	if *answer.ExpiresIn <= 0 {
		return "", 0, errTokenForm
	}
	return answer.AccessToken, time.Duration(min(*answer.ExpiresIn, int64(tokenLifeMax/time.Second))) * time.Second, nil
}

// isBearer accepts a missing type, as some processors send none.
func isBearer(tokenType string) bool {
	return tokenType == "" || strings.EqualFold(tokenType, "Bearer")
}

// isTokenValue reports whether s can stand in a header: visible ASCII.
func isTokenValue(s string) bool {
	if s == "" || len(s) > tokenValueMax {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
