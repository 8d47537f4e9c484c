package tidy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// migrationFolder holds the migrations, and in released.sum one line
// "sha256  name" for each that a release carried: databases out there have
// applied it as it was.
const migrationFolder = "internal/store/migrations"

// checkMigrations compares the released migrations with what was released.
func checkMigrations(repository *tree) []finding {
	list := path.Join(migrationFolder, "released.sum")
	var found []finding
	for number, line := range strings.Split(strings.TrimSpace(string(repository.texts[list])), "\n") {
		if line == "" {
			continue
		}
		where := fmt.Sprintf("%s:%d", list, number+1)
		sum, name, ok := strings.Cut(line, "  ")
		if !ok {
			found = append(found, finding{list, where, `want "sha256  name"`})
			continue
		}
		text, ok := repository.texts[path.Join(migrationFolder, name)]
		if !ok {
			found = append(found, finding{name, where, "a released migration is missing"})
			continue
		}
		if got := sha256.Sum256(text); hex.EncodeToString(got[:]) != sum {
			found = append(found, finding{name, where, "a released migration was edited: write a new one instead"})
		}
	}
	return found
}

var migrationMutants = []mutant{
	{"edited, missing and misspelt",
		map[string]string{
			migrationFolder + "/1.sql":        "SELECT 2;",
			migrationFolder + "/released.sum": sumOf("SELECT 1;") + "  1.sql\n" + sumOf("SELECT 1;") + "  2.sql\nrubbish\n",
		},
		[]string{"1.sql", "2.sql", migrationFolder + "/released.sum"}},
	{"as released, and one to come",
		map[string]string{
			migrationFolder + "/1.sql":        "SELECT 1;",
			migrationFolder + "/2.sql":        "SELECT 2;",
			migrationFolder + "/released.sum": sumOf("SELECT 1;") + "  1.sql\n",
		}, nil},
	{"nothing released", map[string]string{"go.mod": "module a"}, nil},
}

func sumOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// hidden are characters that change how a text reads without being seen:
// zero-width ones and those that turn the direction of writing (CVE-2021-42574).
const hidden = "\u200b\u200c\u200d\u2060\ufeff\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"

// elsewhere matches a path that only the author's machine has. It is spelt in
// pieces, or it would find itself.
var elsewhere = regexp.MustCompile(`(?m)(^|[^\w.:/-])((/wor` + `k|/ho` + `me|/Use` + `rs|/ro` + `ot)/\w|(\.\./)*shar` + `ed/\w)`)

// checkText reads every text file: what is written must be what is seen, and
// must make sense to someone who has this repository and nothing else.
func checkText(repository *tree) []finding {
	var found []finding
	for _, name := range slices.Sorted(maps.Keys(repository.texts)) {
		text := string(repository.texts[name])
		for number, line := range strings.Split(text, "\n") {
			problem := ""
			switch {
			case !utf8.ValidString(line):
				problem = "not UTF-8"
			case strings.ContainsAny(line, hidden):
				problem = "a character that cannot be seen; write it as an escape"
			case elsewhere.MatchString(line):
				problem = "a path outside the repository"
			}
			if problem != "" {
				found = append(found, finding{name, fmt.Sprintf("%s:%d", name, number+1), problem})
			}
		}
	}
	return found
}

var textMutants = []mutant{
	{"a folder of the author's",
		map[string]string{"README.md": "see /wor" + "k/main or `shar" + "ed/design.md`\n../shar" + "ed/x"},
		[]string{"README.md", "README.md"}},
	{"unseen characters, and no text at all",
		map[string]string{"a/a.go": "package a // \u202etxet", "b.txt": "caf\xe9"},
		[]string{"a/a.go", "b.txt"}},
	{"harmless",
		map[string]string{"README.md": "shared by all, https://example.com/work/1, o preço é R$ 1,00"}, nil},
}
