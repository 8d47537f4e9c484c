package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// audited is an entry of the list.
type audited struct {
	Number                                   int64
	Actor, Action, Merchant, Subject, Reason string
	Before, After                            map[string]any
}

func (s *shell) audit(args ...string) (list []audited) {
	s.t.Helper()
	out, _ := s.raw(0, append([]string{"audit", "list", "--json"}, args...)...)
	s.must(json.Unmarshal([]byte(out), &list))
	return list
}

// everyChange is every command that changes something, in an order that works, and its entry.
var everyChange = []struct{ args, action string }{
	{"merchant create Loja", "merchant create"},
	{"merchant update Loja --city RECIFE", "merchant change"},
	{"merchant brand Loja --title T", "brand set"},
	{"merchant close Loja --yes", "merchant close"},
	{"merchant reopen Loja", "merchant reopen"},
	{"credential create Loja --json", "credential create"},
	{"credential rotate THEKEY", "credential change"},
	{"credential revoke THEKEY", "credential revoke"},
	{"limit set Loja --payout-per-day 100", "limit set"},
	{"limit set platform --approval-above 100", "limit set"},
	{"price set Loja --method PIX --basis-points 99 --fixed 10", "price set"},
	{"account add far --driver sandbox --set base-url=http://127.0.0.1:1 --secret bank-secret=env:PORTEIRA_MASTER_KEY", "account add"},
	{"account apply FILE", "account add"},
	{"account rotate far --notice-token", "account change"},
	{"account rotate far --finish --force", "account change"},
	{"account drain far", "account change"},
	{"account suspend far", "account change"},
	{"account resume far", "account change"},
	{"route set Loja far --operation payin", "route set"},
	{"case resolve CASE --how dismiss", "case resolved"},
}

// Every command that changes something takes --as and --reason, and writes an entry that names both.
func TestEveryChangeIsAudited(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	file := filepath.Join(t.TempDir(), "accounts.json")
	s.must(os.WriteFile(file, []byte(`{"accounts": [{"id": "declared", "driver": "sandbox", "settings": {"base-url": "http://127.0.0.1:2"}, "secrets": {"bank-secret": "env:PORTEIRA_MASTER_KEY"}}]}`), 0o600))
	key := ""
	for _, row := range everyChange {
		args := strings.Fields(row.args)
		id := ""
		if slices.Contains(args, "CASE") {
			id = s.openCase(1, "dispute_unexpected", `{"status":"EXPIRED"}`)
		}
		for i := range args {
			args[i] = strings.NewReplacer("THEKEY", key, "CASE", id, "FILE", file).Replace(args[i])
		}
		before := len(s.audit())
		out, _ := s.raw(0, append(args, "--as", "Ana", "--reason", "asked by phone")...)
		if args[0] == "credential" && key == "" {
			var c struct{ APIKey string }
			s.must(json.Unmarshal([]byte(out), &c))
			key = c.APIKey
		}
		list := s.audit()
		if len(list) <= before || list[0].Actor != "operator:Ana" || list[0].Reason != "asked by phone" || list[0].Action != row.action {
			t.Errorf("%s writes %+v", row.args, list[:len(list)-before])
		}
	}
	out, _ := s.run(0, "audit", "verify")
	if !strings.HasPrefix(out, "Verified ") || !strings.Contains(out, " entries: 0 defects. The last one is ") {
		t.Errorf("verify prints %q", out)
	}
	s.auditFilters()
	s.lastChanges()
	s.exec("UPDATE audit SET reason = 'another' WHERE number = 3")
	if out, _ := s.run(1, "audit", "verify"); !strings.Contains(out, "entry 3: the row was changed") {
		t.Errorf("verify prints %q", out)
	}
	if out, _ := s.run(1, "verify"); !strings.Contains(out, "entry 3: the row was changed") {
		t.Errorf("verify prints %q", out)
	}
}

// auditFilters compares the entry that each filter lists first.
func (s *shell) auditFilters() {
	s.t.Helper()
	for filter, want := range map[string]string{
		"--as АNА --limit 1":                     "case resolved", // Cyrillic
		"--merchant Loja --limit 1":              "case resolved",
		"--merchant platform --as ana --limit 1": "account change",
		"--as nobody":                            "",
		"--since 1h --as system":                 "installation create",
		"--since 2999-01-01":                     "",
	} {
		list, got := s.audit(strings.Fields(filter)...), ""
		if len(list) > 0 {
			got = list[0].Action
		}
		if filter != "--since 1h --as system" && len(list) > 1 || got != want {
			s.t.Errorf("%s lists %+v", filter, list)
		}
	}
}

// lastChanges looks for the author in the list, and where the last change is shown.
func (s *shell) lastChanges() {
	s.t.Helper()
	text, _ := s.run(0, "audit", "list", "--merchant", "Loja")
	for _, want := range []string{"TIME Ana limit set Loja payout.perDay 5000000 → 100 asked by phone\n", "TIME Ana price set Loja PIX 1-1 basisPoints 99, businessDays false,"} {
		if !strings.Contains(text, want) {
			s.t.Errorf("the list lacks %q:\n%s", want, text)
		}
	}
	for _, command := range []string{"limit show Loja", "account show far", "route list Loja", "price list Loja"} {
		if out, _ := s.run(0, strings.Fields(command)...); !strings.Contains(out, " Ana") {
			s.t.Errorf("%s names no author: %s", command, out)
		}
	}
}

// A decision about money takes the name of a person; others have the login as their default.
func TestNamesOfAuthors(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.run(0, "merchant", "create", "Loja")
	if list := s.audit(); !strings.HasPrefix(list[0].Actor, "os:") {
		t.Errorf("the default author is %q", list[0].Actor)
	}
	for _, args := range []string{
		"limit set Loja --approval-above none", "limit set Loja --approvals 1", "case resolve " + caseID + "1 --how dismiss --reason r",
		"payout approve " + caseID + "1", "merchant close Loja --yes --reason r", "payout reject " + caseID + "1", "account resume sandbox --transfers-compared --reason r --evidence e",
	} {
		if _, errs := s.run(2, strings.Fields(args)...); !strings.Contains(errs, "name yourself with --as NAME") {
			t.Errorf("%s: %q", args, errs)
		}
	}
	for _, name := range []string{"an\u200ba", "a\u202eb", "os:ana", "system"} {
		if _, errs := s.raw(2, "limit", "set", "Loja", "--payout-maximum", "5", "--as="+name); !strings.Contains(errs, "--as: ") {
			t.Errorf("%q: %q", name, errs)
		}
	}
}
