package cli_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/porteira/porteira/internal/cli"
)

// The first command of an installation says how to create the master key; the others do not,
// as they need the one that exists.
func TestMissingMasterKey(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	key := filepath.Join(data, "master.key")
	missing := "porteira: master key " + key + " not found: set its folder with --data, or its path with --master-key-file"
	for command, want := range map[string]string{
		"migrate": missing + "; for a new database create one: mkdir -p -m 700 " + data + " && (umask 077; openssl rand -base64 32 > " + key + ")\n",
		"verify":  missing + "\n",
	} {
		var errs bytes.Buffer
		p := cli.Program{Args: []string{command}, Environ: []string{"PORTEIRA_DATA=" + data}, Stdout: &errs, Stderr: &errs}
		if code := p.Run(t.Context()); code != 1 || errs.String() != want {
			t.Errorf("%s ends with %d and writes %q, want %q", command, code, errs.String(), want)
		}
	}
}
