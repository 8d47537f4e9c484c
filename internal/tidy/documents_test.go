package tidy

import (
	"fmt"
	"go/ast"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// goReference matches a Go file that a document names, below the root or internal/, and the
// functions that it names of that file: `payin/create.go: Create, CreateOp.Decide`.
var goReference = regexp.MustCompile("`([a-z][a-z0-9_/]*/[a-z0-9_]+\\.go)(?:: ([^`]+))?`")

// checkReferences requires the Go files and functions that documents name to exist. The
// records of the past are left out.
func checkReferences(repository *tree) []finding {
	files := map[string]*source{}
	for _, file := range repository.sources {
		files[file.path] = file
	}
	var found []finding
	for _, name := range slices.Sorted(maps.Keys(repository.texts)) {
		if path.Ext(name) != ".md" || name == "CHANGELOG.md" || name == "RESULTS.md" {
			continue
		}
		for number, line := range strings.Split(string(repository.texts[name]), "\n") {
			for _, match := range goReference.FindAllStringSubmatch(line, -1) {
				for _, missing := range missingOf(files, match[1], match[2]) {
					found = append(found, finding{missing, fmt.Sprintf("%s:%d", name, number+1), "does not exist"})
				}
			}
		}
	}
	return found
}

// missingOf lists what a reference names and the files do not have.
func missingOf(files map[string]*source, name, functions string) []string {
	file := files[name]
	if file == nil {
		file = files["internal/"+name]
	}
	if file == nil {
		return []string{name}
	}
	if functions == "" {
		return nil
	}
	var missing []string
	for _, function := range strings.Split(functions, ", ") {
		if !declares(file, function) {
			missing = append(missing, name+": "+function)
		}
	}
	return missing
}

// declares reports whether a file has a function, or a method, which may be named with its
// type.
func declares(file *source, name string) bool {
	return slices.ContainsFunc(file.Decls, func(declaration ast.Decl) bool {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok {
			return false
		}
		full := function.Name.Name
		if function.Recv != nil {
			full = receiverType(function) + "." + full
		}
		return name == function.Name.Name || name == full
	})
}

var referenceMutants = []mutant{
	{"a file, a function and a method that do not exist",
		map[string]string{
			"README.md":       "See `a/b.go`, `a/a.go: F, G` and `a/a.go: T.F`.",
			"internal/a/a.go": "package a\nfunc F() {}\ntype T struct{}\nfunc (*T) M() {}",
		}, []string{"a/a.go: G", "a/a.go: T.F", "a/b.go"}},
	{"what exists, and records of the past",
		map[string]string{
			"README.md":       "See `internal/a/a.go`, `a/a.go: F, M, T.M` and `a.go`.",
			"CHANGELOG.md":    "`a/b.go` is gone.",
			"internal/a/a.go": "package a\nfunc F() {}\ntype T[K any] struct{}\nfunc (*T[K]) M() {}",
		}, nil},
}
