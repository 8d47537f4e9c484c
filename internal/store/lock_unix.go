//go:build unix

package store

import (
	"os"
	"syscall"
)

// fileLock is held by the one process that writes an SQLite file. It is a file
// of its own: closing any handle of the database file itself would drop the
// locks that SQLite holds on it (fcntl locks belong to the process).
type fileLock struct{ f *os.File }

func lockFile(path string) (*fileLock, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, err
	}
	return &fileLock{f}, nil
}

func (l *fileLock) release() error { return l.f.Close() }
