package httpapi

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/wire"
)

// bodyMax is the maximum size of a body, in bytes.
const bodyMax = 64 << 10

// smallBody is the size up to which the buffer of a body grows as it arrives, and up to which any
// number of bodies is decoded at a time.
const smallBody = 8 << 10

// idempotencyKeyMax is the maximum length of an Idempotency-Key, in characters.
const idempotencyKeyMax = 255

var (
	errBodyTooLarge = problem.New(problem.BodyTooLarge, "The body is larger than 64 KiB.")
	errNotFound     = problem.New(problem.NotFound, "Resource not found.")
)

var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// readJSON reads the body and decodes it. decode must not keep the body.
func readJSON[T any](c *call, decode func(body []byte) (T, *problem.Error)) (decoded T, invalid *problem.Error) {
	b := bodies.Get().(*bytes.Buffer)
	defer bodies.Put(b)
	b.Reset()
	if invalid := c.readBody(b); invalid != nil {
		return decoded, invalid
	}
	if b.Len() > smallBody {
		c.memory.decoding <- struct{}{}
		defer func() { <-c.memory.decoding }()
	}
	return decode(b.Bytes())
}

func (c *call) readBody(b *bytes.Buffer) *problem.Error {
	return c.readJSONUpTo(b, bodyMax, errBodyTooLarge)
}

// readJSONUpTo reads a body of JSON of at most that many bytes, else the error is tooLarge.
func (c *call) readJSONUpTo(b *bytes.Buffer, most int64, tooLarge *problem.Error) *problem.Error {
	if _, invalid := c.mediaType(mediaJSON); invalid != nil {
		return invalid
	}
	return c.readUpTo(b, most, tooLarge)
}

// readUpTo reads a body of at most that many bytes, else the error is tooLarge.
func (c *call) readUpTo(b *bytes.Buffer, most int64, tooLarge *problem.Error) *problem.Error {
	if c.r.ContentLength > most {
		c.w.Header().Set("Connection", "close") // instead of reading all of it
		return tooLarge
	}
	body := http.MaxBytesReader(c.w, &countedBody{c.r.Body, c}, most)
	_, err := b.ReadFrom(io.LimitReader(body, smallBody))
	if err == nil && b.Len() == smallBody { // a buffer that doubles would end at twice the largest body
		b.Grow(bodyMax - smallBody + bytes.MinRead)
		_, err = b.ReadFrom(body)
	}
	if _, exceeded := errors.AsType[*http.MaxBytesError](err); exceeded {
		return tooLarge
	}
	if problem.Is(err, problem.Overloaded) {
		return problem.From(err)
	}
	if err != nil {
		return problem.New(problem.MalformedJSON, "The body is incomplete.").With(err)
	}
	return nil
}

// Bodies of refused requests. net/http reads the shorter ones; of a longer one no more is read
// than the largest valid body and as much again, within the server's read timeout.
const (
	discardFrom = 256 << 10
	discardMax  = 2 * batchBodyMax
)

// discardBody reads what is left of a large body after its answer was sent. If the connection
// were closed instead, a client that sends all of its request before it reads would see a reset
// connection and no answer.
func (c *call) discardBody() {
	if c.r.ContentLength < discardFrom && c.r.ContentLength >= 0 || c.r.Header.Get("Expect") != "" {
		return // who expects 100 has not sent it
	}
	if http.NewResponseController(c.w).Flush() == nil {
		_, _ = io.CopyN(io.Discard, c.r.Body, discardMax) // the answer is sent; nobody needs the error
	}
}

const (
	mediaJSON = "application/json"
	mediaCSV  = "text/csv"
)

// mediaType is the type that the headers declare for the body, in plain UTF-8: one of those that
// are allowed. The error has kind unsupported_media_type and says what differs.
func (c *call) mediaType(allowed ...string) (string, *problem.Error) {
	types, refuse := c.r.Header["Content-Type"], func(detail string) (string, *problem.Error) {
		return "", problem.New(problem.UnsupportedMediaType, detail)
	}
	send := "Send Content-Type: " + strings.Join(allowed, " or ")
	switch {
	case len(c.r.Header["Content-Encoding"]) > 0:
		return refuse("Send the body without Content-Encoding.")
	case len(types) == 0:
		return refuse(send + ". It is missing.")
	case len(types) > 1:
		return refuse(send + " exactly once.")
	case types[0] == mediaJSON:
		return mediaJSON, nil
	}
	media, params, err := mime.ParseMediaType(types[0])
	switch {
	case err != nil:
		return refuse(send + ". What was sent is not a media type.")
	case !slices.Contains(allowed, media):
		return refuse(send + ". Another type was sent.")
	}
	if charset := strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(params["charset"])); charset != "" && charset != "utf8" {
		return refuse("Send the body in UTF-8: Content-Type has another charset.")
	}
	if media == mediaCSV && params["header"] == "absent" {
		return refuse("Send CSV with a header line: Content-Type says that there is none.")
	}
	return media, nil
}

// urlRules are the rules of URLs, as the sender of webhooks has them.
func (a *API) urlRules() wire.Rules {
	if a.allowHTTP {
		return wire.Rules{AllowHTTP: true}
	}
	return wire.Rules{WebhookPorts: env.WebhookPorts}
}

// decoder returns the decoder for the body of this request.
func (a *API) decoder(c *call) (*wire.Decoder, error) {
	key, err := c.idempotencyKey()
	if err != nil {
		return nil, err
	}
	rules := a.urlRules()
	rules.ReturnHosts, rules.Today = c.merchant.ReturnHosts, payment.DayOf(a.env.Clock.Now())
	if c.anonymous && !a.anyWebhookHost {
		rules.WebhookHosts = append([]string{}, c.merchant.WebhookHosts...)
	}
	for _, r := range c.merchant.Routes {
		if p := a.processors.Find(r.Account); p != nil && p.Profile().ChecksDocuments {
			rules.ChecksDocuments = true
		}
	}
	return &wire.Decoder{Merchant: c.merchant.ID, Rules: rules, MAC: a.fingerprintMAC, IdempotencyKey: key, Actor: c.actor(), Public: c.anonymous}, nil
}

// idempotencyKey reads the header Idempotency-Key, which is stored without effect; "" if it
// was not sent.
func (c *call) idempotencyKey() (string, error) {
	keys := c.r.Header["Idempotency-Key"]
	invalid := problem.FieldError{Field: "Idempotency-Key"}
	switch {
	case len(keys) == 0:
		return "", nil
	case len(keys) > 1:
		invalid.Code, invalid.Detail = problem.CodeNotAllowed, "must appear only once"
		return "", problem.New(problem.DuplicateField, "Duplicate header.").WithFields(invalid)
	case keys[0] == "":
		invalid.Code, invalid.Detail = problem.CodeTooShort, "must not be empty"
	case !utf8.ValidString(keys[0]):
		invalid.Code, invalid.Detail = problem.CodeInvalidFormat, "must be valid UTF-8"
	case utf8.RuneCountInString(keys[0]) > idempotencyKeyMax:
		invalid.Code, invalid.Detail = problem.CodeTooLong, "must have at most "+strconv.Itoa(idempotencyKeyMax)+" characters"
	case wire.ContainsCardNumber(keys[0]):
		invalid.Code, invalid.Detail = problem.CodeNotAllowed, wire.CardDetail
	default:
		return keys[0], nil
	}
	return "", problem.New(problem.ValidationFailed, "Invalid header.").WithFields(invalid)
}

// id parses the id in the path; otherwise not_found.
func (c *call) id() (payment.ID, error) {
	id, err := payment.ParseID(c.r.PathValue("id"))
	if err != nil {
		return id, errNotFound
	}
	return id, nil
}
