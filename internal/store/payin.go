package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
)

// payinRow is a pay-in with its other stored values.
type payinRow struct {
	payment.Payin

	Fingerprint []byte // of the request

	personal []byte    // sealed
	nextAt   time.Time // its expiry, if it can expire
}

var payinTable = newTable("payins", []string{"id"},
	idColumn("merchant_id", func(p *payinRow) *payment.ID { return &p.Merchant }),
	idColumn("id", func(p *payinRow) *payment.ID { return &p.ID }),
	textColumn("external_id", func(p *payinRow) *string { return &p.ExternalID }),
	textColumn("reference_id", func(p *payinRow) *string { return &p.ReferenceID }),
	textColumn("method", func(p *payinRow) *payment.Method { return &p.Method }),
	intColumn("amount", func(p *payinRow) *cents { return &p.Amount }),
	textColumn("status", func(p *payinRow) *payment.PayinStatus { return &p.Status }).as(mutable),
	intColumn("version", func(p *payinRow) *int64 { return &p.Version }).as(mutable),
	textColumn("processor", func(p *payinRow) *string { return &p.Processor }).as(mutable),
	textColumn("processor_id", func(p *payinRow) *string { return &p.ProcessorID }).as(mutable),
	textColumn("webhook_url", func(p *payinRow) *string { return &p.WebhookURL }),
	flagColumn("webhook_disabled", func(p *payinRow) *bool { return &p.WebhookDisabled }).as(mutable),
	detailsColumn("details", func(p *payinRow) *payment.PayinDetails { return &p.Details }).as(mutable),
	bytesColumn("personal", func(p *payinRow) *[]byte { return &p.personal }).as(hidden),
	bytesColumn("fingerprint", func(p *payinRow) *[]byte { return &p.Fingerprint }),
	intColumn("paid_amount", func(p *payinRow) *cents { return &p.PaidAmount }).as(mutable),
	intColumn("refunded_amount", func(p *payinRow) *cents { return &p.RefundedAmount }).as(mutable),
	intColumn("disputed_amount", func(p *payinRow) *cents { return &p.DisputedAmount }).as(mutable),
	intColumn("unapplied_amount", func(p *payinRow) *cents { return &p.UnappliedAmount }).as(mutable),
	intColumn("fee", func(p *payinRow) *cents { return &p.Fee }).as(mutable),
	textColumn("end_to_end_id", func(p *payinRow) *string { return &p.EndToEndID }).as(mutable),
	flagColumn("late", func(p *payinRow) *bool { return &p.Late }).as(mutable),
	failureColumn("failure", func(p *payinRow) **payment.Failure { return &p.Failure }).as(mutable),
	timeColumn("expires_at", func(p *payinRow) *time.Time { return &p.ExpiresAt }).as(mutable),
	timeColumn("paid_at", func(p *payinRow) *time.Time { return &p.PaidAt }).as(mutable),
	timeColumn("next_at", func(p *payinRow) *time.Time { return &p.nextAt }).as(mutable),
	timeColumn("created_at", func(p *payinRow) *time.Time { return &p.CreatedAt }),
	timeColumn("updated_at", func(p *payinRow) *time.Time { return &p.UpdatedAt }).as(mutable),
)

var (
	payinUpdate     = payinTable.updateBy("", "merchant_id", "id", "version")
	payinByID       = payinTable.selectBy("t.merchant_id, t.id", "merchant_id", "id")
	payinByExternal = payinTable.selectBy("t.merchant_id, t.external_id", "merchant_id", "external_id")
)

func scanPayinRow(r db.Scanner) (*payinRow, error) {
	p := &payinRow{}
	return p, payinTable.scan(r, p)
}

func scanPayin(r db.Scanner) (payment.Payin, error) {
	p, err := scanPayinRow(r)
	return p.Payin, err
}

// NewPayin is a pay-in to be stored.
type NewPayin struct {
	payinRow

	values []any // of its columns
}

func (n *NewPayin) external() ExternalRef { return ExternalRef{n.Payin.Merchant, n.Payin.ExternalID} }

// personalColumn is the JSON of personal data in its column, before it is sealed.
type personalColumn struct {
	Customer jsontext.Value `json:"customer,omitzero"`
	Items    jsontext.Value `json:"items,omitzero"`
}

// personalJSON is the JSON of a personalColumn. Its members are JSON already: marshaling would
// parse them again, which takes 2 % of the gateway's time for a pay-in.
func personalJSON(p payment.PersonalData) []byte {
	b := append(make([]byte, 0, len(`{"customer":,"items":}`)+len(p.Customer)+len(p.Items)), '{')
	if p.Customer != nil {
		b = append(append(b, `"customer":`...), p.Customer...)
	}
	if p.Items != nil {
		if p.Customer != nil {
			b = append(b, ',')
		}
		b = append(append(b, `"items":`...), p.Items...)
	}
	return append(b, '}')
}

// NewPayin encodes a pay-in and seals its personal data, before any lock.
func (s *Store) NewPayin(p payment.Payin, personal payment.PersonalData, fingerprint []byte) *NewPayin {
	n := &NewPayin{payinRow: payinRow{Payin: p, Fingerprint: fingerprint, personal: s.Keys().Seal(personalData(p.Merchant, p.ID), personalJSON(personal))}}
	n.schedule()
	n.values = payinTable.row(&n.payinRow)
	return n
}

func personalData(merchant, id payment.ID) db.AssociatedData {
	return db.AssociatedData{Table: "payins", Merchant: merchant, ID: id, Column: "personal"}
}

// schedule sets when the pay-in expires.
func (p *payinRow) schedule() {
	p.nextAt = time.Time{}
	if p.Status == payment.PayinPending {
		p.nextAt = p.ExpiresAt
	}
}

type payinNeeds struct {
	fresh      []*NewPayin
	ids        []Ref
	byExternal []ExternalRef
}

// InsertPayin inserts a new pay-in, if its reference is unused. Else the pay-in with the
// reference can be read by the external id.
func (n *Needs) InsertPayin(p *NewPayin) { n.payins.fresh = append(n.payins.fresh, p) }

// Payin reads a pay-in by its id.
func (n *Needs) Payin(merchant, id payment.ID) {
	n.payins.ids = append(n.payins.ids, Ref{merchant, id})
}

// PayinByExternalID reads a pay-in by its external id, complete or cut to the
// part in a static BR Code.
func (n *Needs) PayinByExternalID(merchant payment.ID, externalID string) {
	n.payins.byExternal = append(n.payins.byExternal, ExternalRef{merchant, externalID})
}

type loadedPayins struct {
	rows       map[Ref]*payinRow
	byExternal map[ExternalRef]Ref
}

// allocate makes the maps, with space for n pay-ins.
func (l *loadedPayins) allocate(n int) {
	l.rows, l.byExternal = make(map[Ref]*payinRow, n), make(map[ExternalRef]Ref, n)
}

func (l *loadedPayins) add(p *payinRow, keys ...ExternalRef) {
	if l.rows == nil {
		l.allocate(0)
	}
	ref := Ref{p.Merchant, p.ID}
	if l.rows[ref] == nil { // two keys may name one row
		l.rows[ref] = p
	}
	for _, key := range append(keys, ExternalRef{p.Merchant, p.ExternalID}) {
		l.byExternal[key] = ref
	}
}

// insertPayins inserts new pay-ins. The ones whose references are taken are read
// with the others.
func (l *Loaded) insertPayins(ctx context.Context, tx *db.Tx, n *Needs) error {
	list := slices.Clone(n.payins.fresh)
	if len(list) == 0 {
		return nil
	}
	slices.SortStableFunc(list, func(a, b *NewPayin) int { return a.external().compare(b.external()) })
	rows := make([][]any, len(list))
	for i, p := range list {
		rows[i] = p.values
	}
	added, err := tx.Insert(ctx, payinTable.insert, rows...)
	l.payins.allocate(len(added))
	for i := range added {
		if added[i] {
			l.addNewPayin(list[i])
		}
	}
	return err
}

// addNewPayin adds a pay-in that was inserted.
func (l *Loaded) addNewPayin(p *NewPayin) {
	l.inserted[p.Payin.ID] = true
	l.orders = append(l.orders, NewOrder{Ref{p.Payin.Merchant, p.Payin.ID}, payment.OperationPayin})
	l.payins.add(&p.payinRow)
}

func (l *Loaded) loadPayins(ctx context.Context, tx *db.Tx, n *Needs) error {
	list, err := db.Select(ctx, tx, payinByID, keysOf(n.payins.ids), scanPayinRow)
	if err != nil {
		return err
	}
	for _, p := range list {
		l.payins.add(p)
	}
	var full, prefixes []ExternalRef
	for _, p := range n.payins.fresh {
		if !l.inserted[p.Payin.ID] {
			full = append(full, p.external())
		}
	}
	for _, key := range n.payins.byExternal {
		if len(key.ExternalID) < payment.ExternalIDLength {
			prefixes = append(prefixes, key)
		} else {
			full = append(full, key)
		}
	}
	if list, err = db.Select(ctx, tx, payinByExternal, keysOf(full), scanPayinRow); err != nil {
		return err
	}
	for _, p := range list {
		l.payins.add(p)
	}
	for _, key := range prefixes {
		p, err := scanPayinRow(tx.QueryRow(ctx, payinByPrefix+tx.ForUpdate(), key.Merchant[:], key.ExternalID, key.ExternalID+externalIDEnd))
		if err = db.NotFound(err); err == nil {
			l.payins.add(p, key)
		} else if !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	return nil
}

var payinByPrefix = "SELECT " + payinTable.selected + ` FROM payins t
	WHERE t.merchant_id = $1 AND t.external_id >= $2 AND t.external_id < $3 ORDER BY t.external_id LIMIT 1`

// externalIDEnd sorts after every character of an external id, and makes a range
// of a prefix.
const externalIDEnd = "~"

// Payin is a loaded pay-in; false if there is none.
func (l *Loaded) Payin(merchant, id payment.ID) (payment.Payin, bool) {
	if p := l.payins.rows[Ref{merchant, id}]; p != nil {
		return p.Payin, true
	}
	return payment.Payin{}, false
}

// PayinByExternalID is a loaded pay-in, with the fingerprint of its request;
// false if there is none.
func (l *Loaded) PayinByExternalID(merchant payment.ID, externalID string) (payment.Payin, []byte, bool) {
	ref, ok := l.payins.byExternal[ExternalRef{merchant, externalID}]
	if !ok {
		return payment.Payin{}, nil, false
	}
	p := l.payins.rows[ref]
	return p.Payin, p.Fingerprint, true
}

type payinChange struct {
	row *payinRow
	was int64 // the version that it replaces
}

// SetPayin changes a loaded pay-in, and returns it as it will be stored. p has its new version. If
// merchants see no change, that is the old one, and UpdatedAt stays too, unlike a payout's.
func (c *Changes) SetPayin(p payment.Payin) payment.Payin {
	ref := Ref{p.Merchant, p.ID}
	row := *c.l.payins.rows[ref] // a copy: the row may be an operation's, which may run again
	was := row.Version
	if p.Version != was {
		p.UpdatedAt = c.l.now
	}
	row.Payin = p
	row.schedule()
	c.l.payins.rows[ref] = &row
	c.payins = append(c.payins, payinChange{&row, was})
	c.count++
	return p
}

func (c *Changes) savePayins(ctx context.Context, tx *db.Tx) error {
	ref := func(v *payinChange) Ref { return Ref{v.row.Merchant, v.row.ID} }
	return inWaves(c.payins, ref, func(wave []payinChange) error {
		rows := make([][]any, len(wave))
		for i := range wave {
			rows[i] = payinUpdate.row(wave[i].row, wave[i].was)
		}
		missed, err := tx.Update(ctx, payinUpdate.RowUpdate, rows...)
		if err == nil && len(missed) > 0 {
			err = fmt.Errorf("%w: pay-in", ErrConflict)
		}
		return err
	})
}

// Payin reads a pay-in; ErrNotFound if the merchant has none with that id.
func (s *Store) Payin(ctx context.Context, merchant, id payment.ID) (payment.Payin, error) {
	p, err := scanPayin(s.db.QueryRow(ctx, "SELECT "+payinTable.selected+" FROM payins t WHERE t.merchant_id = $1 AND t.id = $2", merchant[:], id[:]))
	return p, s.db.ReadError("pay-in", err)
}

// FindPayin reads a pay-in by id alone, for the sandbox's controls and the
// operator's commands; a merchant's request has its merchant.
func (s *Store) FindPayin(ctx context.Context, id payment.ID) (payment.Payin, error) {
	p, err := scanPayin(s.db.QueryRow(ctx, "SELECT "+payinTable.selected+` FROM merchants m
		JOIN payins t ON t.merchant_id = m.id AND t.id = $1`, id[:]))
	return p, s.db.ReadError("pay-in", err)
}

// PayinByExternalID reads a pay-in and its fingerprint by its external id,
// complete or cut to the part in a static BR Code; else ErrNotFound.
func (s *Store) PayinByExternalID(ctx context.Context, merchant payment.ID, externalID string) (payment.Payin, []byte, error) {
	p, err := scanPayinRow(s.db.QueryRow(ctx, payinByPrefix, merchant[:], externalID, externalID+externalIDEnd))
	return p.Payin, p.Fingerprint, s.db.ReadError("pay-in", err)
}

// PayinPersonal opens the personal data of a pay-in.
func (s *Store) PayinPersonal(ctx context.Context, merchant, id payment.ID) (payment.PersonalData, error) {
	var sealed []byte
	err := s.db.QueryRow(ctx, "SELECT personal FROM payins WHERE merchant_id = $1 AND id = $2", merchant[:], id[:]).Scan(&sealed)
	if err != nil {
		return payment.PersonalData{}, s.db.ReadError("personal data", err)
	}
	plain, err := s.Keys().Open(personalData(merchant, id), sealed)
	if err != nil {
		return payment.PersonalData{}, err
	}
	var data personalColumn
	err = json.Unmarshal(plain, &data)
	return payment.PersonalData{Customer: data.Customer, Items: data.Items}, err
}

// PersonalOf opens the personal data of some pay-ins. One that cannot be opened has none.
func (s *Store) PersonalOf(ctx context.Context, merchant payment.ID, payins []payment.ID) (map[payment.ID]payment.PersonalData, error) {
	list := make(map[payment.ID]payment.PersonalData, len(payins))
	if len(payins) == 0 {
		return list, nil
	}
	q := query{args: []any{merchant[:]}}
	names := make([]string, len(payins))
	for i := range payins {
		names[i] = q.param(payins[i][:])
	}
	rows, err := s.db.Query(ctx, "SELECT id, personal FROM payins WHERE merchant_id = $1 AND id IN ("+strings.Join(names, ", ")+")", q.args...)
	_, err = db.Collect(rows, err, func(r db.Scanner) (struct{}, error) {
		var id, sealed []byte
		if err := r.Scan(&id, &sealed); err != nil {
			return struct{}{}, err
		}
		key := payment.ID(id)
		var data personalColumn
		if plain, err := s.Keys().Open(personalData(merchant, key), sealed); err == nil && json.Unmarshal(plain, &data) == nil {
			list[key] = payment.PersonalData{Customer: data.Customer, Items: data.Items}
		}
		return struct{}{}, nil
	})
	return list, s.db.ReadError("personal data", err)
}

// Payins lists a merchant's pay-ins, newest first. A value that cannot be decoded is left out, as in
// all lists.
func (s *Store) Payins(ctx context.Context, merchant payment.ID, f Filter) ([]payment.Payin, error) {
	text, args := f.where(payinTable.selected, "payins", merchant, false)
	rows, err := s.db.Query(ctx, text, args...)
	list, err := db.Collect(rows, err, func(r db.Scanner) (payment.Payin, error) {
		var p payinRow
		_, err := payinTable.scanDue(r, &p)
		return p.Payin, err
	})
	return list, s.db.ReadError("pay-ins", err)
}

// PayinsDue lists pay-ins that are due to expire, oldest first.
func (s *Store) PayinsDue(ctx context.Context, now time.Time, limit int) ([]Ref, error) {
	rows, err := s.db.Query(ctx, `SELECT merchant_id, id FROM payins
		WHERE next_at > 0 AND next_at <= $1 ORDER BY next_at LIMIT $2`, micros(now), limit)
	list, err := db.Collect(rows, err, scanRef)
	return list, s.db.ReadError("due pay-ins", err)
}
