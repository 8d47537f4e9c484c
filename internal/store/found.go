package store

import (
	"context"
	"fmt"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
)

// FoundTransfer is a transfer that left outside the life of a payout. It is one of these:
//   - A processor lists it under an external id of a merchant, and no payout has it, because a
//     restored backup lacks the payout.
//   - It left after its payout had failed or was canceled, and has the payout's id.
//   - It is the second transfer of a payout.
type FoundTransfer struct {
	Merchant   payment.ID
	ID         payment.ID
	ExternalID string // of a second transfer, its EndToEndID, because the payout has the other
	Processor  string
	EndToEndID string
	Payout     payment.ID // of a second transfer; else zero
	Total      cents      // that left
	Amount     cents      // the part of it that has not come back
	WrittenOff bool       // the platform bears it, not the merchant
	AdoptedAt  time.Time  // when its payout was requested again, or, of a second one, when it proved to be the only one; else zero
	NextAt     time.Time  // of the next look-up; zero once its outcome is final
	Lookups    int
	CreatedAt  time.Time
}

var foundTable = newTable("found_transfers", []string{"merchant_id", "external_id"},
	idColumn("merchant_id", func(f *FoundTransfer) *payment.ID { return &f.Merchant }),
	idColumn("id", func(f *FoundTransfer) *payment.ID { return &f.ID }),
	textColumn("external_id", func(f *FoundTransfer) *string { return &f.ExternalID }),
	textColumn("processor", func(f *FoundTransfer) *string { return &f.Processor }),
	textColumn("end_to_end_id", func(f *FoundTransfer) *string { return &f.EndToEndID }),
	optionalIDColumn("payout_id", func(f *FoundTransfer) *payment.ID { return &f.Payout }),
	intColumn("total", func(f *FoundTransfer) *cents { return &f.Total }).as(mutable),
	intColumn("amount", func(f *FoundTransfer) *cents { return &f.Amount }).as(mutable),
	flagColumn("written_off", func(f *FoundTransfer) *bool { return &f.WrittenOff }).as(mutable),
	timeColumn("adopted_at", func(f *FoundTransfer) *time.Time { return &f.AdoptedAt }).as(mutable),
	timeColumn("next_at", func(f *FoundTransfer) *time.Time { return &f.NextAt }).as(mutable),
	intColumn("lookups", func(f *FoundTransfer) *int { return &f.Lookups }).as(mutable),
	timeColumn("created_at", func(f *FoundTransfer) *time.Time { return &f.CreatedAt }),
)

var (
	foundUpdate     = foundTable.updateBy("", "merchant_id", "external_id")
	foundByExternal = foundTable.selectBy("t.merchant_id, t.external_id", "merchant_id", "external_id")
	payoutsTaken    = db.NewKeySelect("t.merchant_id, t.external_id", "payouts", payoutTable.named("merchant_id", "external_id"), "",
		"t.merchant_id, t.external_id").ReadOnly()
)

func scanFound(r db.Scanner) (FoundTransfer, error) {
	var f FoundTransfer
	return f, foundTable.scan(r, &f)
}

func scanExternal(r db.Scanner) (k ExternalRef, err error) {
	return k, r.Scan((*idDest)(&k.Merchant), &k.ExternalID)
}

// FoundTransfer reads the transfer that was found under an external id, and whether a payout has
// that id. It reads after the lock of the merchant's balances.
func (n *Needs) FoundTransfer(merchant payment.ID, externalID string) {
	n.found = append(n.found, ExternalRef{merchant, externalID})
	n.Balances(merchant)
}

type loadedFound struct {
	rows  map[ExternalRef]FoundTransfer
	taken map[ExternalRef]bool
}

func (l *Loaded) loadFound(ctx context.Context, tx *db.Tx, n *Needs) error {
	if len(n.found) == 0 {
		return nil
	}
	l.found = loadedFound{map[ExternalRef]FoundTransfer{}, map[ExternalRef]bool{}}
	list, err := db.Select(ctx, tx, foundByExternal, keysOf(n.found), scanFound)
	if err != nil {
		return err
	}
	for i := range list {
		l.found.rows[ExternalRef{list[i].Merchant, list[i].ExternalID}] = list[i]
	}
	taken, err := db.Select(ctx, tx, payoutsTaken, keysOf(n.found), scanExternal)
	for _, k := range taken {
		l.found.taken[k] = true
	}
	return err
}

// FoundTransfer is a loaded found transfer; false if there is none.
func (l *Loaded) FoundTransfer(merchant payment.ID, externalID string) (FoundTransfer, bool) {
	f, ok := l.found.rows[ExternalRef{merchant, externalID}]
	return f, ok
}

// HasPayout reports whether a payout has the external id of a needed found transfer.
func (l *Loaded) HasPayout(merchant payment.ID, externalID string) bool {
	return l.found.taken[ExternalRef{merchant, externalID}]
}

// AddFoundTransfer adds a transfer that was looked for and did not exist.
func (c *Changes) AddFoundTransfer(f FoundTransfer) {
	f.CreatedAt = c.l.now
	c.l.found.rows[ExternalRef{f.Merchant, f.ExternalID}] = f
	c.newFound = append(c.newFound, f)
	c.count++
}

// AdoptFoundTransfer marks a loaded found transfer as that of a payout.
func (c *Changes) AdoptFoundTransfer(f FoundTransfer) {
	f.AdoptedAt, f.NextAt = c.l.now, time.Time{} // its payout is looked up
	c.SetFoundTransfer(f)
}

// SetFoundTransfer changes a loaded found transfer.
func (c *Changes) SetFoundTransfer(f FoundTransfer) {
	c.l.found.rows[ExternalRef{f.Merchant, f.ExternalID}] = f
	c.found = append(c.found, f)
	c.count++
}

func (c *Changes) saveFound(ctx context.Context, tx *db.Tx) error {
	rows := make([][]any, len(c.newFound))
	for i := range c.newFound {
		rows[i] = foundTable.row(&c.newFound[i])
	}
	if err := tx.InsertNew(ctx, foundTable.insert, rows...); err != nil {
		return fmt.Errorf("found transfers: %w", err)
	}
	ref := func(f *FoundTransfer) Ref { return Ref{f.Merchant, f.ID} }
	return inWaves(c.found, ref, func(wave []FoundTransfer) error {
		rows := make([][]any, len(wave))
		for i := range wave {
			rows[i] = foundUpdate.row(&wave[i])
		}
		missed, err := tx.Update(ctx, foundUpdate.RowUpdate, rows...)
		if err == nil && len(missed) > 0 {
			err = fmt.Errorf("%w: found transfer", ErrConflict)
		}
		return err
	})
}

// FoundTransfer reads the transfer that was found under an external id; else ErrNotFound.
func (s *Store) FoundTransfer(ctx context.Context, merchant payment.ID, externalID string) (FoundTransfer, error) {
	f, err := scanFound(s.db.QueryRow(ctx, "SELECT "+foundTable.selected+" FROM found_transfers t WHERE t.merchant_id = $1 AND t.external_id = $2",
		merchant[:], externalID))
	return f, s.db.ReadError("found transfer", err)
}

// FoundTransfersDue lists up to limit found transfers that are due to be looked up, longest
// due first.
func (s *Store) FoundTransfersDue(ctx context.Context, now time.Time, limit int) ([]FoundTransfer, error) {
	rows, err := s.db.Query(ctx, "SELECT "+foundTable.selected+` FROM found_transfers t
		WHERE t.next_at > 0 AND t.next_at <= $1 ORDER BY t.next_at LIMIT $2`, micros(now), limit)
	list, err := db.Collect(rows, err, scanFound)
	return list, s.db.ReadError("found transfers", err)
}

// DuplicateReturned is the returned amount of a payout's duplicate transfer, in cents; ok is false
// if no duplicate is booked.
func (s *Store) DuplicateReturned(ctx context.Context, merchant, payout payment.ID) (back money.Cents, ok bool, err error) {
	n := 0
	err = s.db.QueryRow(ctx, `SELECT coalesce(sum(total - amount), 0), count(*) FROM found_transfers
		WHERE merchant_id = $1 AND payout_id = $2 AND length(payout_id) > 0 AND adopted_at = 0`,
		merchant[:], payout[:]).Scan(&back, &n)
	return back, n > 0, s.db.ReadError("duplicate transfers", err)
}

// HasTransfer reports whether a payout has the external id of a listed transfer, or the transfer was
// booked as found. unbooked means that the transfer must be recorded at its payout:
//   - the payout is PENDING, FAILED or CANCELED, is not booked as paid late, and has had no case
//     paid_after_release; or
//   - the transfer was paid, the payout is queued or in manual review, and the amounts are equal or
//     it has had no case other_amount; or
//   - duplicate, if not "", is not the payout's endToEndId, the amounts are equal, and the payout was
//     paid, or is PROCESSING and was sent more than once.
func (s *Store) HasTransfer(ctx context.Context, merchant payment.ID, externalID string, paid bool, duplicate string, amount money.Cents) (known, unbooked bool, err error) {
	var n, u int
	contradicted := func(reason CaseReason) string {
		return "EXISTS (SELECT 1 FROM cases c WHERE c.merchant_id = p.merchant_id AND c.subject_id = p.id AND c.kind = 'contradiction' AND c.params LIKE '%\"" + string(reason) + "\"%')"
	}
	err = s.db.QueryRow(ctx, `SELECT (SELECT count(*) FROM payouts WHERE merchant_id = $1 AND external_id = $2) +
		(SELECT count(*) FROM found_transfers WHERE merchant_id = $1 AND external_id = $2),
		(SELECT count(*) FROM payouts p WHERE p.merchant_id = $1 AND p.external_id = $2
			AND (p.status IN ('PENDING', 'FAILED', 'CANCELED') AND p.step <> 'paid_late'
				AND NOT `+contradicted(ReasonPaidAfterRelease)+`
			OR $5 = 1 AND p.status = 'PROCESSING' AND p.step IN ('manual_review', 'queued') AND (p.amount = $4 OR NOT `+contradicted(ReasonOtherAmount)+`)
			OR $3 <> '' AND p.end_to_end_id <> $3 AND p.amount = $4 AND (p.status IN ('COMPLETED', 'RETURNED')
				OR p.status = 'PROCESSING' AND (SELECT count(*) FROM payout_sends s WHERE s.merchant_id = p.merchant_id AND s.payout_id = p.id) > 1)))`,
		merchant[:], externalID, duplicate, int64(amount), flag(paid)).Scan(&n, &u)
	return n > 0, u > 0, s.db.ReadError("transfer", err)
}
