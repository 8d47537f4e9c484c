package app

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"time"

	"github.com/porteira/porteira/internal/account"
	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/config"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/httpapi"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/processor/apipix"
	"github.com/porteira/porteira/internal/processor/asaas"
	"github.com/porteira/porteira/internal/processor/sandbox"
	"github.com/porteira/porteira/internal/sandboxbank"
	"github.com/porteira/porteira/internal/sandboxbank/asaasface"
	"github.com/porteira/porteira/internal/sandboxcontrol"
	"github.com/porteira/porteira/internal/store"
)

// noticeWorkers is the number of notices that the bank sends at once.
const noticeWorkers = 8

// registerFor is how long a registration at a shared bank lasts: it expires, so that it
// ends with its gateway, and the gateway renews it, because either may restart.
const registerFor = 2 * time.Minute

// registerTimeout bounds a registration.
const registerTimeout = 10 * time.Second

// bank is the gateway's connection to the sandbox's bank.
type bank struct {
	inside  *sandboxbank.Bank // nil if it is a process of its own
	options sandbox.Options   // of its drivers
	control *sandbox.Control
	cancel  context.CancelFunc
	runs    sync.WaitGroup
}

// openBank opens the bank in this process, or connects to the shared one. Production
// without a shared bank has none.
func (a *App) openBank() (err error) {
	if a.cfg.BankURL == "" && a.cfg.Mode != config.Dev {
		return nil
	}
	b := &bank{}
	o := sandbox.Options{URL: a.cfg.BankURL, Secret: a.cfg.BankSecret.Reveal(), Transport: a.env.Processor}
	if a.cfg.BankURL == "" {
		secret := o.Secret
		if secret == "" { // no other process needs it
			random := make([]byte, 32)
			a.env.Random.Read(random)
			secret = hex.EncodeToString(random)
		}
		inside, err := sandboxbank.Open(sandboxbank.Options{
			Path: filepath.Join(a.cfg.Data, journalFile), Secret: secret, Clock: a.env.Clock, IDs: a.env.IDs,
			Notify: a.env.Processor, NoticeWorkers: noticeWorkers, Log: a.log,
		})
		if err != nil {
			return bankError(a.cfg.Data, err)
		}
		b.inside = inside
		o = sandbox.Options{URL: sandboxbank.InProcessURL, Secret: secret, Transport: inside.Transport(), Offline: inside.OfflineCharges, Inside: true}
	}
	a.bank, b.options = b, o
	b.control, err = sandbox.NewControl(o)
	return err
}

// drivers lists the drivers of all processors.
func drivers(own sandbox.Driver) []processor.Driver {
	return []processor.Driver{own, apipix.Driver{}, asaas.Driver{}}
}

// openAccounts opens the accounts of the database. If the configuration has a bank, the
// account sandbox is there: it is added if it does not exist.
func (a *App) openAccounts(ctx context.Context) error {
	driver := sandbox.Driver{}
	if a.bank != nil {
		driver.Own = &a.bank.options
	}
	o := account.Options{Store: a.store, Env: a.env, Drivers: drivers(driver), Author: actor.Author{Actor: actor.System}}
	if a.bank != nil {
		if _, err := account.New(o).Ensure(ctx, store.Account{ID: sandbox.Name, Driver: sandbox.Name}); err != nil {
			return fmt.Errorf("add the account %s: %w", sandbox.Name, err)
		}
	}
	a.accounts = account.NewRegistry(o, a.log, a.accountChanged)
	if _, err := a.accounts.Follow(ctx); err != nil {
		return err
	}
	if len(a.accounts.IDs()) == 0 {
		a.log.WarnContext(ctx, "no processor account can be opened (porteira account add adds one, --bank sets a sandbox bank): new orders will get 503")
	}
	return nil
}

// accountChanged gives the bank in this process the address for its notices.
func (a *App) accountChanged(v store.Account) {
	if a.bank != nil && a.bank.inside != nil && v.Driver == sandbox.Name && v.Settings[sandbox.SettingBaseURL] == "" {
		address := localURL(a.listener.Addr()) + account.NoticePath(&v)
		repeat, name := sandbox.ContractOf(v.Settings)
		if name == "" {
			a.bank.inside.SetNotifyURL(address)
		} else if err := a.bank.inside.SetContractURL(repeat, name, address); err != nil {
			a.log.Error("the contract of the account cannot be opened at the sandbox's bank", "account", v.ID, "error", err)
		}
	}
}

// bankOf is the control of an account's bank; nil if it is at another processor.
func (a *App) bankOf(id string) sandboxcontrol.Bank {
	switch p := a.accounts.Find(id).(type) {
	case *sandbox.Processor:
		return p.Control()
	case nil: // which cannot be opened
		return a.bank.control
	default:
		return nil
	}
}

// NoticeURL is the address of an account for notices, of which the token is a secret.
func (a *App) NoticeURL(ctx context.Context, id string) (string, error) {
	v, err := a.store.Account(ctx, id)
	return a.BaseURL() + account.NoticePath(&v), err
}

func bankError(data string, err error) error {
	path := filepath.Join(data, journalFile)
	switch {
	case errors.Is(err, sandboxbank.ErrJournalLocked):
		return fmt.Errorf("another sandbox bank uses %s: stop it, or choose another folder with --data: %w", path, err)
	case errors.Is(err, sandboxbank.ErrJournalForeign):
		return fmt.Errorf("%s is not a bank's journal: move it away: %w", path, err)
	case errors.Is(err, sandboxbank.ErrJournalDamaged):
		return fmt.Errorf("%s is damaged: restore it from a backup, or move it and the database away to start afresh: %w", path, err)
	}
	return err
}

func (b *bank) start(ctx context.Context, a *App) {
	if b.inside == nil {
		return
	}
	ctx, b.cancel = context.WithCancel(ctx)
	b.runs.Go(func() {
		if err := b.inside.Run(ctx); err != nil && ctx.Err() == nil {
			a.log.ErrorContext(ctx, "the sandbox's bank stopped", "error", err)
		}
	})
}

func (b *bank) stop() {
	if b.cancel != nil {
		b.cancel()
		b.runs.Wait()
	}
}

func (b *bank) close() error {
	b.stop()
	if b.inside == nil {
		return nil
	}
	return b.inside.Close()
}

// BankOptions are the parameters of RunBank besides its configuration.
type BankOptions struct {
	Log *slog.Logger
	// Asaas, if not nil, is called before Ready with the bank's face as Asaas, if it has one.
	Asaas func(b AsaasBank)
	// Ready, if not nil, is called with the bank's URL when its server runs.
	Ready func(address string)
	// APIPix, if not nil, is called before Ready if the bank is served as one of the API Pix.
	APIPix func(b APIPixBank)
}

// RunBank runs the sandbox's bank alone in this process until ctx ends.
func RunBank(ctx context.Context, cfg *config.Config, o BankOptions) (err error) {
	w := env.System(env.OutboundOptions{})
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if err := makeFolder(cfg.Data); err != nil {
		return err
	}
	relay := &asaasface.Relay{Next: w.Processor}
	options := sandboxbank.Options{
		Path: filepath.Join(cfg.Data, journalFile), Secret: cfg.BankSecret.Reveal(), Clock: w.Clock, IDs: w.IDs,
		Notify: relay, NoticeWorkers: noticeWorkers, Log: o.Log,
	}
	pix, err := openAPIPix(ctx, cfg, w, o.Log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pix.close()) }()
	pix.notify(&options)
	inside, err := sandboxbank.Open(options)
	if err != nil {
		return bankError(cfg.Data, err)
	}
	b := &bank{inside: inside}
	defer func() { err = errors.Join(err, b.close()) }()
	face, err := openAsaas(ctx, cfg, inside, relay, w, o.Log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, face.close()) }()
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", cfg.Listen)
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %w: choose another address with --listen", cfg.Listen, err)
	}
	server := httpapi.Server(inside.Handler(), o.Log)
	failed := make(chan error, 3)
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	b.cancel = cancel
	b.runs.Go(func() {
		if err := inside.Run(running); err != nil && running.Err() == nil {
			failed <- fmt.Errorf("app: bank: %w", err)
		}
	})
	if err := pix.serve(inside, failed); err != nil {
		return errors.Join(err, listener.Close())
	}
	go func() { failed <- server.Serve(listener) }()
	if face.listener != nil {
		go func() { failed <- face.serve() }()
		if o.Asaas != nil {
			o.Asaas(face.AsaasBank)
		}
	}
	o.Log.InfoContext(ctx, "serving the bank", "address", listener.Addr().String())
	if pix != nil && o.APIPix != nil {
		o.APIPix(pix.account())
	}
	if o.Ready != nil {
		o.Ready(localURL(listener.Addr()))
	}
	select {
	case <-ctx.Done():
		limit, cancel := w.Clock.WithTimeout(running, cfg.ShutdownTimeout/2)
		defer cancel()
		return errors.Join(drain(limit, server), pix.drain(limit))
	case err := <-failed:
		return errors.Join(err, server.Close())
	}
}
