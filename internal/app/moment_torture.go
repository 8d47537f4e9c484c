//go:build torture

package app

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/porteira/porteira/internal/world"
)

// CRASH_AT="moment:n" kills the process when it comes to the moment for the
// n-th time. The name has not the prefix of settings, as it is none.
func init() {
	name, number, ok := strings.Cut(os.Getenv("CRASH_AT"), ":")
	if !ok {
		return
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 1 {
		panic(fmt.Sprintf("CRASH_AT: %q is no number of times", number))
	}
	var reached atomic.Int64
	onMoment = func(m world.Moment) error {
		if string(m) == name && reached.Add(1) == n {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // it is on its way
		}
		return nil
	}
}
