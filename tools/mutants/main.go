// Command mutants plants bugs into this program, one at a time, and shows which
// test notices each.
//
// A bug is a small patch in patches, with a header that says what is wrong,
// where it was met in public, and which tests must notice it:
//
//	Wrong: what is held counts as available
//	Source: https://github.com/blnkfinance/blnk/issues/181
//	Test: internal/jobs TestRule09HoldsCount/sqlite
//
// First the named tests run as they are, and must pass. Then each patch is
// applied to copies of its files, which `go test -overlay` puts in the place of
// the originals: the tree is never changed. A mutant that survives, and a patch
// that does not apply or compile, is a failure.
//
// It is run in the module's folder:
//
//	go run ./tools/mutants [-only part-of-a-name] [-p 2]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/porteira/porteira/internal/env"
)

// patches is where the mutants are, below the module's folder.
const patches = "tools/mutants/patches"

func main() {
	only := flag.String("only", "", "run only mutants whose name holds `text`")
	parallel := flag.Int("p", 2, "run `n` at once")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *only, *parallel)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only string, parallel int) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	all, err := readMutants(patches)
	if err != nil {
		return err
	}
	chosen := slices.DeleteFunc(all, func(m mutant) bool { return !strings.Contains(m.name, only) })
	if len(chosen) == 0 || parallel < 1 {
		return errors.New("nothing to run")
	}
	r := &runner{root, env.NewSystemClock()}
	began := r.clock.Monotonic()
	if err := r.passAsTheyAre(ctx, chosen); err != nil {
		return err
	}
	count, err := r.tryAll(ctx, chosen, parallel)
	if err != nil {
		return err
	}
	seconds := int64((r.clock.Monotonic() - began).Round(time.Second) / time.Second)
	fmt.Printf("%d mutants, %d killed, %d seconds\n", len(chosen), count, seconds)
	if count < len(chosen) {
		return fmt.Errorf("%d of %d mutants were not killed", len(chosen)-count, len(chosen))
	}
	return nil
}

// passAsTheyAre runs the tests that the mutants name, each once, without a bug:
// one that fails anyway, or that is not there, notices nothing.
func (r *runner) passAsTheyAre(ctx context.Context, list []mutant) error {
	names := map[string][]string{}
	var folders []string
	for i := range list {
		for _, group := range list[i].tests {
			if names[group.folder] == nil {
				folders = append(folders, group.folder)
			}
			names[group.folder] = append(names[group.folder], group.names...)
		}
	}
	slices.Sort(folders)
	for _, folder := range folders {
		slices.Sort(names[folder])
		group := testGroup{folder, slices.Compact(names[folder])}
		report, err := r.test(ctx, group, "", testTimeout)
		if err != nil {
			return err
		}
		if !report.ok {
			return fmt.Errorf("without any bug %s fails\n%s", folder, report.output)
		}
		for _, name := range group.names {
			if !slices.ContainsFunc(report.ran, func(test string) bool { return strings.HasPrefix(test, name) }) {
				return fmt.Errorf("%s has no test %s", folder, name)
			}
		}
		fmt.Printf("pass as they are: %d tests of %s\n", len(report.ran), folder)
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
					fmt.Printf("%-8s %s (%.1f s) %s\n", o.verdict, m.name, o.took.Seconds(), o.by)
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
