//go:build unix

package db

import (
	"errors"
	"os"
	"syscall"
)

// fileLock is held by the one process that writes an SQLite file. It is a
// separate file: closing any handle of the database file would drop SQLite's own
// locks on it (fcntl locks belong to the process).
type fileLock struct{ f *os.File }

func lockFile(path string) (*fileLock, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = errLocked
		}
		return nil, err
	}
	return &fileLock{f}, nil
}

// release unlocks before it closes: a child process that is being started briefly
// has a copy of the handle, which keeps the lock.
func (l *fileLock) release() error {
	return errors.Join(syscall.Flock(int(l.f.Fd()), syscall.LOCK_UN), l.f.Close())
}
