package store

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
)

// AuditFilter selects entries of the audit.
type AuditFilter struct {
	Merchant *payment.ID // nil: of all, and of the platform
	As       string      // a name that looks like that of the actor; "": any
	Since    time.Time
	Limit    int
}

// AuditList lists who did what, newest first: changes of the configuration, decisions about cases, and
// those about payouts that need approval. The last two have records of their own, and no number.
func (s *Store) AuditList(ctx context.Context, f AuditFilter) ([]AuditEntry, error) {
	var list []AuditEntry
	for _, source := range []struct {
		table, selected string
		scan            func(db.Scanner) (AuditEntry, error)
	}{
		{"audit", auditTable.selected, scanAudit},
		{"decisions", decisionTable.selected, scanDecided},
		{"approvals", approvalTable.selected, scanApproved(s.Keys())}, // the first one is the request
	} {
		text := "SELECT " + source.selected + " FROM " + source.table + " t WHERE t.number > 0 AND t.created_at >= $1"
		args := []any{micros(f.Since)}
		if f.Merchant != nil {
			text += " AND t.merchant_id = $2"
			args = append(args, f.Merchant[:])
		}
		rows, err := s.db.Query(ctx, text+" ORDER BY t.created_at DESC, t.number DESC", args...)
		if err != nil {
			return nil, s.db.ReadError("audit", err)
		}
		found := 0
		for found < f.Limit && rows.Next() {
			e, err := source.scan(rows)
			if err != nil {
				_ = rows.Close()
				return nil, s.db.ReadError("audit", err)
			}
			if f.As == "" || actor.LookAlike(f.As, e.Actor.Name()) {
				list = append(list, e)
				found++
			}
		}
		_ = rows.Close()
		if err := rows.Err(); err != nil {
			return nil, s.db.ReadError("audit", err)
		}
	}
	slices.SortStableFunc(list, func(a, b AuditEntry) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.Number, a.Number))
	})
	return list[:min(len(list), f.Limit)], nil
}

// scanDecided reads a decision about a case as an entry.
func scanDecided(r db.Scanner) (AuditEntry, error) {
	d, err := scanDecision(r)
	after := fieldsOf(d.Params)
	after.add("how", fieldsOf(map[string]Resolution{"how": d.Resolution})["how"])
	if d.Evidence != "" {
		after.add("evidence", fieldsOf(map[string]string{"evidence": d.Evidence})["evidence"])
	}
	return AuditEntry{
		Actor: d.Actor, Reason: d.Reason, Noun: "case", Action: string(d.Action), Merchant: d.Merchant, Subject: d.Case.String(),
		Before: "{}", After: after.text(), CreatedAt: d.CreatedAt,
	}, err
}

// scanApproved reads a decision about a payout as an entry.
func scanApproved(keys *db.Keyring) func(r db.Scanner) (AuditEntry, error) {
	scan := scanApproval(keys)
	return func(r db.Scanner) (AuditEntry, error) {
		v, err := scan(r)
		by := v.Actor
		if v.Action == ApprovalExpired {
			by = actor.System
		}
		return AuditEntry{
			Actor: by, Reason: v.Reason, Noun: "payout", Action: string(v.Action), Merchant: v.Merchant, Subject: v.Payout.String(),
			Before: "{}", After: "{}", CreatedAt: v.CreatedAt,
		}, err
	}
}

// LastChanges reads the last change of each thing of a kind that a merchant has, by subject; the zero
// id is for what all merchants share.
func (s *Store) LastChanges(ctx context.Context, merchant payment.ID, noun string) (map[string]AuditEntry, error) {
	rows, err := s.db.Query(ctx, "SELECT "+auditTable.selected+` FROM audit t
		WHERE t.merchant_id = $1 AND t.noun = $2 ORDER BY t.number`, merchant[:], noun)
	list, err := db.Collect(rows, err, scanAudit)
	last := map[string]AuditEntry{}
	for _, e := range list {
		last[e.Subject] = e
	}
	return last, s.db.ReadError("audit", err)
}

// LastAudit reads the last entry of the audit, the head of its chain.
func (s *Store) LastAudit(ctx context.Context) (AuditEntry, error) {
	e, err := scanAudit(s.db.QueryRow(ctx, lastAudit))
	return e, s.db.ReadError("audit", err)
}

// VerifyAudit checks the hash chain of the audit.
func (s *Store) VerifyAudit(ctx context.Context) (Proof, error) {
	p, err := proveAudit(ctx, s.db, s.Keys())
	return p, s.db.ReadError("audit", err)
}

// proveAudit is [Store.VerifyAudit]. A chain that was cut at its end is found only by comparison with a copy of its head
// ([Store.LastAudit]) that is kept outside the database.
func proveAudit(ctx context.Context, q querier, keys *db.Keyring) (Proof, error) {
	p := Proof{Check: "audit", Proves: "changes of the configuration are numbered from 1 without a gap, and each hash covers its row and the row before", Defects: []Defect{}}
	defect := func(e *AuditEntry, wrong string) {
		if len(p.Defects) == DefectsMax {
			p.More = true
			return
		}
		p.Defects = append(p.Defects, Defect{ID: strings.TrimSpace(e.Noun + " " + e.Subject), Detail: fmt.Sprintf("entry %d: %s", e.Number, wrong)})
	}
	rows, err := q.Query(ctx, "SELECT "+auditTable.selected+" FROM audit t ORDER BY t.number")
	var before AuditEntry
	_, err = db.Collect(rows, err, func(r db.Scanner) (struct{}, error) {
		e, err := scanAudit(r)
		if err != nil {
			return struct{}{}, err
		}
		p.Count++
		switch {
		case e.Number != before.Number+1:
			defect(&e, fmt.Sprintf("the row after entry %d is missing", before.Number))
		case !keys.Authentic(db.PurposeAudit, e.form(), e.Hash):
			defect(&e, "the row was changed")
		case !bytes.Equal(e.PreviousHash, before.Hash):
			defect(&e, fmt.Sprintf("entry %d, which it continues, was replaced", before.Number))
		}
		before = e
		return struct{}{}, nil
	})
	if err == nil && p.Count == 0 {
		defect(&AuditEntry{}, "the first row is missing")
	}
	return p, err
}
