package store

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
)

// SearchField is a field of personal data by which orders are found. The name is hashed, so it must
// never change.
type SearchField string

// The fields.
const (
	SearchCustomerDocument    SearchField = "payin.customerDocument"
	SearchCustomerEmail       SearchField = "payin.customerEmail"
	SearchPIXKey              SearchField = "payout.pixKey"
	SearchBeneficiaryDocument SearchField = "payout.beneficiaryDocument"
)

// SearchTerm is a keyed hash of a merchant's value of a field in its normal form: 16 bytes.
type SearchTerm = payment.ID

// SearchTerm hashes a value in its normal form.
func (s *Store) SearchTerm(merchant payment.ID, field SearchField, value string) SearchTerm {
	data := append(slices.Clone(merchant[:]), field...)
	sum := s.Keys().MAC(db.PurposeSearch, append(append(data, 0), value...))
	return SearchTerm(sum[:len(SearchTerm{})])
}

// termRow is one row of the index.
type termRow struct {
	merchant, order payment.ID
	term            SearchTerm
}

var termTable = newTable("search_terms", []string{"merchant_id", "term", "order_id"},
	idColumn("merchant_id", func(v *termRow) *payment.ID { return &v.merchant }),
	idColumn("term", func(v *termRow) *SearchTerm { return &v.term }),
	idColumn("order_id", func(v *termRow) *payment.ID { return &v.order }),
)

// Searched is the personal data of an order by which it is found.
type Searched struct {
	ID payment.ID
	// Document and Email are a customer's; Document and PIXKey a beneficiary's, the key in
	// the form that processors get. An absent one is "".
	Document, Email, PIXKey string
	Damaged                 bool // it cannot be decrypted
}

// customerJSON is the part of a customer by which pay-ins are found.
type customerJSON struct {
	Document string `json:"document"`
	Email    string `json:"email"`
}

// SearchedOrders reads up to limit orders of a merchant after an id and up to another one, in
// the order of ids.
func (s *Store) SearchedOrders(ctx context.Context, merchant payment.ID, op payment.Operation, after, last payment.ID, limit int) ([]Searched, error) {
	text, open := "SELECT t.id, t.personal FROM payins t WHERE t.merchant_id = $1 AND t.id > $2 AND t.id <= $3 ORDER BY t.id LIMIT $4", s.searchedPayin
	if op == payment.OperationPayout {
		text, open = "SELECT t.id, t.beneficiary FROM payouts t WHERE t.merchant_id = $1 AND t.id > $2 AND t.id <= $3 ORDER BY t.id LIMIT $4", s.searchedPayout
	}
	rows, err := s.db.Query(ctx, text, merchant[:], after[:], last[:], limit)
	list, err := db.Collect(rows, err, func(r db.Scanner) (v Searched, err error) {
		var sealed []byte
		if err = r.Scan((*idDest)(&v.ID), &sealed); err == nil {
			v.Damaged = open(merchant, sealed, &v) != nil
		}
		return v, err
	})
	return list, s.db.ReadError("orders", err)
}

func (s *Store) searchedPayin(merchant payment.ID, sealed []byte, v *Searched) error {
	plain, err := s.Keys().Open(personalData(merchant, v.ID), sealed)
	if err != nil {
		return err
	}
	var data personalColumn
	var c customerJSON
	if err = json.Unmarshal(plain, &data); err == nil && len(data.Customer) > 0 {
		err = json.Unmarshal(data.Customer, &c)
	}
	v.Document, v.Email = c.Document, c.Email
	return err
}

func (s *Store) searchedPayout(merchant payment.ID, sealed []byte, v *Searched) error {
	plain, err := s.Keys().Open(beneficiary(merchant, v.ID), sealed)
	if err != nil {
		return err
	}
	var b payment.Beneficiary
	err = json.Unmarshal(plain, (*beneficiaryDocument)(&b))
	v.Document, v.PIXKey = b.Document, b.Key()
	return err
}

// AddSearchTerm adds an order to the index; one that is there stays.
func (c *Changes) AddSearchTerm(merchant, order payment.ID, term SearchTerm) {
	c.terms = append(c.terms, termRow{merchant, order, term})
	c.count++
}

// searchPosition is the id up to which the orders of a merchant are in the index.
type searchPosition struct {
	merchant, position payment.ID
	operation          payment.Operation
	back               bool
}

// SetSearchPosition moves the position of a merchant's pay-ins or payouts forward: every
// order up to that id is in the index, or is parked.
func (c *Changes) SetSearchPosition(merchant payment.ID, op payment.Operation, position payment.ID) {
	c.searched = append(c.searched, searchPosition{merchant, position, op, false})
	c.count++
}

// IndexAgain moves the position back to before an order that was parked and is repaired. It and the
// later ones are indexed again, which does not change those that are there.
func (c *Changes) IndexAgain(merchant payment.ID, op payment.Operation, order payment.ID) {
	c.searched = append(c.searched, searchPosition{merchant, order.Before(), op, true})
	c.count++
}

// SearchPosition reads the position that SetSearchPosition wrote; zero if there is none.
func (s *Store) SearchPosition(ctx context.Context, merchant payment.ID, op payment.Operation) (payment.ID, error) {
	rows, err := s.db.Query(ctx, "SELECT position FROM search_positions WHERE merchant_id = $1 AND operation = $2", merchant[:], string(op))
	list, err := db.Collect(rows, err, scanID)
	if err != nil || len(list) == 0 {
		return payment.ID{}, s.db.ReadError("search position", err)
	}
	return list[0], nil
}

func (c *Changes) saveSearch(ctx context.Context, tx *db.Tx) error {
	slices.SortFunc(c.terms, termRow.compare)
	c.terms = slices.Compact(c.terms)
	rows := make([][]any, len(c.terms))
	for i := range c.terms {
		rows[i] = termTable.row(&c.terms[i])
	}
	if _, err := tx.Insert(ctx, termTable.insert, rows...); err != nil {
		return fmt.Errorf("search terms: %w", err)
	}
	for _, v := range c.searched {
		if v.back {
			if _, err := tx.Exec(ctx, "UPDATE search_positions SET position = $3 WHERE merchant_id = $1 AND operation = $2 AND position > $3",
				v.merchant[:], string(v.operation), v.position[:]); err != nil {
				return fmt.Errorf("search position: %w", err)
			}
			continue
		}
		if _, err := tx.Exec(ctx, `INSERT INTO search_positions (merchant_id, operation, position) VALUES ($1, $2, $3)
			ON CONFLICT (merchant_id, operation) DO UPDATE SET position = excluded.position WHERE search_positions.position < excluded.position`,
			v.merchant[:], string(v.operation), v.position[:]); err != nil {
			return fmt.Errorf("search position: %w", err)
		}
	}
	return nil
}

// compare is the order in which terms are inserted: an insert waits for another
// transaction's of the same row.
func (v termRow) compare(other termRow) int {
	if order := payment.CompareIDs(v.merchant, other.merchant); order != 0 {
		return order
	}
	if order := bytes.Compare(v.term[:], other.term[:]); order != 0 {
		return order
	}
	return payment.CompareIDs(v.order, other.order)
}

// NewOrder is an order that a commit has created.
type NewOrder struct {
	Ref

	Operation payment.Operation
}
