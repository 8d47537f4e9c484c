package asaas

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/pixkey"
)

// newTransfer is the request of a Pix to a key.
type newTransfer struct {
	Value             amount `json:"value"`
	Key               string `json:"pixAddressKey"`
	KeyType           string `json:"pixAddressKeyType"`
	OperationType     string `json:"operationType"`
	Description       string `json:"description,omitempty"`
	ExternalReference string `json:"externalReference"`
}

// wireTransfer is a transfer as Asaas shows it.
type wireTransfer struct {
	ID                string `json:"id"`
	DateCreated       string `json:"dateCreated"`
	Value             amount `json:"value"`
	Status            string `json:"status"`
	EndToEndID        string `json:"endToEndIdentifier"`
	FailReason        string `json:"failReason"`
	ExternalReference string `json:"externalReference"`
	BankAccount       struct {
		Key   string `json:"pixAddressKey"`
		Owner string `json:"ownerName"`
	} `json:"bankAccount"`
}

// transferStates are what the statuses of a transfer prove; any other one proves nothing. A
// blocked transfer waits for a person at Asaas.
var transferStates = map[string]processor.TransferState{
	"PENDING": processor.TransferProcessing, "BANK_PROCESSING": processor.TransferProcessing, "BLOCKED": processor.TransferProcessing,
	"DONE": processor.TransferPaid, "FAILED": processor.TransferFailed, "CANCELLED": processor.TransferFailed,
}

// equalWait is how long Asaas answers 409 to a transfer that is equal to an earlier one.
const equalWait = 15 * time.Minute

// brazil begins phone keys in our form, and not in Asaas'.
const brazil = "+55"

// keyOf is a key in Asaas' form; false if Asaas has none for it: a phone of another country.
func keyOf(keyType, key string) (string, bool) {
	if keyType != string(pixkey.Phone) {
		return key, true
	}
	national, ok := strings.CutPrefix(key, brazil)
	return national, ok
}

// keysOf are the normal forms that a key in Asaas' form may have: 11 digits are a phone or a
// CPF.
func keysOf(key string) (normal, other string) {
	for _, t := range []pixkey.Type{pixkey.CPF, pixkey.CNPJ, pixkey.Phone, pixkey.Email, pixkey.EVP} {
		form, err := pixkey.Normalize(t, key)
		switch {
		case err != nil || form == normal:
		case normal == "":
			normal = form
		case other == "":
			other = form
		}
	}
	return normal, other
}

// Transfer implements [processor.Transferrer].
func (p *Processor) Transfer(ctx context.Context, r processor.TransferRequest, guard func() error) processor.TransferAnswer {
	key, ok := keyOf(r.KeyType, r.Key)
	if !ok {
		return processor.TransferAnswer{
			Outcome: processor.Refused, Evidence: "not requested: Asaas has only phone keys of Brazil",
			Failure: &payment.Failure{Code: "invalid_pix_key", Message: "The processor pays phone keys of Brazil only."},
		}
	}
	result := p.client.do(ctx, http.MethodPost, "/transfers", newTransfer{
		Value: amount(r.Amount), Key: key, KeyType: r.KeyType, OperationType: "PIX", Description: r.Description, ExternalReference: r.ExternalID,
	}, guard)
	v := parse[wireTransfer](&result)
	answer := processor.TransferAnswer{Outcome: result.outcome(), Wait: result.wait, Person: result.person(), Cause: result.cause()}
	if result.err == nil && result.status == http.StatusConflict && result.code != "" {
		answer.Outcome, answer.Wait = processor.Later, max(answer.Wait, equalWait)
	}
	switch answer.Outcome {
	case processor.Done:
		if v.ExternalReference != r.ExternalID || moneyOf(v.Value) != r.Amount {
			return processor.TransferAnswer{Cause: errOtherID}
		}
		if answer.Report = v.report(); answer.Report.Lookup != processor.Found {
			return processor.TransferAnswer{Cause: answer.Report.Cause}
		}
		p.requested.put(v.ID, r.ExternalID)
	case processor.Refused:
		answer.Failure, answer.Evidence = result.failure(), result.evidence()
	case processor.Later:
		answer.Evidence = result.evidence()
	}
	return answer
}

// report reports what a transfer proves.
func (v *wireTransfer) report() processor.TransferReport {
	state, ok := transferStates[v.Status]
	switch {
	case !ok:
		return processor.TransferReport{Cause: fmt.Errorf("asaas: transfer has the status %.40q, which proves nothing", v.Status)}
	case !isToken(v.ID), !isTokenOrNone(v.EndToEndID), !isAmount(moneyOf(v.Value)), state == processor.TransferPaid && v.EndToEndID == "":
		return processor.TransferReport{Cause: errAnswerForm}
	}
	r := processor.TransferReport{
		Lookup: processor.Found, State: state, ProcessorID: v.ID, EndToEndID: v.EndToEndID, Amount: moneyOf(v.Value),
		Evidence: fmt.Sprintf("Asaas reports transfer %s as %s", v.ID, v.Status),
	}
	if v.EndToEndID != "" {
		r.Evidence += " as " + v.EndToEndID
	}
	if state == processor.TransferFailed {
		r.Failure = &payment.Failure{Code: "transfer_failed", Message: shown(v.FailReason, "Asaas did not pay the transfer.")}
	}
	return r
}

// QueryTransfer implements [processor.Transferrer].
func (p *Processor) QueryTransfer(ctx context.Context, externalID string) processor.TransferReport {
	return p.FindTransfer(ctx, processor.Ref{ExternalID: externalID})
}

// FindTransfer implements [processor.TransferFinder]: by Asaas' id, or by the list of all
// transfers, which has no filter by reference. If the one with the id failed, another one of the
// payout may have our consent.
func (p *Processor) FindTransfer(ctx context.Context, ref processor.Ref) processor.TransferReport {
	known := processor.TransferReport{Lookup: processor.NotFound}
	if ref.ProcessorID != "" {
		known = p.transferByID(ctx, ref)
		if known.Lookup == processor.LookupUnknown || known.Lookup == processor.Found && (known.State != processor.TransferFailed || !p.validation) {
			return known
		}
	}
	if listed := p.transferByList(ctx, ref); listed.Lookup != processor.NotFound {
		return listed
	}
	return known
}

func (p *Processor) transferByID(ctx context.Context, ref processor.Ref) processor.TransferReport {
	v, lookup, cause := p.transfer(ctx, ref)
	if lookup != processor.Found {
		return processor.TransferReport{Lookup: lookup, Cause: cause}
	}
	return v.report()
}

// transfer reads the transfer with an id and our reference.
func (p *Processor) transfer(ctx context.Context, ref processor.Ref) (wireTransfer, processor.Lookup, error) {
	r := p.client.get(ctx, "/transfers/"+url.PathEscape(ref.ProcessorID))
	v := parse[wireTransfer](&r)
	switch lookup := r.lookup(); {
	case lookup != processor.Found:
		return v, lookup, r.cause()
	case v.ID != ref.ProcessorID || v.ExternalReference != ref.ExternalID:
		return v, processor.LookupUnknown, errOtherID
	default:
		return v, processor.Found, nil
	}
}

// transferByList searches the list. One that was found before its end is taken, unless it
// failed: there may be a second transfer.
func (p *Processor) transferByList(ctx context.Context, ref processor.Ref) processor.TransferReport {
	matches, call, err := p.transfers.find(ctx, ref)
	list := make([]wireTransfer, 0, len(matches))
	for i := range matches {
		m := &matches[i]
		if !m.valid {
			return processor.TransferReport{Cause: errAnswerForm}
		}
		v := m.v
		if m.seen < call {
			now, lookup, cause := p.transfer(ctx, processor.Ref{ExternalID: ref.ExternalID, ProcessorID: m.id})
			if lookup != processor.Found {
				return processor.TransferReport{Cause: errors.Join(errListed, cause)}
			}
			v = now
		}
		list = append(list, v)
	}
	if r := ofMatches(list); err == nil || r.Lookup == processor.Found && r.State != processor.TransferFailed {
		return r
	}
	return processor.TransferReport{Cause: err}
}

// errListed means that a transfer was listed, and cannot be read.
var errListed = errors.New("asaas: a listed transfer cannot be read")

// page reads a page of a list.
func page[Row any](ctx context.Context, c client, path string) (list[Row], error) {
	r := c.get(ctx, path)
	body := parse[list[Row]](&r)
	switch {
	case r.lookup() == processor.Found && body.HasMore != nil && (len(body.Data) > 0 || !*body.HasMore):
		return body, nil
	case r.cause() != nil:
		return body, r.cause()
	default:
		return body, errAnswerForm
	}
}

// overlap is the number of rows that a page has in common with the one before: a list gets
// shorter if a row leaves its filter.
const overlap = 10

// advance is how far the offset moves.
func advance(rows int) int { return max(1, rows-overlap) }

// endsBefore reports whether all rows are older than a day in a list that begins with the
// newest: the filter was ignored, and no later page has any row since that day.
func endsBefore(rows []row[wireTransfer], since string) bool {
	newestFirst := false
	for i := range rows {
		day := rows[i].v.DateCreated
		if !rows[i].valid || day >= since || i > 0 && day > rows[i-1].v.DateCreated {
			return false
		}
		newestFirst = newestFirst || i > 0 && day < rows[i-1].v.DateCreated
	}
	return newestFirst
}

// ofMatches is the report of the transfers under one reference: that of the one that was paid
// or still may be, else of one that failed. If several were paid, their amounts are added, so
// that the payout contradicts its amount and gets a case.
func ofMatches(matches []wireTransfer) processor.TransferReport {
	states := []processor.TransferState{processor.TransferPaid, processor.TransferProcessing, processor.TransferFailed}
	best := processor.TransferReport{Lookup: processor.NotFound}
	seen := map[string]bool{}
	for i := range slices.Backward(matches) { // the oldest first
		if seen[matches[i].ID] { // pages overlap
			continue
		}
		seen[matches[i].ID] = true
		r := matches[i].report()
		switch {
		case r.Lookup != processor.Found:
			return r
		case best.Lookup != processor.Found || slices.Index(states, r.State) < slices.Index(states, best.State):
			best = r
		case r.State == processor.TransferPaid && best.State == processor.TransferPaid:
			best.Amount += r.Amount
			best.Evidence += "; " + r.Evidence
		}
	}
	return best
}
