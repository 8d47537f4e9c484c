package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/db/dbtest"
)

// TestMain gives the test binary the roles of the command.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && roles[os.Args[1]] != nil {
		if err := command(context.Background(), os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(exitError)
		}
		return
	}
	os.Exit(dbtest.Main(m))
}

// testKills is the number of kills per engine in each run of the tests; make crashtest
// does more.
const testKills = 10

// The binary, its bank, its receivers and its database are killed under load, and the
// records match.
func TestKills(t *testing.T) {
	dbtest.Postgres(t) // without PostgreSQL it skips or fails the test
	built, remove, err := build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer remove()
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			var out bytes.Buffer
			o, err := parse([]string{"-engine", engine, "-kills", fmt.Sprint(testKills)}, &out)
			if err != nil {
				t.Fatal(err)
			}
			o.programs = built
			total := newTotals(engine)
			if err := runKills(t.Context(), o, total); err != nil {
				t.Fatalf("%v\n%s", err, out.String())
			}
			printTotals(&out, []*totals{total})
			t.Log("\n" + out.String())
			if n := total.sum("kills"); n < testKills {
				t.Errorf("%d kills", n)
			}
		})
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		line  string
		valid bool
	}{
		{"-kills 3", true},
		{"-for 1m -engine sqlite -seed 7", true},
		{"-kills 3 -engine postgres -gateways 2", true},
		{"-kills 3 -only kill,network", true},
		{"-for 1s -only bank", true},
		{"-disk all", true},
		{"-disk power,fsync -rounds 2 -engine postgres", true},
		{"", false},
		{"-kills 3 -for 1m", false},
		{"-kills 3 -disk all", false},
		{"-kills 3 -engine oracle", false},
		{"-kills 3 -gateways 2", false}, // on SQLite too
		{"-kills 3 -engine postgres -gateways 3", false},
		{"-kills 3 -only flood", false},
		{"-kills 3 -only bank", false}, // which kills nothing
		{"-disk flood", false},
		{"-disk power -rounds 0", false},
		{"-disk power -only kill", false},
		{"-kills many", false},
		{"-kills 3 more", false},
	} {
		o, err := parse(strings.Fields(test.line), &bytes.Buffer{})
		if (err == nil) != test.valid || err != nil && !errors.Is(err, errUsage) || err == nil && o.seed == 0 {
			t.Errorf("%q: %+v, %v", test.line, o, err)
		}
	}
	var out bytes.Buffer
	if o, err := parse([]string{"-h"}, &out); o != nil || err != nil {
		t.Errorf("-h: %+v, %v", o, err)
	}
	for _, word := range []string{"-kills", "-disk", "overload", "failpoint", "Exit status"} {
		if !strings.Contains(out.String(), word) {
			t.Errorf("the help lacks %s:\n%s", word, out.String())
		}
	}
}

// The command that a run prints repeats it.
func TestRepetition(t *testing.T) {
	t.Parallel()
	o, err := parse(strings.Fields("-kills 3 -engine postgres -gateways 1 -only kill,stop -seed 5"), &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	line := strings.TrimPrefix(o.repetition(postgres, 5), "crashtest ")
	again, err := parse(strings.Fields(line), &bytes.Buffer{})
	if err != nil || again.killCount != 3 || again.gatewayCount != 1 || again.seed != 5 || !slices.Equal(again.faults, o.faults) || !slices.Equal(again.engines, o.engines) {
		t.Errorf("%q: %+v, %v", line, again, err)
	}
}

// A refusal must have Retry-After, as in the contract.
func TestObjection(t *testing.T) {
	t.Parallel()
	const kind, doc = "application/problem+json", `{"code":"unavailable"}`
	for _, c := range []struct {
		kind       string
		got        reply
		bankFaults bool
		fine       bool
	}{
		{payin, reply{}, false, true}, // no answer
		{payin, reply{status: 503, contentType: kind, retryAfter: "1", body: []byte(doc)}, false, true},
		{payin, reply{status: 504, contentType: kind, body: []byte(`{"code":"processor_timeout"}`)}, false, true},
		{payout, reply{status: 504, contentType: kind, body: []byte(`{"code":"processor_timeout"}`)}, true, false},
		{payin, reply{status: 502, contentType: kind, body: []byte(`{"code":"processor_refused"}`)}, true, true},
		{payin, reply{status: 502, contentType: kind, body: []byte(`{"code":"processor_refused"}`)}, false, false},
		{payout, reply{status: 502, contentType: kind, body: []byte(`{"code":"processor_refused"}`)}, true, false},
		{payin, reply{status: 503, contentType: kind, body: []byte(doc)}, true, false},
		{payin, reply{status: 503, contentType: kind, retryAfter: "0", body: []byte(doc)}, true, false},
		{payin, reply{status: 503, contentType: kind, retryAfter: "soon", body: []byte(doc)}, true, false},
		{payin, reply{status: 503, contentType: "text/plain", retryAfter: "1", body: []byte(doc)}, true, false},
		{payin, reply{status: 503, contentType: kind, retryAfter: "1"}, true, false},
		{payin, reply{status: 500, contentType: kind, body: []byte(doc)}, true, false},
		{payin, reply{status: 200}, true, false},
	} {
		if text := objection(c.kind, c.got, c.bankFaults); (text == "") != c.fine {
			t.Errorf("%s answered %+v: %q", c.kind, c.got, text)
		}
	}
}

// An order that was placed while nothing could be written, and acknowledged in that
// time, is a violation; one that was placed before or acknowledged after is not.
func TestNotAcknowledged(t *testing.T) {
	t.Parallel()
	c := &clients{}
	for _, times := range [][2]time.Duration{{5, 15}, {12, 18}, {15, 25}} {
		c.acks = append(c.acks, &orderTimes{kind: payin, reference: fmt.Sprint(times), placed: times[0], acked: times[1]})
	}
	d := &diskRun{run: &run{clients: c}}
	d.notAcknowledged(10, 20)
	if len(d.violations) != 1 || !strings.Contains(d.violations[0].String(), "[12ns 18ns]") {
		t.Errorf("found %v", d.violations)
	}
}

// A retry that fails at any time of the wait for its end is due again before the wait is
// over: waits of the schedule pass by the sandbox's clock, which never stands still.
func TestClockOutrunsRetries(t *testing.T) {
	t.Parallel()
	const longRetry = 5*time.Hour + 30*time.Minute // 5 h, give or take a tenth
	looks := int(finalMax / finalLook)
	for failed := range looks * 2 / 3 {
		advanced := time.Duration(looks-failed) * advanceStep
		if advanced < longRetry {
			t.Fatalf("after a failure at %v the clock advances by %v only", time.Duration(failed)*finalLook, advanced)
		}
	}
	if total := time.Duration(looks) * advanceStep; total > advanceMax || advanceMax >= 24*time.Hour {
		t.Errorf("the clock advances by %v: orders would expire", total)
	}
}
