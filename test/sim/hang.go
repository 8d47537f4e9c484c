package sim

import (
	"time"

	"github.com/porteira/porteira/test/sim/checker"
)

// hanging is how an account does not answer.
type hanging string

// How an account hangs.
const (
	hangsBefore hanging = "hangs before" // no effect, no answer
	hangsAfter  hanging = "hangs after"  // effect, but the answer is later than the time limit
)

// Stretches in which an account hangs, and what the other accounts must do meanwhile.
const (
	hangMin = time.Minute
	hangMax = 4 * time.Minute
	// besideWithin bounds the time to the end of an order at another account: the delays of
	// woken workers and the bank's second, several times.
	besideWithin = 50 * time.Second
)

// scheduleHang lets one account hang for a part of span.
func (s *simulation) scheduleHang(span time.Duration) {
	if s.plan.hang == "" {
		return
	}
	c := s.contracts[s.plan.hangs]
	began := s.between(0, span/2)
	s.after(began, func() {
		c.hangs = s.plan.hang
		s.trace.linef("account %s %s", c.id, c.hangs)
		s.coverage.count("account", string(c.hangs), c.profile)
	})
	s.after(began+s.between(hangMin, hangMax), func() {
		s.trace.linef("account %s answers", c.id)
		c.hangs = ""
	})
}

// expectBeside expects that an order soon ends while another account hangs, if no other
// faults are planned.
func (s *simulation) expectBeside(o *order) {
	other := s.hangingBeside(o)
	if other == nil || !s.plan.calm {
		return
	}
	s.after(besideWithin, func() {
		if s.hangingBeside(o) != other || s.faultsOff || s.checker.WasDamaged(o.ExternalID) {
			return
		}
		_, state, _ := s.checker.Order(o.ExternalID)
		switch state {
		case "PENDING approval": // it waits for a person
		case "PENDING", "PROCESSING queued", "PROCESSING intent", "PROCESSING accepted", "PROCESSING unknown":
			if o.Kind == checker.Payin || !s.checker.InDebt(o.ExternalID) && !s.checker.IsStopped(o.ExternalID) {
				s.violate(checker.Progress, o.Merchant, o.ID,
					"still "+state+" after "+besideWithin.String()+", while account "+other.id+" "+string(other.hangs))
			}
		default:
			s.coverage.count("beside an account that hangs", o.Kind, s.contractOf(o.ExternalID).profile)
		}
	})
}

// hangingBeside is an account that hangs, if the order has another one.
func (s *simulation) hangingBeside(o *order) *contract {
	for _, c := range s.contracts {
		if c.hangs != "" && c != s.contractOf(o.ExternalID) {
			return c
		}
	}
	return nil
}
