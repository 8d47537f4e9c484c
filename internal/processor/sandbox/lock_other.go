//go:build !unix

package sandbox

import (
	"errors"
	"os"
)

// lockFile refuses where there is no flock: a second bank could not be kept
// out, so none with a journal on disk starts.
func lockFile(*os.File) error {
	return errors.New("sandbox: this system has no flock; run the bank in memory")
}
