package tidy

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

const (
	module = "github.com/porteira/porteira"

	// textSizeMax is the maximum size of a text file in bytes; larger files are data.
	textSizeMax = 1 << 20
)

// tree is the repository, read once for all rules.
type tree struct {
	positions *token.FileSet
	texts     map[string][]byte // text files by path
	sources   []*source         // Go files, ordered by path
}

// source is one Go file.
type source struct {
	*ast.File

	path   string
	folder string
	test   bool // its name ends in _test.go
}

// load reads the files of the repository, without Git's, built and downloaded ones.
func load(files fs.FS) (*tree, error) {
	repository := &tree{positions: token.NewFileSet(), texts: map[string][]byte{}}
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.Name() == ".git" && !entry.IsDir() {
			return nil // in a worktree it is a file
		}
		if entry.IsDir() {
			if slices.Contains([]string{"bin", "data", "porteira-data"}, name) || slices.Contains([]string{".git", "node_modules"}, entry.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		return repository.add(files, name)
	})
	if err != nil {
		return nil, fmt.Errorf("read the repository: %w", err)
	}
	return repository, nil
}

func (r *tree) add(files fs.FS, name string) error {
	text, err := fs.ReadFile(files, name)
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	if len(text) > textSizeMax || bytes.IndexByte(text, 0) >= 0 {
		return nil
	}
	r.texts[name] = text
	if path.Ext(name) != ".go" || slices.Contains(strings.Split(name, "/"), "testdata") {
		return nil
	}
	file, err := parser.ParseFile(r.positions, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("parse: %w", err)
	}
	r.sources = append(r.sources, &source{
		File:   file,
		path:   name,
		folder: path.Dir(name),
		test:   strings.HasSuffix(name, "_test.go"),
	})
	return nil
}

// at is the file and line of a position.
func (r *tree) at(position token.Pos) string {
	at := r.positions.Position(position)
	return fmt.Sprintf("%s:%d", at.Filename, at.Line)
}

// packages groups the Go files by folder.
func (r *tree) packages() map[string][]*source {
	packages := map[string][]*source{}
	for _, file := range r.sources {
		packages[file.folder] = append(packages[file.folder], file)
	}
	return packages
}

// imported maps the names of a file's imports to their paths.
func (s *source) imported() map[string]string {
	names := map[string]string{}
	for _, spec := range s.Imports {
		imported := importPath(spec)
		name := path.Base(imported)
		if majorVersion := strings.TrimPrefix(name, "v"); majorVersion != name && isNumber(majorVersion) {
			name = path.Base(path.Dir(imported))
		}
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = imported
	}
	return names
}

func importPath(spec *ast.ImportSpec) string {
	imported, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		panic("invalid import " + spec.Path.Value)
	}
	return imported
}

func isNumber(text string) bool {
	_, err := strconv.Atoi(text)
	return err == nil
}
