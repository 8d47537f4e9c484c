//go:build !linux

package main

import "syscall"

// dieWithParent exists on Linux only: elsewhere a child may outlive this process.
func dieWithParent(*syscall.SysProcAttr) {}
