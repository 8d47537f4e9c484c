//go:build unix

package sandboxbank

import (
	"fmt"
	"os"
	"syscall"
)

// lockFile keeps other banks away from the file until it is closed.
func lockFile(f *os.File) error {
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("%w (%s): %w", ErrJournalLocked, f.Name(), err)
	}
	return nil
}
