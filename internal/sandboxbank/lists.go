package sandboxbank

import (
	"strconv"
	"time"

	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// pageLimit is how many entries a list shows at once.
const pageLimit = 500

// paymentsAfter lists payments in the order of arrival.
func (b *Bank) paymentsAfter(cursor string) (page bankapi.PaymentPage, err error) {
	err = b.do(func(time.Time) error {
		page.Data, page.NextCursor, err = pageOf(b.ledger.payments, cursor, (*receipt).shown)
		return err
	})
	return page, err
}

// changesAfter lists disputes and returns in order, including those without a
// notice.
func (b *Bank) changesAfter(cursor string) (page bankapi.ChangePage, err error) {
	err = b.do(func(time.Time) error {
		same := func(c bankapi.Change) bankapi.Change { return c }
		page.Data, page.NextCursor, err = pageOf(b.ledger.changes, cursor, same)
		return err
	})
	return page, err
}

// transfersAfter lists the transfers that the bank accepted, oldest first: all
// of them, or those under one id.
func (b *Bank) transfersAfter(externalID, cursor string) (page bankapi.TransferPage, err error) {
	err = b.do(func(time.Time) error {
		list := b.ledger.transfers
		if externalID != "" {
			list = nil
			if o := b.ledger.orders[orderKey{bankapi.SubjectTransfer, externalID}]; o != nil && o.Refusal == "" {
				list = []*order{o}
			}
		}
		page.Data, page.NextCursor, err = pageOf(list, cursor, (*order).entry)
		return err
	})
	return page, err
}

// pageOf shows the next entries of an append-only list. A cursor is the number
// of entries before them.
func pageOf[T, Shown any](list []T, cursor string, show func(T) Shown) (data []Shown, next string, err error) {
	from := 0
	if cursor != "" {
		if from, err = strconv.Atoi(cursor); err != nil || from < 0 || from > len(list) || strconv.Itoa(from) != cursor {
			return nil, "", bankapi.CodeRequestInvalid
		}
	}
	to := min(from+pageLimit, len(list))
	data = make([]Shown, 0, to-from)
	for _, entry := range list[from:to] {
		data = append(data, show(entry))
	}
	return data, strconv.Itoa(to), nil
}
