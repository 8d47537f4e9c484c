package problem

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/porteira/porteira/internal/payment"
)

// Error is an error that its caller may be told about. Detail and Fields are
// shown; Cause is for the operator's log only.
type Error struct {
	Kind   Kind
	Detail string // a sentence for people; holds no value that was sent
	// Fields are the faulty members of the request.
	Fields []payment.FieldError
	// RetryAfter is when it makes sense to ask again; zero leaves it open.
	RetryAfter time.Duration
	Cause      error
}

// New returns an error of the kind. detail is shown to the caller.
func New(kind Kind, detail string) *Error {
	return &Error{Kind: kind, Detail: detail}
}

// With returns a copy of e that was caused by cause.
func (e *Error) With(cause error) *Error {
	c := *e
	c.Cause = cause
	return &c
}

// WithFields returns a copy of e that names more faulty fields.
func (e *Error) WithFields(fields ...payment.FieldError) *Error {
	c := *e
	c.Fields = slices.Concat(e.Fields, fields)
	return &c
}

// WithRetryAfter returns a copy of e that asks to be tried again after d.
func (e *Error) WithRetryAfter(d time.Duration) *Error {
	c := *e
	c.RetryAfter = d
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

// Is says whether err is, or wraps, an Error of the kind.
func Is(err error, kind Kind) bool {
	var e *Error
	return errors.As(err, &e) && e.Kind == kind
}

// From turns any error into one that can be shown: an Error is itself, a time
// that ran out is unavailable, and everything else is an internal_error that
// says nothing of its cause. From(nil) is nil.
func From(err error) *Error {
	var e *Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		return e
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return New(Unavailable, "The request was not finished in time.").With(err)
	default:
		return New(InternalError, "The request failed for a reason that is not the caller's. Its requestId tells the operator more.").With(err)
	}
}
