package env

import (
	"syscall"
	"time"
	"unsafe"
)

// clockBoottime is CLOCK_BOOTTIME of clock_gettime(2): as CLOCK_MONOTONIC, by
// which Go's own monotonic time goes, but counting while the machine sleeps.
const clockBoottime = 7

// monotonic returns the time since the machine started. A laptop or virtual
// machine that slept through its lease must notice it on waking.
func monotonic() time.Duration {
	var t syscall.Timespec
	if _, _, errno := syscall.RawSyscall(
		syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&t)), 0,
	); errno != 0 {
		panic("env: clock_gettime(CLOCK_BOOTTIME): " + errno.Error())
	}
	return time.Duration(t.Nano())
}
