package bench

import "syscall"

// killWithParent makes the kernel kill the gateway when this process dies.
func killWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
