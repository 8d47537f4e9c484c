package cli

import (
	"errors"
	"slices"
	"strings"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// notTested is the health of an account whose processor was never called by a gateway.
const notTested = "not tested"

// healthWord is healthOf in one or two words, for a table.
func healthWord(a *app.Admin, v *store.Account, f *accountFacts) string {
	_, err := a.Registry.Of(v.ID)
	switch {
	case v.Refused():
		return "refused"
	case v.Damaged != nil, err != nil:
		return "closed"
	case waits(a, v, f):
		return "waits"
	case len(stopsOf(a, v, f)) > 0:
		return "stopped"
	case failingFeeds(a, v.ID) != "":
		return "failing"
	default:
		return healthOf(a, v, f)
	}
}

// wasCalled reports whether a gateway has read a list of an account, or tried to.
func wasCalled(a *app.Admin, id string) bool {
	return slices.ContainsFunc(a.Registry.Feeds(), func(f store.Feed) bool { return f.Account == id && (f.Failures > 0 || !f.Through.IsZero()) })
}

// healthOf is what is wrong with an account, and what to do about it; "ok" if nothing is wrong.
func healthOf(a *app.Admin, v *store.Account, f *accountFacts) string {
	list := stopsOf(a, v, f)
	if text := failingFeeds(a, v.ID); text != "" && !v.Refused() { // else its lists are not read
		list = append(list, text)
	}
	switch {
	case len(list) == 0 && !wasCalled(a, v.ID):
		return notTested
	case len(list) == 0:
		return "ok"
	}
	return strings.Join(list, "; ")
}

// stopsOf is what stops the work of an account or a part of it, and what to do about it.
func stopsOf(a *app.Admin, v *store.Account, f *accountFacts) (list []string) {
	_, err := a.Registry.Of(v.ID)
	switch {
	case v.Refused():
		list = append(list, "suspended by the gateway: the processor refuses the credentials since "+stamp(v.SuspendedAt))
	case errors.Is(v.Damaged, store.ErrChangedOutside):
		list = append(list, "its row was changed in the database, outside the gateway: find out by whom, and restore it")
	case v.Damaged != nil:
		list = append(list, "its secrets do not open: check the master key")
	case err != nil:
		list = append(list, "cannot be opened: porteira account test "+v.ID+" says why")
	}
	if waits(a, v, f) {
		list = append(list, "payouts and refunds wait since the gateway's last start, also new ones at other accounts, until this account's lists have been read"+earliest(a, v, f)+"; if a list cannot be read, compare the statement, then: porteira account resume "+v.ID+" --transfers-compared --reason TEXT --evidence TEXT")
	}
	for i := range f.stopping {
		if f.stopping[i].StopsAccount == v.ID {
			list = append(list, "sends no payouts until a case is resolved: porteira case show "+f.stopping[i].ID.String())
		}
	}
	return list
}

// earliest says how long an account waits at least, if that has not passed.
func earliest(a *app.Admin, v *store.Account, f *accountFacts) string {
	at := processor.ReadableAt(a.Registry.Find(v.ID), f.startedAt)
	if !at.After(a.Clock.Now()) {
		return ""
	}
	return ", at the earliest at " + stamp(at)
}

// waits reports whether payouts or refunds of an account wait after a cold start.
func waits(a *app.Admin, v *store.Account, f *accountFacts) bool {
	return a.Registry.Waits(v.ID) && f.frozen(v.ID)
}

// failingFeeds says which lists of an account could not be read, how often and why: those with the
// same cause together. "" if all could be read.
func failingFeeds(a *app.Admin, id string) string {
	var causes []string
	byCause := map[string][]store.Feed{}
	for _, f := range a.Registry.Feeds() {
		if f.Account != id || f.Failures == 0 {
			continue
		}
		if byCause[f.LastError] == nil {
			causes = append(causes, f.LastError)
		}
		byCause[f.LastError] = append(byCause[f.LastError], f)
	}
	list := make([]string, 0, len(causes))
	for _, cause := range causes {
		var texts []string
		for _, f := range byCause[cause] {
			text := f.Feed + " (" + plural(f.Failures, "failed read", "failed reads")
			if !f.Through.IsZero() {
				text += ", complete until " + stamp(f.Through)
			}
			texts = append(texts, text+")")
		}
		list = append(list, strings.Join(texts, ", ")+": "+cause)
	}
	if len(list) == 0 {
		return ""
	}
	return "these lists cannot be read: " + strings.Join(list, "; ")
}

// incompleteFeeds says which lists of an account lack entries, and why: the rest of them is read.
func incompleteFeeds(a *app.Admin, id string) (list []string) {
	for _, f := range a.Registry.Feeds() {
		if f.Account == id && f.Failures == 0 && f.LastError != "" {
			list = append(list, "the list "+f.Feed+" is read in part: "+f.LastError)
		}
	}
	return list
}
