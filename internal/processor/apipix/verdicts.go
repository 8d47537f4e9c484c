package apipix

import (
	"net/http"
	"strings"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// effect is a kind of effect at the bank.
type effect string

const (
	effectCharge   effect = "charge"
	effectReturn   effect = "return"
	effectTransfer effect = "transfer"
	effectDefense  effect = "defense"
	anyEffect      effect = ""
)

// verdict is a row of the table of proofs.
type verdict struct {
	of      effect
	status  int
	code    string
	outcome processor.Outcome
	failure string // the code that the merchant sees, of a refusal
	why     string
}

// verdicts lists the error answers that prove something; any other one is Unknown. A status
// without its code may come from any proxy in between, and proves nothing, except 429.
//
// The codes that begin with a capital letter are the standard's; the others are Efí's.
var verdicts = []verdict{
	{anyEffect, http.StatusForbidden, "AcessoNegado", processor.Later, "", "a permission is missing: the request was not begun"},
	{anyEffect, http.StatusForbidden, "insufficient_scope", processor.Later, "", "a permission is missing: the request was not begun"},
	{anyEffect, http.StatusBadRequest, "RequisicaoInvalida", processor.Refused, "processor_refused", "values are checked before any effect"},
	{anyEffect, http.StatusBadRequest, "valor_invalido", processor.Refused, "processor_refused", "values are checked before any effect"},
	{anyEffect, http.StatusBadRequest, "chave_invalida", processor.Later, "", "the setting pix-key is not a key of the account, which is no fault of the order"},
	{anyEffect, http.StatusBadRequest, "documento_bloqueado", processor.Later, "", "the account is blocked, which is no fault of the order"},
	{anyEffect, http.StatusBadRequest, "saldo_insuficiente", processor.Later, "", "the account has no money, which is no fault of the order"},
	{anyEffect, http.StatusUnprocessableEntity, "saldo_insuficiente", processor.Later, "", "the account has no money, which is no fault of the order"},

	{effectCharge, http.StatusBadRequest, "CobOperacaoInvalida", processor.Refused, "processor_refused", "the charge is not made; if there is an earlier one, it is not active any more"},

	// A repeated id is refused with the same code. So a 400 that does not complain about the
	// amount may mean that the return was made before: it is Known.
	{effectReturn, http.StatusBadRequest, "PixDevolucaoInvalida", processor.Refused, "refund_refused", "values are checked before any effect"},
	{effectReturn, http.StatusNotFound, "PixNaoEncontrado", processor.Refused, "payment_not_found", "nothing can be returned of a payment that the bank does not have"},
	{effectReturn, http.StatusNotFound, "NaoEncontrado", processor.Refused, "payment_not_found", "nothing can be returned of a payment that the bank does not have"},
	{effectReturn, http.StatusNotFound, "pix_nao_encontrado", processor.Refused, "payment_not_found", "nothing can be returned of a payment that the bank does not have"},
	{effectReturn, http.StatusBadRequest, "pix_nao_encontrado", processor.Refused, "payment_not_found", "nothing can be returned of a payment that the bank does not have"},

	{effectTransfer, http.StatusBadRequest, "chave_nao_pertence_ao_documento", processor.Refused, "document_mismatch", "the key is not of the receiver's document"},
	{effectTransfer, http.StatusNotFound, "chave_favorecido_nao_encontrada", processor.Refused, "key_not_found", "nobody has the receiver's key"},
	{effectTransfer, http.StatusUnprocessableEntity, "pagamento_negado", processor.Refused, "transfer_refused", "the bank's own analysis refuses it"},

	{effectDefense, http.StatusNotFound, "NaoEncontrado", processor.Refused, "processor_refused", "there is nothing to answer"},
	{effectDefense, http.StatusNotFound, "InfracaoNaoEncontrada", processor.Refused, "processor_refused", "there is nothing to answer"},
	{effectDefense, http.StatusConflict, "InfracaoOperacaoInvalida", processor.Refused, "defense_refused", "it has an answer already"},
	{effectDefense, http.StatusUnprocessableEntity, "InfracaoOperacaoInvalida", processor.Refused, "defense_refused", "its deadline has passed, or it is decided"},
}

// duplicate ends the names that Efí gives to a repeated id.
var duplicate = []string{"_duplicado", "_duplicada"}

// outcome classifies the error answer to an effect; failure is that of a refusal.
func (r *response) outcome(of effect) (o processor.Outcome, failure *payment.Failure) {
	switch {
	case r.err != nil:
		return r.failed, nil
	case r.ok():
		return processor.Done, nil
	case r.status == http.StatusTooManyRequests:
		return processor.Later, nil
	case r.status >= 400 && r.status <= 499 && (strings.HasSuffix(r.code, duplicate[0]) || strings.HasSuffix(r.code, duplicate[1])):
		return processor.Known, nil
	}
	for i := range verdicts {
		v := &verdicts[i]
		if v.of != anyEffect && v.of != of || v.status != r.status || v.code != r.code {
			continue
		}
		if of == effectReturn && r.status == http.StatusBadRequest && v.outcome == processor.Refused && !r.blamesAmount() {
			return processor.Known, nil // the id may be why
		}
		if of == effectCharge && r.blamesCharge() {
			return processor.Known, nil // there is an earlier one, such as from a past that a restored backup lacks
		}
		if v.outcome == processor.Refused {
			failure = &payment.Failure{Code: v.failure, Message: messages[v.failure]}
		}
		return v.outcome, failure
	}
	return processor.Unknown, nil
}

// blamesCharge reports whether an error answer complains about the charge that there is.
func (r *response) blamesCharge() bool {
	member := r.property[strings.LastIndexByte(r.property, '.')+1:]
	return member == "status" || member == "txid"
}

// blamesAmount reports whether an error answer complains about the amount, or about the
// payment that there is none of.
func (r *response) blamesAmount() bool {
	return r.property == "valor" || strings.HasSuffix(r.property, ".valor") || r.code == "valor_invalido" || r.code == "pix_nao_encontrado"
}

// messages are what the merchant reads about a refusal.
var messages = map[string]string{
	"processor_refused": "The bank refused the request as invalid.",
	"refund_refused":    "The bank refused the refund: its amount exceeds what is left of the payment.",
	"payment_not_found": "The bank has no payment under this id.",
	"document_mismatch": "The key does not belong to the receiver's document.",
	"key_not_found":     "Nobody has the receiver's key.",
	"transfer_refused":  "The bank refused the transfer.",
	"defense_refused":   "The bank takes no answer to the dispute any more: it has one, or its deadline has passed.",
	"not_settled":       "The bank could not complete the transfer.",
	"not_returned":      "The bank could not complete the refund.",
}

func failureOf(code string) *payment.Failure {
	return &payment.Failure{Code: code, Message: messages[code]}
}

// missing are the error answers to a query of an id that the bank has never seen.
var missing = map[string][]struct {
	status int
	code   string
}{
	subjectCharge:   {{404, "CobNaoEncontrado"}, {404, "NaoEncontrado"}, {404, "cobranca_nao_encontrada"}, {400, "cobranca_nao_encontrada"}},
	subjectReturn:   {{404, "PixDevolucaoNaoEncontrada"}, {404, "NaoEncontrado"}, {404, "devolucao_nao_encontrada"}, {400, "devolucao_nao_encontrada"}},
	subjectTransfer: {{404, "PixEnviadoNaoEncontrado"}},
	subjectPayment:  {{404, "PixNaoEncontrado"}, {404, "NaoEncontrado"}, {404, "pix_nao_encontrado"}, {400, "pix_nao_encontrado"}},
	subjectWebhook:  {{404, "WebhookNaoEncontrado"}, {404, "NaoEncontrado"}, {404, "webhook_nao_encontrado"}},
}

// Subjects of queries.
const (
	subjectCharge   = "charge"
	subjectReturn   = "return"
	subjectTransfer = "transfer"
	subjectPayment  = "payment"
	subjectWebhook  = "webhook"
)

// lookup classifies the answer to a query.
func (r *response) lookup(subject string) processor.Lookup {
	if r.err != nil {
		return processor.LookupUnknown
	}
	if r.ok() {
		return processor.Found
	}
	for _, m := range missing[subject] {
		if m.status == r.status && m.code == r.code {
			return processor.NotFound
		}
	}
	return processor.LookupUnknown
}
