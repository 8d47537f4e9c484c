package apipix

import (
	"context"
	"net/http"
	"strings"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/processor"
)

// Transfer implements [processor.Transferrer]: PUT /v3/gn/pix/{idEnvio}. Efí refuses a
// repeated idEnvio, which is then Known.
func (e *Efi) Transfer(ctx context.Context, r processor.TransferRequest, guard func() error) processor.TransferAnswer {
	if !isWord(r.ExternalID, idMax) {
		return processor.TransferAnswer{Outcome: processor.NotSent, Cause: errID}
	}
	request := newTransfer{Value: formatAmount(r.Amount), Payer: transferKey{e.key}, Receiver: receiver{Key: r.Key}}
	switch len(r.Document) { // in letters and digits
	case 11:
		request.Receiver.CPF = r.Document
	case 14:
		request.Receiver.CNPJ = r.Document
	}
	result := e.client.do(ctx, http.MethodPut, "/v3/gn/pix/"+escape(r.ExternalID), request, guard)
	body := parse[transfer](&result)
	return answerOf(&result, effectTransfer, func() processor.TransferReport { return body.report(r.ExternalID) }, r.Amount)
}

// QueryTransfer implements [processor.Transferrer].
func (e *Efi) QueryTransfer(ctx context.Context, externalID string) processor.TransferReport {
	if !isWord(externalID, idMax) {
		return processor.TransferReport{Cause: errID}
	}
	result := e.get(ctx, "/v2/gn/pix/enviados/id-envio/"+escape(externalID))
	body := parse[transfer](&result)
	lookup := result.lookup(subjectTransfer)
	if lookup != processor.Found {
		return processor.TransferReport{Lookup: lookup, Cause: result.cause()}
	}
	return body.report(externalID)
}

// endToEnd is the transfer's EndToEndID; ok is false if it has none, or two.
func (t *transfer) endToEnd() (id string, ok bool) {
	id = t.EndToEndID
	if id == "" {
		id = t.E2E
	}
	return id, isWord(id, endToEndMax) && (t.E2E == "" || t.E2E == id)
}

// report is what a transfer proves. An unknown status proves nothing.
func (t *transfer) report(externalID string) processor.TransferReport {
	amount, ok := parseAmount(t.Value)
	state, known := transferState(t.Status)
	id, named := t.endToEnd()
	returned, whole := t.returned(amount)
	switch {
	case t.ID != externalID:
		return processor.TransferReport{Cause: errOther}
	case !known:
		return processor.TransferReport{Cause: errStatus}
	case !ok || !whole || !named && (state == processor.TransferPaid || t.E2E+t.EndToEndID != ""):
		return processor.TransferReport{Cause: errForm}
	}
	report := processor.TransferReport{
		Lookup: processor.Found, State: state, EndToEndID: id, Amount: amount, Returned: returned,
		Evidence: "the bank reports " + t.Status,
	}
	if id != "" {
		report.Evidence += " as " + id
	}
	if state == processor.TransferFailed {
		report.Failure = failureOf("not_settled")
	}
	return report
}

// returned is what the receiver's bank has sent back; ok is false if that exceeds the amount
// or cannot be read.
func (t *transfer) returned(amount money.Cents) (sum money.Cents, ok bool) {
	for i := range t.Returns {
		part, ok := parseAmount(t.Returns[i].Value)
		state, known := returnState(t.Returns[i].Status)
		if !ok || !known {
			return 0, false
		}
		if state == processor.TransferPaid {
			sum += part
		}
		if sum > amount {
			return 0, false
		}
	}
	return sum, true
}

// transferState is the state of a transfer; known is false if its status is not.
func transferState(status string) (state processor.TransferState, known bool) {
	switch status {
	case statusProcessing:
		return processor.TransferProcessing, true
	case statusPaid:
		return processor.TransferPaid, true
	case statusFailed:
		return processor.TransferFailed, true
	default:
		return "", false
	}
}

// Balance implements [processor.BalanceReader].
func (e *Efi) Balance(ctx context.Context) (processor.Balance, error) {
	result := e.get(ctx, "/v2/gn/saldo")
	body := parse[balance](&result)
	if !result.ok() {
		return processor.Balance{}, result.cause()
	}
	text, owed := strings.CutPrefix(body.Amount, "-")
	amount, ok := parseAmount(text)
	switch {
	case text == "0.00":
		return processor.Balance{}, nil
	case !ok:
		return processor.Balance{}, errForm
	case owed:
		amount = -amount
	}
	return processor.Balance{Amount: amount}, nil
}
