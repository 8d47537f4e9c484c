package store

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
)

// Head is the last entry of a merchant's ledger at some time. A copy that is kept outside the database
// shows later whether the chain of entries was cut at its end: see [Store.ProveHead].
type Head struct {
	Merchant payment.ID
	Number   int64
	Hash     []byte
}

// String is the head as it is logged: merchant's id, number and hash, separated by colons.
func (h Head) String() string {
	return h.Merchant.String() + ":" + strconv.FormatInt(h.Number, 10) + ":" + hex.EncodeToString(h.Hash)
}

// ParseHead reads the form of [Head.String].
func ParseHead(text string) (h Head, err error) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return h, errors.New("a head has the form ID:NUMBER:HASH, as the gateway logs it")
	}
	if h.Merchant, err = payment.ParseID(parts[0]); err != nil {
		return h, err
	}
	if h.Number, err = strconv.ParseInt(parts[1], 10, 64); err != nil || h.Number < 1 {
		return h, fmt.Errorf("%q is not the number of an entry", parts[1])
	}
	if h.Hash, err = hex.DecodeString(parts[2]); err != nil || len(h.Hash) == 0 {
		return h, fmt.Errorf("%q is not a hash in hexadecimal", parts[2])
	}
	return h, nil
}

// Heads reads the last entry of each ledger that has one, in the order of the merchants' ids.
func (s *Store) Heads(ctx context.Context) ([]Head, error) {
	rows, err := s.db.Query(ctx, `SELECT t.merchant_id, t.entry_number, t.entry_hash FROM merchants m
		JOIN balances t ON t.merchant_id = m.id AND t.account = 'available' ORDER BY t.merchant_id`)
	list, err := db.Collect(rows, err, func(r db.Scanner) (h Head, err error) {
		return h, r.Scan((*idDest)(&h.Merchant), &h.Number, &h.Hash)
	})
	return list, s.db.ReadError("last entries", err)
}

// ProveHead compares the ledger with a head that was kept outside the database. It reads the merchant's
// postings.
func (s *Store) ProveHead(ctx context.Context, h Head) (Proof, error) {
	p := Proof{Check: "head", Proves: fmt.Sprintf("the ledger has entry %d with the hash that was kept outside", h.Number), Defects: []Defect{}}
	rows, err := s.db.Query(ctx, "SELECT t.entry_hash FROM postings t WHERE t.merchant_id = $1 AND t.entry_number = $2 AND t.line = 0", h.Merchant[:], h.Number)
	list, err := db.Collect(rows, err, func(r db.Scanner) (hash []byte, err error) { return hash, r.Scan(&hash) })
	p.Count = int64(len(list))
	switch {
	case len(list) == 0:
		p.Defects = append(p.Defects, Defect{ID: h.Merchant.String(), Detail: fmt.Sprintf("entry %d is not there: entries were removed at the end, or an older copy of the database was put back", h.Number)})
	case len(list) > 1 || !bytes.Equal(list[0], h.Hash):
		p.Defects = append(p.Defects, Defect{ID: h.Merchant.String(), Detail: fmt.Sprintf("entry %d is another one: entries were written again after they had been removed, or after an older copy of the database was put back", h.Number)})
	}
	return p, s.db.ReadError("entry", err)
}
