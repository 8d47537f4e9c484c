package bench

import (
	"os"
	"syscall"
	"time"
	"unsafe"
)

// From timerfd_create(2).
const (
	clockMonotonic = 1
	timerFlags     = syscall.O_NONBLOCK | syscall.O_CLOEXEC
)

// openKernelTimer opens a kernel timer; nil if that fails.
func openKernelTimer() *os.File {
	fd, _, errno := syscall.RawSyscall(syscall.SYS_TIMERFD_CREATE, clockMonotonic, timerFlags, 0)
	if errno != 0 {
		return nil
	}
	return os.NewFile(fd, "timerfd")
}

// waitKernelTimer sets a timer and waits until it is due; false if that fails.
func waitKernelTimer(f *os.File, d time.Duration) bool {
	raw, err := f.SyscallConn()
	if err != nil {
		return false
	}
	when := [2]syscall.Timespec{{}, syscall.NsecToTimespec(int64(d))} // no interval, then the time
	var errno syscall.Errno
	err = raw.Control(func(fd uintptr) {
		_, _, errno = syscall.RawSyscall6(syscall.SYS_TIMERFD_SETTIME, fd, 0, uintptr(unsafe.Pointer(&when)), 0, 0, 0)
	})
	if err != nil || errno != 0 {
		return false
	}
	var expirations [8]byte
	n, err := f.Read(expirations[:])
	return err == nil && n == len(expirations)
}
