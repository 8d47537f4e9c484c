package sim

import (
	"time"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
	"github.com/porteira/porteira/test/sim/checker"
)

// schedulePayer schedules the actions of the payer of a pay-in, mostly a payment.
func (s *simulation) schedulePayer(o *order) {
	soon := s.between(100*time.Millisecond, time.Minute)
	if s.chance(700) {
		s.after(soon, func() { s.actAsPayer(o, payerActs[0]) })
	}
	for range s.number(3) {
		if s.chance(s.plan.payers) {
			s.after(soon+s.between(0, 2*time.Minute), func() { s.nextPayerAct(o) })
		}
	}
}

func (s *simulation) nextPayerAct(o *order) {
	if !s.faultsOff {
		s.actAsPayer(o, s.nextInTurn("payer", s.stateOf(o.ExternalID), payerActs))
	}
}

// actAsPayer performs an action of payers and their banks on a charge.
func (s *simulation) actAsPayer(o *order, act string) {
	state := s.stateOf(o.ExternalID)
	charge := processor.ChargeRequest{ExternalID: o.ExternalID, Method: payment.Method(o.Method), Amount: money.Cents(o.Amount)}
	command, amounts := "pay", []int64{0}
	switch act {
	case "paid":
	case "short":
		amounts = []int64{max(1, o.Amount-1)}
	case "over":
		amounts = []int64{o.Amount + 1}
	case "twice":
		amounts = []int64{o.Amount, o.Amount}
	case "parts":
		amounts = []int64{(o.Amount + 1) / 2, max(1, o.Amount/2)}
	case "stranger":
		// Money for a charge that no gateway created.
		charge.ExternalID = o.ExternalID[:6] + "SIMULATEDSTRANGERxx" + o.ExternalID[25:]
		charge.ExpiresAt = s.began.AddDate(1, 0, 0)
		if charge.Method == payment.Boleto {
			charge.DueDate = "2027-06-01"
		}
	default:
		command = act
	}
	for _, amount := range amounts {
		err := s.contractOf(o.ExternalID).control.Charge(s.ctx, charge, command, bankapi.ForceCharge{Amount: money.Cents(amount)})
		s.trace.linef("payer of %s: %s %d: %v", o.Reference, act, amount, err)
		if err != nil {
			return
		}
	}
	s.countFault("payer", act, state)
	if act == "paid" && state == "PENDING" {
		s.expectBeside(o)
	}
	if command != "pay" {
		s.scheduleMoreActs(o)
	}
}

// scheduleMoreActs schedules further actions on an order in an uncommon state.
func (s *simulation) scheduleMoreActs(o *order) {
	m := s.merchantOf(o)
	if o.Kind == checker.Payin && s.chance(s.plan.refunds) {
		s.after(s.between(0, 30*time.Second), func() { m.placeRefund(o) })
	}
	for range 2 {
		s.after(s.between(time.Second, 30*time.Second), func() { m.act(o) })
		if o.Kind == checker.Payin {
			s.after(s.between(time.Second, 30*time.Second), func() { s.nextPayerAct(o) })
		}
	}
}

// scheduleBank schedules the actions of the receiving bank on a payout.
func (s *simulation) scheduleBank(o *order) {
	for range 2 {
		if s.chance(s.plan.returns) {
			// Half of the acts come before the bank has completed the transfer.
			s.after(s.between(0, pick(s, []time.Duration{4 * time.Second, time.Minute})), func() { s.actAsBank(o) })
		}
	}
}

func (s *simulation) actAsBank(o *order) {
	if s.faultsOff {
		return
	}
	state := s.stateOf(o.ExternalID)
	act := s.nextInTurn("bank", state, bankActs)
	command, amount := act, int64(0)
	if act == "part" {
		command, amount = "return", (o.Amount+1)/2
	}
	err := s.contractOf(o.ExternalID).control.Transfer(s.ctx, o.ExternalID, command, money.Cents(amount))
	s.trace.linef("bank: %s of %s: %v", act, o.Reference, err)
	if err == nil {
		s.countFault("bank", act, state)
		s.result.PayoutFaults++
		s.scheduleMoreActs(o)
	}
}
