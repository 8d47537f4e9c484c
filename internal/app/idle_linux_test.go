package app_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Limits for an idle gateway, well above its targets of almost no CPU and 60 MB.
const (
	idleFor       = 4 * time.Second
	idleBytesMax  = 120 << 20
	idleCPUMax    = 200 * time.Millisecond // of idleFor
	clockTicksSec = 100                    // USER_HZ, the same on every Linux
)

// An idle gateway needs little memory and almost no CPU.
func TestIdle(t *testing.T) {
	cluster := newCluster(t, "sqlite", 1)
	p := cluster.gateways[0]
	ready := p.start()
	if got := p.send("POST", "/payin", fmt.Sprintf(payinBody, 100, "before it idles")); got.status != 201 {
		t.Fatal(got)
	}
	wait(time.Second)
	before := cpuTime(t, p.cmd.Process.Pid)
	wait(idleFor)
	cpu, memory := cpuTime(t, p.cmd.Process.Pid)-before, memoryOf(t, p.cmd.Process.Pid)
	t.Logf("answered %v after its start on an empty folder; idle: %v of CPU in %v, %d MB resident", ready.Round(time.Millisecond), cpu, idleFor, memory>>20)
	if cpu > idleCPUMax || memory > idleBytesMax {
		t.Errorf("%v of CPU and %d bytes are too much", cpu, memory)
	}
}

// cpuTime is what a process has used, in user and kernel mode: fields 14 and
// 15 of /proc/pid/stat (proc(5)).
func cpuTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:])) // from field 3 on
	ticks := 0
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / clockTicksSec
}

// memoryOf is the resident memory of a process, in bytes.
func memoryOf(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}
