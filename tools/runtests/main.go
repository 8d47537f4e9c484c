// Command runtests runs the Go tests of the product, and beside them those of the other
// modules, one package at a time. It prints one line for each package, and says in its last
// lines what was not tested and why.
//
// It takes the flags of `go test`, and is run in the folder tools:
//
//	go run ./runtests [-race] [-timeout 15m]
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
	"sync"
	"syscall"
)

// modules are the folders of the modules, from the folder tools.
var modules = []string{"..", ".", "../test/crashtest"}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	s := newSummary(os.Stdout)
	var failed, failedBeside error
	var beside sync.WaitGroup
	beside.Go(func() { // they wait for browsers and other programs most of the time
		for _, folder := range modules[1:] {
			failedBeside = errors.Join(failedBeside, runModule(ctx, s, folder, append(slices.Clone(os.Args[1:]), "-p=1")))
		}
	})
	failed = runModule(ctx, s, modules[0], os.Args[1:])
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

// runModule runs the tests of a module. Its error is one of `go test` itself,
// or of a run in which something failed.
func runModule(ctx context.Context, s *summary, folder string, flags []string) error {
	command := exec.CommandContext(ctx, "go", append(append([]string{"test", "-json"}, flags...), "./...")...)
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
