package store

import (
	"context"
	"slices"
	"strings"

	"github.com/porteira/porteira/internal/payment"
)

// ahead is orders that a transaction read and locked together, because it will
// ask for each of them: on a server that is one round trip instead of hundreds.
// It shows them as the transaction has changed them since.
type ahead struct {
	payins  map[aheadKey]payinAhead
	payouts map[Ref]payment.Payout
}

type aheadKey struct {
	merchant   payment.ID
	externalID string
}

type payinAhead struct {
	order       payment.Payin
	fingerprint []byte
}

// PayinsAhead reads and locks a merchant's pay-ins for PayinByExternalID. Where
// a statement is no round trip it does nothing.
func (tx *Tx) PayinsAhead(ctx context.Context, merchant payment.ID, externalIDs []string) error {
	if !tx.store.dialect.remote() || len(externalIDs) < 2 {
		return nil
	}
	rows, err := tx.query(ctx, "SELECT "+payinColumns+`, fingerprint FROM unnest($1::bytea[], $2::text[]) AS v (owner, key)
		JOIN payins ON merchant_id = v.owner AND external_id = v.key ORDER BY external_id FOR UPDATE OF payins`,
		slices.Repeat([][]byte{merchant[:]}, len(externalIDs)), externalIDs)
	list, err := collect(rows, err, func(r scanner) (payinAhead, error) {
		p, f, err := payinByExternalID(r)
		return payinAhead{p, f}, err
	})
	if err != nil {
		return err
	}
	if tx.ahead.payins == nil {
		tx.ahead.payins = make(map[aheadKey]payinAhead, len(list))
	}
	for _, v := range list {
		tx.ahead.payins[aheadKey{merchant, v.order.ExternalID}] = v
	}
	return nil
}

// PayoutsAhead is PayinsAhead for Payout.
func (tx *Tx) PayoutsAhead(ctx context.Context, merchant payment.ID, ids []payment.ID) error {
	if !tx.store.dialect.remote() || len(ids) < 2 {
		return nil
	}
	keys := make([][]byte, len(ids))
	for i := range ids {
		keys[i] = ids[i][:]
	}
	rows, err := tx.query(ctx, "SELECT "+payoutColumns+` FROM unnest($1::bytea[], $2::bytea[]) AS v (owner, key)
		JOIN payouts ON merchant_id = v.owner AND id = v.key ORDER BY id FOR UPDATE OF payouts`,
		slices.Repeat([][]byte{merchant[:]}, len(ids)), keys)
	list, err := collect(rows, err, func(r scanner) (payment.Payout, error) { return tx.store.scanPayout(r) })
	if err != nil {
		return err
	}
	if tx.ahead.payouts == nil {
		tx.ahead.payouts = make(map[Ref]payment.Payout, len(list))
	}
	for i := range list {
		tx.ahead.payouts[Ref{merchant, list[i].ID}] = list[i]
	}
	return nil
}

// payin keeps what a pay-in is changed to.
func (a *ahead) payin(p *payment.Payin) {
	key := aheadKey{p.Merchant, p.ExternalID}
	if known, ok := a.payins[key]; ok {
		known.order = *p
		a.payins[key] = known
	}
}

// payout keeps what a payout is changed to.
func (a *ahead) payout(p *payment.Payout) {
	key := Ref{p.Merchant, p.ID}
	if _, ok := a.payouts[key]; ok {
		a.payouts[key] = *p
	}
}

// forget drops what a statement changes behind its back.
func (a *ahead) forget(text string) {
	if a.payins != nil && strings.Contains(text, "UPDATE payins") {
		a.payins = nil
	}
	if a.payouts != nil && strings.Contains(text, "UPDATE payouts") {
		a.payouts = nil
	}
}
