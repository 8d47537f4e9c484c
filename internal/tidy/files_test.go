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

// migrationFolder has the migrations and released.sum, with a line "sha256  name" for each
// released migration: users' databases have applied those.
const migrationFolder = "internal/store/migrations"

// checkMigrations compares the released migrations with their sums.
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
			migrationFolder + "/released.sum": sumOf("SELECT 1;") + "  1.sql\n" + sumOf("SELECT 1;") + "  2.sql\nnot a sum\n",
		},
		[]string{"1.sql", "2.sql", migrationFolder + "/released.sum"}},
	{"as released, and a new one",
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

// hidden are invisible characters: zero-width ones and those that change the direction of
// writing (CVE-2021-42574).
const hidden = "\u200b\u200c\u200d\u2060\ufeff\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"

// roots are folders of the author's machine, and elsewhere matches a path in one. They are split
// so that they do not match themselves.
var (
	roots     = []string{"/wor" + "k/", "/ho" + "me/", "/Use" + "rs/", "/ro" + "ot/", "shar" + "ed/"}
	elsewhere = regexp.MustCompile(`(?m)(^|[^\w.:/-])(\.\./)*(` + strings.Join(roots, "|") + `)\w`)
)

// checkText refuses invisible characters, invalid UTF-8 and paths outside the repository.
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
				problem = "an invisible character; write it as an escape"
			case slices.ContainsFunc(roots, func(root string) bool { return strings.Contains(line, root) }) && elsewhere.MatchString(line):
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
	{"a folder of the author's machine",
		map[string]string{"README.md": "see /wor" + "k/main or `shar" + "ed/design.md`\n../shar" + "ed/x"},
		[]string{"README.md", "README.md"}},
	{"invisible characters, and invalid UTF-8",
		map[string]string{"a/a.go": "package a // \u202etxet", "b.txt": "caf\xe9"},
		[]string{"a/a.go", "b.txt"}},
	{"harmless",
		map[string]string{"README.md": "shared by all, https://example.com/work/1, o preço é R$ 1,00"}, nil},
}
