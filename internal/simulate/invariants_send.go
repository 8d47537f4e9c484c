package simulate

import "slices"

// applySend follows a send of a payout: the database's side of I3.
func (g *gatewayBook) applySend(c *rowChange) {
	o := g.orders[c.key]
	if o == nil || o.kind != payout {
		g.badBooksf("I3", c.key.merchant, "a send of %s, which is no payout", c.key.id)
		return
	}
	g.touch(o)
	number, deadline, outcome := c.n[0], c.n[2], c.t[0]
	if c.op == rowAdded {
		g.addSend(o, &sendRow{number: number, deadline: deadline, outcome: outcome, processor: c.t[1], hash: string(c.data), node: c.other})
		return
	}
	for _, s := range o.sends {
		if s.number != number {
			continue
		}
		if redated := deadline != s.deadline; redated {
			if outcome != s.outcome || deadline > s.deadline || !undecided(outcome) {
				g.badf("I3", o, "send %d, %s, has a later deadline, or another outcome with it", number, outcome)
			}
			s.deadline = deadline
			return
		}
		if !slices.Contains(sendSteps[s.outcome], outcome) {
			g.badf("I3", o, "send %d goes from %s to %s", number, s.outcome, outcome)
		}
		s.outcome = outcome
		return
	}
	g.badf("I3", o, "send %d changes, but was never recorded", number)
}

func (g *gatewayBook) addSend(o *orderRow, s *sendRow) {
	if s.number != int64(len(o.sends))+1 || s.outcome != "intent" || s.node == (rowID{}) {
		g.badf("I3", o, "send %d begins as %s, after %d sends", s.number, s.outcome, len(o.sends))
	}
	if s.processor != o.processor {
		g.badf("I3", o, "send %d goes to %s, not %s", s.number, s.processor, o.processor)
	}
	for _, earlier := range o.sends {
		if earlier.hash != s.hash {
			g.badf("I3", o, "send %d has other contents than send %d", s.number, earlier.number)
		}
		if earlier.outcome != "not_sent" && earlier.outcome != "not_found" {
			g.badf("I3", o, "send %d begins while send %d is %s", s.number, earlier.number, earlier.outcome)
		}
	}
	o.sends = append(o.sends, s)
}

// checkSends holds a payout's status and step against its sends: what may have
// left is looked at until there is proof.
func (g *gatewayBook) checkSends(o *orderRow) {
	live, last := 0, &sendRow{}
	for _, s := range o.sends {
		if undecided(s.outcome) {
			live++
		}
		// What was found after all outlasts later sends that never left.
		if s.outcome != "not_sent" || !proven(last.outcome) {
			last = s
		}
	}
	if live > 1 {
		g.badf("I3", o, "%d sends are undecided", live)
	}
	if o.status != "PROCESSING" {
		g.checkSettled(o, live, last)
		return
	}
	fits := false
	switch o.step {
	case "intent":
		fits = last.outcome == "intent" && last.node == o.node
	case "accepted":
		fits = last.outcome == "accepted"
	case "unknown":
		fits = last.outcome == "unknown"
	case "queued":
		fits = last.outcome == "not_sent" || last.outcome == "not_found"
	case "person":
		fits = len(o.sends) > 0
	}
	if !fits {
		g.badf("I3", o, "step is %s, and the last send is %q", o.step, last.outcome)
	}
}

// checkSettled is checkSends for what is not sent yet, or has come to its end.
func (g *gatewayBook) checkSettled(o *orderRow, live int, last *sendRow) {
	if live > 0 {
		g.badf("I3", o, "send %d is undecided", last.number)
	}
	step, proof := "done", true
	switch o.status {
	case "PENDING":
		step, proof = "queued", len(o.sends) == 0
	case "CANCELED":
		proof = len(o.sends) == 0
	case "COMPLETED", "RETURNED":
		proof = last.outcome == "paid"
	case "FAILED":
		proof = last.outcome == "refused" || last.outcome == "failed"
	}
	if !proof {
		g.badf("I3", o, "nothing proves it: after %d sends the last is %q", len(o.sends), last.outcome)
	}
	if o.step != step {
		g.badf("I6", o, "step is %s", o.step)
	}
}
