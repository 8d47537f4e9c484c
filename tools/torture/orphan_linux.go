package main

import "syscall"

// dieWithUs lets a child be killed when this process dies, however it does.
func dieWithUs(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
