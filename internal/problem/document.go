package problem

import (
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
)

// MediaType is the content type of a problem document (RFC 9457, section 6.1).
const MediaType = "application/problem+json"

// documentation explains each kind: the "type" of a document begins with it.
const documentation = "/docs/errors#"

// retryAfterDefault is the Retry-After of a temporary error that sets none.
const retryAfterDefault = time.Second

type document struct {
	Type      string       `json:"type"`
	Title     string       `json:"title"`
	Status    int          `json:"status"`
	Detail    string       `json:"detail,omitempty"`
	Code      Kind         `json:"code"`
	Limit     string       `json:"limit,omitempty"`
	RequestID string       `json:"requestId,omitempty"`
	Errors    []FieldError `json:"errors,omitempty"`
	Truncated bool         `json:"errorsTruncated,omitzero"`
}

// Document renders e as a problem document (RFC 9457). requestID lets the
// operator find the request in the log.
func (e *Error) Document(requestID string) []byte {
	status, title := e.Kind.row()
	body, err := json.Marshal(document{
		Type: documentation + string(e.Kind), Title: title, Status: status, Detail: e.Detail,
		Code: e.Kind, Limit: e.Limit, RequestID: requestID, Errors: e.Fields, Truncated: e.Truncated,
	})
	if err != nil {
		// Only invalid UTF-8 in a field's name fails: leave the fields out.
		bare := Error{Kind: e.Kind}
		return bare.Document(requestID)
	}
	return body
}

// retryAfter is the Retry-After of e in seconds, rounded up; 0 for none.
func (e *Error) retryAfter() int64 {
	wait := e.RetryAfter
	if wait <= 0 {
		switch e.Kind {
		case RateLimited, Overloaded, Unavailable:
			wait = retryAfterDefault
		default:
			return 0
		}
	}
	return seconds(wait)
}

// seconds rounds up to seconds, for headers.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// policy is the header RateLimit-Policy of q.
func (q *Quota) policy() string {
	text := `"` + q.Name + `";q=` + strconv.Itoa(q.Most)
	if q.Window == 0 {
		return text + `;qu="concurrent-requests"`
	}
	return text + ";w=" + strconv.FormatInt(seconds(q.Window), 10)
}

// Write answers a request with e: status, Retry-After, RateLimit and document.
func Write(w http.ResponseWriter, e *Error, requestID string) {
	body := e.Document(requestID)
	header := w.Header()
	header.Set("Content-Type", MediaType)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	after := strconv.FormatInt(e.retryAfter(), 10)
	if after != "0" {
		header.Set("Retry-After", after)
	}
	if e.Quota.Name != "" {
		header.Set("RateLimit-Policy", e.Quota.policy())
		header.Set("RateLimit", `"`+e.Quota.Name+`";r=0;t=`+after)
	}
	w.WriteHeader(e.Kind.Status())
	_, _ = w.Write(body) // the client may have disconnected
}
