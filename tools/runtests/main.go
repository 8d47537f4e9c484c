// Command runtests runs the Go tests of the product, and beside them those of the other
// modules, one package at a time. It prints one line for each package, and says in its last
// lines what was not tested and why.
//
// It takes the flags of `go test`, and is run in the folder tools. After each "--" come flags and
// packages of a further run. The first run omits these packages, unless the further one has -run.
//
//	go run ./runtests -timeout 15m
//	go run ./runtests -timeout 15m -- -race ./internal/commit -- -race -run 'Concurrent' ./internal/app
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// modules are the folders of the modules, from the folder tools.
var modules = []string{"..", ".", "../test/crashtest"}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	s := newSummary(os.Stdout)
	flags, further := split(os.Args[1:])
	var failedBeside error
	var beside sync.WaitGroup
	beside.Go(func() { // they wait for browsers and other programs most of the time
		for _, folder := range modules[1:] {
			failedBeside = errors.Join(failedBeside, runModule(ctx, s, folder, flags, []string{"-p=1", "./..."}))
		}
	})
	packages, failed := remaining(ctx, further)
	for _, run := range append(further, packages) {
		failed = errors.Join(failed, runModule(ctx, s, modules[0], flags, run))
	}
	beside.Wait()
	stop()
	failed = errors.Join(failed, failedBeside)
	if failed != nil {
		fmt.Println("\n" + failed.Error())
	}
	s.close()
	if failed != nil || s.failed > 0 {
		os.Exit(1)
	}
}

// split separates the arguments of the first run and of the further ones.
func split(arguments []string) (first []string, further [][]string) {
	runs := [][]string{nil}
	for _, argument := range arguments {
		if argument == "--" {
			runs = append(runs, nil)
		} else {
			runs[len(runs)-1] = append(runs[len(runs)-1], argument)
		}
	}
	return runs[0], runs[1:]
}

// remaining returns the packages of the product that no further run tests completely.
func remaining(ctx context.Context, further [][]string) ([]string, error) {
	packages, err := list(ctx, []string{"./..."})
	for _, run := range further {
		if err != nil || slices.Contains(run, "-run") {
			continue
		}
		var tested []string
		tested, err = list(ctx, slices.DeleteFunc(slices.Clone(run), func(argument string) bool { return !strings.HasPrefix(argument, "./") }))
		packages = slices.DeleteFunc(packages, func(name string) bool { return slices.Contains(tested, name) })
	}
	return packages, err
}

// list returns the names of packages of the product.
func list(ctx context.Context, patterns []string) ([]string, error) {
	command := exec.CommandContext(ctx, "go", append([]string{"list"}, patterns...)...)
	command.Dir, command.Stderr = modules[0], os.Stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	return strings.Fields(string(output)), nil
}

// runModule runs the tests of a module, with flags and packages. Its error is one of `go test` itself,
// or of a run in which something failed.
func runModule(ctx context.Context, s *summary, folder string, flags, arguments []string) error {
	command := exec.CommandContext(ctx, "go", slices.Concat([]string{"test", "-json"}, flags, arguments)...)
	command.Dir, command.Stderr = folder, os.Stderr
	output, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	read := s.read(output)
	if read != nil { // let go test end
		_, _ = io.Copy(io.Discard, output)
	}
	if err := command.Wait(); err != nil {
		return errors.Join(read, fmt.Errorf("go test in %s: %w", folder, err))
	}
	return read
}
