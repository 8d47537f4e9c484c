// Package cli is one file per command; parses, calls, prints.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/config"
	"github.com/porteira/porteira/internal/problem"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1 // what was asked for failed, or what was checked is faulty
	exitUsage  = 2 // the command or its configuration makes no sense
)

// Program is what a command runs in.
type Program struct {
	Args    []string // without the program's own name
	Environ []string
	Stdout  io.Writer
	Stderr  io.Writer
}

// commands is the tree of commands.
type commands struct {
	JSON bool `help:"Print JSON, for machines." name:"json"`

	Dev        devCommand        `cmd:"" help:"Run a gateway with its sandbox: no real money, nothing to set up."`
	Serve      serveCommand      `cmd:"" help:"Run a gateway in production."`
	Bank       bankCommand       `cmd:"" help:"Run the sandbox's bank as a process of its own, for several gateways to share."`
	Migrate    migrateCommand    `cmd:"" help:"Bring the database's schema up to this program's."`
	Merchant   merchantCommand   `cmd:"" help:"Create, list and close merchants."`
	Credential credentialCommand `cmd:"" help:"Create, list and revoke credentials."`
	Exceptions exceptionsCommand `cmd:"" help:"List what needs a person, and why."`
	Verify     verifyCommand     `cmd:"" help:"Prove that the books are sound, beside a running gateway."`
	Backup     backupCommand     `cmd:"" help:"Copy the SQLite database to a file, beside a running gateway."`
	Bench      benchCommands     `cmd:"" help:"Measure what a gateway can do on this machine."`
	Config     configCommand     `cmd:"" help:"Print each option, its value, and where that comes from."`
	Version    versionCommand    `cmd:"" help:"Print the version."`
}

// exit is how kong ends the program, after it has printed help.
type exit int

// errFaulty ends a command that has already told what is wrong.
var errFaulty = errors.New("cli: what was checked is faulty")

// configError is a configuration that makes no sense: exit code 2.
type configError struct{ error }

// Run runs one command and returns the program's exit code. Errors are one
// sentence each on Stderr.
func (p *Program) Run(ctx context.Context) (code int) {
	defer func() {
		if v := recover(); v != nil {
			ended, ok := v.(exit)
			if !ok {
				panic(v)
			}
			code = int(ended)
		}
	}()
	root := newCommands()
	parser, err := kong.New(root, kong.Name("porteira"),
		kong.Description("A self-hosted payment gateway for Brazil: Pix, boleto and card in, Pix out."),
		kong.Writers(p.Stdout, p.Stderr), kong.Exit(func(code int) { panic(exit(code)) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true}))
	if err != nil {
		return p.complain(err)
	}
	args := p.Args
	if len(args) == 0 {
		args = []string{"--help"}
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		p.sentence(err.Error() + "; porteira --help lists the commands")
		return exitUsage
	}
	run := &runner{Program: p, ctx: ctx, out: &printer{w: p.Stdout, json: root.JSON}}
	return p.complain(parsed.Run(run, root))
}

// complain prints an error and chooses the exit code.
func (p *Program) complain(err error) int {
	var usage configError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errFaulty):
		return exitFailed
	case errors.As(err, &usage):
		for line := range strings.SplitSeq(usage.Error(), "\n") {
			p.sentence(line)
		}
		return exitUsage
	}
	var known *problem.Error
	if errors.As(err, &known) && known.Detail != "" {
		p.sentence(known.Detail)
		return exitFailed
	}
	p.sentence(strings.TrimPrefix(err.Error(), "store: "))
	return exitFailed
}

func (p *Program) sentence(text string) {
	_, _ = fmt.Fprintln(p.Stderr, "porteira:", strings.ReplaceAll(text, "\n", "; "))
}

// runner is what a command is given.
type runner struct {
	*Program
	ctx context.Context
	out *printer
}

// load settles a command's configuration.
func (r *runner) load(m config.Mode, s *settings) (*config.Config, error) {
	cfg, err := config.Load(config.Sources{Mode: m, Environ: r.Environ, Flags: s.given()})
	if err != nil {
		return cfg, configError{err}
	}
	return cfg, nil
}

func (r *runner) log(cfg *config.Config) *slog.Logger { return app.Logger(cfg, r.Stderr) }

// heapGrowth is by how many per cent the heap may grow before garbage is
// collected: twice Go's own, as a gateway's heap is small and its time is not.
const heapGrowth = 200

// untilSignal ends with SIGINT or SIGTERM. From then on signals have their
// usual effect again, so that a second one ends the program at once.
func (r *runner) untilSignal() (context.Context, context.CancelFunc) {
	if !slices.ContainsFunc(r.Environ, func(v string) bool { return strings.HasPrefix(v, "GOGC=") }) {
		debug.SetGCPercent(heapGrowth)
	}
	ctx, stop := signal.NotifyContext(r.ctx, syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// admin opens the database, beside a gateway or alone, for the time of work.
func (r *runner) admin(s *settings, work func(a *app.Admin) error) (err error) {
	cfg, err := r.load(config.Admin, s)
	if err != nil {
		return err
	}
	a, err := app.OpenAdmin(r.ctx, cfg, r.log(cfg))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	return work(a)
}
