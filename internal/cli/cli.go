// Package cli implements the commands, one file each: parse, call, print.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/signal"
	"regexp"
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
	exitFailed = 1 // the command failed, or found defects
	exitUsage  = 2 // the command, a value or the configuration is invalid
)

// Program is the process that a command runs in.
type Program struct {
	Args    []string // without the program's own name
	Environ []string
	Stdout  io.Writer
	Stderr  io.Writer
}

// commands is the tree of commands.
type commands struct {
	JSON        bool             `help:"Print JSON for programs." name:"json"`
	ShowVersion kong.VersionFlag `help:"Print the version." name:"version"`

	Dev        devCommand        `cmd:"" help:"Run a gateway with a sandbox bank: no real money, no setup."`
	Serve      serveCommand      `cmd:"" help:"Run a gateway in production."`
	Bank       bankCommand       `cmd:"" help:"Run the sandbox's bank as a separate process that several gateways can share."`
	Migrate    migrateCommand    `cmd:"" help:"Create or upgrade the database schema."`
	Merchant   merchantCommand   `cmd:"" help:"Create, list and close merchants."`
	Credential credentialCommand `cmd:"" help:"Create, list and revoke credentials."`
	Account    accountCommand    `cmd:"" help:"Add, list, check, drain, suspend and rotate accounts at processors."`
	Route      routeCommand      `cmd:"" help:"Set, list and test the accounts of a merchant's new orders."`
	Limit      limitCommand      `cmd:"" help:"Set and show the limits of merchants' orders."`
	Payin      payinCommand      `cmd:"" help:"List and show pay-ins."`
	Payout     payoutCommand     `cmd:"" help:"List, show, approve and reject payouts."`
	Refund     refundCommand     `cmd:"" help:"List and show refunds."`
	Dispute    disputeCommand    `cmd:"" help:"List disputes, and write their defenses to files."`
	Balance    balanceCommand    `cmd:"" help:"List merchants' balances, and show all accounts of a ledger."`
	Event      eventCommand      `cmd:"" help:"List and show events."`
	Delivery   deliveryCommand   `cmd:"" help:"List and show deliveries of events."`
	Price      priceCommand      `cmd:"" help:"Set and list merchants' fees, and when their money settles."`
	Case       caseCommand       `cmd:"" help:"List, show and resolve cases for manual review."`
	Find       findCommand       `cmd:"" help:"Find an order or anything else by any id, code, document, e-mail address or Pix key."`
	Audit      auditCommand      `cmd:"" help:"List who changed what and why, and verify the record."`
	Verify     verifyCommand     `cmd:"" help:"Verify ledger, orders and events; the gateway may be running."`
	Doctor     doctorCommand     `cmd:"" help:"Check settings, disk, database, clocks, accounts, certificates and overdue work; gateways may be running."`
	Backup     backupCommand     `cmd:"" help:"Copy the SQLite database to a file; the gateway may be running."`
	Rekey      rekeyCommand      `cmd:"" help:"Seal everything with the present master key; gateways may be running."`
	Bench      benchCommand      `cmd:"" help:"Measure a gateway on this machine, over its HTTP API."`
	Config     configCommand     `cmd:"" help:"Print each option, its value and its source."`
	Version    versionCommand    `cmd:"" help:"Print the version."`
}

// exit is the panic value with which kong ends the program after it prints help.
type exit int

// errDefects ends a command that has already printed the defects.
var errDefects = errors.New("cli: defects were found")

// configError is an invalid configuration: exit code 2.
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
		kong.Description("A self-hosted payment gateway for Brazil: Pix, boleto and card in, Pix out.\n\nExit codes: 0 done, 1 failed or refused, 2 invalid usage, value or configuration."),
		kong.Vars{"version": versionLine()}, kong.Writers(p.Stdout, p.Stderr), kong.Exit(func(code int) { panic(exit(code)) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true}))
	if err != nil {
		return p.report(err)
	}
	args := p.Args
	if len(args) == 0 {
		args = []string{"--help"}
	} else if args[0] == "help" {
		args = append(args[1:len(args):len(args)], "--help")
	}
	parsed, err := parser.Parse(args)
	if err == nil {
		err = checkLists(parsed)
	}
	if err != nil {
		p.sentence(usage(err) + "; " + helpOf(err))
		return exitUsage
	}
	run := &runner{Program: p, ctx: ctx, out: &printer{w: p.Stdout, json: root.JSON}}
	return p.report(parsed.Run(run, root))
}

// checkLists refuses a list that was given without a value, as by a variable that is not set:
// an absent list may be the default, such as every address.
func checkLists(parsed *kong.Context) error {
	for _, given := range parsed.Path {
		value := given.Positional
		if given.Flag != nil {
			value = given.Flag.Value
		}
		if value == nil || !value.IsSlice() {
			continue
		}
		empty := true
		for _, element := range value.Target.Seq2() {
			empty = empty && element.IsZero()
		}
		if empty {
			return fmt.Errorf("%s: the value is empty: write one, or leave it out", value.ShortSummary())
		}
	}
	return nil
}

// report prints an error and chooses the exit code.
func (p *Program) report(err error) int {
	var usage configError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errDefects):
		return exitFailed
	case errors.As(err, &usage):
		for line := range strings.SplitSeq(usage.Error(), "\n") {
			p.sentence(line)
		}
		return exitUsage
	}
	p.sentence(detail(err))
	if known, ok := errors.AsType[*problem.Error](err); ok && known.Kind == problem.ValidationFailed {
		return exitUsage
	}
	return exitFailed
}

// detail is the text of an error for people: the detail of a problem, if it is one.
func detail(err error) string {
	var known *problem.Error
	if errors.As(err, &known) && known.Detail != "" {
		return known.Detail
	}
	return plain(err)
}

// origin is the packages at the beginning of an error's line, and the kind of an error of
// the schema or of an unsafe database, which its text explains.
var origin = regexp.MustCompile(`(?m)^(?:(?:app|bench|cluster|db|merchant|sandboxbank|store|write): )+(?:(?:schema|unsafe): )?`)

// plain is the text of an error for people.
func plain(err error) string { return origin.ReplaceAllString(err.Error(), "") }

func (p *Program) sentence(text string) {
	_, _ = fmt.Fprintln(p.Stderr, "porteira:", strings.ReplaceAll(text, "\n", "; "))
}

// runner is the environment of a command.
type runner struct {
	*Program
	ctx context.Context
	out *printer
}

// load loads a command's configuration.
func (r *runner) load(m config.Mode, s *settings) (*config.Config, error) {
	cfg, err := config.Load(config.Sources{Mode: m, Environ: r.Environ, Flags: s.given()})
	if err != nil {
		return cfg, configError{err}
	}
	return cfg, nil
}

// log returns the command's logger. It is the default too: net/http writes to that one, for
// example what a webhook's receiver sends unasked.
func (r *runner) log(cfg *config.Config) *slog.Logger {
	l := app.Logger(cfg, r.Stderr)
	slog.SetDefault(l)
	return l
}

// untilSignal returns a context that ends with SIGINT or SIGTERM. A second signal ends
// the program at once.
func (r *runner) untilSignal() (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(r.ctx, syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// admin runs work with access to the database. A gateway may be running.
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
