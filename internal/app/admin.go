package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/porteira/porteira/internal/account"
	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/checkout"
	"github.com/porteira/porteira/internal/cluster"
	"github.com/porteira/porteira/internal/config"
	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/merchant"
	"github.com/porteira/porteira/internal/payout"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/processor/sandbox"
	"github.com/porteira/porteira/internal/review"
	"github.com/porteira/porteira/internal/sandboxbank"
	"github.com/porteira/porteira/internal/sandboxcontrol"
	"github.com/porteira/porteira/internal/store"
)

// Admin gives a command access to the database of a gateway that may be running.
// It is not a node: it claims nothing and sends nothing.
type Admin struct {
	Store     *store.Store
	Merchants *merchant.Service
	Payouts   *payout.Service
	Reviews   *review.Service
	Accounts  *account.Service
	Registry  *account.Registry // the accounts at the time of OpenAdmin
	PublicURL string            // of the gateway, without a trailing slash; "" if no gateway has run and the configuration has none
	Clock     env.Clock         // with the offset that the database has for a sandbox

	outside  cluster.Mark // as of OpenAdmin
	restored error        // see CheckRestore
}

// CheckRestore returns an error if the database is an older copy of itself, by the epoch in the data
// folder, and no gateway has been started on it since.
func (a *Admin) CheckRestore() error { return a.restored }

// As returns the access of an author, who makes all changes of merchants and accounts.
func (a *Admin) As(by actor.Author) *Admin {
	next := *a
	next.Merchants, next.Accounts = a.Merchants.As(by), a.Accounts.As(by)
	return &next
}

// CheckDecisions returns an error if the next gateway may find that the database is an older copy of
// itself: its cases and payouts do not show yet that they may be of the past, and a decision about
// them could pay twice. So a gateway runs, or has stopped cleanly a short time ago.
func (a *Admin) CheckDecisions(ctx context.Context) error {
	if a.restored != nil {
		return a.restored
	}
	inst, err := a.Store.ReadInstallation(ctx)
	if err != nil || inst.UpdatedAt.IsZero() || cluster.Agree(&inst, a.outside, a.Clock.Now()) {
		return err
	}
	nodes, err := a.Store.Nodes(ctx)
	if err != nil {
		return err
	}
	lives, err := cluster.Lives(ctx, a.Store, nodes, a.Clock.Now(), a.wait)
	if err == nil && !lives {
		err = problem.New(problem.InvalidState, "No gateway runs on this database. Start one first: until then nobody knows whether it is an older copy, and what seems not sent may have been sent.")
	}
	return err
}

func (a *Admin) wait(ctx context.Context, d time.Duration) error {
	timer := a.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// readMark reads the mark outside the database, and the error of CheckRestore. The mark is read
// first: a gateway that runs advances the epoch in the database before it.
func (a *Admin) readMark(ctx context.Context, folder string) (err error) {
	if a.outside, err = (&marker{path: folder, installation: a.Store.Installation()}).Read(); err != nil {
		return err
	}
	now, err := a.Store.ReadInstallation(ctx)
	if err == nil && now.Epoch < a.outside.Epoch {
		a.restored = problem.New(problem.InvalidState, "The database was restored from a backup, and no gateway has been started on it since. Start one first: what seems not sent may have been sent.")
	}
	return err
}

// ownBank stands for the bank of a gateway's configuration, which commands cannot call.
var ownBank = sandbox.Options{URL: sandboxbank.InProcessURL, Secret: "of the gateway", Transport: unreachable{}, Inside: true}

// ErrOwnBank says why a command cannot call a bank.
var ErrOwnBank = errors.New("the bank is that of the gateway's configuration, which only the gateway can reach")

type unreachable struct{}

// RoundTrip implements [http.RoundTripper].
func (unreachable) RoundTrip(*http.Request) (*http.Response, error) { return nil, ErrOwnBank }

// OpenAdmin opens the database, even if a gateway is running on it.
func OpenAdmin(ctx context.Context, cfg *config.Config, log *slog.Logger) (*Admin, error) {
	o, err := storeOptions(cfg, log)
	if err != nil {
		return nil, err
	}
	o.Shared = true
	if path := databasePath(cfg); !db.IsPostgres(cfg.Database) {
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("database %s not found: set its folder with --data, or its path with --database", path)
		}
	}
	s, err := store.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	clock := o.Env.Clock.(*env.SystemClock) // documented by env.System
	if err := errors.Join(checkKey(ctx, s), sandboxcontrol.NewClock(s, clock, nil).Follow(ctx)); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	ao := account.Options{Store: s, Env: o.Env, Drivers: drivers(sandbox.Driver{Own: &ownBank})}
	registry := account.NewRegistry(ao, slog.New(slog.DiscardHandler), nil)
	if _, err := registry.Follow(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	publicURL, err := s.Setting(ctx, store.SettingPublicURL)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	core := CoreOptions{Store: s, Env: o.Env, Processors: registry, Log: log}
	if publicURL != "" {
		core.Links = checkout.Links(publicURL, s.Keys())
	}
	c := NewCore(core)
	if err := c.Cluster.Observe(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	a := &Admin{
		Store: s, PublicURL: cmp.Or(cfg.PublicURL, publicURL), Clock: clock, Accounts: account.New(ao), Registry: registry,
		Merchants: c.Merchants.As(actor.Author{}), Payouts: c.Payouts, Reviews: c.Reviews,
	}
	if err := a.readMark(ctx, cfg.Data); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return a, nil
}

// EnsureSandbox adds the account of the sandbox's bank, if it does not exist.
func (a *Admin) EnsureSandbox(ctx context.Context) (store.Account, error) {
	v, err := a.Accounts.Ensure(ctx, store.Account{ID: sandbox.Name, Driver: sandbox.Name})
	if err != nil {
		return v, err
	}
	_, err = a.Registry.Follow(ctx)
	return v, err
}

// UsesOwnBank reports whether an account is one at the bank of a gateway's configuration.
func UsesOwnBank(v *store.Account) bool {
	return v.Driver == sandbox.Name && v.Settings[sandbox.SettingBaseURL] == ""
}

// Inspect checks an account: offline, and at its processor.
func (a *Admin) Inspect(ctx context.Context, v *store.Account) []processor.Finding {
	if err := a.Accounts.Check(ctx, v); err != nil {
		return []processor.Finding{{Check: "account", Problem: err.Error(), Action: "Correct its secrets with porteira account rotate, or add another account."}}
	}
	findings := []processor.Finding{{Check: "account"}}
	if UsesOwnBank(v) {
		return append(findings, processor.Finding{
			Check: "bank", Detail: "not called: " + ErrOwnBank.Error(), Action: "health in porteira account show " + v.ID + " says whether the gateway can read its lists.",
		})
	}
	findings = append(findings, a.inspectRotation(ctx, v)...)
	proc := a.Registry.Find(v.ID)
	if inspector, ok := proc.(processor.Inspector); ok {
		findings = append(findings, inspector.Inspect(ctx)...)
	}
	if slices.ContainsFunc(findings, func(f processor.Finding) bool { return f.Stops }) {
		return append(findings, processor.Finding{Check: "notices, ledger", Detail: "not checked", Action: "Solve the problem above, then test again."})
	}
	if installer, ok := proc.(processor.Installer); ok && a.PublicURL != "" {
		findings = append(findings, installer.Installed(ctx, a.PublicURL+account.NoticePath(v)))
	}
	if reader, ok := proc.(processor.BalanceReader); ok {
		findings = append(findings, a.compareBalance(ctx, v.ID, reader))
	}
	return findings
}

// compareBalance compares the money of an account at its processor with the ledger's.
func (a *Admin) compareBalance(ctx context.Context, id string, reader processor.BalanceReader) processor.Finding {
	f := processor.Finding{Check: "ledger"}
	there, err := reader.Balance(ctx)
	all, other := a.Store.AllBalances(ctx)
	here := -all[ledger.Clearing(id)]
	if err := errors.Join(err, other); err != nil {
		f.Problem, f.Action = err.Error(), "Test again."
		return f
	}
	f.Detail = there.Amount.English() + " at the processor"
	if there.ToCome != 0 {
		f.Detail += ", " + there.ToCome.English() + " that it credits until " + there.LastDay
	}
	f.Detail += ", " + here.English() + " in the ledger"
	if gap := there.Amount + there.ToCome - here; gap != 0 {
		f.Detail += ": they differ by " + gap.English()
		f.Action = "Test again in some minutes: money and fees in transit are on one side only. If a difference remains, something was not booked, such as money from before the account was added, or transfers in the processor's panel: compare its statement."
	}
	return f
}

// AwaitedAccounts are the accounts, sorted, because of which new payouts of a merchant are refused
// after a restore.
func (a *Admin) AwaitedAccounts(ctx context.Context, m *store.Merchant) ([]string, error) {
	installation, err := a.Store.ReadInstallation(ctx)
	if err != nil {
		return nil, err
	}
	frozen, err := a.Store.Frozen(ctx)
	if err != nil {
		return nil, err
	}
	return payout.AwaitedAccounts(a.Registry, m, installation.RestoredAt, frozen), nil
}

// Install registers an account's address for notices at its processor. Errors: problem
// kinds unavailable if the account cannot be opened, invalid_state if the gateway has no
// public URL or the processor registers no address.
func (a *Admin) Install(ctx context.Context, v *store.Account) error {
	proc, err := a.Registry.Of(v.ID)
	if err != nil {
		return err
	}
	if a.PublicURL == "" {
		return problem.New(problem.InvalidState, "The gateway has no public URL: set --public-url.")
	}
	url := a.PublicURL + account.NoticePath(v)
	installer, installs := proc.(processor.Installer)
	if installs {
		if err := a.awaitFollowed(ctx, v); err != nil { // the processor tests the address at once
			return err
		}
	}
	limited, cancel := context.WithTimeout(ctx, registerTimeout)
	defer cancel()
	if installs {
		return installer.Install(limited, url)
	}
	registrar, ok := proc.(processor.Registrar)
	if !ok {
		return problem.New(problem.InvalidState, "Programs cannot register addresses at this processor: enter the address of porteira account show in its panel.")
	}
	return registrar.Register(limited, url, registerFor)
}

// followedWithin is how long every gateway may take to follow a change of an account.
const followedWithin = 3 * time.Second

// awaitFollowed waits until every gateway has followed the last change of an account.
func (a *Admin) awaitFollowed(ctx context.Context, v *store.Account) error {
	left := followedWithin - a.Clock.Now().Sub(v.UpdatedAt)
	if left <= 0 || left > followedWithin {
		return nil
	}
	return a.wait(ctx, left)
}

// Close closes the database.
func (a *Admin) Close() error { return a.Store.Close() }

// Migrate upgrades the database's schema to this program's version and returns
// the versions that it applied.
func Migrate(ctx context.Context, cfg *config.Config, log *slog.Logger) ([]int64, error) {
	o, err := storeOptions(cfg, log)
	if _, exists := os.Stat(databasePath(cfg)); exists == nil && isNoMasterKey(err) {
		err = fmt.Errorf("%w; restore the key that this database was created with: a new one cannot open it", err)
	} else if isNoMasterKey(err) {
		err = fmt.Errorf("%w; for a new database create one: mkdir -p -m 700 %s && (umask 077; openssl rand -base64 32 > %s)", err, filepath.Dir(cfg.MasterKeyFile), cfg.MasterKeyFile)
	}
	if err != nil {
		return nil, err
	}
	return store.Migrate(ctx, o)
}

// noMasterKey is the file of a master key that does not exist.
type noMasterKey string

// Error implements error.
func (file noMasterKey) Error() string {
	return "master key " + string(file) + " not found: set its folder with --data, or its path with --master-key-file"
}

func isNoMasterKey(err error) bool {
	_, ok := errors.AsType[noMasterKey](err)
	return ok
}

func storeOptions(cfg *config.Config, log *slog.Logger) (db.Options, error) {
	w := env.System(env.OutboundOptions{})
	key, err := readMasterKey(cfg)
	if errors.Is(err, fs.ErrNotExist) {
		err = noMasterKey(cfg.MasterKeyFile)
	}
	if err != nil {
		return db.Options{}, err
	}
	retired, err := retiredKeys(cfg)
	if err != nil {
		return db.Options{}, err
	}
	keys, err := db.NewKeyring(key, w.Random, retired...)
	return db.Options{Database: cfg.Database, Keys: keys, Env: w, Log: log}, err
}

// Logger writes to out, in the configured format and level.
func Logger(cfg *config.Config, out io.Writer) *slog.Logger {
	o := &slog.HandlerOptions{Level: cfg.LogLevel}
	if cfg.LogJSON {
		return slog.New(slog.NewJSONHandler(out, o))
	}
	return slog.New(slog.NewTextHandler(out, o))
}
