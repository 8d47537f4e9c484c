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

// defenseMax is the maximum size of a body with a defense, in bytes.
const defenseMax = 3 << 19

// Defenses that are decoded at once, of all merchants and of one: each takes several times its
// body.
const (
	defensesMax        = 8
	defensesOfMerchant = 2
)

// disputeBytes is the memory that a list reserves for each dispute: a defense has up to 4,000
// characters of text and five names of files, of up to 4 bytes each.
const disputeBytes = 24 << 10

// Errors of defenses. errDefenseTooLarge names the larger limit.
var (
	errDefenseTooLarge = problem.New(problem.BodyTooLarge, "The body is larger than 1.5 MiB.")
	errDefenses        = problem.New(problem.Overloaded, "Other defenses are being accepted. Send the same request again later.")
)

// Disputes are the use cases of disputes, which dispute.Service implements.
type Disputes interface {
	Defend(ctx context.Context, merchant, id payment.ID, r *wire.DefenseRequest) (payment.Dispute, *payment.Defense, error)
	Accept(ctx context.Context, merchant, id payment.ID) (payment.Dispute, *payment.Defense, error)
}

// DisputeReader reads disputes: [store.Store].
type DisputeReader interface {
	Dispute(ctx context.Context, merchant, id payment.ID) (payment.Dispute, *payment.Defense, error)
	Disputes(ctx context.Context, merchant payment.ID, f store.DisputeFilter) ([]store.DefendedDispute, error)
}

func (a *API) listDisputes(c *call) error {
	q := c.query()
	f := store.DisputeFilter{
		Limit: q.limit(), Statuses: q.list("status", texts(payment.DisputeStatuses)), Kind: q.oneOf("kind", texts(payment.DisputeKinds)),
		RespondBefore: q.time("respondBefore"), Before: a.cursorID(c, q),
	}
	if text, ok := q.get("payinId"); ok {
		id, err := payment.ParseID(text)
		if err != nil {
			q.fail("payinId", problem.CodeInvalidFormat, "must be the id of a pay-in")
		}
		f.Payin = id
	}
	if err := q.done(); err != nil {
		return err
	}
	return listOrders(a, c, store.Filter{Limit: f.Limit}, listing[store.DefendedDispute]{
		read: func(ctx context.Context, merchant payment.ID, page store.Filter) ([]store.DefendedDispute, error) {
			f.Limit = page.Limit
			return a.reader.Disputes(ctx, merchant, f)
		},
		id:   func(d *store.DefendedDispute) payment.ID { return d.ID },
		view: func(d *store.DefendedDispute) ([]byte, error) { return wire.Dispute(&d.Dispute, d.Defense) }, entryBytes: disputeBytes,
	})
}

func (a *API) getDispute(c *call) error {
	id, err := c.id()
	if err != nil {
		return err
	}
	if err := c.query().done(); err != nil {
		return err
	}
	d, defense, err := a.reader.Dispute(c.ctx, c.merchant.ID, id)
	return showDispute(c, &d, defense, err)
}

func showDispute(c *call, d *payment.Dispute, defense *payment.Defense, err error) error {
	if err != nil {
		return readError(err)
	}
	return showOrder(c, http.StatusOK, d, func(d *payment.Dispute) ([]byte, error) { return wire.Dispute(d, defense) })
}

// defendDispute reads a body that is larger than others, into memory of its own.
func (a *API) defendDispute(c *call) error {
	id, err := c.id()
	if err != nil {
		return err
	}
	decoder, err := a.decoder(c)
	if err != nil {
		return err
	}
	if _, _, err := a.reader.Dispute(c.ctx, c.merchant.ID, id); err != nil {
		return readError(err)
	}
	var b bytes.Buffer
	if invalid := c.readJSONUpTo(&b, defenseMax, errDefenseTooLarge); invalid != nil {
		return invalid
	}
	if !a.defenses.begin(c.merchant.ID, defensesMax, defensesOfMerchant) {
		return errDefenses
	}
	defer a.defenses.end(c.merchant.ID)
	r, invalid := decoder.Defense(b.Bytes())
	if invalid != nil {
		return invalid
	}
	d, defense, err := a.disputes.Defend(c.ctx, c.merchant.ID, id, r)
	return showDispute(c, &d, defense, err)
}

func (a *API) acceptDispute(c *call) error {
	id, err := c.id()
	if err != nil {
		return err
	}
	d, defense, err := a.disputes.Accept(c.ctx, c.merchant.ID, id)
	return showDispute(c, &d, defense, err)
}
