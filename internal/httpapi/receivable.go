package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/pricing"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// ReceivableReader reads receivables: [store.Store].
type ReceivableReader interface {
	ReceivableDays(ctx context.Context, merchant payment.ID, from, to time.Time) ([]store.ReceivableDay, error)
	ReceivablesAt(ctx context.Context, merchant payment.ID, at time.Time, after payment.ID, limit int) ([]store.ReceivableOf, error)
}

// receivableDaysBytes bounds the answer with all dates on which a merchant's money settles.
const receivableDaysBytes = 256 << 10

// lastDate is later than every settlement.
var lastDate = time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)

// date parses a date, as the time at which money settles; ok is false if it is missing or
// invalid.
func (q *query) date(name string) (at time.Time, ok bool) {
	text, sent := q.get(name)
	if !sent {
		return at, false
	}
	if at, ok = pricing.SettlementTime(text); !ok {
		q.fail(name, problem.CodeInvalidFormat, "must be a date, such as 2026-03-01")
	}
	return at, ok
}

func (a *API) listReceivableDays(c *call) error {
	q := c.query()
	from, _ := q.date("from")
	to, bounded := q.date("to")
	if bounded && to.Before(from) {
		q.fail("to", problem.CodeOutOfRange, "must not be before from")
	}
	if err := q.done(); err != nil {
		return err
	}
	if err := c.reserve(receivableDaysBytes); err != nil {
		return err
	}
	if !bounded {
		to = lastDate
	}
	list, err := a.reader.ReceivableDays(c.ctx, c.merchant.ID, from, to.AddDate(0, 0, 1))
	if err != nil {
		return readError(err)
	}
	days := make([]wire.ReceivableDay, len(list))
	for i, v := range list {
		days[i] = wire.ReceivableDay{Date: payment.DayOf(v.SettlesAt), Amount: v.Amount, Count: v.Count}
	}
	body, err := wire.ReceivableDays(days)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, body)
}

func (a *API) listReceivables(c *call) error {
	at, ok := pricing.SettlementTime(c.r.PathValue("date"))
	if !ok {
		return errNotFound
	}
	q := c.query()
	limit, after := q.limit(), a.cursorID(c, q)
	if err := q.done(); err != nil {
		return err
	}
	if err := c.reserve(limit * entryBytes); err != nil {
		return err
	}
	list, err := a.reader.ReceivablesAt(c.ctx, c.merchant.ID, at, after, limit+1)
	if err != nil {
		return readError(err)
	}
	next := ""
	if len(list) > limit {
		list = list[:limit]
		next = a.cursor(c, list[limit-1].ID[:])
	}
	entries := make([][]byte, len(list))
	for i := range list {
		r := &list[i]
		if entries[i], err = wire.MarshalReceivable(&wire.Receivable{
			OrderType: payment.OperationPayin, OrderID: r.Payin, ReferenceID: r.ReferenceID, Installment: r.Installment,
			Gross: r.Gross, Fee: r.Fee, Taken: r.Taken, Net: r.Net(), SettledAt: wire.TimestampOf(r.SettledAt),
		}); err != nil {
			return err
		}
	}
	return c.json(http.StatusOK, wire.Page(entries, next))
}
