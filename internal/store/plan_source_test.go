package store_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// hole stands for a part of a text that is only determined at run time.
const hole = "\x00"

// source is the package's source, from which statements are read.
type source struct {
	t       *testing.T
	set     *token.FileSet
	files   map[string]*ast.File
	globals map[string]ast.Expr      // constants and variables of the package
	returns map[string]*ast.FuncDecl // functions of a single return
}

// expected is a statement that a run must prepare.
type expected struct {
	where   token.Position
	pattern *regexp.Regexp
}

// readSource parses the package without its tests.
func readSource(t *testing.T) *source {
	t.Helper()
	s := &source{t: t, set: token.NewFileSet(), files: map[string]*ast.File{}, globals: map[string]ast.Expr{}, returns: map[string]*ast.FuncDecl{}}
	entries, err := os.ReadDir(".")
	must(t, err)
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(s.set, e.Name(), nil, 0)
		must(t, err)
		s.files[e.Name()] = file
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.GenDecl:
				for name, value := range values(d) {
					s.globals[name] = value
				}
			case *ast.FuncDecl:
				if ret, ok := d.Body.List[0].(*ast.ReturnStmt); ok && d.Recv == nil && len(ret.Results) == 1 {
					s.returns[d.Name.Name] = d
				}
			}
		}
	}
	return s
}

// values are the constants and variables of a declaration.
func values(d *ast.GenDecl) map[string]ast.Expr {
	found := map[string]ast.Expr{}
	for _, spec := range d.Specs {
		if v, ok := spec.(*ast.ValueSpec); ok {
			for i := range v.Values {
				found[v.Names[i].Name] = v.Values[i]
			}
		}
	}
	return found
}

// text is the text of an expression, as far as the source determines it. local
// are the texts of the names of its function.
func (s *source) text(e ast.Expr, local map[string]string) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return text
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return s.text(e.X, local) + s.text(e.Y, local)
		}
	case *ast.ParenExpr:
		return s.text(e.X, local)
	case *ast.Ident:
		if text, ok := local[e.Name]; ok {
			return text
		}
		if value, ok := s.globals[e.Name]; ok {
			return s.text(value, nil)
		}
	case *ast.CallExpr:
		return s.called(e, local)
	}
	return hole
}

// called is the text of a conversion, or of a function of a single return.
func (s *source) called(e *ast.CallExpr, local map[string]string) string {
	name, ok := e.Fun.(*ast.Ident)
	if !ok {
		return hole
	}
	if name.Name == "string" {
		return s.text(e.Args[0], local)
	}
	f, ok := s.returns[name.Name]
	if !ok {
		return hole
	}
	arguments := map[string]string{}
	i := 0
	for _, field := range f.Type.Params.List {
		for _, param := range field.Names {
			arguments[param.Name] = s.text(e.Args[i], local)
			i++
		}
	}
	return s.text(f.Body.List[0].(*ast.ReturnStmt).Results[0], arguments)
}

// locals are the names of a function with a text that is assigned once, and those
// whose text grows.
func (s *source) locals(f *ast.FuncDecl) (local map[string]string, growing map[string]bool) {
	local, growing = map[string]string{}, map[string]bool{}
	for _, field := range f.Type.Params.List {
		for _, param := range field.Names {
			local[param.Name] = hole
		}
	}
	ast.Inspect(f.Body, func(node ast.Node) bool {
		switch v := node.(type) {
		case *ast.GenDecl:
			for name, value := range values(v) {
				local[name] = s.text(value, local)
			}
		case *ast.AssignStmt:
			name, ok := v.Lhs[0].(*ast.Ident)
			switch {
			case !ok:
			case v.Tok == token.DEFINE && len(v.Lhs) == 1:
				local[name.Name] = s.text(v.Rhs[0], local)
			case v.Tok == token.ADD_ASSIGN:
				growing[name.Name] = true
			}
		}
		return true
	})
	for name := range growing {
		local[name] = hole
	}
	return local, growing
}

// statements are all statements that stand in a file as texts.
func (s *source) statements(file *ast.File) (list []expected) {
	for _, d := range file.Decls {
		var local map[string]string
		var growing map[string]bool
		if f, ok := d.(*ast.FuncDecl); ok {
			if s.returns[f.Name.Name] == f { // a part of its callers' statements
				continue
			}
			local, growing = s.locals(f)
		}
		var open ast.Expr // a text to which more is added
		ast.Inspect(d, func(node ast.Node) bool {
			if v, ok := node.(*ast.AssignStmt); ok && len(v.Lhs) == 1 {
				if name, ok := v.Lhs[0].(*ast.Ident); ok && growing[name.Name] {
					open = v.Rhs[0]
				}
			}
			e, ok := node.(ast.Expr)
			if !ok {
				return true
			}
			text := s.text(e, local)
			if _, name := e.(*ast.Ident); name || !isStatement.MatchString(text) {
				return true
			}
			pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(text), hole, "(?s:.*)")
			if e != open {
				pattern += "$"
			}
			list = append(list, expected{s.set.Position(e.Pos()), regexp.MustCompile(pattern)})
			return false
		})
	}
	return list
}

// built are the statements that a file builds from the columns of a table, as an
// engine gets them: one row at a time, and on PostgreSQL many rows together.
func (s *source) built(file *ast.File, engine string) (list []expected) {
	ast.Inspect(file, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok {
			return true
		}
		one, many := s.builtBy(call)
		patterns := []string{one}
		switch name, _ := s.builder(call); {
		case engine == "postgres" && name == "newTable": // one text for any number of rows
			patterns = []string{many}
		case engine == "postgres":
			patterns = []string{one, many}
		}
		for _, pattern := range patterns {
			if pattern != "" {
				list = append(list, expected{s.set.Position(call.Pos()), regexp.MustCompile("^(?s:" + pattern + ")$")})
			}
		}
		return true
	})
	return list
}

// builtBy are the patterns of the statements that a call builds; empty if there
// are none.
func (s *source) builtBy(call *ast.CallExpr) (one, many string) {
	text := func(e ast.Expr) string {
		v := s.text(e, nil)
		if strings.Contains(v, hole) {
			s.t.Fatalf("%s: this part of a statement is only determined at run time", s.set.Position(e.Pos()))
		}
		return v
	}
	texts := func(list []ast.Expr) (words []string) {
		for _, e := range list {
			words = append(words, text(e))
		}
		return words
	}
	named := func(e ast.Expr) []string { return texts(e.(*ast.CallExpr).Args) } // table.named(...)
	const lock = "( FOR NO KEY UPDATE OF t)?"
	switch name, table := s.builder(call); name {
	case "newTable":
		head := "INSERT INTO " + text(call.Args[0]) + ` \([^)]*\) `
		return head + `VALUES .*`, head + `SELECT \* FROM unnest.*`
	case "selectBy":
		return selects(table, texts(call.Args[1:]), "", text(call.Args[0])+lock)
	case "NewKeySelect":
		return selects(text(call.Args[1]), named(call.Args[2]), text(call.Args[3]), text(call.Args[4])+lock)
	case "updateBy":
		return updates(table, texts(call.Args[1:]), text(call.Args[0]))
	case "updateIf":
		return updates(table, texts(call.Args[2:]), text(call.Args[0]))
	case "NewRowUpdate":
		return updates(text(call.Args[0]), named(call.Args[1]), text(call.Args[4]))
	case "NewRowIncrease":
		return updates(text(call.Args[0]), named(call.Args[1]), "")
	case "NewRowDelete":
		keys := named(call.Args[1])
		head := "DELETE FROM " + text(call.Args[0]) + " WHERE "
		return head + equal(keys, "", `\$`), head + `\(` + strings.Join(keys, ", ") + `\) IN .*`
	}
	return "", ""
}

// builder is the name of the function that is called, and the table whose method
// it is.
func (s *source) builder(call *ast.CallExpr) (name, table string) {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name, ""
	case *ast.SelectorExpr:
		if of, ok := f.X.(*ast.Ident); ok {
			if made, ok := s.globals[of.Name].(*ast.CallExpr); ok {
				if name, _ := s.builder(made); name == "newTable" {
					table = s.text(made.Args[0], nil)
				}
			}
		}
		return f.Sel.Name, table
	}
	return "", ""
}

func selects(table string, keys []string, condition, order string) (one, many string) {
	one = "SELECT .* FROM " + table + " t WHERE " + equal(keys, "t.", `\$`) + regexp.QuoteMeta(condition) + " ORDER BY " + order
	many = "SELECT .* JOIN " + table + " t ON " + equal(keys, "t.", "v.v") + regexp.QuoteMeta(condition) + " ORDER BY " + order
	return one, many
}

func updates(table string, keys []string, condition string) (one, many string) {
	checked := regexp.MustCompile(`\\\{\w+\\\}`).ReplaceAllString(regexp.QuoteMeta(condition), ".*")
	one = "UPDATE " + table + " AS t SET .* WHERE " + equal(keys, "t.", `\$`) + checked
	many = "UPDATE " + table + " AS t SET .* FROM unnest.* WHERE " + equal(keys, "t.", "v.v") + checked + " RETURNING .*"
	return one, many
}

func equal(keys []string, prefix, value string) string {
	list := slices.Clone(keys)
	for i := range list {
		list[i] = fmt.Sprintf("%s%s = %s%d", prefix, list[i], value, i+1)
	}
	return strings.Join(list, " AND ")
}
