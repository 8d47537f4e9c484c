package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// caseID is the id of a case that a test inserts.
const caseID = "00000000-0000-0000-0000-00000000000"

// openCase inserts a case of the merchant, with an id that ends in a digit.
func (s *shell) openCase(digit int, kind, params string) string {
	s.t.Helper()
	s.exec(fmt.Sprintf("INSERT INTO cases SELECT id, CAST(zeroblob(15) || x'0%d' AS BLOB), '%s', id, 1990, '%s', 0, '', '', 1700000000000000, 0 FROM merchants WHERE number = 1",
		digit, kind, params))
	return fmt.Sprint(caseID, digit)
}

func TestCaseShowAndResolve(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.run(0, "merchant", "create", "Loja")
	id := s.openCase(1, "dispute_unexpected", `{"status":"EXPIRED"}`)
	out, _ := s.run(0, "case", "show", id)
	want := "case " + id + "\nkind dispute_unexpected\nmerchant Loja\nopened TIME\namount R$ 19.90\n\n" +
		"The processor reports a dispute of an order in status EXPIRED. Nothing was posted: compare the processor's statement.\n\n" +
		"Possible resolutions:\n dismiss: the statement was compared, and nothing is to be booked.\n" +
		" porteira case resolve " + id + " --how dismiss --as NAME --reason TEXT\n"
	if out != want {
		t.Errorf("show prints\n%s\nwant\n%s", out, want)
	}
	for _, tt := range []struct {
		args, stderr string
		code         int
	}{
		{"case show 5", "porteira: \"5\" is not the id of a case: porteira case list lists open cases with their ids\n", 2},
		{"case resolve " + caseID + "9 --how dismiss --as ana --reason r", "porteira: case \"" + caseID + "9\" not found: porteira case list lists open cases with their ids\n", 1},
		{"case resolve " + id + " --how paid --as ana --reason r", "porteira: A case of kind dispute_unexpected is resolved with one of: dismiss.\n", 1},
		{"case resolve " + id + " --how dismiss --order 7 --as ana --reason r", "porteira: --order must be the id of a pay-in, not \"7\"\n", 2},
		{"case resolve " + id + " --how dismiss --as ana", "porteira: --reason: Required.\n", 2},
		{"case resolve " + id + " --how dismiss --reason r", "porteira: name yourself with --as NAME: a decision about money is recorded with the name of a person, not of a login\n", 2},
	} {
		if _, errs := s.run(tt.code, strings.Fields(tt.args)...); errs != tt.stderr {
			t.Errorf("%s: %q, want %q", tt.args, errs, tt.stderr)
		}
	}
	if out, _ := s.run(0, "case", "resolve", id, "--how", "dismiss", "--actor", "ana", "--reason", "compared"); out != "Resolved case "+id+": dismiss.\n" {
		t.Errorf("resolve prints %q", out)
	}
	if out, _ := s.run(0, "case", "list"); out != "No open cases.\n" {
		t.Errorf("list prints %q", out)
	}
	if out, _ := s.run(0, "case", "show", id); !strings.Contains(out, "closed TIME, dismiss\n") || !strings.Contains(out, "Decisions:\n 1 TIME ana resolved dismiss compared") {
		t.Errorf("show prints\n%s", out)
	}
	if _, errs := s.run(1, "case", "resolve", id, "--how", "dismiss", "--as", "ana", "--reason", "again"); !strings.HasPrefix(errs, "porteira: The case was closed at ") {
		t.Errorf("again: %q", errs)
	}
}

// A case that stops payouts is listed first, also if others are older; the list says if there are
// more.
func TestCasesThatStopPayoutsAreListedFirst(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.run(0, "merchant", "create", "Loja")
	var ids []string
	for digit := range 4 {
		ids = append(ids, s.openCase(digit+1, "dispute_unexpected", `{"status":"EXPIRED"}`))
		s.exec(fmt.Sprintf("UPDATE cases SET created_at = created_at + %d WHERE id = CAST(zeroblob(15) || x'0%d' AS BLOB)", digit, digit+1))
	}
	s.exec("UPDATE cases SET stops_account = 'sandbox' WHERE id = CAST(zeroblob(15) || x'03' AS BLOB)")
	s.exec("UPDATE cases SET stops_payouts = 1 WHERE id = CAST(zeroblob(15) || x'04' AS BLOB)")
	for limit, want := range map[string][]string{
		"4": {ids[2], "stops sending of payouts at account sandbox, until it is resolved", ids[3], "stops the merchant's payouts, until it is resolved", ids[0], ids[1], "\n4 open cases. porteira"},
		"3": {ids[2], ids[3], ids[0], "\n3 of 4 open cases. porteira"},
		"1": {ids[2], "\n1 of 4 open cases. porteira"},
	} {
		out, _ := s.run(0, "case", "list", "--limit", limit)
		if strings.Count(out, " case "+caseID) != strings.Count(strings.Join(want, " "), caseID) {
			t.Errorf("--limit %s lists\n%s", limit, out)
		}
		rest := out
		for _, part := range want {
			var found bool
			if _, rest, found = strings.Cut(rest, part); !found {
				t.Errorf("--limit %s lists\n%s\nwant %q in this order", limit, out, want)
				break
			}
		}
	}
	more := "porteira: There are more cases: --limit lists them.\n"
	if out, errs := s.run(0, "case", "list", "--limit", "3", "--json"); strings.Count(out, `"kind"`) != 3 || errs != more {
		t.Errorf("as JSON: %s%s", out, errs)
	}
}

// A case about a refund shows the refund, and each of its parts.
func TestCaseShowsARefund(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.run(0, "merchant", "create", "Loja")
	id := s.openCase(1, "refund_unknown", `{"cause":"no_answer","externalId":"d2","processor":"bank"}`)
	s.exec("INSERT INTO refunds SELECT id, id, id, 'e1', 'devolucao-7', 'api', 1990, 'PROCESSING', 2, '', '', 0, x'', 0, '', '', 0, 1700000000000000, 1700000000000000 FROM merchants WHERE number = 1")
	for i, part := range []string{"'done', 'P1', 'D1', 'paid', 'given back', 0, 1, 0, 0, 0, 0, 0, 0, x'', 0", "'unknown', '', '', '', 'timeout', 2, 2, 0, 3, 1700000000000000, 1700000001000000, 0, 0, x'', 0"} {
		s.exec(fmt.Sprintf("INSERT INTO refund_parts SELECT id, id, %d, id, x'', 'bank', 'pix-%[1]d', 'd%[1]d', 995, 0, 0, '', 0, %s, 1700000000000000, 1700000000000000 FROM merchants WHERE number = 1", i+1, part))
	}
	out, _ := s.run(0, "case", "show", id)
	for _, want := range []string{
		"refund ID\n reference devolucao-7\n externalId e1\n payin ID\n status PROCESSING\n amount R$ 19.90\n",
		"Parts:\n 1 bank d1 of payment pix-1 R$ 9.95 done paid sends: 1 given back\n 2 bank d2 of payment pix-2 R$ 9.95 unknown sends: 2, the first at TIME timeout\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("show prints\n%s\nwant\n%s", out, want)
		}
	}
	var shown struct {
		Order struct{ Type, PayinID string }
		Parts []struct{ ExternalID, Step string }
	}
	text, _ := s.raw(0, "case", "show", "--json", id)
	if err := json.Unmarshal([]byte(text), &shown); err != nil || shown.Order.Type != "refund" || shown.Order.PayinID == "" || len(shown.Parts) != 2 || shown.Parts[1].Step != "unknown" {
		t.Errorf("%v: %s", err, text)
	}
}

// A case about a damaged order shows by which ids its processor and its merchant know it.
func TestCaseShowsADamagedOrder(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.run(0, "merchant", "create", "Loja")
	id := s.openCase(1, "damaged", `{"table":"payouts"}`)
	s.exec("INSERT INTO payouts SELECT id, id, 'e1', 'saque-7', 1990, 0, 'PENDING', 'manual_review', 1, 'bank', '', 'EVP', '', 0, 'none', x'', x'', 0, 0, x'', x'00', x'', '', 0, '', '', 0, 0, x'', 0, 0, 1700000000000000, 1700000000000000 FROM merchants WHERE number = 1")
	out, _ := s.run(0, "case", "show", id)
	if want := "payout ID\n reference saque-7\n externalId e1\n processor bank\n status PENDING manual_review\n amount R$ 19.90\n"; !strings.Contains(out, want) {
		t.Errorf("show prints\n%s\nwant\n%s", out, want)
	}
	s.exec("DELETE FROM payouts")
	s.exec("INSERT INTO refunds SELECT id, id, id, 'e2', 'devolucao-7', 'api', 1990, 'PROCESSING', 2, '', '', 0, x'', 0, '', '{', 0, 1700000000000000, 1700000000000000 FROM merchants WHERE number = 1")
	s.exec("INSERT INTO refund_parts SELECT id, id, 1, id, x'', 'bank', 'pix-1', 'd1', 995, 0, 0, '{', 0, 'unknown', '', '', '', '', 2, 2, 0, 3, 1700000000000000, 1700000001000000, 0, 0, x'', 0, 1700000000000000, 1700000000000000 FROM merchants WHERE number = 1")
	out, _ = s.run(0, "case", "show", id)
	if want := "refund ID\n reference devolucao-7\n externalId e2\n status PROCESSING\n amount R$ 19.90\n"; !strings.Contains(out, want) {
		t.Errorf("show prints\n%s\nwant\n%s", out, want)
	}
}

// On a restored database that no gateway has been started on, nothing is decided: its cases do
// not show yet what the backup lacks.
func TestNothingIsDecidedBeforeARestoreIsKnown(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.run(0, "merchant", "create", "Loja")
	id := s.openCase(1, "dispute_unexpected", `{"status":"EXPIRED"}`)
	s.exec("UPDATE installation SET id = CAST(zeroblob(15) || x'07' AS BLOB), epoch = 4")
	epoch := func(n int) {
		t.Helper()
		text := fmt.Sprintf("00000000-0000-0000-0000-000000000007 %d\n", n)
		if err := os.WriteFile(filepath.Join(s.data, "installation.epoch"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	resolve := []string{"case", "resolve", id, "--how", "dismiss", "--as", "ana", "--reason", "compared"}
	epoch(5)
	if _, errs := s.run(1, resolve...); !strings.Contains(errs, "The database was restored from a backup, and no gateway has been started on it since.") {
		t.Errorf("resolve: %q", errs)
	}
	if out, _ := s.run(0, "case", "list"); !strings.Contains(out, id) && !strings.Contains(out, "1 open case") {
		t.Errorf("list prints %q", out)
	}
	epoch(4)
	s.run(0, resolve...)
}

// The second person confirms what the first one proposed.
func TestCaseOfTwoPersons(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.run(0, "merchant", "create", "Loja")
	id := s.openCase(1, "contradiction", `{"reason":"paid_after_release","status":"FAILED"}`)
	resolve := []string{"case", "resolve", id, "--how", "dismiss", "--as", "ana", "--reason", "r", "--evidence", "e"}
	out, _ := s.run(0, resolve...)
	if out != "Proposed: dismiss. Nothing has changed yet: another person must confirm it with the same command and another --as.\n" {
		t.Errorf("the first prints %q", out)
	}
	if _, errs := s.run(1, resolve...); !strings.Contains(errs, "Another person, whose name looks different, must confirm it with the same command and another --as.") {
		t.Errorf("the same person: %q", errs)
	}
	var shown struct {
		Resolutions []struct{ How, Command string }
		Decisions   []struct{ Number int64 }
	}
	text, _ := s.raw(0, "case", "show", "--json", id)
	if out, _ := s.run(0, "case", "show", id); !strings.Contains(out, ". Proposed by ") || strings.Contains(out, "Two people") {
		t.Errorf("show prints\n%s", out)
	}
	if err := json.Unmarshal([]byte(text), &shown); err != nil || len(shown.Decisions) != 1 || len(shown.Resolutions) != 2 || shown.Resolutions[1].How != "withdraw" {
		t.Errorf("%v: %s", err, text)
	}
	var done struct{ Action, Resolution string }
	text, _ = s.raw(0, append(resolve, "--as", "bia", "--json")...)
	if err := json.Unmarshal([]byte(text), &done); err != nil || done.Action != "confirmed" || done.Resolution != "dismiss" {
		t.Errorf("%v: %s", err, text)
	}
	out, _ = s.run(0, "verify", "--merchant", "Loja")
	if !strings.Contains(out, " ok decisions 2 ") || !strings.Contains(out, " last decision 2, hash ") {
		t.Errorf("verify prints\n%s", out)
	}
	s.exec("UPDATE decisions SET actor = 'eva' WHERE number = 1")
	if out, _ = s.run(1, "verify"); !strings.Contains(out, "decision 1: the row was changed") {
		t.Errorf("verify prints\n%s", out)
	}
}

// A proposal is shown with its inputs, and the command with them. The text of a processor is
// printed on one line, without control characters.
func TestCaseShowsTheProposal(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.run(0, "merchant", "create", "Loja")
	id := s.openCase(1, "unmatched_receipt", `{"externalId":"x\u001b[2J\ny","processor":"bank"}`)
	out, _ := s.run(0, "case", "show", id)
	if !strings.Contains(out, "when it came: x [2J y. It") || !strings.Contains(out, " --evidence TEXT --merchant NAME [--order PAYIN]\n") {
		t.Errorf("show prints\n%q", out)
	}
	if out, _ = s.run(0, "case", "list"); strings.ContainsAny(out, "\x1b") || !strings.Contains(out, "x [2J y") {
		t.Errorf("list prints\n%q", out)
	}
	s.run(0, "case", "resolve", id, "--how", "apply", "--as", "ana", "--reason", "r", "--evidence", "e", "--merchant", "Loja")
	out, _ = s.run(0, "case", "show", id)
	_, flags, found := strings.Cut(out, " proposed apply --merchant ")
	merchant := strings.Fields(flags + " ?")[0]
	if !found || !strings.Contains(out, " --evidence TEXT --merchant "+merchant+"\n") || !strings.Contains(out, "Proposed by ana; another person confirms it.") {
		t.Errorf("show prints\n%s", out)
	}
	s.run(0, "merchant", "create", "Outra")
	_, errs := s.run(1, "case", "resolve", id, "--how", "apply", "--as", "bia", "--reason", "r", "--evidence", "e", "--merchant", "Outra")
	if !strings.Contains(errs, "ana has proposed apply --merchant "+merchant) {
		t.Errorf("another merchant: %q", errs)
	}
	if _, errs = s.run(1, "case", "resolve", id, "--how", "apply", "--as", "bia", "--reason", "r", "--evidence", "e", "--merchant", caseID+"9"); !strings.Contains(errs, "merchant "+caseID+"9 not found") {
		t.Errorf("no merchant: %q", errs)
	}
	// The same merchant by its id: only its money is missing here.
	_, errs = s.run(1, "case", "resolve", id, "--how", "apply", "--as", "bia", "--reason", "r", "--evidence", "e", "--merchant", merchant)
	if strings.Contains(errs, "has proposed") {
		t.Errorf("by id: %q", errs)
	}
}
