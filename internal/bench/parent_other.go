//go:build !linux

package bench

import "syscall"

// killWithParent does nothing: the gateway may outlive a run that is killed.
func killWithParent(*syscall.SysProcAttr) {}
