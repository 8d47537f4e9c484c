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
	"time"

	"github.com/porteira/porteira/tools/rig"
)

// process is a program that is killed and started again, at one address.
type process struct {
	kind    string // whose kills are counted together
	label   string // tells it from others of its kind
	args    []string
	tagged  string // the binary that heeds CRASH_AT; "" where there is none
	environ []string
	account *syscall.Credential // nil for our own
	folder  string              // where its log goes
	ready   func(ctx context.Context) bool
	needs   *database // without which it may refuse to start; nil where it needs none

	// acts are what the tormentor wants done to it; its keeper takes them.
	acts chan func()
	// onEnd is told of each end, before anybody else.
	onEnd func(end)

	mu    sync.Mutex
	cmd   *exec.Cmd
	life  life
	ended chan struct{} // closed when it has ended
}

// life is what is known of a process from one start to its end.
type life struct {
	moment string // that it is to die at
	served bool   // it has been ready
	killed bool   // by us
	told   bool   // by us, to end in order
}

// end is how a life ended.
type end struct {
	life

	process *process
	status  syscall.WaitStatus
}

// atMoment says whether the process killed itself at its moment.
func (e end) atMoment() bool {
	return e.moment != "" && !e.killed && e.status.Signaled() && e.status.Signal() == syscall.SIGKILL
}

func (e end) String() string {
	how := fmt.Sprintf("exit %d", e.status.ExitStatus())
	if e.status.Signaled() {
		how = e.status.Signal().String()
	}
	return e.process.label + " ended: " + how
}

// starter starts programs on one thread that lives as long as this process:
// Linux counts the death of the thread that started a child as its parent's.
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

// start runs the program. With a moment it dies there by itself.
func (p *process) start(moment string) error {
	args, environ := slices.Clone(p.args), append(rig.Environ(), p.environ...)
	if moment != "" {
		args[0] = p.tagged
		environ = append(environ, "CRASH_AT="+moment)
	}
	log, err := os.OpenFile(p.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()        // the child has its own
	cmd := exec.Command(args[0], args[1:]...) //nolint:noctx // it ends by signals, which is the point
	cmd.Env, cmd.Stderr = environ, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: p.account}
	dieWithUs(cmd.SysProcAttr)
	started := make(chan error)
	starter() <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		return fmt.Errorf("start %s: %w", p.label, err)
	}
	ended := make(chan struct{})
	p.mu.Lock()
	p.cmd, p.ended, p.life = cmd, ended, life{moment: moment}
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

// signal sends a signal; false if the process is not there any more.
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
		p.life.told = true
	}
	return p.cmd.Process.Signal(s) == nil
}

// kill ends the process as a power cut would, and waits until it is gone. It
// says whether the kill found it alive.
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

// serves notes that the process has become ready.
func (p *process) serves() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.life.served = true
}

// up says whether the process runs and has been ready.
func (p *process) up() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd != nil && p.life.served
}

// pid is the process's number, 0 where it is not running.
func (p *process) pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return 0
	}
	return p.cmd.Process.Pid
}

// lastWords is the end of the process's log.
func (p *process) lastWords() string {
	text, err := os.ReadFile(p.log())
	if err != nil {
		return err.Error()
	}
	const most = 2000
	return string(text[max(0, len(text)-most):])
}

// answers makes a process ready when a URL answers with a status.
func answers(url string, status int) func(ctx context.Context) bool {
	c := newCaller(2*time.Second, nil)
	return func(ctx context.Context) bool { return c.send(ctx, "GET", url, "").status == status }
}

// Linux hands out ports from 32768 on to outgoing connections, so a server that
// restarts on such a port may find it taken.
const portFirst, portCount = 20000, 12000

// addresses finds addresses that nobody uses now.
func addresses(c chance, count int) ([]string, error) {
	var list []string
	for range 1000 {
		l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", portFirst+c.below(portCount))) //nolint:noctx // it takes no time
		if err != nil {
			continue
		}
		defer func() { _ = l.Close() }() // only then, so that none is found twice
		if list = append(list, l.Addr().String()); len(list) == count {
			return list, nil
		}
	}
	return nil, errors.New("no free ports")
}
