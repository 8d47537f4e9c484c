package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/porteira/porteira/internal/env"
)

// modes are the measurements of a gateway on the store.
var modes = []string{"payin", "payout", "read"}

// measure starts a program on the store and prints, for each mode, throughput and
// latency.
func measure(ctx context.Context, o options, program string) (err error) {
	args := []string{"dev", "--json", "--listen", "127.0.0.1:0", "--data", o.data, "--log-level", "error"}
	if o.database != "" {
		args = append(args, "--database", o.database)
	}
	clock := env.NewSystemClock()
	began := clock.Monotonic()
	gateway := exec.CommandContext(ctx, program, args...)
	gateway.Stderr = os.Stderr
	gateway.Cancel = func() error { return gateway.Process.Signal(syscall.SIGTERM) }
	out, err := gateway.StdoutPipe()
	if err != nil {
		return err
	}
	if err := gateway.Start(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, gateway.Process.Signal(syscall.SIGTERM), gateway.Wait()) }()
	var ready struct {
		BaseURL string `json:"baseUrl"`
	}
	if err := json.NewDecoder(bufio.NewReader(out)).Decode(&ready); err != nil {
		return fmt.Errorf("the program did not start: %w", err)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	size, err := folderSize(o.data)
	if err != nil {
		return err
	}
	fmt.Printf("started in %v; %.1f MB in %s\n", (clock.Monotonic() - began).Round(time.Millisecond), float64(size)/1e6, o.data)
	for _, mode := range modes {
		if err := measureMode(ctx, o, program, ready.BaseURL, mode, gateway.Process.Pid); err != nil {
			return fmt.Errorf("%s: %w", mode, err)
		}
	}
	return nil
}

// measureMode runs one `porteira bench` against the gateway.
func measureMode(ctx context.Context, o options, program, url, mode string, pid int) error {
	bench := exec.CommandContext(ctx, program, "bench", mode, "--json", "--url", url, "--pid", strconv.Itoa(pid), "-d", fmt.Sprintf("%ds", o.seconds))
	bench.Stderr = os.Stderr
	text, err := bench.Output()
	if err != nil {
		return err
	}
	var report struct {
		Series []struct {
			Name      string  `json:"name"`
			PerSecond float64 `json:"perSecond"`
			Latency   struct {
				P50 float64 `json:"p50"`
				P99 float64 `json:"p99"`
			} `json:"latencyMicros"`
		} `json:"series"`
	}
	if err := json.Unmarshal(text, &report); err != nil {
		return err
	}
	for _, s := range report.Series {
		fmt.Printf("%-8s %-32s %8.0f/s  p50 %8.1f ms  p99 %8.1f ms\n", mode, s.Name, s.PerSecond, s.Latency.P50/1000, s.Latency.P99/1000)
	}
	return nil
}

// folderSize is the size of all files in a folder, in bytes.
func folderSize(folder string) (total int64, err error) {
	err = filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
	return total, err
}
