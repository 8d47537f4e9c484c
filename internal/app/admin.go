package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"

	"github.com/porteira/porteira/internal/checkout"
	"github.com/porteira/porteira/internal/config"
	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/merchant"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/processor/sandbox"
	"github.com/porteira/porteira/internal/review"
	"github.com/porteira/porteira/internal/sandboxcontrol"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

// Admin gives a command access to the database of a gateway that may be running.
// It is not a node: it claims nothing and sends nothing.
type Admin struct {
	Store     *store.Store
	Merchants *merchant.Service
	Reviews   *review.Service
	Clock     env.Clock // with the offset that the database has for a sandbox
}

// named is a processor that commands name but do not call.
type named string

func (n named) Profile() processor.Profile { return processor.Profile{Name: string(n)} }

// Processors lists the processors that a merchant can use.
var Processors = []string{sandbox.Name}

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
	registry := processor.Registry{}
	for _, name := range Processors {
		registry[name] = named(name)
	}
	publicURL, err := s.Setting(ctx, store.SettingPublicURL)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	links := func(*payment.Payin) payment.Links { return payment.Links{} }
	if publicURL != "" {
		links = checkout.Links(publicURL, s.Keys())
	}
	return &Admin{
		Store: s, Clock: clock, Merchants: merchant.New(merchant.Options{Store: s, Env: o.Env, Processors: registry}),
		Reviews: review.New(review.Options{Store: s, Writer: write.New(write.Options{Store: s, Env: o.Env, Log: log}), Env: o.Env, Links: links}),
	}, nil
}

// Close closes the database.
func (a *Admin) Close() error { return a.Store.Close() }

// Migrate upgrades the database's schema to this program's version and returns
// the versions that it applied.
func Migrate(ctx context.Context, cfg *config.Config, log *slog.Logger) ([]int64, error) {
	o, err := storeOptions(cfg, log)
	if err != nil {
		return nil, err
	}
	return store.Migrate(ctx, o)
}

func storeOptions(cfg *config.Config, log *slog.Logger) (db.Options, error) {
	w := env.System(env.OutboundOptions{})
	key, err := readMasterKey(cfg)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("master key %s not found: set its folder with --data, or its path with --master-key-file", cfg.MasterKeyFile)
	}
	if err != nil {
		return db.Options{}, err
	}
	keys, err := db.NewKeyring(key, w.Random)
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
