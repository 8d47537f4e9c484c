package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/porteira/porteira/internal/loop"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
)

// Run serves until ctx ends or a server fails, then stops in order: no new
// requests, the ones under way, the duties, the batches, this node's claims,
// the database. It takes no longer than the configured time to stop; what is
// then still under way is taken up after the next start, or by another node.
func (a *App) Run(ctx context.Context) error {
	// What runs must outlive ctx: its end begins an orderly stop.
	alive, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	err := a.start(alive)
	if err == nil {
		err = a.serve(ctx)
	}
	if errors.Is(err, store.ErrDisk) {
		kill() // whoever waits to write would wait in vain
	}
	return errors.Join(err, a.stop(alive, kill))
}

func (a *App) start(ctx context.Context) error {
	outside, err := a.marker.Read()
	if err != nil {
		return err
	}
	a.flow.Start()
	if a.bank != nil {
		a.bank.start(ctx, a)
	}
	if err := a.join(ctx, outside); err == nil {
		return nil
	} else if !problem.Is(err, problem.Unavailable) {
		return err
	}
	// The database can be read and not written to, as on a full disk. Reads are
	// served, writes refused, and the duties begin when that is over.
	a.joiner = loop.New(loop.Options{
		Name: "join", Every: joinEvery, MaxBackoff: joinEvery, Clock: a.env.Clock, Random: a.env.Random, Log: a.log,
		Step: func(ctx context.Context) (int, error) {
			if a.flow.Node() != (store.Node{}).ID {
				return 0, nil
			}
			return 0, a.join(ctx, outside)
		},
	})
	a.joiner.Start(ctx)
	return nil
}

// joinEvery is how often a process tries to become one that may do something
// unasked.
const joinEvery = time.Second

// join makes this process known and starts its duties.
func (a *App) join(ctx context.Context, outside int64) error {
	// SQLite has one process: whatever another one had in hand, it is gone.
	alone := !store.IsPostgres(a.cfg.Database)
	if err := a.flow.Join(ctx, outside, alone); err != nil {
		return fmt.Errorf("app: join: %w", err)
	}
	a.loops.Start(ctx)
	return nil
}

// serve runs the servers until ctx ends or one of them fails.
func (a *App) serve(ctx context.Context) error {
	failed := make(chan error, len(a.servers))
	for i, s := range a.servers {
		l := a.listener
		if i > 0 {
			l = a.ops
		}
		go func() { failed <- s.Serve(l) }()
	}
	a.log.InfoContext(ctx, "serving", "address", a.Address(), "ops", a.OpsAddress(), "engine", a.store.Engine(), "node", a.flow.Node())
	if a.opts.Ready != nil {
		a.opts.Ready(a)
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return fmt.Errorf("app: serve: %w", err)
	case <-a.store.Ended():
		return fmt.Errorf("%w: nothing more is written; see to the disk and start again, which writes anew what was acknowledged and may not be on it", store.ErrDisk)
	}
}

// Parts of the time to stop: for requests, then for calls of the duties; the
// rest is for giving claims back and closing.
const (
	drainPart = 5 // tenths
	callsPart = 8 // tenths, from the beginning
	// stepMin is what each step of the stop gets, however late it is.
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
	a.hub.Close() // whoever waits for news would be waited for
	limit, cancel := within(drainPart)
	for _, s := range a.servers {
		errs = append(errs, drain(limit, s))
	}
	cancel()

	limit, cancel = within(callsPart)
	settled := until(limit, func() {
		if a.joiner != nil {
			a.joiner.Stop() // before it can start others
		}
		a.loops.Stop()
		a.jobs.Wait()
	})
	cancel()
	if !settled {
		a.log.Warn("calls were still under way: they are taken up after the next start, or by another node")
	}
	if a.bank != nil {
		a.bank.stop()
	}

	limit, cancel = within(10)
	defer cancel()
	until(limit, a.flow.Stop)
	if a.flow.Node() != (store.Node{}).ID {
		if err := a.jobs.Leave(limit); err != nil {
			a.log.Warn("claims not given back: others take them over in a few seconds", "cause", err)
		}
	}
	kill()
	errs = append(errs, a.close())
	a.log.Info("stopped", "took", a.env.Clock.Monotonic()-began)
	return errors.Join(errs...)
}

// drain lets the requests of a server end; those that take too long are cut.
func drain(ctx context.Context, s *http.Server) error {
	if err := s.Shutdown(ctx); err != nil {
		if closing := s.Close(); closing != nil && !errors.Is(closing, http.ErrServerClosed) {
			return fmt.Errorf("app: close server: %w", closing)
		}
	}
	return nil
}

// until waits for work to end, or for ctx; it says whether work ended.
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

// close releases what New opened. It may be called again.
func (a *App) close() error {
	var errs []error
	if a.listener != nil {
		_ = a.listener.Close() // a server that ran has closed it
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
		a.store = nil
	}
	return errors.Join(errs...)
}
