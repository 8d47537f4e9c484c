package wire

import (
	"encoding/csv"
	"slices"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/payment"
)

// A spreadsheet takes no reference for a formula, and a program gets it back. Amounts stay
// numbers.
func TestStatementCSVHasNoFormulas(t *testing.T) {
	t.Parallel()
	cells := map[string]string{
		`=HYPERLINK("http://x","y")`: `'=HYPERLINK("http://x","y")`, "+1": "'+1", "-1": "'-1", "@SUM(1)": "'@SUM(1)", "\t=1": "'\t=1",
		"＝1": "'＝1", "'quoted": "''quoted", "'": "''", "": "", "pedido-1": "pedido-1", "a=1": "a=1", " =1": " =1", "ção": "ção",
		"a;=1": "a;'=1", ";": ";", "a;;-1;b": "a;;'-1;b", "=1;'=1;x": "'=1;''=1;x", "a;b": "a;b",
	}
	exact := func(cell string) string { return strings.ReplaceAll(strings.TrimPrefix(cell, "'"), ";'", ";") }
	for reference, want := range cells {
		var out strings.Builder
		row := StatementRow{
			Number: 1, Kind: ledger.PayoutHeld, Account: ledger.Available, Amount: -5, BalanceAfter: -7, OrderType: payment.OperationPayout, ReferenceID: reference,
		}
		if err := StatementCSV(&out, []StatementRow{row}, true); err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(strings.NewReader(out.String())).ReadAll()
		if err != nil || len(rows) != 2 {
			t.Fatalf("%q: %v, %v", reference, rows, err)
		}
		if got := rows[1][slices.Index(rows[0], "referenceId")]; got != want || exact(got) != reference {
			t.Errorf("%q is %q, want %q", reference, got, want)
		}
		if rows[1][slices.Index(rows[0], "amount")] != "-5" || rows[1][slices.Index(rows[0], "balanceAfter")] != "-7" {
			t.Errorf("amounts: %v", rows[1])
		}
	}
}
