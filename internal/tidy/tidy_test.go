package tidy

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// rules are the house rules; CONTRIBUTING.md has their reasons.
var rules = []rule{
	{"imports point one way", checkImports, importMutants},
	{"functions and files are short", checkSize, sizeMutants},
	{"no float near money", checkFloats, floatMutants},
	{"one path for transfers", checkTransfers, transferMutants},
	{"time, randomness and dialling come from env", checkEnv, envMutants},
	{"secrets are compared in constant time", checkSecrets, secretMutants},
	{"each package opens with its sentence", checkPackageComments, packageCommentMutants},
	{"exported identifiers have comments", checkExported, exportedMutants},
	{"packages are named after a thing", checkPackageNames, packageNameMutants},
	{"no work is left in comments", checkMarks, markMutants},
	{"no test is skipped", checkSkips, skipMutants},
	{"released migrations are never edited", checkMigrations, migrationMutants},
	{"text is plain and refers to this repository only", checkText, textMutants},
	{"words are the ones of the field", checkVocabulary, vocabularyMutants},
	{"documents name files and functions that exist", checkReferences, referenceMutants},
}

// exceptions are the allowed violations. One that is no longer needed fails.
var exceptions = []exception{
	{"no test is skipped", "internal/db/dbtest/postgres.go: Skipf",
		"skips without PostgreSQL on a developer's machine; fails in CI"},
	{"no test is skipped", "tools/oracle/oracle_test.go: Skip",
		"skips without Node's packages on a developer's machine; fails in CI"},
	{"no test is skipped", "internal/checkout/checkouttest/tools.go: Skip",
		"skips without a browser on a developer's machine; fails in CI"},
	{"time, randomness and dialling come from env", "test/crashtest/proxy.go: net.Dial",
		"a proxy for PostgreSQL's connections, for which env has no dialer"},
	{"time, randomness and dialling come from env", "internal/db/dbtest/wire.go: net.Dial", "the same, for tests"},
	{"time, randomness and dialling come from env", "internal/bench/conn.go: net.Dialer",
		"raw sockets: a client library would need as much CPU as the measured gateway"},
	{"functions and files are short", "brcode.TestDecodeRefuses", "one table of invalid codes"},
}

// rule is one house rule.
type rule struct {
	name    string
	check   func(*tree) []finding
	mutants []mutant
}

// finding is a violation of a rule.
type finding struct {
	subject string // identifies the finding in an exception; independent of line numbers
	where   string // file and line
	problem string
}

// exception allows one subject to break one rule.
type exception struct{ rule, subject, reason string }

// mutant is a small repository that breaks a rule at the subjects. Without subjects, it is
// similar and valid.
type mutant struct {
	name     string
	files    map[string]string
	subjects []string
}

func TestHouseRules(t *testing.T) {
	t.Parallel()
	repository, err := load(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range rules {
		t.Run(rule.name, func(t *testing.T) {
			t.Parallel()
			for _, failure := range failuresOf(rule.name, rule.check(repository), exceptions) {
				t.Error(failure)
			}
		})
	}
}

func TestEachRuleCanFail(t *testing.T) {
	t.Parallel()
	for _, rule := range rules {
		t.Run(rule.name, func(t *testing.T) {
			t.Parallel()
			caught := 0
			for _, mutant := range rule.mutants {
				var subjects []string
				for _, finding := range rule.check(mutant.load(t)) {
					subjects = append(subjects, finding.subject)
				}
				slices.Sort(subjects)
				if !slices.Equal(subjects, mutant.subjects) {
					t.Errorf("%s: found %q, want %q", mutant.name, subjects, mutant.subjects)
				}
				caught += len(mutant.subjects)
			}
			if caught == 0 {
				t.Error("no mutant shows that the rule can fail")
			}
		})
	}
}

func TestExceptionsNameARuleAndAReason(t *testing.T) {
	t.Parallel()
	for _, exception := range exceptions {
		known := slices.ContainsFunc(rules, func(r rule) bool { return r.name == exception.rule })
		if !known || exception.reason == "" {
			t.Errorf("%+v: want the name of a rule and a reason", exception)
		}
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	found := []finding{{subject: "a.go", where: "a.go:1", problem: "too long"}}
	for _, test := range []struct {
		name       string
		exceptions []exception
		want       string
	}{
		{"no exception", nil, "a.go:1: too long [a.go]"},
		{"an exception", []exception{{"size", "a.go", "a table"}}, ""},
		{"an exception to another rule", []exception{{"floats", "a.go", "a table"}}, "a.go:1: too long [a.go]"},
		{"an unneeded exception", []exception{{"size", "a.go", "a table"}, {"size", "b.go", "was long"}},
			`the exception for "b.go" is no longer needed: remove it`},
	} {
		if got := strings.Join(failuresOf("size", found, test.exceptions), "\n"); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// failuresOf returns the findings without an exception, and the exceptions without a finding.
func failuresOf(rule string, found []finding, exceptions []exception) []string {
	var failures []string
	excepted := map[string]bool{}
	for _, exception := range exceptions {
		if exception.rule == rule {
			excepted[exception.subject] = false
		}
	}
	for _, finding := range found {
		if _, ok := excepted[finding.subject]; ok {
			excepted[finding.subject] = true
			continue
		}
		failures = append(failures, fmt.Sprintf("%s: %s [%s]", finding.where, finding.problem, finding.subject))
	}
	for subject, needed := range excepted {
		if !needed {
			failures = append(failures, fmt.Sprintf("the exception for %q is no longer needed: remove it", subject))
		}
	}
	slices.Sort(failures)
	return failures
}

func (m mutant) load(t *testing.T) *tree {
	t.Helper()
	files := fstest.MapFS{}
	for name, text := range m.files {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	repository, err := load(files)
	if err != nil {
		t.Fatalf("%s: %v", m.name, err)
	}
	return repository
}
