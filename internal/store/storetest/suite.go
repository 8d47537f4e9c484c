package storetest

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// topics are the requirements of a store. The tests of a topic share a database; each
// makes its own merchants and nodes.
var topics = []struct {
	name  string
	tests []test
}{
	{"columns", columnTests},
	{"merchants", merchantTests},
	{"accounts and routes", accountTests},
	{"prices", priceTests},
	{"references", externalTests},
	{"pay-ins", payinTests},
	{"payouts", payoutTests},
	{"sends", sendTests},
	{"charges", chargeTests},
	{"refunds", refundTests}, {"disputes", disputeTests},
	{"postings", postingTests},
	{"statements", statementTests},
	{"receipts", receiptTests},
	{"disputes and cases", caseTests},
	{"events", eventTests},
	{"deliveries", deliveryTests},
	{"retention of deliveries", retentionTests},
	{"notices", noticeTests},
	{"claims", claimTests},
	{"capacity", capacityTests},
	{"nodes", nodeTests},
	{"lists", listTests},
	{"facts", factTests},
	{"commits", commitTests},
	{"several operations in a commit", groupTests},
}

// test is one behaviour that every engine must have.
type test struct {
	name string
	run  func(s *suite)
}

// Run tests an engine. open returns the options of a database whose schema is in
// place; it is called once per topic.
func Run(t *testing.T, open func(t testing.TB, w env.Env) db.Options) {
	t.Helper()
	for _, topic := range topics {
		t.Run(topic.name, func(t *testing.T) {
			t.Parallel()
			s := &suite{env: env.System(env.OutboundOptions{})}
			s.env.OnFailpoint = func(f env.Failpoint) error {
				if at := s.unknownAt.Load(); at != nil && *at == f {
					return errOnPurpose
				}
				return nil
			}
			o := open(t, s.env)
			o.Env, o.Log = s.env, slog.New(slog.NewTextHandler(&s.retries, &slog.HandlerOptions{Level: slog.LevelDebug}))
			s.store = Open(t, o)
			for _, one := range topic.tests {
				t.Run(one.name, func(t *testing.T) {
					defer failOnPanic(t)
					s.T, s.made = t, 0
					one.run(s)
				})
			}
		})
	}
}

// suite is a store, with helpers for the tests of a topic.
type suite struct {
	*testing.T

	store     *store.Store
	env       env.Env
	unknownAt atomic.Pointer[env.Failpoint] // at which commits are unknown
	retries   lineCounter
	made      int // merchants of this test
}

// lineCounter counts the log lines of a store: it writes one if a transaction had to
// run again.
type lineCounter struct{ atomic.Int64 }

// Write implements [io.Writer].
func (c *lineCounter) Write(line []byte) (int, error) {
	c.Add(1)
	return len(line), nil
}

// The data of a commit, by short names.
type (
	needs   = store.Needs
	loaded  = store.Loaded
	changes = store.Changes
)

// operation is one operation of a commit, as data: its needs and its decision. Either may
// be nil.
type operation struct {
	needs  func(n *needs)
	decide func(l *loaded, c *changes) error
}

// does is an operation that is never refused.
func does(ask func(n *needs), decide func(l *loaded, c *changes)) operation {
	return operation{ask, func(l *loaded, c *changes) error { decide(l, c); return nil }}
}

// set is an operation that changes a row; ErrNotFound if it does not exist.
func set[T any](ask func(n *needs), get func(l *loaded) (T, bool), put func(c *changes, v T), change func(v *T)) operation {
	return operation{ask, func(l *loaded, c *changes) error {
		v, ok := get(l)
		if !ok {
			return store.ErrNotFound
		}
		change(&v)
		put(c, v)
		return nil
	}}
}

// all is operations as one, each of which sees the changes of those before it. The
// first error ends it.
func all(ops ...operation) operation {
	ask := func(n *needs) {
		for _, op := range ops {
			if op.needs != nil {
				op.needs(n)
			}
		}
	}
	return operation{ask, func(l *loaded, c *changes) error {
		for _, op := range ops {
			if op.decide == nil {
				continue
			}
			if err := op.decide(l, c); err != nil {
				return err
			}
		}
		return nil
	}}
}

// try commits operations in one transaction.
func (s *suite) try(ops ...operation) error {
	_, err := s.tryWith(store.Capacity{}, ops...)
	return err
}

// tryWith is try with a capacity for claims on insert.
func (s *suite) tryWith(capacity store.Capacity, ops ...operation) (store.Outcome, error) {
	var n needs
	op := all(ops...)
	op.needs(&n)
	return s.store.Commit(s.Context(), &n, capacity, op.decide)
}

// commit is try that must succeed.
func (s *suite) commit(ops ...operation) {
	s.Helper()
	s.must(s.try(ops...))
}

// write runs work in a plain transaction, which must succeed.
func (s *suite) write(work func(tx *store.AdminTx) error) {
	s.Helper()
	s.must(s.store.Administer(s.Context(), Operator, work))
}

// must ends the test on an error.
func (s *suite) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// unexpected is an error that ends its test.
type unexpected struct{ error }

// must returns a value; an error ends the test.
func must[T any](v T, err error) T {
	if err != nil {
		panic(unexpected{err})
	}
	return v
}

// errorOf is the error of a read.
func errorOf[T any](_ T, err error) error { return err }

func failOnPanic(t *testing.T) {
	if v := recover(); v != nil {
		err, ok := v.(unexpected)
		if !ok {
			panic(v)
		}
		t.Fatalf("%v\n%s", err, debug.Stack())
	}
}

// wantError expects an error of a kind; nil is no error.
func (s *suite) wantError(err, kind error) {
	s.Helper()
	if !errors.Is(err, kind) {
		s.Errorf("the error is %v, want %v", err, kind)
	}
}

// wantRefused expects an error of the database itself, not one after which the same work
// may succeed.
func (s *suite) wantRefused(what string, err error) {
	s.Helper()
	if err == nil || errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrCommitUnknown) {
		s.Errorf("%s: the error is %v, want a refusal by the database", what, err)
	}
}

// equal compares values as they are printed.
func (s *suite) equal(what string, got, want any) {
	s.Helper()
	if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); g != w {
		s.Errorf("%s: %s, want %s", what, g, w)
	}
}

// values compares several values.
func values(v ...any) []any { return v }

// concurrently runs n goroutines at the same time, each with its number, and waits
// for them. An error ends the test.
func (s *suite) concurrently(n int, work func(i int) error) {
	s.Helper()
	var done sync.WaitGroup
	start := make(chan struct{})
	errs := make([]error, n)
	for i := range n {
		done.Go(func() {
			<-start
			errs[i] = work(i)
		})
	}
	close(start)
	done.Wait()
	s.must(errors.Join(errs...))
}

// merchant makes a merchant of the test's own.
func (s *suite) merchant() store.Merchant {
	s.Helper()
	s.made++
	m := store.Merchant{Name: fmt.Sprintf("%s %d", s.Name(), s.made), City: "OLINDA", Routes: payment.AllRoutes("bank")}
	s.write(func(tx *store.AdminTx) (err error) {
		m, err = tx.CreateMerchant(s.Context(), m, "whsec_"+m.Name)
		return err
	})
	return m
}

func (s *suite) id() payment.ID { return s.env.IDs.NewID(s.env.Clock.Now()) }

// now is cut to milliseconds, as creation times are.
func (s *suite) now() time.Time { return s.env.Clock.Now().Truncate(time.Millisecond) }

// past and later are times before and after all others in a test.
func (s *suite) past() time.Time  { return s.now().Add(-time.Second) }
func (s *suite) later() time.Time { return s.now().Add(time.Hour) }

// payin is a pay-in that is not stored yet, with some changes.
func (s *suite) payin(m store.Merchant, reference string, edits ...func(p *payment.Payin)) *store.NewPayin {
	s.Helper()
	now := s.now()
	p := payment.Payin{
		Merchant: m.ID, ID: s.env.IDs.NewID(now), ReferenceID: reference,
		ExternalID: s.store.ExternalID(&m, payment.OperationPayin, reference),
		Method:     payment.PIX, Amount: 1000, Status: payment.PayinPending, Version: 1, Processor: "bank",
		ExpiresAt: now.Add(time.Hour), CreatedAt: now, UpdatedAt: now,
	}
	for _, edit := range edits {
		edit(&p)
	}
	return s.store.NewPayin(p, payment.PersonalData{Customer: []byte(`{"name":"Ana"}`)}, fingerprint(p.ID))
}

// payout is a payout that is not stored yet, due to be sent, with some changes.
func (s *suite) payout(m store.Merchant, reference string, edits ...func(p *payment.Payout)) *store.NewPayout {
	s.Helper()
	now := s.now()
	p := payment.Payout{
		Merchant: m.ID, ID: s.env.IDs.NewID(now), ReferenceID: reference,
		ExternalID: s.store.ExternalID(&m, payment.OperationPayout, reference),
		Amount:     1000, Status: payment.PayoutPending, Step: payment.StepQueued, Version: 1, Processor: "bank",
		PIXKeyType: "EMAIL", Approval: payment.ApprovalNone,
		Beneficiary: payment.Beneficiary{Name: "Ana", Document: "52998224725", PIXKey: "ana@example.com"},
		NextAt:      now, CreatedAt: now, UpdatedAt: now,
	}
	for _, edit := range edits {
		edit(&p)
	}
	n, err := s.store.NewPayout(p, fingerprint(p.ID), "key of "+reference)
	s.must(err)
	return n
}

// fingerprint replaces that of an order's request.
func fingerprint(id payment.ID) wire.Fingerprint {
	return wire.NewFingerprint([]wire.FieldMAC{{Name: "amount", MAC: id}})
}
