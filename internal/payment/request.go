package payment

// Field is a request's member that may be absent; null is the same as absent.
type Field[T any] struct {
	V   T
	Set bool
}

// Some is a field that was sent.
func Some[T any](v T) Field[T] { return Field[T]{v, true} }

// PayinRequest is the body of POST /payin, with the types that its members
// must have; values are checked by Check.
type PayinRequest struct {
	Method       Field[string]
	Amount       Field[int64] // cents
	ReferenceID  Field[string]
	WebhookURL   Field[string]
	Customer     Field[CustomerRequest]
	Items        Field[[]ItemRequest]
	ExpiresIn    Field[int64]  // seconds, PIX
	DueDate      Field[string] // YYYY-MM-DD in São Paulo, BOLETO
	Installments Field[int64]  // the most that the payer may choose, CREDIT_CARD
	Description  Field[string]
	Metadata     Field[map[string]string]
	ReturnURL    Field[string]

	// Personal is customer and items as they were sent.
	Personal PersonalData
	// Fingerprint tells this request from another under the same reference.
	Fingerprint Fingerprint
	// IdempotencyKey is the header of that name, kept and otherwise ignored.
	IdempotencyKey string
}

// CustomerRequest is who pays.
type CustomerRequest struct {
	Name     Field[string]
	Email    Field[string]
	Document Field[string]
	Phone    Field[string]
	Address  Field[AddressRequest]
}

// AddressRequest is where the customer lives.
type AddressRequest struct {
	Street       Field[string]
	Number       Field[string]
	Complement   Field[string]
	Neighborhood Field[string]
	City         Field[string]
	State        Field[string]
	ZipCode      Field[string]
	Country      Field[string]
}

// ItemRequest is one line of what is bought.
type ItemRequest struct {
	Title     Field[string]
	Quantity  Field[int64]
	UnitPrice Field[int64] // cents
	Tangible  Field[bool]
}

// PayoutRequest is the body of POST /payout.
type PayoutRequest struct {
	Amount              Field[int64] // cents
	PIXKey              Field[string]
	PIXKeyType          Field[string]
	BeneficiaryName     Field[string]
	BeneficiaryDocument Field[string]
	WebhookURL          Field[string]
	ReferenceID         Field[string]

	// NormalKey is the Pix key as it goes to a processor, set by Check.
	NormalKey      string
	Fingerprint    Fingerprint
	IdempotencyKey string
}

// Rules are what Check must know beyond the request itself.
type Rules struct {
	// ChecksDocuments: check digits must be right (the processor's rule).
	ChecksDocuments bool
	// AllowHTTP lets webhookUrl be http.
	AllowHTTP bool
	// Methods that the merchant may use; nil allows all.
	Methods []Method
	// ReturnHosts are the hosts that returnUrl may name.
	ReturnHosts []string
	// Today is the day in São Paulo, YYYY-MM-DD.
	Today string
}

// FieldError is one faulty member of a request. The value is never repeated.
type FieldError struct {
	Field  string `json:"field"` // customer.address.zipCode, items[2].title
	Code   string `json:"code"`
	Detail string `json:"detail"`
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
