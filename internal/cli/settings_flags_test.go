package cli

import (
	"reflect"
	"testing"
)

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
