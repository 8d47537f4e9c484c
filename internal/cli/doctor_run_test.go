package cli_test

import (
	"database/sql"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/porteira/porteira/internal/db/dbtest"
)

// insert adds a row to a table, with empty values in the columns that are not given.
func (s *shell) insert(table string, given map[string]string) {
	s.t.Helper()
	file := filepath.Join(s.data, "porteira.db")
	conn, err := sql.Open("sqlite", file)
	if err != nil {
		s.t.Fatal(err)
	}
	rows, err := conn.QueryContext(s.t.Context(), "SELECT name, type FROM pragma_table_info('"+table+"')")
	if err != nil {
		s.t.Fatal(err)
	}
	values := maps.Clone(given)
	for rows.Next() {
		var name, kind string
		if err := rows.Scan(&name, &kind); err != nil {
			s.t.Fatal(err)
		}
		if values[name] == "" {
			values[name] = map[string]string{"BYTEA": "x''", "TEXT": "''", "BIGINT": "0"}[kind]
			if name == "amount" {
				values[name] = "1"
			}
		}
	}
	if err := rows.Err(); err != nil {
		s.t.Fatal(err)
	}
	_ = rows.Close()
	_ = conn.Close()
	columns := slices.Sorted(maps.Keys(values))
	list := make([]string, len(columns))
	for i, name := range columns {
		list[i] = values[name]
	}
	s.exec("INSERT INTO " + table + " (" + strings.Join(columns, ", ") + ") VALUES (" + strings.Join(list, ", ") + ")")
}

// doctor runs the command with the settings of a gateway with a bank, and returns its output.
func (s *shell) doctor(code int, args ...string) string {
	s.t.Helper()
	secret := filepath.Join(s.t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("0123456789abcdef"), 0o600); err != nil {
		s.t.Fatal(err)
	}
	out, errs := s.run(code, append([]string{"doctor", "--base-url", "https://api.example", "--bank", "https://bank.example", "--bank-secret-file", secret, "--trusted-proxies", "127.0.0.0/8"}, args...)...)
	if errs != "" {
		s.t.Errorf("doctor writes %q", errs)
	}
	return out
}

const (
	merchantID  = "(SELECT id FROM merchants WHERE number = 1)"
	noteOfBank  = " note account sandbox, bank: not called: the bank is that of the gateway's configuration, which only the gateway can reach\n health in porteira account show sandbox says whether the gateway can read its lists.\n"
	noteGateway = " note gateways: none runs\n Start one with porteira serve.\n"
)

// Before the first start the doctor says step by step what is missing, and then that nothing is.
func TestDoctorBeforeTheFirstStart(t *testing.T) {
	t.Parallel()
	s := &shell{t: t, data: filepath.Join(t.TempDir(), "data")}
	out := s.doctor(1)
	for _, want := range []string{
		" ok configuration\n", " wrong disk of DATA: it cannot be written: ", " wrong database: database DATA/porteira.db not found: set its folder with --data, or its path with --database\n Correct this first: ",
		"\n\n2 problems.\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	s.run(0, "migrate")
	out = s.doctor(1)
	if want := " wrong accounts: there is none: new orders are answered with 503\n porteira account add adds one.\n"; !strings.Contains(out, want) {
		t.Errorf("%q is not in\n%s", want, out)
	}
	s.run(0, "merchant", "create", "Loja")
	out = s.doctor(0)
	disk, rest, _ := strings.Cut(out, "\n ok database")
	if !strings.HasPrefix(disk, " ok configuration\n ") || !strings.Contains(disk, " disk of DATA: ") ||
		rest != ": sqlite\n"+noteGateway+" ok clock\n ok account sandbox\n"+noteOfBank+" ok work: nothing is due for more than 10 minutes\n ok outcomes: none is unknown\n ok webhooks: 0 deliveries to come\n ok cases: 0 open cases\n"+noteRecords+"\nNo problems.\n" {
		t.Errorf("the doctor prints\n%s", out)
	}
	out, _ = s.run(1, "doctor")
	for _, want := range []string{
		" note configuration: neither base-url nor public-url is set, so checkoutUrl has the listener's own address\n Set public-url",
		" wrong account sandbox, bank: it is that of the option bank, which is not set: gateways cannot open the account, and its orders are answered with 503\n Set bank, or send orders to another account with porteira account add and porteira route set, and suspend this one.\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	s.run(0, "account", "suspend", "sandbox")
	s.doctor(0)
}

// noteRecords are the notes of an installation that was never verified or backed up.
const noteRecords = " note verification: never done\n Run porteira verify every day: it works while gateways are running.\n" +
	" note backup: none was made by porteira backup\n Run porteira backup --to FILE every day, or another backup that is consistent (docs/disk.md).\n"

// Each check finds what it is for.
func TestDoctorFinds(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.run(0, "merchant", "create", "Loja")
	due := func(more ...string) map[string]string {
		values := map[string]string{"merchant_id": merchantID, "next_at": "1"}
		for i := 0; i < len(more); i += 2 {
			values[more[i]] = "'" + more[i+1] + "'"
		}
		return values
	}
	const late, start = ": due for DAYS", "\n Start a gateway.\n"
	for _, row := range []struct {
		name   string
		args   []string
		make   func()
		remove string // SQL
		want   string
	}{
		{"risk", []string{"--listen", "0.0.0.0:8080"}, nil, "", " wrong configuration: listen serves clear text to other machines: listen on 127.0.0.1, behind a TLS proxy on this machine; or accept with accept-risk clear-text-listen that secrets"},
		{"proxy", []string{"--trusted-proxies", ""}, nil, "", " note configuration: trusted-proxies does not name a proxy on this machine: "},
		{"value", []string{"--max-in-flight", "1"}, nil, "", " wrong configuration: max-in-flight (flag): write an integer from 16 to 1000000\n porteira config --for serve prints each value and its source.\n"},
		{"payouts to send", nil, func() { s.insert("payouts", due("step", "queued", "processor", "sandbox")) }, "DELETE FROM payouts", " wrong work: payouts to send" + late + ", at sandbox" + start},
		{"payouts to look up", nil, func() { s.insert("payouts", due("step", "unknown", "processor", "sandbox")) }, "DELETE FROM payouts", " wrong work: payouts to look up" + late + ", at sandbox" + start},
		{"refunds to send", nil, func() { s.insert("refund_parts", due("step", "queued", "processor", "sandbox")) }, "DELETE FROM refund_parts", " wrong work: refunds to send" + late + ", at sandbox" + start},
		{"refunds to look up", nil, func() { s.insert("refund_parts", due("step", "unknown", "processor", "sandbox")) }, "DELETE FROM refund_parts", " wrong work: refunds to look up" + late + ", at sandbox" + start},
		{"charges", nil, func() { s.insert("charges", due("account", "sandbox")) }, "DELETE FROM charges", " wrong work: charges" + late + ", at sandbox" + start},
		{"notices", nil, func() {
			s.insert("notices", map[string]string{"next_at": "1", "processor": "'sandbox'"})
		}, "DELETE FROM notices", " wrong work: notices" + late + ", at sandbox" + start},
		{"answers", nil, func() { s.insert("dispute_answers", due("processor", "sandbox")) }, "DELETE FROM dispute_answers", " wrong work: answers to disputes" + late + ", at sandbox" + start},
		{"expiry", nil, func() { s.insert("payins", due()) }, "DELETE FROM payins", " wrong work: expiry of pay-ins" + late + start},
		{"settlement", nil, func() {
			s.insert("receivables", map[string]string{"merchant_id": merchantID, "state": "'pending'", "settles_at": "1"})
		}, "DELETE FROM receivables", " wrong work: settlement" + late + start},
		{"webhooks", nil, func() { s.insert("deliveries", due()) }, "DELETE FROM deliveries", " wrong work: webhooks" + late + start},
		{"case", nil, func() { s.openCase(1, "dispute_unexpected", "{}") }, "", " note cases: 1 open case\n porteira case list lists them, and porteira case show ID how to resolve one.\n"},
		{"stopped account", nil, func() { s.exec("UPDATE cases SET stops_account = 'sandbox'") }, "DELETE FROM cases",
			" wrong account sandbox: sends no payouts until a case is resolved: porteira case show " + caseID + "1\n porteira account show sandbox shows the account; porteira case list its cases.\n"},
		{"stopping case", nil, func() { s.openCase(1, "dispute_unexpected", "{}"); s.exec("UPDATE cases SET stops_payouts = 1") }, "DELETE FROM cases", " wrong cases: 1 case stops payouts, of 1 open case\n porteira case list lists them"},
		{"list", nil, func() {
			s.insert("feeds", map[string]string{"account": "'sandbox'", "feed": "'payments'", "failures": "10", "last_error": "'no answer'"})
		}, "DELETE FROM feeds", " wrong account sandbox, lists: these lists cannot be read: payments (10 failed reads): no answer\n Payments without a notice are not booked meanwhile"},
		{"clock", nil, func() {
			s.exec("UPDATE installation SET updated_at = 1000000 * (3600 + CAST(strftime('%s') AS INTEGER))")
		}, "UPDATE installation SET updated_at = 0", " ahead of this machine's clock, which is late or was set back\n Synchronise the clocks of all machines (NTP): "},
		{"suspended", nil, func() { s.run(0, "account", "suspend", "sandbox") }, "", " note account sandbox: it is suspended\n porteira account resume sandbox uses it again.\n"},
		{"restore", nil, s.restored, "", " wrong restore: The database was restored from a backup, and no gateway has been started on it since. Start one first: what seems not sent may have been sent.\n docs/disk.md says what follows a restore.\n"},
	} {
		if row.make != nil {
			row.make()
		}
		code := 1
		if strings.HasPrefix(row.want, " note") {
			code = 0
		}
		if out := s.doctor(code, row.args...); !strings.Contains(out, row.want) {
			t.Errorf("%s: %q is not in\n%s", row.name, row.want, out)
		}
		if row.remove != "" {
			s.exec(row.remove)
		}
	}
}

// restored writes an epoch outside the database that is ahead of its own.
func (s *shell) restored() {
	s.t.Helper()
	var id []byte
	conn, err := sql.Open("sqlite", filepath.Join(s.data, "porteira.db"))
	if err == nil {
		err = conn.QueryRowContext(s.t.Context(), "SELECT id FROM installation").Scan(&id)
		_ = conn.Close()
	}
	if err == nil {
		text := fmt.Sprintf("%x-%x-%x-%x-%x 99\n", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
		err = os.WriteFile(filepath.Join(s.data, "installation.epoch"), []byte(text), 0o600)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// After a restore the doctor names the lists that show what was undone, and credential list has the last
// change of every credential.
func TestDoctorAfterARestore(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.run(0, "merchant", "create", "Loja")
	s.run(0, "merchant", "create", "Outra")
	s.run(0, "credential", "create", "Loja", "--label", "till")
	s.run(0, "credential", "create", "Outra", "--label", "shop")
	if out := s.doctor(0); strings.Contains(out, "restore") {
		t.Errorf("before the restore:\n%s", out)
	}
	const note = " note restore: an older copy of the database was started at TIME: secrets that were revoked or replaced after it was made are valid again\n Compare porteira credential list and porteira audit list with"
	s.exec("UPDATE installation SET proved_at = 1000000 * (strftime('%s', 'now') - 3600)")
	if out := s.doctor(0); !strings.Contains(out, note) {
		t.Errorf("%q is not in\n%s", note, out)
	}
	if out, _ := s.run(0, "credential", "list"); !strings.Contains(out, "PTR Loja till ") || !strings.Contains(out, "PTR Outra shop ") || strings.Count(out, " TIME TIME ") != 2 {
		t.Errorf("the list is %q", out)
	}
	s.exec("UPDATE installation SET proved_at = proved_at - 1000000 * 8 * 24 * 3600")
	if out := s.doctor(0); strings.Contains(out, "restore") {
		t.Errorf("a week later:\n%s", out)
	}
}

// While a gateway is running, on both engines, the doctor finds it and nothing wrong; on a server
// that may lose commits it says which setting is unsafe.
func TestDoctorBesideAGateway(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		s := &shell{t: t, data: filepath.Join(t.TempDir(), "data")}
		s.dev(func(string) { s.wantRunning() })
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		url := dbtest.Postgres(t)
		s := &shell{t: t, data: filepath.Join(t.TempDir(), "data")}
		s.dev(func(string) { s.wantRunning("--database", url) }, "--database", url)
		conn, err := pgx.Connect(t.Context(), url)
		if err == nil {
			_, err = conn.Exec(t.Context(), "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database()); EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$")
			_ = conn.Close(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		out := s.doctor(1, "--database", url)
		for _, want := range []string{
			" wrong database: PostgreSQL runs with synchronous_commit=off: a crash would lose acknowledged orders; set synchronous_commit = on\n",
			" wrong database: PostgreSQL runs with transaction_read_only=on: this is a standby, or set to read only; give the address of the primary\n", "\n2 problems.\n",
		} {
			if !strings.Contains(out, want) {
				t.Errorf("%q is not in\n%s", want, out)
			}
		}
	})
}

func (s *shell) wantRunning(args ...string) {
	s.t.Helper()
	out := s.doctor(0, args...)
	for _, want := range []string{", the sandbox of porteira dev\n", " ok gateways: 1 gateway runs\n ok clock\n", "\nNo problems.\n"} {
		if !strings.Contains(out, want) {
			s.t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if out, _ := s.raw(0, append([]string{"doctor", "--json", "--trusted-proxies", "127.0.0.0/8"}, args...)...); !strings.Contains(out, `"problems": 0`) || !strings.Contains(out, `"check": "gateways",`) {
		s.t.Errorf("as JSON it is\n%s", out)
	}
}
