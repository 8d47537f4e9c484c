package store

import (
	"context"
	"fmt"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
)

// settingsReads is how often a merchant is read until its hash fits.
const settingsReads = 3

// readMerchant reads a merchant by a SELECT of its row, with its routes and valid prices. One whose
// hash does not fit is damaged.
func readMerchant(ctx context.Context, q querier, keys *db.Keyring, text string, key any) (Merchant, error) {
	m, err := scanMerchant(q.QueryRow(ctx, text, key))
	if err != nil {
		return m, db.NotFound(err)
	}
	routes, err := readRoutes(ctx, q, routesOfMerchant, m.ID[:])
	if err != nil {
		return m, fmt.Errorf("routes: %w", err)
	}
	prices, err := readPrices(ctx, q, pricesOfMerchant, m.ID[:])
	if err != nil {
		return m, fmt.Errorf("prices: %w", err)
	}
	m.setRows(keys, routes[m.ID], prices[m.ID])
	return m, nil
}

// setRows gives a merchant its routes and prices, and compares its hash with all of them.
func (m *Merchant) setRows(keys *db.Keyring, routes []routeRow, prices []priceRow) {
	m.Routes, m.Prices, m.Damaged = nil, nil, nil
	for i := range routes {
		m.Routes = append(m.Routes, routes[i].Route)
	}
	for i := range prices {
		m.Prices = append(m.Prices, prices[i].Price)
	}
	if !merchantHash.authentic(keys, m, m.mac, coveredRows(routes, prices)...) {
		m.Damaged = fmt.Errorf("%w: limits, hosts, routes or prices of merchant %q", ErrChangedOutside, m.Name)
	}
}

// coveredRows are the rows that the hash of a merchant covers beside its own.
func coveredRows(routes []routeRow, prices []priceRow) (rows [][]byte) {
	for i := range routes {
		rows = append(rows, routeHash.appendCovered(nil, &routes[i]))
	}
	for i := range prices {
		rows = append(rows, priceHash.appendCovered(nil, &prices[i]))
	}
	return rows
}

// soundMerchant locks a merchant, whose settings the transaction changes. Errors: ErrNotFound, and
// ErrChangedOutside for a damaged one: the change would make it look sound.
func (tx *Tx) soundMerchant(ctx context.Context, id payment.ID) (Merchant, error) {
	m, err := readMerchant(ctx, tx, tx.Keys(), merchantByID+tx.ForUpdate(), id[:])
	if err == nil {
		err = m.Damaged
	}
	return m, err
}

// signMerchant gives a merchant the hash of its settings as they are now.
func (tx *Tx) signMerchant(ctx context.Context, id payment.ID) error {
	m, err := scanMerchant(tx.QueryRow(ctx, merchantByID+tx.ForUpdate(), id[:]))
	if err != nil {
		return db.NotFound(err)
	}
	routes, err := readRoutes(ctx, tx, routesOfMerchant, id[:])
	if err != nil {
		return fmt.Errorf("routes: %w", err)
	}
	prices, err := readPrices(ctx, tx, pricesOfMerchant, id[:])
	if err != nil {
		return fmt.Errorf("prices: %w", err)
	}
	mac := merchantHash.mac(tx.Keys(), &m, coveredRows(routes[id], prices[id])...)
	return tx.ExecOne(ctx, "UPDATE merchants SET mac = $1 WHERE id = $2", mac, id[:])
}

// AcceptMerchant makes the settings of a merchant valid as they are: a person has compared limits,
// hosts, routes and prices after they were changed outside the gateway.
func (tx *AdminTx) AcceptMerchant(ctx context.Context, id payment.ID) error {
	tx.Record(NounMerchant, "accept", id, "")
	if err := tx.lockMerchant(ctx, id); err != nil {
		return err
	}
	return tx.signMerchant(ctx, id)
}
