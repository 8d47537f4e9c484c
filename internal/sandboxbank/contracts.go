package sandboxbank

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// contractsMax bounds the contracts of a bank.
const contractsMax = 64

// contracts are the further contracts of a bank. Each has charges, transfers, money, lists
// and a journal of its own, and is a bank with one difference: what a repeated transfer or
// refund does. It is opened when its path is called first.
type contracts struct {
	main *Bank

	mu      sync.Mutex
	byName  map[string]*Bank
	running context.Context // of Run; nil before
	runs    sync.WaitGroup
}

// contractClock is the clock of the main bank, with its offset.
type contractClock struct {
	env.Clock

	main *Bank
}

// Now implements [env.Clock].
func (c contractClock) Now() time.Time { return c.main.Now() }

// path is the journal of a contract, beside that of the main bank.
func (c *contracts) path(repeat bankapi.Repeat, name string) string {
	if c.main.opts.Path == "" {
		return ""
	}
	return strings.TrimSuffix(c.main.opts.Path, ".journal") + "-" + string(repeat) + "." + name + ".journal"
}

// openAll opens the contracts that have a journal: their orders complete and their notices
// are sent without a call.
func (c *contracts) openAll() error {
	if c.main.opts.Path == "" {
		return nil
	}
	for _, repeat := range bankapi.Repeats {
		files, err := filepath.Glob(c.path(repeat, "*"))
		if err != nil {
			return err
		}
		for _, file := range files {
			before, after, _ := strings.Cut(c.path(repeat, "*"), "*")
			if _, err := c.get(repeat, strings.TrimSuffix(strings.TrimPrefix(file, before), after)); err != nil {
				return err
			}
		}
	}
	return nil
}

// get returns a contract, which it opens if necessary. A contract keeps its repeat.
func (c *contracts) get(repeat bankapi.Repeat, name string) (*Bank, error) {
	if !slices.Contains(bankapi.Repeats, repeat) || !bankapi.IsContractName(name) {
		return nil, bankapi.CodeRequestInvalid
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.byName[name]
	switch {
	case b != nil && b.opts.Repeat != repeat, b == nil && len(c.byName) >= contractsMax:
		return nil, bankapi.CodeRequestInvalid
	case b != nil:
		return b, nil
	}
	o := c.main.opts
	o.Path, o.Repeat, o.NotifyURL, o.Clock = c.path(repeat, name), repeat, "", contractClock{o.Clock, c.main}
	b, err := Open(o)
	if err != nil {
		return nil, err
	}
	c.byName[name] = b
	c.start(b)
	return b, nil
}

// start runs a contract if the main bank runs; the lock is held.
func (c *contracts) start(b *Bank) {
	if ctx := c.running; ctx != nil && ctx.Err() == nil {
		c.runs.Go(func() {
			if err := b.Run(ctx); err != nil && ctx.Err() == nil {
				b.opts.Log.ErrorContext(ctx, "a contract of the sandbox's bank stopped", "error", err)
			}
		})
	}
}

// run runs all contracts until ctx ends, those that are opened later too. The returned
// function waits for their end.
func (c *contracts) run(ctx context.Context) (wait func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = ctx
	for _, b := range c.byName {
		c.start(b)
	}
	return c.runs.Wait
}

func (c *contracts) each(f func(b *Bank) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, b := range c.byName {
		errs = append(errs, f(b))
	}
	return errors.Join(errs...)
}

// ServeHTTP serves /contracts/{repeat}/{name}/…, the API of a contract.
func (c *contracts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !c.main.authentic(r) { // before a contract is opened
		respond(w, nil, bankapi.CodeUnauthorized)
		return
	}
	b, err := c.get(bankapi.Repeat(r.PathValue("repeat")), r.PathValue("name"))
	if err != nil {
		respond(w, nil, err)
		return
	}
	http.StripPrefix(bankapi.ContractPath(b.opts.Repeat, r.PathValue("name")), b.handler).ServeHTTP(w, r)
}

// authentic reports whether a request has the bank's secret.
func (b *Bank) authentic(r *http.Request) bool {
	// Digests have one length, so the time of the comparison reveals nothing.
	want := sha256.Sum256([]byte("Bearer " + b.opts.Secret))
	got := sha256.Sum256([]byte(r.Header.Get("Authorization")))
	return subtle.ConstantTimeCompare(want[:], got[:]) == 1
}

// Contract returns a further contract, which it opens if necessary. A program with its own
// loop around Step steps each contract.
func (b *Bank) Contract(repeat bankapi.Repeat, name string) (*Bank, error) {
	return b.contracts.get(repeat, name)
}

// SetContractURL sets the address for the notices of a contract, as SetNotifyURL does.
func (b *Bank) SetContractURL(repeat bankapi.Repeat, name, url string) error {
	contract, err := b.contracts.get(repeat, name)
	if err == nil {
		contract.SetNotifyURL(url)
	}
	return err
}
