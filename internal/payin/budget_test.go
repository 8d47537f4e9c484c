package payin_test

import (
	"testing"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
)

// budgeted is a bank whose account has a budget of requests.
type budgeted struct {
	*coretest.Bank

	low bool
}

var _ processor.Budgeted = (*budgeted)(nil)

// BudgetLeft implements [processor.Budgeted].
func (b *budgeted) BudgetLeft() (requests int, limited bool) { return 1, true }

// BudgetLow implements [processor.Budgeted].
func (b *budgeted) BudgetLow() bool { return b.low }

// Orders without credentials do not use up an account's budget: the rest of it is for orders
// with credentials, and for orders that exist.
func TestOrdersWithoutCredentialsSpareTheBudget(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		bank := &budgeted{Bank: g.Bank}
		g.Processor(coretest.BankName, bank)
		request := func(reference string, public bool) error {
			r := coretest.PayinRequest(reference, "")
			r.Public = public
			_, err := create(g, r)
			return err
		}
		g.Must(request("before", true))
		bank.low = true
		if err := request("public", true); !problem.Is(err, problem.RateLimited) || problem.From(err).Quota.Name != "processor-budget" {
			t.Errorf("without credentials: %v", err)
		}
		g.Must(request("before", true))
		g.Must(request("own", false))
		if n := len(g.Bank.Charges); n != 2 {
			t.Errorf("%d charges", n)
		}
		bank.low = false
		g.Must(request("public", true))
	})
}

// Nor do they by way of another account that takes no charge.
func TestOrdersWithoutCredentialsSpareTheBudgetOfTheNextAccount(t *testing.T) {
	for _, public := range []bool{true, false} {
		coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
			next := &budgeted{Bank: coretest.NewBank(), low: true}
			g.Processor("next", next)
			g.Merchant.Routes = append(payment.AllRoutes(coretest.BankName), payment.AllRoutes("next")...)
			g.Bank.AnswerCharge = func(*coretest.Bank, processor.ChargeRequest) processor.ChargeAnswer {
				return processor.ChargeAnswer{Outcome: processor.Refused, Failure: &payment.Failure{Code: "x"}}
			}
			r := coretest.PayinRequest("order", "")
			r.Public = public
			_, err := create(g, r)
			if moved := len(next.Charges) == 1; moved == public || (err == nil) != moved {
				t.Errorf("without credentials %v: moved %v, %v", public, moved, err)
			}
		})
	}
}
