package main

import (
	"bytes"
	"cmp"
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

// verdict is what became of a mutant. Only killed is as it should be.
type verdict string

const (
	killed       verdict = "killed"
	survived     verdict = "SURVIVED"
	notApplied   verdict = "DOES NOT APPLY"
	notCompiled  verdict = "DOES NOT COMPILE"
	inconclusive verdict = "INCONCLUSIVE" // the tests ended in a way that says nothing
)

// outcome is a mutant's verdict, and who or what decided it.
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

// try plants a mutant beside the tree and runs its tests until one notices it.
func (r *runner) try(ctx context.Context, m *mutant) (o outcome, err error) {
	began := r.clock.Monotonic()
	defer func() { o.took = r.clock.Monotonic() - began }()
	planted, err := m.plant(r.root)
	if errors.Is(err, errApply) {
		return outcome{verdict: notApplied, by: err.Error()}, nil
	}
	if err != nil {
		return o, err
	}
	room, err := os.MkdirTemp("", "mutant-")
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(room)) }()
	overlay, err := r.overlay(room, planted)
	if err != nil {
		return o, err
	}
	for _, group := range m.tests {
		at, flags := *r, "-overlay="+overlay
		if group.folder == readsSources {
			flags = ""
			if at.root, err = r.copyTree(room, planted); err != nil {
				return o, err
			}
		}
		report, err := at.test(ctx, group, flags, cmp.Or(m.timeout, testTimeout))
		if err != nil {
			return o, err
		}
		if o = m.judge(group, report); o.verdict != survived {
			return o, nil
		}
	}
	return o, nil
}

// readsSources is the one package whose tests read the program's sources, where
// they do not see what only the compiler is shown.
const readsSources = "internal/tidy"

// copyTree copies the tree's own files to a folder in room, with the changed
// ones in their places.
func (r *runner) copyTree(room string, planted map[string]string) (string, error) {
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard") //nolint:noctx // it takes milliseconds
	list.Dir = r.root
	names, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("git ls-files: %w", err)
	}
	root := filepath.Join(room, "tree")
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		text, changed := planted[name]
		if !changed {
			original, err := os.ReadFile(filepath.Join(r.root, name))
			if errors.Is(err, os.ErrNotExist) {
				continue // deleted, and not yet committed
			}
			if err != nil {
				return "", err
			}
			text = string(original)
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700); err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	return root, nil
}

// overlay writes the changed files, and the file that puts them in the place of
// those of the tree (go help build, -overlay).
func (r *runner) overlay(room string, planted map[string]string) (string, error) {
	replace := map[string]string{}
	for path, text := range planted {
		copied := filepath.Join(room, strings.ReplaceAll(path, "/", "_"))
		if err := os.WriteFile(copied, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(r.root, path)] = copied
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(room, "overlay.json")
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

// test runs a group of tests until one fails. The flags go by the environment,
// so that a test which builds the program builds it with them too.
func (r *runner) test(ctx context.Context, group testGroup, flags string, timeout time.Duration) (report, error) {
	command := exec.CommandContext(ctx, "go", "test", "-json", "-vet=off", "-count=1", "-failfast",
		"-timeout="+timeout.String(), "-run", group.pattern(), "./"+group.folder)
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

// judge says what a report means for a mutant.
func (m *mutant) judge(group testGroup, r report) outcome {
	switch {
	case !r.built:
		return outcome{verdict: notCompiled, by: r.output}
	case r.ok && len(r.ran) == 0:
		return outcome{verdict: inconclusive, by: group.folder + " has none of the tests " + strings.Join(group.names, ", ")}
	case r.ok:
		return outcome{verdict: survived, by: m.bug}
	case r.timedOut && m.timeout == 0:
		return outcome{verdict: inconclusive, by: group.folder + " took more than " + testTimeout.String() + "\n" + r.output}
	case r.timedOut:
		return outcome{verdict: killed, by: group.folder + ": one of " + strings.Join(group.names, ", ") + ", which never ended"}
	case r.failed == "":
		return outcome{verdict: inconclusive, by: group.folder + " failed, and no test of it\n" + r.output}
	default:
		return outcome{verdict: killed, by: group.folder + ": " + r.failed}
	}
}

// pattern is the regular expression that selects the group's tests.
func (g testGroup) pattern() string {
	patterns := make([]string, len(g.names))
	for i, name := range g.names {
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
