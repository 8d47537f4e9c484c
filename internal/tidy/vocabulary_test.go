package tidy

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// vocabulary lists words with a more common term, for identifiers, comments, texts and
// documents.
var vocabulary = []struct{ not, write string }{
	{`verbs?`, "operation"},
	{`dut(y|ies)`, "background worker, job"},
	{`in hand|born`, "claimed, in flight, claim on insert"},
	{`beat(s|ing)?`, "heartbeat, epoch"},
	{`moments?`, "failpoint, instant, time"},
	{`strain(ed)?|crowded|pace[ds]?`, "CPU pressure, throttle, backlogged"},
	{`news`, "event"},
	{`tells?|told`, "event, report, record; say, return"},
	{`needs? a person|a person'?s`, "manual review, case"},
	{`stuck`, "dead letter"},
	{`rigs?|sticks?|torments?|ordeals?|judges?|judged`, "harness, baseline, nemesis, run, checker"},
	{`mend(s|ed|ing)?`, "fix"},
	{`for ever`, "forever"},
	{`rubbish`, "garbage"},
	{`made up`, "synthetic"},
	{`faulty`, "invalid"},
	{`who(m|so)?ever`, "the subject of the sentence"},
	{`there is nothing here`, "not found"},
	{`takes? in hand|lays? in wait`, "claim"},
}

// vocabularyFile has the words themselves.
const vocabularyFile = "internal/tidy/vocabulary_test.go"

// published matches words that the public contract has: a fault of the sandbox.
var published = regexp.MustCompile(`\brubbish["` + "`" + `,]|query rubbish 1`)

// casing matches the boundary of two words of an identifier.
var casing = regexp.MustCompile(`([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])|[_-]`)

// words splits the identifiers of a line into words, and converts it to lower case.
func words(line string) string {
	return strings.ToLower(casing.ReplaceAllString(line, "$1$3 $2$4"))
}

// foreignText matches files that are generated, from others, or not in English.
var foreignText = regexp.MustCompile(`(^|/)testdata/|(^|/)package-lock\.json$|(^|/)go\.sum$|^LICENSE$`)

// checkVocabulary refuses the words of vocabulary.
func checkVocabulary(repository *tree) []finding {
	alternatives := make([]string, len(vocabulary))
	for i, entry := range vocabulary {
		alternatives[i] = `(` + entry.not + `)`
	}
	any := regexp.MustCompile(`\b(?:` + strings.Join(alternatives, "|") + `)\b`)
	var found []finding
	for _, name := range slices.Sorted(maps.Keys(repository.texts)) {
		if name == vocabularyFile || foreignText.MatchString(name) {
			continue
		}
		for number, line := range strings.Split(string(repository.texts[name]), "\n") {
			for _, word := range any.FindAllString(words(published.ReplaceAllString(line, "")), -1) {
				found = append(found, finding{name + ": " + word, fmt.Sprintf("%s:%d", name, number+1),
					fmt.Sprintf("%q: write %s", word, betterWord(word))})
			}
		}
	}
	return found
}

func betterWord(word string) string {
	for _, entry := range vocabulary {
		if regexp.MustCompile(`^(?:` + entry.not + `)$`).MatchString(word) {
			return entry.write
		}
	}
	return ""
}

var vocabularyMutants = []mutant{
	{"in an identifier, a comment, a text, a document",
		map[string]string{
			"a/a.go":    "package a\n// The duty of a.\nvar lastBeat = `is told`",
			"a/a.sql":   "CREATE TABLE beats (a text)",
			"README.md": "Kept for ever.",
		}, []string{"README.md: for ever", "a/a.go: beat", "a/a.go: duty", "a/a.go: told", "a/a.sql: beats"}},
	{"parts of other words",
		map[string]string{"a/a.go": "package a\n// heartbeat, newspaper, proverb, amended, constraint\nvar trigger, space int"}, nil},
}
