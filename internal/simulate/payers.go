package simulate

import (
	"time"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// visit lets a payer see a pay-in, most often to pay it, and come back to it.
func (s *simulation) visit(a *ack) {
	soon := s.between(100*time.Millisecond, time.Minute)
	if s.chance(700) {
		s.after(soon, func() { s.pay(a, payerActs[0]) })
	}
	for range s.number(3) {
		if s.chance(s.plan.payers) {
			s.after(soon+s.between(0, 2*time.Minute), func() {
				if !s.calm {
					s.pay(a, s.turn("payer", s.stateOf(a.externalID), payerActs))
				}
			})
		}
	}
}

// pay does with a charge what payers and their banks do with it.
func (s *simulation) pay(a *ack, act string) {
	state := s.stateOf(a.externalID)
	charge := processor.ChargeRequest{ExternalID: a.externalID, Method: payment.Method(a.method), Amount: money.Cents(a.amount)}
	action, amounts := "pay", []int64{0}
	switch act {
	case "paid":
	case "short":
		amounts = []int64{max(1, a.amount-1)}
	case "over":
		amounts = []int64{a.amount + 1}
	case "twice":
		amounts = []int64{a.amount, a.amount}
	case "parts":
		amounts = []int64{(a.amount + 1) / 2, max(1, a.amount/2)}
	case "stranger":
		// Money for a charge that no gateway ever asked for.
		charge.ExternalID = a.externalID[:6] + "SIMULATEDSTRANGERxx" + a.externalID[25:]
		charge.ExpiresAt = epoch.AddDate(1, 0, 0)
		if charge.Method == payment.Boleto {
			charge.DueDate = "2027-06-01"
		}
	default:
		action = act
	}
	for _, amount := range amounts {
		err := s.bank.control.Charge(s.ctx, charge, action, bankapi.ForceCharge{Amount: money.Cents(amount)})
		s.trace.linef("payer of %s: %s %d: %v", a.reference, act, amount, err)
		if err != nil {
			return
		}
	}
	s.result.Faults++
	s.cells.fire("payer", act, state)
	if action != "pay" {
		s.linger(a)
	}
}

// linger lets everybody go on with an order that is no longer as most are.
func (s *simulation) linger(a *ack) {
	m := s.merchantOf(a)
	for range 2 {
		s.after(s.between(time.Second, 30*time.Second), func() { m.bother(a) })
		if a.kind == payin {
			s.after(s.between(time.Second, 30*time.Second), func() {
				if !s.calm {
					s.pay(a, s.turn("payer", s.stateOf(a.externalID), payerActs))
				}
			})
		}
	}
}

// trouble lets the receiver's bank do with a payout what such banks do.
func (s *simulation) trouble(a *ack) {
	for range 2 {
		if s.chance(s.plan.returns) {
			s.after(s.between(0, time.Minute), func() { s.force(a) })
		}
	}
}

func (s *simulation) force(a *ack) {
	if s.calm {
		return
	}
	state := s.stateOf(a.externalID)
	act := s.turn("bank", state, bankActs)
	verb, amount := act, int64(0)
	if act == "part" {
		verb, amount = "return", (a.amount+1)/2
	}
	err := s.bank.control.Transfer(s.ctx, a.externalID, verb, money.Cents(amount))
	s.trace.linef("bank: %s of %s: %v", act, a.reference, err)
	if err == nil {
		s.result.Faults++
		s.result.PayoutFaults++
		s.cells.fire("bank", act, state)
		s.linger(a)
	}
}
