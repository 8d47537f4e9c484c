package results

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

var update = flag.Bool("update", false, "write RESULTS.md anew")

func TestPageIsFresh(t *testing.T) {
	t.Parallel()
	const root = "../.."
	text, err := os.ReadFile(filepath.Join(root, runsFile))
	if err != nil {
		t.Fatal(err)
	}
	runs, err := parseRuns(text)
	if err != nil {
		t.Fatal(err)
	}
	findings, err := readFindings(root)
	if err != nil {
		t.Fatal(err)
	}
	want, path := render(runs, findings), filepath.Join(root, page)
	if *update {
		if err := replace(path, want); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s is stale (%v): run go test ./tools/results -update", page, err)
	}
}

// somewhere is a run that passes.
func somewhere(change func(*run)) run {
	r := run{
		Date: "2026-01-31", Commit: "0123abc", Machine: machine{"a CPU", 2, "linux 6.1", "go1.26"},
		Kind: "fuzz", Command: "make fuzz", Figures: map[string]int64{"executions": 1000},
	}
	if change != nil {
		change(&r)
	}
	return r
}

// emptyModule is a folder that is ready for a first run.
func emptyModule(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, filepath.Dir(findingsFile)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, findingsFile), []byte("[]"), 0o644); err != nil {
		t.Fatal(err)
	}
	return root
}

func TestRunsAddedAtOnceAllCount(t *testing.T) {
	t.Parallel()
	root := emptyModule(t)
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if err := add(root, somewhere(nil)); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	got, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| runs | 20 |", "| executions | 20,000 |", "| 2026-01-31 | 0123abc | a CPU, 2 cores, linux 6.1, go1.26 | `make fuzz` | 20 | executions 20,000 |"} {
		if !strings.Contains(string(got), want) {
			t.Errorf("the page lacks %q:\n%s", want, got)
		}
	}
}

func TestFiguresAreSumsOrTheGreatest(t *testing.T) {
	t.Parallel()
	got := total([]run{
		somewhere(func(r *run) { r.Figures = map[string]int64{"kills": 2, "slowest recovery, ms": 7, "max orders": 5} }),
		somewhere(func(r *run) {
			r.Figures = map[string]int64{"kills": 3, "slowest recovery, ms": 6, "max orders": 9, "cuts": 1}
		}),
	})
	want := map[string]int64{"kills": 5, "slowest recovery, ms": 7, "max orders": 9, "cuts": 1}
	if len(got) != len(want) {
		t.Errorf("got %v", got)
	}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s: %d, want %d", name, got[name], value)
		}
	}
}

func TestFaultyRunsAreRefusedAndLeaveNothing(t *testing.T) {
	t.Parallel()
	root := emptyModule(t)
	for name, change := range map[string]func(*run){
		"kind":      func(r *run) { r.Kind = "fuzzy" },
		"date":      func(r *run) { r.Date = "31/01/2026" },
		"commit":    func(r *run) { r.Commit = "HEAD" },
		"machine":   func(r *run) { r.Machine.CPU = "" },
		"command":   func(r *run) { r.Command = "" },
		"nothing":   func(r *run) { r.Figures = nil },
		"negative":  func(r *run) { r.Figures = map[string]int64{"kills": -1} },
		"pipe":      func(r *run) { r.Figures = map[string]int64{"kills | cuts": 1} },
		"two lines": func(r *run) { r.Figures = map[string]int64{"kills\ncuts": 1} },
	} {
		if err := add(root, somewhere(change)); err == nil {
			t.Errorf("%s: recorded", name)
		}
	}
	if _, err := os.Stat(filepath.Join(root, runsFile)); err == nil {
		t.Error("a refused run left a file")
	}
}

func TestDamagedLinesAreRefused(t *testing.T) {
	t.Parallel()
	root := emptyModule(t)
	path := filepath.Join(root, runsFile)
	for range 2 {
		if err := add(root, somewhere(nil)); err != nil {
			t.Fatal(err)
		}
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"cut off":       string(whole[:len(whole)-1]),
		"half":          string(whole[:len(whole)-20]),
		"empty line":    string(whole) + "\n",
		"unknown field": strings.Replace(string(whole), `"kind"`, `"kinds"`, 1),
		"two in one":    strings.Replace(string(whole), "}\n{", "}{", 1),
		"not JSON":      string(whole) + "<<<<<<< ours\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := add(root, somewhere(nil)); err == nil || !strings.Contains(err.Error(), runsFile+":") {
			t.Errorf("%s: %v", name, err)
		}
		if after, _ := os.ReadFile(path); string(after) != text {
			t.Errorf("%s: the file was changed", name)
		}
	}
}

func TestFindings(t *testing.T) {
	t.Parallel()
	const whole = `{"id":"F2","foundBy":"fuzz","wrong":"a | b","consequence":"c","mended":"d"}`
	list, err := parseFindings([]byte("[" + whole + "," + strings.Replace(whole, "F2", "F1", 1) + "]"))
	if err != nil {
		t.Fatal(err)
	}
	if got := render(nil, list); !strings.Contains(got, "| F1 | fuzz | a \\| b | c | d |\n| F2 |") {
		t.Error(got)
	}
	for _, text := range []string{"", "[" + whole + "," + whole + "]", `[{"id":"F1"}]`, "[] []", `[{"ID":1}]`} {
		if _, err := parseFindings([]byte(text)); err == nil {
			t.Errorf("%s: accepted", text)
		}
	}
}

func TestLongListsAreFolded(t *testing.T) {
	t.Parallel()
	var runs []run
	for i := range rowsMax + 3 {
		runs = append(runs, somewhere(func(r *run) { r.Command = strings.Repeat("x", i+1) }))
	}
	if got := render(runs, nil); !strings.Contains(got, "<summary>3 more</summary>") || !strings.Contains(got, "</details>") {
		t.Error(got)
	}
	if got := render(runs[:rowsMax], nil); strings.Contains(got, "<details>") {
		t.Error(got)
	}
}

func TestQuantities(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		value int64
		want  string
	}{
		{"kills", 0, "0"},
		{"kills", 999, "999"},
		{"kills", 1234567, "1,234,567"},
		{"simulated seconds", 7199, "7,199"},
		{"simulated seconds", 7200, "7,200 (2 hours)"},
		{"simulated seconds", 200000, "200,000 (2 days)"},
		{"simulated seconds", 1e9, "1,000,000,000 (31 years)"},
		{"slowest answer, milliseconds", 1e9, "1,000,000,000"},
	} {
		if got := quantity(test.name, test.value); got != test.want {
			t.Errorf("%s %d: %q, want %q", test.name, test.value, got, test.want)
		}
	}
}

func TestCommandsNameNoPlace(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"go run ./tools/fuzz -total 20m":          "go run ./tools/fuzz -total 20m",
		"/tmp/a/b/torture -dir=/var/x/y -kills 3": "torture -dir=y -kills 3",
		"simulate -database postgres://u:p@h/db":  "simulate -database postgres:…",
	} {
		if got := withoutPlaces(command); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}

// A commit is marked once anything but the results themselves has changed.
func TestCommit(t *testing.T) {
	t.Parallel()
	root := emptyModule(t)
	write := func(name string) {
		if err := os.WriteFile(filepath.Join(root, name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("main.go")
	for _, arguments := range [][]string{
		{"init", "-q"},
		{"add", "."},
		{"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "first"},
	} {
		if _, err := git(root, arguments...); err != nil {
			t.Fatal(err)
		}
	}
	write(runsFile)
	write(page)
	clean, err := commitOf(root)
	if err != nil || !commitForm.MatchString(clean) || strings.HasSuffix(clean, "+") {
		t.Errorf("clean: %q, %v", clean, err)
	}
	write("other.go")
	if changed, err := commitOf(root); err != nil || changed != clean+"+" {
		t.Errorf("changed: %q, %v", changed, err)
	}
}

func TestThisMachine(t *testing.T) {
	t.Parallel()
	if err := somewhere(func(r *run) { r.Machine = thisMachine() }).check(); err != nil {
		t.Error(err)
	}
	if root, err := moduleRoot(); err != nil || root == "" {
		t.Errorf("module root %q: %v", root, err)
	}
}
