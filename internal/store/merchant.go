package store

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/limits"
	"github.com/porteira/porteira/internal/payment"
)

// PlatformName is the name of the row with the zero id, which is no merchant but the platform.
const PlatformName = "platform"

// Merchant is a client of the gateway: it collects and pays out money.
type Merchant struct {
	ID          payment.ID
	Number      int64 // short, begins every external id
	Name        string
	City        string
	Routes      []payment.Route // by operation, method and position
	Prices      []payment.Price // valid ones, by method and range
	ReturnHosts []string        // to which payers may be sent back
	// WebhookHosts are those that orders without credentials may name in webhookUrl.
	WebhookHosts []string
	Limits       limits.Limits
	ClosedAt     time.Time
	CreatedAt    time.Time

	// Damaged is ErrChangedOutside if limits, hosts, routes or prices were changed outside the
	// gateway: no new order of the merchant is accepted.
	Damaged error

	mac []byte

	// The secrets of deliveries to per-order URLs, sealed. The previous one signs too until its
	// time.
	webhookSecret, previousSecret []byte
	previousUntil                 time.Time
}

var merchantTable = newTable("merchants", []string{"id"},
	idColumn("id", func(m *Merchant) *payment.ID { return &m.ID }),
	intColumn("number", func(m *Merchant) *int64 { return &m.Number }),
	textColumn("name", func(m *Merchant) *string { return &m.Name }).as(mutable),
	textColumn("city", func(m *Merchant) *string { return &m.City }).as(mutable),
	bytesColumn("webhook_secret", func(m *Merchant) *[]byte { return &m.webhookSecret }).as(hidden),
	bytesColumn("previous_webhook_secret", func(m *Merchant) *[]byte { return &m.previousSecret }).as(hidden),
	timeColumn("previous_webhook_until", func(m *Merchant) *time.Time { return &m.previousUntil }).as(hidden),
	wordsColumn("return_hosts", func(m *Merchant) *[]string { return &m.ReturnHosts }).as(mutable),
	wordsColumn("webhook_hosts", func(m *Merchant) *[]string { return &m.WebhookHosts }).as(mutable),
	jsonColumn("limits", func(m *Merchant) *limits.Limits { return &m.Limits }),
	timeColumn("closed_at", func(m *Merchant) *time.Time { return &m.ClosedAt }),
	timeColumn("created_at", func(m *Merchant) *time.Time { return &m.CreatedAt }),
	bytesColumn("mac", func(m *Merchant) *[]byte { return &m.mac }),
)

var merchantHash = merchantTable.hashOf("id", "number", "name", "city", "return_hosts", "webhook_hosts", "limits", "closed_at", "created_at")

var (
	merchantUpdate = merchantTable.updateBy("", "id")
	merchantByID   = "SELECT " + merchantTable.selected + " FROM merchants t WHERE t.id = $1"
)

// wordsColumn keeps words without blanks, separated by blanks.
func wordsColumn[T any](name string, of func(*T) *[]string) column[T] {
	return column[T]{
		Column: db.Column{Name: name, Kind: "text"},
		value:  func(v *T) any { return strings.Join(*of(v), " ") },
		dest:   func(v *T) any { return (*wordsDest)(of(v)) },
	}
}

type wordsDest []string

// Scan implements [sql.Scanner].
func (d *wordsDest) Scan(src any) error {
	var text string
	err := textDest[string]{&text}.Scan(src)
	*d = strings.Fields(text)
	return err
}

func scanMerchant(r db.Scanner) (Merchant, error) {
	var m Merchant
	return m, merchantTable.scan(r, &m)
}

func webhookSecret(merchant payment.ID) db.AssociatedData {
	return db.AssociatedData{Table: "merchants", Merchant: merchant, ID: merchant, Column: "webhook_secret"}
}

// numberJump is the least distance of the numbers before and after a restore. Merchants that the
// backup lacks have external ids at the processors. A new merchant must not get their number, or it
// would get their late payments too.
const numberJump = 1_000_000

// nextNumber is the number of a new merchant: the next one. After a restore the first one is far
// beyond, at a random distance, as there may have been a restore before.
func (tx *Tx) nextNumber(ctx context.Context, random uint32) (int64, error) {
	var last, created, restored int64
	if err := tx.QueryRow(ctx, "SELECT number, created_at FROM merchants ORDER BY number DESC LIMIT 1").Scan(&last, &created); err != nil {
		return 0, err
	}
	if err := tx.QueryRow(ctx, "SELECT proved_at FROM installation").Scan(&restored); err != nil {
		return 0, err
	}
	// The newest merchant may have been created while the clock was ahead.
	if restored > 0 && (created <= restored || created > micros(tx.Now)) {
		last += numberJump + int64(random%numberJump)
	}
	return last + 1, nil
}

// CreateMerchant adds a merchant with the next free number, its routes, its prices and its
// sealed webhook secret. A taken name is ErrConflict.
func (tx *AdminTx) CreateMerchant(ctx context.Context, m Merchant, secret string) (Merchant, error) {
	m.ID, m.CreatedAt = tx.NewID(), tx.Now
	err := tx.lockMerchants(ctx)
	if err != nil {
		return m, err
	}
	if m.Number, err = tx.nextNumber(ctx, binary.BigEndian.Uint32(m.ID[12:])); err != nil {
		return m, err
	}
	if m.Number > payment.MerchantNumberMax {
		return m, fmt.Errorf("store: merchant numbers are used up at %d", payment.MerchantNumberMax)
	}
	m.webhookSecret = tx.Keys().Seal(webhookSecret(m.ID), []byte(secret))
	tx.record(NounMerchant, "create", m.ID, "", nil, m.auditFields())
	if err := tx.InsertNew(ctx, merchantTable.insert, merchantTable.row(&m)); err != nil {
		return m, fmt.Errorf("merchant %d: %w", m.Number, err)
	}
	if err := tx.addRoutes(ctx, m.ID, m.Routes); err != nil {
		return m, err
	}
	if err := tx.addPrices(ctx, m.ID, m.Prices); err != nil {
		return m, err
	}
	return m, tx.signMerchant(ctx, m.ID)
}

// lockMerchants locks the platform's row: under it numbers and names are assigned one at a
// time.
func (tx *Tx) lockMerchants(ctx context.Context) error {
	var platform int64
	return tx.QueryRow(ctx, "SELECT number FROM merchants WHERE number = 0"+tx.ForUpdate()).Scan(&platform)
}

// lockMerchant locks a merchant's row, so that the merchant's data is checked and changed by one
// transaction at a time. ErrNotFound if there is none.
func (tx *Tx) lockMerchant(ctx context.Context, id payment.ID) error {
	var number int64
	return db.NotFound(tx.QueryRow(ctx, "SELECT number FROM merchants WHERE id = $1"+tx.ForUpdate(), id[:]).Scan(&number))
}

// ChangeMerchant changes name, city and hosts of a merchant. Errors: ErrNotFound,
// ErrConflict if another merchant has the name, and that of change.
func (tx *AdminTx) ChangeMerchant(ctx context.Context, id payment.ID, change func(m *Merchant) error) (Merchant, error) {
	if err := tx.lockMerchants(ctx); err != nil {
		return Merchant{}, err
	}
	m, err := tx.soundMerchant(ctx, id)
	if err != nil {
		return m, err
	}
	before := m.auditFields()
	if err := change(&m); err != nil {
		return m, err
	}
	tx.record(NounMerchant, "change", m.ID, "", before, m.auditFields())
	var others int64
	if err := tx.QueryRow(ctx, "SELECT count(*) FROM merchants WHERE name = $1 AND id <> $2", m.Name, id[:]).Scan(&others); err != nil {
		return m, err
	}
	if others > 0 {
		return m, fmt.Errorf("%w: the name of another merchant", ErrConflict)
	}
	missed, err := tx.Update(ctx, merchantUpdate.RowUpdate, merchantUpdate.row(&m))
	if err == nil && len(missed) > 0 {
		err = ErrNotFound
	}
	if err != nil {
		return m, err
	}
	return m, tx.signMerchant(ctx, id)
}

func (s *Store) merchant(ctx context.Context, by string, key any) (m Merchant, err error) {
	for range settingsReads { // a change between two of its statements looks like damage
		m, err = readMerchant(ctx, s.db, s.Keys(), "SELECT "+merchantTable.selected+" FROM merchants t WHERE t."+by+" = $1", key)
		if err != nil || m.Damaged == nil {
			break
		}
	}
	return m, s.db.ReadError("merchant", err)
}

// Merchant reads a merchant; else ErrNotFound.
func (s *Store) Merchant(ctx context.Context, id payment.ID) (Merchant, error) {
	return s.merchant(ctx, "id", id[:])
}

// MerchantByNumber reads the merchant whose external ids begin with number; else
// ErrNotFound.
func (s *Store) MerchantByNumber(ctx context.Context, number int64) (Merchant, error) {
	return s.merchant(ctx, "number", number)
}

// MerchantByName reads a merchant by its unique name; else ErrNotFound.
func (s *Store) MerchantByName(ctx context.Context, name string) (Merchant, error) {
	return s.merchant(ctx, "name", name)
}

// Merchants lists all merchants by number, without the platform itself.
func (s *Store) Merchants(ctx context.Context) ([]Merchant, error) {
	rows, err := s.db.Query(ctx, "SELECT "+merchantTable.selected+" FROM merchants t WHERE t.number > 0 ORDER BY t.number")
	list, err := db.Collect(rows, err, scanMerchant)
	if err != nil {
		return list, s.db.ReadError("merchants", err)
	}
	of, err := readRoutes(ctx, s.db, "SELECT "+routeTable.selected+" FROM routes t ORDER BY t.merchant_id, t.operation, t.method, t.position")
	if err != nil {
		return list, s.db.ReadError("routes", err)
	}
	prices, err := readPrices(ctx, s.db, "SELECT "+priceTable.selected+` FROM prices t
		WHERE t.until = 0 ORDER BY t.merchant_id, t.method, t.installments_from, t.installments_to`)
	if err != nil {
		return list, s.db.ReadError("prices", err)
	}
	for i := range list {
		m := &list[i]
		m.setRows(s.Keys(), of[m.ID], prices[m.ID])
		if m.Damaged != nil && err == nil { // or it was changed meanwhile
			*m, err = s.Merchant(ctx, m.ID)
		}
	}
	return list, err
}

// WebhookSecret opens the secret that signs deliveries to a merchant's per-order
// URLs.
func (s *Store) WebhookSecret(ctx context.Context, id payment.ID) (string, error) {
	var sealed []byte
	if err := s.db.QueryRow(ctx, "SELECT webhook_secret FROM merchants WHERE id = $1", id[:]).Scan(&sealed); err != nil {
		return "", s.db.ReadError("webhook secret", err)
	}
	plain, err := s.Keys().Open(webhookSecret(id), sealed)
	return string(plain), err
}

// WebhookSecrets are the secrets that sign deliveries to a merchant's per-order URLs: the
// current one, and the previous one, which signs until a time; "" if there is none.
type WebhookSecrets struct {
	Current, Previous string
	Until             time.Time
}

// WebhookSecrets opens the secrets of a merchant.
func (s *Store) WebhookSecrets(ctx context.Context, id payment.ID) (v WebhookSecrets, err error) {
	var current, previous []byte
	err = s.db.QueryRow(ctx, "SELECT webhook_secret, previous_webhook_secret, previous_webhook_until FROM merchants WHERE id = $1", id[:]).
		Scan(&current, &previous, (*timeDest)(&v.Until))
	if err != nil {
		return v, s.db.ReadError("webhook secrets", err)
	}
	plain, err := s.Keys().Open(webhookSecret(id), current)
	if err != nil || len(previous) == 0 {
		return WebhookSecrets{Current: string(plain)}, err
	}
	v.Current = string(plain)
	plain, err = s.Keys().Open(webhookSecret(id), previous)
	v.Previous = string(plain)
	return v, err
}

// SealWebhookSecret seals a secret for a merchant, for [Tx.RotateWebhookSecret].
func (s *Store) SealWebhookSecret(merchant payment.ID, secret string) []byte {
	return s.Keys().Seal(webhookSecret(merchant), []byte(secret))
}

// RotateWebhookSecret gives a merchant a new sealed secret. The previous one signs too until a
// time. It does nothing if the merchant has that secret already.
func (tx *AdminTx) RotateWebhookSecret(ctx context.Context, merchant payment.ID, sealed []byte, until time.Time) error {
	n, err := tx.ExecCount(ctx, `UPDATE merchants SET previous_webhook_secret = webhook_secret, previous_webhook_until = $1, webhook_secret = $2
		WHERE id = $3 AND webhook_secret <> $2`, micros(until), sealed, merchant[:])
	if n > 0 {
		after := fieldsOf(map[string]time.Time{"previousSecretEndsAt": until})
		after.changed("secret", true)
		tx.record("webhook secret", "rotate", merchant, "", nil, after)
	}
	return err
}
