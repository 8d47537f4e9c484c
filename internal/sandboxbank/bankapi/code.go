package bankapi

import "net/http"

// Code is a stable reason of a refusal or failure, and the code of the bank's
// error answers. As an error it is such an answer.
type Code string

// Why the bank refuses or fails a charge, a transfer or a refund. If the SPI has
// a code for it, the text names that code (ISO 20022 external status reasons of
// pacs.002).
const (
	CodeChargeRefused   Code = "charge_refused"
	CodeChargeFailed    Code = "charge_failed"
	CodeCardDeclined    Code = "card_declined"
	CodeAccountInvalid  Code = "account_invalid"
	CodeSettleAborted   Code = "settlement_aborted"
	CodeRefundRefused   Code = "refund_refused"
	CodePaymentUnknown  Code = "payment_not_found"
	CodeRefundTooMuch   Code = "refund_exceeds_payment"
	CodePaymentDisputed Code = "payment_disputed"
	CodeDisputeClosed   Code = "dispute_closed"
	CodeConsentRefused  Code = "consent_refused"
	CodeConsentMissing  Code = "consent_missing"
)

// Why an attempt by card fails. They stand for issuers' codes in ABECS, Normativo
// 21.
const (
	CodeInsufficientFunds Code = "insufficient_funds"
	CodeCardExpired       Code = "card_expired"
	CodeCardInvalid       Code = "invalid_card"
	CodeCardCodeInvalid   Code = "invalid_cvv"
	CodeDoNotHonor        Code = "do_not_honor"
	CodeSuspectedFraud    Code = "suspected_fraud"
	CodeLostOrStolen      Code = "lost_or_stolen"
	CodeCardBlocked       Code = "card_blocked"
	CodeLimitExceeded     Code = "limit_exceeded"
	CodeNoInstallments    Code = "installments_not_allowed"
	CodeIssuerUnavailable Code = "issuer_unavailable"
	CodeProcessingError   Code = "processing_error"
	CodeNotAuthenticated  Code = "authentication_failed"
	CodeAnalysisRefused   Code = "analysis_refused"
)

// Why a call of the bank has no effect, beyond those above.
const (
	CodeRequestInvalid   Code = "request_invalid"
	CodeChargeUnknown    Code = "charge_not_found"
	CodeTransferUnknown  Code = "transfer_not_found"
	CodeRefundUnknown    Code = "refund_not_found"
	CodeDisputeUnknown   Code = "dispute_not_found"
	CodeDefenseUnknown   Code = "defense_not_found"
	CodeContentDiffers   Code = "content_differs"
	CodeStateForbids     Code = "invalid_state"
	CodeUnauthorized     Code = "unauthorized"
	CodeNotFound         Code = "not_found"
	CodeInternal         Code = "internal_error"
	CodeQueryRefused     Code = "query_refused"
	CodeNotSent          Code = "not_sent"
	CodeTooManyRequests  Code = "too_many_requests"
	CodeIDInUse          Code = "id_in_use"
	CodeMediaUnsupported Code = "unsupported_media_type"
	CodeBodyTooLarge     Code = "body_too_large"
)

// texts are the messages for people. None contains personal data.
var texts = map[Code]string{
	CodeChargeRefused: "The bank refused to register the charge.",
	CodeChargeFailed:  "The bank ended the charge without a payment.",

	CodeCardDeclined:      "The card issuer declined the payment. Another card may be used.",
	CodeInsufficientFunds: "The card has not enough funds or limit.",
	CodeCardExpired:       "The card has expired.",
	CodeCardInvalid:       "The card is invalid.",
	CodeCardCodeInvalid:   "The card's security code is wrong.",
	CodeDoNotHonor:        "The card issuer does not authorise the payment.",
	CodeSuspectedFraud:    "The card issuer suspects fraud.",
	CodeLostOrStolen:      "The card was reported lost or stolen.",
	CodeCardBlocked:       "The card is blocked.",
	CodeLimitExceeded:     "The card was used too often or for too much.",
	CodeNoInstallments:    "The card allows no instalments.",
	CodeIssuerUnavailable: "The card issuer did not answer.",
	CodeProcessingError:   "The payment could not be processed.",
	CodeNotAuthenticated:  "The payer did not confirm the payment.",
	CodeAnalysisRefused:   "The payment was refused after analysis.",

	CodeAccountInvalid:  "The receiver's account number is invalid or does not exist (AC03).",
	CodeSettleAborted:   "The settlement was aborted by a time-out in the payment system (AB03).",
	CodeRefundRefused:   "The bank refused the refund.",
	CodePaymentUnknown:  "There is no payment under this id.",
	CodeRefundTooMuch:   "The refunds of a payment may not exceed its amount.",
	CodePaymentDisputed: "The payment is disputed; its money cannot be refunded now.",
	CodeDisputeClosed:   "The dispute is decided, or its deadline has passed.",
	CodeConsentRefused:  "The account's holder did not consent to the transfer.",
	CodeConsentMissing:  "The account's holder was asked for its consent to the transfer and did not answer.",

	CodeRequestInvalid:   "The request is malformed or a value is out of range.",
	CodeChargeUnknown:    "There is no charge under this id.",
	CodeTransferUnknown:  "There is no transfer under this id.",
	CodeRefundUnknown:    "There is no refund under this id.",
	CodeDisputeUnknown:   "There is no dispute under this id.",
	CodeDefenseUnknown:   "The dispute has no answer.",
	CodeContentDiffers:   "Another request was accepted under this id before, with other content.",
	CodeStateForbids:     "Not allowed in the current state.",
	CodeUnauthorized:     "The bearer secret is missing or wrong.",
	CodeNotFound:         "Not found.",
	CodeInternal:         "Internal error of the bank. Try again later.",
	CodeQueryRefused:     "The bank does not answer queries now.",
	CodeNotSent:          "The connection is to be treated as refused.",
	CodeTooManyRequests:  "Too many requests. Send the same request again later.",
	CodeIDInUse:          "There is a request under this id already.",
	CodeMediaUnsupported: "The body must be application/json.",
	CodeBodyTooLarge:     "The body is too large.",
}

// Failure is a code with its text.
type Failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Known reports whether the bank documents the code.
func (c Code) Known() bool { return texts[c] != "" }

// Failure is the code with its text; nil if the code is empty.
func (c Code) Failure() *Failure {
	if c == "" {
		return nil
	}
	return &Failure{Code: string(c), Message: texts[c]}
}

// Problem is the body of an error answer.
type Problem struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
}

// Problem is the body of an error answer with this code.
func (c Code) Problem() Problem { return Problem{Code: c, Message: texts[c]} }

// Error implements error.
func (c Code) Error() string { return string(c) }

// Status is the HTTP status of an error answer with this code.
func (c Code) Status() int {
	switch c {
	case CodeRequestInvalid:
		return http.StatusBadRequest
	case CodeUnauthorized:
		return http.StatusUnauthorized
	case CodeChargeUnknown, CodeTransferUnknown, CodeRefundUnknown, CodeDisputeUnknown, CodeDefenseUnknown, CodeNotFound:
		return http.StatusNotFound
	case CodeTooManyRequests:
		return http.StatusTooManyRequests
	case CodeContentDiffers, CodeStateForbids, CodeIDInUse:
		return http.StatusConflict
	case CodeBodyTooLarge:
		return http.StatusRequestEntityTooLarge
	case CodeMediaUnsupported:
		return http.StatusUnsupportedMediaType
	case CodeNotSent, CodeQueryRefused:
		return http.StatusServiceUnavailable
	case CodeInternal:
		return http.StatusInternalServerError
	default: // refusals of charges, transfers and refunds
		return http.StatusUnprocessableEntity
	}
}
