//go:build !linux

package main

import "syscall"

// dieWithUs is Linux's; elsewhere a child may outlive a killed parent.
func dieWithUs(*syscall.SysProcAttr) {}
