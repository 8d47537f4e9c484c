package merchant

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/pricing"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
)

// settlementDaysMax is the longest time until an instalment's money becomes available, in
// days after the one before.
const settlementDaysMax = 365

// SetPrice makes a price hold for the orders that a merchant creates from now on, within 2 s
// on every node. It replaces the price for the same method and range of instalments; From 0
// is all instalments of the method. A range may be inside another range, but not overlap it
// otherwise. unnamed terms are those of the price that it replaces, else of the smallest range that
// includes it. The result is false if such a price holds already; nothing is changed then. Errors: problem kind
// validation_failed, also if there is none of these and the settlement is
// not named, although the method has prices: nobody would expect their money at once.
func (s *Service) SetPrice(ctx context.Context, merchant payment.ID, p payment.Price, unnamed Unnamed) (changed bool, err error) {
	setRange(&p)
	err = s.Store.Administer(ctx, s.Author, func(tx *store.AdminTx) error {
		prices, err := tx.Prices(ctx, merchant)
		if err != nil {
			return err
		}
		next := p
		noSettlement := ""
		if !inherit(&next, prices, unnamed) {
			noSettlement = fmt.Sprintf("No price of %s includes instalments %d-%d, whose settlement this one could keep: name it with --settle.", p.Method, p.From, p.To)
		}
		if wrong := cmp.Or(checkPrice(&next), checkOverlap(&next, prices), noSettlement); wrong != "" {
			return problem.New(problem.ValidationFailed, wrong)
		}
		holds := func(p payment.Price) bool { return p.Method == next.Method && p.Range == next.Range }
		if changed = !slices.ContainsFunc(prices, holds); !changed {
			return nil
		}
		return tx.SetPrice(ctx, merchant, next)
	})
	return changed, store.Problem(err)
}

// setRange replaces From 0 by all instalments of the method.
func setRange(p *payment.Price) {
	if p.From != 0 {
		return
	}
	p.From, p.To = 1, 1
	if p.Method == payment.CreditCard {
		p.To = payment.InstallmentsMax
	}
}

// Unnamed are the terms of a new price that its author did not name.
type Unnamed struct{ Minimum, Maximum, Settlement, PerInstallment, RefundsFee bool }

// inherit gives a price its unnamed terms. It is false if nothing gives it a settlement, although the
// method has other prices.
func inherit(p *payment.Price, prices []payment.Price, unnamed Unnamed) bool {
	ranges := payment.PricesOf(prices, p.Method)
	around := slices.DeleteFunc(slices.Clone(ranges), func(r payment.Range) bool { return r.From > p.From || r.To < p.To })
	if len(around) == 0 {
		return len(ranges) == 0 || !unnamed.Settlement
	}
	was := payment.TermsFor(around, p.From)
	if unnamed.Minimum {
		p.Minimum = was.Minimum
	}
	if unnamed.Maximum {
		p.Maximum = was.Maximum
	}
	if unnamed.Settlement {
		p.Days, p.Business = was.Days, was.Business
	}
	if unnamed.Settlement && unnamed.PerInstallment {
		p.PerInstallment = was.PerInstallment
	}
	if unnamed.RefundsFee {
		p.RefundsFee = was.RefundsFee
	}
	return true
}

// checkOverlap says which price overlaps a new one, neither inside the other: for the
// instalments of both, the smaller range would hold, which nobody sees. "" if there is none.
// Prices cannot be removed, so it names two ranges that hold the same together.
func checkOverlap(p *payment.Price, prices []payment.Price) string {
	for i := range prices {
		other := &prices[i]
		if other.Method != p.Method {
			continue
		}
		var end int // of the first of the two ranges
		switch {
		case p.From < other.From && other.From <= p.To && p.To < other.To:
			end = other.From - 1
		case other.From < p.From && p.From <= other.To && other.To < p.To:
			end = other.To
		default:
			continue
		}
		return fmt.Sprintf("Instalments %d-%d overlap those of the price for %d-%d, and neither range is inside the other. Set a price for %d-%d and one for %d-%d instead.",
			p.From, p.To, other.From, other.To, p.From, end, end+1, p.To)
	}
	return ""
}

// checkPrice says what is wrong with a price; "" if nothing is.
func checkPrice(p *payment.Price) string {
	card, payout := p.Method == payment.CreditCard, p.Method == payment.PayoutPrice
	amounts := []money.Cents{p.Fixed, p.Minimum, p.Maximum}
	outside := func(amount money.Cents) bool { return amount < 0 || amount > money.Max }
	switch {
	case !payout && !slices.Contains(payment.Methods, p.Method):
		return fmt.Sprintf("The method of a price must be one of %v or %s.", payment.Methods, payment.PayoutPrice)
	case p.From < 1 || p.To < p.From || p.To > payment.InstallmentsMax || !card && p.To > 1:
		return fmt.Sprintf("Instalments must be a range within 1-%d, and only %s has them.", payment.InstallmentsMax, payment.CreditCard)
	case p.BasisPoints < 0 || p.BasisPoints > pricing.BasisPointsMax:
		return fmt.Sprintf("Basis points must be between 0 and %d.", pricing.BasisPointsMax)
	case slices.ContainsFunc(amounts, outside):
		return fmt.Sprintf("Amounts must be between 0 and %d cents.", money.Max)
	case p.Maximum > 0 && p.Maximum < p.Minimum:
		return "The maximum of a fee must not be less than its minimum."
	case p.Days < 0 || p.Days > settlementDaysMax:
		return fmt.Sprintf("Money must settle within %d days.", settlementDaysMax)
	case p.Business && p.Days == 0:
		return "Money settles after one business day or more; D+0 is at once."
	case p.PerInstallment && (!card || p.Days == 0):
		return fmt.Sprintf("Only %s settles per instalment, after one day or more.", payment.CreditCard)
	case payout && p.Days > 0:
		return "A price of payouts has no settlement."
	case payout && p.RefundsFee:
		return "Only the price of a pay-in can give its fee back: payouts have no refunds."
	default:
		return ""
	}
}
