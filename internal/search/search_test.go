package search_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/review"
	"github.com/porteira/porteira/internal/search"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// sell creates a pay-in of a customer.
func sell(g *coretest.Gateway, reference, document, email string) payment.Payin {
	g.T.Helper()
	r := coretest.PayinRequest(reference, "")
	r.Personal.Customer = fmt.Appendf(nil, `{"name":"Maria","document":%q,"email":%q}`, document, email)
	p, _, err := g.Payins.Create(g.T.Context(), g.Merchant, r)
	g.Must(err)
	return p
}

// send requests a payout to a key.
func send(g *coretest.Gateway, reference, keyType, key, normal, document string) payment.Payout {
	g.T.Helper()
	r := coretest.PayoutRequest(reference, 1_00)
	r.PIXKeyType, r.PIXKey, r.NormalKey, r.BeneficiaryDocument = wire.Some(keyType), wire.Some(key), normal, wire.Some(document)
	p, _, err := g.Payouts.Request(g.T.Context(), g.Merchant, r)
	g.Must(err)
	return p
}

// run runs the worker once.
func run(g *coretest.Gateway) {
	g.T.Helper()
	_, err := g.Search.Index(g.T.Context())
	g.Must(err)
}

// find lists the references of the orders that have a value, newest first.
func find(g *coretest.Gateway, field store.SearchField, values ...string) string {
	g.T.Helper()
	var terms []store.SearchTerm
	for _, v := range values {
		terms = append(terms, g.Store.SearchTerm(g.Merchant.ID, field, v))
	}
	return list(g, field, store.Filter{Terms: [][]store.SearchTerm{terms}, Limit: 200})
}

func list(g *coretest.Gateway, field store.SearchField, f store.Filter) string {
	g.T.Helper()
	var references []string
	if strings.HasPrefix(string(field), "payout") {
		list, err := g.Store.Payouts(g.T.Context(), g.Merchant.ID, f)
		g.Must(err)
		for i := range list {
			references = append(references, list[i].ReferenceID)
		}
	} else {
		list, err := g.Store.Payins(g.T.Context(), g.Merchant.ID, f)
		g.Must(err)
		for i := range list {
			references = append(references, list[i].ReferenceID)
		}
	}
	return strings.Join(references, " ")
}

func want(g *coretest.Gateway, name, got, want string) {
	g.T.Helper()
	if got != want {
		g.T.Errorf("%s: found %q, want %q", name, got, want)
	}
}

// New orders are found after one run, by each field, of their merchant only.
func TestIndex(t *testing.T) {
	coretest.EachEngine(t, func(t *testing.T, g *coretest.Gateway) {
		run(g)
		sell(g, "a", "52998224725", "Maria@Example.com")
		g.Clock.Advance(time.Second)
		sell(g, "b", "52998224725", "")
		send(g, "x", "PHONE", "11987654321", "+5511987654321", "12ABC34501DE35")
		g.Clock.Advance(time.Second)
		send(g, "y", "EMAIL", "maria@example.com", "maria@example.com", "52998224725")
		want(g, "before the run", find(g, store.SearchCustomerDocument, "52998224725"), "")
		run(g)
		want(g, "document", find(g, store.SearchCustomerDocument, "52998224725"), "b a")
		want(g, "e-mail", find(g, store.SearchCustomerEmail, "maria@example.com"), "a")
		want(g, "key", find(g, store.SearchPIXKey, payment.NormalPIXKeys("11987654321")...), "x")
		want(g, "beneficiary", find(g, store.SearchBeneficiaryDocument, "12ABC34501DE35"), "x")
		want(g, "two values", find(g, store.SearchPIXKey, "+5511987654321", "maria@example.com"), "y x")
		want(g, "another field", find(g, store.SearchBeneficiaryDocument, "maria@example.com"), "")
		other := g.For(t)
		want(other, "another merchant", find(other, store.SearchCustomerDocument, "52998224725"), "")

		both := [][]store.SearchTerm{
			{g.Store.SearchTerm(g.Merchant.ID, store.SearchCustomerDocument, "52998224725")},
			{g.Store.SearchTerm(g.Merchant.ID, store.SearchCustomerEmail, "maria@example.com")},
		}
		want(g, "two fields", list(g, "payin", store.Filter{Terms: both, Limit: 9}), "a")
		want(g, "and a status", list(g, "payin", store.Filter{Terms: both[:1], Status: "PENDING", Limit: 9}), "b a")
		want(g, "and another status", list(g, "payin", store.Filter{Terms: both[:1], Status: "PAID", Limit: 9}), "")
		want(g, "and an amount", list(g, "payin", store.Filter{Terms: both[:1], MinAmount: 100_01, Limit: 9}), "")
		want(g, "a page", list(g, "payin", store.Filter{Terms: both[:1], Limit: 1}), "b")
	})
}

// A value is stored only as a keyed hash.
func TestIndexHasNoPersonalData(t *testing.T) {
	coretest.EachEngine(t, func(t *testing.T, g *coretest.Gateway) {
		sell(g, "a", "52998224725", "maria@example.com")
		run(g)
		if n := g.Count("search_terms", "length(term) = 16"); n != 2 {
			t.Errorf("%d terms", n)
		}
		if n := g.Count("search_terms", "length(term) <> 16"); n != 0 {
			t.Errorf("%d others", n)
		}
	})
}

// Orders that a process did not index before it was killed are indexed by the next one, and by another
// process that lives.
func TestCatchUp(t *testing.T) {
	coretest.EachEngine(t, func(t *testing.T, g *coretest.Gateway) {
		run(g)
		sell(g, "killed", "52998224725", "")
		g.Restart(nil)
		want(g, "after the restart", find(g, store.SearchCustomerDocument, "52998224725"), "")
		run(g)
		want(g, "and a run", find(g, store.SearchCustomerDocument, "52998224725"), "killed")

		other := g.Second()
		run(other)
		sell(other, "of another", "12ABC34501DE35", "")
		run(g)
		want(g, "the other lives", find(g, store.SearchCustomerDocument, "12ABC34501DE35"), "")
		g.DeclareDead(other)
		g.Heartbeat()
		run(g)
		want(g, "the other is dead", find(g, store.SearchCustomerDocument, "12ABC34501DE35"), "of another")
		other.Must(other.Store.Close())
	})
}

// The orders of a process with a slow clock, whose ids are before the position, are indexed after it was
// killed: by another process, and by the next one.
func TestCatchUpOfASlowClock(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		coretest.EachEngine(t, func(t *testing.T, g *coretest.Gateway) {
			sell(g, "old", "12ABC34501DE35", "")
			g.Jump(10 * time.Minute)
			sell(g, "new", "12ABC34501DE35", "")
			g.Jump(10 * time.Minute)
			run(g) // the position is at the newest order
			g.Clock.SetOffset(-15 * time.Minute)
			slow := g.Second()
			sell(slow, "slow", "52998224725", "")
			g.Clock.SetOffset(0)
			if restarted {
				g.Restart(nil)
			} else {
				g.Heartbeat()
			}
			g.DeclareDead(slow)
			run(g)
			want(g, "of the slow clock", find(g, store.SearchCustomerDocument, "52998224725"), "slow")
			want(g, "of the right clock", find(g, store.SearchCustomerDocument, "12ABC34501DE35"), "new old")
			slow.Must(slow.Store.Close())
		})
	}
}

// While a process has a slow clock, no other one moves the position past the ids of its next orders.
func TestPositionWaitsForASlowClock(t *testing.T) {
	coretest.EachEngine(t, func(t *testing.T, g *coretest.Gateway) {
		run(g)
		g.Clock.SetOffset(-15 * time.Minute)
		slow := g.Second()
		g.Clock.SetOffset(0)
		sell(g, "new", "12ABC34501DE35", "")
		g.Jump(10 * time.Minute)
		run(g)
		g.Clock.SetOffset(-15 * time.Minute)
		slow.Heartbeat()
		g.Clock.SetOffset(0)
		g.Jump(2 * time.Minute)
		run(g)
		id, err := g.Store.SearchPosition(t.Context(), g.Merchant.ID, payment.OperationPayin)
		g.Must(err)
		if !id.IsZero() && id.Time().After(g.Clock.Now().Add(-15*time.Minute)) {
			t.Errorf("the position is at %s, the clock of the slow process behind it", id.Time())
		}
		slow.Must(slow.Store.Close())
	})
}

// A process with a slow clock begins while another one's sweep is under way, does not keep up with its
// orders for longer than a commit can take, and is killed: its orders are indexed all the same.
func TestSlowClockBeginsDuringASweep(t *testing.T) {
	for _, resting := range []bool{false, true} {
		coretest.EachEngine(t, func(t *testing.T, g *coretest.Gateway) {
			for range 60 { // more than one run passes
				g.For(t)
			}
			sell(g, "new", "12ABC34501DE35", "")
			g.Jump(10 * time.Minute)
			run(g) // of these merchants this one is not the last
			if resting {
				run(g)
			}
			g.Clock.SetOffset(-30 * time.Minute)
			slow := g.Second()
			sell(slow, "slow", "52998224725", "")
			g.Clock.SetOffset(0)
			run(g)
			for range 8 {
				g.Jump(time.Minute)
				g.Clock.SetOffset(-30 * time.Minute)
				slow.Heartbeat()
				g.Clock.SetOffset(0)
				run(g)
			}
			g.DeclareDead(slow)
			for range 4 {
				g.Jump(2 * time.Minute)
				run(g)
				run(g)
			}
			want(g, "of the slow clock", find(g, store.SearchCustomerDocument, "52998224725"), "slow")
			slow.Must(slow.Store.Close())
		})
	}
}

// The sweep moves its position behind the newest orders, in order, and finds what nobody has
// reported.
func TestSweep(t *testing.T) {
	coretest.EachEngine(t, func(t *testing.T, g *coretest.Gateway) {
		run(g)
		p := sell(g, "lost", "52998224725", "")
		g.Core.Search = search.New(search.Options{Store: g.Store, Writer: g.Writer, Env: g.Env}) // it has no report
		run(g)
		g.Execute("DELETE FROM search_terms", "DELETE FROM search_positions")
		position := func() payment.ID {
			t.Helper()
			id, err := g.Store.SearchPosition(t.Context(), g.Merchant.ID, payment.OperationPayin)
			g.Must(err)
			return id
		}
		g.Jump(2 * time.Minute)
		run(g)
		if find(g, store.SearchCustomerDocument, "52998224725") != "" || !position().IsZero() {
			t.Error("an order was swept before its commit has surely ended")
		}
		g.Jump(4 * time.Minute)
		run(g)
		want(g, "swept", find(g, store.SearchCustomerDocument, "52998224725"), "lost")
		if position() != p.ID {
			t.Errorf("position is %s, want %s", position(), p.ID)
		}
		g.Execute("DELETE FROM search_terms")
		g.Jump(2 * time.Minute)
		run(g)
		want(g, "swept once", find(g, store.SearchCustomerDocument, "52998224725"), "")
	})
}

// More orders than one run indexes: later runs go on, in order, also if new ones come
// meanwhile.
func TestIndexInParts(t *testing.T) {
	coretest.EachEngine(t, func(t *testing.T, g *coretest.Gateway) {
		run(g)
		const orders = 1100
		for i := range orders {
			sell(g, fmt.Sprint(i), "52998224725", "")
			if i%100 == 0 {
				g.Clock.Advance(time.Millisecond)
			}
		}
		count := func() int { return g.Count("search_terms", "1 = 1") }
		for _, want := range []int{500, 1000, 1100, 1100} {
			run(g)
			if got := count(); got != want {
				t.Errorf("%d orders are indexed, want %d", got, want)
			}
		}
	})
}

// An order that cannot be decrypted is parked with one case, and delays no other.
func TestDamagedOrder(t *testing.T) {
	coretest.EachEngine(t, func(t *testing.T, g *coretest.Gateway) {
		run(g)
		p := sell(g, "damaged", "52998224725", "")
		sell(g, "good", "52998224725", "")
		g.Execute("CREATE TABLE saved AS SELECT personal FROM payins WHERE reference_id = 'damaged'")
		g.Damage("payins", "personal", "reference_id = 'damaged'")
		run(g)
		want(g, "indexed", find(g, store.SearchCustomerDocument, "52998224725"), "good")
		for range 3 {
			g.Jump(6 * time.Minute)
			run(g)
		}
		if n := g.Count("cases", "kind = 'damaged'"); n != 1 {
			t.Errorf("%d cases", n)
		}
		position, err := g.Store.SearchPosition(t.Context(), g.Merchant.ID, payment.OperationPayin)
		g.Must(err)
		if payment.CompareIDs(position, p.ID) < 0 {
			t.Error("the position waits before the damaged order")
		}
		g.Execute("UPDATE payins SET personal = (SELECT personal FROM saved) WHERE reference_id = 'damaged'")
		cases, err := g.Store.OpenCases(t.Context(), 9)
		g.Must(err)
		_, err = g.Reviews.Resolve(t.Context(), review.Request{
			Case: cases[0].ID, How: store.ResolvedRetry, Actor: "operator:ana", Reason: "repaired",
		})
		g.Must(err)
		g.Jump(6 * time.Minute)
		run(g)
		want(g, "repaired", find(g, store.SearchCustomerDocument, "52998224725"), "good damaged")
	})
}
