package httpapi

import (
	"bytes"
	"errors"
	"mime"
	"net/http"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
)

// bodyMax is the largest body, in bytes.
const bodyMax = 64 << 10

// idempotencyKeyMax is the longest Idempotency-Key, in characters.
const idempotencyKeyMax = 255

var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// body reads the JSON that was sent. release gives its room back; nothing of
// the body may be used after that.
func (c *call) body() (body []byte, release func(), err error) {
	if err := c.checkMedia(); err != nil {
		return nil, nil, err
	}
	if c.r.ContentLength > bodyMax {
		c.w.Header().Set("Connection", "close") // rather than read it all
		return nil, nil, errBodyTooLarge
	}
	b := bodies.Get().(*bytes.Buffer)
	b.Reset()
	release = func() { bodies.Put(b) }
	if _, err := b.ReadFrom(http.MaxBytesReader(c.w, c.r.Body, bodyMax)); err != nil {
		release()
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			return nil, nil, errBodyTooLarge
		}
		return nil, nil, problem.New(problem.MalformedJSON, "The body did not arrive in whole.").With(err)
	}
	return b.Bytes(), release, nil
}

var (
	errBodyTooLarge = problem.New(problem.BodyTooLarge, "The body has more than 64 KiB.")
	errMediaType    = problem.New(problem.UnsupportedMediaType, "The body must be JSON in UTF-8, sent with Content-Type: application/json and without Content-Encoding.")
)

// checkMedia refuses what does not say that it is plain JSON in UTF-8.
func (c *call) checkMedia() error {
	types := c.r.Header["Content-Type"]
	if len(c.r.Header["Content-Encoding"]) > 0 || len(types) != 1 {
		return errMediaType
	}
	if types[0] == "application/json" {
		return nil
	}
	media, params, err := mime.ParseMediaType(types[0])
	if err != nil || media != "application/json" {
		return errMediaType
	}
	if charset, set := params["charset"]; set && !strings.EqualFold(charset, "utf-8") {
		return errMediaType
	}
	return nil
}

// idempotencyKey reads the header of that name, which is kept and otherwise
// without effect; "" where it was not sent.
func (c *call) idempotencyKey() (string, error) {
	keys := c.r.Header["Idempotency-Key"]
	fault := payment.FieldError{Field: "Idempotency-Key"}
	switch {
	case len(keys) == 0:
		return "", nil
	case len(keys) > 1:
		fault.Code, fault.Detail = payment.CodeNotAllowed, "must not be there twice"
		return "", problem.New(problem.DuplicateField, "A header was sent twice.").WithFields(fault)
	case keys[0] == "":
		fault.Code, fault.Detail = payment.CodeTooShort, "must not be empty"
	case !utf8.ValidString(keys[0]):
		fault.Code, fault.Detail = payment.CodeInvalidFormat, "must be text in UTF-8"
	case utf8.RuneCountInString(keys[0]) > idempotencyKeyMax:
		fault.Code, fault.Detail = payment.CodeTooLong, "must have at most 255 characters"
	default:
		return keys[0], nil
	}
	return "", problem.New(problem.ValidationFailed, "A header is faulty.").WithFields(fault)
}

// id reads the id in the path. What is no id names nothing.
func (c *call) id() (payment.ID, error) {
	id, err := payment.ParseID(c.r.PathValue("id"))
	if err != nil {
		return id, problem.New(problem.NotFound, "There is no such resource.")
	}
	return id, nil
}

// decoding is what the reading of a body by this request's merchant needs.
func (a *API) decoding(c *call) *decoding {
	rules := payment.Rules{
		AllowHTTP: a.allowHTTP, ReturnHosts: c.merchant.ReturnHosts, Today: payment.DayOf(a.env.Clock.Now()),
	}
	if p, ok := a.processors[c.merchant.Processor]; ok {
		rules.ChecksDocuments = p.Profile().ChecksDocuments
	}
	return &decoding{merchant: c.merchant.ID, rules: rules, mac: a.fingerprintMAC}
}

// bare hides from a stranger how the order of a reference differs.
func (c *call) bare(err error) error {
	if c.anonymous && problem.Is(err, problem.ReferenceConflict) {
		return problem.New(problem.ReferenceConflict, "This referenceId belongs to a different request.")
	}
	return err
}

// repeats says whether a faulty request may still be the repeat of one that
// was taken: its reference is good, and so is its form.
func repeats(fault *problem.Error, reference payment.Field[string]) bool {
	return fault.Kind.Status() == http.StatusUnprocessableEntity && reference.Set && payment.ValidReference(reference.V)
}

func (c *call) markReplayed(replayed bool) {
	if replayed {
		c.w.Header().Set("Idempotency-Replayed", "true")
	}
}
