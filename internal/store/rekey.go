package store

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
)

// settingRoot is the root of keyed hashes, sealed with a master key, in base64.
const settingRoot = "hash-root"

var rootCell = db.AssociatedData{Table: "settings", Column: settingRoot}

// newRoot makes the root of a new database, and the keyring that it will have.
func newRoot(o db.Options) (setting, *db.Keyring, error) {
	root := make([]byte, db.RootLength)
	o.Env.Random.Read(root)
	keys, err := o.Keys.WithRoot(root)
	return setting{settingRoot, base64.StdEncoding.EncodeToString(o.Keys.Seal(rootCell, root))}, keys, err
}

// openRoot makes keyed hashes come from the root of this database. Without its key the database can
// be opened, but nothing in it is authentic: see [Store.KeyError].
func (s *Store) openRoot(ctx context.Context) error {
	text, err := s.Setting(ctx, settingRoot)
	if err != nil || text == "" || s.db.Keys() == nil {
		return err
	}
	sealed, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return fmt.Errorf("store: the root of keyed hashes: %w", err)
	}
	root, err := s.db.Keys().Open(rootCell, sealed)
	if err != nil {
		s.keyError = err
		return nil
	}
	return s.db.UseRoot(root)
}

// KeyError is why the master keys do not open this database; nil if one of them does.
func (s *Store) KeyError() error { return s.keyError }

// sealedRows are the rows of a table with sealed columns.
type sealedRows struct {
	table   string
	key     []string // columns, which also order the rows
	columns []string
	cell    func(row []any, column string) db.AssociatedData // row has the columns of key, and others
	others  []string
}

// sealedTables are all tables with sealed columns but settings.
var sealedTables = []sealedRows{
	{table: "merchants", key: []string{"id"}, columns: []string{"webhook_secret", "previous_webhook_secret"},
		cell: func(row []any, _ string) db.AssociatedData { return webhookSecret(keyID(row[0])) }},
	{table: "accounts", key: []string{"id"}, columns: []string{"secrets"},
		cell: func(row []any, _ string) db.AssociatedData { return accountSecrets(keyText(row[0])) }},
	{table: "webhook_endpoints", key: []string{"merchant_id", "id"}, columns: []string{"secret", "previous_secret"},
		cell: func(row []any, _ string) db.AssociatedData { return endpointSecret(keyID(row[0]), keyID(row[1])) }},
	{table: "payins", key: []string{"merchant_id", "id"}, columns: []string{"personal"},
		cell: func(row []any, _ string) db.AssociatedData { return personalData(keyID(row[0]), keyID(row[1])) }},
	{table: "payouts", key: []string{"merchant_id", "id"}, columns: []string{"beneficiary"},
		cell: func(row []any, _ string) db.AssociatedData { return beneficiary(keyID(row[0]), keyID(row[1])) }},
	{table: "events", key: []string{"merchant_id", "number"}, columns: []string{"body"}, others: []string{"id"},
		cell: func(row []any, _ string) db.AssociatedData {
			return eventBody(&payment.Event{Merchant: keyID(row[0]), ID: keyID(row[2])})
		}},
	{table: "notices", key: []string{"processor", "notice_id"}, columns: []string{"body"},
		cell: func(row []any, _ string) db.AssociatedData { return noticeBody(keyText(row[0]), keyText(row[1])) }},
	{table: "dispute_answers", key: []string{"merchant_id", "dispute_id", "number"}, columns: []string{"summary", "content"},
		cell: func(row []any, column string) db.AssociatedData {
			return answerData(keyID(row[0]), keyID(row[1]), column)
		}},
}

func keyID(v any) payment.ID {
	b, _ := v.([]byte)
	return idOf(b)
}

func keyText(v any) string {
	if b, ok := v.([]byte); ok {
		return string(b)
	}
	text, _ := v.(string)
	return text
}

// rekeyBatch is how many rows are sealed again in one commit.
const rekeyBatch = 200

// Rekeyed is the result for one table. Counts are of values.
type Rekeyed struct {
	Table   string `json:"table"`
	Sealed  int64  `json:"sealed"`  // again, with the present master key
	Kept    int64  `json:"kept"`    // that were sealed with it
	Changed int64  `json:"changed"` // meanwhile, by a gateway: another run seals them
	Damaged int64  `json:"damaged"` // that no known key opens
}

// Rekey seals everything that was sealed with a retired master key again, with the present one, in
// short commits, while gateways may be running. A run that was interrupted continues where it
// was. The root of keyed hashes is sealed last, if nothing is left. The audit gets an entry with the first change
// of each table, and one with the root, which names both keys.
func (s *Store) Rekey(ctx context.Context, by actor.Author, report func(Rekeyed)) error {
	if s.keyError != nil {
		return s.keyError
	}
	var left int64
	for i := range sealedTables {
		done, err := s.rekeyTable(ctx, by, &sealedTables[i])
		if err != nil {
			return s.db.ReadError("to rekey "+sealedTables[i].table, err)
		}
		report(done)
		left += done.Changed + done.Damaged
	}
	if left > 0 {
		return nil
	}
	return s.rekeyRoot(ctx, by, report)
}

// NeedsRekey reports whether something may still be sealed with a retired master key: [Store.Rekey]
// has not ended since the present key was made.
func (s *Store) NeedsRekey(ctx context.Context) (bool, error) {
	text, err := s.Setting(ctx, settingRoot)
	if err != nil || text == "" {
		return false, err
	}
	sealed, err := base64.StdEncoding.DecodeString(text)
	return !s.Keys().IsPresent(sealed), err
}

func (s *Store) rekeyRoot(ctx context.Context, by actor.Author, report func(Rekeyed)) error {
	done := Rekeyed{Table: "settings"}
	text, err := s.Setting(ctx, settingRoot)
	if err != nil {
		return err
	}
	sealed, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return fmt.Errorf("store: the root of keyed hashes: %w", err)
	}
	if done.Kept = 1; !s.Keys().IsPresent(sealed) {
		root, err := s.Keys().Open(rootCell, sealed)
		if err != nil {
			return err
		}
		fresh := s.Keys().Seal(rootCell, root)
		err = s.Administer(ctx, by, func(tx *AdminTx) error {
			key := func(sealed []byte) fields { return fieldsOf(map[string]string{"key": db.KeyOf(sealed)}) }
			tx.record(NounMasterKey, "replace", payment.ID{}, "", key(sealed), key(fresh))
			return tx.SetSetting(ctx, settingRoot, base64.StdEncoding.EncodeToString(fresh))
		})
		if err != nil {
			return err
		}
		done.Kept, done.Sealed = 0, 1
	}
	report(done)
	return nil
}

func (s *Store) rekeyTable(ctx context.Context, by actor.Author, v *sealedRows) (done Rekeyed, err error) {
	done.Table = v.table
	var after []any
	for n := rekeyBatch; n == rekeyBatch; {
		where, args := "", slices.Clone(after)
		if after != nil {
			where = " WHERE (" + strings.Join(v.key, ", ") + ") > (" + placeholders(1, len(v.key)) + ")"
		}
		text := "SELECT " + strings.Join(slices.Concat(v.key, v.others, v.columns), ", ") + " FROM " + v.table + where +
			" ORDER BY " + strings.Join(v.key, ", ") + " LIMIT " + strconv.Itoa(rekeyBatch)
		rows, err := s.db.Query(ctx, text, args...)
		list, err := db.Collect(rows, err, v.scan)
		if err != nil {
			return done, err
		}
		if n = len(list); n == 0 {
			break
		}
		after = list[n-1][:len(v.key)]
		batch, err := s.rekeyRows(ctx, by, v, list, done.Sealed == 0)
		if err != nil {
			return done, err
		}
		done.Sealed, done.Kept, done.Changed, done.Damaged = done.Sealed+batch.Sealed, done.Kept+batch.Kept, done.Changed+batch.Changed, done.Damaged+batch.Damaged
	}
	return done, nil
}

// scan reads a row. Values are copied: the driver may use their memory again.
func (v *sealedRows) scan(r db.Scanner) ([]any, error) {
	row := make([]any, len(v.key)+len(v.others)+len(v.columns))
	to := make([]any, len(row))
	for i := range row {
		to[i] = &row[i]
	}
	err := r.Scan(to...)
	for i := range row {
		if b, ok := row[i].([]byte); ok {
			row[i] = bytes.Clone(b)
		}
	}
	return row, err
}

// rekeyRows seals rows again. first means that none of their table was sealed before by this run.
func (s *Store) rekeyRows(ctx context.Context, by actor.Author, v *sealedRows, list [][]any, first bool) (done Rekeyed, err error) {
	type change struct {
		column     string
		key        []any
		old, fresh []byte
	}
	var changes []change
	for _, row := range list {
		for i, column := range v.columns {
			sealed, _ := row[len(v.key)+len(v.others)+i].([]byte)
			switch plain, err := s.Keys().Open(v.cell(row, column), sealed); {
			case len(sealed) == 0: // there is none
			case s.Keys().IsPresent(sealed):
				done.Kept++
			case errors.Is(err, db.ErrSealed):
				done.Damaged++
			default:
				changes = append(changes, change{column, row[:len(v.key)], sealed, s.Keys().Seal(v.cell(row, column), plain)})
			}
		}
	}
	if len(changes) == 0 {
		return done, nil
	}
	counted := done
	err = s.Administer(ctx, by, func(tx *AdminTx) error {
		done = counted // it may run again
		for _, c := range changes {
			where := make([]string, len(v.key))
			for i, name := range v.key {
				where[i] = name + " = $" + strconv.Itoa(i+3)
			}
			result, err := tx.Exec(ctx, "UPDATE "+v.table+" SET "+c.column+" = $1 WHERE "+c.column+" = $2 AND "+strings.Join(where, " AND "),
				append([]any{c.fresh, c.old}, c.key...)...)
			if err != nil {
				return err
			}
			if n, err := result.RowsAffected(); err != nil {
				return err
			} else if n == 0 {
				done.Changed++
				continue
			}
			done.Sealed++
		}
		if first && done.Sealed > 0 {
			tx.Record(NounMasterKey, "rekey", payment.ID{}, v.table)
		}
		return nil
	})
	return done, err
}

func placeholders(from, n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = "$" + strconv.Itoa(from+i)
	}
	return strings.Join(list, ", ")
}
