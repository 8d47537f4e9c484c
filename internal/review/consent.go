package review

import (
	"context"
	"errors"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/outgoing"
	"github.com/porteira/porteira/internal/store"
)

// consented is the consent of the account of a payout that may be sent again, as known before the
// transaction.
type consented struct {
	account, externalID string
	// asks means that the account asks for our consent to each transfer, and was proved to do so
	// before the payout was first sent. So no transfer of the payout is executed without a
	// question.
	asks bool
}

// findConsent reads it. A payout that cannot be read takes two people.
func findConsent(ctx context.Context, s *Service, v *Resolve) error {
	v.consent = consented{}
	p, err := s.Store.Payout(ctx, v.opened.Merchant, v.opened.Subject)
	if errors.Is(err, db.ErrSealed) || errors.Is(err, store.ErrNotFound) {
		return nil // the operation says so
	}
	if err != nil {
		return err
	}
	v.consent = consented{account: p.Processor, externalID: p.ExternalID}
	if s.Processors == nil {
		return nil
	}
	proc := s.Processors.Find(p.Processor)
	if proc == nil || !proc.Profile().Transfer.Consent {
		return nil
	}
	v.consent.asks, err = outgoing.AskedBefore(ctx, s.Store, &p)
	return err
}

func needsConsent(v *Resolve, n *store.Needs) {
	needsPayout(v, n)
	if v.consent.asks {
		n.Consent(v.consent.account, v.consent.externalID)
	}
}

// persons is how many people must decide. One is enough in two cases:
//   - A payout is sent again at an account that is proved to ask for our consent. If the processor
//     has a transfer of it nevertheless, one of the two is executed.
//   - The money names the pay-in that it pays.
func (v *Resolve) persons(l *store.Loaded) int {
	if v.namesOrder(l) {
		return 1
	}
	if v.rule.consented && v.consent.asks && l.AsksConsent(v.consent.account) {
		return 1
	}
	return v.rule.Persons
}

// Possible lists the resolutions of a case, with the number of people that each takes now.
func (s *Service) Possible(ctx context.Context, c *store.Case) ([]Option, error) {
	list := Possible(c)
	for i := range list {
		found, _ := find(c, list[i].How)
		if found.Merchant && found.Order {
			named, err := s.named(ctx, c)
			if err != nil {
				return nil, store.Problem(err)
			}
			if named != nil {
				list[i].Named, list[i].Persons = named, 1
			}
		}
		if !found.consented {
			continue
		}
		v := &Resolve{opened: *c, rule: found}
		err := findConsent(ctx, s, v)
		asks := v.consent.asks
		if err == nil && asks {
			asks, err = s.Store.AsksConsent(ctx, v.consent.account)
		}
		if err != nil {
			return nil, store.Problem(err)
		}
		if asks {
			list[i].Persons = 1
		}
	}
	return list, nil
}
