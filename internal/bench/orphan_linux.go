package bench

import "syscall"

// dieWithUs lets the gateway be killed when this process dies, however it does.
func dieWithUs(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
