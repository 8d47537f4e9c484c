package tidy

import (
	"fmt"
	"go/ast"
	"maps"
	"path"
	"slices"
	"strings"
)

// checkPackageComments requires a package comment, "Package name …" or "Command …".
func checkPackageComments(repository *tree) []finding {
	var found []finding
	packages := repository.packages()
	for _, folder := range slices.Sorted(maps.Keys(packages)) {
		files := packages[folder]
		opening := "Package " + strings.TrimSuffix(files[0].Name.Name, "_test") + " "
		if files[0].Name.Name == "main" {
			opening = "Command "
		}
		said := slices.ContainsFunc(files, func(file *source) bool {
			return file.Doc != nil && strings.HasPrefix(file.Doc.Text(), opening)
		})
		if !said {
			found = append(found, finding{folder, files[0].path, fmt.Sprintf("no package comment that opens with %q", opening)})
		}
	}
	return found
}

var packageCommentMutants = []mutant{
	{"none", map[string]string{"a/a.go": "package a"}, []string{"a"}},
	{"of another name", map[string]string{"a/a.go": "// Package b is not a.\npackage a"}, []string{"a"}},
	{"a program without one", map[string]string{"cmd/a/main.go": "package main"}, []string{"cmd/a"}},
	{"in one of the files",
		map[string]string{
			"a/a.go":        "package a",
			"a/doc.go":      "// Package a is fine.\npackage a",
			"cmd/a/main.go": "// Command a runs it.\npackage main",
			"b/b_test.go":   "// Package b only tests.\npackage b_test",
		}, nil},
}

// checkExported requires a comment on each exported identifier.
func checkExported(repository *tree) []finding {
	var found []finding
	for _, file := range repository.sources {
		if file.test {
			continue
		}
		for _, name := range unexplained(file) {
			subject := file.folder + "." + name.Name
			found = append(found, finding{subject, repository.at(name.Pos()), name.Name + " is exported and has no comment"})
		}
	}
	return found
}

// unexplained lists the exported names of a file without a comment.
func unexplained(file *source) []*ast.Ident {
	var names []*ast.Ident
	for _, declaration := range file.Decls {
		switch declaration := declaration.(type) {
		case *ast.FuncDecl:
			reachable := declaration.Recv == nil || ast.IsExported(receiverType(declaration))
			if declaration.Name.IsExported() && reachable && declaration.Doc == nil {
				names = append(names, declaration.Name)
			}
		case *ast.GenDecl:
			if declaration.Doc == nil {
				names = append(names, unexplainedSpecs(declaration)...)
			}
		}
	}
	return names
}

// unexplainedSpecs does so for a declaration without a comment.
func unexplainedSpecs(declaration *ast.GenDecl) []*ast.Ident {
	var names []*ast.Ident
	for _, spec := range declaration.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if spec.Name.IsExported() && spec.Doc == nil && spec.Comment == nil {
				names = append(names, spec.Name)
			}
		case *ast.ValueSpec:
			for _, name := range spec.Names {
				if name.IsExported() && spec.Doc == nil && spec.Comment == nil {
					names = append(names, name)
				}
			}
		}
	}
	return names
}

var exportedMutants = []mutant{
	{"one of each",
		map[string]string{"a/a.go": `package a
			type T struct{}
			func (*T) Method() {}
			func Function() {}
			const Constant = 1
			var (
				One int // said
				Two int
			)`},
		[]string{"a.Constant", "a.Function", "a.Method", "a.T", "a.Two"}},
	{"with a comment, unexported, or in a test",
		map[string]string{
			"a/a.go": `package a
			// Group says it.
			const (
				A = 1
				B = 2
			)
			type hidden struct{}
			func (hidden) Method() {}`,
			"a/a_test.go": "package a\nfunc Helper() {}",
		}, nil},
}

// vagueNames are package names without a meaning.
var vagueNames = []string{"util", "utils", "common", "helper", "helpers", "model", "models", "base", "misc", "shared"}

// checkPackageNames refuses vague names.
func checkPackageNames(repository *tree) []finding {
	var found []finding
	packages := repository.packages()
	for _, folder := range slices.Sorted(maps.Keys(packages)) {
		name := strings.TrimSuffix(packages[folder][0].Name.Name, "_test")
		if slices.Contains(vagueNames, name) || slices.Contains(vagueNames, path.Base(folder)) {
			found = append(found, finding{folder, packages[folder][0].path, "name the package after its contents"})
		}
	}
	return found
}

var packageNameMutants = []mutant{
	{"by clause", map[string]string{"a/a.go": "package utils"}, []string{"a"}},
	{"by folder", map[string]string{"internal/common/a.go": "package a"}, []string{"internal/common"}},
	{"a thing", map[string]string{"internal/money/a.go": "package money"}, nil},
}
