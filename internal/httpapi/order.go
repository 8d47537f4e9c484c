package httpapi

import (
	"cmp"
	"context"
	"net/http"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// Admission refuses new work that would wait too long: write.Writer.
type Admission interface {
	// Admit returns an error of kind overloaded if new work of the merchant would
	// wait too long.
	Admit(merchant payment.ID) error
}

// OrderReader is the queries that pay-ins and payouts share: [store.Store].
type OrderReader interface {
	// ExternalID is the external id of the order with a reference.
	ExternalID(m *store.Merchant, op payment.Operation, reference string) string
	// ScanFrom bounds what a page reads whose filters no index has.
	ScanFrom(ctx context.Context, merchant payment.ID, op payment.Operation, f store.Filter) (payment.ID, error)
	SearchTerm(merchant payment.ID, field store.SearchField, value string) store.SearchTerm
}

// creation creates orders O from requests R.
type creation[R request, O any] struct {
	decode func(d *wire.Decoder, body []byte) (R, *problem.Error)
	// create creates the order, or finds the one of an earlier identical request.
	create func(ctx context.Context, m store.Merchant, r R) (order O, replayed bool, err error)
	// find finds the one of an earlier identical request.
	find func(ctx context.Context, m store.Merchant, r R) (order O, found bool, err error)
	view func(order *O) ([]byte, error)
}

// request is a decoded request to create an order.
type request interface {
	MayRepeat(invalid *problem.Error) bool
}

// createOrder answers 201 with a new order, or with the order of an earlier identical
// request. A repeated request is answered even if it has become invalid since, for example
// because its due date has passed.
func createOrder[R request, O any](a *API, c *call, o creation[R, O]) error {
	decoder, err := a.decoder(c)
	if err != nil {
		return err
	}
	r, invalid := readJSON(c, func(body []byte) (R, *problem.Error) { return o.decode(decoder, body) })
	return answerOrder(a, c, o, r, invalid)
}

// answerOrder is createOrder for a request that was decoded.
func answerOrder[R request, O any](a *API, c *call, o creation[R, O], r R, invalid *problem.Error) (err error) {
	if invalid != nil && !r.MayRepeat(invalid) {
		return invalid
	}
	var order O
	var replayed bool
	if invalid == nil {
		order, replayed, err = o.create(c.ctx, c.merchant, r)
	} else if order, replayed, err = o.find(c.ctx, c.merchant, r); err == nil && !replayed {
		err = invalid
	}
	a.env.Inject(env.BeforeAnswer)
	if err != nil {
		return c.hideDifferences(err)
	}
	if replayed {
		c.w.Header().Set("Idempotency-Replayed", "true")
	}
	return showOrder(c, http.StatusCreated, &order, o.view)
}

// hideDifferences removes the differing fields from a conflict, if the client has no
// credentials.
func (c *call) hideDifferences(err error) error {
	if c.anonymous && problem.Is(err, problem.ReferenceConflict) {
		return problem.New(problem.ReferenceConflict, "This referenceId was already used by a different request.")
	}
	return err
}

// showOrder answers with an order.
func showOrder[O any](c *call, status int, order *O, view func(*O) ([]byte, error)) error {
	body, err := view(order)
	if err != nil {
		return err
	}
	return c.json(status, body)
}

// cancelOrder cancels the order in the path, and answers with it.
func cancelOrder[O any](a *API, c *call, cancel func(ctx context.Context, merchant, id payment.ID) (O, error), view func(*O) ([]byte, error)) error {
	id, err := c.id()
	if err != nil {
		return err
	}
	order, err := cancel(c.ctx, c.merchant.ID, id)
	a.env.Inject(env.BeforeAnswer)
	if err != nil {
		return err
	}
	return showOrder(c, http.StatusOK, &order, view)
}

// orderFilter parses the parameters that the lists of orders share.
func (a *API) orderFilter(c *call, q *query, op payment.Operation) store.Filter {
	f := store.Filter{Limit: q.limit()}
	if reference, ok := q.get("referenceId"); ok {
		if !wire.ValidReference(reference) {
			q.fail("referenceId", problem.CodeInvalidFormat, "must be 1 to 128 characters, without control characters")
		}
		f.ExternalID = a.reader.ExternalID(&c.merchant, op, reference)
	}
	f.CreatedFrom, f.CreatedTo = q.time("createdFrom"), q.time("createdTo")
	f.Before = a.cursorID(c, q)
	return f
}

// listing reads and shows a list of orders O.
type listing[O any] struct {
	read func(ctx context.Context, merchant payment.ID, f store.Filter) ([]O, error)
	id   func(order *O) payment.ID
	view func(order *O) ([]byte, error)
	// operation is that of orders whose filters may need a scan.
	operation  payment.Operation
	entryBytes int // reserved for each entry; 0 for entryBytes
}

// listOrders answers with one page of orders.
func listOrders[O any](a *API, c *call, f store.Filter, l listing[O]) error {
	limit := f.Limit
	if err := c.reserve(limit * cmp.Or(l.entryBytes, entryBytes)); err != nil {
		return err
	}
	var err error
	if f.Scans() {
		if f.From, err = a.reader.ScanFrom(c.ctx, c.merchant.ID, l.operation, f); err != nil {
			return readError(err)
		}
	}
	f.Limit++ // one more, to detect another page
	orders, err := l.read(c.ctx, c.merchant.ID, f)
	if err != nil {
		return readError(err)
	}
	next := ""
	if !f.From.IsZero() { // the page may be short, and there are orders before
		next = a.cursor(c, f.From[:])
	}
	if len(orders) > limit {
		orders = orders[:limit]
		last := l.id(&orders[limit-1])
		next = a.cursor(c, last[:])
	}
	entries := make([][]byte, len(orders))
	for i := range orders {
		if entries[i], err = l.view(&orders[i]); err != nil {
			return err
		}
	}
	return c.json(http.StatusOK, wire.Page(entries, next))
}

// texts returns a list of statuses or methods as strings.
func texts[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = string(v)
	}
	return out
}
