package payin_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payin"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
	"github.com/porteira/porteira/internal/write"
)

func TestCreateDecisions(t *testing.T) {
	for _, row := range []struct {
		name, given, reference string
		changes                string
		fresh                  bool
		status                 payment.PayinStatus // of the order that has the reference
	}{
		{"a new reference", "", "other", "+payins PENDING 10000\n+charges wanted -", true, payment.PayinPending},
		{"a used reference", "", "order", "", false, payment.PayinPending},
		{"a used reference of a paid order", "pay A 100", "order", "", false, payment.PayinPaid},
		{"a used reference of a canceled order", "cancel", "order", "", false, payment.PayinCanceled},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := newStory(t)
			s.happens(row.given)
			op, err := s.Payins.NewCreateOp(s.Merchant, coretest.PayinRequest(row.reference, ""))
			s.Must(err)
			s.WantDecision(op, row.changes, "")
			if op.Fresh != row.fresh || op.Payin.Status != row.status || op.Payin.ReferenceID != row.reference {
				t.Errorf("fresh %v, %s order %q; want %v, %s, %q", op.Fresh, op.Payin.Status, op.Payin.ReferenceID, row.fresh, row.status, row.reference)
			}
			if !row.fresh && op.Payin.ID != s.payin.ID {
				t.Errorf("order %s has the reference, want %s", op.Payin.ID, s.payin.ID)
			}
		})
	}
}

// Of requests with one reference in one batch the first creates the order; the others
// find it. References of different merchants are independent.
func TestCreateInOneBatch(t *testing.T) {
	coretest.EachEngine(t, func(t *testing.T, g *coretest.Gateway) {
		other := g.For(t)
		var ops []*payin.CreateOp
		for _, m := range []store.Merchant{g.Merchant, g.Merchant, other.Merchant, g.Merchant} {
			op, err := g.Payins.NewCreateOp(m, coretest.PayinRequest("order", ""))
			g.Must(err)
			ops = append(ops, op)
		}
		changes := g.Changes(func() {
			g.Must(errors.Join(g.Writer.All(t.Context(), []write.Operation{ops[0], ops[1], ops[2], ops[3]})...))
		})
		if changes != "+payins PENDING 10000\n+payins PENDING 10000\n+charges wanted -\n+charges wanted -" {
			t.Errorf("changes %s", changes)
		}
		for i, fresh := range []bool{true, false, true, false} {
			first := ops[0]
			if i == 2 {
				first = ops[2]
			}
			if ops[i].Fresh != fresh || ops[i].Payin.ID != first.Payin.ID {
				t.Errorf("request %d: fresh %v, order %s", i+1, ops[i].Fresh, ops[i].Payin.ID)
			}
		}
	})
}

// A different request with a used reference is refused, and its answer names the fields
// that differ.
func TestReferenceConflictNamesFields(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Payin(g.Merchant, "order", "")
		other := coretest.PayinRequest("order", "")
		other.Amount, other.Fingerprint = wire.Some(int64(7)), wire.NewFingerprint([]wire.FieldMAC{{Name: "amount", MAC: [16]byte{1}}})
		_, _, err := g.Payins.Create(t.Context(), g.Merchant, other)
		isAmount := func(f problem.FieldError) bool { return f.Field == "amount" }
		if !problem.Is(err, problem.ReferenceConflict) || !slices.ContainsFunc(problem.From(err).Fields, isAmount) {
			t.Fatalf("got %v", err)
		}
		if _, found, err := g.Payins.Replay(t.Context(), g.Merchant, other); !found || !problem.Is(err, problem.ReferenceConflict) {
			t.Errorf("replay: found %v, %v", found, err)
		}
		list, err := g.Store.Payins(t.Context(), g.Merchant.ID, store.Filter{Limit: 10})
		g.Must(err)
		if len(list) != 1 || list[0].Amount != 100_00 {
			t.Fatalf("the refused request left %v", list)
		}
	})
}

// The same request again finds its order, even if it would be rejected today.
func TestReplay(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		first := g.Payin(g.Merchant, "order", "")
		again, replayed, err := g.Payins.Create(t.Context(), g.Merchant, coretest.PayinRequest("order", ""))
		if err != nil || !replayed || again.ID != first.ID || !again.Ready() {
			t.Errorf("created again: %s, replayed %v, %v", again.ID, replayed, err)
		}
		again, found, err := g.Payins.Replay(t.Context(), g.Merchant, coretest.PayinRequest("order", ""))
		if err != nil || !found || again.ID != first.ID {
			t.Errorf("replay: %s, found %v, %v", again.ID, found, err)
		}
		if _, found, err := g.Payins.Replay(t.Context(), g.Merchant, coretest.PayinRequest("other", "")); found || err != nil {
			t.Errorf("replay of an unused reference: found %v, %v", found, err)
		}
		unknown := g.Merchant
		unknown.Routes = payment.AllRoutes("nobody")
		if _, _, err := g.Payins.Create(t.Context(), unknown, coretest.PayinRequest("new", "")); err == nil || !strings.Contains(err.Error(), "nobody") {
			t.Errorf("a merchant whose processor is not configured: %v", err)
		}
	})
}
