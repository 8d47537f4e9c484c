package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"

	"github.com/porteira/porteira/internal/config"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/flow"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/processor/sandbox"
	"github.com/porteira/porteira/internal/sandboxcontrol"
	"github.com/porteira/porteira/internal/store"
)

// Admin is what a command beside a running gateway works with. It is no node:
// it claims nothing and sends nothing.
type Admin struct {
	Store *store.Store
	Flow  *flow.Flow
	Clock env.Clock // the database's: a sandbox may have moved it
}

// named is a processor that a command may name and does not call.
type named string

func (n named) Profile() processor.Profile { return processor.Profile{Name: string(n)} }

// Processors lists the processors that a merchant may be given.
var Processors = []string{sandbox.Name}

// OpenAdmin opens the database beside the gateway that may be running on it.
func OpenAdmin(ctx context.Context, cfg *config.Config, log *slog.Logger) (*Admin, error) {
	o, err := storeOptions(cfg, log)
	if err != nil {
		return nil, err
	}
	o.Shared = true
	if path := databasePath(cfg); !store.IsPostgres(cfg.Database) {
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("there is no database %s: name its folder by --data, or its path by --database", path)
		}
	}
	s, err := store.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	clock := o.Env.Clock.(*env.SystemClock) // System promises it
	if err := errors.Join(checkKey(ctx, s), sandboxcontrol.NewClock(s, clock, nil).Follow(ctx)); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	registry := processor.Registry{}
	for _, name := range Processors {
		registry[name] = named(name)
	}
	return &Admin{Store: s, Clock: clock, Flow: flow.New(flow.Options{Store: s, Env: o.Env, Processors: registry, Log: log})}, nil
}

// Close closes the database.
func (a *Admin) Close() error { return a.Store.Close() }

// Migrate brings the database's schema up to this program's and returns the
// versions that it applied.
func Migrate(ctx context.Context, cfg *config.Config, log *slog.Logger) ([]int64, error) {
	o, err := storeOptions(cfg, log)
	if err != nil {
		return nil, err
	}
	return store.Migrate(ctx, o)
}

func storeOptions(cfg *config.Config, log *slog.Logger) (store.Options, error) {
	w := env.System(env.OutboundOptions{})
	key, err := readMasterKey(cfg)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("the master key %s is not there: name its folder by --data, or its path by --master-key-file", cfg.MasterKeyFile)
	}
	if err != nil {
		return store.Options{}, err
	}
	keys, err := store.NewKeyring(key, w.Random)
	return store.Options{Database: cfg.Database, Keys: keys, Env: w, Log: log}, err
}

// Logger writes what the configuration asks for to out.
func Logger(cfg *config.Config, out io.Writer) *slog.Logger {
	o := &slog.HandlerOptions{Level: cfg.LogLevel}
	if cfg.LogJSON {
		return slog.New(slog.NewJSONHandler(out, o))
	}
	return slog.New(slog.NewTextHandler(out, o))
}
