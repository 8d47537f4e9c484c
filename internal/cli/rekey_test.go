package cli_test

import (
	"strings"
	"testing"
)

// A new key opens the database with the old one beside it, and alone after porteira rekey; the doctor
// says when.
func TestRekey(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.run(0, "merchant", "create", "Loja")
	const next = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="
	alone := []string{"PORTEIRA_MASTER_KEY=" + next}
	both := append([]string{"PORTEIRA_RETIRED_MASTER_KEYS=" + masterKey}, alone...)
	for _, step := range []struct {
		environ []string
		command string
		code    int
		says    string
	}{
		{alone, "merchant list", 1, "put the old one into retired-master-keys"},
		{both, "merchant list", 0, "Loja"},
		{both, "rekey --as ana --reason leaver", 0, "Nothing in the database needs an old key."},
		{both, "audit list --as ana --merchant platform", 0, "ana master key replace"},
		{both, "rekey", 0, "Nothing in the database needs an old key."},
		{alone, "merchant list", 0, "Loja"},
		{alone, "verify", 0, "no defects"},
	} {
		s.keys = step.environ
		if out, errs := s.run(step.code, strings.Fields(step.command)...); !strings.Contains(out+errs, step.says) {
			t.Errorf("%s says %s%s", step.command, out, errs)
		}
	}
}
