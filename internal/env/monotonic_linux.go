package env

import (
	"syscall"
	"time"
	"unsafe"
)

// clockBoottime is CLOCK_BOOTTIME of clock_gettime(2). Unlike CLOCK_MONOTONIC, the
// source of Go's monotonic time, it includes the time while the machine sleeps.
const clockBoottime = 7

// monotonic returns the time since the machine started. After sleep, a laptop or
// virtual machine must see that its lease has expired.
func monotonic() time.Duration {
	var t syscall.Timespec
	if _, _, errno := syscall.RawSyscall(
		syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&t)), 0,
	); errno != 0 {
		panic("env: clock_gettime(CLOCK_BOOTTIME): " + errno.Error())
	}
	return time.Duration(t.Nano())
}
