package sandboxbank

import (
	"slices"
	"strconv"
	"time"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// pageLimit is how many entries a list shows at once.
const pageLimit = 500

// paymentsAfter lists payments in the order of arrival.
func (b *Bank) paymentsAfter(cursor string) (page bankapi.PaymentPage, err error) {
	err = b.do(func(now time.Time) error {
		page.Data, page.Listing, err = pageOf(now, b.ledger.payments, cursor, (*receipt).shown)
		return err
	})
	return page, err
}

// changesAfter lists disputes and returns in order, including those without a
// notice.
func (b *Bank) changesAfter(cursor string) (page bankapi.ChangePage, err error) {
	err = b.do(func(now time.Time) error {
		same := func(c bankapi.Change) bankapi.Change { return c }
		page.Data, page.Listing, err = pageOf(now, b.ledger.changes, cursor, same)
		return err
	})
	return page, err
}

// transferQuery narrows the list of transfers: to those under one id, or to a page that
// begins at a cursor or, without one, with the first transfer since a time.
type transferQuery struct{ externalID, cursor, from string }

// transfersAfter lists the transfers that the bank accepted, oldest first.
func (b *Bank) transfersAfter(q transferQuery) (page bankapi.TransferPage, err error) {
	err = b.do(func(now time.Time) error {
		list := b.ledger.transfers
		if q.externalID != "" {
			list = b.copies(q.externalID)
		}
		if q.from != "" && q.cursor == "" {
			since, err := time.Parse(time.RFC3339Nano, q.from)
			if err != nil {
				return bankapi.CodeRequestInvalid
			}
			// The clock may have gone back, so entries after the first are not compared.
			first := slices.IndexFunc(list, func(o *order) bool { return !o.createdAt.Before(since) })
			if first < 0 {
				first = len(list)
			}
			q.cursor = strconv.Itoa(first)
		}
		page.Data, page.Listing, err = pageOf(now, list, q.cursor, (*order).entry)
		return err
	})
	return page, err
}

// copies are the accepted transfers under an id, oldest first; the lock is held.
func (b *Bank) copies(externalID string) (list []*order) {
	for o := range b.ledger.copies(orderKey{subject: bankapi.SubjectTransfer, externalID: externalID}) {
		if o.Refusal == "" {
			list = append(list, o)
		}
	}
	slices.SortStableFunc(list, func(a, b *order) int { return a.createdAt.Compare(b.createdAt) }) // some were delayed
	return list
}

// pageOf shows the next entries of an append-only list. A cursor is the number
// of entries before them.
func pageOf[T, Shown any](now time.Time, list []T, cursor string, show func(T) Shown) (data []Shown, listing bankapi.Listing, err error) {
	from := 0
	if cursor != "" {
		if from, err = strconv.Atoi(cursor); err != nil || from < 0 || from > len(list) || strconv.Itoa(from) != cursor {
			return nil, listing, bankapi.CodeRequestInvalid
		}
	}
	to := min(from+pageLimit, len(list))
	data = make([]Shown, 0, to-from)
	for _, entry := range list[from:to] {
		data = append(data, show(entry))
	}
	listing = bankapi.Listing{NextCursor: strconv.Itoa(to), More: to < len(list)}
	if !listing.More {
		listing.Through = now.UTC()
	}
	return data, listing, nil
}

// balance adds up the money of the account.
func (b *Bank) balance() (shown bankapi.Balance, err error) {
	err = b.do(func(time.Time) error {
		for _, p := range b.ledger.payments {
			shown.Amount += p.Amount
			for _, d := range p.disputes {
				shown.Amount -= d.taken()
			}
			for _, o := range p.refunds {
				shown.Amount -= o.taken()
			}
		}
		for _, o := range b.ledger.transfers {
			shown.Amount -= o.taken()
		}
		return nil
	})
	return shown, err
}

// taken is what an order has taken from the account.
func (o *order) taken() money.Cents {
	if o.Refusal != "" || o.state == bankapi.OrderFailed {
		return 0
	}
	return o.Amount - o.returned
}
