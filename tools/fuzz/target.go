package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// target is one fuzz target, ready to run.
type target struct {
	folder   string // of its package, from the module's root
	name     string
	place    string // the folder's whole path
	binary   string // its package's tests, instrumented
	findings string // where inputs that reached new code are kept
}

// module is this module's path.
const module = "github.com/porteira/porteira"

// declaration is how a target is declared.
var declaration = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(\w+ \*testing\.F\)`)

// listed is what go list tells of a package.
type listed struct {
	Dir          string   `json:"Dir"`
	ImportPath   string   `json:"ImportPath"`
	TestGoFiles  []string `json:"TestGoFiles"`
	XTestGoFiles []string `json:"XTestGoFiles"`
	Module       struct {
		Path string `json:"Path"`
	} `json:"Module"`
}

// prepare finds the targets and builds each package's tests once.
func prepare(ctx context.Context, out io.Writer, only *regexp.Regexp, room string) ([]target, error) {
	packages, err := packagesOf(ctx)
	if err != nil {
		return nil, err
	}
	cache, err := command(ctx, "go", "env", "GOCACHE")
	if err != nil {
		return nil, err
	}
	var targets []target
	for _, p := range packages {
		folder := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, p.Module.Path), "/")
		names, err := p.targets()
		if err != nil {
			return nil, err
		}
		built := filepath.Join(room, strings.ReplaceAll(folder, "/", "-")+".test")
		fresh := true
		for _, name := range names {
			if !only.MatchString(folder + " " + name) {
				continue
			}
			if fresh {
				_, _ = fmt.Fprintln(out, "building", folder)
				if err := build(ctx, p.ImportPath, built); err != nil {
					return nil, err
				}
				fresh = false
			}
			targets = append(targets, target{
				folder: folder, name: name, place: p.Dir, binary: built,
				findings: filepath.Join(strings.TrimSpace(cache), "fuzz", filepath.FromSlash(p.ImportPath)),
			})
		}
	}
	if len(targets) == 0 {
		return nil, errors.New("there is no such target")
	}
	return targets, nil
}

func packagesOf(ctx context.Context) ([]listed, error) {
	text, err := command(ctx, "go", "list", "-json=Dir,ImportPath,TestGoFiles,XTestGoFiles,Module", module+"/...")
	if err != nil {
		return nil, err
	}
	var packages []listed
	for decoder := json.NewDecoder(strings.NewReader(text)); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		packages = append(packages, p)
	}
}

// targets are the names of a package's targets.
func (p *listed) targets() (names []string, err error) {
	for _, file := range append(p.TestGoFiles, p.XTestGoFiles...) {
		text, err := os.ReadFile(filepath.Join(p.Dir, file))
		if err != nil {
			return nil, err
		}
		for _, found := range declaration.FindAllSubmatch(text, -1) {
			names = append(names, string(found[1]))
		}
	}
	return names, nil
}

// build makes a test binary whose coverage guides the fuzzer.
func build(ctx context.Context, importPath, output string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	_, err = command(ctx, "go", "test", "-c", "-fuzz=.", "-toolexec='"+self+"' "+stripVerb, "-o", output, importPath)
	return err
}

// command runs a program and returns what it printed.
func command(ctx context.Context, name string, arguments ...string) (string, error) {
	c := exec.CommandContext(ctx, name, arguments...)
	var complaint bytes.Buffer
	c.Stderr = &complaint
	output, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(arguments, " "), err, complaint.Bytes(), output)
	}
	return string(output), nil
}

// minimizeTime is how long Go may take to make one input smaller.
const minimizeTime = 5 * time.Second

// hangAfter is how long beyond its time a target may take to end.
const hangAfter = time.Minute

// count is what a target did.
type count struct {
	executions int64
	kept       int64 // inputs that reach something that no other does
}

// fuzz runs a target for a time; what it writes goes to scratch.
func (t *target) fuzz(ctx context.Context, long time.Duration, scratch string) (count, error) {
	ctx, cancel := context.WithTimeout(ctx, long+minimizeTime+hangAfter)
	defer cancel()
	c := exec.CommandContext(ctx, t.binary, "-test.run=^$", "-test.fuzz=^"+t.name+"$",
		"-test.fuzztime="+long.String(), "-test.fuzzminimizetime="+minimizeTime.String(), "-test.fuzzcachedir="+t.findings)
	c.Dir, c.Env = t.place, append(os.Environ(), "TMPDIR="+scratch)
	together(c) // its workers hold its output open
	text, err := c.CombinedOutput()
	if ctx.Err() != nil {
		err = errors.Join(ctx.Err(), err)
	}
	if err == nil || ctx.Err() == nil && timeUp.Match(text) {
		return counted(text)
	}
	return count{}, fmt.Errorf("%s %s: %w\n%s", t.folder, t.name, err, t.failure(text))
}

// timeUp is what Go before 1.27 prints, and no failing input with it, when it
// takes the end of the fuzzing time for a failure (https://go.dev/issue/75804).
var timeUp = regexp.MustCompile(`(?m)^--- FAIL: Fuzz\w+ \(.*\)\n {4}context deadline exceeded\nFAIL$`)

// progress is the line in which Go tells how far a target is.
var progress = regexp.MustCompile(`(?m)^fuzz: elapsed: .*, execs: (\d+) \(\d+/sec\), new interesting: \d+ \(total: (\d+)\)$`)

// counted reads the last progress of an output.
func counted(output []byte) (count, error) {
	lines := progress.FindAllSubmatch(output, -1)
	if len(lines) == 0 {
		return count{}, fmt.Errorf("no progress was told: %s", output)
	}
	last := lines[len(lines)-1]
	executions, err := strconv.ParseInt(string(last[1]), 10, 64)
	if err != nil {
		return count{}, err
	}
	kept, err := strconv.ParseInt(string(last[2]), 10, 64)
	return count{executions, kept}, err
}

var (
	chatter = regexp.MustCompile(`(?m)^(fuzz: .*|warning: starting .*)\n`)
	written = regexp.MustCompile(`testdata/fuzz/Fuzz\w+/\w+`)
	seed    = regexp.MustCompile(`seed corpus entry: (Fuzz\w+/[\w#]+)`)
)

// failure is an output without its progress, with the failing input, and with
// the command that repeats it.
func (t *target) failure(output []byte) string {
	b := &strings.Builder{}
	b.Write(chatter.ReplaceAll(output, nil))
	entry := ""
	if found := seed.FindSubmatch(output); found != nil {
		entry = string(found[1])
	}
	if file := string(written.Find(output)); file != "" {
		entry = path.Base(path.Dir(file)) + "/" + path.Base(file)
		input, err := os.ReadFile(filepath.Join(t.place, file))
		if err != nil {
			input = []byte(err.Error() + "\n")
		}
		_, _ = fmt.Fprintf(b, "\n%s/%s:\n%s", t.folder, file, input)
	}
	if entry != "" {
		_, _ = fmt.Fprintf(b, "\nRepeat it: go test ./%s -run '%s$'\n", t.folder, entry)
	}
	return b.String()
}
