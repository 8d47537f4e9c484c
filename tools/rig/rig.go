// Package rig is what the trials of the real program have in common: accounts
// and environments for what they start.
package rig

import (
	"errors"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// ErrNoAccount says that this machine has no plain account to run a server as.
var ErrNoAccount = errors.New("no account to run PostgreSQL as: it takes postgres or nobody")

// Account gives a folder to a plain account, as PostgreSQL refuses to run as
// root; nil is our own, where we are not root.
func Account(folder string) (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil //nolint:nilnil // our own
	}
	for _, name := range []string{"postgres", "nobody"} {
		account, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(account.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(account.Gid, 10, 32)
		if err := errors.Join(err1, err2, os.Chown(folder, int(uid), int(gid))); err != nil {
			return nil, err
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, ErrNoAccount
}

// Environ is this process's environment without settings of a gateway, of
// PostgreSQL's programs, and of a death that is armed.
func Environ() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "PORTEIRA_") || strings.HasPrefix(v, "PG") || strings.HasPrefix(v, "CRASH_AT=")
	})
}
