package sandbox

import (
	"crypto/sha256"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// transferRequest asks for a Pix.
type transferRequest struct {
	ExternalID  string      `json:"externalId"`
	Amount      money.Cents `json:"amount"`
	KeyType     string      `json:"keyType"`
	Key         string      `json:"key"`
	Name        string      `json:"name"`
	Document    string      `json:"document"`
	Description string      `json:"description,omitempty"`
}

// refundRequest asks for money to go back to a payer.
type refundRequest struct {
	ExternalID string      `json:"externalId"`
	PaymentID  string      `json:"paymentId"`
	Amount     money.Cents `json:"amount"`
}

// order is what the bank keeps of a transfer: of its receiver only the key,
// the rest as a digest, enough to tell it from another one under its id.
func (r *transferRequest) order() (orderMade, error) {
	if !isExternalID(r.ExternalID) || r.Amount < 1 || r.Amount > money.Max ||
		r.Key == "" || len(r.Key) > 77 || r.KeyType == "" || r.Name == "" || r.Document == "" {
		return orderMade{}, codeRequestInvalid
	}
	content, err := json.Marshal(r)
	if err != nil {
		return orderMade{}, codeRequestInvalid
	}
	digest := sha256.Sum256(content)
	return orderMade{
		Kind: processor.SubjectTransfer, ExternalID: r.ExternalID, Content: digest[:],
		Amount: r.Amount, Key: r.Key,
	}, nil
}

func (r *refundRequest) order() (orderMade, error) {
	if !isExternalID(r.ExternalID) || r.Amount < 1 || r.Amount > money.Max || r.PaymentID == "" {
		return orderMade{}, codeRequestInvalid
	}
	content, err := json.Marshal(r)
	if err != nil {
		return orderMade{}, codeRequestInvalid
	}
	digest := sha256.Sum256(content)
	return orderMade{
		Kind: processor.SubjectRefund, ExternalID: r.ExternalID, Content: digest[:],
		Amount: r.Amount, PaymentID: r.PaymentID,
	}, nil
}

// orderBody is a transfer or refund as the bank shows it.
type orderBody struct {
	ExternalID string                  `json:"externalId"`
	Amount     money.Cents             `json:"amount"`
	State      processor.TransferState `json:"state"`
	EndToEndID string                  `json:"endToEndId,omitempty"`
	Returned   money.Cents             `json:"returned,omitzero"`
	Failure    *payment.Failure        `json:"failure,omitempty"`
	CreatedAt  time.Time               `json:"createdAt"`
	ChangedAt  time.Time               `json:"changedAt"`
}

func (o *order) body() orderBody {
	return orderBody{
		ExternalID: o.ExternalID, Amount: o.Amount, State: o.state, EndToEndID: o.EndToEndID,
		Returned: o.returned, Failure: o.failure.failure(), CreatedAt: o.createdAt, ChangedAt: o.changedAt,
	}
}

// putOrder takes an order, or shows the one that is there: under one id there
// is one order for ever, taken or refused.
func (b *Bank) putOrder(made orderMade, fault Kind) (body orderBody, err error) {
	err = b.do(func(now time.Time) error {
		key := orderKey{made.Kind, made.ExternalID}
		if waiting := b.books.delayed[key]; waiting != nil && string(waiting.Order.Content) != string(made.Content) {
			return codeContentDiffers
		}
		o := b.books.orders[key]
		if o == nil {
			if err := b.take(now, made, fault); err != nil {
				return err
			}
			o = b.books.orders[key]
		}
		switch {
		case string(o.Content) != string(made.Content):
			return codeContentDiffers
		case o.Refusal != "":
			return o.Refusal
		}
		body = o.body()
		return nil
	})
	return body, err
}

// take enters a new order in the books, as taken or as refused.
func (b *Bank) take(now time.Time, made orderMade, fault Kind) error {
	switch {
	case fault == Refuse && made.Kind == processor.SubjectTransfer:
		made.Refusal = codeAccountInvalid
	case fault == Refuse:
		made.Refusal = codeRefundRefused
	case made.Kind == processor.SubjectRefund:
		made.Refusal = b.refundObjection(made)
	}
	if made.Refusal == "" {
		made.EndToEndID = b.newEndToEndID(now)
	}
	if fault.notifies() {
		made.NotifyFault = fault
	}
	return b.commit(now, &record{Order: &made})
}

// refundObjection says why a refund cannot be taken, or nothing.
func (b *Bank) refundObjection(made orderMade) failureCode {
	p := b.books.byPayment[made.PaymentID]
	if p == nil {
		return codePaymentUnknown
	}
	if d := p.lastDispute(); d != nil && d.State == processor.DisputeOpen {
		return codePaymentDisputed
	}
	if made.Amount > p.refundable() {
		return codeRefundTooMuch
	}
	return ""
}

// delay lets an order wait in a queue, as a request that was answered by a
// time-out may. At most one order waits under an id.
func (b *Bank) delay(made orderMade, by time.Duration) error {
	return b.do(func(now time.Time) error {
		key := orderKey{made.Kind, made.ExternalID}
		if b.books.orders[key] != nil || b.books.delayed[key] != nil {
			return nil
		}
		return b.commit(now, &record{Delayed: &orderDelayed{Order: made, Due: now.Add(by)}})
	})
}

// arrive takes an order whose wait is over; the lock is held.
func (b *Bank) arrive(now time.Time, waiting *orderDelayed) error {
	return b.take(now, waiting.Order, "")
}

// getOrder shows a transfer or refund.
func (b *Bank) getOrder(kind processor.Subject, externalID string) (body orderBody, err error) {
	err = b.do(func(time.Time) error {
		o := b.books.orders[orderKey{kind, externalID}]
		switch {
		case o != nil:
			body = o.body()
			return nil
		case kind == processor.SubjectTransfer:
			return codeTransferUnknown
		default:
			return codeRefundUnknown
		}
	})
	return body, err
}

// endOrder moves an order and announces it; the lock is held.
func (b *Bank) endOrder(now time.Time, o *order, end orderEnd) error {
	end.Kind, end.ExternalID = o.Kind, o.ExternalID
	return b.commit(now, &record{OrderEnd: &end, Notice: b.newID(now)})
}

// forceTransfer ends a transfer as asked for, before its second has passed or
// after. What has come to pass already stays as it is; what cannot be any more
// is refused. returned is how much is sent back, 0 for all of it.
func (b *Bank) forceTransfer(externalID, verb string, returned money.Cents) (body orderBody, err error) {
	err = b.do(func(now time.Time) error {
		o := b.books.orders[orderKey{processor.SubjectTransfer, externalID}]
		if o == nil {
			return codeTransferUnknown
		}
		switch verb {
		case "complete":
			err = b.complete(now, o)
		case "fail":
			err = b.fail(now, o)
		case "return":
			err = b.sendBack(now, o, returned)
		default:
			err = codeNotFound
		}
		body = o.body()
		return err
	})
	return body, err
}

func (b *Bank) complete(now time.Time, o *order) error {
	switch o.state {
	case processor.TransferPaid:
		return nil
	case processor.TransferProcessing:
		return b.endOrder(now, o, orderEnd{State: processor.TransferPaid})
	default:
		return codeStateForbids
	}
}

func (b *Bank) fail(now time.Time, o *order) error {
	switch o.state {
	case processor.TransferFailed:
		return nil
	case processor.TransferProcessing:
		return b.endOrder(now, o, orderEnd{State: processor.TransferFailed, Failure: codeSettleAborted})
	default:
		return codeStateForbids
	}
}

// sendBack lets the receiver's bank return money; one that is still in process
// is completed by it.
func (b *Bank) sendBack(now time.Time, o *order, amount money.Cents) error {
	left := o.Amount - o.returned
	switch {
	case o.state == processor.TransferFailed:
		return codeStateForbids
	case left == 0:
		return nil
	case amount < 0 || amount > left:
		return codeRequestInvalid
	case amount == 0:
		amount = left
	}
	return b.endOrder(now, o, orderEnd{State: processor.TransferPaid, Returned: o.returned + amount})
}

// transferPage is a page of the list of transfers.
type transferPage struct {
	Data       []Transfer `json:"data"`
	NextCursor string     `json:"nextCursor"`
}

func (o *order) line() Transfer {
	status := string(o.state)
	if o.returned == o.Amount {
		status = "returned"
	}
	return Transfer{o.ExternalID, o.Amount, o.Key, o.EndToEndID, status, o.createdAt}
}

// transfersAfter lists what the bank really took, oldest first: all of it, or
// those under one id.
func (b *Bank) transfersAfter(externalID, cursor string, limit int) (page transferPage, err error) {
	err = b.do(func(time.Time) error {
		list := b.books.transfers
		if externalID != "" {
			list = nil
			if o := b.books.orders[orderKey{processor.SubjectTransfer, externalID}]; o != nil && o.Refusal == "" {
				list = []*order{o}
			}
		}
		from, ok := readCursor(cursor, len(list))
		if !ok {
			return codeRequestInvalid
		}
		to := min(from+limit, len(list))
		page.Data = make([]Transfer, 0, to-from)
		for _, o := range list[from:to] {
			page.Data = append(page.Data, o.line())
		}
		page.NextCursor = writeCursor(to)
		return nil
	})
	return page, err
}

// A cursor is how many entries of an append-only list have been seen.
func readCursor(cursor string, length int) (from int, ok bool) {
	if cursor == "" {
		return 0, true
	}
	n, err := strconv.Atoi(cursor)
	return n, err == nil && n >= 0 && n <= length && writeCursor(n) == cursor
}

func writeCursor(n int) string { return strconv.Itoa(n) }
