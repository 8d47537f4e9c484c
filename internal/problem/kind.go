// Package problem is error kinds and the one table from kind to HTTP status and problem code.
//
// Whatever a caller may be told is an [Error]; any other error is shown as
// internal_error and nothing more. docs/errors.md explains each kind.
package problem

import "net/http"

// Kind is what went wrong, as a stable code in snake_case: the member "code"
// of a problem document.
type Kind string

// The kinds.
const (
	MalformedJSON        Kind = "malformed_json"
	UnknownField         Kind = "unknown_field"
	DuplicateField       Kind = "duplicate_field"
	Unauthorized         Kind = "unauthorized"
	ForbiddenScope       Kind = "forbidden_scope"
	ForbiddenIP          Kind = "forbidden_ip"
	NotFound             Kind = "not_found"
	MethodNotAllowed     Kind = "method_not_allowed"
	BodyTooLarge         Kind = "body_too_large"
	UnsupportedMediaType Kind = "unsupported_media_type"
	ReferenceConflict    Kind = "reference_conflict"
	InvalidState         Kind = "invalid_state"
	ValidationFailed     Kind = "validation_failed"
	InsufficientBalance  Kind = "insufficient_balance"
	LimitExceeded        Kind = "limit_exceeded"
	MethodNotEnabled     Kind = "method_not_enabled"
	RateLimited          Kind = "rate_limited"
	InternalError        Kind = "internal_error"
	ProcessorRefused     Kind = "processor_refused"
	Overloaded           Kind = "overloaded"
	Unavailable          Kind = "unavailable"
	ProcessorTimeout     Kind = "processor_timeout"
)

// table is the one place where a kind gets its HTTP status and title.
var table = []struct {
	kind   Kind
	status int
	title  string
}{
	{MalformedJSON, http.StatusBadRequest, "The body is not well-formed JSON"},
	{UnknownField, http.StatusBadRequest, "The request has unknown fields"},
	{DuplicateField, http.StatusBadRequest, "The request names a field twice"},
	{Unauthorized, http.StatusUnauthorized, "Credentials are missing or wrong"},
	{ForbiddenScope, http.StatusForbidden, "The credential may not do this"},
	{ForbiddenIP, http.StatusForbidden, "The credential may not be used from this address"},
	{NotFound, http.StatusNotFound, "There is nothing here"},
	{MethodNotAllowed, http.StatusMethodNotAllowed, "The method is not allowed here"},
	{BodyTooLarge, http.StatusRequestEntityTooLarge, "The body is too large"},
	{UnsupportedMediaType, http.StatusUnsupportedMediaType, "The body is not JSON"},
	{ReferenceConflict, http.StatusConflict, "The reference belongs to a different request"},
	{InvalidState, http.StatusConflict, "The order's status does not allow this"},
	{ValidationFailed, http.StatusUnprocessableEntity, "The request has faulty fields"},
	{InsufficientBalance, http.StatusUnprocessableEntity, "The balance is not sufficient"},
	{LimitExceeded, http.StatusUnprocessableEntity, "The amount is beyond a limit"},
	{MethodNotEnabled, http.StatusUnprocessableEntity, "The payment method is not enabled"},
	{RateLimited, http.StatusTooManyRequests, "There were too many requests"},
	{InternalError, http.StatusInternalServerError, "Something went wrong on our side"},
	{ProcessorRefused, http.StatusBadGateway, "The processor refused the order"},
	{Overloaded, http.StatusServiceUnavailable, "The gateway is overloaded"},
	{Unavailable, http.StatusServiceUnavailable, "The gateway is unavailable"},
	{ProcessorTimeout, http.StatusGatewayTimeout, "The processor did not answer in time"},
}

// Kinds lists every kind, ordered by HTTP status.
func Kinds() []Kind {
	kinds := make([]Kind, len(table))
	for i := range table {
		kinds[i] = table[i].kind
	}
	return kinds
}

// Status is the HTTP status that k is answered with; 500 for a kind that is
// not in the table.
func (k Kind) Status() int {
	status, _ := k.row()
	return status
}

// Title is the sentence, without full stop, that sums k up for people.
func (k Kind) Title() string {
	_, title := k.row()
	return title
}

func (k Kind) row() (status int, title string) {
	for i := range table {
		if table[i].kind == k {
			return table[i].status, table[i].title
		}
	}
	return http.StatusInternalServerError, "Something went wrong on our side"
}
