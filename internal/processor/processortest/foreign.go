package processortest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/processor"
)

// foreign is an answer that no processor documents.
type foreign struct {
	status int
	header http.Header
	body   string
	slow   bool // it comes byte by byte, and never ends
}

// Types of bodies.
const (
	asJSON = "application/json"
	asHTML = "text/html; charset=utf-8"
)

func answerOf(status int, contentType, body string, header ...string) foreign {
	f := foreign{status: status, body: body, header: http.Header{"Content-Type": {contentType}}}
	for i := 0; i < len(header); i += 2 {
		f.header.Set(header[i], header[i+1])
	}
	return f
}

// elsewhere is where redirects lead.
const elsewhere = "https://elsewhere.example/"

// page is a body of a proxy in between.
const page = "<html><head><title>Bad gateway</title></head><body>ok</body></html>"

// largeBody is the size of a body that is too large, in bytes: 2 MiB.
const largeBody = 2 << 20

// foreigners are answers that prove nothing, to any request.
func foreigners() map[string]foreign {
	all := map[string]foreign{
		"HTML with 200":        answerOf(200, asHTML, page),
		"HTML with 400":        answerOf(400, asHTML, page),
		"HTML with 404":        answerOf(404, asHTML, page),
		"HTML with 502":        answerOf(502, asHTML, page),
		"HTML as JSON":         answerOf(200, asJSON, page),
		"nothing":              answerOf(200, asJSON, ""),
		"null":                 answerOf(200, asJSON, "null"),
		"a list":               answerOf(200, asJSON, "[]"),
		"a number":             answerOf(200, asJSON, "7"),
		"an empty object":      answerOf(200, asJSON, "{}"),
		"half an object":       answerOf(200, asJSON, `{"id":"a","data":[{"id":"`),
		"a member twice":       answerOf(200, asJSON, `{"id":"a","id":"b"}`),
		"other types":          answerOf(200, asJSON, `{"id":{},"status":[],"value":"x","valor":1,"txid":7,"externalId":false,"data":"x","hasMore":"no"}`),
		"not UTF-8":            answerOf(200, asJSON, "{\"id\":\"\xff\xfe\"}"),
		"NUL":                  answerOf(200, asJSON, "\x00\x00\x00"),
		"deep":                 answerOf(200, asJSON, strings.Repeat("[", 20_000)),
		"2 MB":                 answerOf(200, asJSON, `{"id":"`+strings.Repeat("a", largeBody)+`"}`),
		"2 MB, an error":       answerOf(400, asJSON, `{"errors":[{"code":"`+strings.Repeat("a", largeBody)+`"}]}`),
		"compressed":           answerOf(200, asJSON, "{}", "Content-Encoding", "gzip"),
		"no body, 204":         answerOf(204, asJSON, ""),
		"400 without a code":   answerOf(400, asJSON, "{}"),
		"403 of a proxy":       answerOf(403, asHTML, page),
		"404 without a code":   answerOf(404, asJSON, "{}"),
		"408":                  answerOf(408, asJSON, "{}"),
		"418":                  answerOf(418, asJSON, "{}"),
		"500":                  answerOf(500, asJSON, "{}"),
		"599":                  answerOf(599, asJSON, ""),
		"slow by the byte":     {status: 200, header: http.Header{"Content-Type": {asJSON}}, body: `{"id":"` + strings.Repeat("a", 50), slow: true},
		"slow, with an error":  {status: 400, header: http.Header{"Content-Type": {asJSON}}, body: `{"errors":[`, slow: true},
		"a number that is big": answerOf(200, asJSON, `{"value":99999999999999999999999999,"amount":1e400,"balance":-1e99}`),
	}
	for _, status := range []int{301, 302, 303, 307, 308} {
		all[fmt.Sprint("a redirect, ", status)] = answerOf(status, asJSON, "{}", "Location", elsewhere)
	}
	return all
}

// stranger is a test server that gives one answer to all that is not a greeting.
type stranger struct {
	answer  foreign
	greet   func(r *http.Request) (status int, body string)
	cancel  context.CancelFunc
	effects int // requests that may have had an effect
	strayed bool
}

// RoundTrip implements [http.RoundTripper].
func (s *stranger) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return nil, err
		}
		_ = r.Body.Close()
	}
	s.strayed = s.strayed || strings.HasPrefix(r.URL.String(), elsewhere)
	if s.greet != nil {
		if status, body := s.greet(r); status != 0 {
			return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {asJSON}}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: -1}, nil
		}
	}
	if r.Method != http.MethodGet {
		s.effects++
	}
	body := io.Reader(strings.NewReader(s.answer.body))
	if s.answer.slow {
		body = io.MultiReader(iotest.OneByteReader(body), readerFunc(func([]byte) (int, error) {
			s.cancel()
			return 0, r.Context().Err()
		}))
	}
	return &http.Response{StatusCode: s.answer.status, Header: s.answer.header.Clone(), Body: io.NopCloser(body), ContentLength: -1}, nil
}

type readerFunc func(p []byte) (int, error)

// Read implements [io.Reader].
func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// errShown means that a call did not say why it has no answer.
var errShown = errors.New("no cause")

// testForeignAnswers gives every call every foreign answer: it is unknown, an effect is requested
// once, a redirect is not followed, a list has nothing, and no cause has a secret in it.
func testForeignAnswers(t *testing.T, h Harness) {
	for name, answer := range foreigners() {
		t.Run(name, func(t *testing.T) {
			s := &stranger{answer: answer, greet: h.Greet}
			p := h.Open(t, s)
			for call, run := range h.calls(p) {
				ctx, cancel := context.WithCancel(t.Context())
				s.effects, s.cancel = 0, cancel
				unknown, cause := run(ctx)
				cancel()
				if cause == nil {
					cause = errShown
				}
				if !unknown || errors.Is(cause, errShown) {
					t.Errorf("%s: unknown %v, because of: %v", call, unknown, cause)
				}
				if s.effects > 1 || s.strayed {
					t.Errorf("%s: %d requests, elsewhere: %v", call, s.effects, s.strayed)
				}
				for _, secret := range append([]string{"maria@example.com", "Maria da Silva", "52998224725"}, h.Secrets...) {
					if strings.Contains(cause.Error(), secret) {
						t.Errorf("%s: the cause has %q: %v", call, secret, cause)
					}
				}
			}
		})
	}
}

// calls are all calls that a processor takes. Each reports whether its answer proves nothing, and
// why.
func (h Harness) calls(p processor.Processor) map[string]func(ctx context.Context) (unknown bool, cause error) {
	all := map[string]func(ctx context.Context) (bool, error){}
	if c, ok := p.(processor.Charger); ok {
		r := h.chargeRequest(p.Profile().Methods[0])
		all["charge"] = func(ctx context.Context) (bool, error) {
			a := c.Charge(ctx, r, willing)
			return a.Outcome == processor.Unknown && a.Failure == nil, a.Cause
		}
		all["query of a charge"] = func(ctx context.Context) (bool, error) {
			a := c.QueryCharge(ctx, r.ExternalID)
			return a.Lookup == processor.LookupUnknown && len(a.Payments)+len(a.Disputes) == 0, a.Cause
		}
		if c, ok := p.(processor.ChargeCanceler); ok {
			all["cancel"] = func(ctx context.Context) (bool, error) {
				a := c.CancelCharge(ctx, processor.CancelRequest{ExternalID: r.ExternalID, ProcessorID: "pay_1", Method: r.Method}, willing)
				return a.Outcome == processor.Unknown && !a.NotFound, a.Cause
			}
		}
	}
	moved := func(a processor.TransferAnswer) (bool, error) {
		return a.Outcome == processor.Unknown && a.Failure == nil, a.Cause
	}
	asked := func(a processor.TransferReport) (bool, error) {
		return a.Lookup == processor.LookupUnknown && a.Failure == nil, a.Cause
	}
	if v, ok := p.(processor.Transferrer); ok {
		r := h.transferRequest()
		all["transfer"] = func(ctx context.Context) (bool, error) { return moved(v.Transfer(ctx, r, willing)) }
		all["query of a transfer"] = func(ctx context.Context) (bool, error) { return asked(v.QueryTransfer(ctx, r.ExternalID)) }
		all["search of a transfer"] = func(ctx context.Context) (bool, error) {
			return asked(processor.FindTransfer(ctx, v, processor.Ref{ExternalID: r.ExternalID, ProcessorID: "t-1", Since: h.Clock.Now()}))
		}
	}
	if v, ok := p.(processor.Refunder); ok {
		r := processor.RefundRequest{ExternalID: h.NewID(), PaymentID: "E9999999920261120183000000000001", Amount: money.Cents(1_00)}
		all["refund"] = func(ctx context.Context) (bool, error) { return moved(v.Refund(ctx, r, willing)) }
		all["query of a refund"] = func(ctx context.Context) (bool, error) { return asked(v.QueryRefund(ctx, r.PaymentID, r.ExternalID)) }
	}
	if v, ok := p.(processor.Defender); ok {
		r := h.defense(&processor.Dispute{ID: cmp.Or(h.DisputeID, "d-1")})
		all["defense"] = func(ctx context.Context) (bool, error) { return moved(v.Defend(ctx, r, willing)) }
		all["query of a defense"] = func(ctx context.Context) (bool, error) { return asked(v.QueryDefense(ctx, r)) }
	}
	if v, ok := p.(processor.Feeder); ok {
		for feed := range v.Feeds() {
			all["list of "+string(feed)] = func(ctx context.Context) (bool, error) {
				page, err := v.Read(ctx, feed, "")
				return len(page.Facts) == 0 && err != nil, err
			}
		}
	}
	if v, ok := p.(processor.BalanceReader); ok {
		all["balance"] = func(ctx context.Context) (bool, error) {
			b, err := v.Balance(ctx)
			return b.Amount == 0 && err != nil, err
		}
	}
	if v, ok := p.(processor.Installer); ok {
		all["install"] = func(ctx context.Context) (bool, error) {
			err := v.Install(ctx, "https://gateway.invalid/inbound/a/token")
			return err != nil, err
		}
	}
	return all
}
