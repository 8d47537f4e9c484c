package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// stripVerb is the first argument with which the go command starts this
// program again, in front of each tool that it uses.
const stripVerb = "-strip"

// instrumentation is the flag by which the go command asks for counters that
// tell which code an input reached.
const instrumentation = "-d=libfuzzer"

// mark tells this compiler from the common one; it changes with ours.
const mark = "+porteira-fuzz-2"

// ours are the packages whose counters guide the fuzzer: this module's and the
// parsers that it relies on. The go command counts in all packages, SQLite's
// two hundred thousand places included, which makes an execution ten times
// slower, and an input interesting for how full a page of the database was.
var ours = []string{
	"main", module, "github.com/go-json-experiment/json",
	"encoding/base64", "mime", "net/netip", "net/url",
}

// guided says whether a package is one of ours.
func guided(name string) bool {
	return slices.ContainsFunc(ours, func(root string) bool {
		return name == root || strings.HasPrefix(name, root+"/") || name == root+"_test"
	})
}

// strip runs a tool with its arguments, but compiles without counters what is
// not ours. It returns the exit code.
func strip(arguments []string) int {
	tool, arguments := arguments[0], arguments[1:]
	if strings.TrimSuffix(filepath.Base(tool), ".exe") != "compile" {
		return pass(tool, arguments, os.Stdout)
	}
	if slices.Contains(arguments, "-V=full") {
		// The version is part of what the go command finds compiled packages
		// by: these must not be taken for the common ones.
		var version bytes.Buffer
		code := pass(tool, arguments, &version)
		fmt.Printf("%s %s\n", bytes.TrimSpace(version.Bytes()), mark)
		return code
	}
	if name := slices.Index(arguments, "-p"); name < 0 || !guided(arguments[name+1]) {
		arguments = slices.DeleteFunc(arguments, func(a string) bool { return a == instrumentation })
	}
	return pass(tool, arguments, os.Stdout)
}

func pass(tool string, arguments []string, out io.Writer) int {
	c := exec.Command(tool, arguments...) //nolint:noctx // the go command ends it
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, out, os.Stderr
	err := c.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return exit.ExitCode()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fuzz:", err)
		return 1
	}
	return 0
}
