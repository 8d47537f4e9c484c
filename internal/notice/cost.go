package notice

import (
	"context"

	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// bookCost books a fee that a processor charged, or gave back, on the platform's accounts: no
// merchant's money pays for it. The claim of its id makes it unique.
func (s *Service) bookCost(ctx context.Context, account string, v *processor.ListedCost) error {
	key := store.CostClaim + v.ID
	known, err := s.Store.HasReceipt(ctx, account, key)
	if known || err != nil || v.Amount == 0 {
		return err
	}
	id := s.Env.IDs.NewID(s.Env.Clock.Now())
	return s.Writer.Do(ctx, &bookedCost{claim: payment.Receipt{ID: id, Processor: account, ExternalID: key}, amount: v.Amount})
}

// bookedCost is the operation that books a cost.
type bookedCost struct {
	claim  payment.Receipt
	amount money.Cents
}

// Merchant implements [write.Operation].
func (v *bookedCost) Merchant() payment.ID { return payment.ID{} }

// Class implements [write.Operation].
func (v *bookedCost) Class() commit.Class { return commit.Background }

// Needs implements [write.Operation].
func (v *bookedCost) Needs(n *store.Needs) {
	n.Receipts(&v.claim)
	n.Balances(payment.ID{})
}

// Decide implements [write.Operation].
func (v *bookedCost) Decide(l *store.Loaded, c *store.Changes) error {
	switch {
	case !l.Inserted(v.claim.ID):
		return nil
	case v.amount < 0:
		costs := l.Balances(payment.ID{})[ledger.Costs]
		return c.Post(payment.ID{}, v.claim.ID, ledger.ReturnCost(v.claim.Processor, costs, -v.amount))
	default:
		return c.Post(payment.ID{}, v.claim.ID, ledger.BookCost(v.claim.Processor, v.amount))
	}
}
