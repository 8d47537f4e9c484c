package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// mutant is one planted bug: a patch, what it is, and what must notice it.
type mutant struct {
	name   string      // of its file, without .patch
	bug    string      // what is wrong, in a sentence
	source string      // where it was met in public, or "our own"
	tests  []testGroup // that must notice it, first one first
	files  []filePatch

	// A test that does not end by then has noticed; zero where it must end.
	timeout time.Duration
}

// testGroup are tests of one package. A name may lead on to subtests, by the
// beginnings of their names: TestConformance/sqlite/events.
type testGroup struct {
	folder string
	names  []string
}

// filePatch changes one file.
type filePatch struct {
	path  string
	hunks []hunk
}

// hunk replaces lines that stand together in one place of the file, and in no
// other: where that place is, the patch's line numbers are not asked.
type hunk struct{ was, is []string }

// Fields of the header of a patch; Test may be there several times.
const (
	fieldWrong   = "Wrong"
	fieldSource  = "Source"
	fieldTest    = "Test"
	fieldTimeout = "Timeout"
)

// ownBug is the source of a bug that nobody has made in public yet.
const ownBug = "our own"

// readMutants reads all patches of a folder, sorted by name.
func readMutants(folder string) ([]mutant, error) {
	names, err := filepath.Glob(filepath.Join(folder, "*.patch"))
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	list := make([]mutant, 0, len(names))
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		m, err := parseMutant(strings.TrimSuffix(filepath.Base(name), ".patch"), string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(name), err)
		}
		list = append(list, m)
	}
	return list, nil
}

// parseMutant reads a patch: header fields, of which a line that begins with a
// blank goes on with the one before, and then a unified diff.
func parseMutant(name, text string) (mutant, error) {
	m := mutant{name: name}
	head, diff, ok := strings.Cut(text, "\n--- ")
	if !ok {
		return m, errors.New("there is no diff in it")
	}
	for line := range strings.SplitSeq(strings.ReplaceAll(head, "\n ", " "), "\n") {
		field, value, _ := strings.Cut(line, ": ")
		value = strings.TrimSpace(value)
		switch {
		case line == "":
		case field == fieldWrong && m.bug == "" && value != "":
			m.bug = value
		case field == fieldSource && m.source == "" && value != "":
			m.source = value
		case field == fieldTest && len(strings.Fields(value)) > 1:
			words := strings.Fields(value)
			m.tests = append(m.tests, testGroup{words[0], words[1:]})
		case field == fieldTimeout && m.timeout == 0:
			var err error
			if m.timeout, err = time.ParseDuration(value); err != nil || m.timeout < time.Second {
				return m, fmt.Errorf("a time-out of %q", value)
			}
		default:
			return m, fmt.Errorf("the header has the line %q", line)
		}
	}
	if m.bug == "" || m.source == "" || len(m.tests) == 0 {
		return m, errors.New("the header must say what the bug is, its source, and the tests")
	}
	var err error
	m.files, err = parseDiff("--- " + diff)
	return m, err
}

var hunkHead = regexp.MustCompile(`^@@ -\d+(,\d+)? \+\d+(,\d+)? @@`)

// parseDiff reads a unified diff whose paths begin with a/ and b/.
func parseDiff(text string) ([]filePatch, error) {
	var files []filePatch
	var h *hunk
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		switch {
		case strings.HasPrefix(line, "--- a/"):
			files, h = append(files, filePatch{path: strings.TrimPrefix(line, "--- a/")}), nil
		case h == nil && len(files) > 0 && line == "+++ b/"+files[len(files)-1].path:
		case len(files) > 0 && hunkHead.MatchString(line):
			f := &files[len(files)-1]
			f.hunks = append(f.hunks, hunk{})
			h = &f.hunks[len(f.hunks)-1]
		case h == nil:
			return nil, fmt.Errorf("the diff has the line %q where a file or a hunk should begin", line)
		case line == "" || line[0] == ' ':
			h.was, h.is = append(h.was, strings.TrimPrefix(line, " ")), append(h.is, strings.TrimPrefix(line, " "))
		case line[0] == '-':
			h.was = append(h.was, line[1:])
		case line[0] == '+':
			h.is = append(h.is, line[1:])
		default:
			return nil, fmt.Errorf("the diff has the line %q", line)
		}
	}
	for _, f := range files {
		if path.Clean(f.path) != f.path || strings.HasPrefix(f.path, "..") || len(f.hunks) == 0 {
			return nil, fmt.Errorf("the diff changes %q with %d hunks", f.path, len(f.hunks))
		}
	}
	return files, nil
}

// errApply says that a patch does not fit the tree any more.
var errApply = errors.New("does not apply")

// apply returns the text of a file with the bug in it.
func (f filePatch) apply(text string) (string, error) {
	for i, h := range f.hunks {
		whole, was := "\n"+text, "\n"+lines(h.was)
		at := strings.Index(whole, was)
		switch {
		case at < 0:
			return "", fmt.Errorf("%w: %s has no place like that of hunk %d", errApply, f.path, i+1)
		case strings.Contains(whole[at+1:], was):
			return "", fmt.Errorf("%w: %s has several places like that of hunk %d", errApply, f.path, i+1)
		}
		text = whole[1:at+1] + lines(h.is) + whole[at+len(was):]
	}
	return text, nil
}

func lines(list []string) string { return strings.Join(list, "\n") + "\n" }

// plant returns the texts of the files that a mutant changes, by their path
// below root.
func (m *mutant) plant(root string) (map[string]string, error) {
	planted := make(map[string]string, len(m.files))
	for _, f := range m.files {
		text, err := os.ReadFile(filepath.Join(root, f.path))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errApply, err)
		}
		if planted[f.path], err = f.apply(string(text)); err != nil {
			return nil, err
		}
	}
	return planted, nil
}
