package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/config"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store/storetest"
	"github.com/porteira/porteira/internal/world"
)

func TestMain(m *testing.M) {
	code := storetest.Main(m)
	if binaryFolder != "" {
		_ = os.RemoveAll(binaryFolder)
	}
	os.Exit(code)
}

// masterKey is 32 bytes in base64, for gateways that share a database.
const masterKey = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

const bankSecret = "the-secret-of-the-bank"

// load settles a configuration with flags, as pairs of name and value.
func load(t *testing.T, m config.Mode, environ []string, flags ...string) *config.Config {
	t.Helper()
	s := config.Sources{Mode: m, Environ: environ, Flags: map[string]string{"listen": "127.0.0.1:0"}}
	for i := 0; i < len(flags); i += 2 {
		s.Flags[flags[i]] = flags[i+1]
	}
	c, err := config.Load(s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// logged is what a program has logged so far; it may be read while more comes.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements [io.Writer].
func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// gateway is a running App.
type gateway struct {
	t    *testing.T
	app  *app.App
	w    world.World
	stop func() // in order; may be called again
	log  *logged
}

// run starts a gateway; it is stopped when the test ends, if it was not before.
func run(t *testing.T, cfg *config.Config) *gateway {
	t.Helper()
	return open(t.Context(), cfg).serve(t, cfg)
}

// opened is what app.New returned.
type opened struct {
	app   *app.App
	err   error
	log   *logged
	ready chan struct{}
}

func open(ctx context.Context, cfg *config.Config) opened {
	o := opened{log: &logged{}, ready: make(chan struct{})}
	o.app, o.err = app.New(ctx, cfg, app.Options{
		Log: slog.New(slog.NewTextHandler(o.log, nil)), Ready: func(*app.App) { close(o.ready) },
	})
	return o
}

func (o opened) serve(t *testing.T, cfg *config.Config) *gateway {
	t.Helper()
	if o.err != nil {
		t.Fatal(o.err)
	}
	g := &gateway{t: t, app: o.app, w: world.System(world.OutboundOptions{}), log: o.log}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- g.app.Run(ctx) }()
	select {
	case <-o.ready:
	case err := <-ended:
		t.Fatalf("did not start: %v\n%s", err, g.log)
	}
	stopped := false
	g.stop = func() {
		if stopped {
			return
		}
		stopped = true
		began := g.w.Clock.Monotonic()
		g.w.Processor.(interface{ CloseIdleConnections() }).CloseIdleConnections()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("stopped with %v\n%s", err, g.log)
		}
		if took := g.w.Clock.Monotonic() - began; took > cfg.ShutdownTimeout+time.Second {
			t.Errorf("took %v to stop, of %v", took, cfg.ShutdownTimeout)
		}
	}
	t.Cleanup(g.stop)
	return g
}

// call sends a request and returns the status and the JSON of the answer.
func (g *gateway) call(method, path, body string) (int, map[string]any) {
	g.t.Helper()
	r, err := http.NewRequestWithContext(g.t.Context(), method, "http://"+g.app.Address()+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	r.Header.Set("X-Api-Key", app.SandboxKey)
	r.Header.Set("X-Api-Secret", app.SandboxSecret)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := g.w.Processor.RoundTrip(r)
	if err != nil {
		g.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	var v map[string]any
	if len(text) > 0 && !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/plain") {
		if err := json.Unmarshal(text, &v); err != nil {
			g.t.Fatalf("%s %s: %v in %s", method, path, err, text)
		}
	}
	return answer.StatusCode, v
}

// must is call, where another status is a failure.
func (g *gateway) must(status int, method, path, body string) map[string]any {
	g.t.Helper()
	got, v := g.call(method, path, body)
	if got != status {
		g.t.Fatalf("%s %s: %d, want %d: %v\n%s", method, path, got, status, v, g.log)
	}
	return v
}

func (g *gateway) payin(reference string) string {
	g.t.Helper()
	return g.must(201, "POST", "/payin", fmt.Sprintf(`{"paymentMethod":"PIX","amount":1990,"referenceId":%q,
		"customer":{"name":"Maria Silva","document":"52998224725"}}`, reference))["id"].(string)
}

func (g *gateway) payout(reference string) string {
	g.t.Helper()
	return g.must(201, "POST", "/payout", fmt.Sprintf(`{"amount":500,"pixKey":"a@b.example","pixKeyType":"EMAIL",
		"beneficiaryName":"Maria Silva","beneficiaryDocument":"52998224725","referenceId":%q}`, reference))["id"].(string)
}

func (g *gateway) wants(path, member string, want any) {
	g.t.Helper()
	if got := g.must(200, "GET", path, "")[member]; got != want {
		g.t.Errorf("%s of %s is %v, want %v", member, path, got, want)
	}
}

// await looks until an order has a status.
func (g *gateway) await(path, status string) {
	g.t.Helper()
	deadline := g.w.Clock.Monotonic() + 15*time.Second
	for g.must(200, "GET", path, "")["status"] != status {
		if g.w.Clock.Monotonic() > deadline {
			g.t.Fatalf("%s is not %s: %v\n%s", path, status, g.must(200, "GET", path, ""), g.log)
		}
		<-g.w.Clock.NewTimer(20 * time.Millisecond).C()
	}
}

// engines runs a test on a gateway's own data folder, with either database.
func engines(t *testing.T, test func(t *testing.T, environ, flags []string)) {
	t.Helper()
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			flags := []string{"data", t.TempDir()}
			var environ []string
			if engine == "postgres" {
				flags = append(flags, "database", storetest.Postgres(t))
				environ = append(environ, "PORTEIRA_MASTER_KEY="+masterKey)
			}
			ignore := goleak.IgnoreCurrent()
			test(t, environ, flags)
			goleak.VerifyNone(t, ignore)
		})
	}
}

// The whole life of a gateway in development, and of another after it.
func TestDev(t *testing.T) {
	engines(t, func(t *testing.T, environ, flags []string) {
		cfg := load(t, config.Dev, environ, flags...)
		g := run(t, cfg)
		g.must(200, "GET", "/readyz", "")
		g.must(200, "GET", "/metrics", "")
		g.wants("/balance", "available", float64(app.SandboxFunds))

		paid := g.payin("paid")
		g.must(204, "POST", "/sandbox/payin/"+paid+"/pay", "")
		g.wants("/payin/"+paid, "status", "PAID")
		g.must(409, "POST", "/sandbox/payin/"+paid+"/expire", "")
		for _, step := range [][2]string{{"dispute", "DISPUTED"}, {"win", "PAID"}, {"dispute", "DISPUTED"}, {"lose", "CHARGEBACK"}} {
			g.must(204, "POST", "/sandbox/payin/"+paid+"/"+step[0], "")
			g.wants("/payin/"+paid, "status", step[1])
		}
		g.must(404, "POST", "/sandbox/payin/00000000-0000-7000-8000-000000000000/pay", "")
		g.must(404, "POST", "/sandbox/payout/"+paid+"/fail", "")
		short := g.payin("short")
		g.must(204, "POST", "/sandbox/payin/"+short+"/pay", `{"amount":990}`)
		g.wants("/payin/"+short, "paidAmount", 990.0)

		done := g.payout("completed")
		g.must(204, "POST", "/sandbox/payout/"+done+"/complete", "")
		g.wants("/payout/"+done, "status", "COMPLETED")
		g.must(409, "POST", "/sandbox/payout/"+done+"/fail", "")
		g.must(204, "POST", "/sandbox/payout/"+done+"/return", "")
		failed := g.payout("failed")
		g.must(204, "POST", "/sandbox/payout/"+failed+"/fail", "")
		g.wants("/payout/"+failed, "status", "FAILED")
		alone := g.payout("by itself")
		g.await("/payout/"+alone, "COMPLETED")

		open := g.payin("open")
		g.must(204, "POST", "/sandbox/clock", `{"advance":90000}`)
		g.wants("/payin/"+open, "status", "EXPIRED")
		if n := len(g.must(200, "GET", "/sandbox/processor/transfers", "")["data"].([]any)); n != 3 {
			t.Errorf("the bank made %d transfers, want 3", n)
		}
		funds := g.must(200, "GET", "/balance", "")["available"]
		g.stop()

		again := run(t, cfg)
		again.wants("/balance", "available", funds)
		again.wants("/payin/"+paid, "status", "CHARGEBACK")
		late := again.payin("after the restart") // the clock has not gone back
		if a, b := again.must(200, "GET", "/payin/"+late, "")["createdAt"].(string), again.must(200, "GET", "/payin/"+open, "")["expiresAt"].(string); a < b {
			t.Errorf("created at %s, after a time of %s", a, b)
		}
		again.must(204, "POST", "/sandbox/payin/"+open+"/pay", "")
		again.wants("/payin/"+open, "late", true)
		again.stop()
	})
}

// What was under way when a gateway had to stop is taken up by the next, and
// is paid once.
func TestRestartUnderWay(t *testing.T) {
	engines(t, func(t *testing.T, environ, flags []string) {
		cfg := load(t, config.Dev, environ, append(flags, "shutdown-timeout", "1s")...)
		g := run(t, cfg)
		g.must(204, "POST", "/sandbox/faults", `{"operation":"transfer","kind":"timeout_after","count":1}`)
		id := g.payout("under way")
		g.await("/payout/"+id, "PROCESSING")
		g.stop()
		again := run(t, cfg)
		again.await("/payout/"+id, "COMPLETED")
		if n := len(again.must(200, "GET", "/sandbox/processor/transfers", "")["data"].([]any)); n != 1 {
			t.Errorf("the bank made %d transfers, want 1", n)
		}
		again.stop()
	})
}

// Several gateways share one PostgreSQL and one bank.
func TestTwoGateways(t *testing.T) {
	environ := []string{"PORTEIRA_MASTER_KEY=" + masterKey, "PORTEIRA_BANK_SECRET=" + bankSecret}
	database := storetest.Postgres(t)
	ignore := goleak.IgnoreCurrent()
	ctx, closeBank := context.WithCancel(context.Background())
	address, closed := make(chan string, 1), make(chan error, 1)
	go func() {
		closed <- app.RunBank(ctx, load(t, config.Bank, environ, "data", t.TempDir()), app.BankOptions{Ready: func(url string) { address <- url }})
	}()
	bank := <-address
	one := load(t, config.Dev, environ, "data", t.TempDir(), "database", database, "bank", bank)
	two := load(t, config.Dev, environ, "data", t.TempDir(), "database", database, "bank", bank)
	begun := make(chan opened, 1)
	go func() { begun <- open(t.Context(), one) }() // both find an empty database
	b := run(t, two)
	a := (<-begun).serve(t, one)
	b.wants("/balance", "available", float64(app.SandboxFunds))

	id := a.payin("shared")
	b.must(204, "POST", "/sandbox/payin/"+id+"/pay", "")
	a.wants("/payin/"+id, "status", "PAID")
	out := b.payout("shared")
	a.must(204, "POST", "/sandbox/payout/"+out+"/complete", "")
	b.wants("/payout/"+out, "status", "COMPLETED")
	open := a.payin("open")
	a.must(204, "POST", "/sandbox/clock", `{"advance":90000}`)
	b.wants("/payin/"+open, "status", "EXPIRED")

	a.stop()
	last := b.payout("after one has left")
	b.await("/payout/"+last, "COMPLETED")
	b.stop()
	closeBank()
	if err := <-closed; err != nil {
		t.Error(err)
	}
	goleak.VerifyNone(t, ignore)
}

// A gateway that must not start says what to do.
func TestRefusals(t *testing.T) {
	data := t.TempDir()
	running := run(t, load(t, config.Dev, nil, "data", data))
	key := filepath.Join(data, "master.key")
	refused := func(name, want string, cfg *config.Config) {
		t.Helper()
		_, err := app.New(t.Context(), cfg, app.Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	refused("a second process", "another gateway uses", load(t, config.Dev, nil, "data", data))
	refused("a used address", "choose another address by --listen", load(t, config.Dev, nil, "data", t.TempDir(), "listen", running.app.Address()))
	refused("no such merchant", "leave --public-merchant out", load(t, config.Dev, nil, "data", t.TempDir(), "public-merchant", "nobody"))
	running.stop()

	sandboxed := load(t, config.Serve, nil, "data", data, "ops-listen", "127.0.0.1:0")
	refused("production with the sandbox's secret", "credential revoke sandbox_key", sandboxed)
	admin, err := app.OpenAdmin(t.Context(), sandboxed, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := admin.Flow.RevokeCredential(t.Context(), app.SandboxKey); err != nil {
		t.Error(err)
	}
	if err := admin.Close(); err != nil {
		t.Error(err)
	}
	run(t, sandboxed).stop()
	info, err := os.Stat(key)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the master key is %v, %v", info.Mode(), err)
	}
	foreign := []string{"PORTEIRA_MASTER_KEY=" + masterKey}
	refused("another key", "sealed with another master key", load(t, config.Dev, foreign, "data", data))
	if err := os.Rename(key, key+".away"); err != nil {
		t.Fatal(err)
	}
	refused("no key", "its master key", load(t, config.Dev, nil, "data", data))
	if _, err := os.Stat(key); err == nil {
		t.Error("a new key was made for an old database")
	}
	refused("production without a schema", "porteira migrate", load(t, config.Serve, foreign, "data", t.TempDir(), "ops-listen", "127.0.0.1:0"))
}

// Production has no sandbox of its own: no merchant, no routes, no free entry.
func TestServe(t *testing.T) {
	engines(t, func(t *testing.T, _, flags []string) {
		environ := []string{"PORTEIRA_MASTER_KEY=" + masterKey}
		flags = append(flags, "ops-listen", "127.0.0.1:0")
		cfg := load(t, config.Serve, environ, flags...)
		if _, err := app.Migrate(t.Context(), cfg, nil); err != nil {
			t.Fatal(err)
		}
		g := run(t, cfg)
		g.must(404, "POST", "/sandbox/clock", `{"advance":1}`)
		g.must(401, "GET", "/balance", "")
		g.must(401, "POST", "/payin", `{}`)
		g.must(404, "GET", "/metrics", "")
		for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/metrics": 200, "/debug/pprof/": 404, "/payin": 404} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+g.app.OpsAddress()+path, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := g.w.Processor.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			if _ = answer.Body.Close(); answer.StatusCode != want {
				t.Errorf("operator's %s answers %d, want %d", path, answer.StatusCode, want)
			}
		}
		g.stop()
	})
}

// A database that is older than what was seen of it is a restored backup: its
// payouts are asked about before they are sent.
func TestRestoredBackup(t *testing.T) {
	data := t.TempDir()
	cfg := load(t, config.Dev, nil, "data", data)
	busy := func(reference string) *gateway {
		g := run(t, cfg)
		g.await("/payout/"+g.payout(reference), "COMPLETED") // so the gateway has beaten
		g.stop()
		return g
	}
	busy("before the backup")
	database := filepath.Join(data, "porteira.db")
	backup, err := os.ReadFile(database)
	if err != nil {
		t.Fatal(err)
	}
	for _, reference := range []string{"after the backup", "later still"} {
		if g := busy(reference); strings.Contains(g.log.String(), "older copy") {
			t.Error("a database that was not restored is taken for a backup")
		}
	}
	if err := os.WriteFile(database, backup, 0o600); err != nil {
		t.Fatal(err)
	}
	// The merchant asks again for what the backup has lost: it is asked about
	// first, and found.
	g := busy("later still")
	if !strings.Contains(g.log.String(), "older copy") {
		t.Errorf("the restored backup was not recognised:\n%s", g.log)
	}
	again := run(t, cfg)
	if n := len(again.must(200, "GET", "/sandbox/processor/transfers", "")["data"].([]any)); n != 3 {
		t.Errorf("the bank made %d transfers, want 3", n)
	}
	again.stop()
	if err := os.WriteFile(filepath.Join(data, "installation.beat"), []byte(payment.ID{7}.String()+" 999999\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, cfg).stop() // another installation's mark says nothing
}
