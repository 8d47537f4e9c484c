package main

import (
	"errors"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/env"
)

const root = "../.."

// fewest is how many bugs are planted at least.
const fewest = 60

// Each patch still fits the tree, and says where its bug comes from and which
// tests, that are there, must notice it.
func TestPatchesFit(t *testing.T) {
	t.Parallel()
	list, err := readMutants("patches")
	if err != nil {
		t.Fatal(err)
	}
	public, bugs := 0, map[string]string{}
	for i := range list {
		m := &list[i]
		if regexp.MustCompile(`^https://[a-z0-9.]+/\S+( \(\S+\))?$`).MatchString(m.source) {
			public++
		} else if m.source != ownBug {
			t.Errorf("%s: the source is %q, want an address or %q", m.name, m.source, ownBug)
		}
		if other := bugs[m.bug]; other != "" {
			t.Errorf("%s is the same bug as %s", m.name, other)
		}
		bugs[m.bug] = m.name
		checkPlanted(t, m)
		for _, group := range m.tests {
			for _, name := range group.names {
				if top, _, _ := strings.Cut(name, "/"); !hasTest(t, group.folder, top) {
					t.Errorf("%s: %s has no test %s", m.name, group.folder, top)
				}
			}
		}
	}
	if len(list) < fewest || public < fewest/2 {
		t.Errorf("%d mutants, %d of them of public bugs", len(list), public)
	}
}

// checkPlanted wants a program's file with a bug to be another file, and Go.
func checkPlanted(t *testing.T, m *mutant) {
	t.Helper()
	planted, err := m.plant(root)
	if err != nil {
		t.Errorf("%s: %v", m.name, err)
	}
	for path, text := range planted {
		original, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		if string(original) == text || strings.HasSuffix(path, "_test.go") {
			t.Errorf("%s changes nothing in %s, or a test", m.name, path)
		}
		if !strings.HasSuffix(path, ".go") {
			continue
		}
		if _, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution); err != nil {
			t.Errorf("%s: %v", m.name, err)
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

// A few mutants are really tried, and each way in which one can end is told
// from the others.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	absolute, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	r := &runner{absolute, env.NewSystemClock()}
	list, err := readMutants("patches")
	if err != nil {
		t.Fatal(err)
	}
	try := func(m *mutant, want verdict, by string) {
		t.Helper()
		if o, err := r.try(t.Context(), m); err != nil || o.verdict != want || !strings.Contains(o.by, by) {
			t.Errorf("%s: %s by %q, %v; want %s by %q", m.name, o.verdict, o.by, err, want, by)
		}
	}
	real := map[string]string{
		"one-cent-lost-in-a-split":     "internal/money: TestSplitLosesNoCent",
		"overflow-wraps":               "internal/money: TestAddAtTheEdges",
		"brcode-crc-without-its-start": "brcode: TestCRC16",
	}
	tried := 0
	for i := range list {
		_, name, _ := strings.Cut(list[i].name, "-")
		if test, ok := real[name]; ok {
			try(&list[i], killed, test)
			tried++
		}
	}
	if tried != len(real) {
		t.Errorf("%d mutants were tried, want %d", tried, len(real))
	}
	for _, tt := range []struct {
		was, is, test string
		want          verdict
		by            string
	}{
		{"func crc16[", "func crc16 [", "TestCRC16", survived, "made for this test"},
		{"func crc16[", "func other[", "TestCRC16", notCompiled, "undefined: crc16"},
		{"no such line", "x", "TestCRC16", notApplied, "no place like that"},
		{"crc", "x", "TestCRC16", notApplied, "several places"},
		{"func crc16[", "func crc16 [", "TestNothing", inconclusive, "none of the tests"},
		{"func crc16[", "func init() { panic(1) }\n\nfunc crc16[", "TestCRC16", inconclusive, "no test of it"},
	} {
		try(made(t, absolute, tt.was, tt.is, tt.test), tt.want, tt.by)
	}
}

// made is a mutant of a line of brcode/crc.go that begins so.
func made(t *testing.T, root, was, is, test string) *mutant {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "brcode/crc.go"))
	if err != nil {
		t.Fatal(err)
	}
	h := hunk{was: []string{was}, is: []string{is}}
	if was == "crc" { // a line that is there twice
		h.was = []string{"}"}
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSuffix(line, "\n"); was != "crc" && strings.HasPrefix(line, was) {
			h = hunk{was: []string{line}, is: strings.Split(strings.Replace(line, was, is, 1), "\n")}
		}
	}
	return &mutant{
		name: "made", bug: "made for this test", tests: []testGroup{{"brcode", []string{test}}},
		files: []filePatch{{"brcode/crc.go", []hunk{h}}},
	}
}

// What a header or a diff must not be is refused.
func TestFaultyPatches(t *testing.T) {
	t.Parallel()
	const head, diff = "Wrong: b\nSource: s\nTest: p T\n", "\n--- a/f.go\n+++ b/f.go\n@@ -1 +1 @@\n-a\n+b\n"
	if m, err := parseMutant("n", head+"Timeout: 9s\n"+diff); err != nil || m.timeout != 9*time.Second || len(m.files) != 1 {
		t.Fatalf("%+v, %v", m, err)
	}
	for _, text := range []string{
		"", head, diff, "Wrong: b\nTest: p T\n" + diff, "Wrong: b\nSource: s\n" + diff, "Source: s\nTest: p T\n" + diff,
		"Wrong: b\n" + head + diff, head + "Tests: p T\n" + diff, head + "Timeout: never\n" + diff, head + "Timeout: 1ms\n" + diff, "Wrong: b\nSource: s\nTest: p\n" + diff,
		head + strings.Replace(diff, "+++ b/f.go", "+++ b/g.go", 1), head + strings.Replace(diff, "@@ -1 +1 @@\n", "", 1),
		head + strings.Replace(diff, "-a", "*a", 1), head + strings.ReplaceAll(diff, "f.go", "../f.go"), head + "\n--- a/f.go\n+++ b/f.go\n",
	} {
		if m, err := parseMutant("n", text); err == nil {
			t.Errorf("%q is read as %+v", text, m)
		}
	}
	for text, want := range map[string]string{"a\n": "b\n", "x\na\ny\n": "x\nb\ny\n", "aa\na\n": "aa\nb\n", "a\na\n": "", "aa\n": "", "": ""} {
		got, err := filePatch{"f.go", []hunk{{was: []string{"a"}, is: []string{"b"}}}}.apply(text)
		if got != want || (want == "") != errors.Is(err, errApply) {
			t.Errorf("%q becomes %q, %v", text, got, err)
		}
	}
}
