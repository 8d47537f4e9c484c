package wire

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
)

// BatchItemsMax is the most payouts of a batch.
const BatchItemsMax = 5000

// PayoutBatchRequest is the body of POST /payout-batches, as JSON or CSV. Both forms of the
// same items are the same request.
type PayoutBatchRequest struct {
	ReferenceID Field[string]
	Items       []*PayoutRequest

	Fingerprint Fingerprint // as in PayinRequest; of the items all at once

	cut   bool  // not read to its end, because nothing that follows could make it valid
	lines []int // of the items in the file, if it is CSV
}

// MayRepeat is PayinRequest.MayRepeat for batches.
func (r *PayoutBatchRequest) MayRepeat(invalid *problem.Error) bool {
	return isWellFormed(invalid) && !r.cut && ValidReference(r.ReferenceID.V)
}

// PayoutBatch is Payin for POST /payout-batches in JSON. Each item is decoded alone, so the
// memory of a batch is a small multiple of its body.
func (d *Decoder) PayoutBatch(body []byte) (*PayoutBatchRequest, *problem.Error) {
	b := newBatchReader(d)
	if invalid := b.readJSON(body); invalid != nil {
		return &b.request, invalid
	}
	return &b.request, b.finish()
}

// batchReader collects the items of a batch.
type batchReader struct {
	d       *Decoder
	request PayoutBatchRequest
	errs    Errors
	unknown bool
	never   bool           // no batch like this was ever accepted, under any earlier rules
	known   map[string]int // references, with the first item that has one
	count   int            // items, with the first one beyond the maximum
	items   hash.Hash      // of the items' fingerprints
	sent    bool           // there is a list of items
	// amountDetail is what is wrong with an amount of a wrong type in CSV, where all cells are texts.
	amountDetail string
}

func newBatchReader(d *Decoder) *batchReader {
	return &batchReader{d: d, known: map[string]int{}, items: sha256.New()}
}

// readJSON reads the members of the body. Its error means that the body is malformed.
func (b *batchReader) readJSON(body []byte) *problem.Error {
	body = bytes.TrimPrefix(body, byteOrderMark)
	// Names are compared here and in each item, where there are few.
	dec := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true))
	switch kind := dec.PeekKind(); {
	case kind == kindObject:
	case len(body) == 0:
		return problem.New(problem.MalformedJSON, "The body is empty.")
	default:
		if err := dec.SkipValue(); err != nil {
			return explainBatch(dec, body, err)
		}
		return problem.New(problem.MalformedJSON, "The body must be a JSON object.")
	}
	err := b.members(dec)
	if errors.Is(err, errTruncated) {
		return nil
	}
	if invalid, ok := errors.AsType[*problem.Error](err); ok {
		return invalid
	}
	if err != nil {
		return explainBatch(dec, body, err)
	}
	if _, err := dec.ReadToken(); err != io.EOF { //nolint:errorlint // documented to be EOF itself
		return malformed("Unexpected data after the JSON value", dec.InputOffset())
	}
	return nil
}

func (b *batchReader) members(dec *jsontext.Decoder) error {
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	names := map[string]bool{} // at most errorsMax unknown ones
	for dec.PeekKind() != '}' {
		raw, err := dec.ReadValue()
		if err != nil {
			return err
		}
		name := unquote(string(raw))
		if names[name] {
			return problem.New(problem.DuplicateField, "The body contains a duplicate field.").WithFields(problem.FieldError{
				Field: joinName("", name), Code: problem.CodeNotAllowed, Detail: "must appear only once",
			})
		}
		names[name] = true
		switch name {
		case "referenceId":
			err = b.readReference(dec)
		case "items":
			err = b.readItems(dec)
		default:
			b.unknown = true
			b.errs.add(joinName("", name), problem.CodeUnknownField, "is not a field of this request")
			if err = b.enough(); err == nil {
				err = dec.SkipValue()
			}
		}
		if err != nil {
			return err
		}
	}
	_, err := dec.ReadToken()
	return err
}

func (b *batchReader) readReference(dec *jsontext.Decoder) error {
	raw, err := dec.ReadValue()
	switch {
	case err != nil || raw.Kind() == kindNull:
	case raw.Kind() == kindString:
		b.request.ReferenceID = Some(unquote(string(raw)))
	default:
		b.errs.add("referenceId", problem.CodeInvalidType, "must be a string")
	}
	return err
}

func (b *batchReader) readItems(dec *jsontext.Decoder) error {
	if kind := dec.PeekKind(); kind != kindArray {
		raw, err := dec.ReadValue()
		if err == nil && raw.Kind() != kindNull {
			b.sent = true
			b.errs.add("items", problem.CodeInvalidType, "must be an array")
		}
		return err
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	b.sent = true
	for dec.PeekKind() != ']' {
		raw, err := dec.ReadValue()
		if err != nil {
			return err
		}
		if err := b.item(raw); err != nil {
			return err
		}
	}
	_, err := dec.ReadToken()
	return err
}

// errTruncated ends the reading of a body.
var errTruncated = errors.New("wire: the rest of the batch is not read")

// enough returns errTruncated if more errors would not be listed, and the body is no repeated
// request: one of an accepted batch is answered as before, also if the rules have changed
// since.
func (b *batchReader) enough() error {
	if !b.errs.truncated || !b.unknown && !b.never {
		return nil
	}
	b.request.cut = true
	return errTruncated
}

// item decodes one payout. Its error is a *problem.Error, and means that the body is
// malformed, or errTruncated.
func (b *batchReader) item(raw jsontext.Value) error {
	at := b.count
	if b.count++; at >= BatchItemsMax {
		b.request.cut = true
		return errTruncated
	}
	prefix := joinIndex("items", at)
	q := &PayoutRequest{IdempotencyKey: b.d.IdempotencyKey, Actor: b.d.Actor}
	b.request.Items = append(b.request.Items, q)
	if raw.Kind() != kindObject {
		b.never = true
		b.errs.add(prefix, problem.CodeInvalidType, "must be an object")
		return b.enough()
	}
	if invalid := b.d.decode(raw, q, &q.Fingerprint); invalid != nil {
		if err := b.itemErrors(prefix, invalid); err != nil {
			return err
		}
	}
	sum := sha256.Sum256(q.Fingerprint)
	_, _ = b.items.Write(sum[:]) // a hash never fails
	if reference := q.ReferenceID.V; reference != "" {
		if first, used := b.known[reference]; used {
			b.errs.add(prefix+".referenceId", problem.CodeNotAllowed, "is the referenceId of "+joinIndex("items", first)+" too")
		} else {
			b.known[reference] = at
		}
	}
	return nil
}

// itemErrors adds the errors of an item. Its own error is as of item.
func (b *batchReader) itemErrors(prefix string, invalid *problem.Error) error {
	if !isWellFormed(invalid) && invalid.Kind != problem.UnknownField {
		e := problem.New(invalid.Kind, "In "+prefix+": "+invalid.Detail)
		for _, f := range invalid.Fields {
			e = e.WithFields(problem.FieldError{Field: inside(prefix, f.Field), Code: f.Code, Detail: f.Detail})
		}
		return e
	}
	b.unknown = b.unknown || invalid.Kind == problem.UnknownField
	for _, f := range invalid.Fields {
		b.never = b.never || f.Code == problem.CodeInvalidType
		if b.amountDetail != "" && f.Field == "amount" && f.Code == problem.CodeInvalidType {
			f.Detail = b.amountDetail
		}
		b.errs.add(inside(prefix, f.Field), f.Code, f.Detail)
	}
	b.errs.truncated = b.errs.truncated || invalid.Truncated
	return b.enough()
}

// inside is the path of an item's field.
func inside(prefix, field string) string {
	if field != "" && field[0] == '[' { // a quoted name
		return prefix + field
	}
	return prefix + "." + field
}

// finish validates the batch as a whole, and computes its fingerprint.
func (b *batchReader) finish() *problem.Error {
	r, high := &b.request, strconv.Itoa(BatchItemsMax)
	if r.ReferenceID.Set || !r.cut { // else it may follow
		b.errs.reference(r.ReferenceID)
	}
	switch {
	case r.cut && b.count <= BatchItemsMax: // the items may follow
	case !b.sent:
		b.errs.add("items", problem.CodeRequired, "is required")
	case b.count > BatchItemsMax:
		b.errs.add("items", problem.CodeTooLong, "must have at most "+high+" items")
	case b.count == 0:
		b.errs.add("items", problem.CodeTooShort, "must have 1 to "+high+" items")
	}
	if b.unknown {
		return b.errs.problem(problem.UnknownField)
	}
	r.Fingerprint = NewFingerprint([]FieldMAC{
		b.mac("referenceId", []byte(r.ReferenceID.V)), b.mac("items", b.items.Sum(nil)),
	})
	return b.errs.problem(problem.ValidationFailed)
}

func (b *batchReader) mac(name string, data []byte) FieldMAC {
	sum := b.d.MAC(append(appendSized(append([]byte("payout-batch\x00"), b.d.Merchant[:]...), name), data...))
	return FieldMAC{Name: name, MAC: [16]byte(sum[:16])}
}

// explainBatch says where a body is not JSON, as tree.explain does.
func explainBatch(dec *jsontext.Decoder, body []byte, err error) *problem.Error {
	offset := dec.InputOffset()
	syntax, ok := errors.AsType[*jsontext.SyntacticError](err)
	if ok {
		offset = syntax.ByteOffset
	}
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return malformed("Unexpected end of the JSON", offset)
	case !utf8.Valid(body):
		return malformed("The body is not valid UTF-8", offset)
	default:
		return malformed("Invalid JSON", offset)
	}
}

type payoutBatchView struct {
	ID          payment.ID          `json:"id"`
	ReferenceID string              `json:"referenceId"`
	Status      payment.BatchStatus `json:"status"`
	Count       int64               `json:"count"`
	Amount      money.Cents         `json:"amount"`
	Currency    string              `json:"currency"`
	Counts      batchCountsView     `json:"counts"`
	Version     int64               `json:"version"`
	CreatedAt   Timestamp           `json:"createdAt"`
	UpdatedAt   Timestamp           `json:"updatedAt"`
	CompletedAt Timestamp           `json:"completedAt,omitempty"`
}

type batchCountsView struct {
	Pending    int64 `json:"PENDING,omitzero"`
	Processing int64 `json:"PROCESSING,omitzero"`
	Completed  int64 `json:"COMPLETED,omitzero"`
	Failed     int64 `json:"FAILED,omitzero"`
	Canceled   int64 `json:"CANCELED,omitzero"`
	Returned   int64 `json:"RETURNED,omitzero"`
}

// PayoutBatch is a batch as the API and its event show it.
func PayoutBatch(b *payment.PayoutBatch) ([]byte, error) {
	return json.Marshal(&payoutBatchView{
		ID: b.ID, ReferenceID: b.ReferenceID, Status: b.Status(), Count: b.Count, Amount: b.Amount, Currency: payment.Currency,
		Counts: batchCountsView{
			Pending: b.Counts[payment.PayoutPending], Processing: b.Counts[payment.PayoutProcessing], Completed: b.Counts[payment.PayoutCompleted],
			Failed: b.Counts[payment.PayoutFailed], Canceled: b.Counts[payment.PayoutCanceled], Returned: b.Counts[payment.PayoutReturned],
		},
		Version: b.Version, CreatedAt: TimestampOf(b.CreatedAt), UpdatedAt: TimestampOf(b.UpdatedAt), CompletedAt: TimestampOf(b.CompletedAt),
	})
}
