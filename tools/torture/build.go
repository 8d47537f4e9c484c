package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// binaries are the program as it is shipped, and the same program with the
// tag failpoint, which dies at the moment that CRASH_AT names.
type binaries struct{ plain, tagged string }

// build builds both. What remove returns from takes them away.
func build(ctx context.Context) (b binaries, remove func(), err error) {
	folder, err := os.MkdirTemp("", "porteira-torture-bin-")
	if err != nil {
		return b, nil, err
	}
	remove = func() { _ = os.RemoveAll(folder) }
	b = binaries{filepath.Join(folder, "porteira"), filepath.Join(folder, "porteira-tagged")}
	for _, arguments := range [][]string{{"build", "-o", b.plain}, {"build", "-tags", "failpoint", "-o", b.tagged}} {
		// Named by its import path, it is found from any folder of the module.
		cmd := exec.CommandContext(ctx, "go", append(arguments, "github.com/porteira/porteira/cmd/porteira")...)
		if out, err := cmd.CombinedOutput(); err != nil {
			remove()
			return b, nil, fmt.Errorf("go build: %w\n%s", err, out)
		}
	}
	if err := b.check(); err != nil {
		remove()
		return b, nil, err
	}
	return b, remove, nil
}

// check makes sure that what is shipped cannot be told to die, and that the
// other can.
func (b binaries) check() error {
	for path, tagged := range map[string]bool{b.plain: false, b.tagged: true} {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if bytes.Contains(text, []byte("CRASH_AT")) != tagged {
			return fmt.Errorf("%s heeds CRASH_AT: %v, want %v", filepath.Base(path), !tagged, tagged)
		}
	}
	return nil
}
