package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/payment"
)

// NewPayout is a payout to be stored, with what is stored beside it.
type NewPayout struct {
	payment.Payout
	Fingerprint    []byte
	IdempotencyKey string

	row []any // see PreparePayout
}

var payoutTable = newTable("payouts", "id",
	column{"merchant_id", "bytea"}, column{"id", "bytea"}, column{"external_id", "text"}, column{"reference_id", "text"},
	column{"amount", "bigint"}, column{"fee", "bigint"}, column{"status", "text"}, column{"step", "text"}, column{"version", "bigint"},
	column{"processor", "text"}, column{"processor_id", "text"}, column{"pix_key_type", "text"}, column{"webhook_url", "text"},
	column{"webhook_ended", "bigint"}, column{"approval", "text"}, column{"beneficiary", "bytea"}, column{"fingerprint", "bytea"},
	column{"idempotency_key", "text"}, column{"returned_amount", "bigint"}, column{"end_to_end_id", "text"}, column{"failure", "text"},
	column{"lookups", "bigint"}, column{"next_at", "bigint"}, column{"claimed_by", "bytea"}, column{"sent_at", "bigint"},
	column{"completed_at", "bigint"}, column{"created_at", "bigint"}, column{"updated_at", "bigint"})

// PreparePayout is PreparePayin for payouts.
func (s *Store) PreparePayout(p *NewPayout) error {
	plain, err := json.Marshal(&p.Beneficiary)
	if err != nil {
		return fmt.Errorf("payout beneficiary: %w", err)
	}
	sealed := s.keys.Seal(Place{"payouts", p.Merchant, p.ID, "beneficiary"}, plain)
	p.row = []any{
		p.Merchant[:], p.ID[:], p.ExternalID, p.ReferenceID,
		int64(p.Amount), int64(p.Fee), string(p.Status), string(p.Step), p.Version,
		p.Processor, p.ProcessorID, p.PIXKeyType, p.WebhookURL,
		int64(0), string(p.Approval), sealed, blob(p.Fingerprint),
		p.IdempotencyKey, int64(p.ReturnedAmount), p.EndToEndID, failureText(p.Failure),
		int64(p.Lookups), micros(p.NextAt), claim(p.ClaimedBy), micros(p.SentAt),
		micros(p.CompletedAt), micros(p.CreatedAt), micros(p.UpdatedAt),
	}
	return nil
}

// InsertPayouts adds payouts and says which are new, as InsertPayins does.
func (tx *Tx) InsertPayouts(ctx context.Context, list []*NewPayout) ([]bool, error) {
	rows := make([][]any, len(list))
	for i, p := range list {
		if p.row == nil {
			if err := tx.store.PreparePayout(p); err != nil {
				return nil, err
			}
		}
		rows[i] = p.row
	}
	return tx.insert(ctx, payoutTable, rows...)
}

var payoutUpdate = newRowUpdate(rowUpdate{
	table: "payouts", owner: ofMerchant, exact: true,
	keys: []column{{"id", "bytea"}, {"version", "bigint"}},
	set: []column{{"status", "text"}, {"step", "text"}, {"version", "bigint"}, {"processor_id", "text"}, {"approval", "text"},
		{"returned_amount", "bigint"}, {"end_to_end_id", "text"}, {"failure", "text"}, {"lookups", "bigint"}, {"next_at", "bigint"},
		{"claimed_by", "bytea"}, {"sent_at", "bigint"}, {"completed_at", "bigint"}, {"updated_at", "bigint"}},
}, "")

// UpdatePayout writes what may change of a payout, if its version is still the
// one that was read; p carries the new one. Else ErrConflict, now or at the end
// of the transaction.
func (tx *Tx) UpdatePayout(ctx context.Context, p *payment.Payout, was int64) error {
	p.UpdatedAt = tx.Now
	tx.ahead.payout(p)
	return tx.change(ctx, payoutUpdate, slices.Clone(p.Merchant[:]), slices.Clone(p.ID[:]), was,
		string(p.Status), string(p.Step), p.Version, p.ProcessorID, string(p.Approval),
		int64(p.ReturnedAmount), p.EndToEndID, failureText(p.Failure), int64(p.Lookups), micros(p.NextAt),
		claim(p.ClaimedBy), micros(p.SentAt), micros(p.CompletedAt), micros(p.UpdatedAt))
}

const payoutColumns = `merchant_id, id, external_id, reference_id, amount, fee, status, step, version, processor, processor_id,
	pix_key_type, webhook_url, webhook_ended, approval, beneficiary, returned_amount, end_to_end_id, failure, lookups,
	next_at, claimed_by, sent_at, completed_at, created_at, updated_at`

func (s *Store) scanPayout(r scanner, more ...any) (payment.Payout, error) {
	var p payment.Payout
	var merchant, id, beneficiary, claimed []byte
	var failure string
	var ended, lookups, next, sent, completed, created, updated int64
	dest := []any{&merchant, &id, &p.ExternalID, &p.ReferenceID, (*int64)(&p.Amount), (*int64)(&p.Fee), (*string)(&p.Status),
		(*string)(&p.Step), &p.Version, &p.Processor, &p.ProcessorID, &p.PIXKeyType, &p.WebhookURL, &ended,
		(*string)(&p.Approval), &beneficiary, (*int64)(&p.ReturnedAmount), &p.EndToEndID, &failure, &lookups,
		&next, &claimed, &sent, &completed, &created, &updated}
	if err := r.Scan(append(dest, more...)...); err != nil {
		return p, err
	}
	p.Merchant, p.ID, p.ClaimedBy, p.WebhookEnded, p.Lookups = idOf(merchant), idOf(id), idOf(claimed), ended != 0, int(lookups)
	p.NextAt, p.SentAt, p.CompletedAt = atMicros(next), atMicros(sent), atMicros(completed)
	p.CreatedAt, p.UpdatedAt = atMicros(created), atMicros(updated)
	plain, err := s.keys.Open(Place{"payouts", p.Merchant, p.ID, "beneficiary"}, beneficiary)
	if err != nil {
		return p, err
	}
	if p.Failure, err = failureOf(failure); err == nil {
		err = json.Unmarshal(plain, &p.Beneficiary)
	}
	return p, err
}

// Payout reads a payout; ErrNotFound where the merchant has none of that id.
func (s *Store) Payout(ctx context.Context, merchant, id payment.ID) (payment.Payout, error) {
	p, err := s.scanPayout(s.queryRow(ctx, "SELECT "+payoutColumns+" FROM payouts WHERE merchant_id = $1 AND id = $2", merchant[:], id[:]))
	return p, s.readError("payout", err)
}

// FindPayout reads a payout by id alone, as FindPayin does.
func (s *Store) FindPayout(ctx context.Context, id payment.ID) (payment.Payout, error) {
	merchants, err := s.Merchants(ctx)
	if err != nil {
		return payment.Payout{}, err
	}
	for i := range merchants {
		p, err := s.Payout(ctx, merchants[i].ID, id)
		if !errors.Is(err, ErrNotFound) {
			return p, err
		}
	}
	return payment.Payout{}, ErrNotFound
}

// Payout reads and locks a payout; else ErrNotFound.
func (tx *Tx) Payout(ctx context.Context, merchant, id payment.ID) (payment.Payout, error) {
	if known, ok := tx.ahead.payouts[Ref{merchant, id}]; ok {
		return known, nil
	}
	p, err := tx.store.scanPayout(tx.queryRow(ctx, "SELECT "+payoutColumns+` FROM payouts
		WHERE merchant_id = $1 AND id = $2`+tx.store.dialect.forUpdate(), merchant[:], id[:]))
	return p, notFound(err)
}

const payoutByExternal = "SELECT " + payoutColumns + ", fingerprint FROM payouts WHERE merchant_id = $1 AND external_id = $2"

// PayoutByExternalID reads a payout and its fingerprint; else ErrNotFound.
func (s *Store) PayoutByExternalID(ctx context.Context, merchant payment.ID, externalID string) (payment.Payout, []byte, error) {
	var f []byte
	p, err := s.scanPayout(s.queryRow(ctx, payoutByExternal, merchant[:], externalID), &f)
	return p, f, s.readError("payout", err)
}

// PayoutByExternalID is Store.PayoutByExternalID within the transaction.
func (tx *Tx) PayoutByExternalID(ctx context.Context, merchant payment.ID, externalID string) (payment.Payout, []byte, error) {
	var f []byte
	p, err := tx.store.scanPayout(tx.queryRow(ctx, payoutByExternal+tx.store.dialect.forUpdate(), merchant[:], externalID), &f)
	return p, f, notFound(err)
}

// Payouts lists a merchant's payouts, newest first.
func (s *Store) Payouts(ctx context.Context, merchant payment.ID, f Filter) ([]payment.Payout, error) {
	text, args := f.where(payoutColumns, "payouts", merchant)
	rows, err := s.query(ctx, text, args...)
	list, err := collect(rows, err, func(r scanner) (payment.Payout, error) { return s.scanPayout(r) })
	return list, s.readError("payouts", err)
}

// merchantsDue lists the merchants that have rows due in a table, by jumping
// from one merchant to the next in the index of (merchant_id, next_at) of the
// rows that fulfil condition: however many one merchant has, it hides no other.
func merchantsDue(table, condition string) string {
	return `WITH RECURSIVE queue (merchant_id) AS (
			SELECT * FROM (SELECT merchant_id FROM ` + table + ` WHERE next_at > 0` + condition + ` ORDER BY merchant_id LIMIT 1) AS first
			UNION ALL
			SELECT (SELECT t.merchant_id FROM ` + table + ` t WHERE t.next_at > 0` + condition + ` AND t.merchant_id > queue.merchant_id
				ORDER BY t.merchant_id LIMIT 1) FROM queue WHERE queue.merchant_id IS NOT NULL)
		SELECT merchant_id FROM queue WHERE merchant_id IS NOT NULL AND EXISTS (SELECT 1 FROM ` + table + ` t
			WHERE t.merchant_id = queue.merchant_id AND t.next_at > 0 AND t.next_at <= $1` + condition + `)`
}

// Due is a merchant whose payouts at one processor are due.
type Due struct {
	Merchant  payment.ID
	Processor string
	Since     time.Time // when the oldest became due
}

// PayoutsDue lists who has payouts at the given steps that are due, so that
// they can be claimed one merchant at a time. Of a merchant whose payouts wait
// at several processors it names the one of the oldest.
func (s *Store) PayoutsDue(ctx context.Context, now time.Time, steps StepFilter) ([]Due, error) {
	oldest := ` FROM payouts p WHERE p.merchant_id = due.merchant_id AND p.next_at > 0 AND p.next_at <= $1 AND ` + string(steps) + ` ORDER BY p.next_at LIMIT 1)`
	rows, err := s.query(ctx, `SELECT due.merchant_id, (SELECT p.processor`+oldest+`, (SELECT p.next_at`+oldest+`
		FROM (`+merchantsDue("payouts", " AND "+string(steps))+`) AS due ORDER BY due.merchant_id`, micros(now))
	list, err := collect(rows, err, func(r scanner) (Due, error) {
		var merchant []byte
		var processor sql.NullString // NULL where the row went in the meantime
		var since sql.NullInt64
		err := r.Scan(&merchant, &processor, &since)
		return Due{idOf(merchant), processor.String, atMicros(since.Int64)}, err
	})
	return list, s.readError("due payouts", err)
}

// StepFilter selects the steps at which payouts are due.
type StepFilter string

// The two kinds of work on payouts.
const (
	ToSend StepFilter = "step = 'queued'"
	ToAsk  StepFilter = "step IN ('accepted', 'unknown')"
)

// ClaimPayouts takes up to limit payouts that are due in hand for node: nobody
// else claims them while node lives. MATERIALIZED, as PostgreSQL may else run the
// choice again for each row that it looks at, and then limit bounds nothing.
func (tx *Tx) ClaimPayouts(ctx context.Context, due Due, node payment.ID, steps StepFilter, limit int) ([]payment.Payout, error) {
	rows, err := tx.query(ctx, `WITH picked AS MATERIALIZED (
		SELECT id FROM payouts WHERE merchant_id = $2 AND next_at > 0 AND next_at <= $3 AND processor = $4 AND `+string(steps)+`
		ORDER BY next_at LIMIT $5`+tx.store.dialect.skipLocked()+`)
		UPDATE payouts SET claimed_by = $1, next_at = 0 WHERE merchant_id = $2 AND id IN (SELECT id FROM picked) RETURNING `+payoutColumns,
		node[:], due.Merchant[:], micros(tx.Now), due.Processor, limit)
	return collect(rows, err, func(r scanner) (payment.Payout, error) { return tx.store.scanPayout(r) })
}

func scanID(r scanner) (payment.ID, error) {
	var id []byte
	err := r.Scan(&id)
	return idOf(id), err
}

// claim stores who has a row in hand; nobody is an empty blob.
func claim(id payment.ID) []byte {
	if id.IsZero() {
		return []byte{}
	}
	return id[:]
}

// Outcomes of a send. At most one send of a payout is live: intent, accepted
// or unknown (a partial unique index says so).
const (
	SendIntent   = "intent"
	SendAccepted = "accepted"
	SendUnknown  = "unknown"
	SendNotFound = "not_found" // a look-up proved that it never arrived
	SendNotSent  = "not_sent"
	SendRefused  = "refused"
	SendPaid     = "paid"
	SendFailed   = "failed"
)

// Send is one time that a payout was handed to its processor.
type Send struct {
	Merchant  payment.ID
	Payout    payment.ID
	Number    int64
	Processor string
	BodyHash  []byte
	Node      payment.ID
	Deadline  time.Time
	Outcome   string
	Evidence  string
	CreatedAt time.Time
	EndedAt   time.Time
}

var sendTable = newTable("payout_sends", "payout_id",
	column{"merchant_id", "bytea"}, column{"payout_id", "bytea"}, column{"number", "bigint"}, column{"processor", "text"},
	column{"body_hash", "bytea"}, column{"node", "bytea"}, column{"deadline", "bigint"}, column{"outcome", "text"},
	column{"evidence", "text"}, column{"created_at", "bigint"}, column{"ended_at", "bigint"})

// InsertSends records intents, one per payout, before a byte leaves. A payout
// whose earlier send is still undecided is ErrConflict for the whole call.
func (tx *Tx) InsertSends(ctx context.Context, sends []Send) error {
	rows := make([][]any, len(sends))
	for i := range sends {
		v := &sends[i]
		rows[i] = []any{v.Merchant[:], v.Payout[:], v.Number, v.Processor, blob(v.BodyHash), v.Node[:], micros(v.Deadline),
			v.Outcome, v.Evidence, micros(tx.Now), int64(0)}
	}
	return tx.insertNew(ctx, sendTable, rows...)
}

// Sends lists how often, and how, a payout was handed to its processor.
func (s *Store) Sends(ctx context.Context, merchant, payout payment.ID) ([]Send, error) {
	rows, err := s.query(ctx, sendsOf, merchant[:], payout[:])
	list, err := collect(rows, err, scanSend(merchant, payout))
	return list, s.readError("sends", err)
}

// Sends is Store.Sends within the transaction.
func (tx *Tx) Sends(ctx context.Context, merchant, payout payment.ID) ([]Send, error) {
	rows, err := tx.query(ctx, sendsOf, merchant[:], payout[:])
	return collect(rows, err, scanSend(merchant, payout))
}

const sendsOf = `SELECT number, processor, body_hash, node, deadline, outcome, evidence, created_at, ended_at
	FROM payout_sends WHERE merchant_id = $1 AND payout_id = $2 ORDER BY number`

func scanSend(merchant, payout payment.ID) func(scanner) (Send, error) {
	return func(r scanner) (Send, error) {
		v := Send{Merchant: merchant, Payout: payout}
		var node []byte
		var deadline, created, ended int64
		err := r.Scan(&v.Number, &v.Processor, &v.BodyHash, &node, &deadline, &v.Outcome, &v.Evidence, &created, &ended)
		v.Node, v.Deadline, v.CreatedAt, v.EndedAt = idOf(node), atMicros(deadline), atMicros(created), atMicros(ended)
		return v, err
	}
}

// sendUpdate ends the live send of a payout.
var sendUpdate = newRowUpdate(rowUpdate{
	table:  "payout_sends",
	owner:  ofMerchant,
	keys:   []column{{"payout_id", "bytea"}},
	set:    []column{{"outcome", "text"}, {"evidence", "text"}, {"ended_at", "bigint"}},
	missed: endLostSend,
}, " AND t.outcome IN ('intent', 'accepted', 'unknown')")

// EndSend moves the live send of a payout to outcome, with what proves it. It
// is no error when no send is live: a fact may come by two ways. A proof that
// the processor has the transfer, when it had not found it before, is kept with
// one of the sends that did it: the latest that seemed not to have arrived.
func (tx *Tx) EndSend(ctx context.Context, merchant, payout payment.ID, outcome, evidence string) error {
	ended := micros(tx.Now)
	if outcome == SendAccepted || outcome == SendUnknown {
		ended = 0
	}
	return tx.change(ctx, sendUpdate, merchant[:], payout[:], outcome, evidence, ended)
}

// endLostSend keeps a proof where no send is live: row is the merchant, the
// payout, outcome, evidence, end.
func endLostSend(ctx context.Context, tx *Tx, row []any) error {
	if outcome := row[2]; outcome != SendAccepted && outcome != SendPaid && outcome != SendFailed {
		return nil
	}
	_, err := tx.t.exec(ctx, `UPDATE payout_sends SET outcome = $3, evidence = $4, ended_at = $5 WHERE merchant_id = $1 AND payout_id = $2
		AND number = (SELECT s.number FROM payout_sends s WHERE s.merchant_id = $1 AND s.payout_id = $2
			ORDER BY s.outcome = 'not_found' DESC, s.number DESC LIMIT 1)
		AND NOT EXISTS (SELECT 1 FROM payout_sends s WHERE s.merchant_id = $1 AND s.payout_id = $2
			AND s.outcome NOT IN ('not_found', 'not_sent'))`, row...)
	return err
}

// RedateSend gives a send the deadline that it has by a clock that is right.
func (tx *Tx) RedateSend(ctx context.Context, merchant, payout payment.ID, number int64, deadline time.Time) error {
	return tx.guarded(ctx, "UPDATE payout_sends SET deadline = $1 WHERE merchant_id = $2 AND payout_id = $3 AND number = $4",
		micros(deadline), merchant[:], payout[:], number)
}
