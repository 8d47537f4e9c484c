//go:build !unix

package db

import "errors"

// fileLock does not exist without flock: a second gateway could not be kept out,
// so none starts.
type fileLock struct{}

func lockFile(string) (*fileLock, error) {
	return nil, errors.New("this system has no flock; use PostgreSQL")
}

func (*fileLock) release() error { return nil }
