package bench

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/porteira/porteira/internal/account"
	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/config"
	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/env"
	merchants "github.com/porteira/porteira/internal/merchant"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// funds is the initial balance of each merchant in cents, more than a run can send.
const funds money.Cents = 1_000_000_000_000_000

// masterKeyVariable passes the master key to the gateway.
const masterKeyVariable = "PORTEIRA_MASTER_KEY="

// stopTimeout is the time after which a gateway that does not stop is killed.
const stopTimeout = 20 * time.Second

// gateway is a gateway process of the run, with a folder and a database of its own.
type gateway struct {
	noticePath string // of its bank
	env        env.Env
	folder     string
	keep       bool

	database *database // nil on SQLite
	secrets  []string  // environment variables
	admin    *config.Config
	bank     *bank
	notes    []string // for the report

	cmd        *exec.Cmd
	exited     chan struct{}
	baseURL    string // its address
	opsAddress string // of the operator's listener
}

// startGateway starts a gateway, and returns its merchants.
func startGateway(ctx context.Context, o *Options) (g *gateway, list []merchant, err error) {
	g = &gateway{env: o.Env, keep: o.Keep}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.close())
		}
	}()
	if g.folder, err = os.MkdirTemp(o.Data, "porteira-bench-"); err != nil {
		return g, nil, fmt.Errorf("bench: create a folder: %w", err)
	}
	settings := map[string]string{"data": g.folder}
	if o.Database == "" && inMemory(g.folder) {
		g.notes = append(g.notes, "The folder "+filepath.Dir(g.folder)+" is in memory, where durable writes cost nothing: set one on a disk with --data.")
	}
	if o.Database != "" {
		if g.database, err = createDatabase(ctx, o.Env, o.Database); err != nil {
			return g, nil, err
		}
	}
	key, secret := make([]byte, db.MasterKeyLength), make([]byte, 16)
	o.Env.Random.Read(key)
	o.Env.Random.Read(secret)
	bankSecret := hex.EncodeToString(secret)
	g.secrets = []string{masterKeyVariable + base64.StdEncoding.EncodeToString(key), "PORTEIRA_BANK_SECRET=" + bankSecret}
	admin := g.secrets[:1:1] // its commands have no options for the bank
	if g.database != nil {   // its URL may have a password
		database := "PORTEIRA_DATABASE=" + g.database.url
		g.secrets, admin = append(g.secrets, database), append(admin, database)
	}
	if g.admin, err = config.Load(config.Sources{Mode: config.Admin, Environ: admin, Flags: settings}); err != nil {
		return g, nil, err
	}
	if list, err = g.setUp(ctx, o); err != nil {
		return g, nil, fmt.Errorf("bench: set up: %w", err)
	}
	if g.keep {
		g.notes = append(g.notes, "Kept: the folder "+g.folder+", and "+g.admin.ShownDatabase()+".")
	}
	if g.bank, err = openBank(ctx, o.Env.Clock, bankSecret); err != nil {
		return g, nil, err
	}
	return g, list, g.start(o)
}

// setUp creates the schema and the merchants with funds and credentials.
func (g *gateway) setUp(ctx context.Context, o *Options) ([]merchant, error) {
	if _, err := app.Migrate(ctx, g.admin, slog.New(slog.DiscardHandler)); err != nil {
		return nil, err
	}
	var list []merchant
	err := g.withAdmin(ctx, func(a *app.Admin) error {
		if inSandbox(o) { // a database of `porteira dev`
			mark := func(tx *store.Tx) error { return tx.SetSetting(ctx, store.SettingSandbox, "true") }
			if err := a.Store.Transact(ctx, mark); err != nil {
				return err
			}
		}
		v, err := a.EnsureSandbox(ctx)
		if err != nil {
			return err
		}
		g.noticePath = account.NoticePath(&v)
		for i := range o.Merchants {
			m, err := a.Merchants.Create(ctx, store.Merchant{Name: "bench " + strconv.Itoa(i+1), City: "SAO PAULO", Routes: payment.AllRoutes(bankProcessor)}, "")
			if err != nil {
				return err
			}
			bounds := merchants.Unlimited
			if o.Limits {
				bounds = allLimits
			}
			if _, err := a.Merchants.SetLimits(ctx, m.ID, bounds); err != nil {
				return err
			}
			for _, p := range prices(o.Prices) {
				if _, err := a.Merchants.SetPrice(ctx, m.ID, p, merchants.Unnamed{}); err != nil {
					return err
				}
			}
			if err := a.Merchants.Fund(ctx, m, funds); err != nil {
				return err
			}
			c, secret, err := a.Merchants.CreateCredential(ctx, merchants.NewCredential{Merchant: m.ID, Label: "bench"})
			if err != nil {
				return err
			}
			list = append(list, merchant{key: c.KeyID, secret: secret})
		}
		return nil
	})
	return list, err
}

// withAdmin runs work with access to the gateway's database.
func (g *gateway) withAdmin(ctx context.Context, work func(*app.Admin) error) error {
	a, err := app.OpenAdmin(ctx, g.admin, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	return errors.Join(work(a.As(actor.Author{Actor: actor.System, Reason: "bench"})), a.Close())
}

// inSandbox reports whether the gateway runs as `porteira dev`.
func inSandbox(o *Options) bool { return !o.Calls && (o.Mode == Payin || o.Mode == Read) }

// start starts the program and waits until it serves.
func (g *gateway) start(o *Options) error {
	// In production there is no bank in process, so no charge is generated offline.
	args := []string{"dev", "--log-format", "json"}
	if !inSandbox(o) {
		args = []string{"serve", "--bank", g.bank.url(), "--allow-http-webhooks", "--allow-networks", "127.0.0.0/8,::1/128",
			"--accept-risk", "http-webhooks,unverified-database-tls", // its receivers are in this process
			"--credential-rate", "0", "--credential-in-flight", "0"} // one credential makes all the load
	}
	args = append(args, "--json", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--data", g.folder)
	if o.Profile != "" {
		args = append(args, "--profiling")
	}
	log, err := os.OpenFile(g.log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("bench: open log: %w", err)
	}
	defer func() { _ = log.Close() }()                           // the gateway has its own descriptor
	g.cmd = exec.Command(o.Program, append(args, o.Flags...)...) //nolint:noctx // it is stopped by a signal
	g.cmd.Env = append(slices.DeleteFunc(slices.Clone(o.Environ), func(v string) bool { return strings.HasPrefix(v, "PORTEIRA_") }), g.secrets...)
	g.cmd.Stderr = log
	g.cmd.SysProcAttr = &syscall.SysProcAttr{}
	killWithParent(g.cmd.SysProcAttr)
	out, err := g.cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("bench: start the gateway: %w", err)
	}
	if err := g.cmd.Start(); err != nil {
		return fmt.Errorf("bench: start the gateway: %w", err)
	}
	var greeting struct {
		BaseURL string `json:"baseUrl"`
		Ops     string `json:"opsAddress"`
	}
	err = json.NewDecoder(out).Decode(&greeting)
	g.exited = make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, out)
		_ = g.cmd.Wait() // the cause is in its log
		close(g.exited)
	}()
	if err != nil {
		return fmt.Errorf("bench: the gateway did not start: %s", g.logTail())
	}
	g.baseURL, g.opsAddress = greeting.BaseURL, greeting.Ops
	return nil
}

func (g *gateway) log() string { return filepath.Join(g.folder, "gateway.log") }

// logTail is the end of the gateway's log.
func (g *gateway) logTail() string {
	text, err := os.ReadFile(g.log())
	if err != nil {
		return err.Error()
	}
	const most = 2000
	return strings.TrimSpace(string(text[max(0, len(text)-most):]))
}

// verify verifies the ledgers of all merchants and of the platform, and returns their
// defects.
func (g *gateway) verify(ctx context.Context) (faults []string, err error) {
	err = g.withAdmin(ctx, func(a *app.Admin) error {
		list, err := a.Store.Merchants(ctx)
		if err != nil {
			return err
		}
		for _, m := range append(list, store.Merchant{ID: payment.ID{}, Name: store.PlatformName}) {
			proofs, err := a.Store.Verify(ctx, m.ID)
			if err != nil {
				return err
			}
			for i := range proofs {
				if proofs[i].Check == store.FundsCheck { // the benchmark's merchants are funded
					continue
				}
				for _, f := range proofs[i].Defects {
					faults = append(faults, m.Name+": "+proofs[i].Check+" "+f.ID+": "+f.Detail)
				}
			}
		}
		return nil
	})
	return faults, err
}

// written is the number of bytes written to disk so far, and the writer.
func (g *gateway) written(ctx context.Context, u usage) (n int64, by string) {
	if g.database != nil {
		return g.database.written(ctx), writtenByServer
	}
	return u.written, writtenByGateway
}

// profile writes the gateway's CPU profile of a duration to a file.
func (g *gateway) profile(ctx context.Context, path string, d time.Duration) error {
	url := "http://" + g.opsAddress + "/debug/pprof/profile?seconds=" + strconv.Itoa(max(1, int(d/time.Second)))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	answer, err := g.env.Processor.RoundTrip(request)
	if err != nil {
		return fmt.Errorf("bench: take the profile: %w", err)
	}
	text, err := io.ReadAll(answer.Body)
	err = errors.Join(err, answer.Body.Close())
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d: %s", answer.StatusCode, text)
	}
	if err != nil {
		return fmt.Errorf("bench: take the profile: %w", err)
	}
	return os.WriteFile(path, text, 0o600)
}

// close stops the gateway, and removes its folder and database unless they are kept.
func (g *gateway) close() error {
	var errs []error
	if g.exited != nil {
		_ = g.cmd.Process.Signal(syscall.SIGTERM) // fails if it has ended
		limit := g.env.Clock.NewTimer(stopTimeout)
		select {
		case <-g.exited:
		case <-limit.C():
			errs = append(errs, errors.New("bench: the gateway did not stop in time, and was killed"))
			_ = g.cmd.Process.Kill()
			<-g.exited
		}
		limit.Stop()
	}
	if g.bank != nil {
		g.bank.close()
	}

	if g.keep && len(g.secrets) > 0 {
		// The database cannot be read without its key.
		key := strings.TrimPrefix(g.secrets[0], masterKeyVariable)
		return errors.Join(append(errs, os.WriteFile(filepath.Join(g.folder, "master.key"), []byte(key+"\n"), 0o600))...)
	}
	if g.database != nil {
		errs = append(errs, g.database.drop(context.Background()))
	}
	if g.folder != "" {
		errs = append(errs, os.RemoveAll(g.folder))
	}
	return errors.Join(errs...)
}
