package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
)

// Kinds of processes.
const (
	kindGateway  = "gateway"
	kindBank     = "bank"
	kindReceiver = "receiver"
	kindServer   = "database server"
)

// process is a program that is killed and started again, at one address.
type process struct {
	kind      string
	label     string // unique
	args      []string
	failpoint string // path of the binary with failpoints; "" if it has none
	environ   []string
	account   *syscall.Credential // nil for our own
	folder    string              // of its log
	ready     func(ctx context.Context) bool
	needs     *database // without which it may refuse to start; nil if it needs none

	// actions of the nemeses; the supervisor runs them one at a time, while the
	// process is up.
	actions chan func()
	// suspensions are actions that the supervisor also runs while the process starts.
	suspensions chan func()
	// onEnd is called at each end, before anything else.
	onEnd func(end)

	mu    sync.Mutex
	cmd   *exec.Cmd
	life  life
	ended chan struct{} // closed when it has ended
}

// life is the state of a process between a start and its end.
type life struct {
	failpoint   string // at which it is to die
	failedSyncs int64  // of its disk, when it was started
	served      bool   // it has been ready
	killed      bool   // by SIGKILL of ours
	terminated  bool   // by SIGTERM or SIGQUIT of ours
}

// end is how a process ended.
type end struct {
	life

	process *process
	status  syscall.WaitStatus
}

// atFailpoint reports whether the process died at its failpoint.
func (e end) atFailpoint() bool {
	return e.failpoint != "" && !e.killed && e.status.Signaled() && e.status.Signal() == syscall.SIGKILL
}

func (e end) String() string {
	how := fmt.Sprintf("exit %d", e.status.ExitStatus())
	if e.status.Signaled() {
		how = e.status.Signal().String()
	}
	return e.process.label + " ended: " + how
}

// starter starts children on one thread that lives as long as this process:
// Linux takes the end of the thread that started a child for the end of its parent.
var starter = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for start := range work {
			start()
		}
	}()
	return work
})

// start runs the program. With a failpoint it dies there by itself.
func (p *process) start(failpoint string, failedSyncs int64) error {
	args, env := slices.Clone(p.args), append(environ(), p.environ...)
	if failpoint != "" {
		args[0] = p.failpoint
		env = append(env, "CRASH_AT="+failpoint)
	}
	log, err := os.OpenFile(p.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()        // the child has its own
	cmd := exec.Command(args[0], args[1:]...) //nolint:noctx // it is ended by signals
	cmd.Env, cmd.Stderr = env, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: p.account}
	dieWithParent(cmd.SysProcAttr)
	started := make(chan error)
	starter() <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		return fmt.Errorf("start %s: %w", p.label, err)
	}
	ended := make(chan struct{})
	p.mu.Lock()
	p.cmd, p.ended, p.life = cmd, ended, life{failpoint: failpoint, failedSyncs: failedSyncs}
	p.mu.Unlock()
	go func() {
		_ = cmd.Wait() // how it ended is in its state
		p.mu.Lock()
		p.cmd = nil
		e := end{p.life, p, cmd.ProcessState.Sys().(syscall.WaitStatus)}
		p.mu.Unlock()
		p.onEnd(e)
		close(ended)
	}()
	return nil
}

func (p *process) log() string { return filepath.Join(p.folder, p.label+".log") }

// signal sends a signal; false if the process does not run.
func (p *process) signal(s syscall.Signal) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return false
	}
	switch s {
	case syscall.SIGKILL:
		p.life.killed = true
	case syscall.SIGTERM, syscall.SIGQUIT:
		p.life.terminated = true
	}
	return p.cmd.Process.Signal(s) == nil
}

// kill kills the process and waits for its end. It reports whether the process was
// running.
func (p *process) kill() bool {
	found := p.signal(syscall.SIGKILL)
	<-p.end()
	return found
}

// end is closed when the process has ended.
func (p *process) end() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

// serves records that the process has become ready.
func (p *process) serves() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.life.served = true
}

// up reports whether the process runs and has been ready.
func (p *process) up() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd != nil && p.life.served
}

// pid is 0 if the process does not run.
func (p *process) pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return 0
	}
	return p.cmd.Process.Pid
}

// logTail is the end of the process's log.
func (p *process) logTail() string {
	text, err := os.ReadFile(p.log())
	if err != nil {
		return err.Error()
	}
	const most = 3000
	return string(text[max(0, len(text)-most):])
}

// Linux gives ports from 32768 on to outgoing connections, so a server that
// restarts on such a port may find it taken.
const portFirst, portCount = 20000, 12000

// addresses finds unused addresses.
func addresses(r random, count int) ([]string, error) {
	var list []string
	for range 1000 {
		l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", portFirst+r.below(portCount))) //nolint:noctx // it takes no time
		if err != nil {
			continue
		}
		defer func() { _ = l.Close() }() // only at the end, so that none is found twice
		if list = append(list, l.Addr().String()); len(list) == count {
			return list, nil
		}
	}
	return nil, errors.New("no free ports")
}
