package account_test

import (
	"context"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// cardsAccount is an account that takes payments and gives them back, and sends no transfers.
type cardsAccount struct {
	processor.Processor
	processor.Charger
	processor.Refunder
	processor.Notifier

	bank *coretest.Bank
}

func (v cardsAccount) Feeds() map[processor.Feed]processor.FeedSpec {
	all := v.bank.Feeds()
	delete(all, processor.FeedTransfers)
	return all
}

func (v cardsAccount) Read(ctx context.Context, feed processor.Feed, cursor string) (processor.Page, error) {
	return v.bank.Read(ctx, feed, cursor)
}

// Rule 12: a payout was canceled in the lost past, and its money left as a refund, through an account
// that sends no transfers. The payout waits until the list of refunds of that account was read too.
func TestPayoutsWaitForAnAccountThatOnlyRefunds(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		cards := coretest.NewBank()
		cards.Now = g.Clock.Now
		s, r := g.Accounts(coretest.Driver{Name: "test", Banks: map[string]processor.Processor{
			"one": g.Bank, "cards": cardsAccount{cards, cards, cards, cards, cards},
		}})
		g.Account(s, coretest.BankName, "test", "one")
		g.Account(s, "cards", "test", "cards")
		follow(t, r)
		g.Heartbeat()
		g.SetRoutes(s, payment.OperationPayin, "", "cards")
		g.SetRoutes(s, payment.OperationPayout, "", coretest.BankName)
		in := g.Payin(g.Merchant, "in", "")
		cards.Receive(in.ExternalID, "pay-1", 100_00)
		g.Must(g.Notices.Record(t.Context(), "cards", "n-1", "", []byte("charge "+in.ExternalID)))
		g.Apply()
		g.WantPayin(in, payment.PayinPaid, 100_00, 1)
		g.ReadFeeds()
		p := g.Payout("canceled in the lost past", int64(coretest.Opening)+50_00) // of 1,100.00
		cards.RefundAtPanel("lost", "pay-1", 100_00)                              // in the lost past
		cards.Down = true
		g.Execute("UPDATE installation SET epoch = epoch - 3")
		g.Heartbeat()
		g.Clear()
		if !g.Node.Frozen("cards") {
			t.Fatal("the account of cards does not wait")
		}
		for range 20 {
			g.Send()
			g.LookUp()
			g.Pass(10 * time.Second)
		}
		left := money.Cents(100_00)
		for _, v := range g.Bank.Transfers {
			left += v.Request.Amount
		}
		if had := coretest.Opening + 100_00; left > had {
			t.Errorf("%s left, and the merchant had %s, while the list of refunds of an account is not read", left.Decimal(), had.Decimal())
		}
		g.WantPayout(p, payment.PayoutPending, payment.StepQueued)
	})
}
