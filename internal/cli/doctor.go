package cli

import (
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/config"
	"github.com/porteira/porteira/internal/processor"
)

type doctorCommand struct{ settings }

// Help says what is checked.
func (c *doctorCommand) Help() string {
	return `Before the first start and while gateways are running: the settings of
porteira serve, disk space, database, clocks, gateways, accounts at their
processors and their certificates, overdue work, and cases. It changes nothing.
The exit code is 1 if something is wrong. porteira verify checks the ledger and
the orders.`
}

// diagnosis is what the doctor prints.
type diagnosis struct {
	Findings []findingView `json:"findings"`
	Problems int           `json:"problems"`
}

// Run checks an installation. What cannot be checked because of a problem before it is not
// mentioned: the problem says so.
func (c *doctorCommand) Run(r *runner) error {
	cfg, invalid := config.Load(config.Sources{Mode: config.Serve, Environ: r.Environ, Flags: c.given()})
	findings := checkConfiguration(cfg, invalid)
	for _, folder := range foldersOf(cfg) {
		findings = append(findings, checkFolder(folder, measureFolder))
	}
	// The log of an open would repeat the findings.
	a, err := app.OpenAdmin(r.ctx, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		for line := range strings.SplitSeq(detail(err), "\n") {
			findings = append(findings, processor.Finding{
				Check: "database", Problem: line, Action: "Correct this first: clocks, gateways, accounts, work and cases are checked when the database opens.",
			})
		}
	} else {
		findings = append(findings, (&doctor{ctx: r.ctx, a: a, bank: cfg.BankURL != "", retired: cfg.RetiredMasterKeys != ""}).examine()...)
		if err := a.Close(); err != nil {
			return err
		}
	}
	d := diagnosis{Findings: []findingView{}}
	for _, f := range findings {
		d.Findings = append(d.Findings, viewFinding(f))
		if f.Problem != "" {
			d.Problems++
		}
	}
	err = r.out.show(d, func(w io.Writer) {
		printFindings(w, d.Findings)
		if d.Problems > 0 {
			_, _ = fmt.Fprintf(w, "\n%s.\n", plural(d.Problems, "problem", "problems"))
			return
		}
		_, _ = fmt.Fprintln(w, "\nNo problems.")
	})
	if err == nil && d.Problems > 0 {
		err = errDefects
	}
	return err
}

// printFindings prints one finding after the other, each with what to do about it.
func printFindings(w io.Writer, findings []findingView) {
	for _, f := range findings {
		kind, text := "ok", strings.TrimSuffix(f.Check+": "+f.Detail, ": ")
		switch {
		case f.Problem != "":
			kind, text = "wrong", f.Check+": "+f.Problem
		case f.Action != "":
			kind = "note"
		}
		_, _ = fmt.Fprintf(w, "  %-5s  %s\n", kind, oneLine(text))
		if f.Action != "" {
			_, _ = fmt.Fprintf(w, "         %s\n", oneLine(f.Action))
		}
	}
}

// checkConfiguration checks the settings of serve, as its start does.
func checkConfiguration(cfg *config.Config, invalid error) (findings []processor.Finding) {
	const check = "configuration"
	if invalid != nil {
		for line := range strings.SplitSeq(invalid.Error(), "\n") {
			findings = append(findings, processor.Finding{Check: check, Problem: line, Action: "porteira config --for serve prints each value and its source."})
		}
	}
	for _, risk := range cfg.AcceptedRisks() {
		findings = append(findings, processor.Finding{
			Check: check, Detail: "the risk " + risk.Name + " is accepted: " + risk.GivesUp, Action: "Correct the setting, and remove the risk from accept-risk.",
		})
	}
	if cfg.ProxyIsClient() {
		findings = append(findings, processor.Finding{
			Check: check, Detail: "trusted-proxies does not name a proxy on this machine: all clients behind it would have its address, for allow-lists and limits",
			Action: "Set trusted-proxies to 127.0.0.0/8,::1/128 if a TLS proxy on this machine serves the clients.",
		})
	}
	if cfg.BaseURL == "" && cfg.PublicURL == "" {
		findings = append(findings, processor.Finding{
			Check: check, Detail: "neither base-url nor public-url is set, so checkoutUrl has the listener's own address", Action: "Set public-url to an address that payers can reach, the same for all gateways of a database.",
		})
	}
	if len(findings) == 0 {
		findings = []processor.Finding{{Check: check}}
	}
	return findings
}
