package store_test

import (
	"database/sql"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/store"
)

// unplanned are the methods whose queries the test of plans leaves out.
var unplanned = map[string]string{
	"Backup": "an operator's command, which copies everything", "Verify": "an operator's command, which proves everything",
	"VerifyEach": "likewise", "OpenExceptions": "an operator's command, over what waits for a person",
	"Credentials": "an operator's command", "Close": "runs no query",
	"Ended": "runs no query", "Engine": "runs no query", "HasDeliveries": "runs no query", "ChangedPayins": "runs no query", "Installation": "runs no query", "Keys": "runs no query",
	"Lanes": "runs no query", "PreparePayin": "runs no query", "PreparePayout": "runs no query",
}

// unplannedFiles hold statements of commands, of opening and of the schema, and
// pieces of PostgreSQL's, whose server tells what it was asked.
var unplannedFiles = []string{"verify.go", "backup.go", "migrate.go", "open_sqlite.go", "open_postgres.go", "checkpoint.go", "dialect.go"}

// unplannedTexts are statements of commands among others, and one that asks a
// server about its tables.
var unplannedTexts = regexp.MustCompile(`FROM exceptions WHERE closed_at = 0 ORDER BY|FROM pg_stat_user_tables`)

// Nothing but the store speaks to a database, and all that others can call of it
// is either called by the test of plans, or stands above with a reason.
func TestEveryMethodIsPlanned(t *testing.T) {
	t.Parallel()
	called := map[string]bool{}
	file, err := parser.ParseFile(token.NewFileSet(), "plan_test.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if of, ok := call.Fun.(*ast.SelectorExpr); ok {
				called[of.Sel.Name] = true
			}
		}
		return true
	})
	tests := regexp.MustCompile(`^(Reader|Written|RecordReads|FailCheckpoints|Limit\w*)$`) // of export_test.go
	for _, of := range []reflect.Type{reflect.TypeFor[*store.Store](), reflect.TypeFor[*store.Tx]()} {
		for i := range of.NumMethod() {
			name := of.Method(i).Name
			if _, left := unplanned[name]; !called[name] && !left && !tests.MatchString(name) && !exportedForTests(t, name) {
				t.Errorf("%s.%s is not called by exercise: its queries have no plan", of, name)
			}
		}
	}
	for name := range unplanned {
		_, ofStore := reflect.TypeFor[*store.Store]().MethodByName(name)
		_, ofTx := reflect.TypeFor[*store.Tx]().MethodByName(name)
		if !ofStore && !ofTx {
			t.Errorf("%s is left out, and is no method", name)
		}
	}
}

// exportedForTests says whether a method is there for tests of this room only.
func exportedForTests(t *testing.T, name string) bool {
	t.Helper()
	for _, file := range []string{"export_test.go", "verify_export_test.go"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), ") "+name+"(") {
			return true
		}
	}
	return false
}

// ofServers are statements that only a server is asked.
var ofServers = regexp.MustCompile(`unnest\(`)

// everyText holds what was recorded against the statements in the room's source,
// those that are for servers alone or the others: one that was not recorded
// belongs to a branch that exercise does not take.
func everyText(t *testing.T, recorded []string, servers bool) {
	t.Helper()
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	statement := regexp.MustCompile(`^(SELECT|INSERT|UPDATE|DELETE|WITH)\b`)
	n := 0
	expect := func(where token.Position, text string) {
		if ofServers.MatchString(text) != servers {
			return
		}
		n++
		if !slices.ContainsFunc(recorded, func(have string) bool { return strings.Contains(have, text) }) {
			t.Errorf("%s: was not recorded, so nobody knows its plan: %s", where, text)
		}
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") || slices.Contains(unplannedFiles, f.Name()) {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, f.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			switch v := node.(type) {
			case *ast.BasicLit:
				if text, err := strconv.Unquote(v.Value); v.Kind == token.STRING && err == nil && statement.MatchString(text) && !unplannedTexts.MatchString(text) {
					expect(set.Position(v.Pos()), text)
				}
			case *ast.CallExpr:
				if name, ok := v.Fun.(*ast.Ident); ok && name.Name == "newTable" {
					table, err := strconv.Unquote(v.Args[0].(*ast.BasicLit).Value)
					if err != nil {
						t.Fatal(err)
					}
					expect(set.Position(v.Pos()), "INSERT INTO "+table+" (")
				} else if ok && name.Name == "newRowUpdate" {
					head := "UPDATE " + tableOf(t, v.Args[0]) + " AS t SET "
					if servers {
						n++
						if !slices.ContainsFunc(recorded, func(have string) bool { return strings.HasPrefix(have, head) && ofServers.MatchString(have) }) {
							t.Errorf("%s: was not recorded: %s", set.Position(v.Pos()), head)
						}
					} else {
						expect(set.Position(v.Pos()), head)
					}
				}
			}
			return true
		})
	}
	if n < 6 || !servers && n < 80 {
		t.Errorf("only %d statements were found in the source", n)
	}
}

// tableOf is the table of a rowUpdate's literal.
func tableOf(t *testing.T, literal ast.Expr) string {
	t.Helper()
	for _, e := range literal.(*ast.CompositeLit).Elts {
		if pair := e.(*ast.KeyValueExpr); pair.Key.(*ast.Ident).Name == "table" {
			table, err := strconv.Unquote(pair.Value.(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			return table
		}
	}
	t.Fatal("an update of no table")
	return ""
}

// fillPostgres makes three thousand rows, of fifty merchants, of each row that
// is there, and tells the planner. What a unique key holds differs between them.
func fillPostgres(t *testing.T, s *store.Store) {
	t.Helper()
	conn, err := s.Reader().Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	run := func(text string) {
		t.Helper()
		if _, err := conn.ExecContext(t.Context(), text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	run("SET session_replication_role = replica") // foreign keys lead nowhere
	for _, table := range large {
		rows, err := conn.QueryContext(t.Context(), `SELECT column_name, data_type, EXISTS (SELECT 1 FROM pg_index i JOIN pg_attribute a
				ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey) WHERE i.indrelid = $1::text::regclass AND i.indisunique AND a.attname = column_name)
			FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = $1 ORDER BY ordinal_position`, table)
		if err != nil {
			t.Fatal(err)
		}
		merchants := 50
		if table == "event_counters" { // one row each
			merchants = 3000
		}
		run(fmt.Sprintf("INSERT INTO %s SELECT %s FROM %s, generate_series(1, 3000) g ON CONFLICT DO NOTHING", table, copies(t, rows, merchants), table))
	}
	run("SET session_replication_role = origin")
	run("ANALYZE")
}

// copies are the expressions of a table's columns in its copies, which belong to
// so many merchants.
func copies(t *testing.T, rows *sql.Rows, merchants int) string {
	t.Helper()
	defer func() { _ = rows.Close() }()
	var list []string
	for rows.Next() {
		var name, kind string
		var unique bool
		if err := rows.Scan(&name, &kind, &unique); err != nil {
			t.Fatal(err)
		}
		value := name
		switch {
		case name == "merchant_id":
			value = fmt.Sprintf("decode(md5(merchant_id::text || g %% %d), 'hex')", merchants)
		case unique && kind == "bytea":
			value = fmt.Sprintf("decode(md5(%s::text || g), 'hex')", name)
		case unique && kind == "text":
			value = name + " || g"
		case unique:
			value = name + " + g"
		}
		list = append(list, value)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(list, ", ")
}
