package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/porteira/porteira/internal/bench"
)

// stickPatience is how long a stick may take to serve.
const stickPatience = 10 * time.Second

// runStick starts the stick on a store of its own, measures it, and ends it.
func (t *trial) runStick(ctx context.Context, mode bench.Mode, rate int) (report *bench.Report, err error) {
	folder, err := os.MkdirTemp(t.folder, "store-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	args := []string{"-addr", address}
	if t.server != nil {
		args = append(args, "-store", "pg", "-dsn", t.server.URL())
	} else {
		args = append(args, "-store", "sqlite", "-driver", "modernc", "-file", filepath.Join(folder, "stick.db"))
	}
	cmd := exec.CommandContext(ctx, t.stick, args...)
	cmd.Dir, cmd.Stderr = folder, os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the stick: %w", err)
	}
	defer func() {
		_ = cmd.Process.Kill() // it keeps nothing that is needed
		_ = cmd.Wait()
	}()
	o := t.load(mode, rate)
	o.URL, o.Bare, o.PID = "http://"+address, true, cmd.Process.Pid
	if err := t.await(ctx, o.URL); err != nil {
		return nil, err
	}
	return bench.Run(ctx, o)
}

// await returns once somebody answers at an address.
func (t *trial) await(ctx context.Context, url string) error {
	clock := t.env.Clock
	for deadline := clock.Monotonic() + stickPatience; ; {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return err
		}
		answer, err := t.env.Processor.RoundTrip(request)
		if err == nil {
			return answer.Body.Close()
		}
		if clock.Monotonic() > deadline || ctx.Err() != nil {
			return fmt.Errorf("the stick does not serve: %w", err)
		}
		timer := clock.NewTimer(20 * time.Millisecond)
		<-timer.C()
	}
}

// freeAddress finds an address that nobody uses now.
func freeAddress(ctx context.Context) (string, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
