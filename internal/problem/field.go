package problem

// FieldError is one invalid field of a request. It never repeats the value.
type FieldError struct {
	Field  string `json:"field"` // customer.address.zipCode, items[2].title
	Code   string `json:"code"`
	Detail string `json:"detail"` // for people; follows the field's name in a sentence
}

// Codes of field errors.
const (
	CodeRequired      = "required"
	CodeInvalidType   = "invalid_type"
	CodeInvalidFormat = "invalid_format"
	CodeOutOfRange    = "out_of_range"
	CodeTooShort      = "too_short"
	CodeTooLong       = "too_long"
	CodeNotAllowed    = "not_allowed"
	CodeUnknownField  = "unknown_field"
)
