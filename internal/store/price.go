package store

import (
	"context"
	"fmt"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
)

// priceRow is a version of a merchant's price.
type priceRow struct {
	payment.Price

	merchant payment.ID
	version  int64
	until    time.Time // when it was replaced; zero while it is valid
	mac      []byte    // since then: the hash of the merchant covers valid prices
}

var priceTable = newTable("prices", []string{"method", "installments_from", "installments_to"},
	idColumn("merchant_id", func(p *priceRow) *payment.ID { return &p.merchant }),
	textColumn("method", func(p *priceRow) *payment.Method { return &p.Method }),
	intColumn("installments_from", func(p *priceRow) *int { return &p.From }),
	intColumn("installments_to", func(p *priceRow) *int { return &p.To }),
	intColumn("version", func(p *priceRow) *int64 { return &p.version }),
	intColumn("basis_points", func(p *priceRow) *int64 { return &p.BasisPoints }),
	intColumn("fixed", func(p *priceRow) *cents { return &p.Fixed }),
	intColumn("minimum", func(p *priceRow) *cents { return &p.Minimum }),
	intColumn("maximum", func(p *priceRow) *cents { return &p.Maximum }),
	intColumn("days", func(p *priceRow) *int { return &p.Days }),
	flagColumn("business_days", func(p *priceRow) *bool { return &p.Business }),
	flagColumn("per_installment", func(p *priceRow) *bool { return &p.PerInstallment }),
	flagColumn("refunds_fee", func(p *priceRow) *bool { return &p.RefundsFee }),
	timeColumn("since", func(p *priceRow) *time.Time { return &p.Since }),
	timeColumn("until", func(p *priceRow) *time.Time { return &p.until }),
	bytesColumn("mac", func(p *priceRow) *[]byte { return &p.mac }),
)

var priceHash = priceTable.hashOf("merchant_id", "method", "installments_from", "installments_to", "version", "basis_points", "fixed", "minimum", "maximum", "days", "business_days",
	"per_installment", "refunds_fee", "since", "until")

var pricesOfMerchant = "SELECT " + priceTable.selected + ` FROM prices t
	WHERE t.merchant_id = $1 AND t.until = 0 ORDER BY t.method, t.installments_from, t.installments_to`

func scanPrice(r db.Scanner) (priceRow, error) {
	var v priceRow
	return v, priceTable.scan(r, &v)
}

// Prices reads the valid prices of a merchant. Until the transaction ends, others that call it for
// the merchant wait.
func (tx *Tx) Prices(ctx context.Context, merchant payment.ID) ([]payment.Price, error) {
	if err := tx.lockMerchant(ctx, merchant); err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, pricesOfMerchant, merchant[:])
	list, err := db.Collect(rows, err, scanPrice)
	prices := make([]payment.Price, len(list))
	for i := range list {
		prices[i] = list[i].Price
	}
	return prices, err
}

// SetPrice makes a price of a merchant valid from now on, in place of the one for the same method
// and range. It is ErrConflict if another transaction replaces that one too.
func (tx *AdminTx) SetPrice(ctx context.Context, merchant payment.ID, p payment.Price) error {
	m, err := tx.soundMerchant(ctx, merchant)
	if err != nil {
		return err
	}
	var before *payment.Price
	for i := range m.Prices {
		if v := &m.Prices[i]; v.Method == p.Method && v.From == p.From && v.To == p.To {
			before = v
		}
	}
	tx.record(NounPrice, "set", merchant, PriceSubject(&p), priceFields(before), priceFields(&p))
	p.Since = tx.Now
	row := priceRow{Price: p, merchant: merchant, version: 1}
	key := []any{merchant[:], string(p.Method), p.From, p.To}
	rows, err := tx.Query(ctx, "SELECT "+priceTable.selected+` FROM prices t
		WHERE t.merchant_id = $1 AND t.method = $2 AND t.installments_from = $3 AND t.installments_to = $4 ORDER BY t.version DESC LIMIT 1`, key...)
	last, err := db.Collect(rows, err, scanPrice)
	if err != nil {
		return err
	}
	for _, old := range last {
		row.version, old.until = old.version+1, tx.Now
		if _, err := tx.Exec(ctx, `UPDATE prices SET until = $5, mac = $6
			WHERE merchant_id = $1 AND method = $2 AND installments_from = $3 AND installments_to = $4 AND until = 0`,
			append(key, micros(tx.Now), priceHash.mac(tx.Keys(), &old))...); err != nil {
			return err
		}
	}
	if err := tx.InsertNew(ctx, priceTable.insert, priceTable.row(&row)); err != nil {
		return err
	}
	return tx.signMerchant(ctx, merchant)
}

// PriceSubject names a price of a merchant in the audit.
func PriceSubject(p *payment.Price) string { return fmt.Sprintf("%s %d-%d", p.Method, p.From, p.To) }

// addPrices adds the first prices of a merchant.
func (tx *Tx) addPrices(ctx context.Context, merchant payment.ID, list []payment.Price) error {
	rows := make([][]any, len(list))
	for i := range list {
		rows[i] = priceTable.row(&priceRow{Price: list[i], merchant: merchant, version: 1})
	}
	return tx.InsertNew(ctx, priceTable.insert, rows...)
}

// readPrices reads prices, by merchant.
func readPrices(ctx context.Context, q querier, text string, args ...any) (map[payment.ID][]priceRow, error) {
	rows, err := q.Query(ctx, text, args...)
	list, err := db.Collect(rows, err, scanPrice)
	of := map[payment.ID][]priceRow{}
	for i := range list {
		of[list[i].merchant] = append(of[list[i].merchant], list[i])
	}
	return of, err
}
