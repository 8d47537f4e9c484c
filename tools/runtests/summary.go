package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// event is one line of `go test -json` (go doc test2json).
type event struct {
	Action  string  `json:"Action"`
	Package string  `json:"Package"`
	Test    string  `json:"Test"`
	Output  string  `json:"Output"`
	Elapsed float64 `json:"Elapsed"` // seconds
}

// test is what became of one test, or of its package if it has no name.
type test struct {
	ended  string // pass, fail or skip; empty until then
	output strings.Builder
}

// summary prints a line for each package and counts all tests.
type summary struct {
	out io.Writer

	mu                      sync.Mutex
	running                 map[string]map[string]*test // by package and name
	passed, failed, skipped int
	reasons                 map[string]*reason // why tests were skipped
}

// dataRace begins a report of the race detector. It fails all tests that are running,
// and may be in the output of one that has ended: the name before it is of the test that wrote last.
const dataRace = "WARNING: DATA RACE"

// reason is what a cause kept from being tested.
type reason struct {
	tests    int
	packages []string
}

func newSummary(out io.Writer) *summary {
	return &summary{out: out, running: map[string]map[string]*test{}, reasons: map[string]*reason{}}
}

// read follows the output of one `go test -json`; several may be read at once.
func (s *summary) read(output io.Reader) error {
	for decoder := json.NewDecoder(output); ; {
		var e event
		if err := decoder.Decode(&e); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read the output of go test: %w", err)
		}
		s.follow(&e)
	}
}

func (s *summary) follow(e *event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.Action == "build-output" {
		s.printf("%s", e.Output)
		return
	}
	if e.Package == "" {
		return
	}
	tests := s.running[e.Package]
	if tests == nil {
		tests = map[string]*test{}
		s.running[e.Package] = tests
	}
	if tests[e.Test] == nil {
		tests[e.Test] = &test{}
	}
	t := tests[e.Test]
	switch e.Action {
	case "output":
		if strings.HasPrefix(e.Output, "=== ") {
			return // RUN, PAUSE, CONT and NAME
		}
		t.output.WriteString(e.Output)
	case "pass", "fail", "skip":
		if t.ended = e.Action; e.Test == "" {
			s.endPackage(e, tests)
			delete(s.running, e.Package)
		} else if output := t.output.String(); e.Action == "fail" || strings.Contains(output, dataRace) {
			s.printf("%s", output)
		}
	}
}

// endPackage counts the tests of a package and prints its line. A test with
// subtests counts only if it failed and none of them did: it passes even if all
// of them were skipped.
func (s *summary) endPackage(e *event, tests map[string]*test) {
	name := strings.TrimPrefix(e.Package, "github.com/porteira/porteira/")
	passed, failed, skipped := 0, 0, 0
	for _, test := range slices.Sorted(maps.Keys(tests)) {
		switch t := tests[test]; {
		case test == "" || t.ended != "skip" && hasSubtest(tests, test, t.ended):
		case t.ended == "pass":
			passed++
		case t.ended == "skip":
			skipped++
			s.note(name, t.output.String())
		case t.ended == "":
			s.printf("%s", t.output.String()) // the process ended under it
			failed++
		default:
			failed++
		}
	}
	verdict := "ok   "
	switch {
	case e.Action == "fail":
		output := tests[""].output.String()
		if verdict = "FAIL "; failed == 0 {
			failed++
			s.printf("%s", output)
		} else if strings.Contains(output, dataRace) {
			s.printf("%s", output)
		}
	case passed+skipped == 0:
		return // it has no tests
	case passed == 0:
		verdict = "SKIP "
	case skipped > 0:
		verdict = "PART "
	}
	s.passed, s.failed, s.skipped = s.passed+passed, s.failed+failed, s.skipped+skipped
	s.printf("%s %s (%.1f s, %d passed, %d skipped)\n", verdict, name, e.Elapsed, passed, skipped)
}

// hasSubtest says whether a test has subtests and, if it failed, one that
// failed too.
func hasSubtest(tests map[string]*test, name, ended string) bool {
	for other, t := range tests {
		if strings.HasPrefix(other, name+"/") && (ended == "pass" || t.ended == ended) {
			return true
		}
	}
	return false
}

// logged is a line that a test has logged.
var logged = regexp.MustCompile(`(?m)^ +\S+\.go:\d+: (.+)$`)

// note keeps why a test was skipped: the last line that it logged.
func (s *summary) note(name, output string) {
	why := "no reason was given"
	if lines := logged.FindAllStringSubmatch(output, -1); len(lines) > 0 {
		why = lines[len(lines)-1][1]
	}
	r := s.reasons[why]
	if r == nil {
		r = &reason{}
		s.reasons[why] = r
	}
	if r.tests++; !slices.Contains(r.packages, name) {
		r.packages = append(r.packages, name)
	}
}

// close prints the totals and, last of all, what was not tested.
func (s *summary) close() {
	s.printf("\n%d passed, %d failed, %d skipped\n", s.passed, s.failed, s.skipped)
	if len(s.reasons) == 0 {
		return
	}
	s.printf("\nNOT TESTED on this machine:\n")
	for _, why := range slices.Sorted(maps.Keys(s.reasons)) {
		r := s.reasons[why]
		slices.Sort(r.packages)
		s.printf("  %d tests: %s\n    in %s\n", r.tests, why, strings.Join(r.packages, ", "))
	}
}

func (s *summary) printf(format string, arguments ...any) {
	_, _ = fmt.Fprintf(s.out, format, arguments...)
}
