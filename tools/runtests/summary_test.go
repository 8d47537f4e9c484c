package main

import (
	"strings"
	"testing"
)

const prefix = "github.com/porteira/porteira/"

// events are lines of `go test -json`: action, package, test, output.
func events(lines ...[4]string) string {
	b := &strings.Builder{}
	for _, l := range lines {
		b.WriteString(`{"Action":"` + l[0] + `","Package":"` + prefix + l[1] + `","Test":"` + l[2] + `","Output":"` + l[3] + `"}` + "\n")
	}
	return b.String()
}

func TestSummary(t *testing.T) {
	t.Parallel()
	const missing = `    a_test.go:9: chromium is missing\n`
	for _, tt := range []struct {
		name   string
		events string
		want   string
	}{
		{"passes", events([4]string{"pass", "a", "T", ""}, [4]string{"pass", "a", "", ""}),
			"ok    a (0.0 s, 1 passed, 0 skipped)\n\n1 passed, 0 failed, 0 skipped\n"},
		{"no tests", events([4]string{"skip", "a", "", ""}), "\n0 passed, 0 failed, 0 skipped\n"},
		{"all skipped, below a test that passes",
			events([4]string{"output", "a", "T/x", missing}, [4]string{"skip", "a", "T/x", ""}, [4]string{"pass", "a", "T", ""}, [4]string{"pass", "a", "", ""}),
			"SKIP  a (0.0 s, 0 passed, 1 skipped)\n\n0 passed, 0 failed, 1 skipped\n\nNOT TESTED on this machine:\n  1 tests: chromium is missing\n    in a\n"},
		{"some skipped, of two packages",
			events([4]string{"output", "b", "T", missing}, [4]string{"skip", "b", "T", ""}, [4]string{"pass", "b", "U", ""}, [4]string{"pass", "b", "", ""},
				[4]string{"output", "a", "T", missing}, [4]string{"skip", "a", "T", ""}, [4]string{"skip", "a", "U", ""}, [4]string{"pass", "a", "", ""}),
			"PART  b (0.0 s, 1 passed, 1 skipped)\nSKIP  a (0.0 s, 0 passed, 2 skipped)\n\n1 passed, 0 failed, 3 skipped\n\n" +
				"NOT TESTED on this machine:\n  2 tests: chromium is missing\n    in a, b\n  1 tests: no reason was given\n    in a\n"},
		{"fails", events([4]string{"output", "a", "T", `=== RUN T\n`}, [4]string{"output", "a", "T", `wrong\n`}, [4]string{"fail", "a", "T", ""}, [4]string{"fail", "a", "", ""}),
			"wrong\nFAIL  a (0.0 s, 0 passed, 0 skipped)\n\n0 passed, 1 failed, 0 skipped\n"},
		{"fails in a subtest, and beside them", events([4]string{"fail", "a", "T/x", ""}, [4]string{"fail", "a", "T", ""}, [4]string{"pass", "a", "U/x", ""}, [4]string{"fail", "a", "U", ""}, [4]string{"fail", "a", "", ""}),
			"FAIL  a (0.0 s, 1 passed, 0 skipped)\n\n1 passed, 2 failed, 0 skipped\n"},
		{"fails outside of its tests", events([4]string{"pass", "a", "T", ""}, [4]string{"output", "a", "", `leak\n`}, [4]string{"fail", "a", "", ""}),
			"leak\nFAIL  a (0.0 s, 1 passed, 0 skipped)\n\n1 passed, 1 failed, 0 skipped\n"},
		{"ends under a test", events([4]string{"output", "a", "T", `panic\n`}, [4]string{"fail", "a", "", ""}),
			"panic\nFAIL  a (0.0 s, 0 passed, 0 skipped)\n\n0 passed, 1 failed, 0 skipped\n"},
		{"races, in the output of a test that passes",
			events([4]string{"output", "a", "T", `WARNING: DATA RACE\n`}, [4]string{"pass", "a", "T", ""}, [4]string{"fail", "a", "U", ""}, [4]string{"fail", "a", "", ""}),
			"WARNING: DATA RACE\nFAIL  a (0.0 s, 1 passed, 0 skipped)\n\n1 passed, 1 failed, 0 skipped\n"},
		{"races, outside of its tests",
			events([4]string{"output", "a", "", `WARNING: DATA RACE\n`}, [4]string{"fail", "a", "U", ""}, [4]string{"fail", "a", "", ""}),
			"WARNING: DATA RACE\nFAIL  a (0.0 s, 0 passed, 0 skipped)\n\n0 passed, 1 failed, 0 skipped\n"},
		{"does not compile", `{"Action":"build-output","ImportPath":"a","Output":"undefined\n"}` + "\n" + events([4]string{"fail", "a", "", ""}),
			"undefined\nFAIL  a (0.0 s, 0 passed, 0 skipped)\n\n0 passed, 1 failed, 0 skipped\n"},
	} {
		b := &strings.Builder{}
		s := newSummary(b)
		if err := s.read(strings.NewReader(tt.events)); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if s.close(); b.String() != tt.want {
			t.Errorf("%s:\n%s\nwant\n%s", tt.name, b, tt.want)
		}
	}
	if err := newSummary(&strings.Builder{}).read(strings.NewReader("{")); err == nil {
		t.Error("half an event is read")
	}
}
