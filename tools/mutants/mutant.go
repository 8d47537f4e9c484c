package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// folder is where the mutants are, below the repository's root: one file for
// each package that they change.
const folder = "tools/mutants/list"

// mutant is one seeded fault: what it changes, what that would do, and which
// tests must notice.
type mutant struct {
	ID     string   `toml:"id"`
	Guards string   `toml:"guards"` // the rule that it breaks, one of rules
	Wrong  string   `toml:"wrong"`  // what the program does with it, in a sentence
	Source string   `toml:"source"` // a public incident; empty if there was none
	Tests  []string `toml:"tests"`  // each a package and its tests, first one first
	Edits  []edit   `toml:"edit"`

	file string // that lists it
}

// edit replaces code that occurs exactly once in a file. White space in Find
// stands for any white space.
type edit struct {
	File    string `toml:"file"`
	Find    string `toml:"find"`
	Replace string `toml:"replace"`
}

// rules are what mutants guard.
var rules = []string{
	"double payment", "lost hold", "wrong balance", "lost event", "idempotency",
	"tenant isolation", "signature checks", "SSRF", "limits", "approval", "durability", "restore",
}

// errFit means that a mutant does not fit the program.
var errFit = errors.New("does not fit")

// readMutants reads all mutants of the repository at root, in the order of
// their files.
func readMutants(root string) ([]mutant, error) {
	names, err := filepath.Glob(filepath.Join(root, folder, "*.toml"))
	if err != nil {
		return nil, err
	}
	var list []mutant
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		read, err := parseMutants(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s/%s: %w", folder, filepath.Base(name), err)
		}
		for i := range read {
			read[i].file = folder + "/" + filepath.Base(name)
		}
		list = append(list, read...)
	}
	return list, nil
}

func parseMutants(text string) ([]mutant, error) {
	var read struct {
		Mutants []mutant `toml:"mutant"`
	}
	known, err := toml.Decode(text, &read)
	if err != nil {
		return nil, err
	}
	if unknown := known.Undecoded(); len(unknown) > 0 {
		return nil, fmt.Errorf("unknown field %s", unknown[0])
	}
	for i := range read.Mutants {
		if err := read.Mutants[i].check(); err != nil {
			return nil, fmt.Errorf("mutant %d, %q: %w", i+1, read.Mutants[i].ID, err)
		}
	}
	return read.Mutants, nil
}

var publicSource = regexp.MustCompile(`^https://[a-z0-9.]+/\S+$`)

func (m *mutant) check() error {
	switch {
	case m.ID == "", m.Wrong == "", len(m.Tests) == 0, len(m.Edits) == 0:
		return errors.New("id, wrong, tests and edit are required")
	case !slices.Contains(rules, m.Guards):
		return fmt.Errorf("guards is %q; want one of %q", m.Guards, rules)
	case m.Source != "" && !publicSource.MatchString(m.Source):
		return fmt.Errorf("source is %q; want an address, or leave it out", m.Source)
	}
	for _, t := range m.Tests {
		if len(strings.Fields(t)) < 2 {
			return fmt.Errorf("tests has %q; want a package and the names of its tests", t)
		}
	}
	for _, e := range m.Edits {
		if !filepath.IsLocal(e.File) || len(strings.Fields(e.Find)) == 0 || slices.Equal(strings.Fields(e.Find), strings.Fields(e.Replace)) {
			return fmt.Errorf("the edit of %q changes nothing", e.File)
		}
	}
	return nil
}

// plant returns the changed files by their path below root. Its error wraps
// errFit and says what to edit.
func (m *mutant) plant(root string) (map[string][]byte, error) {
	planted := map[string][]byte{}
	for _, e := range m.Edits {
		text, ok := planted[e.File]
		if !ok {
			var err error
			if text, err = os.ReadFile(filepath.Join(root, e.File)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
		}
		at := e.anchor().FindAllIndex(text, 2)
		if len(at) != 1 {
			return nil, m.misfit(root, e, len(at))
		}
		planted[e.File] = slices.Concat(text[:at[0][0]], []byte(strings.TrimSpace(e.Replace)), text[at[0][1]:])
	}
	return planted, nil
}

// anchor matches the code to be replaced.
func (e edit) anchor() *regexp.Regexp {
	words := strings.Fields(e.Find)
	for i := range words {
		words[i] = regexp.QuoteMeta(words[i])
	}
	return regexp.MustCompile(strings.Join(words, `\s+`))
}

// misfit says why an edit does not fit, and what to do about it.
func (m *mutant) misfit(root string, e edit, found int) error {
	if found > 1 {
		return fmt.Errorf("%w: this code occurs several times in %s; add a line to it in %s:\n%s", errFit, e.File, m.file, e.Find)
	}
	advice := "if it was renamed or rewritten, edit find; if the rule is gone, delete the mutant"
	if others := e.elsewhere(root); len(others) > 0 {
		advice = fmt.Sprintf("it is now in %s: edit file", strings.Join(others, ", "))
	}
	return fmt.Errorf("%w: this code is not in %s; %s in %s:\n%s", errFit, e.File, advice, m.file, e.Find)
}

// elsewhere are the files to which the code may have moved.
func (e edit) elsewhere(root string) (found []string) {
	anchor := e.anchor()
	_ = fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil || entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "node_modules"):
			return fs.SkipDir
		case entry.IsDir() || filepath.Ext(name) != filepath.Ext(e.File) || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if err == nil && !bytes.Contains(text, []byte("\x00")) && len(anchor.FindAllIndex(text, 2)) == 1 {
			found = append(found, name)
		}
		return nil
	})
	return found
}
