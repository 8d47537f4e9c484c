// Command mutants seeds faults into this program, one at a time, and shows
// which test notices each.
//
// The mutants are listed in list, one file for each package that they change.
// Each names the rule about money that it breaks or the public incident that it
// repeats, an exact piece of code with its replacement, and the tests that must
// notice it. White space does not count, and the code may move within its file.
//
// First every mutant must fit the program, and the named tests must pass
// without one. Then `go test -overlay` runs the tests of each mutant on changed
// copies of its files: the tree is never changed. A mutant that survives is a
// failure.
//
// Run it in the folder tools:
//
//	go run ./mutants [-only text] [-p 2]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/porteira/porteira/internal/env"
)

func main() {
	root := flag.String("root", "..", "the repository's `folder`")
	only := flag.String("only", "", "run only mutants whose id or file contains `text`")
	parallel := flag.Int("p", 2, "run `n` at once")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *root, *only, *parallel)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root, only string, parallel int) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	all, err := readMutants(root)
	if err != nil {
		return err
	}
	if err := allFit(root, all); err != nil {
		return err
	}
	chosen := slices.DeleteFunc(all, func(m mutant) bool { return !strings.Contains(m.ID, only) && !strings.Contains(m.Edits[0].File, only) })
	if len(chosen) == 0 || parallel < 1 {
		return errors.New("nothing to run")
	}
	r := &runner{root, env.NewSystemClock()}
	began := r.clock.Monotonic()
	if err := r.passUnchanged(ctx, chosen); err != nil {
		return err
	}
	count, err := r.tryAll(ctx, chosen, parallel)
	if err != nil {
		return err
	}
	fmt.Printf("%d mutants, %d killed, %v\n", len(chosen), count, (r.clock.Monotonic() - began).Round(time.Second))
	if count < len(chosen) {
		return fmt.Errorf("%d of %d mutants were not killed", len(chosen)-count, len(chosen))
	}
	return nil
}

// allFit returns the errors of all mutants that do not fit the program.
func allFit(root string, list []mutant) error {
	var all error
	for i := range list {
		if _, err := list[i].plant(root); err != nil {
			all = errors.Join(all, fmt.Errorf("%s: %w", list[i].ID, err))
		}
	}
	return all
}

// passUnchanged runs the tests that the mutants name, each once, without a
// fault: a test that fails anyway, or does not exist, notices nothing.
func (r *runner) passUnchanged(ctx context.Context, list []mutant) error {
	names := map[string][]string{}
	for i := range list {
		for _, t := range list[i].Tests {
			words := strings.Fields(t)
			names[words[0]] = append(names[words[0]], words[1:]...)
		}
	}
	for folder, tests := range names {
		slices.Sort(tests)
		tests = slices.Compact(tests)
		report, err := r.test(ctx, folder, tests, "")
		if err != nil {
			return err
		}
		if !report.ok {
			return fmt.Errorf("without a mutant %s fails\n%s", folder, report.output)
		}
		for _, name := range tests {
			if !slices.ContainsFunc(report.ran, func(test string) bool { return strings.HasPrefix(test, name) }) {
				return fmt.Errorf("%s has no test %s", folder, name)
			}
		}
		fmt.Printf("pass unchanged: %d tests of %s\n", len(report.ran), folder)
	}
	return nil
}

// tryAll tries every mutant and counts those that were killed.
func (r *runner) tryAll(ctx context.Context, list []mutant, parallel int) (count int, err error) {
	var group sync.WaitGroup
	var mu sync.Mutex
	next := make(chan *mutant)
	for range parallel {
		group.Go(func() {
			for m := range next {
				o, tried := r.try(ctx, m)
				mu.Lock()
				if err = errors.Join(err, tried); tried == nil {
					fmt.Printf("%-8s %s (%.1f s) %s\n", o.verdict, m.ID, o.took.Seconds(), o.by)
				}
				if o.verdict == killed {
					count++
				}
				mu.Unlock()
			}
		})
	}
	for i := range list {
		if ctx.Err() != nil {
			break
		}
		next <- &list[i]
	}
	close(next)
	group.Wait()
	return count, errors.Join(err, ctx.Err())
}
