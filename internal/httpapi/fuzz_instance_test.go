package httpapi_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/checkout"
	"github.com/porteira/porteira/internal/cluster"
	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/httpapi"
	"github.com/porteira/porteira/internal/merchant"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/notice"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/processor/sandbox"
	"github.com/porteira/porteira/internal/sandboxbank"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
	"github.com/porteira/porteira/internal/worker"
)

// instanceUses is how many runs use one instance: each leaves its orders behind,
// which slows the database down.
const instanceUses = 400

// instance is a complete gateway with its database, its background jobs and the
// sandbox's bank, in one goroutine on a virtual clock.
type instance struct {
	clock   *env.VirtualClock
	store   *store.Store
	core    *app.Core
	bank    *sandboxbank.Bank
	control *sandbox.Control
	handler http.Handler
	folder  string
	uses    int
	actors  [2]store.Merchant // of the current run
	noticed int               // notices that were received and not yet applied
}

// instancePool reuses an instance for several runs.
type instancePool struct {
	folder  string
	options db.Options
	empty   []byte // a migrated database
	current *instance
}

func newInstancePool(f *testing.F) *instancePool {
	f.Helper()
	folder := f.TempDir()
	w, _ := env.Virtual(start, 1)
	keys, err := db.NewKeyring(make([]byte, db.MasterKeyLength), w.Random)
	if err != nil {
		f.Fatal(err)
	}
	h := &instancePool{folder: folder, options: db.Options{Keys: keys, Env: w, Log: slog.New(slog.DiscardHandler)}}
	h.options.Database = filepath.Join(folder, "empty.db")
	if _, err := store.Migrate(context.Background(), h.options); err != nil {
		f.Fatal(err)
	}
	if h.empty, err = os.ReadFile(h.options.Database); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if h.current != nil {
			h.current.close()
		}
	})
	return h
}

// instance returns an instance with two new merchants.
func (h *instancePool) instance(t *testing.T) *instance {
	t.Helper()
	if h.current != nil && h.current.uses >= instanceUses {
		h.current.close()
		h.current = nil
	}
	if h.current == nil {
		h.current = h.build(t)
	}
	s := h.current
	s.uses++
	for i, funds := range openings {
		name := fmt.Sprintf("actor %d of run %d", i, s.uses)
		key := fmt.Sprintf("key_%d_%d", i, s.uses)
		must(t, s.core.Merchants.Seed(t.Context(), merchant.Seed{
			Merchant: store.Merchant{Name: name, City: "OLINDA", Routes: payment.AllRoutes(sandbox.Name)}, WebhookSecret: vectorSecret,
			Credential: merchant.NewCredential{KeyID: key, Secret: "secret", Label: "fuzz"}, Funds: money.Cents(funds),
		}))
		var err error
		s.actors[i], err = s.store.MerchantByName(t.Context(), name)
		must(t, err)
	}
	return s
}

// openings are the opening balances of the two merchants, in cents.
var openings = [2]int64{10_000, 50}

// vectorSecret is a secret of the documentation of Standard Webhooks.
const vectorSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

const bankSecret = "a secret between bank and gateway"

func (h *instancePool) build(t *testing.T) *instance {
	t.Helper()
	s := &instance{}
	var err error
	s.folder, err = os.MkdirTemp(h.folder, "instance-")
	must(t, err)
	o := h.options
	o.Database = filepath.Join(s.folder, "porteira.db")
	must(t, os.WriteFile(o.Database, h.empty, 0o600))
	w, clock := env.Virtual(start, 1)
	o.Env, s.clock = w, clock
	s.store, err = store.Open(context.Background(), o)
	must(t, err)
	s.bank, err = sandboxbank.Open(sandboxbank.Options{
		Secret: bankSecret, Clock: clock, IDs: w.IDs, Notify: s, NotifyURL: "http://gateway.invalid/inbound/" + sandbox.Name + "/" + sandbox.Name,
	})
	must(t, err)
	near := sandbox.Options{URL: sandboxbank.InProcessURL, Secret: bankSecret, Transport: s.bank.Transport(), Offline: s.bank.OfflineCharges}
	s.control, err = sandbox.NewControl(near)
	must(t, err)
	adapter, err := sandbox.NewProcessor(near)
	must(t, err)
	registry := processor.Registry{sandbox.Name: adapter}
	links := checkout.Links("https://pay.example", s.store.Keys())
	s.core = app.NewCore(app.CoreOptions{
		Store: s.store, Env: w, Processors: registry, Links: links, Log: o.Log, Spawn: worker.Inline, RecordOnce: true,
	})
	must(t, s.core.Cluster.Join(context.Background(), cluster.Mark{}, true))
	must(t, s.finish(s.core.Cluster.KeepAlive))
	s.handler = httpapi.New(httpapi.Options{
		Admission: s.core.Writer, Payins: s.core.Payins, Payouts: s.core.Payouts, Refunds: s.core.Refunds, Events: s.core.Deliveries, Endpoints: s.core.Endpoints, Secrets: s.core.Merchants,
		Reader: s.store, Keys: s.store.Keys(), Env: w, Processors: registry, AllowHTTP: true, Sandbox: s, Links: links,
		Inbound: notice.NewHandler(notice.HandlerOptions{Recorder: s.core.Notices, Questions: s.core.Outgoing, Processors: registry, Clock: clock}),
	})
	return s
}

func (s *instance) close() {
	_ = s.bank.Close()
	_ = s.store.Close()
	_ = os.RemoveAll(s.folder)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// finish runs a job until it has nothing left to do.
func (s *instance) finish(job func(context.Context) (int, error)) error {
	for range 1000 {
		if did, err := job(context.Background()); err != nil || did == 0 {
			return err
		}
	}
	return errors.New("a job does not terminate")
}

// work sends every pending payout, and applies the notices of the bank.
func (s *instance) work() error {
	return errors.Join(s.finish(s.core.Outgoing.Send), s.applyNotices())
}

func (s *instance) applyNotices() error {
	for {
		s.noticed = 0
		err := s.finish(func(ctx context.Context) (int, error) { return s.bank.Step(ctx, s.clock.Now()) })
		if err != nil || s.noticed == 0 {
			return err
		}
		if err := s.finish(s.core.Notices.Apply); err != nil {
			return err
		}
	}
}

// pass advances the clock.
func (s *instance) pass(d time.Duration) error {
	s.clock.Advance(d)
	return errors.Join(s.finish(s.core.Cluster.KeepAlive), s.applyNotices(), s.finish(s.core.Payins.Expire))
}

// RoundTrip delivers a notice of the bank to the gateway.
func (s *instance) RoundTrip(r *http.Request) (*http.Response, error) {
	s.noticed++
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return w.Result(), nil
}

// PayinAction implements [httpapi.Sandbox].
func (s *instance) PayinAction(ctx context.Context, id payment.ID, action string, how wire.SandboxPayin) error {
	for i := range s.actors {
		p, err := s.store.Payin(ctx, s.actors[i].ID, id)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		request := processor.ChargeRequest{
			ExternalID: p.ExternalID, Method: p.Method, Amount: p.Amount, ExpiresAt: p.ExpiresAt, DueDate: p.Details.DueDate,
			MerchantName: s.actors[i].Name, MerchantCity: s.actors[i].City,
		}
		if err == nil {
			bank := map[string]string{"block": "dispute", "reverse": "win"}
			err = s.control.Charge(ctx, request, cmp.Or(bank[action], action), bankapi.ForceCharge{
				Amount: how.Amount, Kind: string(how.Kind), Reason: how.Reason, RespondInSeconds: how.RespondInSeconds, Blocked: action == "block",
			})
		}
		return s.happened(err)
	}
	return problem.New(problem.NotFound, "Order not found.")
}

// PayoutAction implements [httpapi.Sandbox].
func (s *instance) PayoutAction(ctx context.Context, id payment.ID, action string) error {
	if err := s.work(); err != nil {
		return err
	}
	for i := range s.actors {
		p, err := s.store.Payout(ctx, s.actors[i].ID, id)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err == nil {
			err = s.control.Transfer(ctx, p.ExternalID, action, 0)
		}
		return s.happened(err)
	}
	return problem.New(problem.NotFound, "Order not found.")
}

// happened applies the notices of an action of the bank, unless it failed.
func (s *instance) happened(err error) error {
	code, _ := errors.AsType[bankapi.Code](err)
	switch {
	case code != "" && (code.Status() == http.StatusConflict || code.Status() == http.StatusNotFound):
		return problem.New(problem.InvalidState, "The bank does not allow this.").With(err)
	case err != nil:
		return err
	}
	return s.applyNotices()
}

// ArmFault is not supported.
func (s *instance) ArmFault(context.Context, wire.SandboxFault) error {
	return errors.New("no faults")
}

// ClearFaults does nothing.
func (s *instance) ClearFaults(context.Context) error { return nil }

// AdvanceClock is not supported: runs advance the clock themselves.
func (s *instance) AdvanceClock(context.Context, time.Duration) error { return errors.New("no clock") }

// Transfers lists the bank's transfers.
func (s *instance) Transfers(ctx context.Context, _, externalID string) (list []wire.SandboxTransfer, err error) {
	page, _, err := s.control.Transfers(ctx, externalID, "")
	for i := range page {
		v := &page[i]
		list = append(list, wire.SandboxTransfer{
			ExternalID: v.ExternalID, Amount: v.Amount, PIXKey: v.PIXKey, EndToEndID: v.EndToEndID, Status: v.Status, CreatedAt: v.CreatedAt,
		})
	}
	return list, err
}

// do sends a request as one of the merchants, or without credentials (-1).
func (s *instance) do(actor int, method, path, body string) answer {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if actor >= 0 {
		as(fmt.Sprintf("key_%d_%d", actor, s.uses), "secret")(r)
	}
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return answer{w.Code, w.Header(), w.Body.String()}
}
