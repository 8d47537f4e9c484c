package store

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
)

// DecisionAction is the effect of a decision on its case.
type DecisionAction string

// The actions.
const (
	DecisionResolved  DecisionAction = "resolved"  // by one person
	DecisionProposed  DecisionAction = "proposed"  // a second person must confirm it
	DecisionConfirmed DecisionAction = "confirmed" // by the second person: the case is resolved
	DecisionWithdrawn DecisionAction = "withdrawn" // the proposal no longer counts
)

// Decision is an operator's decision about a case. A merchant's decisions are numbered without
// gaps, and each hash covers its row and the hash of the one before it.
type Decision struct {
	Merchant     payment.ID
	Number       int64 // from 1
	ID           payment.ID
	Case         payment.ID
	Action       DecisionAction
	Resolution   Resolution
	Actor        actor.Actor
	Reason       string
	Evidence     string
	Params       Params
	CreatedAt    time.Time
	PreviousHash []byte
	Hash         []byte
	Changed      bool // the row of a loaded case's decision does not match its hash
}

var decisionTable = newTable("decisions", []string{"merchant_id", "number"},
	idColumn("merchant_id", func(d *Decision) *payment.ID { return &d.Merchant }),
	intColumn("number", func(d *Decision) *int64 { return &d.Number }),
	idColumn("id", func(d *Decision) *payment.ID { return &d.ID }),
	idColumn("case_id", func(d *Decision) *payment.ID { return &d.Case }),
	textColumn("action", func(d *Decision) *DecisionAction { return &d.Action }),
	textColumn("resolution", func(d *Decision) *Resolution { return &d.Resolution }),
	textColumn("actor", func(d *Decision) *actor.Actor { return &d.Actor }),
	textColumn("reason", func(d *Decision) *string { return &d.Reason }),
	textColumn("evidence", func(d *Decision) *string { return &d.Evidence }),
	jsonColumn("params", func(d *Decision) *Params { return &d.Params }),
	timeColumn("created_at", func(d *Decision) *time.Time { return &d.CreatedAt }),
	bytesColumn("previous_hash", func(d *Decision) *[]byte { return &d.PreviousHash }),
	bytesColumn("hash", func(d *Decision) *[]byte { return &d.Hash }),
)

var decisionsByCase = decisionTable.selectBy("t.merchant_id, t.number", "merchant_id", "case_id").ReadOnly() // the case is locked

func scanDecision(r db.Scanner) (Decision, error) {
	var d Decision
	return d, decisionTable.scan(r, &d)
}

// hash is the keyed hash of a decision. It covers each field with its length, so that no text can
// move into another field.
func (d *Decision) hash(keys *db.Keyring) [sha256.Size]byte {
	b := []byte("porteira/decision/1")
	add := func(field []byte) {
		b = binary.BigEndian.AppendUint32(b, uint32(len(field))) //nolint:gosec // fields are short
		b = append(b, field...)
	}
	add(d.Merchant[:])
	add(strconv.AppendInt(nil, d.Number, 10))
	add(d.ID[:])
	add(d.Case[:])
	for _, text := range []string{string(d.Action), string(d.Resolution), string(d.Actor), d.Reason, d.Evidence} {
		add([]byte(text))
	}
	add(strconv.AppendInt(nil, int64(len(d.Params)), 10))
	for _, name := range slices.Sorted(maps.Keys(d.Params)) {
		add([]byte(name))
		add([]byte(d.Params[name]))
	}
	add(strconv.AppendInt(nil, micros(d.CreatedAt), 10))
	add(d.PreviousHash)
	return keys.MAC(db.PurposeDecision, b)
}

// Decisions are the decisions about a loaded case, in their order.
func (l *Loaded) Decisions(merchant, of payment.ID) []Decision {
	return l.cases.decisions[Ref{merchant, of}]
}

// AddDecision appends a decision about a loaded case. Its number and hash are set when
// the commit is saved.
func (c *Changes) AddDecision(d Decision) {
	d.CreatedAt = c.l.now
	ref := Ref{d.Merchant, d.Case}
	c.l.cases.decisions[ref] = append(slices.Clone(c.l.cases.decisions[ref]), d)
	c.decisions = append(c.decisions, d)
	c.count++
}

// saveDecisions appends the decisions to the chains of their merchants. Others wait for the counter
// of the merchant's events, which is locked right after: without that lock, one of many concurrent
// decisions could lose every race for the next number.
func (c *Changes) saveDecisions(ctx context.Context, tx *db.Tx) error {
	heads := map[payment.ID]Decision{}
	slices.SortStableFunc(c.decisions, func(a, b Decision) int { return payment.CompareIDs(a.Merchant, b.Merchant) })
	rows := make([][]any, len(c.decisions))
	for i := range c.decisions {
		d := &c.decisions[i]
		head, known := heads[d.Merchant]
		if !known {
			if _, err := lockEvents(ctx, tx, d.Merchant); err != nil {
				return fmt.Errorf("last decision: %w", err)
			}
			var err error
			head, err = scanDecision(tx.QueryRow(ctx, lastDecision, d.Merchant[:]))
			if err != nil && !errors.Is(db.NotFound(err), ErrNotFound) {
				return fmt.Errorf("last decision: %w", err)
			}
		}
		d.Number, d.PreviousHash = head.Number+1, head.Hash
		sum := d.hash(tx.Keys())
		d.Hash = sum[:]
		heads[d.Merchant] = *d
		rows[i] = decisionTable.row(d)
	}
	added, err := tx.Insert(ctx, decisionTable.insert, rows...)
	if err == nil && slices.Contains(added, false) {
		err = db.ErrRetry
	}
	if err != nil {
		return fmt.Errorf("decisions: %w", err)
	}
	return nil
}

var lastDecision = "SELECT " + decisionTable.selected + " FROM decisions t WHERE t.merchant_id = $1 ORDER BY t.number DESC LIMIT 1"

// Decisions reads the decisions about a case, in their order.
func (s *Store) Decisions(ctx context.Context, merchant, of payment.ID) ([]Decision, error) {
	rows, err := s.db.Query(ctx, "SELECT "+decisionTable.selected+` FROM decisions t
		WHERE t.merchant_id = $1 AND t.case_id = $2 ORDER BY t.number`, merchant[:], of[:])
	list, err := db.Collect(rows, err, scanDecision)
	return list, s.db.ReadError("decisions", err)
}

// LastDecision reads a merchant's latest decision, the head of its chain; else
// ErrNotFound.
func (s *Store) LastDecision(ctx context.Context, merchant payment.ID) (Decision, error) {
	d, err := scanDecision(s.db.QueryRow(ctx, lastDecision, merchant[:]))
	return d, s.db.ReadError("last decision", err)
}
