//go:build !unix

package results

import (
	"errors"
	"os"
)

// lock does not exist where there is no flock: there nothing is recorded.
func lock(*os.File) error { return errors.New("this system has no flock") }
