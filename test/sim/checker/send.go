package checker

import (
	"bytes"
	"slices"
)

// sendRow is a row of payout_sends: one send of a payout to its processor.
type sendRow struct {
	number             int64
	processor          string
	bodyHash           []byte
	node               rowID
	deadline           int64
	outcome, evidence  string
	createdAt, endedAt int64
}

// send declares the columns of payout_sends.
func (c *columns) send(r *sendRow) {
	c.key.num("number", &r.number)
	c.fixed.text("processor", &r.processor)
	c.fixed.bytes("body_hash", &r.bodyHash)
	c.fixed.id("node", &r.node)
	c.fixed.num("created_at", &r.createdAt)
	c.mutable.num("deadline", &r.deadline)
	c.mutable.text("outcome", &r.outcome)
	c.mutable.text("evidence", &r.evidence)
	c.mutable.num("ended_at", &r.endedAt)
}

// DecidedEvidence is the evidence of people, whose decisions are no outcomes of calls.
const DecidedEvidence = "the bank's own records"

// applySend follows a send of a payout: the database's side of SingleTransfer.
func (c *Checker) applySend(l *line) {
	var next sendRow
	c.columns.read(l).send(&next)
	o := c.orders[l.key]
	if o == nil || o.kind != Payout {
		c.violateMerchantf(SingleTransfer, l.key.merchant, "a send of %s, which is not a payout", l.key.id)
		return
	}
	c.touch(o)
	if l.op == rowAdded {
		c.addSend(o, &next)
		return
	}
	i := slices.IndexFunc(o.sends, func(s *sendRow) bool { return s.number == next.number })
	if i < 0 {
		c.violatef(SingleTransfer, o, "send %d changes, but was never recorded", next.number)
		return
	}
	s := o.sends[i]
	if next.deadline != s.deadline {
		if next.outcome != s.outcome || next.deadline > s.deadline || !undecided(s.outcome) && s.outcome != "not_found" && s.outcome != "refused" {
			c.violatef(SingleTransfer, o, "send %d, %s, gets a later deadline, or another outcome with it", next.number, next.outcome)
		}
		s.deadline = next.deadline
		return
	}
	lost := c.Rewound && !undecided(s.outcome) && proven(next.outcome) // proof of a later send, which the copy lacks
	if !slices.Contains(sendSteps[s.outcome], next.outcome) && !lost {
		c.violatef(SingleTransfer, o, "send %d changes from %s to %s", next.number, s.outcome, next.outcome)
	}
	if c.Outcome != nil && next.outcome != s.outcome && next.evidence != DecidedEvidence {
		c.Outcome(Payout, s.processor, s.outcome, next.shown())
	}
	s.outcome = next.outcome
}

// shown is the outcome of a send as in the interface of processors.
func (r *sendRow) shown() string {
	if r.outcome == "unknown" && r.evidence == "id_in_use" {
		return "known"
	}
	return r.outcome
}

func (c *Checker) addSend(o *order, s *sendRow) {
	adopted := s.outcome == "unknown" && s.evidence == "id_in_use" && len(o.sends) == 0 && c.foundByID[o.externalID] != nil
	lost := c.Rewound && s.outcome == "paid" && s.node.isZero() && len(o.sends) == 0 // proof of a send that the copy lacks
	if s.number != int64(len(o.sends))+1 || !adopted && !lost && (s.outcome != "intent" || s.node.isZero()) {
		c.violatef(SingleTransfer, o, "send %d begins as %s, after %d sends", s.number, s.outcome, len(o.sends))
	}
	if s.processor != o.processor {
		c.violatef(SingleTransfer, o, "send %d goes to processor %s, not %s", s.number, s.processor, o.processor)
	}
	doubt := false // an earlier send may still pay
	for _, earlier := range o.sends {
		if !bytes.Equal(earlier.bodyHash, s.bodyHash) {
			c.violatef(SingleTransfer, o, "send %d has other contents than send %d", s.number, earlier.number)
		}
		doubt = doubt || earlier.outcome == "not_found"
		if !noEffect(earlier.outcome) && earlier.outcome != "not_found" && !(earlier.outcome == "refused" && doubt) {
			c.violatef(SingleTransfer, o, "send %d begins while send %d is %s", s.number, earlier.number, earlier.outcome)
		}
	}
	o.sends = append(o.sends, s)
}

// wasSent reports whether a process sent the payout in this database. A send that the database lacks
// has no node.
func (o *order) wasSent() bool {
	return slices.ContainsFunc(o.sends, func(s *sendRow) bool { return !s.node.isZero() })
}

// checkSends checks a payout's status and step against its sends: a payout that may
// have left is looked up until there is proof.
func (c *Checker) checkSends(o *order) {
	live, last := 0, &sendRow{}
	for _, s := range o.sends {
		if undecided(s.outcome) {
			live++
		}
		// A send that was found later outlasts later sends that never left or were refused.
		if !noEffect(s.outcome) && s.outcome != "refused" || !proven(last.outcome) {
			last = s
		}
	}
	if live > 1 {
		c.violatef(SingleTransfer, o, "%d sends are undecided", live)
	}
	if o.status != "PROCESSING" {
		c.checkDecided(o, live, last)
		return
	}
	fits := false
	switch o.step {
	case "intent":
		fits = last.outcome == "intent" && last.node == o.claimedBy
	case "accepted":
		fits = last.outcome == "accepted"
	case "unknown":
		fits = last.outcome == "unknown" || last.outcome == "refused" && !o.refusalIsFinal() || o.wasRepaired()
	case "queued":
		fits = noEffect(last.outcome) || last.outcome == "not_found" || last.outcome == "refused" && !o.refusalIsFinal() || last.outcome == "" && o.wasRepaired()
	case "manual_review":
		fits = len(o.sends) > 0 || o.hasOpenCase("damaged") || o.wasRepaired()
	}
	if !fits && !c.mayBeFound(o) {
		c.violatef(SingleTransfer, o, "step is %s, but the last send is %q", o.step, last.outcome)
	}
}

// wasRepaired reports whether the row was damaged: then the payout is looked up before it is
// sent again.
func (o *order) wasRepaired() bool {
	return slices.ContainsFunc(o.cases, func(v *reviewCase) bool { return v.kind == "damaged" && v.closedAt != 0 })
}

// checkDecided is checkSends for a payout that was not sent yet or has ended.
func (c *Checker) checkDecided(o *order, live int, last *sendRow) {
	if live > 0 {
		c.violatef(SingleTransfer, o, "send %d is undecided", last.number)
	}
	step, proof := "done", true
	switch o.status {
	case "PENDING":
		step, proof = "queued", len(o.sends) == 0
		if o.step == "approval" { // see checkApproval
			step = o.step
		}
		if o.step == "manual_review" && o.hasOpenCase("damaged") {
			step = o.step
		}
	case "CANCELED":
		proof = len(o.sends) == 0
	case "COMPLETED", "RETURNED":
		proof = last.outcome == "paid"
	case "FAILED":
		if o.step == stepPaidLate && c.isMistaken(o) && c.foundByID[o.externalID] != nil {
			step = stepPaidLate
		}
		proof = last.outcome == "refused" && o.refusalIsFinal() || last.outcome == "failed"
	}
	if !proof && !(live == 0 && c.mayBeFound(o)) {
		c.violatef(SingleTransfer, o, "nothing proves the status: of %d sends the last is %q", len(o.sends), last.outcome)
	}
	if o.step != step {
		c.violatef(States, o, "step is %s", o.step)
	}
}

// mayBeFound reports whether the processor may have the transfer of a payout although no
// send of it is undecided or proven: this database lacks the send, or shows none because
// the payout was looked up first. The bank's records decide.
func (c *Checker) mayBeFound(o *order) bool {
	if !c.Rewound && !c.ColdStart && !c.looksUpFirst(o) || o.status == "PENDING" || o.status == "CANCELED" || o.step == "intent" {
		return false
	}
	return !slices.ContainsFunc(o.sends, func(s *sendRow) bool { return undecided(s.outcome) || proven(s.outcome) })
}

func (c *Checker) looksUpFirst(o *order) bool { return slices.Contains(c.LookUpFirst, o.processor) }

// refusalIsFinal reports whether the refusal of the last send proves that no money left:
// after a send that was not found it takes two refusals.
func refusalIsFinal(sends []*sendRow) bool {
	refusals, doubt := 0, false
	for _, s := range sends {
		switch s.outcome {
		case "refused":
			refusals++
		case "not_sent", "later":
		default:
			refusals, doubt = 0, true
		}
	}
	return refusals > 1 || refusals == 1 && !doubt
}
