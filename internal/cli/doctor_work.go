package cli

import (
	"slices"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/query"
	"github.com/porteira/porteira/internal/store"
)

const (
	// unknownTooLong is how long an outcome may be unknown: most processors answer within seconds.
	unknownTooLong = time.Hour

	// verifyNoted and backupNoted are how old the last verification and backup may be.
	verifyNoted = 7 * 24 * time.Hour
	backupNoted = 2 * 24 * time.Hour
)

// otherCauses are what to do about late work if it is not the gateway that is late.
func otherCauses(kind store.WorkKind) string {
	switch kind {
	case store.WorkExpiry, store.WorkApprovals, store.WorkSettlement:
		return ""
	case store.WorkWebhooks:
		return "Or receivers do not answer: porteira delivery list --status pending shows their hosts."
	default:
		return "Or the processor does not answer: porteira account test checks it."
	}
}

// work checks that nothing is due for long.
func (d *doctor) work() (findings []processor.Finding, err error) {
	facts, err := readAccountFacts(d.ctx, d.a)
	if err != nil {
		return nil, err
	}
	stopped := func(id string) bool {
		return d.a.Registry.Allows(id, payment.UseTransfer) != nil || d.a.Registry.Waits(id) && facts.frozen(id)
	}
	list, err := query.DueWork(d.ctx, d.a.Store, d.a.Clock.Now().Add(-overdueAfter), stopped)
	if err != nil {
		return nil, err
	}
	for i := range list {
		if len(list[i].Due) > 0 {
			findings = append(findings, overdue(&list[i], d.a.Clock.Now(), d.running))
		}
	}
	if len(findings) == 0 {
		findings = []processor.Finding{{Check: "work", Detail: "nothing is due for more than 10 minutes"}}
	}
	return findings, nil
}

// overdue is the finding about work that is due for long.
func overdue(w *query.Work, now time.Time, running bool) processor.Finding {
	f := processor.Finding{Check: "work", Problem: string(w.Kind) + ": due for " + short(now.Sub(w.Oldest())), Action: "Start a gateway."}
	var where []string
	for _, due := range w.Due {
		if due.Account != "" {
			where = append(where, due.Account)
		}
	}
	slices.Sort(where)
	if where = slices.Compact(where); len(where) > 0 {
		f.Problem += ", at " + strings.Join(where, ", ")
	}
	if running {
		f.Action = strings.TrimSpace("Gateways run, but are late: see their log, and porteira_worker_consecutive_failures in their metrics. " + otherCauses(w.Kind))
	}
	return f
}

// unknowns checks that no outcome is unknown for long.
func (d *doctor) unknowns() ([]processor.Finding, error) {
	list, err := d.a.Store.Unknowns(d.ctx)
	if err != nil {
		return nil, err
	}
	return checkUnknowns(list, d.a.Clock.Now()), nil
}

func checkUnknowns(list []store.Unknown, now time.Time) []processor.Finding {
	f := processor.Finding{Check: "outcomes", Detail: "none is unknown"}
	var texts []string
	long := false
	for _, u := range list {
		if u.Count == 0 {
			continue
		}
		text := plural(int(u.Count), u.Subject, u.Subject+"s")
		if !u.Since.IsZero() {
			text += ", the oldest for " + short(now.Sub(u.Since))
			long = long || now.Sub(u.Since) > unknownTooLong
		}
		texts = append(texts, text)
	}
	if len(texts) == 0 {
		return []processor.Finding{f}
	}
	f.Detail = "unknown: " + strings.Join(texts, "; ")
	f.Action = "Gateways look them up, and open a case if that does not help: porteira payout list --status processing, and porteira refund list --status processing."
	if long {
		f.Problem, f.Detail = f.Detail, ""
	}
	return []processor.Finding{f}
}

// webhooks says what waits to be delivered.
func (d *doctor) webhooks() ([]processor.Finding, error) {
	b, err := d.a.Store.WebhookBacklog(d.ctx)
	if err != nil {
		return nil, err
	}
	f := processor.Finding{Check: "webhooks", Detail: plural(int(b.Deliveries+b.Events), "delivery", "deliveries") + " to come"}
	if b.Disabled > 0 {
		f.Detail += ", " + plural(int(b.Disabled), "endpoint disabled", "endpoints disabled")
	}
	if b.Failing > 0 {
		f.Detail += ", " + plural(int(b.Failing), "endpoint fails", "endpoints fail")
		f.Action = "porteira delivery list --status pending shows their hosts; GET /webhook-endpoints shows their health to the merchant."
	}
	return []processor.Finding{f}, nil
}

// cases counts the cases that nobody has resolved.
func (d *doctor) cases() ([]processor.Finding, error) {
	list, err := d.a.Store.CountCases(d.ctx)
	if err != nil {
		return nil, err
	}
	open, stopping := query.CasesOpen(list)
	f := processor.Finding{Check: "cases", Detail: plural(int(open), "open case", "open cases")}
	if open > 0 {
		f.Action = "porteira case list lists them, and porteira case show ID how to resolve one."
	}
	if stopping > 0 {
		f.Problem = plural(int(stopping), "case stops payouts", "cases stop payouts") + ", of " + f.Detail
	}
	return []processor.Finding{f}, nil
}

// records says when the installation was last verified and backed up.
func (d *doctor) records() ([]processor.Finding, error) {
	if d.sandbox {
		return nil, nil
	}
	verified, err := query.LastVerified(d.ctx, d.a.Store)
	if err != nil {
		return nil, err
	}
	backup, err := query.LastBackup(d.ctx, d.a.Store)
	if err != nil {
		return nil, err
	}
	findings := []processor.Finding{checkVerified(verified, d.a.Clock.Now())}
	if d.a.Store.Engine() == "sqlite" {
		findings = append(findings, checkBackup(backup, d.a.Clock.Now()))
	}
	return findings, nil
}

func checkVerified(v query.Verified, now time.Time) processor.Finding {
	f := processor.Finding{Check: "verification"}
	switch {
	case v.At.IsZero():
		f.Detail, f.Action = "never done", "Run porteira verify every day: it works while gateways are running."
	case v.Defects > 0:
		f.Problem, f.Action = plural(v.Defects, "defect", "defects")+" found at "+stamp(v.At), "porteira verify shows them. Stop payouts, and find the cause before you change anything."
	default:
		f.Detail = "no defects at " + stamp(v.At)
		if now.Sub(v.At) > verifyNoted {
			f.Action = "Run porteira verify every day: it works while gateways are running."
		}
	}
	return f
}

func checkBackup(v query.BackedUp, now time.Time) processor.Finding {
	f := processor.Finding{Check: "backup", Detail: "the last one of porteira backup ended at " + stamp(v.At)}
	if v.At.IsZero() {
		f.Detail = "none was made by porteira backup"
	}
	if now.Sub(v.At) > backupNoted {
		f.Action = "Run porteira backup --to FILE every day, or another backup that is consistent (docs/disk.md)."
	}
	return f
}

// checkGap is the finding about an account whose processor has another balance than the ledger in every
// reading of two hours; nil if there is none.
func checkGap(r *query.Reading) *processor.Finding {
	gap, ok := r.Gap()
	if !ok || gap == 0 {
		return nil
	}
	return &processor.Finding{
		Check:   "balance",
		Problem: "the processor had " + (r.There + r.ToCome).English() + " at " + stamp(r.At) + ", the ledger " + r.Here.English() + "; no reading of two hours differed by less than " + gap.English(),
		Action:  "Something was not booked, such as money from before the account was added, or transfers in the processor's panel: compare its statement (docs/alerts.md).",
	}
}
