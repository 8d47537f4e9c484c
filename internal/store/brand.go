package store

import (
	"context"
	"errors"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
)

// Brand is a merchant's brand, as payers see it. Empty members are not shown, or
// have defaults.
type Brand struct {
	Merchant  payment.ID
	Title     string // instead of the merchant's name
	Document  string // CPF or CNPJ, the beneficiary on boletos
	Color     string // #rrggbb
	Logo      []byte // a PNG or JPEG
	LogoType  string // its media type
	UpdatedAt time.Time
}

var brandTable = newTable("brands", []string{"merchant_id"},
	idColumn("merchant_id", func(b *Brand) *payment.ID { return &b.Merchant }),
	textColumn("title", func(b *Brand) *string { return &b.Title }).as(mutable),
	textColumn("document", func(b *Brand) *string { return &b.Document }).as(mutable),
	textColumn("color", func(b *Brand) *string { return &b.Color }).as(mutable),
	bytesColumn("logo", func(b *Brand) *[]byte { return &b.Logo }).as(mutable),
	textColumn("logo_type", func(b *Brand) *string { return &b.LogoType }).as(mutable),
	timeColumn("updated_at", func(b *Brand) *time.Time { return &b.UpdatedAt }).as(mutable),
)

var (
	brandUpdate     = brandTable.updateBy("", "merchant_id")
	brandOfMerchant = "SELECT " + brandTable.selected + " FROM brands t WHERE t.merchant_id = $1"
)

// SaveBrand replaces a merchant's brand.
func (tx *AdminTx) SaveBrand(ctx context.Context, b Brand) error {
	before, err := tx.Brand(ctx, b.Merchant)
	if err != nil {
		return err
	}
	tx.record("brand", "set", b.Merchant, "", before.auditFields(&before), b.auditFields(&before))
	b.UpdatedAt = tx.Now
	missed, err := tx.Update(ctx, brandUpdate.RowUpdate, brandUpdate.row(&b))
	if err != nil || len(missed) == 0 {
		return err
	}
	added, err := tx.Insert(ctx, brandTable.insert, brandTable.row(&b))
	if err == nil && !added[0] { // another transaction was first
		err = db.ErrRetry
	}
	return err
}

// Brand is Store.Brand within the transaction, which has changed the merchant, and so has its lock.
func (tx *Tx) Brand(ctx context.Context, merchant payment.ID) (Brand, error) {
	b := Brand{Merchant: merchant}
	err := db.NotFound(brandTable.scan(tx.QueryRow(ctx, brandOfMerchant, merchant[:]), &b))
	if errors.Is(err, ErrNotFound) {
		err = nil
	}
	return b, err
}

// Brand reads a merchant's brand; only its id is set if nothing was saved.
func (s *Store) Brand(ctx context.Context, merchant payment.ID) (Brand, error) {
	b := Brand{Merchant: merchant}
	err := brandTable.scan(s.db.QueryRow(ctx, brandOfMerchant, merchant[:]), &b)
	if err = s.db.ReadError("brand", err); errors.Is(err, ErrNotFound) {
		err = nil
	}
	return b, err
}
