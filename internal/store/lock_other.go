//go:build !unix

package store

import "errors"

// fileLock does not exist where there is no flock: a second gateway could not
// be kept out, so none starts.
type fileLock struct{}

func lockFile(string) (*fileLock, error) {
	return nil, errors.New("this system has no flock; use PostgreSQL")
}

func (*fileLock) release() error { return nil }
