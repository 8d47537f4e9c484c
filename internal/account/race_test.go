package account_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// rounds of two changes at the same time: without a lock almost every one goes wrong.
const rounds = 20

// Of two accounts with the same contract that are added at the same time one is refused: else each
// payment would be booked twice.
func TestOneContractAddedTwiceAtOnce(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		banks := map[string]processor.Processor{}
		for round := range rounds {
			banks[fmt.Sprint(round)] = g.Bank
		}
		s, _ := g.Accounts(coretest.Driver{Name: "test", Banks: banks})
		for round := range rounds {
			refused := 0
			for _, err := range g.AtOnce(func(i int) error {
				_, err := s.Add(t.Context(), store.Account{
					ID: fmt.Sprintf("a%d-%d", round, i), Driver: "test", Settings: map[string]string{"bank": fmt.Sprint(round)},
				})
				return err
			}) {
				if problem.Is(err, problem.ValidationFailed) && strings.Contains(err.Error(), "contract") {
					refused++
				} else {
					g.Must(err)
				}
			}
			if refused != 1 {
				t.Fatalf("round %d: %d accounts are refused", round, refused)
			}
		}
	})
}

// Of two changes of routes at the same time one holds, and neither fails.
func TestRoutesSetAtOnce(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		s, _, _ := setUp(t, g)
		for round := range rounds {
			for _, err := range g.AtOnce(func(i int) error {
				list := []payment.Route{{Account: coretest.BankName}, {Account: "second"}}
				return s.SetRoutes(t.Context(), &g.Merchant, payment.OperationPayin, payment.PIX, list[i:i+1])
			}) {
				g.Must(err)
			}
			m, err := g.Store.Merchant(t.Context(), g.Merchant.ID)
			g.Must(err)
			if n := len(payment.RoutesOf(m.Routes, payment.OperationPayin, payment.PIX)); n != 1 {
				t.Fatalf("round %d: %d routes", round, n)
			}
		}
	})
}
