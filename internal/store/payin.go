package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/porteira/porteira/internal/payment"
)

// NewPayin is a pay-in to be stored, with what is stored beside it.
type NewPayin struct {
	payment.Payin
	Personal    payment.PersonalData
	Fingerprint []byte

	row []any // see PreparePayin
}

var payinTable = newTable("payins", "id",
	column{"merchant_id", "bytea"}, column{"id", "bytea"}, column{"external_id", "text"}, column{"reference_id", "text"},
	column{"method", "text"}, column{"amount", "bigint"}, column{"status", "text"}, column{"version", "bigint"},
	column{"processor", "text"}, column{"processor_id", "text"}, column{"webhook_url", "text"}, column{"webhook_ended", "bigint"},
	column{"details", "text"}, column{"personal", "bytea"}, column{"fingerprint", "bytea"}, column{"paid_amount", "bigint"},
	column{"refunded_amount", "bigint"}, column{"fee", "bigint"}, column{"end_to_end_id", "text"}, column{"late", "bigint"},
	column{"failure", "text"}, column{"expires_at", "bigint"}, column{"paid_at", "bigint"}, column{"next_at", "bigint"},
	column{"created_at", "bigint"}, column{"updated_at", "bigint"})

// personalColumn is a pay-in's personal data as its column has it, sealed.
type personalColumn struct {
	Customer jsontext.Value `json:"customer,omitzero"`
	Items    jsontext.Value `json:"items,omitzero"`
}

// PreparePayin does ahead what InsertPayins needs and no transaction: in the
// writer's hands it would keep everybody waiting. p must not change after it.
func (s *Store) PreparePayin(p *NewPayin) error {
	details, err := json.Marshal(&p.Details)
	if err != nil {
		return fmt.Errorf("pay-in details: %w", err)
	}
	personal, err := json.Marshal(personalColumn{p.Personal.Customer, p.Personal.Items})
	if err != nil {
		return fmt.Errorf("pay-in personal data: %w", err)
	}
	sealed := s.keys.Seal(Place{"payins", p.Merchant, p.ID, "personal"}, personal)
	p.row = []any{
		p.Merchant[:], p.ID[:], p.ExternalID, p.ReferenceID,
		string(p.Method), int64(p.Amount), string(p.Status), p.Version,
		p.Processor, p.ProcessorID, p.WebhookURL, int64(0),
		string(details), sealed, blob(p.Fingerprint), int64(p.PaidAmount),
		int64(p.RefundedAmount), int64(p.Fee), p.EndToEndID, flag(p.Late),
		failureText(p.Failure), micros(p.ExpiresAt), micros(p.PaidAt), payinDue(&p.Payin),
		micros(p.CreatedAt), micros(p.UpdatedAt),
	}
	return nil
}

// InsertPayins adds pay-ins and says which are new: a false one has a
// reference that its merchant has used before.
func (tx *Tx) InsertPayins(ctx context.Context, list []*NewPayin) ([]bool, error) {
	rows := make([][]any, len(list))
	for i, p := range list {
		if p.row == nil {
			if err := tx.store.PreparePayin(p); err != nil {
				return nil, err
			}
		}
		rows[i] = p.row
	}
	return tx.insert(ctx, payinTable, rows...)
}

// payinDue is when a pay-in has to be looked at by itself: when it expires.
func payinDue(p *payment.Payin) int64 {
	if p.Status == payment.PayinPending {
		return micros(p.ExpiresAt)
	}
	return 0
}

var payinUpdate = newRowUpdate(rowUpdate{
	table: "payins", owner: ofMerchant, exact: true,
	keys: []column{{"id", "bytea"}, {"version", "bigint"}},
	set: []column{{"status", "text"}, {"version", "bigint"}, {"processor_id", "text"}, {"details", "text"},
		{"paid_amount", "bigint"}, {"refunded_amount", "bigint"}, {"fee", "bigint"}, {"end_to_end_id", "text"}, {"late", "bigint"},
		{"failure", "text"}, {"expires_at", "bigint"}, {"paid_at", "bigint"}, {"next_at", "bigint"}, {"updated_at", "bigint"}},
}, "")

// UpdatePayin writes what may change of a pay-in, if its version is still the
// one that was read; p carries the new one. Else ErrConflict, now or at the end
// of the transaction.
func (tx *Tx) UpdatePayin(ctx context.Context, p *payment.Payin, was int64) error {
	details, err := json.Marshal(&p.Details)
	if err != nil {
		return fmt.Errorf("pay-in details: %w", err)
	}
	p.UpdatedAt = tx.Now
	tx.payins = append(tx.payins, Ref{p.Merchant, p.ID})
	tx.ahead.payin(p)
	return tx.change(ctx, payinUpdate, slices.Clone(p.Merchant[:]), slices.Clone(p.ID[:]), was,
		string(p.Status), p.Version, p.ProcessorID, string(details),
		int64(p.PaidAmount), int64(p.RefundedAmount), int64(p.Fee), p.EndToEndID, flag(p.Late),
		failureText(p.Failure), micros(p.ExpiresAt), micros(p.PaidAt), payinDue(p), micros(p.UpdatedAt))
}

// ChangedPayins lists the pay-ins that the transaction updated.
func (tx *Tx) ChangedPayins() []Ref { return tx.payins }

const payinColumns = `merchant_id, id, external_id, reference_id, method, amount, status, version, processor, processor_id,
	webhook_url, webhook_ended, details, paid_amount, refunded_amount, fee, end_to_end_id, late, failure, expires_at, paid_at, created_at, updated_at`

func scanPayin(r scanner, more ...any) (payment.Payin, error) {
	var p payment.Payin
	var merchant, id []byte
	var details, failure string
	var ended, late, expires, paid, created, updated int64
	dest := []any{&merchant, &id, &p.ExternalID, &p.ReferenceID, (*string)(&p.Method), (*int64)(&p.Amount), (*string)(&p.Status),
		&p.Version, &p.Processor, &p.ProcessorID, &p.WebhookURL, &ended, &details, (*int64)(&p.PaidAmount),
		(*int64)(&p.RefundedAmount), (*int64)(&p.Fee), &p.EndToEndID, &late, &failure, &expires, &paid, &created, &updated}
	if err := r.Scan(append(dest, more...)...); err != nil {
		return p, err
	}
	p.Merchant, p.ID, p.Late, p.WebhookEnded = idOf(merchant), idOf(id), late != 0, ended != 0
	p.ExpiresAt, p.PaidAt, p.CreatedAt, p.UpdatedAt = atMicros(expires), atMicros(paid), atMicros(created), atMicros(updated)
	var err error
	if p.Failure, err = failureOf(failure); err == nil {
		err = json.Unmarshal([]byte(details), &p.Details)
	}
	return p, err
}

// Payin reads a pay-in; ErrNotFound where the merchant has none of that id.
func (s *Store) Payin(ctx context.Context, merchant, id payment.ID) (payment.Payin, error) {
	p, err := scanPayin(s.queryRow(ctx, "SELECT "+payinColumns+" FROM payins WHERE merchant_id = $1 AND id = $2", merchant[:], id[:]))
	return p, s.readError("pay-in", err)
}

// FindPayin reads a pay-in by id alone. For the sandbox's controls and the
// operator's commands: a request of a merchant names its merchant.
func (s *Store) FindPayin(ctx context.Context, id payment.ID) (payment.Payin, error) {
	merchants, err := s.Merchants(ctx)
	if err != nil {
		return payment.Payin{}, err
	}
	for i := range merchants {
		p, err := s.Payin(ctx, merchants[i].ID, id)
		if !errors.Is(err, ErrNotFound) {
			return p, err
		}
	}
	return payment.Payin{}, ErrNotFound
}

// PayinByExternalID reads a pay-in and its fingerprint by its external id, in
// whole or as much of it as a static BR Code carries; else ErrNotFound.
func (s *Store) PayinByExternalID(ctx context.Context, merchant payment.ID, externalID string) (payment.Payin, []byte, error) {
	p, f, err := payinByExternalID(s.queryRow(ctx, payinByExternal, merchant[:], externalID, externalID+externalIDEnd))
	return p, f, s.readError("pay-in", err)
}

// PayinByExternalID is Store.PayinByExternalID within the transaction; the row
// is locked, where the engine locks rows, until it ends.
func (tx *Tx) PayinByExternalID(ctx context.Context, merchant payment.ID, externalID string) (payment.Payin, []byte, error) {
	if known, ok := tx.ahead.payins[aheadKey{merchant, externalID}]; ok {
		return known.order, known.fingerprint, nil
	}
	p, f, err := payinByExternalID(tx.queryRow(ctx, payinByExternal+tx.store.dialect.forUpdate(), merchant[:], externalID, externalID+externalIDEnd))
	return p, f, notFound(err)
}

const payinByExternal = "SELECT " + payinColumns + `, fingerprint FROM payins
	WHERE merchant_id = $1 AND external_id >= $2 AND external_id < $3 ORDER BY external_id LIMIT 1`

// externalIDEnd sorts behind every character of an external id, and makes a
// range of a prefix.
const externalIDEnd = "~"

func payinByExternalID(r scanner) (payment.Payin, []byte, error) {
	var fingerprint []byte
	p, err := scanPayin(r, &fingerprint)
	return p, fingerprint, err
}

// Payin reads and locks a pay-in; else ErrNotFound.
func (tx *Tx) Payin(ctx context.Context, merchant, id payment.ID) (payment.Payin, error) {
	p, err := scanPayin(tx.queryRow(ctx, "SELECT "+payinColumns+" FROM payins WHERE merchant_id = $1 AND id = $2"+tx.store.dialect.forUpdate(), merchant[:], id[:]))
	return p, notFound(err)
}

// PayinPersonal opens what a pay-in holds of its payer.
func (s *Store) PayinPersonal(ctx context.Context, merchant, id payment.ID) (payment.PersonalData, error) {
	var sealed []byte
	err := s.queryRow(ctx, "SELECT personal FROM payins WHERE merchant_id = $1 AND id = $2", merchant[:], id[:]).Scan(&sealed)
	if err != nil {
		return payment.PersonalData{}, s.readError("personal data", err)
	}
	plain, err := s.keys.Open(Place{"payins", merchant, id, "personal"}, sealed)
	if err != nil {
		return payment.PersonalData{}, err
	}
	var data personalColumn
	err = json.Unmarshal(plain, &data)
	return payment.PersonalData{Customer: data.Customer, Items: data.Items}, err
}

// Filter selects orders of a list. Zero members do not select.
type Filter struct {
	Status      string
	Method      payment.Method // pay-ins
	ExternalID  string         // derived from a reference
	CreatedFrom time.Time      // inclusive, UTC, by the millisecond
	CreatedTo   time.Time      // exclusive
	Before      payment.ID     // the last one of the page before
	Limit       int
}

// where builds the conditions of a list, newest first. Creation times are
// ranges of ids, which carry them to the millisecond.
func (f Filter) where(columns, table string, merchant payment.ID) (string, []any) {
	args := []any{merchant[:]}
	text := "SELECT " + columns + " FROM " + table + " WHERE merchant_id = $1"
	and := func(condition string, arg any) {
		args = append(args, arg)
		text += " AND " + condition + " $" + strconv.Itoa(len(args))
	}
	if f.Status != "" {
		and("status =", f.Status)
		if table == "payouts" && f.Status != string(payment.PayoutCompleted) {
			text += " AND status <> 'COMPLETED'" // by which the planner knows the index of the others
		}
	}
	if f.Method != "" {
		and("method =", string(f.Method))
		if f.Method != payment.PIX {
			text += " AND method <> 'PIX'" // likewise
		}
	}
	if f.ExternalID != "" {
		and("external_id =", f.ExternalID)
	}
	if !f.CreatedFrom.IsZero() {
		and("id >=", minID(f.CreatedFrom))
	}
	if !f.CreatedTo.IsZero() {
		and("id <", minID(f.CreatedTo))
	}
	if !f.Before.IsZero() {
		and("id <", f.Before[:])
	}
	args = append(args, f.Limit)
	return text + " ORDER BY id DESC LIMIT $" + strconv.Itoa(len(args)), args
}

// minID bounds ids by a time; what is finer than a millisecond counts up.
func minID(t time.Time) []byte {
	if cut := t.Truncate(time.Millisecond); cut.Before(t) {
		t = cut.Add(time.Millisecond)
	}
	id := payment.MinIDAt(t)
	return id[:]
}

// Payins lists a merchant's pay-ins, newest first.
func (s *Store) Payins(ctx context.Context, merchant payment.ID, f Filter) ([]payment.Payin, error) {
	text, args := f.where(payinColumns, "payins", merchant)
	rows, err := s.query(ctx, text, args...)
	list, err := collect(rows, err, func(r scanner) (payment.Payin, error) { return scanPayin(r) })
	return list, s.readError("pay-ins", err)
}

// Ref names an order of a merchant.
type Ref struct{ Merchant, ID payment.ID }

// PayinsDue lists pay-ins whose time is over, oldest first.
func (s *Store) PayinsDue(ctx context.Context, now time.Time, limit int) ([]Ref, error) {
	rows, err := s.query(ctx, `SELECT merchant_id, id FROM payins
		WHERE next_at > 0 AND next_at <= $1 ORDER BY next_at LIMIT $2`, micros(now), limit)
	list, err := collect(rows, err, scanRef)
	return list, s.readError("due pay-ins", err)
}

func scanRef(r scanner) (Ref, error) {
	var merchant, id []byte
	err := r.Scan(&merchant, &id)
	return Ref{idOf(merchant), idOf(id)}, err
}

// readError makes a reading error one of the store's.
func (s *Store) readError(what string, err error) error {
	if err = notFound(err); err == nil || errors.Is(err, ErrNotFound) {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrSealed) {
		return fmt.Errorf("store: read %s: %w", what, err)
	}
	return fmt.Errorf("read %s: %w", what, s.translate(err))
}

func notFound(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return ErrNotFound
	}
	return err
}

// idOf reads an id column; a damaged one is the zero id, which matches nothing.
func idOf(b []byte) payment.ID {
	id, _ := payment.IDFromBytes(b)
	return id
}

func failureText(f *payment.Failure) string {
	if f == nil {
		return ""
	}
	text, err := json.Marshal(f)
	if err != nil { // two strings of valid UTF-8 always marshal
		return ""
	}
	return string(text)
}

func failureOf(text string) (*payment.Failure, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // no failure is the usual case
	}
	f := &payment.Failure{}
	return f, json.Unmarshal([]byte(text), f)
}
