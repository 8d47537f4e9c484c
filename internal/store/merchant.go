package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/payment"
)

// Merchant is who receives the money.
type Merchant struct {
	ID          payment.ID
	Number      int64 // short, leads every external id
	Name        string
	City        string
	Processor   string
	ReturnHosts []string // where payers may be sent back to
	ClosedAt    time.Time
	CreatedAt   time.Time
}

// CreateMerchant adds a merchant with the next free number, its sealed webhook
// secret, and its accounts. A name that is taken is ErrConflict.
func (tx *Tx) CreateMerchant(ctx context.Context, m Merchant, webhookSecret string) (Merchant, error) {
	m.ID, m.CreatedAt = tx.NewID(), tx.Now
	// Numbers are given out one merchant at a time: who locks the platform's row.
	var platform int64
	if err := tx.queryRow(ctx, "SELECT number FROM merchants WHERE number = 0"+tx.store.dialect.forUpdate()).Scan(&platform); err != nil {
		return m, err
	}
	if err := tx.queryRow(ctx, "SELECT coalesce(max(number), 0) + 1 FROM merchants").Scan(&m.Number); err != nil {
		return m, err
	}
	if m.Number > payment.MerchantNumberMax {
		return m, fmt.Errorf("store: merchant numbers are used up at %d", payment.MerchantNumberMax)
	}
	n, err := tx.changed(ctx, `INSERT INTO merchants (id, number, name, city, processor, webhook_secret, return_hosts, closed_at, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, 0, $8) ON CONFLICT DO NOTHING`,
		m.ID[:], m.Number, m.Name, m.City, m.Processor,
		tx.store.keys.Seal(Place{"merchants", m.ID, m.ID, "webhook_secret"}, []byte(webhookSecret)),
		strings.Join(m.ReturnHosts, " "), micros(m.CreatedAt))
	if err == nil && n != 1 {
		err = fmt.Errorf("%w: a merchant has that name", ErrConflict)
	}
	return m, err
}

// CloseMerchant marks a merchant as closed: its credentials are refused from
// then on, its orders live on.
func (tx *Tx) CloseMerchant(ctx context.Context, id payment.ID) error {
	return tx.guarded(ctx, "UPDATE merchants SET closed_at = $1 WHERE id = $2 AND closed_at = 0", micros(tx.Now), id[:])
}

const merchantColumns = "id, number, name, city, processor, return_hosts, closed_at, created_at"

func scanMerchant(r scanner) (Merchant, error) {
	var m Merchant
	var id []byte
	var hosts string
	var closed, created int64
	err := r.Scan(&id, &m.Number, &m.Name, &m.City, &m.Processor, &hosts, &closed, &created)
	m.ID, m.ReturnHosts, m.ClosedAt, m.CreatedAt = idOf(id), strings.Fields(hosts), atMicros(closed), atMicros(created)
	return m, err
}

func (s *Store) merchant(ctx context.Context, by string, key any) (Merchant, error) {
	m, err := scanMerchant(s.queryRow(ctx, "SELECT "+merchantColumns+" FROM merchants WHERE "+by+" = $1", key))
	return m, s.readError("merchant", err)
}

// Merchant reads a merchant; else ErrNotFound.
func (s *Store) Merchant(ctx context.Context, id payment.ID) (Merchant, error) {
	return s.merchant(ctx, "id", id[:])
}

// MerchantByNumber finds whose external id begins with number; else ErrNotFound.
func (s *Store) MerchantByNumber(ctx context.Context, number int64) (Merchant, error) {
	return s.merchant(ctx, "number", number)
}

// MerchantByName reads a merchant by its unique name; else ErrNotFound.
func (s *Store) MerchantByName(ctx context.Context, name string) (Merchant, error) {
	return s.merchant(ctx, "name", name)
}

// Merchants lists all merchants by number, without the platform itself.
func (s *Store) Merchants(ctx context.Context) ([]Merchant, error) {
	rows, err := s.query(ctx, "SELECT "+merchantColumns+" FROM merchants WHERE number > 0 ORDER BY number")
	list, err := collect(rows, err, scanMerchant)
	return list, s.readError("merchants", err)
}

// WebhookSecret opens the secret that signs deliveries to a merchant's
// per-order addresses.
func (s *Store) WebhookSecret(ctx context.Context, id payment.ID) (string, error) {
	var sealed []byte
	if err := s.queryRow(ctx, "SELECT webhook_secret FROM merchants WHERE id = $1", id[:]).Scan(&sealed); err != nil {
		return "", s.readError("webhook secret", err)
	}
	plain, err := s.keys.Open(Place{"merchants", id, id, "webhook_secret"}, sealed)
	return string(plain), err
}
