package write_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
)

// New work is refused if it would wait longer than a second, by what a batch takes at
// the time; a merchant whose own queue is short is not refused.
func TestAdmit(t *testing.T) {
	v := block(t, coretest.New(t, "sqlite"))
	busy, quiet := payment.ID{1}, payment.ID{2}
	if err := v.Writer.Admit(busy); err != nil {
		t.Errorf("refused with nothing before it: %v", err)
	}
	var last <-chan error
	for range 3 * 256 {
		last = v.queue(t.Context(), runs(busy, nothing))
	}
	v.Clock.Advance(300 * time.Millisecond)
	if err := v.Writer.Admit(busy); err != nil {
		t.Errorf("refused with 0.9 s to wait: %v", err)
	}
	v.Clock.Advance(100 * time.Millisecond)
	wantOverloaded := func(name string, wait time.Duration) {
		t.Helper()
		err := v.Writer.Admit(busy)
		if !problem.Is(err, problem.Overloaded) || problem.From(err).RetryAfter != wait {
			t.Errorf("%s: %v, want overloaded for %v", name, err, wait)
		}
	}
	wantOverloaded("with 1.2 s to wait", 1200*time.Millisecond)
	if err := v.Writer.Admit(quiet); err != nil {
		t.Errorf("a merchant with an empty queue was refused: %v", err)
	}
	v.queue(t.Context(), runs(quiet, nothing))
	if err := v.Writer.Admit(quiet); err != nil {
		t.Errorf("a merchant whose turn comes with the next batch was refused: %v", err)
	}
	wantOverloaded("with one slot of one batch less", 1200*time.Millisecond)
	for range 3 * 256 { // from now on the two share each batch
		last = v.queue(t.Context(), runs(quiet, nothing))
	}
	wantOverloaded("with half of each batch", 2400*time.Millisecond)
	v.release()
	<-last
	if err := v.Writer.Admit(busy); err != nil {
		t.Errorf("refused when all was done: %v", err)
	}
}

// An operation whose request ended while it waited is not committed: its client got an error
// or has disconnected.
func TestAbandonedWorkIsDropped(t *testing.T) {
	v := block(t, coretest.New(t, "sqlite"))
	gone, leave := context.WithCancel(t.Context())
	ran := 0
	for range 300 {
		v.queue(gone, runs(v.Merchant.ID, func() { t.Error("an operation of an ended request was committed") }))
	}
	last := v.queue(t.Context(), runs(v.Merchant.ID, func() { ran++ }))
	leave()
	v.release()
	if err := <-last; err != nil || ran != 1 {
		t.Errorf("an operation of an active request ran %d times, %v", ran, err)
	}
}

// A request does not wait for the results of workers before it, nor they for all
// requests: each batch has both.
func TestRequestsAndResultsShareBatches(t *testing.T) {
	v := block(t, coretest.New(t, "sqlite"))
	const results = 600
	var ran []string
	var all []<-chan error
	for range results {
		op := runs(v.Merchant.ID, func() { ran = append(ran, "result") })
		op.class = commit.Background
		all = append(all, v.queue(t.Context(), op))
	}
	if err := v.Writer.Admit(v.Merchant.ID); err != nil {
		t.Errorf("a request was refused because of results: %v", err)
	}
	for range 300 {
		all = append(all, v.queue(t.Context(), runs(v.Merchant.ID, func() { ran = append(ran, "request") })))
	}
	v.release()
	for _, done := range all {
		v.Must(<-done)
	}
	// 256 requests with 128 results, 44 with 128, and the rest in batches of 256.
	want := slices.Concat(slices.Repeat([]string{"request"}, 256), slices.Repeat([]string{"result"}, 128),
		slices.Repeat([]string{"request"}, 44), slices.Repeat([]string{"result"}, results-128))
	if !slices.Equal(ran, want) {
		t.Errorf("%d ran, and not in the order of requests beside results", len(ran))
	}
}

// counting counts the commits of a gateway.
func counting(commits *atomic.Int64) func(e *env.Env) {
	return func(e *env.Env) {
		e.OnFailpoint = func(f env.Failpoint) error {
			if f == env.AfterCommit {
				commits.Add(1)
			}
			return nil
		}
	}
}

// A heartbeat is in the next commit, before all waiting operations, and shares it.
func TestHeartbeatIsInTheNextCommit(t *testing.T) {
	var commits atomic.Int64
	v := block(t, coretest.New(t, "sqlite", counting(&commits)))
	before := commits.Load() // the one that is blocked comes after it
	var found store.Installation
	var failed error
	const waiting = 3 * 256
	for i := range waiting {
		run := nothing
		if i == 256 { // in the batch behind the next
			run = func() { found, failed = v.Store.ReadInstallation(context.Background()) }
		}
		v.queue(t.Context(), runs(payment.ID{}, run))
		result := runs(payment.ID{}, nothing)
		result.class = commit.Background
		v.queue(t.Context(), result)
	}
	written := make(chan error)
	go func() {
		_, err := v.Cluster.Heartbeat(t.Context())
		written <- err
	}()
	v.awaitQueued(2*waiting + 1)
	first, err := v.Store.ReadInstallation(t.Context())
	v.Must(err)
	v.release()
	v.Must(<-written)
	v.Writer.Stop()
	v.Must(failed)
	if first.Epoch+1 != found.Epoch {
		t.Errorf("the installation's epoch was %d, and then %d", first.Epoch, found.Epoch)
	}
	if got := commits.Load() - before; got != 1+5 { // 256 requests with 128 results, three times, then 256 and 128 results
		t.Errorf("%d commits", got)
	}
}

// A heartbeat does not wait for a batch whose operations are committed one by one after a
// failure.
func TestHeartbeatComesBetweenSingleCommits(t *testing.T) {
	v := block(t, coretest.New(t, "sqlite"))
	before, err := v.Store.ReadInstallation(t.Context())
	v.Must(err)
	tried, queued := make(chan struct{}), make(chan struct{})
	var last <-chan error
	early, tries := 0, 0
	for i := range 100 {
		last = v.queue(t.Context(), &work{merchant: v.Merchant.ID, decide: func(_ *store.Loaded, c *store.Changes) error {
			if i == 0 {
				if tries++; tries == 1 { // with all the others
					close(tried)
					<-queued
				}
				c.SetSetting("x", "y")
				return errBroken
			}
			now, err := v.Store.ReadInstallation(context.Background())
			if err == nil && now.Epoch == before.Epoch {
				early++
			}
			return err
		}})
	}
	v.release()
	<-tried
	written := make(chan error)
	go func() {
		_, err := v.Cluster.Heartbeat(t.Context())
		written <- err
	}()
	v.awaitQueued(1)
	close(queued)
	v.Must(<-written)
	v.Must(<-last)
	if early != 0 || tries != 2 {
		t.Errorf("%d of 100 were committed before it; the broken one was tried %d times", early, tries)
	}
}

// A writer that stops commits what is queued, and then only results of workers.
func TestStop(t *testing.T) {
	v := block(t, coretest.New(t, "sqlite"))
	last := v.queue(t.Context(), sets("queued"))
	stopped := make(chan struct{})
	go func() {
		v.Writer.Stop()
		close(stopped)
	}()
	v.release()
	v.Must(<-last)
	<-stopped
	for class, refused := range map[commit.Class]bool{commit.Interactive: true, commit.Claim: true, commit.Background: false, commit.Urgent: false} {
		op := sets("late")
		op.class = class
		if err := v.Writer.Do(t.Context(), op); problem.Is(err, problem.Unavailable) != refused || !refused && err != nil {
			t.Errorf("class %d: %v, want refused %v", class, err, refused)
		}
	}
	if !isSet(v.Gateway, "queued") || !isSet(v.Gateway, "late") {
		t.Error("an accepted operation was not committed")
	}
	if err := v.Writer.Do(t.Context(), sets("later")); err == nil || isSet(v.Gateway, "later") {
		t.Errorf("a request was committed when the writer had stopped: %v", err)
	}
}
