package httpapi

import (
	"bytes"
	"context"
	"net/http"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// Bounds of batches. One of 5,000 payouts takes about 5 KiB of memory for each of them until
// it is committed, beside its body: three leave memory for other writes.
const (
	batchBodyMax      = 4 << 20 // bytes
	batchItemBytes    = 5 << 10
	batchesMax        = 3 // in flight
	batchesOfMerchant = 1
)

var (
	errBatchTooLarge = problem.New(problem.BodyTooLarge, "The body is larger than 4 MiB.")
	errBatches       = problem.New(problem.Overloaded, "Another batch of payouts is being accepted. Send the same request again later.")
)

// requestPayoutBatch is createOrder for a body of its own size and types. A body whose batch
// is not new counts against the rate of the credential as many times as it has items, or KiB:
// all of it was read for nothing.
func (a *API) requestPayoutBatch(c *call) error {
	if err := a.rates.admitBatch(c); err != nil {
		return err
	}
	decoder, err := a.decoder(c)
	if err != nil {
		return err
	}
	media, invalid := c.mediaType(mediaJSON, mediaCSV)
	if invalid != nil {
		return invalid
	}
	asCSV := media == mediaCSV
	var reference wire.Field[string]
	decimal := false
	q := c.query()
	if asCSV {
		reference.V, reference.Set = q.get("referenceId")
		decimal = q.oneOf("amounts", []string{"cents", "decimal"}) == "decimal"
	}
	if err := q.done(); err != nil {
		return err
	}
	var body bytes.Buffer // not of the pool, which would keep it
	if invalid := c.readUpTo(&body, batchBodyMax, errBatchTooLarge); invalid != nil {
		return invalid
	}
	// After the body, which a client may send slowly.
	if !a.batches.begin(c.merchant.ID, batchesMax, batchesOfMerchant) {
		return errBatches
	}
	defer a.batches.end(c.merchant.ID)
	var r *wire.PayoutBatchRequest
	if asCSV {
		r, invalid = decoder.PayoutBatchCSV(reference, decimal, body.Bytes())
	} else {
		r, invalid = decoder.PayoutBatch(body.Bytes())
	}
	// A merchant has one batch at a time, whose items leave its part to other requests.
	if err := c.reserveFor(reserved{all: int64(batchItemBytes * len(r.Items))}); err != nil {
		return err
	}
	fresh := false
	err = answerOrder(a, c, creation[*wire.PayoutBatchRequest, payment.PayoutBatch]{
		create: func(ctx context.Context, m store.Merchant, r *wire.PayoutBatchRequest) (payment.PayoutBatch, bool, error) {
			b, replayed, err := a.payouts.RequestBatch(ctx, m, r)
			fresh = err == nil && !replayed
			return b, replayed, err
		},
		find: a.payouts.ReplayBatch, view: wire.PayoutBatch,
	}, r, invalid)
	if err != nil {
		err = r.NameLines(problem.From(err))
	}
	if !fresh && (err == nil || problem.From(err).Kind.Status() < http.StatusInternalServerError) {
		a.rates.refuseBatch(c, max(len(r.Items), body.Len()/1024))
	}
	return err
}

func (a *API) getPayoutBatch(c *call) error {
	id, err := c.id()
	if err != nil {
		return err
	}
	if err := c.query().done(); err != nil {
		return err
	}
	b, err := a.reader.PayoutBatch(c.ctx, c.merchant.ID, id)
	if err != nil {
		return readError(err)
	}
	return showOrder(c, http.StatusOK, &b, wire.PayoutBatch)
}

func (a *API) listPayoutBatches(c *call) error {
	q := c.query()
	f := a.orderFilter(c, q, payment.OperationPayoutBatch)
	if err := q.done(); err != nil {
		return err
	}
	return listOrders(a, c, f, listing[payment.PayoutBatch]{
		read: a.reader.PayoutBatches,
		id:   func(b *payment.PayoutBatch) payment.ID { return b.ID },
		view: wire.PayoutBatch,
	})
}

// batchFilter selects the payouts of the batch that the parameter batchId names. One that
// does not exist, or is another merchant's, has none.
func (a *API) batchFilter(c *call, q *query, f *store.Filter) error {
	text, ok := q.get("batchId")
	if !ok {
		return nil
	}
	id, err := payment.ParseID(text)
	if err != nil {
		q.fail("batchId", problem.CodeInvalidFormat, "must be the id of a batch")
		return nil
	}
	b, err := a.reader.PayoutBatch(c.ctx, c.merchant.ID, id)
	if err != nil && !problem.Is(readError(err), problem.NotFound) {
		return readError(err)
	}
	f.Batch, f.First, f.Last = id, b.First, b.Last
	return nil
}
