package store_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/store"
)

// unplanned are the methods whose statements the test of plans leaves out.
var unplanned = map[string]string{
	"s.Backup": "an operator's command, which copies everything", "s.Verify": "an operator's command, which reads everything",
	"s.VerifyEach": "likewise", "s.Rekey": "likewise", "s.NeedsRekey": "likewise", "s.KeyError": "reads nothing", "s.ProveHead": "likewise", "s.Heads": "once a minute, over the merchants", "s.OpenCases": "an operator's command, over the open cases", "s.StoppingCases": "likewise",
	"s.CountCases": "over the open cases", "s.Cases": "an operator's command", "s.OldestWork": "first rows of queues", "s.Unknowns": "over the open work", "s.WebhookBacklog": "over the open work", "s.AllBalances": "over the accounts of all ledgers, cached", "s.FoundTransferOf": "an operator's command, over the few found transfers",
	"s.Credentials": "an operator's command", "s.Accounts": "an operator's command, and the start of a process", "s.AccountUsed": "an operator's command, of an account that takes no orders", "s.Close": "runs no query", "s.DB": "for tests",
	"s.AuditList": "an operator's command", "s.LastChanges": "likewise", "s.LastAudit": "likewise", "s.VerifyAudit": "likewise",
	"s.Ended": "runs no query", "s.Engine": "runs no query", "s.Installation": "runs no query", "s.Keys": "runs no query", "s.KeyHash": "runs no query", "s.SearchTerm": "runs no query",
	"s.Writers": "runs no query", "s.IsDerived": "runs no query", "s.Transact": "runs no query of its own", "s.Administer": "runs the statements of tx.Record", "n.Capacity": "runs no query", "c.UndoKeys": "runs no query", "c.Refusal": "runs no query",
}

// unplannedFiles hold statements of commands only, and the builders of statements.
var unplannedFiles = []string{"verify.go", "verify_decision.go", "verify_credential.go", "verify_entry.go", "verify_authentic.go", "verify_refund.go", "verify_batch.go", "verify_open.go", "verify_cause.go", "verify_order.go", "verify_receivable.go", "audit_list.go", "column.go", "filter.go", "operator.go", "facts.go", "heads.go", "rekey.go"}

// unplannedTexts are statements of commands in other files: the list of open cases,
// the lists of credentials, accounts and routes, the first rows of a database, the mark of a backup.
var unplannedTexts = regexp.MustCompile(`FROM cases t\s+WHERE t\\\.closed_at = 0 (ORDER BY|AND \\\(t\\\.stops_payouts)|FROM credentials t\s+WHERE t\\\.merchant_id|FROM accounts t ORDER BY|` +
	`^\^INSERT INTO installation|^\^INSERT INTO merchants \\\(id, number|UPDATE installation SET epoch = \\\$1\$$`)

// singleRows are the tables of which a transaction writes one row at most, or rows one by one.
var singleRows = regexp.MustCompile(`UPDATE (brands|nodes|installation|accounts|credentials|merchants) AS t SET .* FROM unnest|INSERT INTO (settings|installation|accounts|webhook_endpoints) `)

// Only the store has statements. Everything that others can call in it is either
// called by the exercise, or listed above with a reason.
func TestEveryMethodIsPlanned(t *testing.T) {
	t.Parallel()
	called := map[string]bool{}
	files, err := filepath.Glob("plan_*_test.go")
	must(t, err)
	for _, name := range append(files, "store_test.go") {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		must(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			if of, ok := n.(*ast.SelectorExpr); ok {
				if receiver, ok := of.X.(*ast.Ident); ok {
					called[receiver.Name+"."+of.Sel.Name] = true
				}
			}
			return true
		})
	}
	methods := map[string]bool{}
	for receiver, of := range map[string]reflect.Type{
		"s": reflect.TypeFor[*store.Store](), "tx": reflect.TypeFor[*store.AdminTx](), "n": reflect.TypeFor[*store.Needs](), "c": reflect.TypeFor[*store.Changes](),
	} {
		for i := range of.NumMethod() {
			name := of.Method(i).Name
			if _, engine := reflect.TypeFor[*db.Tx]().MethodByName(name); engine && receiver == "tx" {
				continue
			}
			methods[receiver+"."+name] = true
			if _, left := unplanned[receiver+"."+name]; !called[receiver+"."+name] && !left {
				t.Errorf("%s.%s is not called by the exercise: its statements have no plan", of, name)
			}
		}
	}
	for name := range unplanned {
		if !methods[name] {
			t.Errorf("%s is left out, and is no method", name)
		}
	}
}

// wantEveryStatement compares the statements that an engine prepared with those in
// the source: one that was not prepared belongs to a branch that the exercise does
// not take.
func wantEveryStatement(t *testing.T, prepared []string, engine string) {
	t.Helper()
	s := readSource(t)
	texts, built := 0, 0
	for name, file := range s.files {
		if slices.Contains(unplannedFiles, name) {
			continue
		}
		ofTables := s.built(file, engine)
		built += len(ofTables)
		for _, want := range append(s.statements(file), ofTables...) {
			if pattern := want.pattern.String(); unplannedTexts.MatchString(pattern) || singleRows.MatchString(pattern) {
				continue
			}
			texts++
			if !slices.ContainsFunc(prepared, want.pattern.MatchString) {
				t.Errorf("%s: was not prepared, so its plan is unknown: %s", want.where, want.pattern)
			}
		}
	}
	if least := map[string]int{"sqlite": 35, "postgres": 55}[engine]; built < least || texts < least+65 {
		t.Errorf("only %d statements were found in the source, of which %d are built from tables", texts, built)
	}
}
