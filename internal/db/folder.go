package db

import (
	"errors"
	"os"
	"path/filepath"
)

// MakeFolder creates a folder, and its missing parents, readable only by their owner.
// They are durable when it returns: without a sync of the parent, a power cut could
// lose a new folder with everything acknowledged in it.
func MakeFolder(path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	var made []string
	for at := path; ; at = filepath.Dir(at) {
		if _, err := os.Stat(at); err == nil || !errors.Is(err, os.ErrNotExist) || at == filepath.Dir(at) {
			break
		}
		made = append(made, at)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	for _, folder := range made {
		if err := SyncFolder(filepath.Dir(folder)); err != nil {
			return err
		}
	}
	return nil
}

// SyncFolder makes the names in a folder durable.
func SyncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
