package app_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/app/apptest"
	"github.com/porteira/porteira/internal/config"
	"github.com/porteira/porteira/internal/db/dbtest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
)

func TestMain(m *testing.M) {
	flag.Parse()
	// Tests mostly wait for timers, so more of them can run in parallel.
	if err := flag.Set("test.parallel", "12"); err != nil {
		panic(err)
	}
	code := dbtest.Main(m)
	if binaryFolder != "" {
		_ = os.RemoveAll(binaryFolder)
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, "what the tests left running:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// engines runs a test on both engines, in parallel, with the flags of a new data
// folder and database.
func engines(t *testing.T, test func(t *testing.T, flags []string)) {
	t.Helper()
	t.Parallel()
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			flags := []string{"data", t.TempDir()}
			if engine == "postgres" {
				flags = append(flags, "database", dbtest.Postgres(t))
			}
			test(t, flags)
		})
	}
}

// dev is the configuration of a gateway in development.
func dev(t *testing.T, flags ...string) *config.Config {
	t.Helper()
	return apptest.Config(t, config.Dev, apptest.Secrets(), flags...)
}

// payin creates a pay-in and returns its id.
func payin(g *apptest.Gateway, reference string) string {
	g.T.Helper()
	return g.Must(201, "POST", "/payin", with(pixOf, "{ref}", reference)).Get("id")
}

// payout creates a payout and returns its id.
func payout(g *apptest.Gateway, reference string) string {
	g.T.Helper()
	return g.Must(201, "POST", "/payout", with(payoutOf, "{ref}", reference)).Get("id")
}

// wants compares a member of the answer of a path.
func wants(g *apptest.Gateway, path, member, want string) {
	g.T.Helper()
	if got := g.Must(200, "GET", path, "").Get(member); got != want {
		g.T.Errorf("%s of %s is %s, want %s", member, path, got, want)
	}
}

// await waits until an order has a status.
func await(g *apptest.Gateway, path, status string) {
	g.T.Helper()
	apptest.Until(g.T, func() string {
		if got := g.Must(200, "GET", path, ""); got.Get("status") != status {
			return fmt.Sprintf("%s is not %s: %s\n%s", path, status, got.Body, g.Log)
		}
		return ""
	})
}

// transfersMade compares the number of transfers that the bank has made.
func transfersMade(g *apptest.Gateway, want int) {
	g.T.Helper()
	if list := g.Must(200, "GET", "/sandbox/processor/transfers", "").List("status"); len(list) != want {
		g.T.Errorf("the bank made the transfers %v, want %d", list, want)
	}
}

// status requests a URL outside the contract and returns its status.
func status(t *testing.T, address string) int {
	t.Helper()
	code, _ := ask(t, address)
	return code
}

// get reads a page outside the contract.
func get(t *testing.T, address string) string {
	t.Helper()
	code, text := ask(t, address)
	if code != http.StatusOK {
		t.Fatalf("%s answers %d", address, code)
	}
	return text
}

func ask(t *testing.T, address string) (code int, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Close = true
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

// A gateway in development serves orders, and keeps them over a restart.
func TestDev(t *testing.T) {
	engines(t, func(t *testing.T, flags []string) {
		cfg := dev(t, flags...)
		g := apptest.Run(t, cfg)
		g.Must(200, "GET", "/readyz", "")
		if got := status(t, g.Base+"/metrics"); got != 200 {
			t.Errorf("/metrics answers %d", got)
		}
		wants(g, "/balance", "available", fmt.Sprint(int(app.SandboxFunds)))
		paid := payin(g, "paid")
		g.Must(204, "POST", "/sandbox/payin/"+paid+"/pay", "")
		await(g, "/payout/"+payout(g, "by itself"), "COMPLETED")
		open := payin(g, "open")
		g.Must(204, "POST", "/sandbox/clock", `{"advance":90000}`)
		wants(g, "/payin/"+open, "status", "EXPIRED")
		funds := g.Must(200, "GET", "/balance", "").Get("available")
		g.Stop()

		again := apptest.Run(t, cfg)
		wants(again, "/balance", "available", funds)
		wants(again, "/payin/"+paid, "status", "PAID")
		transfersMade(again, 1)
		late := payin(again, "after the restart") // the clock kept its offset
		if a, b := again.Must(200, "GET", "/payin/"+late, "").Get("createdAt"), again.Must(200, "GET", "/payin/"+open, "").Get("expiresAt"); a < b {
			t.Errorf("created at %s, before %s", a, b)
		}
		again.Must(204, "POST", "/sandbox/payin/"+open+"/pay", "")
		wants(again, "/payin/"+open, "late", "true")
	})
}

// A payout in flight when its gateway stops is resumed by the next process and paid
// once.
func TestRestartUnderWay(t *testing.T) {
	engines(t, func(t *testing.T, flags []string) {
		cfg := dev(t, append(flags, "shutdown-timeout", "1s")...)
		g := apptest.Run(t, cfg)
		g.Must(204, "POST", "/sandbox/faults", `{"operation":"transfer","kind":"timeout_after","count":1}`)
		id := payout(g, "in flight")
		await(g, "/payout/"+id, "PROCESSING")
		g.Stop()
		again := apptest.Run(t, cfg)
		await(again, "/payout/"+id, "COMPLETED")
		transfersMade(again, 1)
	})
}

// Several gateways share one PostgreSQL and one bank.
func TestTwoGateways(t *testing.T) {
	t.Parallel()
	database := dbtest.Postgres(t)
	ctx, closeBank := context.WithCancel(context.Background())
	address, closed := make(chan string, 1), make(chan error, 1)
	go func() {
		closed <- app.RunBank(ctx, apptest.Config(t, config.Bank, apptest.Secrets(), "data", t.TempDir()), app.BankOptions{Ready: func(url string) { address <- url }})
	}()
	bank := <-address
	one := dev(t, "data", t.TempDir(), "database", database, "bank", bank)
	two := dev(t, "data", t.TempDir(), "database", database, "bank", bank)
	begun := make(chan apptest.Opened, 1)
	go func() { begun <- apptest.Open(t.Context(), one) }() // both find an empty database
	b := apptest.Run(t, two)
	a := (<-begun).Serve(t)
	wants(b, "/balance", "available", fmt.Sprint(int(app.SandboxFunds)))

	id := payin(a, "shared")
	b.Must(204, "POST", "/sandbox/payin/"+id+"/pay", "")
	wants(a, "/payin/"+id, "status", "PAID")
	out := payout(b, "shared")
	await(a, "/payout/"+out, "COMPLETED")
	a.Must(204, "POST", "/sandbox/payout/"+out+"/return", "")
	wants(b, "/payout/"+out, "status", "RETURNED")
	open := payin(a, "open")
	a.Must(204, "POST", "/sandbox/clock", `{"advance":90000}`)
	wants(b, "/payin/"+open, "status", "EXPIRED")

	a.Stop()
	last := payout(b, "after one has left")
	await(b, "/payout/"+last, "COMPLETED")
	b.Stop()
	closeBank()
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// A gateway that cannot start says how to fix it.
func TestRefusals(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	running := apptest.Run(t, apptest.Config(t, config.Dev, nil, "data", data))
	key := filepath.Join(data, "master.key")
	refused := func(name, want string, cfg *config.Config) {
		t.Helper()
		_, err := app.New(t.Context(), cfg, app.Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	refused("a second process", "another gateway uses", apptest.Config(t, config.Dev, nil, "data", data))
	refused("a used address", "choose another address with --listen", apptest.Config(t, config.Dev, nil, "data", t.TempDir(), "listen", running.App.Address()))
	refused("no such merchant", "omit --public-merchant", apptest.Config(t, config.Dev, nil, "data", t.TempDir(), "public-merchant", "nobody"))
	running.Stop()

	sandboxed := apptest.Config(t, config.Serve, nil, "data", data, "ops-listen", "127.0.0.1:0")
	refused("production with the sandbox's secret", "it is a sandbox forever", sandboxed)
	admin, err := app.OpenAdmin(t.Context(), sandboxed, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := admin.As(storetest.Operator).Merchants.RevokeCredential(t.Context(), app.SandboxKey); err != nil {
		t.Error(err)
	}
	if err := admin.Close(); err != nil {
		t.Error(err)
	}
	refused("production with the sandbox's money", "it is a sandbox forever", sandboxed)
	info, err := os.Stat(key)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the master key is %v, %v", info.Mode(), err)
	}
	foreign := apptest.Secrets()
	refused("another key", "sealed with another master key", apptest.Config(t, config.Dev, foreign, "data", data))
	if err := os.Rename(key, key+".away"); err != nil {
		t.Fatal(err)
	}
	refused("no key", "its master key", apptest.Config(t, config.Dev, nil, "data", data))
	if _, err := os.Stat(key); err == nil {
		t.Error("a new key was generated for an existing database")
	}
	production := apptest.Config(t, config.Dev, foreign, "data", t.TempDir())
	if _, err := app.Migrate(t.Context(), production, nil); err != nil {
		t.Fatal(err)
	}
	if admin, err = app.OpenAdmin(t.Context(), production, nil); err != nil {
		t.Fatal(err)
	}
	_, err = admin.As(storetest.Operator).Merchants.Create(t.Context(), store.Merchant{Name: "Loja", City: "SAO PAULO"}, "")
	if err := errors.Join(err, admin.Close()); err != nil {
		t.Fatal(err)
	}
	refused("dev on a database of production", "a sandbox forever", production)
	refused("production without a schema", "porteira migrate", apptest.Config(t, config.Serve, foreign, "data", t.TempDir(), "ops-listen", "127.0.0.1:0"))
}

// A gateway that cannot listen leaves no folder behind.
func TestUsedAddressLeavesNothing(t *testing.T) {
	t.Parallel()
	used, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = used.Close() }()
	data := filepath.Join(t.TempDir(), "data")
	a, err := app.New(t.Context(), dev(t, "data", data, "listen", used.Addr().String()), app.Options{})
	if a != nil || err == nil || !strings.Contains(err.Error(), "cannot listen on") {
		t.Errorf("answered %v", err)
	}
	if _, err := os.Stat(data); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the data folder: %v", err)
	}
}

// Production has no sandbox: neither its merchant, nor its routes, nor anonymous access.
func TestServe(t *testing.T) {
	engines(t, func(t *testing.T, flags []string) {
		cfg := apptest.Config(t, config.Serve, apptest.Secrets(), append(flags, "ops-listen", "127.0.0.1:0")...)
		if _, err := app.Migrate(t.Context(), cfg, nil); err != nil {
			t.Fatal(err)
		}
		g := apptest.Run(t, cfg)
		g.Must(404, "POST", "/sandbox/clock", `{"advance":1}`)
		g.Must(401, "GET", "/balance", "")
		g.Must(401, "POST", "/payin", `{}`)
		g.Must(404, "GET", "/metrics", "")
		for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/metrics": 200, "/debug/pprof/": 404, "/payin": 404} {
			apptest.Until(t, func() string { // readiness may time out on a busy machine
				if got := status(t, "http://"+g.App.OpsAddress()+path); got != want {
					return fmt.Sprintf("operator's %s answers %d, want %d", path, got, want)
				}
				return ""
			})
		}
	})
}

// A database with an older epoch than the marker is a restored backup: its payouts are
// looked up before they are sent.
func TestRestoredBackup(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	cfg := apptest.Config(t, config.Dev, nil, "data", data)
	busy := func(reference string) *apptest.Gateway {
		g := apptest.Run(t, cfg)
		id := ""
		apptest.Until(t, func() string { // after a restore payouts wait until the bank's transfers are read
			a := g.Ask("POST", "/payout", with(payoutOf, "{ref}", reference))
			id = a.Get("id")
			if a.Status == http.StatusServiceUnavailable {
				return a.Body
			}
			return ""
		})
		await(g, "/payout/"+id, "COMPLETED") // after a heartbeat
		g.Stop()
		return g
	}
	busy("before the backup")
	database := filepath.Join(data, "porteira.db")
	backup, err := os.ReadFile(database)
	if err != nil {
		t.Fatal(err)
	}
	for _, reference := range []string{"after the backup", "later still"} {
		if g := busy(reference); strings.Contains(g.Log.String(), "older copy") {
			t.Error("a database that was not restored is treated as a backup")
		}
	}
	if err := os.WriteFile(database, backup, 0o600); err != nil {
		t.Fatal(err)
	}
	// The merchant repeats a payout that the backup has lost: it is looked up first, and
	// found.
	g := busy("later still")
	if !strings.Contains(g.Log.String(), "older copy") {
		t.Errorf("the restored backup was not detected:\n%s", g.Log)
	}
	again := apptest.Run(t, cfg)
	transfersMade(again, 3)
	again.Stop()
	if err := os.WriteFile(filepath.Join(data, "installation.epoch"), []byte(payment.ID{7}.String()+" 999999\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	apptest.Run(t, cfg).Stop() // another installation's epoch is ignored
}

// A first start that is interrupted while it creates the database can be repeated.
func TestInterruptedFirstStart(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	cfg := apptest.Config(t, config.Dev, nil, "data", data)
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := app.New(interrupted, cfg, app.Options{}); err == nil {
		t.Fatal("the interrupted start succeeded")
	}
	if _, err := os.Stat(filepath.Join(data, "porteira.db")); err != nil {
		t.Fatalf("it had not begun to create the database: %v", err)
	}
	apptest.Run(t, cfg).Must(200, "GET", "/balance", "")
}
