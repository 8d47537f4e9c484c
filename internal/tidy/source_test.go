package tidy

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

const (
	functionLinesMax = 70
	fileLinesMax     = 500
)

// checkSize limits the length of functions and files, including tests and generated files.
func checkSize(repository *tree) []finding {
	var found []finding
	for _, file := range repository.sources {
		if lines := repository.positions.File(file.FileStart).LineCount(); lines > fileLinesMax {
			found = append(found, finding{file.path, file.path, fmt.Sprintf("%d lines, at most %d", lines, fileLinesMax)})
		}
		for _, declaration := range file.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok {
				continue
			}
			first, last := repository.positions.Position(function.Pos()).Line, repository.positions.Position(function.End()).Line
			if lines := last - first + 1; lines > functionLinesMax {
				subject := file.folder + "." + functionName(function)
				found = append(found, finding{subject, repository.at(function.Pos()),
					fmt.Sprintf("%d lines, at most %d", lines, functionLinesMax)})
			}
		}
	}
	return found
}

var sizeMutants = []mutant{
	{"a function of 71 lines",
		map[string]string{"a/a.go": "package a\n\nfunc (t *T[K]) Long() {" + strings.Repeat("\n", 70) + "}\n"},
		[]string{"a.T.Long"}},
	{"a file of 501 lines",
		map[string]string{"a/a_test.go": "package a\n" + strings.Repeat("\n", 500)},
		[]string{"a/a_test.go"}},
	{"70 and 500 lines",
		map[string]string{"a/a.go": "package a\n\nfunc f() {" + strings.Repeat("\n", 69) + "}\n" + strings.Repeat("\n", 428)}, nil},
}

// moneyLayers are the layers that compute amounts, which are integers of cents.
var moneyLayers = []string{"money", "ledger", "payment", "pricing", "brcode", "boleto", "store", "payin", "payout", "outgoing", "dispute", "notice", "transition", "merchant", "wire"}

// exactMath are the integer constants of package math.
var exactMath = regexp.MustCompile(`^(Max|Min)U?[iI]nt`)

// checkFloats refuses floating-point types, literals and functions in layers that compute
// amounts.
func checkFloats(repository *tree) []finding {
	var found []finding
	for _, file := range repository.sources {
		layer, _, _ := strings.Cut(strings.TrimPrefix(file.folder, "internal/"), "/")
		if !slices.Contains(moneyLayers, layer) {
			continue
		}
		imported := file.imported()
		ast.Inspect(file.File, func(node ast.Node) bool {
			float := ""
			switch node := node.(type) {
			case *ast.Ident:
				if slices.Contains([]string{"float32", "float64", "ParseFloat", "FormatFloat", "AppendFloat"}, node.Name) {
					float = node.Name
				}
			case *ast.BasicLit:
				if node.Kind == token.FLOAT {
					float = node.Value
				}
			case *ast.SelectorExpr:
				if name, ok := node.X.(*ast.Ident); ok && imported[name.Name] == "math" && !exactMath.MatchString(node.Sel.Name) {
					float = "math." + node.Sel.Name
				}
			}
			if float != "" {
				found = append(found, finding{file.path + ": " + float, repository.at(node.Pos()), "amounts are integers of cents"})
			}
			return true
		})
	}
	return found
}

var floatMutants = []mutant{
	{"types, literals and functions",
		map[string]string{"internal/money/a.go": `package money
			import ("math"; "strconv")
			var rate float64
			const fee = 0.01
			var up = math.Ceil(rate)
			var parsed, _ = strconv.ParseFloat("1", 64)`},
		[]string{"internal/money/a.go: 0.01", "internal/money/a.go: ParseFloat", "internal/money/a.go: float64", "internal/money/a.go: math.Ceil"}},
	{"in a subfolder, and in tests",
		map[string]string{"internal/store/sub/a_test.go": "package sub\nvar f float32"},
		[]string{"internal/store/sub/a_test.go: float32"}},
	{"integers, and floats in other layers",
		map[string]string{
			"internal/money/a.go":  "package money\nimport \"math\"\nconst most = math.MaxInt64",
			"internal/worker/a.go": "package worker\nconst jitter = 0.1",
		}, nil},
}

// checkTransfers allows calls of a driver's Transfer, which has three arguments, in the
// one executor only: rule 10 of docs/payouts.md.
func checkTransfers(repository *tree) []finding {
	var found []finding
	for _, file := range repository.sources {
		if file.test || file.folder == "internal/outgoing" || strings.HasPrefix(file.folder, "internal/processor/processortest") {
			continue
		}
		ast.Inspect(file.File, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok || len(call.Args) != 3 {
				return true
			}
			if method, ok := call.Fun.(*ast.SelectorExpr); ok && method.Sel.Name == "Transfer" {
				found = append(found, finding{file.path + ": Transfer", repository.at(node.Pos()), "only internal/outgoing sends a transfer"})
			}
			return true
		})
	}
	return found
}

var transferMutants = []mutant{
	{"a second path",
		map[string]string{"internal/notice/a.go": "package notice\n\nfunc f() { p.Transfer(ctx, r, guard) }\n"},
		[]string{"internal/notice/a.go: Transfer"}},
	{"the executor, a driver's method, another call of that name",
		map[string]string{
			"internal/outgoing/a.go":          "package outgoing\n\nfunc f() { p.Transfer(ctx, r, guard) }\n",
			"internal/processor/sandbox/a.go": "package sandbox\n\nfunc (p *P) Transfer(ctx, r, guard int) {}\n",
			"internal/sandboxcontrol/a.go":    "package sandboxcontrol\n\nfunc f() { b.Transfer(ctx, id, action, 0) }\n",
		}, nil},
}

// envOnly lists, by import path, the names that only env may use; an empty expression is
// the complete package. Types are refused as values; a pointer to a type is allowed.
var envOnly = map[string]*regexp.Regexp{
	"time":                   regexp.MustCompile(`^(Now|Since|Until|Sleep|After|AfterFunc|NewTimer|NewTicker|Tick)$`),
	"math/rand":              regexp.MustCompile(``),
	"math/rand/v2":           regexp.MustCompile(``),
	"crypto/rand":            regexp.MustCompile(``),
	"github.com/google/uuid": regexp.MustCompile(`^New`),
	"net/http":               regexp.MustCompile(`^(Client|Transport|DefaultClient|DefaultTransport|Get|Head|Post|PostForm)$`),
	"net":                    regexp.MustCompile(`^Dial`),
	"crypto/tls":             regexp.MustCompile(`^Dial`),
}

// checkEnv restricts time, randomness and dialling to internal/env, where a simulation can
// replace them. Tests may use all of it except Sleep.
func checkEnv(repository *tree) []finding {
	var found []finding
	for _, file := range repository.sources {
		if file.folder == "internal/env" && !file.test {
			continue
		}
		imported := file.imported()
		pointers := map[ast.Node]bool{}
		ast.Inspect(file.File, func(node ast.Node) bool {
			if star, ok := node.(*ast.StarExpr); ok {
				pointers[star.X] = true
			}
			selector, ok := node.(*ast.SelectorExpr)
			if !ok || pointers[node] {
				return true
			}
			name, ok := selector.X.(*ast.Ident)
			if !ok {
				return true
			}
			use := imported[name.Name] + "." + selector.Sel.Name
			names := envOnly[imported[name.Name]]
			if names == nil || !names.MatchString(selector.Sel.Name) || file.test && use != "time.Sleep" {
				return true
			}
			found = append(found, finding{file.path + ": " + use, repository.at(node.Pos()), use + " belongs to internal/env"})
			return true
		})
	}
	return found
}

var envMutants = []mutant{
	{"the clock, called, passed and renamed",
		map[string]string{"internal/payin/a.go": `package payin
			import (clock "time")
			var now, start = clock.Now, clock.Now()
			func f() { <-clock.After(1) }`},
		[]string{"internal/payin/a.go: time.After", "internal/payin/a.go: time.Now", "internal/payin/a.go: time.Now"}},
	{"randomness",
		map[string]string{"internal/payin/a.go": `package payin
			import ("crypto/rand"; dice "math/rand/v2"; "github.com/google/uuid")
			var a, b, c = rand.Text(), dice.Int(), uuid.NewString()`},
		[]string{"internal/payin/a.go: crypto/rand.Text", "internal/payin/a.go: github.com/google/uuid.NewString", "internal/payin/a.go: math/rand/v2.Int"}},
	{"dialling",
		map[string]string{"internal/webhook/a.go": `package webhook
			import ("net"; "net/http")
			var a, b = http.Client{}, net.Dialer{}
			var c, d = http.Get("http://example.com")`},
		[]string{"internal/webhook/a.go: net.Dialer", "internal/webhook/a.go: net/http.Client", "internal/webhook/a.go: net/http.Get"}},
	{"a test that sleeps",
		map[string]string{"internal/env/a_test.go": "package env\nimport \"time\"\nfunc f() { time.Sleep(1) }"},
		[]string{"internal/env/a_test.go: time.Sleep"}},
	{"env itself, tests, and parameters",
		map[string]string{
			"internal/env/a.go":        "package env\nimport \"time\"\nvar now = time.Now",
			"internal/payin/a_test.go": "package payin\nimport \"time\"\nvar now = time.Now()",
			"internal/webhook/a.go":    "package webhook\nimport (\"net/http\"; \"time\")\nfunc f(c *http.Client, t time.Time) { _ = http.StatusOK; t.After(t) }",
		}, nil},
}

// leftover matches the marks of unfinished work.
var leftover = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)

// checkMarks refuses comments about unfinished work, which belongs in the issue tracker.
func checkMarks(repository *tree) []finding {
	var found []finding
	for _, file := range repository.sources {
		for _, group := range file.Comments {
			for _, comment := range group.List {
				if mark := leftover.FindString(comment.Text); mark != "" {
					found = append(found, finding{file.path + ": " + mark, repository.at(comment.Pos()), "finish it, or open an issue"})
				}
			}
		}
	}
	return found
}

var markMutants = []mutant{
	{"a mark",
		map[string]string{"a/a.go": "package a // TO" + "DO: the rest"},
		[]string{"a/a.go: TO" + "DO"}},
	{"todos os pagamentos",
		map[string]string{"a/a.go": "package a // todos os pagamentos"}, nil},
}

// checkSkips refuses tests that can be skipped.
func checkSkips(repository *tree) []finding {
	var found []finding
	for _, file := range repository.sources {
		ast.Inspect(file.File, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok {
				return true
			}
			selector, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			receiver, ok := selector.X.(*ast.Ident)
			if ok && slices.Contains([]string{"t", "tb", "b", "f"}, receiver.Name) &&
				slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, selector.Sel.Name) {
				found = append(found, finding{file.path + ": " + selector.Sel.Name, repository.at(node.Pos()), "a skipped test looks like a passed one"})
			}
			return true
		})
	}
	return found
}

var skipMutants = []mutant{
	{"a skip",
		map[string]string{"a/a_test.go": "package a\nfunc TestA(t *testing.T) { t.Skip() }"},
		[]string{"a/a_test.go: Skip"}},
	{"another Skip",
		map[string]string{"a/a.go": "package a\nfunc f() { decoder.Skip() }"}, nil},
}

// functionName is Name, or Type.Name for a method.
func functionName(function *ast.FuncDecl) string {
	if function.Recv == nil {
		return function.Name.Name
	}
	return receiverType(function) + "." + function.Name.Name
}

// receiverType is the name of a method's type, without pointer and type parameters.
func receiverType(function *ast.FuncDecl) string {
	expression := function.Recv.List[0].Type
	for {
		switch inner := expression.(type) {
		case *ast.StarExpr:
			expression = inner.X
		case *ast.IndexExpr:
			expression = inner.X
		case *ast.IndexListExpr:
			expression = inner.X
		case *ast.Ident:
			return inner.Name
		default:
			return ""
		}
	}
}
