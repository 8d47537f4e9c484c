package checker

// orderRow is a row of payins, payouts or refunds. A field that only one of them has is
// zero in the others.
type orderRow struct {
	externalID, reference, method, processor, webhookURL string
	amount, fee                                          int64 // cents

	status, step, failure, endToEndID    string
	version                              int64
	paid, refunded, returned, unapplied  int64 // cents
	webhookDisabled, late                bool
	nextAt, expiresAt, paidAt, updatedAt int64
	detailsLength, lookUps               int64
	claimedBy                            rowID // node
	batch                                rowID // zero if it is in none
	createdAt                            int64
	countedAt                            int64 // 0 if limits count a payout when it was created
	pixKey                               rowID // a hash; zero if no limit is by key

	payin  rowID // of a refund
	origin string
}

// order is a pay-in, a payout or a refund as the last commit left it.
type order struct {
	orderRow

	key      rowKey
	rank     int64  // of its creation, among receipts too
	kind     string // Payin, Payout or Refund
	canceled bool   // at any time

	sends       []*sendRow
	approvals   []approvalRow
	consent     *consentRow      // to one of its transfers; nil without it
	charge      *chargeRow       // of a pay-in; nil if it was generated offline
	tried       []string         // the accounts of all its charges
	booked      map[string]int64 // cents that entries took from accounts, by kind of entry
	applied     int64            // cents of receipts
	surplus     int64            // cents of receipts
	reported    int64            // cents of the surplus that open cases report
	restored    bool             // the current commit gives back what a refund or a dispute had of it
	disputes    []*dispute
	receivables []*receivableRow
	fees        int64 // cents that entries moved to the fees account
	cases       []*reviewCase
	events      []*event
	expected    []expectedEvent
	gone        bool // its receiver answered 410
	touched     bool

	refunds  []*order      // of a pay-in
	payin    *order        // of a refund
	parts    []*refundPart // of a refund
	wasFound bool          // it was not requested by the API
	fresh    bool          // it is created by the current commit
}

type orderName struct {
	merchant        rowID
	kind, reference string
}

// expectedEvent is an event that a move of an order must have in its commit, and what
// it shows of the order.
type expectedEvent struct {
	version                  int64
	kind, status             string
	paid, refunded, returned int64
	delivered                bool // it has a receiver
	optional                 bool // the move may have none
}

func (o *order) inFlight() bool {
	return o.kind == Payout && (o.status == "PENDING" || o.status == "PROCESSING")
}

// hasOpenCase reports that a case of one of these kinds about the order is open.
func (o *order) hasOpenCase(kinds ...string) bool {
	for _, v := range o.cases {
		for _, kind := range kinds {
			if v.kind == kind && v.closedAt == 0 {
				return true
			}
		}
	}
	return false
}

// kinds are the kinds of orders by their tables.
var kinds = map[tableID]string{payinTable: Payin, payoutTable: Payout, refundTable: Refund}

// applyOrder follows a row of payins, payouts or refunds.
func (c *Checker) applyOrder(l *line) {
	kind := kinds[l.table]
	o := c.orders[l.key]
	if l.op != rowAdded && (o == nil || o.kind != kind) {
		c.violateMerchantf(SingleOrder, l.key.merchant, "order %s changes, but was never created", l.key.id)
		return
	}
	var next orderRow
	if l.op == rowChanged {
		next = o.orderRow
	}
	switch row := c.columns.read(l); kind {
	case Payin:
		row.payin(&next)
	case Payout:
		row.payout(&next)
	default:
		row.refund(&next)
	}
	switch {
	case l.op == rowAdded:
		c.addOrder(&order{orderRow: next, key: l.key, rank: l.seq, kind: kind, booked: map[string]int64{}})
	case kind == Payin:
		c.changePayin(o, &next)
	case kind == Payout:
		c.changePayout(o, &next)
	default:
		c.changeRefund(o, &next)
	}
}

func (c *Checker) addOrder(o *order) {
	o.fresh = true
	switch o.kind {
	case Payout:
		c.merchant(o.key.merchant).inFlight += o.amount + o.fee
	case Refund:
		c.addRefund(o)
	}
	name := orderName{o.key.merchant, o.kind, o.reference}
	if other := c.references[name]; other != nil && o.reference != "" {
		c.violatef(SingleOrder, o, "reference %q belongs to order %s", o.reference, other.key.id)
	}
	if other := c.externalIDs[o.externalID]; other != nil {
		c.violatef(SingleOrder, o, "external id %s belongs to order %s", o.externalID, other.key.id)
	}
	if o.status != "PENDING" || o.version != 1 || o.paid != 0 || o.refunded != 0 || o.returned != 0 || len(o.externalID) != 32 || o.amount <= 0 {
		c.violatef(States, o, "begins with version %d, external id %q, amount %d, paid %d, refunded %d, returned %d",
			o.version, o.externalID, o.amount, o.paid, o.refunded, o.returned)
	}
	c.orders[o.key], c.references[name], c.externalIDs[o.externalID] = o, o, o
	c.orderList = append(c.orderList, o)
	if !o.batch.isZero() {
		c.addToBatch(o)
	}
	c.touch(o)
}

func (c *Checker) touch(o *order) {
	if !o.touched {
		o.touched = true
		c.touched.orders = append(c.touched.orders, o)
	}
}

// move follows an order to its next row. A listed step raises the version by one and
// expects its event; in the same version nothing about status or money changes.
func (c *Checker) move(o *order, next *orderRow, step statusStep, same bool) {
	switch {
	case next.version == o.version:
		if !same {
			c.violatef(States, o, "changes to %s in the same version %d", step.to, next.version)
		}
		return
	case next.version != o.version+1:
		c.violatef(States, o, "version changes from %d to %d", o.version, next.version)
	}
	event, listed := stepsOf[o.kind][step]
	if !listed {
		c.violatef(States, o, "must not change to %s with growing %q", step.to, step.grows)
	}
	optional := event == "" && possibleEvents[step] != ""
	if optional {
		event = possibleEvents[step]
	}
	if event != "" {
		o.expected = append(o.expected, expectedEvent{
			version: next.version, kind: event, status: step.to, paid: next.paid, refunded: next.refunded, returned: next.returned,
			delivered: o.webhookURL != "" && !o.webhookDisabled, optional: optional,
		})
	}
}

// checkOrder checks an order against its own rows and its entries.
func (c *Checker) checkOrder(o *order) {
	for _, e := range o.expected {
		if e.optional {
			continue
		}
		c.violatef(Events, o, "version %d has no event %s in its commit", e.version, e.kind)
	}
	o.expected = nil
	if o.webhookDisabled && !o.gone {
		c.violatef(Events, o, "events are disabled, but no receiver answered 410")
	}
	switch o.kind {
	case Payin:
		c.checkPayin(o)
	case Payout:
		c.checkPayout(o)
		c.checkSends(o)
		c.checkApproval(o)
		if o.fresh {
			c.checkLimits(o)
		}
	default:
		c.checkRefund(o)
	}
	o.fresh = false
}

// checkBooked compares what entries of a kind took from accounts with what they should.
func (c *Checker) checkBooked(o *order, kind string, want int64) {
	if got := o.booked[kind]; got != want {
		c.violatef(Amounts, o, "entries %s sum to %d, not %d", kind, got, want)
	}
}

// Account is the account of an order; "" if it does not exist.
func (c *Checker) Account(externalID string) string {
	if o := c.externalIDs[externalID]; o != nil {
		return o.processor
	}
	return ""
}

// Order returns the kind and the state of an order by its external id; ok is false if
// there is none. The state is the status. The step follows it for a payout in progress or
// that waits for approval, and that of the part for a refund in progress.
func (c *Checker) Order(externalID string) (kind, state string, ok bool) {
	o := c.externalIDs[externalID]
	if p := c.partIDs[externalID]; p != nil {
		// One that was made at the processor's panel is PENDING, and looked up, until its first
		// report is booked.
		if o = p.refund; o.status == "PROCESSING" && !p.ended() || o.status == "PENDING" && p.step == "accepted" {
			return Refund, o.status + " " + p.step, true
		}
	}
	switch {
	case o == nil:
		return "", "", false
	case o.kind == Payout && (o.status == "PROCESSING" || o.step == "approval"):
		return o.kind, o.status + " " + o.step, true
	default:
		return o.kind, o.status, true
	}
}
