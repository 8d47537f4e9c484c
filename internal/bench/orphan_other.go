//go:build !linux

package bench

import "syscall"

// dieWithUs is Linux's; elsewhere the gateway may outlive a run that is killed.
func dieWithUs(*syscall.SysProcAttr) {}
