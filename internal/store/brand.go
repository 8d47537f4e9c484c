package store

import (
	"context"
	"errors"
	"time"

	"github.com/porteira/porteira/internal/payment"
)

// Brand is what payers see of a merchant. Empty members are not shown, or, as
// Title, stand for what everybody has.
type Brand struct {
	Merchant  payment.ID
	Title     string // instead of the merchant's name
	Document  string // CPF or CNPJ, as bills name their beneficiary
	Color     string // #rrggbb
	Logo      []byte // a PNG or JPEG
	LogoType  string // its media type
	UpdatedAt time.Time
}

// SaveBrand keeps what payers see of a merchant from now on.
func (tx *Tx) SaveBrand(ctx context.Context, b Brand) error {
	_, err := tx.changed(ctx, `INSERT INTO brands (merchant_id, title, document, color, logo, logo_type, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (merchant_id) DO UPDATE SET title = $2, document = $3, color = $4, logo = $5, logo_type = $6, updated_at = $7`,
		b.Merchant[:], b.Title, b.Document, b.Color, blob(b.Logo), b.LogoType, micros(tx.Now))
	return err
}

// Brand reads what payers see of a merchant; nothing but its id where nothing
// was said.
func (s *Store) Brand(ctx context.Context, merchant payment.ID) (Brand, error) {
	b := Brand{Merchant: merchant}
	var updated int64
	err := s.queryRow(ctx, "SELECT title, document, color, logo, logo_type, updated_at FROM brands WHERE merchant_id = $1", merchant[:]).
		Scan(&b.Title, &b.Document, &b.Color, &b.Logo, &b.LogoType, &updated)
	b.UpdatedAt = atMicros(updated)
	if err = s.readError("brand", err); errors.Is(err, ErrNotFound) {
		err = nil
	}
	return b, err
}
