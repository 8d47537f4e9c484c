//go:build !unix

package sandboxbank

import (
	"errors"
	"os"
)

// lockFile refuses: without flock a second bank could not be kept out, so no bank
// with a journal on disk starts.
func lockFile(*os.File) error {
	return errors.New("sandboxbank: this system has no flock; run the bank in memory")
}
