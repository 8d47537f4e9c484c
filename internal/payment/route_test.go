package payment_test

import (
	"fmt"
	"testing"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
)

func TestRoutesOf(t *testing.T) {
	t.Parallel()
	routes := append(payment.AllRoutes("any"),
		payment.Route{Operation: payment.OperationPayin, Method: payment.PIX, Account: "first"},
		payment.Route{Operation: payment.OperationPayin, Method: payment.PIX, Account: "second"})
	for _, row := range []struct {
		operation payment.Operation
		method    payment.Method
		want      string
	}{
		{payment.OperationPayin, payment.PIX, "first second "},
		{payment.OperationPayin, payment.Boleto, "any "},
		{payment.OperationPayout, payment.PIX, "any "},
	} {
		got := ""
		for _, r := range payment.RoutesOf(routes, row.operation, row.method) {
			got += r.Account + " "
		}
		if got != row.want {
			t.Errorf("%s %s: %s, want %s", row.operation, row.method, got, row.want)
		}
	}
	if got := payment.RoutesOf(routes[1:2], payment.OperationPayin, payment.PIX); len(got) != 0 {
		t.Errorf("a route of payouts is one of pay-ins: %v", got)
	}
}

func TestRouteAdmits(t *testing.T) {
	t.Parallel()
	for amount, want := range map[money.Cents]string{99: "true false true", 100: "true true true", 200: "true true true", 201: "true true false"} {
		none, minimum, both := payment.Route{}, payment.Route{Minimum: 100}, payment.Route{Maximum: 200}
		if got := fmt.Sprint(none.Admits(amount), minimum.Admits(amount), both.Admits(amount)); got != want {
			t.Errorf("%d: %s, want %s", amount, got, want)
		}
	}
}

// Shares are kept over many orders, one order always has the same route, and without
// shares the first route takes all.
func TestSharedRoute(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		shares []int
		want   []int // of 10,000 orders
	}{
		{[]int{0, 0}, []int{10_000, 0}},
		{[]int{30, 0}, []int{3000, 7000}},
		{[]int{0, 30}, []int{7000, 3000}},
		{[]int{20, 30, 50}, []int{2000, 3000, 5000}},
		{[]int{40, 10}, []int{9000, 1000}}, // the rest is the first one's
	} {
		eligible := make([]payment.Route, len(row.shares))
		for i := range eligible {
			eligible[i] = payment.Route{Account: fmt.Sprint(i), Share: row.shares[i]}
		}
		got := map[string]int{}
		for n := range 10_000 {
			id := fmt.Sprintf("00001order%d", n)
			account := payment.SharedRoute(eligible, id).Account
			if again := payment.SharedRoute(eligible, id).Account; again != account {
				t.Fatalf("%s has account %s, then %s", id, account, again)
			}
			got[account]++
		}
		for i, want := range row.want {
			if n := got[fmt.Sprint(i)]; n < want-200 || n > want+200 {
				t.Errorf("shares %v: route %d has %d of 10,000 orders, want about %d", row.shares, i, n, want)
			}
		}
	}
}
