package payout_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/limits"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/payout"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// batchOf is a request for payouts of some amounts; each has a key and a reference of its own.
func batchOf(reference string, amounts ...int64) *wire.PayoutBatchRequest {
	r := &wire.PayoutBatchRequest{ReferenceID: wire.Some(reference), Fingerprint: wire.NewFingerprint([]wire.FieldMAC{{Name: "items", MAC: [16]byte{byte(len(amounts))}}})}
	for i, amount := range amounts {
		item := coretest.PayoutRequest(fmt.Sprint(reference, "-", i), amount)
		key := fmt.Sprintf("m%d@example.com", i)
		item.PIXKey, item.NormalKey = wire.Some(key), key
		r.Items = append(r.Items, item)
	}
	return r
}

// requestBatch requests a batch that is new.
func requestBatch(g *coretest.Gateway, r *wire.PayoutBatchRequest) payment.PayoutBatch {
	g.T.Helper()
	b, replayed, err := g.Payouts.RequestBatch(g.T.Context(), g.Merchant, r)
	g.Must(err)
	if replayed {
		g.T.Errorf("batch %s was replayed", r.ReferenceID.V)
	}
	return b
}

// wantBatch compares the status and the counts of a batch, in the order of statuses.
func wantBatch(g *coretest.Gateway, b payment.PayoutBatch, status payment.BatchStatus, counts string) payment.PayoutBatch {
	g.T.Helper()
	got, err := g.Store.PayoutBatch(g.T.Context(), b.Merchant, b.ID)
	g.Must(err)
	var list []string
	for _, s := range payment.PayoutStatuses {
		if n := got.Counts[s]; n != 0 {
			list = append(list, fmt.Sprint(s, " ", n))
		}
	}
	if text := strings.Join(list, ", "); got.Status() != status || text != counts {
		g.T.Errorf("batch is %s with %s, want %s with %s", got.Status(), text, status, counts)
	}
	return got
}

func complete(g *coretest.Gateway) { g.T.Helper(); g.Run(g.Payouts.CompleteBatches) }

// batchEvents counts the events that a batch has ended.
func batchEvents(g *coretest.Gateway) (n int) {
	g.T.Helper()
	events, err := g.Store.Events(g.T.Context(), g.Merchant.ID, 0, 1000)
	g.Must(err)
	for i := range events {
		if events[i].Type == payment.EventPayoutBatchCompleted {
			n++
		}
	}
	return n
}

// A batch follows its payouts, is completed once although several processes look, and counts later
// returns.
func TestBatch(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		b := requestBatch(g, batchOf("b", 10_00, 20_00, 30_00))
		g.WantBalances(coretest.Opening-60_00, 60_00)
		got := wantBatch(g, b, payment.BatchPending, "PENDING 3")
		if got.Amount != 60_00 || got.Count != 3 || got.ReferenceID != "b" || got.Version != 1 {
			t.Errorf("batch is %+v", got)
		}
		list, err := g.Store.Payouts(t.Context(), g.Merchant.ID, store.Filter{Batch: b.ID, First: got.First, Last: got.Last, Limit: 10})
		g.Must(err)
		if len(list) != 3 || slices.ContainsFunc(list, func(p payment.Payout) bool { return p.Batch != b.ID }) || list[0].ReferenceID != "b-2" {
			t.Errorf("its payouts are %+v", list)
		}
		alone := g.Payout("alone", 1_00)
		if _, err := g.Payouts.Cancel(t.Context(), alone.Merchant, alone.ID); err != nil {
			t.Error(err)
		}
		_, err = g.Payouts.Cancel(t.Context(), list[0].Merchant, list[0].ID)
		g.Must(err)
		wantBatch(g, b, payment.BatchProcessing, "PENDING 2, CANCELED 1")
		complete(g)
		if n := batchEvents(g); n != 0 {
			t.Errorf("%d events before its end", n)
		}
		g.Bank.AnswerTransfer = func(b *coretest.Bank, r processor.TransferRequest) processor.TransferAnswer {
			if r.Amount == 10_00 {
				return refuse(b, r)
			}
			return processor.TransferAnswer{Outcome: processor.Done, Report: b.Pay(r, processor.TransferPaid)}
		}
		g.Send()
		wantBatch(g, b, payment.BatchProcessing, "COMPLETED 1, FAILED 1, CANCELED 1") // the event is not written
		g.Restart(nil)                                                                // the process crashed before
		other := g.Second()
		var both sync.WaitGroup
		g.Until(func() {
			for _, process := range []*coretest.Gateway{g, other} {
				both.Go(func() {
					if _, err := process.Payouts.CompleteBatches(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			both.Wait()
		})
		other.Must(other.Store.Close())
		complete(g)
		done := wantBatch(g, b, payment.BatchCompleted, "COMPLETED 1, FAILED 1, CANCELED 1")
		if n := batchEvents(g); n != 1 || done.Version != 2 || done.CompletedAt.IsZero() {
			t.Errorf("%d events, version %d", n, done.Version)
		}
		paid := list[1]
		g.Bank.Return(paid.ExternalID, paid.Amount)
		g.Notify("return", paid.ExternalID)
		g.Apply()
		wantBatch(g, b, payment.BatchCompleted, "FAILED 1, CANCELED 1, RETURNED 1")
		complete(g)
		if n := batchEvents(g); n != 1 {
			t.Errorf("%d events after a return", n)
		}
		g.WantProven()
	})
}

// One refused item refuses all, and leaves nothing.
func TestBatchIsAllOrNothing(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		for _, row := range []struct {
			name   string
			given  func(g *coretest.Gateway)
			batch  *wire.PayoutBatchRequest
			kind   problem.Kind
			fields string
			limit  string
		}{
			{"more than is available", nil, batchOf("b", 10_00, opening-10_00+1), problem.InsufficientBalance, "items[1].amount", ""},
			{"more than is available, in the middle", nil, batchOf("b", 1, opening-2, 2, 1), problem.InsufficientBalance, "items[2].amount", ""},
			{"above a maximum", func(g *coretest.Gateway) {
				g.SetLimits(limits.Limits{Payout: limits.Payout{Range: limits.Range{Maximum: cents(20_00)}}})
			}, batchOf("b", 10_00, 20_00, 20_01), problem.LimitExceeded, "items[2].amount", limits.Maximum},
			{"above the limit of a day, together", func(g *coretest.Gateway) {
				g.SetLimits(limits.Limits{Payout: limits.Payout{PerDay: cents(25_00)}})
			}, batchOf("b", 10_00, 15_00, 1), problem.LimitExceeded, "items[2].amount", limits.PerDay},
			{"above the limit of a new key", func(g *coretest.Gateway) {
				g.SetLimits(limits.Limits{Payout: limits.Payout{NewKeyMaximum: cents(25_00)}})
				first := batchOf("first", 0, 15_00) // to the same key
				g.Must(func() error { _, _, err := g.Payouts.Request(g.T.Context(), g.Merchant, first.Items[1]); return err }())
			}, batchOf("b", 25_00, 10_01), problem.LimitExceeded, "items[1].amount", limits.NewKeyMaximum},
			{"too many to one key", func(g *coretest.Gateway) {
				g.SetLimits(limits.Limits{Payout: limits.Payout{CountPerKeyPerDay: new(int64(1))}})
			}, toOneKey(batchOf("b", 1, 1)), problem.LimitExceeded, "items[1].amount", limits.CountPerKeyPerDay},
			{"references that were used", func(g *coretest.Gateway) { g.Payout("b-1", 1); g.Payout("b-2", 3) },
				batchOf("b", 1, 1, 3), problem.ReferenceConflict, "items[1].referenceId items[2].referenceId", ""},
		} {
			t.Run(row.name, func(t *testing.T) {
				g := g.For(t)
				if row.given != nil {
					row.given(g)
				}
				if err := g.Payouts.RefuseEarly(t.Context(), g.Merchant, row.batch); !problem.Is(err, row.kind) { // before rows are inserted
					t.Errorf("refused early with %v", err)
				}
				var err error
				changes := g.Changes(func() { _, _, err = g.Payouts.RequestBatch(t.Context(), g.Merchant, row.batch) })
				e, _ := errors.AsType[*problem.Error](err)
				if e == nil || e.Kind != row.kind || e.Limit != row.limit {
					t.Fatalf("answered %v", err)
				}
				var fields []string
				for _, f := range e.Fields {
					fields = append(fields, f.Field)
				}
				if strings.Join(fields, " ") != row.fields {
					t.Errorf("fields %v, want %s", fields, row.fields)
				}
				if changes != "" {
					t.Errorf("a refused batch left\n%s", changes)
				}
				g.SetLimits(limits.Limits{})
				if row.given == nil || row.limit != "" { // the references are unused
					requestBatch(g, batchOf("b", 5, 5, 5))
				}
				g.WantProven()
			})
		}
	})
}

// toOneKey gives all items of a batch the Pix key of the first.
func toOneKey(r *wire.PayoutBatchRequest) *wire.PayoutBatchRequest {
	for _, item := range r.Items {
		item.PIXKey, item.NormalKey = r.Items[0].PIXKey, r.Items[0].NormalKey
	}
	return r
}

// The same request several times at once makes one batch, though it takes most of what is
// available.
func TestSameBatchAtOnce(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Writer.Start()
		t.Cleanup(g.Writer.Stop)
		const rounds = 10
		available := opening
		var fresh atomic.Int64
		g.Until(func() {
			for round := range rounds {
				most := available * 6 / 10
				available -= most
				var all sync.WaitGroup
				for range 4 {
					all.Go(func() {
						_, replayed, err := g.Payouts.RequestBatch(t.Context(), g.Merchant, batchOf(fmt.Sprint("r", round), most-1, 1))
						if err != nil {
							t.Error(err)
						} else if !replayed {
							fresh.Add(1)
						}
					})
				}
				all.Wait()
			}
		})
		if fresh.Load() != rounds {
			t.Errorf("%d batches, want %d", fresh.Load(), rounds)
		}
		g.WantBalances(money.Cents(available), coretest.Opening-money.Cents(available))
		g.WantProven()
	})
}

// The same request again is answered with the batch as it is now, a different one is a
// conflict, and an item's own request is answered with its payout.
func TestBatchIsIdempotent(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		b := requestBatch(g, batchOf("b", 1_00, 2_00))
		g.Send()
		changes := g.Changes(func() {
			again, replayed, err := g.Payouts.RequestBatch(t.Context(), g.Merchant, batchOf("b", 1_00, 2_00))
			if err != nil || !replayed || again.ID != b.ID || again.Counts[payment.PayoutCompleted] != 2 {
				t.Errorf("again: %+v, replayed %v, %v", again, replayed, err)
			}
			_, _, err = g.Payouts.RequestBatch(t.Context(), g.Merchant, batchOf("b", 1_00))
			if e, _ := errors.AsType[*problem.Error](err); e == nil || e.Kind != problem.ReferenceConflict || e.Fields[0].Field != "items" {
				t.Errorf("another content: %v", err)
			}
			item, replayed, err := g.Payouts.Request(t.Context(), g.Merchant, batchOf("b", 1_00).Items[0])
			if err != nil || !replayed || item.Batch != b.ID {
				t.Errorf("an item alone: %+v, replayed %v, %v", item, replayed, err)
			}
		})
		if changes != "" {
			t.Errorf("repeated requests left\n%s", changes)
		}
		g.WantProven()
	})
}

// A commit whose outcome is unknown runs again: the batch exists once.
func TestBatchOfUnknownCommit(t *testing.T) {
	for _, when := range []env.Failpoint{env.BeforeCommit, env.AfterCommit} {
		t.Run(string(when), func(t *testing.T) {
			var cuts *atomic.Int64
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				cuts.Store(2)
				var b payment.PayoutBatch
				var err error
				g.Until(func() { b, _, err = g.Payouts.RequestBatch(t.Context(), g.Merchant, batchOf("b", 300_00, 400_00)) })
				g.Must(err)
				g.WantBalances(coretest.Opening-700_00, 700_00)
				wantBatch(g, b, payment.BatchPending, "PENDING 2")
				g.WantProven()
			}, func(e *env.Env) { cuts = coretest.CutCommits(e, when) })
		})
	}
}

// Batches, and payouts alone, that use the same references and money at once: each reference
// belongs to one of them, and no batch is there in part.
func TestBatchesAtOnce(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Writer.Start()
		t.Cleanup(g.Writer.Stop)
		const rounds = 12
		var accepted atomic.Int64
		g.Until(func() {
			for round := range rounds {
				var all sync.WaitGroup
				name := fmt.Sprint("r", round)
				for i := range 3 {
					all.Go(func() {
						r := batchOf(name, 1_00, 1_00, 1_00)
						r.ReferenceID.V = fmt.Sprint(name, i%2) // two of the three are the same request
						_, replayed, err := g.Payouts.RequestBatch(t.Context(), g.Merchant, r)
						switch {
						case err == nil && !replayed:
							accepted.Add(1)
						case err != nil && !problem.Is(err, problem.ReferenceConflict) && !problem.Is(err, problem.InsufficientBalance):
							t.Error(err)
						}
					})
				}
				all.Go(func() {
					if _, _, err := g.Payouts.Request(t.Context(), g.Merchant, coretest.PayoutRequest(name+"-1", 1_00)); err != nil &&
						!problem.Is(err, problem.ReferenceConflict) && !problem.Is(err, problem.InsufficientBalance) {
						t.Error(err)
					}
				})
				all.Wait()
			}
		})
		list, err := g.Store.Payouts(t.Context(), g.Merchant.ID, store.Filter{Limit: 200})
		g.Must(err)
		items := map[payment.ID]int{}
		for _, p := range list {
			items[p.Batch]++
		}
		alone := items[payment.ID{}]
		delete(items, payment.ID{})
		for batch, n := range items {
			if n != 3 {
				t.Errorf("batch %s has %d payouts", batch, n)
			}
		}
		if int64(len(items)) != accepted.Load() || len(items)+alone == 0 {
			t.Errorf("%d batches, %d were accepted, and %d payouts alone", len(items), accepted.Load(), alone)
		}
		g.WantBalances(coretest.Opening-money.Cents(len(list))*1_00, money.Cents(len(list))*1_00)
		g.WantProven()
	})
}

// Items above the limit of approval wait, and the batch with them.
func TestBatchWaitsForApproval(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.SetLimits(limits.Limits{Payout: limits.Payout{ApprovalAbove: cents(10_00)}})
		r := batchOf("b", 10_00, 10_01)
		for _, item := range r.Items {
			item.Actor = "credential:asker"
		}
		b := requestBatch(g, r)
		g.Send()
		complete(g)
		got := wantBatch(g, b, payment.BatchProcessing, "PENDING 1, COMPLETED 1")
		list, err := g.Store.Payouts(t.Context(), g.Merchant.ID, store.Filter{Batch: b.ID, First: got.First, Last: got.Last, Status: "PENDING", Limit: 10})
		g.Must(err)
		_, err = g.Payouts.Approve(t.Context(), g.Merchant.ID, list[0].ID, actor.Author{Actor: "credential:boss"})
		g.Must(err)
		g.Send()
		complete(g)
		wantBatch(g, b, payment.BatchCompleted, "COMPLETED 2")
		g.WantProven()
	})
}

// More open batches than one run looks at: each is found.
func TestManyOpenBatches(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		defer payout.SetOpenBatches(2)()
		var batches []payment.PayoutBatch
		for i := range 5 {
			batches = append(batches, requestBatch(g, batchOf(fmt.Sprint("b", i), 1_00)))
		}
		last := batches[4]
		_, err := g.Payouts.Cancel(t.Context(), g.Merchant.ID, last.First)
		g.Must(err)
		for range 3 {
			_, err := g.Payouts.CompleteBatches(t.Context())
			g.Must(err)
		}
		wantBatch(g, last, payment.BatchCompleted, "CANCELED 1")
		wantBatch(g, batches[0], payment.BatchPending, "PENDING 1")
	})
}

// A commit of unknown outcome that records the end of a batch runs again: there is one event.
func TestEndOfBatchOfUnknownCommit(t *testing.T) {
	for _, when := range []env.Failpoint{env.BeforeCommit, env.AfterCommit} {
		t.Run(string(when), func(t *testing.T) {
			var cuts *atomic.Int64
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				b := requestBatch(g, batchOf("b", 1_00, 2_00))
				g.Send()
				cuts.Store(2)
				g.Until(func() { complete(g) })
				wantBatch(g, b, payment.BatchCompleted, "COMPLETED 2")
				if n := batchEvents(g); n != 1 || cuts.Load() != 0 {
					t.Errorf("%d events, %d cuts left", n, cuts.Load())
				}
				g.WantProven()
			}, func(e *env.Env) { cuts = coretest.CutCommits(e, when) })
		})
	}
}

// Two processes look for ended batches while their payouts end: each batch ends once, and none
// before its last payout.
func TestBatchesEndWhilePayoutsEnd(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Concurrent()
		g.Writer.Start()
		t.Cleanup(g.Writer.Stop)
		const batches = 20
		var list []payment.PayoutBatch
		g.Until(func() {
			for i := range batches {
				list = append(list, requestBatch(g, batchOf(fmt.Sprint("b", i), 1_00, 1_00, 1_00)))
			}
		})
		other := g.Second()
		sent := make(chan struct{})
		g.Heartbeat()                       // the requests may have taken longer than its lease
		g.UntilWithin(time.Second, func() { // a transfer's time-out must not end
			var all sync.WaitGroup
			for _, process := range []*coretest.Gateway{g, other} {
				all.Go(func() {
					for ended := false; !ended; {
						select {
						case <-sent:
							ended = true // once more, after the last payout
						default:
						}
						if _, err := process.Payouts.CompleteBatches(t.Context()); err != nil {
							t.Error(err)
						}
					}
				})
			}
			for range 2 {
				g.Send()
				g.Wait()
				g.Heartbeat()
			}
			close(sent)
			all.Wait()
		})
		other.Must(other.Store.Close())
		for _, b := range list {
			wantBatch(g, b, payment.BatchCompleted, "COMPLETED 3")
		}
		events, err := g.Store.Events(t.Context(), g.Merchant.ID, 0, 1000)
		g.Must(err)
		for i := range events {
			if e := &events[i]; e.Type == payment.EventPayoutBatchCompleted && !strings.Contains(string(e.Body), `"status":"COMPLETED","count":3,"amount":300,"currency":"BRL","counts":{"COMPLETED":3}`) {
				t.Errorf("an event shows %s", e.Body)
			}
		}
		if n := batchEvents(g); n != batches {
			t.Errorf("%d events of %d batches", n, batches)
		}
		g.WantProven()
	})
}
