package tidy

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// vocabulary lists words and phrases with a more common term, for identifiers, comments, texts
// and documents.
var vocabulary = []struct {
	not   []string
	write string
}{
	{[]string{"verb", "verbs"}, "operation"},
	{[]string{"duty", "duties"}, "background worker, job"},
	{[]string{"in hand", "born"}, "claimed, in flight, claim on insert"},
	{[]string{"beat", "beats", "beating"}, "heartbeat, epoch"},
	{[]string{"moment", "moments"}, "failpoint, instant, time"},
	{[]string{"strain", "strained", "crowded", "pace", "paced", "paces"}, "CPU pressure, throttle, backlogged"},
	{[]string{"news"}, "event"},
	{[]string{"tell", "tells", "told"}, "event, report, record; say, return"},
	{[]string{"need a person", "needs a person", "a person's", "a persons"}, "manual review, case"},
	{[]string{"stuck"}, "dead letter"},
	{[]string{"rig", "rigs", "stick", "sticks", "torment", "torments", "ordeal", "ordeals", "judge", "judges", "judged"},
		"harness, baseline, nemesis, run, checker"},
	{[]string{"mend", "mends", "mended", "mending"}, "fix"},
	{[]string{"for ever"}, "forever"},
	{[]string{"rubbish"}, "garbage"},
	{[]string{"made up"}, "synthetic"},
	{[]string{"faulty"}, "invalid"},
	{[]string{"whoever", "whomever", "whosoever"}, "the subject of the sentence"},
	{[]string{"there is nothing here"}, "not found"},
	{[]string{"take in hand", "takes in hand", "lay in wait", "lays in wait"}, "claim"},
}

// vocabularyFile has the words themselves.
const vocabularyFile = "internal/tidy/vocabulary_test.go"

// published matches a word that the public contract has, a fault of the sandbox: its clients send
// it, so it cannot be replaced by a better one. Elsewhere the word is refused.
var published = regexp.MustCompile(`["` + "`]rubbish[`" + `"]|\blate, rubbish, notify|query rubbish 1`)

// words splits the identifiers of a line into words, and converts it to lower case.
func words(line string) string {
	split := make([]byte, 0, len(line)+16)
	for i := range len(line) {
		c := line[i]
		switch {
		case c == '_' || c == '-':
			c = ' '
		case 'A' <= c && c <= 'Z':
			if i > 0 && beginsWord(line, i) {
				split = append(split, ' ')
			}
			c += 'a' - 'A'
		}
		split = append(split, c)
	}
	return string(split)
}

// beginsWord reports whether a capital letter begins a word of an identifier: userID, HTTPServer.
func beginsWord(line string, i int) bool {
	switch before := line[i-1]; {
	case 'a' <= before && before <= 'z' || '0' <= before && before <= '9':
		return true
	case 'A' <= before && before <= 'Z':
		return i+1 < len(line) && 'a' <= line[i+1] && line[i+1] <= 'z'
	default:
		return false
	}
}

// phrases are those of vocabulary, by their first word, with what to write instead. Regular
// expressions would take a minute under the race detector.
var phrases = func() map[string]map[string]string {
	byFirst := map[string]map[string]string{}
	for _, entry := range vocabulary {
		for _, phrase := range entry.not {
			first := firstWord(phrase)
			if byFirst[first] == nil {
				byFirst[first] = map[string]string{}
			}
			byFirst[first][phrase] = entry.write
		}
	}
	return byFirst
}()

func firstWord(phrase string) string { return phrase[:wordEnd(phrase, 0)] }

// wordEnd is where the word ends that begins at start.
func wordEnd(line string, start int) int {
	end := start
	for end < len(line) && ('a' <= line[end] && line[end] <= 'z' || '0' <= line[end] && line[end] <= '9') {
		end++
	}
	return end
}

// phrasesOf returns the phrases of vocabulary in a line of [words].
func phrasesOf(line string) []string {
	var found []string
	for start := 0; start < len(line); {
		end := wordEnd(line, start)
		if end == start {
			start++
			continue
		}
		for phrase := range phrases[line[start:end]] {
			after := start + len(phrase)
			if strings.HasPrefix(line[start:], phrase) && wordEnd(line, after) == after {
				found = append(found, phrase)
			}
		}
		start = end
	}
	return found
}

// foreignText matches files that are generated, from others, or not in English.
var foreignText = regexp.MustCompile(`(^|/)testdata/|(^|/)package-lock\.json$|(^|/)go\.sum$|^LICENSE$`)

// checkVocabulary refuses the words of vocabulary.
func checkVocabulary(repository *tree) []finding {
	var found []finding
	for _, name := range slices.Sorted(maps.Keys(repository.texts)) {
		if name == vocabularyFile || foreignText.MatchString(name) {
			continue
		}
		for number, line := range strings.Split(string(repository.texts[name]), "\n") {
			if strings.Contains(line, "rubbish") {
				line = published.ReplaceAllString(line, "")
			}
			for _, phrase := range phrasesOf(words(line)) {
				found = append(found, finding{name + ": " + phrase, fmt.Sprintf("%s:%d", name, number+1),
					fmt.Sprintf("%q: write %s", phrase, phrases[firstWord(phrase)][phrase])})
			}
		}
	}
	return found
}

var vocabularyMutants = []mutant{
	{"in an identifier, a comment, a text, a document",
		map[string]string{
			"a/a.go":    "package a\n// The duty of a.\nvar lastBeat = `is told`",
			"a/a.sql":   "CREATE TABLE beats (a text)",
			"README.md": "Kept for ever.",
		}, []string{"README.md: for ever", "a/a.go: beat", "a/a.go: duty", "a/a.go: told", "a/a.sql: beats"}},
	{"two, of one letter, after an abbreviation, across a hyphen",
		map[string]string{"a/a.go": "package a\nvar needsAPerson, XMLVerbs = 1, 2 // stuck, a made-up name"},
		[]string{"a/a.go: made up", "a/a.go: needs a person", "a/a.go: stuck", "a/a.go: verbs"}},
	{"a word of the contract, and the same word elsewhere",
		map[string]string{"a/a.go": "package a\n// It sends rubbish.\nvar kinds = []string{\"late\", \"rubbish\"}", "b/b.go": "package b\nvar kind = \"rubbish\""},
		[]string{"a/a.go: rubbish"}},
	{"parts of other words",
		map[string]string{"a/a.go": "package a\n// heartbeat, newspaper, proverb, amended, constraint\nvar trigger, space int"}, nil},
}
