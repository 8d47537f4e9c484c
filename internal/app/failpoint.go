//go:build failpoint

package app

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/porteira/porteira/internal/env"
)

// CRASH_AT="failpoint:n" kills the process when it reaches the failpoint for the
// n-th time. The name has no prefix of settings, as it is no setting.
func init() {
	name, number, ok := strings.Cut(os.Getenv("CRASH_AT"), ":")
	if !ok {
		return
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 1 {
		panic(fmt.Sprintf("CRASH_AT: %q is not a count", number))
	}
	var reached atomic.Int64
	onFailpoint = func(m env.Failpoint) error {
		if string(m) == name && reached.Add(1) == n {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // the signal is on its way
		}
		return nil
	}
}
