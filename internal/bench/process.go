package bench

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// unknown is a figure that this machine cannot measure.
const unknown = -1

// clockTick is the unit of CPU times in /proc: USER_HZ, which is 100 on every
// platform of Linux that Go runs on.
const clockTick = 10 * time.Millisecond

// usage is the resources that a process has used since its start. Unknown figures are
// negative.
type usage struct {
	cpu     time.Duration // of all processors
	peak    int64         // peak memory, bytes
	written int64         // bytes written to disk
}

// usageOf reads the usage of a process on Linux; elsewhere all figures are unknown.
func usageOf(pid int) usage { return readUsage("/proc", pid) }

func readUsage(proc string, pid int) usage {
	u := usage{unknown, unknown, unknown}
	if pid == 0 {
		return u
	}
	folder := filepath.Join(proc, strconv.Itoa(pid))
	if text, err := os.ReadFile(filepath.Join(folder, "stat")); err == nil {
		u.cpu = parseCPU(string(text))
	}
	if n := namedNumber(filepath.Join(folder, "status"), "VmHWM:"); n >= 0 {
		u.peak = n << 10
	}
	u.written = namedNumber(filepath.Join(folder, "io"), "write_bytes:")
	return u
}

// parseCPU reads utime and stime, fields 14 and 15 of proc_pid_stat(5). The
// second field is the program's name, which may contain spaces and brackets.
func parseCPU(stat string) time.Duration {
	_, rest, ok := strings.Cut(stat[max(strings.LastIndexByte(stat, ')'), 0):], " ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 13 {
		return unknown
	}
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	if err1 != nil || err2 != nil {
		return unknown
	}
	return time.Duration(user+system) * clockTick
}

// namedNumber reads the number after a name at the beginning of a line.
func namedNumber(path, name string) int64 {
	text, err := os.ReadFile(path)
	if err != nil {
		return unknown
	}
	for line := range bytes.Lines(text) {
		fields := bytes.Fields(line)
		if len(fields) < 2 || string(fields[0]) != name {
			continue
		}
		n, err := strconv.ParseInt(string(fields[1]), 10, 64)
		if err != nil {
			return unknown
		}
		return n
	}
	return unknown
}

// since is the usage since before.
func (u usage) since(before usage) usage {
	d := usage{unknown, u.peak, unknown}
	if u.cpu >= 0 && before.cpu >= 0 {
		d.cpu = u.cpu - before.cpu
	}
	if u.written >= 0 && before.written >= 0 {
		d.written = u.written - before.written
	}
	return d
}
