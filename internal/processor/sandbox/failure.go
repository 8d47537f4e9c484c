package sandbox

import (
	"net/http"

	"github.com/porteira/porteira/internal/payment"
)

// failureCode is a stable reason of a refusal or failure, and the code of an
// error answer of the bank.
type failureCode string

// Why the bank refuses or fails. Where the SPI has a code for it, the text
// names that code (ISO 20022 external status reasons of pacs.002).
const (
	codeChargeRefused   failureCode = "charge_refused"
	codeChargeFailed    failureCode = "charge_failed"
	codeCardDeclined    failureCode = "card_declined"
	codeAccountInvalid  failureCode = "account_invalid"
	codeSettleAborted   failureCode = "settlement_aborted"
	codeRefundRefused   failureCode = "refund_refused"
	codePaymentUnknown  failureCode = "payment_not_found"
	codeRefundTooMuch   failureCode = "refund_exceeds_payment"
	codePaymentDisputed failureCode = "payment_disputed"
)

// Why a call of the bank has no effect, beyond those above.
const (
	codeRequestInvalid   failureCode = "request_invalid"
	codeChargeUnknown    failureCode = "charge_not_found"
	codeTransferUnknown  failureCode = "transfer_not_found"
	codeRefundUnknown    failureCode = "refund_not_found"
	codeContentDiffers   failureCode = "content_differs"
	codeStateForbids     failureCode = "invalid_state"
	codeUnauthorized     failureCode = "unauthorized"
	codeNotFound         failureCode = "not_found"
	codeInternal         failureCode = "internal_error"
	codeQueryRefused     failureCode = "query_refused"
	codeNotSent          failureCode = "not_sent"
	codeMediaUnsupported failureCode = "unsupported_media_type"
	codeBodyTooLarge     failureCode = "body_too_large"
)

// failureTexts are what people are shown. None holds personal data.
var failureTexts = map[failureCode]string{
	codeChargeRefused: "The bank refused to register the charge.",
	codeChargeFailed:  "The bank ended the charge without a payment.",
	codeCardDeclined:  "The card issuer declined the payment. Another card may be used.",
	failureCode(payment.CardInsufficientFunds): "The card has not enough funds or limit.",
	failureCode(payment.CardExpired):           "The card has expired.",
	failureCode(payment.CardInvalid):           "The card is invalid.",
	failureCode(payment.CardInvalidCode):       "The card's security code is wrong.",
	failureCode(payment.CardDoNotHonor):        "The card issuer does not authorise the payment.",
	failureCode(payment.CardSuspectedFraud):    "The card issuer suspects fraud.",
	failureCode(payment.CardLostOrStolen):      "The card was reported lost or stolen.",
	failureCode(payment.CardBlocked):           "The card is blocked.",
	failureCode(payment.CardLimitExceeded):     "The card was used too often or for too much.",
	failureCode(payment.CardNoInstallments):    "The card allows no instalments.",
	failureCode(payment.CardIssuerUnavailable): "The card issuer did not answer.",
	failureCode(payment.CardProcessingError):   "The payment could not be processed.",
	failureCode(payment.CardNotAuthenticated):  "The payer did not confirm the payment.",
	failureCode(payment.CardAnalysisNegative):  "The payment was refused after analysis.",

	codeAccountInvalid:  "The receiver's account number is invalid or does not exist (AC03).",
	codeSettleAborted:   "The settlement was aborted by a time-out in the payment system (AB03).",
	codeRefundRefused:   "The bank refused the refund.",
	codePaymentUnknown:  "There is no payment under this id.",
	codeRefundTooMuch:   "The refunds of a payment may not exceed its amount.",
	codePaymentDisputed: "The payment is disputed; its money cannot be refunded now.",

	codeRequestInvalid:   "The request is malformed or a value is out of range.",
	codeChargeUnknown:    "There is no charge under this id.",
	codeTransferUnknown:  "There is no transfer under this id.",
	codeRefundUnknown:    "There is no refund under this id.",
	codeContentDiffers:   "Another request was taken under this id before, with other content.",
	codeStateForbids:     "This cannot happen in the present state.",
	codeUnauthorized:     "The bearer secret is missing or wrong.",
	codeNotFound:         "There is no such route.",
	codeInternal:         "The bank failed. Ask again later.",
	codeQueryRefused:     "The bank does not answer this question now.",
	codeNotSent:          "The connection is to be treated as refused.",
	codeMediaUnsupported: "The body must be application/json.",
	codeBodyTooLarge:     "The body is larger than 64 KiB.",
}

// failure is the code with its text; nil where there is none.
func (c failureCode) failure() *payment.Failure {
	if c == "" {
		return nil
	}
	return &payment.Failure{Code: string(c), Message: failureTexts[c]}
}

// Error makes the code an error of the bank's verbs.
func (c failureCode) Error() string { return "sandbox: " + string(c) }

// status is the HTTP status of an answer with this code.
func (c failureCode) status() int {
	switch c {
	case codeRequestInvalid:
		return http.StatusBadRequest
	case codeUnauthorized:
		return http.StatusUnauthorized
	case codeChargeUnknown, codeTransferUnknown, codeRefundUnknown, codeNotFound:
		return http.StatusNotFound
	case codeContentDiffers, codeStateForbids:
		return http.StatusConflict
	case codeBodyTooLarge:
		return http.StatusRequestEntityTooLarge
	case codeMediaUnsupported:
		return http.StatusUnsupportedMediaType
	case codeNotSent, codeQueryRefused:
		return http.StatusServiceUnavailable
	case codeInternal:
		return http.StatusInternalServerError
	default: // refusals of charges, transfers and refunds
		return http.StatusUnprocessableEntity
	}
}
