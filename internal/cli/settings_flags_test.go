package cli

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// readOnly are the commands that change nothing which the audit has.
var readOnly = []string{
	"dev", "serve", "bank", "migrate", "verify", "doctor", "backup", "rekey", "bench", "config", "version",
	"list", "show", "test", "find", "files", // of any noun
}

// A command that changes something takes an author: see TestEveryChangeIsAudited.
func TestEveryChangeTakesAnAuthor(t *testing.T) {
	t.Parallel()
	parser, err := kong.New(newCommands())
	if err != nil {
		t.Fatal(err)
	}
	changing := 0
	for _, leaf := range parser.Model.Leaves(false) {
		takes := slices.ContainsFunc(leaf.Flags, func(f *kong.Flag) bool { return f.Name == "reason" })
		words := strings.Fields(leaf.Path())
		if takes {
			changing++
		} else if !slices.Contains(readOnly, words[len(words)-1]) {
			t.Errorf("%s takes no author, and is not known to change nothing", leaf.Path())
		}
	}
	if changing < 15 {
		t.Errorf("only %d commands take an author", changing)
	}
}

// A command whose settings were forgotten would not have --data and --database.
func TestEveryCommandHasItsSettings(t *testing.T) {
	t.Parallel()
	all := reflect.ValueOf(newCommands()).Elem()
	found := 0
	for i := range all.NumField() {
		if all.Field(i).Kind() != reflect.Struct {
			continue
		}
		if s := all.Field(i).FieldByName("settings"); s.IsValid() {
			if found++; s.FieldByName("options").Len() == 0 {
				t.Errorf("%s has no settings", all.Type().Field(i).Name)
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d commands have settings", found)
	}
}
