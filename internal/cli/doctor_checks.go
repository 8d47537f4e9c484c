package cli

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/query"
	"github.com/porteira/porteira/internal/store"
)

const (
	// heartbeatWait is longer than the interval of heartbeats; heartbeatStep is the polling
	// interval.
	heartbeatWait = 2500 * time.Millisecond
	heartbeatStep = 100 * time.Millisecond

	// clockTolerance is how far two clocks may differ. A limit or a signature bears more.
	clockTolerance = 5 * time.Second

	// certificateWrong and certificateNoted are how long before its end a certificate is a
	// problem, and is noted.
	certificateWrong = 7 * 24 * time.Hour
	certificateNoted = 30 * 24 * time.Hour

	// restoreNoted is how long a restore is noted.
	restoreNoted = 7 * 24 * time.Hour

	// overdueAfter is how long work may be due: a gateway that runs claims it within seconds.
	overdueAfter = 10 * time.Minute

	// feedFailures in a row mean that a list could not be read for half an hour.
	feedFailures = 10

	// inspectionMax is how long a processor is waited for.
	inspectionMax = 30 * time.Second
)

// doctor examines a database that is open, and what its accounts need.
type doctor struct {
	ctx context.Context
	a   *app.Admin
	// bank means that the settings of serve have a sandbox bank.
	bank bool
	// retired means that they have retired master keys.
	retired bool

	sandbox bool // the database is one of porteira dev, which has a bank
	running bool // a gateway is
}

// examine makes all checks. One that fails hides no other.
func (d *doctor) examine() (findings []processor.Finding) {
	for _, check := range []struct {
		name string
		of   func() ([]processor.Finding, error)
	}{
		{"database", d.database},
		{"merchants", d.merchants},
		{"master key", d.masterKey},
		{"gateways", d.gateways},
		{"clock", d.clocks},
		{"accounts", d.accounts},
		{"work", d.work},
		{"outcomes", d.unknowns},
		{"webhooks", d.webhooks},
		{"cases", d.cases},
		{"verification", d.records},
	} {
		list, err := check.of()
		if err != nil {
			list = append(list, processor.Finding{Check: check.name, Problem: detail(err), Action: "Correct the cause, and check again."})
		}
		findings = append(findings, list...)
	}
	return findings
}

// database checks what its opening has not: settings that are unsafe, another schema and another
// master key were refused there.
func (d *doctor) database() (findings []processor.Finding, err error) {
	f := processor.Finding{Check: "database", Detail: d.a.Store.Engine()}
	sandbox, err := d.a.Store.Setting(d.ctx, store.SettingSandbox)
	if err != nil {
		return nil, err
	}
	if d.sandbox = sandbox != ""; d.sandbox {
		f.Detail += ", the sandbox of porteira dev"
		f.Action = "porteira serve does not run on it: create another database with porteira migrate for production."
	}
	findings = []processor.Finding{f}
	if err := d.a.CheckRestore(); err != nil {
		findings = append(findings, processor.Finding{Check: "restore", Problem: detail(err), Action: "docs/disk.md says what follows a restore."})
	}
	inst, err := d.a.Store.ReadInstallation(d.ctx)
	if err == nil && !inst.ProvedAt.IsZero() && d.a.Clock.Now().Sub(inst.ProvedAt) < restoreNoted {
		findings = append(findings, processor.Finding{
			Check: "restore", Detail: "an older copy of the database was started at " + stamp(inst.ProvedAt) + ": secrets that were revoked or replaced after it was made are valid again",
			Action: "Compare porteira credential list and porteira audit list with what you know, and repeat what is missing (docs/disk.md).",
		})
	}
	return findings, err
}

// merchants finds those whose settings were changed outside the gateway.
func (d *doctor) merchants() (findings []processor.Finding, err error) {
	list, err := d.a.Store.Merchants(d.ctx)
	if err != nil {
		return nil, err
	}
	platform, err := d.a.Store.Merchant(d.ctx, payment.ID{})
	for _, m := range append(list, platform) {
		if m.Damaged != nil {
			findings = append(findings, processor.Finding{
				Check: "merchants", Problem: detail(m.Damaged) + ": its new orders are refused", Action: "Find out who can write to the database, and set the values right. porteira merchant accept then makes them valid.",
			})
		}
	}
	endpoints, e := d.a.Store.AllEndpoints(d.ctx)
	for i := range endpoints {
		if v := &endpoints[i]; v.Damaged != nil {
			findings = append(findings, processor.Finding{
				Check: "merchants", Problem: detail(v.Damaged) + ": it gets no event", Action: "Find out who can write to the database, and set the row right; then resolve its case with retry. Or the merchant deletes the endpoint and creates it again.",
			})
		}
	}
	return findings, errors.Join(err, e)
}

// masterKey says whether a retired master key is still needed.
func (d *doctor) masterKey() ([]processor.Finding, error) {
	f := processor.Finding{Check: "master key"}
	needed, err := d.a.Store.NeedsRekey(d.ctx)
	switch {
	case err != nil || !needed && !d.retired:
		return nil, err
	case needed:
		f.Detail, f.Action = "the database still needs a retired master key", "Run porteira rekey."
	default:
		f.Detail, f.Action = "the database needs no retired master key", "Remove retired-master-keys from the settings of all gateways; keep the keys with the backups of their time."
	}
	return []processor.Finding{f}, nil
}

// gateways reads which gateways are registered until each has written a heartbeat: one that has
// not within heartbeatWait does not run.
func (d *doctor) gateways() ([]processor.Finding, error) {
	before, err := d.a.Store.Nodes(d.ctx)
	after := before
	for waited := time.Duration(0); err == nil && waited < heartbeatWait && slices.ContainsFunc(after, silentSince(before)); waited += heartbeatStep {
		if err = d.wait(heartbeatStep); err == nil {
			after, err = d.a.Store.Nodes(d.ctx)
		}
	}
	if err != nil {
		return nil, err
	}
	findings := checkGateways(before, after, d.a.Clock.Now())
	d.running = findings[0].Problem == "" && findings[0].Action == ""
	return findings, nil
}

func (d *doctor) wait(length time.Duration) error {
	timer := d.a.Clock.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-d.ctx.Done():
		return d.ctx.Err()
	}
}

// silentSince reports whether a gateway has written no heartbeat since it was read before.
func silentSince(before []store.Node) func(n store.Node) bool {
	return func(n store.Node) bool {
		return slices.ContainsFunc(before, func(b store.Node) bool { return b.ID == n.ID && b.Heartbeat == n.Heartbeat })
	}
}

// checkGateways compares the gateways that were registered before with those now. The first
// finding says whether one runs.
func checkGateways(before, after []store.Node, now time.Time) (findings []processor.Finding) {
	running, dead, silent := 0, 0, silentSince(before)
	for _, n := range after {
		if silent(n) {
			dead++
			continue
		}
		running++
		if ahead := n.Clock.Sub(now).Round(time.Second); ahead.Abs() > clockTolerance+heartbeatWait {
			findings = append(findings, processor.Finding{
				Check: "clock", Problem: "the clock of gateway " + n.ID.String() + " and that of this machine differ by " + ahead.Abs().String(), Action: "Synchronise the clocks of all machines (NTP).",
			})
		}
	}
	f := processor.Finding{Check: "gateways", Detail: plural(running, "gateway runs", "gateways run")}
	switch {
	case running > 0: // one that is dead is released by the others within seconds
	case dead > 0:
		f.Problem, f.Action = "none runs, and "+plural(dead, "has", "have")+" ended without releasing its work", "Start a gateway: it continues that work."
	default:
		f.Detail, f.Action = "none runs", "Start one with porteira serve."
	}
	return append([]processor.Finding{f}, findings...)
}

// clocks compares the clock of this machine with that of the database's server, and with the
// last heartbeat.
func (d *doctor) clocks() ([]processor.Finding, error) {
	var server time.Duration // how far it is ahead
	began := d.a.Clock.Monotonic()
	there, ok, err := d.a.Store.ServerTime(d.ctx)
	if err != nil {
		return nil, err
	}
	if ok {
		took := d.a.Clock.Monotonic() - began
		server = there.Sub(env.Unshifted(d.a.Clock).Now().Add(-took / 2))
	}
	installation, err := d.a.Store.ReadInstallation(d.ctx)
	if err != nil {
		return nil, err
	}
	return []processor.Finding{checkClock(server, installation.UpdatedAt.Sub(d.a.Clock.Now()))}, nil
}

// checkClock checks how far the clock of the database's server, and the time of the last
// heartbeat, are ahead of this machine's clock.
func checkClock(server, heartbeat time.Duration) processor.Finding {
	f := processor.Finding{Check: "clock", Action: "Synchronise the clocks of all machines (NTP): limits, settlement, expiry and signatures depend on them."}
	switch {
	case server.Abs() > clockTolerance:
		f.Problem = "that of the database's server and that of this machine differ by " + server.Abs().Round(time.Second).String()
	case heartbeat > clockTolerance:
		f.Problem = "the last heartbeat of a gateway is " + heartbeat.Round(time.Second).String() + " ahead of this machine's clock, which is late or was set back"
	default:
		f.Action = ""
	}
	return f
}

// accounts checks each account: what stops it, its certificate, its lists, and its processor, which
// is called without an effect there.
func (d *doctor) accounts() ([]processor.Finding, error) {
	list, err := d.a.Store.Accounts(d.ctx)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return []processor.Finding{{Check: "accounts", Problem: "there is none: new orders are answered with 503", Action: "porteira account add adds one."}}, nil
	}
	facts, err := readAccountFacts(d.ctx, d.a)
	if err != nil {
		return nil, err
	}
	limited, cancel := d.a.Clock.WithTimeout(d.ctx, inspectionMax)
	defer cancel()
	inspections := make([][]processor.Finding, len(list))
	var calls sync.WaitGroup
	for i := range list {
		if suspendedByPerson(&list[i]) { // nothing is sent, and its settings may be wrong
			continue
		}
		calls.Go(func() { inspections[i] = d.a.Inspect(limited, &list[i]) })
	}
	calls.Wait()
	ends := d.a.Registry.CertificateEnds()
	var findings []processor.Finding
	for i := range list {
		v := &list[i]
		own := checkState(v)
		for _, text := range stopsOf(d.a, v, facts) {
			own = append(own, processor.Finding{Problem: text, Action: "porteira account show " + v.ID + " shows the account; porteira case list its cases."})
		}
		if end, ok := ends[v.ID]; ok {
			own = append(own, checkCertificate(v.ID, end.Sub(d.a.Clock.Now())))
		}
		if !v.Refused() && !suspendedByPerson(v) {
			own = append(own, checkFeeds(v.ID, d.a.Registry.Feeds(), failingFeeds(d.a, v.ID))...)
			for _, text := range incompleteFeeds(d.a, v.ID) {
				own = append(own, processor.Finding{Check: "lists", Detail: text, Action: "Nothing else waits for it; it is read again with the list. porteira account test " + v.ID + " says what it needs."})
			}
		}
		if app.UsesOwnBank(v) && !d.bank && !d.sandbox && v.State != payment.AccountSuspended {
			own = append(own, processor.Finding{
				Check: "bank", Problem: "it is that of the option bank, which is not set: gateways cannot open the account, and its orders are answered with 503",
				Action: "Set bank, or send orders to another account with porteira account add and porteira route set, and suspend this one.",
			})
		} else {
			own = append(own, inspections[i]...)
			r, err := query.ReadingOf(d.ctx, d.a.Store, v.ID)
			if err != nil {
				return findings, err
			}
			if f := checkGap(&r); f != nil {
				own = append(own, *f)
			}
		}
		for _, f := range own {
			f.Check = strings.TrimSuffix("account "+v.ID+", "+f.Check, ", ")
			f.Check = strings.TrimSuffix(f.Check, ", account")
			findings = append(findings, f)
		}
	}
	return findings, nil
}

func suspendedByPerson(v *store.Account) bool {
	return v.State == payment.AccountSuspended && !v.Refused()
}

// checkState warns about an account that an operator has closed to new orders.
func checkState(v *store.Account) []processor.Finding {
	if v.State == payment.AccountLive || v.Refused() {
		return nil
	}
	return []processor.Finding{{Detail: "it is " + string(v.State), Action: "porteira account resume " + v.ID + " uses it again."}}
}

// checkCertificate checks how long the certificate of an account is still valid.
func checkCertificate(id string, left time.Duration) processor.Finding {
	f := processor.Finding{Check: "certificate", Action: "Get another one from the processor: porteira account rotate " + id + " --secret certificate=@FILE."}
	switch text := plural(int(left.Abs()/(24*time.Hour)), "day", "days"); {
	case left <= 0:
		f.Problem = "it expired " + text + " ago"
	case left <= certificateWrong:
		f.Problem = "it expires in " + text
	case left <= certificateNoted:
		f.Detail = "it expires in " + text
	default:
		f.Detail, f.Action = "it expires in "+text, ""
	}
	return f
}

// checkFeeds checks whether the lists of an account are read; text says which are not, and why.
func checkFeeds(id string, feeds []store.Feed, text string) []processor.Finding {
	if text == "" {
		return nil
	}
	worst := 0
	for _, f := range feeds {
		if f.Account == id {
			worst = max(worst, f.Failures)
		}
	}
	f := processor.Finding{Check: "lists", Action: "Payments without a notice are not booked meanwhile, and reading continues. Check the processor and the network: porteira account test " + id + "."}
	if worst >= feedFailures {
		f.Problem = text
	} else {
		f.Detail = text
	}
	return []processor.Finding{f}
}
