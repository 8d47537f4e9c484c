package bench_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/app/apptest"
	"github.com/porteira/porteira/internal/bench"
	"github.com/porteira/porteira/internal/cli"
	"github.com/porteira/porteira/internal/config"
	"github.com/porteira/porteira/internal/db/dbtest"
	"github.com/porteira/porteira/internal/env"
)

// asGateway is a variable that makes this test binary run as the gateway, so that no
// other binary must be built.
const asGateway = "TEST_AS_GATEWAY"

func TestMain(m *testing.M) {
	if os.Getenv(asGateway) != "" {
		p := cli.Program{Args: os.Args[1:], Environ: os.Environ(), Stdout: os.Stdout, Stderr: os.Stderr}
		os.Exit(p.Run(context.Background()))
	}
	os.Exit(dbtest.Main(m))
}

// own returns the options of a run with its own gateway.
func own(t *testing.T, mode bench.Mode) bench.Options {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return bench.Options{
		Mode: mode, Program: program, Environ: append(os.Environ(), asGateway+"=1", "PORTEIRA_LISTEN=nowhere"),
		Data: t.TempDir(), Concurrency: 8, Merchants: 1, Env: env.System(env.OutboundOptions{}),
	}
}

// must runs a measurement whose check must pass.
func must(t *testing.T, o bench.Options) *bench.Report {
	t.Helper()
	ignore := goleak.IgnoreCurrent()
	report, err := bench.Run(t.Context(), o)
	if err != nil {
		t.Fatalf("%v: %+v", err, report)
	}
	if idle, ok := o.Env.Processor.(interface{ CloseIdleConnections() }); ok {
		idle.CloseIdleConnections()
	}
	if o.URL == "" { // a gateway in this process has goroutines of its own
		goleak.VerifyNone(t, ignore)
	}
	c := report.Check
	if !c.Passed || c.Found != c.Acknowledged || c.MissingCount != 0 || c.WrongCount != 0 || len(c.Defects) > 0 {
		t.Errorf("check: %+v", c)
	}
	for _, s := range report.Series {
		if len(s.Errors) > 0 {
			t.Errorf("%s: errors %v: %v", s.Name, s.Errors, s.Samples)
		}
	}
	return report
}

func count(t *testing.T, r *bench.Report, name string) int64 {
	t.Helper()
	for _, s := range r.Series {
		if s.Name == name {
			return s.Count
		}
	}
	t.Fatalf("no series %q", name)
	return 0
}

// withFeatures gives merchants an endpoint, prices and limits.
func withFeatures(o *bench.Options) { o.Endpoint, o.Prices, o.Limits, o.Rate = true, 20, true, 100 }

// Every mode, with a real gateway process.
func TestModes(t *testing.T) {
	const requests = 60
	for _, tt := range []struct {
		mode   bench.Mode
		change func(*bench.Options)
		acked  int64
		counts map[string]int64
	}{
		{bench.Payin, nil, requests, map[string]int64{"POST /payin": requests}},
		{bench.Payin, func(o *bench.Options) { o.Calls = true }, requests, map[string]int64{"POST /payin": requests}},
		{bench.Payin, func(o *bench.Options) { o.Rate = 200 }, requests, map[string]int64{"POST /payin": requests}},
		{bench.Payin, withFeatures, requests, map[string]int64{"POST /payin": requests}},
		{bench.Payout, withFeatures, requests, map[string]int64{"POST /payout": requests}},
		{bench.Payout, nil, requests, map[string]int64{"POST /payout": requests}},
		{bench.Payout, func(o *bench.Options) { o.Merchants = 3 }, requests, map[string]int64{"POST /payout": requests}},
		{bench.Receive, nil, requests, map[string]int64{"POST notice": requests, "notice to PAID": requests}},
		{bench.Webhooks, nil, requests, map[string]int64{"POST notice": requests, "notice to PAID": requests, "PAID to webhook": requests}},
		{bench.Read, func(o *bench.Options) { o.Orders = 20 }, 20, map[string]int64{"all requests": requests}},
		{bench.Mixed, func(o *bench.Options) { o.Orders = 20 }, -1, map[string]int64{"all requests": requests}},
	} {
		t.Run(string(tt.mode), func(t *testing.T) {
			o := own(t, tt.mode)
			o.Requests = requests
			if tt.change != nil {
				tt.change(&o)
			}
			r := must(t, o)
			if tt.acked >= 0 && r.Check.Acknowledged != tt.acked || !r.Check.Verified || r.Check.Sampled == 0 {
				t.Errorf("check: %+v", r.Check)
			}
			for name, n := range tt.counts {
				if got := count(t, r, name); got != n {
					t.Errorf("%s: %d, want %d", name, got, n)
				}
			}
			if r.Throughput <= 0 || r.Engine != "sqlite" || (r.Loop == "open") != (o.Rate > 0) || (r.Lag != nil) != (o.Rate > 0) {
				t.Errorf("report: %+v", r)
			}
			if left, err := filepath.Glob(filepath.Join(o.Data, "*")); err != nil || len(left) > 0 {
				t.Errorf("remaining files: %v %v", left, err)
			}
		})
	}
}

func TestPostgres(t *testing.T) {
	o := own(t, bench.Webhooks)
	o.Database, o.Requests, o.Merchants = dbtest.Postgres(t), 40, 2
	r := must(t, o)
	if r.Engine != "postgres" || r.Check.Acknowledged != 40 || r.Gateway.WrittenBy != "write-ahead log" {
		t.Errorf("report: %+v", r)
	}
}

// The JSON report is complete, and the text report has the same figures.
func TestReport(t *testing.T) {
	o := own(t, bench.Payin)
	o.Requests, o.Rate, o.Seed = 30, 100, 7
	var progress bytes.Buffer
	o.Progress = &progress
	r := must(t, o)
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var v map[string]any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"mode", "engine", "loop", "concurrency", "rate", "merchants", "seconds", "warmupSeconds", "seed", "throughput", "series", "gateway", "generator", "lagMicros", "check", "notes"} {
		if _, ok := v[name]; !ok {
			t.Errorf("%s is missing: %s", name, text)
		}
	}
	series := v["series"].([]any)[0].(map[string]any)
	if series["name"] != "POST /payin" || series["count"] != 30.0 || v["seed"] != 7.0 {
		t.Errorf("%s", text)
	}
	latency := series["latencyMicros"].(map[string]any)
	for _, name := range []string{"mean", "p50", "p90", "p99", "p999", "max"} {
		if n, ok := latency[name].(float64); !ok || n <= 0 {
			t.Errorf("%s is %v", name, latency[name])
		}
	}
	var printed bytes.Buffer
	r.Print(&printed)
	for _, want := range []string{
		"payin on sqlite, open loop of 100 requests/s over 8 connections", "POST /payin", "Latency of POST /payin", "p99.9", "█",
		"CPU of the gateway", "Acknowledged 30 orders; found 30 of them", "The ledger is correct.",
	} {
		if !strings.Contains(printed.String(), want) {
			t.Errorf("%q is not in\n%s", want, &printed)
		}
	}
	if !strings.Contains(progress.String(), "starting a gateway\n") {
		t.Errorf("progress is %q", &progress)
	}
}

// An operator's commands can open a database that was kept.
func TestKeep(t *testing.T) {
	o := own(t, bench.Payin)
	o.Requests, o.Keep = 5, true
	r := must(t, o)
	left, err := filepath.Glob(filepath.Join(o.Data, "*"))
	if err != nil || len(left) != 1 || !strings.Contains(strings.Join(r.Notes, " "), left[0]) {
		t.Fatalf("left behind: %v, %v, notes %v", left, err, r.Notes)
	}
	var out, errs bytes.Buffer
	p := cli.Program{Args: []string{"verify", "--data", left[0]}, Stdout: &out, Stderr: &errs}
	if code := p.Run(t.Context()); code != 0 || !strings.Contains(out.String(), "bench 1") {
		t.Errorf("verify ends with %d: %s%s", code, &out, &errs)
	}
}

// A running gateway is measured with a merchant's credentials, and orders are paid by
// its sandbox's routes.
func TestURL(t *testing.T) {
	g := apptest.Run(t, apptest.Config(t, config.Dev, apptest.Secrets(), "data", t.TempDir(), "log-level", "error"))
	for _, mode := range []bench.Mode{bench.Payout, bench.Webhooks} {
		o := bench.Options{
			Mode: mode, URL: g.Base, Key: app.SandboxKey, Secret: app.SandboxSecret, PID: os.Getpid(),
			Concurrency: 4, Merchants: 1, Requests: 12, Env: env.System(env.OutboundOptions{}),
		}
		r := must(t, o)
		if r.Check.Acknowledged != 12 || r.Check.Verified {
			t.Errorf("%s: %+v", mode, r.Check)
		}
	}
}

// badGateway acknowledges every order with answer, and lists orders with list.
type badGateway struct {
	n      atomic.Int64
	answer func(n int64, reference string) string
	list   func() string
}

func (l *badGateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodGet {
		if r.URL.Path != "/payin" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = fmt.Fprint(w, l.list())
		return
	}
	var order struct {
		Reference string `json:"referenceId"`
	}
	_ = json.NewDecoder(r.Body).Decode(&order)
	w.WriteHeader(http.StatusCreated)
	_, _ = fmt.Fprint(w, l.answer(l.n.Add(1), order.Reference))
}

// The check detects a gateway that loses acknowledged orders, and one with wrong answers.
func TestBadGateways(t *testing.T) {
	id := func(n int64) string { return fmt.Sprintf("01a1fc88-370d-71db-9c03-%012d", n) }
	honest := func(n int64, reference string) string {
		return fmt.Sprintf(`{"id":"%s","referenceId":"%s"}`, id(n), reference)
	}
	nothing := func() string { return `{"data":[],"nextCursor":null}` }
	for _, tt := range []struct {
		name    string
		gateway *badGateway
		lost    bool
		wrongs  bool
	}{
		{"keeps nothing", &badGateway{answer: honest, list: nothing}, true, false},
		{"keeps another amount", &badGateway{answer: honest, list: func() string {
			return fmt.Sprintf(`{"data":[{"id":"%s","amount":1},{"id":"%s","amount":1}],"nextCursor":null}`, id(1), id(2))
		}}, true, false},
		{"answers with one order for all", &badGateway{answer: func(_ int64, reference string) string { return honest(1, reference) }, list: nothing}, true, true},
		{"answers with another reference", &badGateway{answer: func(n int64, _ string) string { return honest(n, "r") }, list: nothing}, true, true},
		{"answers without an id", &badGateway{answer: func(int64, string) string { return `{"ok":true}` }, list: nothing}, true, true},
	} {
		server := httptest.NewServer(tt.gateway)
		report, err := bench.Run(t.Context(), bench.Options{
			Mode: bench.Payin, URL: server.URL, Concurrency: 2, Merchants: 1, Requests: 10, Env: env.System(env.OutboundOptions{}),
		})
		server.Close()
		if !errors.Is(err, bench.ErrCheckFailed) || report == nil || report.Check.Passed || (report.Check.MissingCount > 0) != tt.lost || (report.Check.WrongCount > 0) != tt.wrongs {
			t.Errorf("a gateway that %s passes: %v: %+v", tt.name, err, report)
		}
	}
}

// Refusals count as errors, with a sample of the answer.
func TestRefuses(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = fmt.Fprint(w, "come back later")
	}))
	defer server.Close()
	report, err := bench.Run(t.Context(), bench.Options{
		Mode: bench.Payin, URL: server.URL, Concurrency: 2, Merchants: 1, Requests: 10, Env: env.System(env.OutboundOptions{}),
	})
	if !errors.Is(err, bench.ErrCheckFailed) || report.Series[0].Errors["503"] != 10 || report.Series[0].Samples["503"] != "come back later" {
		t.Errorf("%v: %+v", err, report)
	}
}

func TestRefusedOptions(t *testing.T) {
	for _, change := range []func(*bench.Options){
		func(o *bench.Options) { o.Mode = "all" },
		func(o *bench.Options) { o.Concurrency = 0 },
		func(o *bench.Options) { o.Rate = -1 },
		func(o *bench.Options) { o.Merchants = 0 },
		func(o *bench.Options) { o.Requests = 0 },
		func(o *bench.Options) { o.Duration = -1 },
		func(o *bench.Options) { o.URL, o.Database = "http://127.0.0.1:1", "postgres://127.0.0.1/x" },
		func(o *bench.Options) { o.URL, o.Merchants = "http://127.0.0.1:1", 2 },
		func(o *bench.Options) { o.URL = "127.0.0.1:1" },
		func(o *bench.Options) { o.Database = "host=127.0.0.1 dbname=real" },
		func(o *bench.Options) { o.Database = filepath.Join(o.Data, "real.db") },
		func(o *bench.Options) { o.Flags = []string{"--data", "/srv/real"} },
		func(o *bench.Options) { o.Flags = []string{"--log-level=warn", "--database=postgres://127.0.0.1/real"} },
		func(o *bench.Options) { o.Flags = []string{"--config=/etc/real.toml"} },
	} {
		o := own(t, bench.Payin)
		o.Requests = 1
		change(&o)
		if _, err := bench.Run(t.Context(), o); !errors.Is(err, bench.ErrInvalidOptions) {
			t.Errorf("%+v: %v", o, err)
		}
		if left, _ := filepath.Glob(filepath.Join(o.Data, "*")); len(left) > 0 {
			t.Errorf("remaining files: %v", left)
		}
	}
}

// The run creates its own database even if the query of the URL names another
// one, and leaves that other database unchanged.
func TestPostgresNamedInQuery(t *testing.T) {
	other := dbtest.Postgres(t)
	u, err := url.Parse(other)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("dbname", strings.TrimPrefix(u.Path, "/"))
	u.RawQuery = q.Encode()
	o := own(t, bench.Payin)
	o.Requests, o.Database = 3, u.String()
	must(t, o)
	if n := countTables(t, other); n != 0 {
		t.Errorf("the run created %d tables in another database", n)
	}
}

// countTables returns the number of tables in a PostgreSQL database.
func countTables(t *testing.T, database string) (n int) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	err = c.QueryRow(t.Context(), "SELECT count(*) FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')").Scan(&n)
	if err := errors.Join(err, c.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	return n
}

// killer kills a process at the first line of progress.
type killer struct {
	t    *testing.T
	file string // with the process id
}

func (k *killer) Write(p []byte) (int, error) {
	if strings.Contains(string(p), "/s, ") {
		text, err := os.ReadFile(k.file)
		pid, err2 := strconv.Atoi(strings.TrimSpace(string(text)))
		if err := errors.Join(err, err2, syscall.Kill(pid, syscall.SIGKILL)); err != nil && !errors.Is(err, syscall.ESRCH) {
			k.t.Error(err)
		}
	}
	return len(p), nil
}

// The run fails if the gateway dies.
func TestGatewayDies(t *testing.T) {
	o := own(t, bench.Receive)
	folder := t.TempDir()
	k := &killer{t, filepath.Join(folder, "pid")}
	script := fmt.Sprintf("#!/bin/sh\necho $$ >%s\nexec %s \"$@\"\n", k.file, o.Program)
	o.Program = filepath.Join(folder, "gateway")
	if err := os.WriteFile(o.Program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	o.Orders, o.Rate, o.Duration, o.Progress = 200, 20, time.Hour, k
	report, err := bench.Run(t.Context(), o)
	if report != nil || err == nil || !strings.Contains(err.Error(), "the gateway has ended") || errors.Is(err, context.Canceled) {
		t.Errorf("%v: %+v", err, report)
	}
	if left, _ := filepath.Glob(filepath.Join(o.Data, "*")); len(left) > 0 {
		t.Errorf("remaining files: %v", left)
	}
}

// A gateway that cannot start is an error with its cause, and no files remain.
func TestCannotStart(t *testing.T) {
	o := own(t, bench.Payin)
	o.Requests, o.Flags = 1, []string{"--max-in-flight", "none"}
	if _, err := bench.Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "max-in-flight") {
		t.Errorf("%v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(o.Data, "*")); len(left) > 0 {
		t.Errorf("remaining files: %v", left)
	}
}
