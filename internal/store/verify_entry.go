package store

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/payment"
)

// chainOfEntries reads a merchant's postings in the order of its entries, and then its balances (part
// 1) in the form of postings. It is one statement, so that both are of one state of the database.
var chainOfEntries = "SELECT 0 AS part, " + postingTable.selected + ` FROM postings t WHERE t.merchant_id = $1
	UNION ALL SELECT 1, ` + postingTable.values(map[string]string{
	"merchant_id": "t.merchant_id", "entry_id": "t.merchant_id", "line": "0", "kind": "''", "subject_id": "t.merchant_id", "account": "t.account", "amount": "0",
	"balance_after": "t.balance", "created_at": "t.entry_at", "number": "t.postings", "entry_number": "t.entry_number", "entry_hash": "t.entry_hash", "part_id": "t.merchant_id",
}) + ` FROM balances t WHERE t.merchant_id = $1
	ORDER BY part, entry_number, entry_id, line`

// proveEntries checks the hash chain of a merchant's entries, and that the balances are those after
// its last entry. The hashes are keyed, so SQL cannot check them. A chain that was cut at its end,
// with its balances set back, is found only by comparison with a head that is kept outside the
// database ([Store.VerifyHead]).
func proveEntries(ctx context.Context, q querier, keys *db.Keyring, merchant payment.ID) (Proof, error) {
	w := chainWalk{keys: keys, balances: ledger.Balances{}, proof: Proof{
		Check: "chain", Proves: "each entry is as the gateway wrote it after the one before, and the balances are those after the last one", Defects: []Defect{},
	}}
	rows, err := q.Query(ctx, chainOfEntries, merchant[:])
	_, err = db.Collect(rows, err, func(r db.Scanner) (struct{}, error) {
		var part int64
		var p posting
		err := r.Scan(append([]any{&part}, postingTable.dests(&p, 0)...)...)
		switch {
		case err != nil:
		case part > 0:
			w.end()
			w.balance(&p)
		default:
			w.line(p)
		}
		return struct{}{}, err
	})
	w.end()
	w.finish()
	return w.proof, err
}

// chainWalk follows the entries of a merchant, in their order.
type chainWalk struct {
	keys     *db.Keyring
	proof    Proof
	lines    []posting // of the current entry
	last     entryHead
	balances ledger.Balances // after the last entry
	headed   bool            // the row with the last entry was there
}

func (w *chainWalk) defectf(id, format string, args ...any) {
	if len(w.proof.Defects) < DefectsMax {
		w.proof.Defects = append(w.proof.Defects, Defect{ID: id, Detail: fmt.Sprintf(format, args...)})
	} else {
		w.proof.More = true
	}
}

// line adds a line to the current entry, or ends that and begins the next one.
func (w *chainWalk) line(p posting) {
	if len(w.lines) > 0 && (p.entryNumber != w.lines[0].entryNumber || p.Entry != w.lines[0].Entry) {
		w.end()
	}
	w.lines = append(w.lines, p)
}

// end checks the current entry, if there is one.
func (w *chainWalk) end() {
	if len(w.lines) == 0 {
		return
	}
	first := w.lines[0]
	w.proof.Count++
	id := first.Entry.String()
	switch {
	case first.entryNumber <= w.last.number:
		w.defectf(id, "entry %d was added: there is another entry %d", first.entryNumber, first.entryNumber)
		w.lines = w.lines[:0]
		return // the chain goes on with the other one
	case first.entryNumber > w.last.number+1:
		w.defectf(id, "entry %d, before this one, is missing", w.last.number+1)
	case !sameEntry(w.lines), !w.keys.Authentic(db.PurposeEntry, appendEntry(nil, w.last.hash, w.lines), first.entryHash):
		w.defectf(id, "entry %d (%s) is not as the gateway wrote it after the one before: it was changed, re-dated or added, or that one was", first.entryNumber, first.Kind)
	}
	for i := range w.lines {
		p := &w.lines[i]
		if before := w.balances[p.Account]; before+p.Amount != p.BalanceAfter {
			w.defectf(id, "entry %d moves %s from %d, and the entry before ended at %d", first.entryNumber, p.Account, p.BalanceAfter-p.Amount, before)
		}
		w.balances[p.Account] = p.BalanceAfter
	}
	w.last = entryHead{number: first.entryNumber, hash: first.entryHash, at: first.CreatedAt}
	w.lines = w.lines[:0]
}

// sameEntry reports whether lines have what all lines of an entry have in common.
func sameEntry(lines []posting) bool {
	first := &lines[0]
	for i := range lines {
		p := &lines[i]
		if p.Line != int64(i) || p.Kind != first.Kind || p.Subject != first.Subject || p.Part != first.Part || !p.CreatedAt.Equal(first.CreatedAt) || i > 0 && len(p.entryHash) > 0 {
			return false
		}
	}
	return true
}

// balance compares a stored balance with the last entry.
func (w *chainWalk) balance(p *posting) {
	if after := w.balances[p.Account]; p.BalanceAfter != after {
		w.defectf(string(p.Account), "the balance is %d, the last entry left %d", p.BalanceAfter, after)
	}
	delete(w.balances, p.Account)
	if p.Account != ledger.Available {
		return
	}
	w.headed = true
	switch {
	case p.entryNumber != w.last.number:
		w.defectf(string(p.Account), "%d entries were written, there are %d", p.entryNumber, w.last.number)
	case !bytes.Equal(p.entryHash, w.last.hash), !p.CreatedAt.Equal(w.last.at):
		w.defectf(string(p.Account), "entry %d is not the last one that was written", w.last.number)
	}
}

// finish finds balances that are missing.
func (w *chainWalk) finish() {
	for _, account := range slices.Sorted(maps.Keys(w.balances)) {
		w.defectf(string(account), "the balance is missing, the last entry left %d", w.balances[account])
	}
	if !w.headed && w.last.number > 0 {
		w.defectf(string(ledger.Available), "the row with the last entry is missing")
	}
}
