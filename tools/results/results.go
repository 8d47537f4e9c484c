// Package results records the figures of long runs, and writes RESULTS.md from
// them.
//
// A tool that was given -record calls [Add]. The figures live in runs.jsonl,
// one run a line, never rewritten; findings.json, written by hand, tells what
// the runs found and what was mended. After an edit of either,
//
//	go test ./tools/results -update
//
// writes the page anew.
package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/porteira/porteira/internal/env"
)

const (
	page         = "RESULTS.md"
	runsFile     = "tools/results/runs.jsonl"
	findingsFile = "tools/results/findings.json"
)

// Add records one run: its kind (simulate, torture, disk, mutants or fuzz), the
// command that repeats it, and its figures. A figure is named in words, with
// its detail behind a colon ("kills: SQLite, gateway"); one whose name ends in
// "seconds" is a time. Over all runs figures are added up, but of those whose
// names begin with slowest or max the greatest counts.
//
// The folder from which it is called lies anywhere in the module. Several
// processes may call it at once.
func Add(kind, command string, figures map[string]int64) error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	commit, err := commitOf(root)
	if err != nil {
		return err
	}
	added := run{
		Date:    env.NewSystemClock().Now().Format(time.DateOnly),
		Commit:  commit,
		Machine: thisMachine(),
		Kind:    kind,
		Command: withoutPlaces(command),
		Figures: figures,
	}
	return add(root, added)
}

func add(root string, added run) (err error) {
	if err := added.check(); err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(root, runsFile), os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := lock(file); err != nil {
		return fmt.Errorf("lock %s: %w", runsFile, err)
	}
	text, err := io.ReadAll(file)
	if err != nil {
		return err
	}
	runs, err := parseRuns(text)
	if err != nil {
		return err
	}
	findings, err := readFindings(root)
	if err != nil {
		return err
	}
	line, err := json.Marshal(added)
	if err != nil {
		return err
	}
	if _, err := file.Write(append(line, '\n')); err != nil {
		return err
	}
	return replace(filepath.Join(root, page), render(append(runs, added), findings))
}

// replace writes a file so that a reader sees the old text or the new one.
func replace(path, text string) error {
	unfinished := path + ".new"
	if err := os.WriteFile(unfinished, []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(unfinished, path)
}

// moduleRoot is the nearest folder, from here upward, that holds a go.mod and
// this package's findings.
func moduleRoot() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, findingsFile)); err == nil {
			if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
				return folder, nil
			}
		}
		above := filepath.Dir(folder)
		if above == folder {
			return "", fmt.Errorf("no folder from here upward holds go.mod and %s", findingsFile)
		}
		folder = above
	}
}

// finding is something wrong that a run found.
type finding struct {
	ID          string `json:"id"`
	FoundBy     string `json:"foundBy"`     // the kind of run, or what else it was
	Wrong       string `json:"wrong"`       // what the program did
	Consequence string `json:"consequence"` // what could have happened to whom
	Mended      string `json:"mended"`      // how, and which test guards it
}

func readFindings(root string) ([]finding, error) {
	text, err := os.ReadFile(filepath.Join(root, findingsFile))
	if err != nil {
		return nil, err
	}
	return parseFindings(text)
}

func parseFindings(text []byte) ([]finding, error) {
	var list []finding
	if err := strictly(text, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", findingsFile, err)
	}
	known := map[string]bool{}
	for _, f := range list {
		switch {
		case f.ID == "" || f.FoundBy == "" || f.Wrong == "" || f.Consequence == "" || f.Mended == "":
			return nil, fmt.Errorf("%s: %q lacks a field", findingsFile, f.ID)
		case known[f.ID]:
			return nil, fmt.Errorf("%s: %q stands twice", findingsFile, f.ID)
		}
		known[f.ID] = true
	}
	return list, nil
}

// strictly decodes one JSON value and nothing else.
func strictly(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("text after the JSON value")
	}
	return nil
}
