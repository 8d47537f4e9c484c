// Command porteira is a self-hosted payment gateway: main calls cli, nothing more.
package main

import (
	"context"
	"os"

	"github.com/porteira/porteira/internal/cli"
)

func main() {
	p := cli.Program{Args: os.Args[1:], Environ: os.Environ(), Stdout: os.Stdout, Stderr: os.Stderr}
	os.Exit(p.Run(context.Background()))
}
