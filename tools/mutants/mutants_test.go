package main

import (
	"errors"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/env"
)

const root = "../.."

// mostMutants bounds the list: each one is a cost of every change near it. A new one takes the
// place of one that guards less.
const mostMutants = 90

// Each mutant fits the program, is Go, and names tests that exist.
func TestEveryMutantFits(t *testing.T) {
	t.Parallel()
	list, err := readMutants(root)
	if err != nil || len(list) == 0 || len(list) > mostMutants {
		t.Fatalf("%d mutants, want 1 to %d: %v", len(list), mostMutants, err)
	}
	ids, faults, guarded := map[string]bool{}, map[string]string{}, map[string]bool{}
	for i := range list {
		m := &list[i]
		if other := faults[m.Wrong]; other != "" || ids[m.ID] {
			t.Errorf("%s is there twice, or is the same fault as %s", m.ID, other)
		}
		ids[m.ID], faults[m.Wrong], guarded[m.Guards] = true, m.ID, true
		planted, err := m.plant(root)
		if err != nil {
			t.Errorf("%s: %v", m.ID, err)
		}
		for file, text := range planted {
			if strings.HasSuffix(file, "_test.go") {
				t.Errorf("%s changes a test", m.ID)
			}
			if !strings.HasSuffix(file, ".go") {
				continue
			}
			if _, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution); err != nil {
				t.Errorf("%s: %v", m.ID, err)
			}
		}
		for _, tests := range m.Tests {
			words := strings.Fields(tests)
			for _, name := range words[1:] {
				if top, _, _ := strings.Cut(name, "/"); !hasTest(t, words[0], top) {
					t.Errorf("%s: %s has no test %s", m.ID, words[0], top)
				}
			}
		}
	}
	for _, rule := range rules {
		if !guarded[rule] {
			t.Errorf("no mutant guards: %s", rule)
		}
	}
}

func hasTest(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := fs.Glob(os.DirFS(filepath.Join(root, folder)), "*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(root, folder, file))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+name+"(t *testing.T) {") {
			return true
		}
	}
	return false
}

// The runner has a verdict for each way in which a mutant can end.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	absolute, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	r := &runner{absolute, env.NewSystemClock()}
	for _, tt := range []struct {
		find, replace, test string
		want                verdict
		by                  string
	}{
		{"crc := uint16(0xFFFF)", "crc := uint16(0)", "TestCRC16", killed, "brcode: TestCRC16"},
		{"crc := uint16(0xFFFF)", "crc := uint16(65535)", "TestCRC16", survived, "synthetic"},
		{"func crc16[", "func other[", "TestCRC16", notCompiled, "undefined: crc16"},
		{"no such code", "x", "TestCRC16", misfit, "is not in brcode/crc.go"},
		{"crc", "x", "TestCRC16", misfit, "several times"},
		{"func crc16[", "func  crc16[", "TestNothing", inconclusive, "none of the tests"},
		{"func crc16[", "func init() { panic(1) }\n\nfunc crc16[", "TestCRC16", inconclusive, "no test of it"},
	} {
		m := &mutant{ID: "synthetic", Wrong: "synthetic", Tests: []string{"brcode " + tt.test}, Edits: []edit{{"brcode/crc.go", tt.find, tt.replace}}}
		if o, err := r.try(t.Context(), m); err != nil || o.verdict != tt.want || !strings.Contains(o.by, tt.by) {
			t.Errorf("%q: %s by %q, %v; want %s by %q", tt.replace, o.verdict, o.by, err, tt.want, tt.by)
		}
	}
}

// White space does not count, code may move, and what does not fit says what
// to edit.
func TestPlant(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a.go", "package a\n\n\nfunc f(a int) bool {\n\t\treturn a+b ==\n\t\t\t(c)\n}\n")
	write("b.go", "package a\n\nvar moved = 1\n\nvar x, y = twice, twice\n")
	for _, tt := range []struct{ find, want, problem string }{
		{"return a+b == (c)", "package a\n\n\nfunc f(a int) bool {\n\t\tX\n}\n", ""},
		{"bool {\n  return", "package a\n\n\nfunc f(a int) X a+b ==\n\t\t\t(c)\n}\n", ""},
		{"return a-b", "", "edit find"},
		{"var moved = 1", "", "it is now in b.go: edit file in m.toml"},
		{"twice", "", "edit find"},
		{"a", "", "add a line to it in m.toml"},
	} {
		m := mutant{Edits: []edit{{"a.go", "\n\t" + tt.find + "\n", "\nX\n"}}, file: "m.toml"}
		planted, err := m.plant(folder)
		switch {
		case tt.problem == "" && (err != nil || string(planted["a.go"]) != tt.want):
			t.Errorf("%q: %q, %v", tt.find, planted["a.go"], err)
		case tt.problem != "" && (!errors.Is(err, errFit) || !strings.Contains(err.Error(), tt.problem)):
			t.Errorf("%q: %v, want %q", tt.find, err, tt.problem)
		}
	}
	gone := mutant{Edits: []edit{{"gone.go", "var moved = 1", "X"}}, file: "m.toml"}
	if _, err := gone.plant(folder); !errors.Is(err, errFit) || !strings.Contains(err.Error(), "it is now in b.go") {
		t.Errorf("a file that is gone: %v", err)
	}
	two := mutant{Edits: []edit{{"b.go", "moved", "renamed"}, {"b.go", "renamed = 1", "renamed = 2"}}}
	if planted, err := two.plant(folder); err != nil || !strings.Contains(string(planted["b.go"]), "var renamed = 2") {
		t.Errorf("two edits: %q, %v", planted["b.go"], err)
	}
}

// A mutant without one of its parts is refused.
func TestInvalidMutants(t *testing.T) {
	t.Parallel()
	const good = `[[mutant]]
id = "i"
guards = "restore"
wrong = "w"
source = "https://example.com/1"
tests = ["p T"]
[[mutant.edit]]
file = "f.go"
find = "a"
replace = "b"
`
	if list, err := parseMutants(good); err != nil || len(list) != 1 || list[0].Edits[0].Replace != "b" {
		t.Fatalf("%+v, %v", list, err)
	}
	for _, change := range [][2]string{
		{`id = "i"`, ""}, {`wrong = "w"`, ""}, {`tests = ["p T"]`, ""}, {`"p T"`, `"p"`}, {"restore", "nothing"},
		{"https://example.com/1", "a friend"}, {`"f.go"`, `"../f.go"`}, {`find = "a"`, ""}, {`find = "a"`, `find = " b "`},
		{`id =`, `name =`}, {"[[mutant.edit]]", "[[mutant.edits]]"},
	} {
		if list, err := parseMutants(strings.Replace(good, change[0], change[1], 1)); err == nil {
			t.Errorf("with %q: %+v", change[1], list)
		}
	}
}
