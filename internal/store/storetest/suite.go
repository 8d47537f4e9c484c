package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// topics are what a store must be able to do. The tests of one topic share a
// database, and each has merchants and nodes of its own.
var topics = []struct {
	name  string
	tests []test
}{
	{"merchants", merchantTests},
	{"brands", brandTests},
	{"inserts", insertTests},
	{"updates", updateTests},
	{"many at once", togetherTests},
	{"postings", postingTests},
	{"events", eventTests},
	{"deliveries", deliveryTests},
	{"old deliveries", deliveryAgeTests},
	{"payouts", payoutTests},
	{"nodes", nodeTests},
	{"notices", noticeTests},
	{"held", holdTests},
	{"receipts", receiptTests},
	{"lists", listTests},
	{"others", otherTests},
}

// test is one thing that every engine must do alike.
type test struct {
	name string
	run  func(b *bench)
}

// Run puts an engine through the conformance suite. open returns the options of
// a database whose schema is in place; it is called once a topic.
func Run(t *testing.T, open func(t testing.TB, w env.Env) store.Options) {
	t.Helper()
	for _, topic := range topics {
		t.Run(topic.name, func(t *testing.T) {
			t.Parallel()
			w := env.System(env.OutboundOptions{})
			o := open(t, w)
			s := Open(t, o)
			for _, one := range topic.tests {
				t.Run(one.name, func(t *testing.T) { one.run(&bench{T: t, s: s, o: o, w: w}) })
			}
		})
	}
}

// bench is what a test of the suite works on.
type bench struct {
	*testing.T

	s      *store.Store
	o      store.Options
	w      env.Env
	serial int
}

// none stands for the zero id.
var none payment.ID

// write runs work in a transaction that must succeed.
func (b *bench) write(work func(tx *store.Tx) error) {
	b.Helper()
	if err := b.s.Write(b.Context(), work); err != nil {
		b.Fatalf("write: %v", err)
	}
}

// must fails the test with an error.
func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// wantError fails the test unless err is of a kind.
func (b *bench) wantError(err, kind error) {
	b.Helper()
	if !errors.Is(err, kind) {
		b.Errorf("got %v, want %v", err, kind)
	}
}

// merchant makes a merchant of the test's own.
func (b *bench) merchant() store.Merchant {
	b.Helper()
	b.serial++
	m := store.Merchant{Name: fmt.Sprintf("%s %d", b.Name(), b.serial), City: "OLINDA", Processor: "bank"}
	b.write(func(tx *store.Tx) (err error) {
		m, err = tx.CreateMerchant(b.Context(), m, "whsec_"+m.Name)
		return err
	})
	return m
}

// node is a process that has registered itself.
func (b *bench) node() payment.ID {
	b.Helper()
	id := b.id()
	b.write(func(tx *store.Tx) error { return tx.RegisterNode(b.Context(), id) })
	return id
}

func (b *bench) id() payment.ID { return b.w.IDs.NewID(b.w.Clock.Now()) }

// now is cut to milliseconds, as creation times are.
func (b *bench) now() time.Time { return b.w.Clock.Now().Truncate(time.Millisecond) }

// payin is an order that is not yet stored.
func (b *bench) payin(m store.Merchant, reference string) *store.NewPayin {
	now := b.now()
	return &store.NewPayin{
		Payin: payment.Payin{
			Merchant: m.ID, ID: b.w.IDs.NewID(now), ReferenceID: reference,
			ExternalID: payment.ExternalID(b.s.Installation(), m.Number, m.ID, payment.OperationPayin, reference),
			Method:     payment.PIX, Amount: 1000, Status: payment.PayinPending, Version: 1, Processor: "bank",
			ExpiresAt: now.Add(time.Hour), CreatedAt: now, UpdatedAt: now,
		},
		Personal:    payment.PersonalData{Customer: []byte(`{"name":"Ana"}`)},
		Fingerprint: wire.NewFingerprint([]wire.FieldMAC{{Name: "amount", MAC: [16]byte{1}}}),
	}
}

// payout is an order that is not yet stored, due to be sent now.
func (b *bench) payout(m store.Merchant, reference string) *store.NewPayout {
	now := b.now()
	return &store.NewPayout{Payout: payment.Payout{
		Merchant: m.ID, ID: b.w.IDs.NewID(now), ReferenceID: reference,
		ExternalID: payment.ExternalID(b.s.Installation(), m.Number, m.ID, payment.OperationPayout, reference),
		Amount:     1000, Status: payment.PayoutPending, Step: payment.StepQueued, Version: 1, Processor: "bank",
		PIXKeyType: "EMAIL", Approval: payment.ApprovalNone,
		Beneficiary: payment.Beneficiary{Name: "Ana", Document: "52998224725", PIXKey: "ana@example.com"},
		NextAt:      now, CreatedAt: now, UpdatedAt: now,
	}}
}

// storePayins stores orders and says which were new.
func (b *bench) storePayins(list ...*store.NewPayin) (added []bool) {
	b.Helper()
	b.write(func(tx *store.Tx) (err error) {
		added, err = tx.InsertPayins(b.Context(), list)
		return err
	})
	return added
}

// storePayouts stores payouts, all of which must be new.
func (b *bench) storePayouts(list ...*store.NewPayout) {
	b.Helper()
	b.write(func(tx *store.Tx) error {
		added, err := tx.InsertPayouts(b.Context(), list)
		for i := range added {
			if !added[i] {
				b.Errorf("payout %d is not new", i)
			}
		}
		return err
	})
}

// announce writes n events of an order in one commit, to be delivered to url
// unless that is empty.
func (b *bench) announce(m store.Merchant, subject payment.ID, n int, url string) {
	b.Helper()
	b.write(func(tx *store.Tx) error {
		for i := range n {
			tell(tx, m.ID, subject, int64(i+1), url)
		}
		return nil
	})
}

func tell(tx *store.Tx, merchant, subject payment.ID, version int64, url string) {
	tx.Announce(payment.Event{Merchant: merchant, Type: payment.EventPayinPaid, Subject: subject, Version: version}, []byte(`{"n":1}`), url)
}

// together runs work n times at the same instant, each with its number, and
// waits. The first error fails the test.
func (b *bench) together(n int, work func(ctx context.Context, i int) error) {
	b.Helper()
	var ready, done sync.WaitGroup
	ready.Add(1)
	errs := make([]error, n)
	for i := range n {
		done.Go(func() {
			ready.Wait()
			errs[i] = work(b.Context(), i)
		})
	}
	ready.Done()
	done.Wait()
	for i, err := range errs {
		if err != nil {
			b.Fatalf("number %d: %v", i, err)
		}
	}
}

// equal compares two values that can be printed.
func equal[T comparable](b *bench, what string, got, want T) {
	b.Helper()
	if got != want {
		b.Errorf("%s is %v, want %v", what, got, want)
	}
}

// sameBytes compares two documents.
func sameBytes(b *bench, what string, got, want []byte) {
	b.Helper()
	if !bytes.Equal(got, want) {
		b.Errorf("%s is %q, want %q", what, got, want)
	}
}

// cents shortens sums in tests.
func cents(n int64) money.Cents { return money.Cents(n) }
