package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/tools/disk/faultdisk"
	"github.com/porteira/porteira/tools/rig"
)

// clock is the machine's: what is tried has no other.
var clock = env.NewSystemClock()

// wait passes time; false if ctx ended first.
func wait(ctx context.Context, d time.Duration) bool {
	timer := clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-ctx.Done():
		return false
	}
}

// fit says whether a disk of ours can be mounted here.
func fit() error {
	folder, err := os.MkdirTemp("", "porteira-disk-fit-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(folder) }()
	m, err := faultdisk.New(1).Mount(folder)
	if err != nil {
		return fmt.Errorf("%w: it needs Linux, /dev/fuse and the right to mount (as root): %w", errUnfit, err)
	}
	return m.Unmount()
}

// build builds the gateway. What remove returns from takes it away.
func build(ctx context.Context) (path string, remove func(), err error) {
	folder, err := os.MkdirTemp("", "porteira-disk-bin-")
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(folder) }
	path = filepath.Join(folder, "porteira")
	// Named by its import path, it is found from any folder of the module.
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, "github.com/porteira/porteira/cmd/porteira")
	if out, err := cmd.CombinedOutput(); err != nil {
		remove()
		return "", nil, fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, remove, nil
}

// program is one that is started and killed, again and again.
type program struct {
	args    []string
	account *syscall.Credential // nil for our own
	log     string
	cmd     *exec.Cmd
	ended   chan struct{}
}

func (p *program) start() error {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()             // the child has its own
	p.cmd = exec.Command(p.args[0], p.args[1:]...) //nolint:noctx // it ends by signals, which is the point
	p.cmd.Env, p.cmd.Stderr = append(rig.Environ(), "LC_ALL=C"), log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: p.account}
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.args[0], err)
	}
	ended := make(chan struct{})
	p.ended = ended
	go func(cmd *exec.Cmd) {
		_ = cmd.Wait() // how it ended is in its state
		close(ended)
	}(p.cmd)
	return nil
}

// gone says whether the program has ended by itself.
func (p *program) gone() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// end sends a signal to the program, and to its children too where that is
// SIGKILL, and waits.
func (p *program) end(s syscall.Signal) {
	if p.cmd == nil {
		return
	}
	p.signal(s)
	<-p.ended
	p.cmd = nil
}

func (p *program) signal(s syscall.Signal) {
	if p.gone() {
		return
	}
	pid := p.cmd.Process.Pid
	if s == syscall.SIGKILL {
		pid = -pid
	}
	_ = syscall.Kill(pid, s) // it may have ended
}

// lastWords is the end of the program's log.
func (p *program) lastWords() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return ""
	}
	const most = 3000
	return string(text[max(0, len(text)-most):])
}

// Linux hands out ports from 32768 on to outgoing connections, so a server that
// restarts on such a port may find it taken.
const portFirst, portCount = 20000, 12000

// address finds an address that nobody uses now.
func address(random env.Random) (string, error) {
	for range 1000 {
		l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", portFirst+random.Int64N(portCount))) //nolint:noctx // it takes no time
		if err == nil {
			return l.Addr().String(), l.Close()
		}
	}
	return "", errors.New("no free port")
}
