package store

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/payment"
)

// Given is the rows of a database as values, for tests of decisions without a database.
// [Given.Decide] fills the same [Loaded] and reads the same [Changes] as a commit does; it replaces
// only their SQL. It has no new notices, and no deliveries of new events.
type Given struct {
	Now          time.Time // UTC
	NewID        func() payment.ID
	Installation Installation
	Nodes        []Node // processes that are alive
	Merchants    []Merchant
	Payins       []NewPayin
	Payouts      []NewPayout
	Sends        []Send // of a payout in the order of their numbers
	Charges      []Charge
	Receipts     []payment.Receipt
	Disputes     []payment.Dispute
	Answers      []GivenAnswer // of a dispute in the order of their numbers
	Receivables  []Receivable
	Cases        []Case     // also closed ones
	Decided      []Decision // in their order; without numbers and hashes
	Found        []FoundTransfer
	Notices      []Notice
	Endpoints    []Endpoint // in the order of their ids
	Deliveries   []Delivery // without their events
	Attempts     []Attempt
	Balances     map[payment.ID]ledger.Balances
	Postings     []Posting
	Events       []GivenEvent // in the order of their creation
	Consents     []Consent
	Refunds      []GivenRefund
	RefundParts  []payment.RefundPart
	Counters     []Counter
	Approvals    []Approval // of a payout in the order of their numbers
}

// GivenPayin is a stored pay-in.
func GivenPayin(p payment.Payin, fingerprint []byte) NewPayin {
	return NewPayin{payinRow: payinRow{Payin: p, Fingerprint: fingerprint}}
}

// GivenPayout is a stored payout.
func GivenPayout(p payment.Payout, fingerprint []byte) NewPayout {
	return NewPayout{payoutRow: payoutRow{Payout: p, Fingerprint: fingerprint}}
}

// GivenRefund is a refund with the fingerprint of its request.
type GivenRefund struct {
	payment.Refund

	Fingerprint []byte
}

// GivenAnswer is an answer to a dispute with the fingerprint of its request.
type GivenAnswer struct {
	payment.DisputeAnswer

	Fingerprint []byte
}

// GivenEvent is an event with its data and the URL of its delivery, "" for none. New
// events get their numbers, but no id and no body.
type GivenEvent struct {
	payment.Event

	Data []byte
	URL  string
}

// Store returns a Store without a database. It can only derive external ids and find their
// merchants, to build operations that seal nothing.
func (g *Given) Store() *Store {
	s := &Store{}
	for i := range g.Merchants {
		s.numbers.Store(g.Merchants[i].Number, g.Merchants[i].ID)
	}
	return s
}

// Decide returns the rows after a commit of one decision, which loads the rows that it needs.
// g is unchanged. Errors are those of decide.
func (g *Given) Decide(n *Needs, decide func(*Loaded, *Changes) error) (Given, error) {
	l := g.load(n)
	c := &Changes{l: l}
	if err := decide(l, c); err != nil {
		return *g, err
	}
	return g.after(c), nil
}

// load is the rows that a transaction would load.
func (g *Given) load(n *Needs) *Loaded {
	l := &Loaded{now: g.Now, newID: g.NewID, inserted: map[payment.ID]bool{}}
	l.nodes = loadedNodes{alive: map[payment.ID]bool{}, nodes: map[payment.ID]Node{}, installation: g.Installation}
	for _, v := range g.Nodes {
		if slices.Contains(n.nodes.claiming, v.ID) {
			l.nodes.alive[v.ID] = true
		}
		if slices.Contains(n.nodes.heartbeats, v.ID) {
			l.nodes.nodes[v.ID] = v
		}
	}
	g.loadPayins(l, n)
	g.loadPayouts(l, n)
	g.loadCharges(l, n)
	g.loadReceipts(l, n)
	g.loadEndpoints(l, n)
	g.loadDeliveries(l, n)
	g.loadDispatches(l, n)
	g.loadShared(l, n)
	g.loadNotices(l, n)
	g.loadDisputes(l, n)
	g.loadFound(l, n)
	g.loadReceivables(l, n)
	l.cases = loadedCases{rows: map[Ref]Case{}, decisions: map[Ref][]Decision{}}
	for i := range g.Cases {
		v := g.Cases[i]
		disputed := v.Kind == CaseOverpaid && slices.Contains(l.overpaidDisputed(n), Ref{v.Merchant, v.Subject})
		if disputed || slices.Contains(n.casesAbout, caseSubject{Ref{v.Merchant, v.Subject}, v.Kind}) && v.ClosedAt.IsZero() {
			l.cases.rows[Ref{v.Merchant, v.ID}] = v
		}
	}
	for _, ref := range n.cases {
		for i := range g.Cases {
			if v := g.Cases[i]; ref == (Ref{v.Merchant, v.ID}) {
				l.cases.rows[ref] = v
			}
		}
		l.cases.decisions[ref] = slices.DeleteFunc(slices.Clone(g.Decided), func(d Decision) bool { return ref != Ref{d.Merchant, d.Case} })
	}
	l.balances = map[payment.ID]*balances{}
	for _, m := range n.balances {
		if l.balances[m] == nil {
			l.balances[m] = &balances{amounts: ledger.Balances{}, added: map[ledger.Account]int64{}}
			maps.Copy(l.balances[m].amounts, g.Balances[m])
			l.balances[m].payoutsStopped = g.stopped(m)
			l.balances[m].history = History{Epoch: g.Installation.Epoch, Number: g.Installation.History, RestoredAt: g.Installation.RestoredAt}
		}
	}
	l.addCounters(n, slices.DeleteFunc(slices.Clone(g.Counters), func(v Counter) bool { return !slices.Contains(n.counters, v.CounterKey) }))
	for i := range g.Approvals {
		if v := g.Approvals[i]; slices.Contains(n.approvals, Ref{v.Merchant, v.Payout}) {
			l.addApproval(v)
		}
	}
	l.consents = newLoadedConsents()
	for _, v := range g.Consents {
		if slices.Contains(n.consents, consentKey{v.Account, v.ExternalID}) {
			l.consents.add(v)
		}
		if slices.ContainsFunc(n.consents, func(k consentKey) bool { return k.account == v.Account }) {
			l.consents.note(v)
		}
	}
	g.loadRefunds(l, n)
	return l
}

func (g *Given) loadDisputes(l *Loaded, n *Needs) {
	payins := l.disputedPayins(n)
	l.disputes = map[disputeKey]payment.Dispute{}
	for i := range g.Disputes {
		if d := g.Disputes[i]; slices.Contains(n.disputes, keyOfDispute(&d)) || slices.Contains(payins, Ref{d.Merchant, d.Payin}) {
			l.disputes[keyOfDispute(&d)] = d
		}
	}
	l.answers.begin()
	for i := range g.Answers {
		if a := &g.Answers[i]; slices.Contains(payins, Ref{a.Merchant, a.Payin}) {
			l.answers.add(nil, answerRow{DisputeAnswer: a.DisputeAnswer, fingerprint: a.Fingerprint})
		}
	}
	l.addReceived(payins, slices.DeleteFunc(slices.Clone(g.Receipts), func(r payment.Receipt) bool {
		return !slices.Contains(payins, Ref{r.Merchant, r.Payin})
	}))
}

func (g *Given) loadReceivables(l *Loaded, n *Needs) {
	payins := l.receivablePayins(n)
	for i := range g.Receivables {
		r := g.Receivables[i]
		if slices.Contains(n.receivables.ids, Ref{r.Merchant, r.ID}) || slices.Contains(payins, Ref{r.Merchant, r.Payin}) {
			l.addReceivable(r)
		}
	}
}

func (g *Given) loadFound(l *Loaded, n *Needs) {
	l.found = loadedFound{map[ExternalRef]FoundTransfer{}, map[ExternalRef]bool{}}
	for i := range g.Found {
		if k := (ExternalRef{g.Found[i].Merchant, g.Found[i].ExternalID}); slices.Contains(n.found, k) {
			l.found.rows[k] = g.Found[i]
		}
	}
	for i := range g.Payouts {
		if k := g.Payouts[i].external(); slices.Contains(n.found, k) {
			l.found.taken[k] = true
		}
	}
}

// stopped reports whether a case stops the payouts of a merchant.
func (g *Given) stopped(merchant payment.ID) bool {
	return slices.ContainsFunc(g.Cases, func(v Case) bool { return v.Merchant == merchant && v.StopsPayouts && v.ClosedAt.IsZero() })
}

// accountStopped reports whether a case stops the payouts of an account.
func (g *Given) accountStopped(account string) bool {
	return slices.ContainsFunc(g.Cases, func(v Case) bool { return v.StopsAccount == account && v.ClosedAt.IsZero() })
}

func (g *Given) loadPayins(l *Loaded, n *Needs) {
	for _, p := range n.payins.fresh {
		if l.payins.byExternal[p.external()] != (Ref{}) || slices.ContainsFunc(g.Payins, func(v NewPayin) bool { return v.external() == p.external() }) {
			continue // the reference is taken
		}
		l.addNewPayin(p)
	}
	for i := range g.Payins {
		p := &g.Payins[i]
		taken := func(v *NewPayin) bool { return v.external() == p.external() }
		if slices.Contains(n.payins.ids, Ref{p.Payin.Merchant, p.Payin.ID}) || slices.Contains(n.payins.byExternal, p.external()) ||
			slices.ContainsFunc(n.payins.fresh, taken) {
			l.payins.add(&p.payinRow)
		}
	}
}

func (g *Given) loadPayouts(l *Loaded, n *Needs) {
	for _, p := range n.payouts.fresh {
		if l.payouts.byExternal[p.external()] != (Ref{}) || slices.ContainsFunc(g.Payouts, func(v NewPayout) bool { return v.external() == p.external() }) {
			continue // the reference is taken
		}
		l.addNewPayout(p)
	}
	sends := n.sends
	byTime := slices.Clone(g.Payouts)
	slices.SortStableFunc(byTime, func(a, b NewPayout) int { return a.Payout.NextAt.Compare(b.Payout.NextAt) })
	for i := range byTime {
		p := &byTime[i]
		row, ref := &p.payoutRow, Ref{p.Payout.Merchant, p.Payout.ID}
		taken := func(v *NewPayout) bool { return v.external() == p.external() }
		if slices.Contains(n.payouts.ids, ref) || slices.Contains(n.payouts.damaged, ref) || slices.Contains(n.payouts.byExternal, p.external()) || slices.ContainsFunc(n.payouts.fresh, taken) {
			l.payouts.add(row)
		}
		for _, d := range n.payouts.due {
			if d.Queue == ToSend && (g.stopped(d.Merchant) || g.accountStopped(d.Processor)) {
				continue
			}
			if d.Merchant == row.Merchant && d.Processor == row.Processor && d.Queue.includes(row.Step) && !row.NextAt.IsZero() &&
				!row.NextAt.After(g.Now) && len(l.payouts.due[d]) < d.Limit {
				l.payouts.add(row)
				l.payouts.due[d] = append(l.payouts.due[d], ref)
				sends = append(sends, ref)
			}
		}
	}
	l.sends = map[Ref][]Send{}
	for _, s := range g.Sends {
		if ref := (Ref{s.Merchant, s.Payout}); slices.Contains(sends, ref) {
			l.sends[ref] = append(l.sends[ref], s)
		}
	}
}

func (g *Given) loadReceipts(l *Loaded, n *Needs) {
	type key struct{ processor, externalID string }
	booked := map[key]bool{}
	for i := range g.Receipts {
		booked[key{g.Receipts[i].Processor, g.Receipts[i].ExternalID}] = true
	}
	for _, r := range n.receipts {
		if k := (key{r.Processor, r.ExternalID}); !booked[k] {
			booked[k] = true
			l.inserted[r.ID] = true
		}
	}
}

func (g *Given) loadDeliveries(l *Loaded, n *Needs) {
	byTime := slices.Clone(g.Deliveries)
	slices.SortStableFunc(byTime, func(a, b Delivery) int { return a.NextAt.Compare(b.NextAt) })
	for i := range byTime {
		d := &byTime[i]
		ref := Ref{d.Merchant, d.ID}
		if slices.Contains(n.deliveries.ids, ref) {
			l.deliveries.add(d)
		}
		for _, p := range n.deliveries.pending {
			if (p == pendingDeliveries{d.Merchant, d.Subject, d.URL}) && d.State == DeliveryPending {
				l.deliveries.add(d)
				l.deliveries.pending[p] = append(l.deliveries.pending[p], ref)
			}
		}
		for _, due := range n.deliveries.due {
			if due.merchant == d.Merchant && !d.NextAt.IsZero() && !d.NextAt.After(g.Now) && len(l.deliveries.due[due.merchant]) < due.limit {
				at := slices.IndexFunc(g.Events, func(e GivenEvent) bool { return e.Merchant == d.Merchant && e.Number == d.EventNumber })
				d.Event = g.Events[at].Event
				l.deliveries.add(d)
				l.deliveries.due[due.merchant] = append(l.deliveries.due[due.merchant], ref)
			}
		}
	}
	g.direct(l)
	l.deliveries.openCases = map[Ref]Case{}
	for _, v := range g.Cases {
		named := func(ref Ref) bool {
			d := l.deliveries.rows[ref]
			return d != nil && d.Merchant == v.Merchant && d.Case == v.ID
		}
		if v.ClosedAt.IsZero() && slices.ContainsFunc(n.deliveries.cases, named) {
			l.deliveries.openCases[Ref{v.Merchant, v.ID}] = v
		}
	}
}

func (g *Given) loadNotices(l *Loaded, n *Needs) {
	byTime, read := slices.Clone(g.Notices), map[string]int{}
	slices.SortStableFunc(byTime, func(a, b Notice) int { return a.NextAt.Compare(b.NextAt) })
	for i := range byTime {
		if v := &byTime[i]; !v.NextAt.IsZero() && !v.NextAt.After(g.Now) && read[v.Processor] < n.notices.due[v.Processor] {
			read[v.Processor]++
			l.notices = append(l.notices, v)
		}
	}
}

// after is the rows with the changes. A changed row has its last values in [Loaded].
func (g *Given) after(c *Changes) Given {
	l, v := c.l, *g
	if c.nodes.installation != nil {
		v.Installation = *c.nodes.installation
	}
	v.Nodes = overlaid(g.Nodes, l.nodes.nodes, func(n *Node) payment.ID { return n.ID }, func(n Node) Node { return n })
	v.Payins = overlaid(g.Payins, l.payins.rows, func(p *NewPayin) Ref { return Ref{p.Payin.Merchant, p.Payin.ID} },
		func(p *payinRow) NewPayin { return GivenPayin(p.Payin, p.Fingerprint) })
	v.Payouts = overlaid(g.Payouts, l.payouts.rows, func(p *NewPayout) Ref { return Ref{p.Payout.Merchant, p.Payout.ID} },
		func(p *payoutRow) NewPayout { return GivenPayout(p.Payout, p.Fingerprint) })
	v.Disputes = overlaid(g.Disputes, l.disputes, keyOfDispute, func(d payment.Dispute) payment.Dispute { return d })
	v.Answers = overlaid(g.Answers, l.answers.rows, func(a *GivenAnswer) answerKey { return keyOfAnswer(&a.DisputeAnswer) },
		func(a answerRow) GivenAnswer { return GivenAnswer{a.DisputeAnswer, a.fingerprint} })
	v.Receivables = overlaid(g.Receivables, l.receivables, func(r *Receivable) Ref { return Ref{r.Merchant, r.ID} },
		func(r Receivable) Receivable { return r })
	v.Found = overlaid(g.Found, l.found.rows, func(f *FoundTransfer) ExternalRef { return ExternalRef{f.Merchant, f.ExternalID} },
		func(f FoundTransfer) FoundTransfer { return f })
	v.Sends = slices.Clone(g.Sends)
	for _, s := range c.sends {
		same := func(v Send) bool { return v.Merchant == s.Merchant && v.Payout == s.Payout && v.Number == s.Number }
		if i := slices.IndexFunc(v.Sends, same); i >= 0 {
			v.Sends[i] = s
		}
	}
	v.Sends = append(v.Sends, c.newSends...)
	slices.SortFunc(v.Sends, func(a, b Send) int {
		return cmp.Or(payment.CompareIDs(a.Payout, b.Payout), cmp.Compare(a.Number, b.Number))
	})
	v.Charges = g.chargesAfter(c)
	v.Receipts = slices.Clone(g.Receipts)
	for _, r := range c.receipts {
		v.Receipts = append(v.Receipts, *r)
	}
	v.Cases = g.casesAfter(c)
	v.Decided = append(slices.Clone(g.Decided), c.decisions...)
	v.Notices = g.noticesAfter(c)
	v.Endpoints = g.endpointsAfter(c)
	v.Deliveries, v.Attempts = g.deliveriesAfter(c), g.attemptsAfter(c)
	v.Balances = maps.Clone(g.Balances)
	if v.Balances == nil {
		v.Balances = map[payment.ID]ledger.Balances{}
	}
	for m, b := range l.balances {
		v.Balances[m] = b.amounts
	}
	v.Postings = slices.Clone(g.Postings)
	for i := range c.postings {
		v.Postings = append(v.Postings, c.postings[i].Posting)
	}
	v.Consents = append(slices.Clone(g.Consents), c.newConsents...)
	v.Counters = g.countersAfter(c)
	v.Approvals = append(slices.Clone(g.Approvals), c.newApprovals...)
	v.Refunds, v.RefundParts = g.refundsAfter(c)
	v.Events = slices.Clone(g.Events)
	last := map[payment.ID]int64{}
	for i := range g.Events {
		last[g.Events[i].Merchant]++
	}
	for _, e := range c.events {
		last[e.event.Merchant]++
		e.event.Number = last[e.event.Merchant]
		v.Events = append(v.Events, GivenEvent{e.event, e.data, e.url})
	}
	return v
}

// countersAfter omits counters that a commit would not insert.
func (g *Given) countersAfter(c *Changes) []Counter {
	loaded := maps.Clone(c.l.counters)
	maps.DeleteFunc(loaded, func(_ CounterKey, v *loadedCounter) bool { return !v.exists && !v.changed })
	list := overlaid(g.Counters, loaded, func(v *Counter) CounterKey { return v.CounterKey }, func(v *loadedCounter) Counter { return v.Counter })
	for i := range list {
		less := c.uncounted[list[i].CounterKey]
		list[i].Amount, list[i].Payouts = list[i].Amount-less.Amount, list[i].Payouts-less.Payouts
	}
	return list
}

func (g *Given) casesAfter(c *Changes) []Case {
	list := slices.Clone(g.Cases)
	for i := range list {
		for j := range c.cases.closed {
			if by := &c.cases.closed[j]; list[i].ClosedAt.IsZero() && by.matches(&list[i]) {
				list[i].Resolution, list[i].ClosedAt = by.Resolution, by.ClosedAt
			}
		}
	}
	for _, v := range c.cases.opened {
		if !slices.ContainsFunc(list, func(known Case) bool { return known.ID == v.ID }) {
			list = append(list, v)
		}
	}
	return list
}

// noticesAfter does not change a notice that is not waiting any more, as noticeUpdate.
func (g *Given) noticesAfter(c *Changes) []Notice {
	list := slices.Clone(g.Notices)
	for i := range list {
		for j := range c.notices {
			if n := &c.notices[j]; g.Notices[i].State == NoticeReceived && n.Processor == list[i].Processor && n.ID == list[i].ID {
				list[i] = *n
			}
		}
	}
	return list
}

func (g *Given) deliveriesAfter(c *Changes) []Delivery {
	list := overlaid(g.Deliveries, c.l.deliveries.rows, func(d *Delivery) Ref { return Ref{d.Merchant, d.ID} }, func(d *Delivery) Delivery { return *d })
	list = append(list, c.newDeliveries...)
	for i := range list {
		d := &list[i]
		d.Event, d.InOrder, d.Down, d.Moved, d.Planned, d.Postponed, d.Stopped = payment.Event{}, false, false, false, time.Time{}, time.Time{}, ""
		for _, h := range c.endpoints.stopped {
			if h.Ref == (Ref{d.Merchant, d.Endpoint}) && d.ClaimedBy.IsZero() && (d.State == DeliveryPending || d.State == DeliveryPaused) {
				d.State, d.NextAt = h.state, time.Time{}
			}
		}
	}
	return list
}

// attemptsAfter keeps the first end of an attempt, as saveAttempts does.
func (g *Given) attemptsAfter(c *Changes) []Attempt {
	list := slices.Clone(g.Attempts)
	for _, a := range c.attempts {
		same := func(v Attempt) bool {
			return v.Merchant == a.Merchant && v.Delivery == a.Delivery && v.Number == a.Number
		}
		switch i := slices.IndexFunc(list, same); {
		case i < 0:
			list = append(list, a)
		case list[i].EndedAt.IsZero():
			list[i] = a
		}
	}
	return list
}

// overlaid is a list with the loaded rows in place of the given ones, and new rows at
// its end.
func overlaid[T, R any, K comparable](given []T, loaded map[K]R, key func(*T) K, value func(R) T) []T {
	list := slices.Clone(given)
	seen := make(map[K]bool, len(list))
	for i := range list {
		k := key(&list[i])
		seen[k] = true
		if r, ok := loaded[k]; ok {
			list[i] = value(r)
		}
	}
	for k, r := range loaded {
		if !seen[k] {
			list = append(list, value(r))
		}
	}
	return list
}
