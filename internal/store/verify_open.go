package store

import (
	"context"
	"math"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
)

// opened is a table whose rows must be decoded, and whose sealed values must open. It is read in the
// order of a key, page by page, so that no read keeps its snapshot for long.
type opened struct {
	table, columns string
	key            string
	first          any // below each key
	page           int
	// scan reads a row and its key, and reports whether it is damaged.
	scan func(r db.Scanner, keys *db.Keyring, key *any) (id payment.ID, damaged bool, err error)
}

// verifyPage is how many rows one statement reads.
const verifyPage = 10_000

// openedTables are the tables with sealed values or JSON that the work on orders needs. Small
// tables are read completely in one statement.
var openedTables = []opened{
	{"payouts", payoutTable.selected, "id", []byte{}, verifyPage, func(r db.Scanner, keys *db.Keyring, key *any) (payment.ID, bool, error) {
		p, err := scanDamagedPayout(r, keys, key)
		return p.ID, p.damaged, err
	}},
	{"payins", payinTable.selected + ", t.personal", "id", []byte{}, verifyPage, func(r db.Scanner, keys *db.Keyring, key *any) (payment.ID, bool, error) {
		var p payinRow
		damaged, err := payinTable.scanDue(r, &p, &p.personal, key)
		return p.ID, damaged || !opens(keys, personalData(p.Merchant, p.ID), p.personal), err
	}},
	{"refunds", refundTable.selected, "id", []byte{}, verifyPage, func(r db.Scanner, _ *db.Keyring, key *any) (payment.ID, bool, error) {
		var v refundRow
		damaged, err := refundTable.scanDue(r, &v, key)
		return v.ID, damaged, err
	}},
	{"refund_parts", partTable.selected, "refund_id", []byte{}, math.MaxInt32, func(r db.Scanner, _ *db.Keyring, key *any) (payment.ID, bool, error) {
		var p payment.RefundPart
		damaged, err := partTable.scanDue(r, &p, key)
		return p.Refund, damaged, err
	}},
	{"events", eventTable.selected, "number", int64(0), verifyPage, func(r db.Scanner, keys *db.Keyring, key *any) (payment.ID, bool, error) {
		var e eventRow
		damaged, err := eventTable.scanDue(r, &e, key)
		return e.ID, damaged || !opens(keys, eventBody(&e.Event), e.sealed), err
	}},
	{"webhook_endpoints", endpointTable.selected, "id", []byte{}, math.MaxInt32, func(r db.Scanner, keys *db.Keyring, key *any) (payment.ID, bool, error) {
		var e Endpoint
		damaged, err := endpointTable.scanDue(r, &e, key)
		_, _, secret := e.secrets(keys)
		return e.ID, damaged || secret != nil, err
	}},
	{"dispute_answers", answerTable.selected + ", t.content", "dispute_id", []byte{}, math.MaxInt32, func(r db.Scanner, keys *db.Keyring, key *any) (payment.ID, bool, error) {
		var a answerRow
		damaged, err := answerTable.scanDue(r, &a, &a.content, key)
		of := func(column string) db.AssociatedData { return answerData(a.Merchant, a.Dispute, column) }
		sealed := len(a.summary) > 0 // an acceptance has neither
		return a.Dispute, damaged || sealed && !(opens(keys, of("summary"), a.summary) && opens(keys, of("content"), a.content)), err
	}},
}

func opens(keys *db.Keyring, cell db.AssociatedData, sealed []byte) bool {
	_, err := keys.Open(cell, sealed)
	return err == nil
}

// proveOpens decodes and decrypts a merchant's rows, of which SQL sees only bytes.
func proveOpens(ctx context.Context, q querier, keys *db.Keyring, merchant payment.ID) (Proof, error) {
	p := Proof{Check: "rows", Proves: "the rows of orders, events, webhook endpoints and defenses can be decoded, and what is sealed in them opens", Defects: []Defect{}}
	for i := range openedTables {
		if err := openedTables[i].prove(ctx, q, keys, merchant, "cannot be decoded or decrypted", &p); err != nil {
			return p, err
		}
	}
	return p, nil
}

func (o *opened) prove(ctx context.Context, q querier, keys *db.Keyring, merchant payment.ID, defect string, p *Proof) error {
	text := "SELECT " + o.columns + ", t." + o.key + " FROM " + o.table + " t WHERE t.merchant_id = $1 AND t." + o.key + " > $2 ORDER BY t." + o.key + " LIMIT $3"
	after := o.first
	for n := o.page; n == o.page; {
		n = 0
		rows, err := q.Query(ctx, text, merchant[:], after, o.page)
		_, err = db.Collect(rows, err, func(r db.Scanner) (struct{}, error) {
			id, damaged, err := o.scan(r, keys, &after)
			n++
			p.Count++
			switch {
			case err != nil || !damaged:
			case len(p.Defects) < DefectsMax:
				p.Defects = append(p.Defects, Defect{ID: id.String(), Detail: "a row of " + o.table + " " + defect})
			default:
				p.More = true
			}
			return struct{}{}, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
