package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
)

// AuditEntry is the record of an administrative change: who, when, what and why. The entries of an
// installation are numbered without gaps, and each hash covers its row and the hash of the one before.
type AuditEntry struct {
	Number    int64 // from 1
	Actor     actor.Actor
	Reason    string
	Noun      string     // such as limit
	Action    string     // such as set
	Merchant  payment.ID // whose it is; zero for the platform
	Subject   string     // its id or name; "" if the merchant has only one
	Before    string     // the changed fields, a JSON object
	After     string     // the same
	CreatedAt time.Time

	PreviousHash []byte
	Hash         []byte
}

var auditTable = newTable("audit", []string{"number"},
	intColumn("number", func(e *AuditEntry) *int64 { return &e.Number }),
	textColumn("actor", func(e *AuditEntry) *actor.Actor { return &e.Actor }),
	textColumn("reason", func(e *AuditEntry) *string { return &e.Reason }),
	textColumn("noun", func(e *AuditEntry) *string { return &e.Noun }),
	textColumn("action", func(e *AuditEntry) *string { return &e.Action }),
	idColumn("merchant_id", func(e *AuditEntry) *payment.ID { return &e.Merchant }),
	textColumn("subject", func(e *AuditEntry) *string { return &e.Subject }),
	textColumn("before_change", func(e *AuditEntry) *string { return &e.Before }),
	textColumn("after_change", func(e *AuditEntry) *string { return &e.After }),
	timeColumn("created_at", func(e *AuditEntry) *time.Time { return &e.CreatedAt }),
	bytesColumn("previous_hash", func(e *AuditEntry) *[]byte { return &e.PreviousHash }),
	bytesColumn("hash", func(e *AuditEntry) *[]byte { return &e.Hash }),
)

func scanAudit(r db.Scanner) (AuditEntry, error) {
	var e AuditEntry
	return e, auditTable.scan(r, &e)
}

// Nouns of the audit.
const (
	NounMerchant   = "merchant"
	NounCredential = "credential"
	NounAccount    = "account"
	NounLimit      = "limit"
	NounPrice      = "price"
	NounRoute      = "route"
	NounEndpoint   = "webhook endpoint"
	NounEvents     = "events"
	NounMasterKey  = "master key"
)

// form is the input of the keyed hash of an entry. It has each field with its length, so that no text can
// move into another field.
func (e *AuditEntry) form() []byte {
	b := []byte("porteira/audit/1")
	for _, field := range []string{
		strconv.FormatInt(e.Number, 10), string(e.Actor), e.Reason, e.Noun, e.Action, string(e.Merchant[:]), e.Subject, e.Before, e.After,
		strconv.FormatInt(micros(e.CreatedAt), 10), string(e.PreviousHash),
	} {
		b = binary.BigEndian.AppendUint32(b, uint32(len(field))) //nolint:gosec // fields are short
		b = append(b, field...)
	}
	return b
}

// follow makes the entry the next one of the chain whose last one is head.
func (e *AuditEntry) follow(head *AuditEntry, keys *db.Keyring) {
	e.Number, e.PreviousHash = head.Number+1, head.Hash
	sum := keys.MAC(db.PurposeAudit, e.form())
	e.Hash = sum[:]
}

// firstAudit is the first entry of a new installation. Its row is the lock of the chain.
func firstAudit(keys *db.Keyring, now time.Time) AuditEntry {
	e := AuditEntry{Actor: actor.System, Noun: "installation", Action: "create", Before: "{}", After: "{}", CreatedAt: now}
	e.follow(&AuditEntry{}, keys)
	return e
}

// AdminTx is a plain transaction that changes what operators and credentials configure. Each of its
// methods that changes something records it, so that no change is without an entry in the audit.
type AdminTx struct {
	*Tx

	by      actor.Author
	entries []AuditEntry
}

// errNoAuthor is a fault of the program: each change has an author.
var errNoAuthor = errors.New("store: a change without an author")

// Administer runs work in a plain transaction, as [Store.Transact], and appends what it changed to
// the audit in the same transaction.
func (s *Store) Administer(ctx context.Context, by actor.Author, work func(tx *AdminTx) error) error {
	if by.Actor == "" {
		return errNoAuthor
	}
	return s.db.Write(ctx, func(t *db.Tx) error {
		tx := &AdminTx{Tx: &Tx{t, s}, by: by}
		if err := work(tx); err != nil {
			return err
		}
		return appendAudit(ctx, t, tx.entries)
	})
}

// Record records an action that has changed nothing in the database, such as a registration at a
// processor.
func (tx *AdminTx) Record(noun, action string, merchant payment.ID, subject string) {
	tx.entries = append(tx.entries, newAudit(tx.by, noun, action, merchant, subject, nil, nil))
}

// record records a change, unless the fields are the same before and after.
func (tx *AdminTx) record(noun, action string, merchant payment.ID, subject string, before, after fields) {
	if e := newAudit(tx.by, noun, action, merchant, subject, before, after); e.Before != e.After {
		tx.entries = append(tx.entries, e)
	}
}

// saveAudit appends the entries to the chain. Its lock is the last one of a commit.
func (c *Changes) saveAudit(ctx context.Context, tx *db.Tx) error {
	return appendAudit(ctx, tx, c.audit)
}

func newAudit(by actor.Author, noun, action string, merchant payment.ID, subject string, before, after fields) AuditEntry {
	before, after = maps.Clone(before), maps.Clone(after)
	for name, v := range before {
		if other, ok := after[name]; ok && string(other) == string(v) {
			delete(before, name)
			delete(after, name)
		}
	}
	return AuditEntry{
		Actor: by.Actor, Reason: by.Reason, Noun: noun, Action: action, Merchant: merchant, Subject: subject, Before: before.text(), After: after.text(),
	}
}

var lastAudit = "SELECT " + auditTable.selected + " FROM audit t ORDER BY t.number DESC LIMIT 1"

// appendAudit appends entries to the chain, one transaction at a time.
func appendAudit(ctx context.Context, tx *db.Tx, entries []AuditEntry) error {
	if len(entries) == 0 {
		return nil
	}
	var first int64
	if err := tx.QueryRow(ctx, "SELECT number FROM audit WHERE number = 1"+tx.ForUpdate()).Scan(&first); err != nil {
		return fmt.Errorf("store: audit: %w", err)
	}
	head, err := scanAudit(tx.QueryRow(ctx, lastAudit))
	if err != nil {
		return fmt.Errorf("store: audit: %w", err)
	}
	rows := make([][]any, len(entries))
	for i := range entries {
		e := &entries[i]
		if e.Actor == "" {
			return errNoAuthor
		}
		e.CreatedAt = tx.Now
		e.follow(&head, tx.Keys())
		head, rows[i] = *e, auditTable.row(e)
	}
	return tx.InsertNew(ctx, auditTable.insert, rows...)
}

// fields are the fields of what was changed, as JSON values. Members of objects are named with a
// dot.
type fields map[string]jsontext.Value

// changedValue stands for the values of secrets, and of what is too large.
const changedValue = `"changed"`

// fieldsOf are the fields of a value that always marshals; none of nil.
func fieldsOf(v any) fields {
	f := fields{}
	if v != nil {
		f.add("", jsontext.Value(jsonText(v)))
	}
	return f
}

func (f fields) add(name string, v jsontext.Value) {
	var members map[string]jsontext.Value
	if v.Kind() != '{' || json.Unmarshal(v, &members) != nil {
		f[name] = v
		return
	}
	for member, v := range members {
		if name != "" {
			member = name + "." + member
		}
		f.add(member, v)
	}
}

// text is the JSON object of the fields.
func (f fields) text() string {
	if f == nil {
		f = fields{}
	}
	text, err := json.Marshal(map[string]jsontext.Value(f), json.Deterministic(true))
	if err != nil { // they were values of JSON
		panic(err)
	}
	return string(text)
}
