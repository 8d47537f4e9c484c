package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/env"
)

// verdict is the result of a mutant. Only killed is right.
type verdict string

const (
	killed       verdict = "killed"
	survived     verdict = "SURVIVED"
	misfit       verdict = "DOES NOT FIT"
	notCompiled  verdict = "DOES NOT COMPILE"
	inconclusive verdict = "INCONCLUSIVE" // the tests ended without a result
)

// outcome is a mutant's verdict, and what decided it.
type outcome struct {
	verdict verdict
	by      string // the test that noticed, or why it is no kill
	took    time.Duration
}

// testTimeout bounds the tests of one package; they take seconds.
const testTimeout = 90 * time.Second

// runner runs tests of the module at root.
type runner struct {
	root  string
	clock env.Clock
}

// try runs the tests of a mutant until one notices it.
func (r *runner) try(ctx context.Context, m *mutant) (o outcome, err error) {
	began := r.clock.Monotonic()
	defer func() { o.took = r.clock.Monotonic() - began }()
	planted, err := m.plant(r.root)
	if errors.Is(err, errFit) {
		return outcome{verdict: misfit, by: err.Error()}, nil
	}
	if err != nil {
		return o, err
	}
	folder, err := os.MkdirTemp("", "mutant-")
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	overlay, err := r.overlay(folder, planted)
	if err != nil {
		return o, err
	}
	for _, t := range m.Tests {
		words := strings.Fields(t)
		report, err := r.test(ctx, words[0], words[1:], "-overlay="+overlay)
		if err != nil {
			return o, err
		}
		if o = m.outcome(words[0], report); o.verdict != survived {
			return o, nil
		}
	}
	return o, nil
}

// overlay writes the changed files to a folder, with the file that replaces the
// tree's by them (go help build, -overlay).
func (r *runner) overlay(folder string, planted map[string][]byte) (string, error) {
	replace := map[string]string{}
	for path, text := range planted {
		copied := filepath.Join(folder, strings.ReplaceAll(path, "/", "_"))
		if err := os.WriteFile(copied, text, 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(r.root, path)] = copied
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(folder, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}

// report is what `go test` said of one package.
type report struct {
	ok       bool // it ended well
	built    bool
	ran      []string
	failed   string // the first test that failed, the innermost one
	timedOut bool
	output   string // what it wrote, for a verdict that needs explaining
}

// test runs tests of a package until one fails. The flags go by the environment,
// so that a test that builds the program builds it with them too.
func (r *runner) test(ctx context.Context, folder string, tests []string, flags string) (report, error) {
	command := exec.CommandContext(ctx, "go", "test", "-json", "-vet=off", "-count=1", "-failfast",
		"-timeout="+testTimeout.String(), "-run", pattern(tests), "./"+folder)
	command.Dir = r.root
	command.Env = append(os.Environ(), "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" "+flags))
	command.WaitDelay = time.Second
	var errout bytes.Buffer
	command.Stderr = &errout
	stdout, err := command.Output()
	var exit *exec.ExitError
	if ctx.Err() != nil || err != nil && !errors.As(err, &exit) {
		return report{}, errors.Join(err, ctx.Err())
	}
	read, perr := readReport(stdout)
	read.ok = err == nil
	read.output += errout.String()
	return read, perr
}

// readReport reads the output of `go test -json`.
func readReport(text []byte) (report, error) {
	r := report{built: true}
	var output strings.Builder
	decoder := json.NewDecoder(bytes.NewReader(text))
	for decoder.More() {
		var event struct { // go doc test2json
			Action      string `json:"Action"`
			Test        string `json:"Test"`
			Output      string `json:"Output"`
			FailedBuild string `json:"FailedBuild"`
		}
		if err := decoder.Decode(&event); err != nil {
			return r, fmt.Errorf("output of go test: %w", err)
		}
		switch event.Action {
		case "run":
			r.ran = append(r.ran, event.Test)
		case "output", "build-output":
			output.WriteString(event.Output)
			r.timedOut = r.timedOut || strings.HasPrefix(event.Output, "panic: test timed out after ")
		case "build-fail":
			r.built = false
		case "fail":
			r.built = r.built && event.FailedBuild == ""
			if r.failed == "" {
				r.failed = event.Test
			}
		}
	}
	r.output = shortened(output.String())
	return r, nil
}

// shortened is the beginning of a long text, and says so.
func shortened(text string) string {
	const most = 2000
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + " …"
}

// outcome says what a report means for a mutant.
func (m *mutant) outcome(folder string, r report) outcome {
	switch {
	case !r.built:
		return outcome{verdict: notCompiled, by: r.output}
	case r.ok && len(r.ran) == 0:
		return outcome{verdict: inconclusive, by: folder + " has none of the tests"}
	case r.ok:
		return outcome{verdict: survived, by: m.Wrong}
	case r.timedOut:
		return outcome{verdict: inconclusive, by: folder + " took more than " + testTimeout.String() + "\n" + r.output}
	case r.failed == "":
		return outcome{verdict: inconclusive, by: folder + " failed, and no test of it\n" + r.output}
	default:
		return outcome{verdict: killed, by: folder + ": " + r.failed}
	}
}

// pattern is the regular expression that selects tests. A name may contain
// subtests, by the beginnings of their names: TestConformance/sqlite/events.
func pattern(tests []string) string {
	patterns := make([]string, len(tests))
	for i, name := range tests {
		parts := strings.Split(name, "/")
		for n := range parts {
			if parts[n] = "^" + regexp.QuoteMeta(parts[n]); n == 0 {
				parts[n] += "$"
			}
		}
		patterns[i] = strings.Join(parts, "/")
	}
	return strings.Join(patterns, "|")
}
