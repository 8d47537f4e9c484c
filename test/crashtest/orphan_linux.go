package main

import "syscall"

// dieWithParent makes the kernel kill a child when this process dies.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
