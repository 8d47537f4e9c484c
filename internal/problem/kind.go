// Package problem defines the kinds of errors, and the one table of their HTTP status
// and title; it imports no other package of this module.
//
// Only an [Error] is shown to a client. Any other error is answered as
// internal_error, without its cause. docs/errors.md explains each kind.
package problem

import "net/http"

// Kind is the kind of an error: a stable code in snake_case, the member "code"
// of a problem document.
type Kind string

// The kinds.
const (
	MalformedJSON        Kind = "malformed_json"
	MalformedCSV         Kind = "malformed_csv"
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
	RefundNotPossible    Kind = "refund_not_possible"
	MethodNotEnabled     Kind = "method_not_enabled"
	RateLimited          Kind = "rate_limited"
	InternalError        Kind = "internal_error"
	ProcessorRefused     Kind = "processor_refused"
	Overloaded           Kind = "overloaded"
	Unavailable          Kind = "unavailable"
	ProcessorTimeout     Kind = "processor_timeout"
)

// table gives each kind its HTTP status and title.
var table = []struct {
	kind   Kind
	status int
	title  string
}{
	{MalformedJSON, http.StatusBadRequest, "Malformed JSON"},
	{MalformedCSV, http.StatusBadRequest, "Malformed CSV"},
	{UnknownField, http.StatusBadRequest, "Unknown field"},
	{DuplicateField, http.StatusBadRequest, "Duplicate field"},
	{Unauthorized, http.StatusUnauthorized, "Missing or invalid credentials"},
	{ForbiddenScope, http.StatusForbidden, "Insufficient scope"},
	{ForbiddenIP, http.StatusForbidden, "IP address not allowed"},
	{NotFound, http.StatusNotFound, "Not found"},
	{MethodNotAllowed, http.StatusMethodNotAllowed, "Method not allowed"},
	{BodyTooLarge, http.StatusRequestEntityTooLarge, "Request body too large"},
	{UnsupportedMediaType, http.StatusUnsupportedMediaType, "Unsupported media type"},
	{ReferenceConflict, http.StatusConflict, "Reference already used by a different request"},
	{InvalidState, http.StatusConflict, "Not allowed in the order's current status"},
	{ValidationFailed, http.StatusUnprocessableEntity, "Validation failed"},
	{InsufficientBalance, http.StatusUnprocessableEntity, "Insufficient balance"},
	{LimitExceeded, http.StatusUnprocessableEntity, "Limit exceeded"},
	{RefundNotPossible, http.StatusUnprocessableEntity, "Refund not possible"},
	{MethodNotEnabled, http.StatusUnprocessableEntity, "Payment method not enabled"},
	{RateLimited, http.StatusTooManyRequests, "Too many requests"},
	{InternalError, http.StatusInternalServerError, "Internal error"},
	{ProcessorRefused, http.StatusBadGateway, "Order refused by the processor"},
	{Overloaded, http.StatusServiceUnavailable, "Gateway overloaded"},
	{Unavailable, http.StatusServiceUnavailable, "Gateway unavailable"},
	{ProcessorTimeout, http.StatusGatewayTimeout, "Processor timeout"},
}

// Kinds lists every kind, ordered by HTTP status.
func Kinds() []Kind {
	kinds := make([]Kind, len(table))
	for i := range table {
		kinds[i] = table[i].kind
	}
	return kinds
}

// Status is the HTTP status of k; 500 if the table does not list it.
func (k Kind) Status() int {
	status, _ := k.row()
	return status
}

// Title is a short summary of k for people, without a full stop.
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
	return http.StatusInternalServerError, "Internal error"
}
