package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// binaries are the program as it is shipped, and the same program with the
// tag torture, which dies at the moment that CRASH_AT names.
type binaries struct{ plain, tagged string }

// build builds both. What remove returns from takes them away.
func build(ctx context.Context) (b binaries, remove func(), err error) {
	folder, err := os.MkdirTemp("", "porteira-torture-bin-")
	if err != nil {
		return b, nil, err
	}
	remove = func() { _ = os.RemoveAll(folder) }
	b = binaries{filepath.Join(folder, "porteira"), filepath.Join(folder, "porteira-tagged")}
	for _, arguments := range [][]string{{"build", "-o", b.plain}, {"build", "-tags", "torture", "-o", b.tagged}} {
		// Named by its import path, it is found from any folder of the module.
		cmd := exec.CommandContext(ctx, "go", append(arguments, "github.com/porteira/porteira/cmd/porteira")...)
		if out, err := cmd.CombinedOutput(); err != nil {
			remove()
			return b, nil, fmt.Errorf("go build: %w\n%s", err, out)
		}
	}
	return b, remove, nil
}
