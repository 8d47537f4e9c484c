package problem

import (
	"context"
	"errors"
	"slices"
	"time"
)

// Error is an error that a client may see. Detail and Fields are shown; Cause
// goes only to the operator's log.
type Error struct {
	Kind   Kind
	Detail string // a sentence for people; repeats no value of the request
	// Fields are the invalid fields of the request.
	Fields []FieldError
	// Truncated means that there are more invalid fields than Fields lists.
	Truncated bool
	// Limit is the name of the limit that the request exceeds.
	Limit string
	// RetryAfter is how long to wait before a retry; zero sets none.
	RetryAfter time.Duration
	Quota      Quota // of an error of kind rate_limited, if its headers do not name another
	Cause      error
}

// Quota is a limit that has nothing left, for the headers of a response
// (draft-ietf-httpapi-ratelimit-headers-10).
type Quota struct {
	Name   string
	Most   int
	Window time.Duration // 0: Most at once
}

// New returns an error of the kind. detail is shown to the client.
func New(kind Kind, detail string) *Error {
	return &Error{Kind: kind, Detail: detail}
}

// With returns a copy of e that was caused by cause.
func (e *Error) With(cause error) *Error {
	c := *e
	c.Cause = cause
	return &c
}

// WithFields returns a copy of e with more invalid fields.
func (e *Error) WithFields(fields ...FieldError) *Error {
	c := *e
	c.Fields = slices.Concat(e.Fields, fields)
	return &c
}

// WithLimit returns a copy of e about the limit of a name.
func (e *Error) WithLimit(name string) *Error {
	c := *e
	c.Limit = name
	return &c
}

// WithRetryAfter returns a copy of e that makes the client retry after d.
func (e *Error) WithRetryAfter(d time.Duration) *Error {
	c := *e
	c.RetryAfter = d
	return &c
}

// WithQuota returns a copy of e that names the quota which has nothing left for d.
func (e *Error) WithQuota(q Quota, d time.Duration) *Error {
	c := *e
	c.Quota, c.RetryAfter = q, d
	return &c
}

// Error is the text for operators: kind, detail and cause.
func (e *Error) Error() string {
	text := string(e.Kind)
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Is reports whether err is, or wraps, an Error of the kind.
func Is(err error, kind Kind) bool {
	if err == nil { // errors.As allocates, and most calls have no error
		return false
	}
	var e *Error
	return errors.As(err, &e) && e.Kind == kind
}

// From returns err as an error that can be shown: an Error is returned unchanged,
// an expired or canceled context is unavailable, and any other error is
// internal_error, which hides its cause. From(nil) is nil.
func From(err error) *Error {
	var e *Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		return e
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return New(Unavailable, "The request took too long. Send the same request again.").With(err)
	default:
		return New(InternalError, "An unexpected error occurred. Quote the requestId when you contact the operator.").With(err)
	}
}
