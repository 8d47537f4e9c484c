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
		if l.due(v.ClaimedBy, v.NextAt) && len(l.charges.due[v.Account]) < n.charges.due[v.Account] {
			l.charges.add(v)
			l.charges.due[v.Account] = append(l.charges.due[v.Account], v.Ref())
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
