package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]options{
		"":             {each: 5 * time.Second},
		"-each 1m":     {each: time.Minute},
		"-total 20m":   {total: 20 * time.Minute},
		"-record":      {each: 5 * time.Second, record: true},
		"-only brcode": {each: 5 * time.Second},
	} {
		got, err := parse(strings.Fields(line))
		if err != nil || got.each != want.each || got.total != want.total || got.record != want.record || !got.only.MatchString("brcode FuzzDecode") {
			t.Errorf("%q: %+v, %v", line, got, err)
		}
	}
	for _, line := range []string{"-each 1s -total 1m", "-each -1s", "brcode", "-only ("} {
		if _, err := parse(strings.Fields(line)); err == nil {
			t.Errorf("%q was taken", line)
		}
	}
}

func TestCounted(t *testing.T) {
	t.Parallel()
	got, err := counted([]byte(`fuzz: elapsed: 0s, gathering baseline coverage: 0/41 completed
fuzz: elapsed: 0s, gathering baseline coverage: 41/41 completed, now fuzzing with 2 workers
fuzz: elapsed: 3s, execs: 15839 (5279/sec), new interesting: 10 (total: 51)
fuzz: minimizing 38-byte failing input file
fuzz: elapsed: 1m6s, execs: 31226 (0/sec), new interesting: 14 (total: 55)
PASS
`))
	if want := (count{31226, 55}); err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	if _, err := counted([]byte("PASS\n")); err == nil {
		t.Error("a run without progress counts")
	}
}

// TestTimeUp tells the end of the time from a failure, also from one whose
// message is of a deadline.
func TestTimeUp(t *testing.T) {
	t.Parallel()
	const start = "fuzz: elapsed: 0s, execs: 1 (0/sec), new interesting: 1 (total: 2)\n"
	for output, want := range map[string]bool{
		start + "--- FAIL: FuzzSealed (4.10s)\n    context deadline exceeded\nFAIL\n":                                                               true,
		start + "--- FAIL: FuzzSealed (4.10s)\n    --- FAIL: FuzzSealed (0.10s)\n        sealed_test.go:9: context deadline exceeded\n    \nFAIL\n": false,
		start + "--- FAIL: FuzzSealed (4.10s)\n    context deadline exceeded\n    Failing input written to testdata/fuzz/FuzzSealed/1\nFAIL\n":      false,
		start + "PASS\n": false,
	} {
		if timeUp.MatchString(output) != want {
			t.Errorf("the end of the time is %v in %s", !want, output)
		}
	}
}

// TestFailure shows the input and the command, for one that the fuzzer found
// and for one that is among the seeds.
func TestFailure(t *testing.T) {
	t.Parallel()
	place := t.TempDir()
	if err := os.MkdirAll(filepath.Join(place, "testdata/fuzz/FuzzDecode"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(place, "testdata/fuzz/FuzzDecode/ddc9854d7b106cbf"), []byte("go test fuzz v1\nstring(\"x\")\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	at := target{folder: "brcode", name: "FuzzDecode", place: place}
	for output, want := range map[string][]string{
		"fuzz: elapsed: 0s, execs: 1 (0/sec), new interesting: 1 (total: 2)\n--- FAIL: FuzzDecode (0.1s)\n    x_test.go:1: wrong\n" +
			"    Failing input written to testdata/fuzz/FuzzDecode/ddc9854d7b106cbf\n": {"wrong", `string("x")`, "go test ./brcode -run 'FuzzDecode/ddc9854d7b106cbf$'"},
		"failure while testing seed corpus entry: FuzzDecode/seed#6\n--- FAIL: FuzzDecode (0.1s)\n": {"go test ./brcode -run 'FuzzDecode/seed#6$'"},
	} {
		got := at.failure([]byte(output))
		for _, part := range want {
			if !strings.Contains(got, part) || strings.Contains(got, "elapsed") {
				t.Errorf("%q is missing in %q", part, got)
			}
		}
	}
}

func TestTargetsAreFound(t *testing.T) {
	t.Parallel()
	packages, err := packagesOf(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	codes := slices.IndexFunc(packages, func(p listed) bool { return p.ImportPath == p.Module.Path+"/brcode" })
	if codes < 0 {
		t.Fatalf("%d packages, and not brcode", len(packages))
	}
	if names, err := packages[codes].targets(); err != nil || !slices.Equal(names, []string{"FuzzDecode", "FuzzEncode"}) {
		t.Errorf("targets %q, %v", names, err)
	}
}

func TestGuided(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"main": true, "github.com/porteira/porteira/brcode": true, "github.com/porteira/porteira/brcode_test": true, "net/url": true, "net/url_test": true,
		"github.com/porteira/porteira2": false, "modernc.org/sqlite": false, "net": false, "maintained": false, "": false,
	} {
		if guided(name) != want {
			t.Errorf("guided(%q) = %v", name, !want)
		}
	}
}

// TestStrip has this program stand in for a compiler's driver.
func TestStrip(t *testing.T) {
	t.Parallel()
	tool := filepath.Join(t.TempDir(), "compile")
	if err := os.WriteFile(tool, []byte("#!/bin/sh\necho compile \"$@\"\n"), 0o755); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	self := filepath.Join(t.TempDir(), "fuzz")
	if text, err := exec.Command("go", "build", "-o", self, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	for line, want := range map[string]string{
		"-p modernc.org/sqlite -d=libfuzzer a.go":                  "compile -p modernc.org/sqlite a.go",
		"-p github.com/porteira/porteira/brcode -d=libfuzzer a.go": "compile -p github.com/porteira/porteira/brcode -d=libfuzzer a.go",
		"-V=full": "compile -V=full " + mark,
	} {
		got, err := exec.Command(self, append([]string{stripVerb, tool}, strings.Fields(line)...)...).Output()
		if err != nil || string(bytes.TrimSpace(got)) != want {
			t.Errorf("%s: %q, %v; want %q", line, got, err, want)
		}
	}
	if err := exec.Command(self, stripVerb, filepath.Join(t.TempDir(), "none")).Run(); err == nil {
		t.Error("a tool that does not run is a success")
	}
}
