package payout_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/payout"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
	"github.com/porteira/porteira/internal/write"
)

const opening = int64(coretest.Opening)

func newRequest(g *coretest.Gateway, reference string, amount int64) *payout.RequestOp {
	g.T.Helper()
	op, err := g.Payouts.NewRequestOp(g.Merchant, coretest.PayoutRequest(reference, amount))
	g.Must(err)
	return op
}

func TestRequestDecisions(t *testing.T) {
	const held = `
		+payouts PENDING queued 1000
		+limit_counters 1 20777 1000 1
		+postings payout_held available -1000
		+postings payout_held held 1000`
	all := strings.ReplaceAll(held, "1000", "100000")
	const refused = true
	type request struct {
		reference string
		amount    int64
	}
	for _, row := range []struct {
		name    string
		given   []request
		request request
		changes string
		fresh   bool
		refused bool
	}{
		{"a new reference", nil, request{"r", 10_00}, held, true, !refused},
		{"all that is available", nil, request{"r", opening}, all, true, !refused},
		{"one cent more", nil, request{"r", opening + 1}, "", false, refused},
		{"what is held is not available", []request{{"other", 1}}, request{"r", opening}, "", false, refused},
		{"a used reference", []request{{"r", 10_00}}, request{"r", 10_00}, "", false, !refused},
		{"a used reference, and nothing available", []request{{"r", opening}}, request{"r", opening}, "", false, !refused},
		{"a used reference of a different request", []request{{"r", 10_00}}, request{"r", 20_00}, "", false, !refused},
		{"the reference of a refused request", []request{{"r", opening + 1}}, request{"r", 10_00}, held, true, !refused},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := coretest.NewWith(t, coretest.Opening)
			newRequest := func(r request) *payout.RequestOp { return newRequest(m, r.reference, r.amount) }
			for _, r := range row.given {
				if err := m.Commit(newRequest(r)); (err != nil) != (r.amount > opening) {
					t.Fatalf("given %+v: %v", r, err)
				}
			}
			op := newRequest(row.request)
			if row.refused {
				m.WantRefusal(op, problem.InsufficientBalance)
			} else {
				m.WantDecision(op, row.changes, "")
				if op.Fresh != row.fresh || op.Payout.ReferenceID != row.request.reference || op.Payout.Status != payment.PayoutPending {
					t.Errorf("fresh %v, %s payout %q", op.Fresh, op.Payout.Status, op.Payout.ReferenceID)
				}
			}
			m.WantProven()
		})
	}
}

// A refused request leaves its reference unused: the same request is accepted once the
// balance covers it, and a different one is not a conflict.
func TestInsufficientBalanceLeavesTheReferenceUnused(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		request := func(amount int64) (payment.Payout, bool, error) {
			return g.Payouts.Request(t.Context(), g.Merchant, coretest.PayoutRequest("r", amount))
		}
		for range 2 {
			if _, _, err := request(opening + 1); !problem.Is(err, problem.InsufficientBalance) {
				t.Errorf("more than is available: %v", err)
			}
		}
		list, err := g.Store.Payouts(t.Context(), g.Merchant.ID, store.Filter{Limit: 10})
		if err != nil || len(list) > 0 {
			t.Errorf("the refused requests left %v, %v", list, err)
		}
		if _, found, err := g.Payouts.Replay(t.Context(), g.Merchant, "r", nil); found || err != nil {
			t.Errorf("replay of the refused request: found %v, %v", found, err)
		}
		g.Must(g.Merchants.Fund(t.Context(), g.Merchant, 1))
		p, replayed, err := request(opening + 1)
		if err != nil || replayed {
			t.Errorf("the same request when it is covered: replayed %v, %v", replayed, err)
		}
		g.WantBalances(0, coretest.Opening+1)
		if again, replayed, err := request(opening + 1); err != nil || !replayed || again.ID != p.ID {
			t.Errorf("the same request again: %s, replayed %v, %v", again.ID, replayed, err)
		}
		g.WantEvents()
		g.WantProven()
	})
}

// Requests of one batch share the balance in their order: money held by one is not
// available to the next, and a refused one takes nothing from the others.
func TestRequestsInOneBatch(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		half := opening / 2
		ops := []*payout.RequestOp{
			newRequest(g, "a", half), newRequest(g, "b", opening), newRequest(g, "a", half), newRequest(g, "c", half), newRequest(g, "d", 1),
		}
		errs := g.Writer.All(t.Context(), []write.Operation{ops[0], ops[1], ops[2], ops[3], ops[4]})
		for i, refused := range []bool{false, true, false, false, true} {
			if refused != problem.Is(errs[i], problem.InsufficientBalance) || !refused && errs[i] != nil {
				t.Errorf("request %d: %v, want refused %v", i+1, errs[i], refused)
			}
		}
		if !ops[0].Fresh || ops[2].Fresh || ops[2].Payout.ID != ops[0].Payout.ID || !ops[3].Fresh {
			t.Errorf("fresh %v, %v, %v", ops[0].Fresh, ops[2].Fresh, ops[3].Fresh)
		}
		g.WantBalances(0, coretest.Opening)
		g.WantProven()
	})
}

// Two requests of one batch have one reference, and the first is refused: so is the
// second, and the reference is unused.
func TestSharedReferenceOfARefusedRequest(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		changes := g.Changes(func() {
			errs := g.Writer.All(t.Context(), []write.Operation{newRequest(g, "r", opening+1), newRequest(g, "r", opening+1)})
			if !problem.Is(errs[0], problem.InsufficientBalance) || !problem.Is(errs[1], problem.InsufficientBalance) {
				t.Errorf("answered %v", errs)
			}
		})
		if changes != "" {
			t.Errorf("changes %s", changes)
		}
		g.Payout("r", 10_00)
		g.WantBalances(coretest.Opening-10_00, 10_00)
	})
}

// A different request with a used reference is refused, and its answer names the fields
// that differ.
func TestReferenceConflictNamesFields(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		first := g.Payout("r", 10_00)
		other := coretest.PayoutRequest("r", 20_00)
		other.Fingerprint = wire.NewFingerprint([]wire.FieldMAC{{Name: "amount", MAC: [16]byte{1}}})
		isAmount := func(f problem.FieldError) bool { return f.Field == "amount" }
		p, replayed, err := g.Payouts.Request(t.Context(), g.Merchant, other)
		if !problem.Is(err, problem.ReferenceConflict) || !slices.ContainsFunc(problem.From(err).Fields, isAmount) {
			t.Errorf("got %s, replayed %v, %v", p.ID, replayed, err)
		}
		if _, found, err := g.Payouts.Replay(t.Context(), g.Merchant, "r", other.Fingerprint); !found || !problem.Is(err, problem.ReferenceConflict) {
			t.Errorf("replay of the other request: found %v, %v", found, err)
		}
		if p, found, err := g.Payouts.Replay(t.Context(), g.Merchant, "r", coretest.PayoutRequest("r", 10_00).Fingerprint); !found || err != nil || p.ID != first.ID {
			t.Errorf("replay: %s, found %v, %v", p.ID, found, err)
		}
		g.WantBalances(coretest.Opening-10_00, 10_00)
	})
}

// receiveOnly is a processor that does not support payouts.
type receiveOnly struct{ processor.Charger }

func (receiveOnly) Profile() processor.Profile { return processor.Profile{Name: coretest.BankName} }

func TestProcessorThatSendsNoMoney(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Restart(func(o *app.CoreOptions) { o.Processors = processor.Registry{coretest.BankName: receiveOnly{g.Bank}} })
		changes := g.Changes(func() {
			if _, _, err := g.Payouts.Request(t.Context(), g.Merchant, coretest.PayoutRequest("r", 1)); !problem.Is(err, problem.MethodNotEnabled) {
				t.Errorf("answered %v", err)
			}
			unknown := g.Merchant
			unknown.Routes = payment.AllRoutes("nobody")
			if _, _, err := g.Payouts.Request(t.Context(), unknown, coretest.PayoutRequest("r", 1)); err == nil || !strings.Contains(err.Error(), "nobody") {
				t.Errorf("a merchant whose processor is not configured: %v", err)
			}
		})
		if changes != "" {
			t.Errorf("changes %s", changes)
		}
	})
}

// A new payout wakes the worker that sends; a repeated or refused request does not.
func TestRequestWakesTheSender(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		var woken []string
		g.Restart(func(o *app.CoreOptions) {
			o.Wakers = app.NewWakers(func(worker string) { woken = append(woken, worker) })
		})
		woken = nil
		g.Payout("r", 10_00)
		if !slices.Equal(woken, []string{app.WorkerSend}) {
			t.Errorf("woken %v", woken)
		}
		g.Payout("r", 10_00)
		_, _, err := g.Payouts.Request(t.Context(), g.Merchant, coretest.PayoutRequest("more", opening))
		if len(woken) != 1 || !problem.Is(err, problem.InsufficientBalance) {
			t.Errorf("woken %v, %v", woken, err)
		}
	})
}

// A processor may report only on its own orders: another one's notice moves no payout.
func TestNoticeOfAnotherProcessorMovesNoPayout(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.Payout("r", opening)
		_, claimed, err := g.Outgoing.Claim(t.Context(), store.Due{Merchant: g.Merchant.ID, Processor: coretest.BankName}, 10)
		g.Must(err)
		other := coretest.NewBank()
		other.Transfers[p.ExternalID] = &coretest.Transfer{State: processor.TransferFailed}
		g.Processor("other", other)
		g.Must(g.Notices.Record(t.Context(), "other", "n", "", []byte(p.ExternalID)))
		g.Apply()
		g.WantPayout(p, payment.PayoutProcessing, payment.StepIntent)
		g.WantBalances(0, coretest.Opening)
		g.WantCases(store.CaseNotice)
		if claimed != 1 {
			t.Errorf("claimed %d", claimed)
		}
	})
}
