package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
)

// Run serves until ctx ends or a server fails, then stops in order: listeners,
// requests, background workers, commits, this node's claims, the database. Stopping
// is bounded by the configured timeout; calls in flight after that are resumed after
// the next start, or by another node.
func (a *App) Run(ctx context.Context) error {
	// Workers outlive ctx, whose end begins an orderly stop.
	alive, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	err := a.start(alive)
	if err == nil {
		err = a.serve(ctx)
	}
	if errors.Is(err, db.ErrDisk) {
		kill() // nothing can be written anymore
	}
	return errors.Join(err, a.stop(alive, kill))
}

func (a *App) start(ctx context.Context) error {
	a.core.Writer.Start()
	if a.bank != nil {
		a.bank.start(ctx, a)
	}
	if err := a.join(ctx); err == nil {
		return nil
	} else if !problem.Is(err, problem.Unavailable) {
		return err
	}
	// The database can be read but not written, for example because the disk is full.
	// Reads are served and writes refused; the workers start when writes succeed.
	a.joiner.Start(ctx)
	return nil
}

// joinLater is the step of the worker that joins the cluster if the start could not.
func (a *App) joinLater(ctx context.Context) (int, error) {
	if a.core.Node.ID() != (store.Node{}).ID {
		return 0, nil
	}
	return 0, a.join(ctx)
}

// join registers this process as a node and starts its workers.
func (a *App) join(ctx context.Context) error {
	outside, err := a.marker.Read()
	if err != nil {
		return err
	}
	// SQLite has one process: claims of any other node are stale.
	alone := !db.IsPostgres(a.cfg.Database)
	if err := a.core.Cluster.Join(ctx, outside, alone); err != nil {
		return fmt.Errorf("app: join: %w", err)
	}
	a.workers.Start(ctx)
	return nil
}

// serve runs the servers until ctx ends or one of them fails.
func (a *App) serve(ctx context.Context) error {
	failed := make(chan error, len(a.servers))
	for i, s := range a.servers {
		l := net.Listener(a.listener)
		if i > 0 {
			l = a.ops
		}
		go func() { failed <- s.Serve(l) }()
	}
	a.log.InfoContext(ctx, "serving", "address", a.Address(), "ops", a.OpsAddress(), "engine", a.store.Engine(), "node", a.core.Node.ID())
	if a.opts.Ready != nil {
		a.opts.Ready(a)
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return fmt.Errorf("app: serve: %w", err)
	case <-a.store.Ended():
		return fmt.Errorf("%w: writing has stopped; fix the disk and start again: the start rewrites acknowledged data that may not be on the disk", db.ErrDisk)
	}
}

// Shares of the shutdown timeout, for requests and then for calls of the workers. The
// rest is for releasing claims and closing.
const (
	drainPart = 5 // tenths
	callsPart = 8 // tenths, from the beginning
	// stepMin is the minimum time of each step, even past the timeout.
	stepMin = 200 * time.Millisecond
)

func (a *App) stop(ctx context.Context, kill context.CancelFunc) error {
	a.stopping.Store(true)
	a.log.Info("stopping")
	began := a.env.Clock.Monotonic()
	within := func(part int) (context.Context, context.CancelFunc) {
		left := a.cfg.ShutdownTimeout*time.Duration(part)/10 - (a.env.Clock.Monotonic() - began)
		return a.env.Clock.WithTimeout(ctx, max(left, stepMin))
	}
	var errs []error
	a.hub.Close() // or the servers would wait for pages that wait for changes
	limit, cancel := within(drainPart)
	for _, s := range a.servers {
		errs = append(errs, drain(limit, s))
	}
	cancel()

	limit, cancel = within(callsPart)
	idle := until(limit, func() {
		a.joiner.Stop() // first, because it can start the workers
		a.workers.Stop()
		a.core.Wait()
	})
	cancel()
	if !idle {
		a.log.Warn("calls were still in flight: they are resumed after the next start, or by another node")
	}
	if a.bank != nil {
		a.bank.stop()
	}

	limit, cancel = within(10)
	defer cancel()
	idle = until(limit, a.core.Writer.Stop) && idle
	if a.core.Node.ID() != (store.Node{}).ID {
		if err := a.core.Leave(limit, idle); err != nil {
			a.log.Warn("claims not released: other nodes take them over in a few seconds", "cause", err)
		}
	}
	kill()
	errs = append(errs, a.close())
	a.log.Info("stopped", "durationMicros", (a.env.Clock.Monotonic() - began).Microseconds())
	return errors.Join(errs...)
}

// drain waits for the requests of a server until ctx ends, then closes their connections.
func drain(ctx context.Context, s *http.Server) error {
	if err := s.Shutdown(ctx); err != nil {
		if closing := s.Close(); closing != nil && !errors.Is(closing, http.ErrServerClosed) {
			return fmt.Errorf("app: close server: %w", closing)
		}
	}
	return nil
}

// until waits for work or for the end of ctx, and reports whether work completed.
func until(ctx context.Context, work func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		work()
	}()
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}

// close closes the resources that New opened. It changes no field: a worker that the stop
// did not wait for may still read them.
func (a *App) close() error {
	var errs []error
	if a.listener != nil {
		_ = a.listener.Close() // fails if the server has closed it
	}
	if a.ops != nil {
		_ = a.ops.Close()
	}
	if a.bank != nil {
		errs = append(errs, a.bank.close())
	}
	for _, t := range []http.RoundTripper{a.env.Webhooks, a.env.Processor} {
		if idle, ok := t.(interface{ CloseIdleConnections() }); ok {
			idle.CloseIdleConnections()
		}
	}
	if a.store != nil {
		errs = append(errs, a.store.Close())
	}
	return errors.Join(errs...)
}
