package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/cluster"
	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/merchant"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/processor/sandbox"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/worker"
	"github.com/porteira/porteira/internal/write"
)

const (
	// batch is the number of orders per commit.
	batch = 2048
	// gap is the time between two pay-ins: about ten million a year.
	gap = 3 * time.Second
	// funds is the opening balance of each merchant, in cents.
	funds = 1_000_000_000_00

	// marker is the setting that identifies a database of this program.
	marker = "loadtest"
)

// filler fills one store. Its clock begins in the past and ends about now.
type filler struct {
	store     *store.Store
	core      *app.Core
	clock     *env.VirtualClock
	env       env.Env
	merchants []store.Merchant
	shares    []float64 // cumulative
	last      []order   // of the batch before
}

func fill(ctx context.Context, o options, random env.Random) (err error) {
	if o.payins+o.payouts == 0 {
		return nil
	}
	f, err := newFiller(ctx, o, random, o.payins)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.store.Close()) }()
	real := env.NewSystemClock()
	began := real.Monotonic()
	for payins, payouts := 0, 0; payins < o.payins || payouts < o.payouts; {
		n := min(batch, o.payins-payins)
		m := min(batch, o.payouts-payouts, max(1, o.payouts*(payins+n)/max(1, o.payins)-payouts))
		if n == 0 {
			m = min(batch, o.payouts-payouts)
		}
		if err := f.addOrders(ctx, n, m); err != nil {
			return err
		}
		payins, payouts = payins+n, payouts+m
		fmt.Fprintf(os.Stderr, "\r%d pay-ins, %d payouts, %.0f orders/s ", payins, payouts, float64(payins+payouts)/(real.Monotonic()-began).Seconds())
	}
	fmt.Fprintln(os.Stderr)
	f.clock.Advance(48 * time.Hour) // everything expires and is delivered
	return errors.Join(f.addOrders(ctx, 0, 0), f.core.Leave(ctx, true))
}

// newFiller opens a store for so many pay-ins.
func newFiller(ctx context.Context, o options, random env.Random, payins int) (*filler, error) {
	clock := env.NewVirtualClock(env.NewSystemClock().Now().Add(-time.Duration(payins) * gap))
	f := &filler{clock: clock, env: env.Env{Clock: clock, IDs: env.NewIDs(random), Random: random}}
	return f, f.open(ctx, o)
}

func (f *filler) open(ctx context.Context, o options) error {
	key, err := masterKey(filepath.Join(o.data, "master.key"), f.env.Random)
	if err != nil {
		return err
	}
	keys, err := db.NewKeyring(key, f.env.Random)
	if err != nil {
		return err
	}
	options := db.Options{Database: o.database, Keys: keys, Env: f.env, AllowUnsafe: true}
	if o.database == "" {
		options.Database = filepath.Join(o.data, "porteira.db")
	}
	if _, err := store.Migrate(ctx, options); err != nil {
		return err
	}
	if f.store, err = store.Open(ctx, options); err != nil {
		return err
	}
	f.core = app.NewCore(app.CoreOptions{
		Store: f.store, Env: f.env, Processors: processor.Registry{sandbox.Name: bank{}}, Spawn: worker.Inline,
	})
	mark, err := f.mark(ctx)
	if err != nil {
		return err
	}
	if err := f.core.Cluster.Join(ctx, mark, true); err != nil {
		return err
	}
	if _, err := f.core.Cluster.KeepAlive(ctx); err != nil {
		return err
	}
	return f.openMerchants(ctx, o.merchants)
}

// mark agrees with the store that its last run has just stopped cleanly: a filled store is never
// restored, and its clock goes back from run to run. Payouts would wait for the lists of a bank that
// has none.
func (f *filler) mark(ctx context.Context) (m cluster.Mark, err error) {
	if filled, err := f.store.Setting(ctx, marker); err != nil || filled == "" {
		return m, err
	}
	err = f.store.Transact(ctx, func(tx *store.Tx) error {
		inst, err := tx.Installation(ctx)
		if err != nil {
			return err
		}
		inst.StopToken, inst.StoppedAt = marker, tx.Now
		m = cluster.Mark{Epoch: inst.Epoch, Stop: marker}
		return tx.SetInstallation(ctx, inst)
	})
	return m, err
}

// openMerchants creates the merchants of a new store, or reads those of one that this
// program made.
func (f *filler) openMerchants(ctx context.Context, n int) (err error) {
	if f.merchants, err = f.store.Merchants(ctx); err != nil {
		return err
	}
	mark, err := f.store.Setting(ctx, marker)
	switch {
	case err != nil:
		return err
	case mark == "" && len(f.merchants) > 0:
		return errors.New("this database was not made by loadtest: choose another")
	case mark == "":
		if err := f.core.Writer.Do(ctx, write.SetSetting{Name: store.SettingSandbox, Value: "true"}); err != nil { // dev runs on it
			return err
		}
		if err := f.core.Writer.Do(ctx, write.SetSetting{Name: marker, Value: "filled"}); err != nil {
			return err
		}
	}
	for i := len(f.merchants); i < n; i++ {
		m, err := f.core.Merchants.Create(ctx, store.Merchant{Name: fmt.Sprintf("shop %d", i+1), City: "SAO PAULO", Routes: payment.AllRoutes(sandbox.Name)}, "")
		if err != nil {
			return err
		}
		if m.Limits, err = f.core.Merchants.SetLimits(ctx, m.ID, merchant.Unlimited); err != nil {
			return err
		}
		if err := f.core.Merchants.Fund(ctx, m, funds); err != nil {
			return err
		}
		f.merchants = append(f.merchants, m)
	}
	sum := 0.0
	for i := range f.merchants {
		sum += 1 / float64(i+1)
		f.shares = append(f.shares, sum)
	}
	return nil
}

// masterKey reads the key of a store, or makes it, in the form that `porteira dev` reads.
func masterKey(path string, random env.Random) ([]byte, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		key := make([]byte, db.MasterKeyLength)
		random.Read(key)
		return key, os.WriteFile(path, []byte(base64.StdEncoding.EncodeToString(key)+"\n"), 0o600)
	}
	if err != nil {
		return nil, err
	}
	return db.ParseMasterKey(strings.TrimSpace(string(text)))
}

// bank is the sandbox as a processor that makes codes without a call. The filler
// itself decides the outcome of transfers and charges.
type bank struct{ processor.Transferrer }

// Profile implements [processor.Processor].
func (bank) Profile() processor.Profile {
	return processor.Profile{Name: sandbox.Name, Methods: payment.Methods, Transfer: processor.Effect{Repeat: processor.RepeatReturnsFirst, Timeout: 5 * time.Second}}
}

// NewCharge implements [processor.OfflineCharger].
func (bank) NewCharge(r processor.ChargeRequest) (processor.Charge, bool) {
	made, err := bankapi.Instruct(r.ExternalID, bankapi.ChargeTerms{
		Method: bankapi.Method(r.Method), Amount: r.Amount, ExpiresAt: r.ExpiresAt, MerchantName: r.MerchantName, MerchantCity: r.MerchantCity,
	})
	return processor.Charge{PIX: (*payment.PIXDetail)(made.PIX)}, err == nil
}

// Charge implements [processor.Charger]; it is not called.
func (bank) Charge(context.Context, processor.ChargeRequest, func() error) processor.ChargeAnswer {
	return processor.ChargeAnswer{}
}

// QueryCharge implements [processor.Charger]; it is not called.
func (bank) QueryCharge(context.Context, string) processor.ChargeReport {
	return processor.ChargeReport{}
}
