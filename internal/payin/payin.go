// Package payin implements the use cases of pay-ins: create, charge, receive, cancel,
// expire, settle.
package payin

import (
	"fmt"
	"log/slog"
	"sync"

	"github.com/porteira/porteira/internal/cluster"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/transition"
	"github.com/porteira/porteira/internal/wire"
	"github.com/porteira/porteira/internal/worker"
	"github.com/porteira/porteira/internal/write"
)

// Options configure a Service.
type Options struct {
	Store      *store.Store
	Writer     *write.Writer
	Env        env.Env
	Processors processor.Accounts
	Log        *slog.Logger
	Links      transition.Links
	// Wanted reports whether a merchant has a webhook endpoint that selects a type of events. nil:
	// no merchant has one.
	Wanted func(merchant payment.ID, t payment.EventType) bool
	// Node claims the work on charges.
	Node     *cluster.Node
	Recorder worker.Recorder
	// ChargeWaker wakes the worker that charges pay-ins.
	ChargeWaker *worker.Waker
	// Spawn starts the calls of the worker; nil starts goroutines.
	Spawn worker.Spawn
}

// Service implements the use cases of pay-ins. It is safe for concurrent use.
type Service struct {
	Options

	breakers *worker.Breakers // of calls for charges, per account
	calls    *worker.Pools    // of the same, also of requests
	turn     worker.Turn[string]

	mu         sync.Mutex
	charging   map[payment.ID]*charging // by order
	unrecorded []*recordCharge          // results of requests whose commit failed

	foreign sync.Map // accounts whose codes are not ASCII, which the log has
}

// New returns a Service.
func New(o Options) *Service {
	return &Service{
		Options: o, breakers: worker.NewBreakers(o.Env.Clock), calls: worker.NewPools(chargeSlots, o.ChargeWaker, o.Spawn),
		charging: map[payment.ID]*charging{},
	}
}

// Wait waits until no call of the worker is in flight.
func (s *Service) Wait() { s.calls.Wait() }

// charger returns the processor of a pay-in, which must support payments.
func (s *Service) charger(name string) (processor.Charger, processor.Profile, error) {
	proc, err := s.Processors.Of(name)
	if err != nil {
		return nil, processor.Profile{}, err
	}
	charger, ok := proc.(processor.Charger)
	if !ok {
		return nil, processor.Profile{}, problem.New(problem.MethodNotEnabled, "The merchant's processor does not support pay-ins.")
	}
	return charger, proc.Profile(), nil
}

// route chooses the account of a new pay-in.
func (s *Service) route(m *store.Merchant, r *wire.PayinRequest, externalID string) (account string, proc processor.Processor, err error) {
	return processor.Choose(s.Processors, m.Routes, processor.NewOrder{
		Merchant: m.ID, Operation: payment.OperationPayin, Method: payment.Method(r.Method.V), Amount: money.Cents(r.Amount.V),
		ExternalID: externalID,
	})
}

// notFound is the error of an operation whose pay-in does not exist.
func notFound(merchant, id payment.ID) error {
	return fmt.Errorf("pay-in %s of %s: %w", id, merchant, store.ErrNotFound)
}
