package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// programs are the binary as it is shipped, and the same with the build tag
// failpoint, which dies at the failpoint that CRASH_AT names.
type programs struct{ plain, failpoint string }

const module = "github.com/porteira/porteira"

// build builds both in the module's own folder, with the versions of its go.mod.
// remove deletes them.
func build(ctx context.Context) (b programs, remove func(), err error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return b, nil, fmt.Errorf("go list -m %s: %w: run it in the folder of its source", module, err)
	}
	folder, err := os.MkdirTemp("", "porteira-crashtest-bin-")
	if err != nil {
		return b, nil, err
	}
	remove = func() { _ = os.RemoveAll(folder) }
	b = programs{filepath.Join(folder, "porteira"), filepath.Join(folder, "porteira-failpoint")}
	for _, arguments := range [][]string{{"build", "-o", b.plain}, {"build", "-tags", "failpoint", "-o", b.failpoint}} {
		cmd := exec.CommandContext(ctx, "go", append(arguments, "./cmd/porteira")...)
		cmd.Dir = strings.TrimSpace(string(root))
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

// check makes sure that the shipped binary has no failpoints, and that the other
// has.
func (b programs) check() error {
	for path, want := range map[string]bool{b.plain: false, b.failpoint: true} {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if bytes.Contains(text, []byte("CRASH_AT")) != want {
			return fmt.Errorf("%s reads CRASH_AT: %v, want %v", filepath.Base(path), !want, want)
		}
	}
	return nil
}

// environ is this process's environment without settings of a gateway, of
// PostgreSQL's programs and of failpoints.
func environ() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "PORTEIRA_") || strings.HasPrefix(v, "PG") || strings.HasPrefix(v, "CRASH_AT=")
	})
}

// account gives a folder to an unprivileged account, because PostgreSQL refuses
// to run as root; nil is this process's own account, if that is not root.
func account(folder string) (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil //nolint:nilnil // our own
	}
	for _, name := range []string{"postgres", "nobody"} {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(found.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(found.Gid, 10, 32)
		if err := errors.Join(err1, err2, os.Chown(folder, int(uid), int(gid))); err != nil {
			return nil, err
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, fmt.Errorf("%w: no account to run PostgreSQL: create postgres or nobody", errUnfit)
}
