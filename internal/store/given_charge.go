package store

import "slices"

func (g *Given) loadCharges(l *Loaded, n *Needs) {
	byTime := slices.Clone(g.Charges)
	slices.SortStableFunc(byTime, func(a, b Charge) int { return a.NextAt.Compare(b.NextAt) })
	for i := range byTime {
		v := byTime[i]
		if slices.Contains(l.chargesOf(n), v.Ref()) {
			l.charges.add(v)
		}
		for k, limit := range n.charges.due {
			if l.due(v.ClaimedBy, v.NextAt) && k.account == v.Account && (!k.followed || v.State == ChargeFollowed) && len(l.charges.due[k]) < limit {
				l.charges.add(v)
				l.charges.due[k] = append(l.charges.due[k], v.Ref())
			}
		}
	}
}

// chargesAfter are the charges after the changes.
func (g *Given) chargesAfter(c *Changes) []Charge {
	list := slices.Clone(g.Charges)
	for _, w := range slices.Concat(c.charges, c.newCharges) {
		if i := slices.IndexFunc(list, func(v Charge) bool { return v.key() == w.key() }); i >= 0 {
			list[i] = w
		} else {
			list = append(list, w)
		}
	}
	return list
}
