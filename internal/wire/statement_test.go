package wire

import (
	"encoding/csv"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
)

// A spreadsheet takes no reference for a formula, and a program gets it back. Amounts stay
// numbers.
func TestStatementCSVHasNoFormulas(t *testing.T) {
	t.Parallel()
	cells := map[string]string{
		`=HYPERLINK("http://x","y")`: `'=HYPERLINK("http://x","y")`, "+1": "'+1", "-1": "'-1", "@SUM(1)": "'@SUM(1)", "\t=1": "'\t=1",
		"＝1": "'＝1", "'quoted": "''quoted", "'": "''", "": "", "pedido-1": "pedido-1", "a=1": "a=1", " =1": "' =1", "\u00a0+1": "'\u00a0+1", "ção": "ção",
		"a;=1": "a;'=1", ";": ";", "a;;-1;b": "a;;'-1;b", "=1;'=1;x": "'=1;''=1;x", "a;b": "a;b",
		`y;"=HYPERLINK(A1);`: `y;'"=HYPERLINK(A1);`, `"=1`: `'"=1`, `a;""+1`: `a;'""+1`, `a; "@x`: `a;' "@x`, `a;"'b`: `a;'"'b`, `"a";b"`: `"a";b"`,
	}
	for reference, want := range cells {
		rows, err := csv.NewReader(strings.NewReader(statementOf(t, reference))).ReadAll()
		if err != nil || len(rows) != 2 {
			t.Fatalf("%q: %v, %v", reference, rows, err)
		}
		if got := rows[1][slices.Index(rows[0], "referenceId")]; got != want || exactReference(got) != reference {
			t.Errorf("%q is %q, want %q", reference, got, want)
		}
		if rows[1][slices.Index(rows[0], "amount")] != "-5" || rows[1][slices.Index(rows[0], "balanceAfter")] != "-7" {
			t.Errorf("amounts: %v", rows[1])
		}
	}
}

// statementOf is a statement as CSV, with a row of each reference.
func statementOf(t testing.TB, references ...string) string {
	t.Helper()
	var out strings.Builder
	rows := make([]StatementRow, len(references))
	for i := range rows {
		rows[i] = StatementRow{
			Number: int64(i + 1), Kind: ledger.PayoutHeld, Account: ledger.Available, Amount: -5, BalanceAfter: -7, OrderType: payment.OperationPayout, ReferenceID: references[i],
		}
	}
	if err := StatementCSV(&out, "", rows, true); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// exactReference is the reference of a cell, as the contract says.
func exactReference(cell string) string {
	return strings.ReplaceAll(strings.TrimPrefix(cell, "'"), ";'", ";")
}

// spreadsheetCells reads a file as a spreadsheet does that takes any of some characters for the
// separator: what follows the closing quote of a cell belongs to it.
func spreadsheetCells(text, separators string) (cells []string) {
	var cell strings.Builder
	quoted, begins := false, true
	list := []rune(text)
	for i := 0; i < len(list); i++ {
		r := list[i]
		switch {
		case quoted && r == '"' && i+1 < len(list) && list[i+1] == '"':
			cell.WriteRune(r)
			i++
		case r == '"' && (quoted || begins):
			quoted, begins = !quoted, false
		case !quoted && (r == '\n' || strings.ContainsRune(separators, r)):
			cells = append(cells, cell.String())
			cell.Reset()
			begins = true
		default:
			cell.WriteRune(r)
			begins = false
		}
	}
	return append(cells, cell.String())
}

// checkCells checks that no cell of a file is a formula, with each separator that a spreadsheet
// may take.
func checkCells(t testing.TB, text string) {
	t.Helper()
	for _, separators := range []string{",", ";", "\t", ",;", ";\t"} {
		for _, cell := range spreadsheetCells(text, separators) {
			cell = strings.TrimSpace(cell)
			if _, err := strconv.Atoi(cell); err != nil && startsWithAny(cell, "=+-@＝＋－＠") {
				t.Errorf("with %q as separator %q is a formula, in %q", separators, cell, text)
			}
		}
	}
}

// No references make a formula, and each can be had exactly.
func FuzzStatementCSV(f *testing.F) {
	for _, seed := range [][2]string{
		{`y;"=HYPERLINK(A1);`, "pedido-1"}, {`a;"`, `;=1`}, {`a;`, `b;"=1`}, {`"";""=1`, `'";'=1`}, {`a,"=1";"";+1`, ` =1; "-1`}, {"a;\u00a0=1", "a;\"\"\"@1"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if strings.ContainsFunc(a+b, unicode.IsControl) || !utf8.ValidString(a+b) { // no reference has these
			return
		}
		text := statementOf(t, a, b)
		checkCells(t, text)
		rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		if err != nil || len(rows) != 3 {
			t.Fatalf("%q: %v, %v", text, rows, err)
		}
		for i, reference := range []string{a, b} {
			if got := exactReference(rows[i+1][8]); got != reference {
				t.Errorf("%q is %q", reference, got)
			}
		}
	})
}

// A spreadsheet of Brazil opens the statement as it is: semicolons, decimal comma, times of São Paulo.
func TestStatementForBrazil(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	at := time.Date(2026, time.March, 1, 2, 30, 0, 0, time.UTC)
	for i, amount := range []money.Cents{-1234_56, 5, -5, 10_00} {
		if err := StatementCSV(&out, FormatBR, []StatementRow{{Number: int64(i), Amount: amount, BalanceAfter: 0, CreatedAt: at}}, i == 0); err != nil {
			t.Fatal(err)
		}
	}
	text, marked := strings.CutPrefix(out.String(), "\ufeff")
	r := csv.NewReader(strings.NewReader(text))
	r.Comma = ';'
	rows, err := r.ReadAll()
	if err != nil || !marked || len(rows) != 5 {
		t.Fatalf("%v: %q", err, text)
	}
	for i, want := range []string{"-1234,56", "0,05", "-0,05", "10,00"} {
		if row := rows[i+1]; row[4] != want || row[5] != "0,00" || row[9] != "28/02/2026 23:30:00" {
			t.Errorf("%v, want %s", row, want)
		}
	}
}
