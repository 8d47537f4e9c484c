package checker

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// History lists what happened to an order, by its id, external id or reference: a line
// for each change, with the number of its commit and the time by the gateway's clock.
func (c *Checker) History(name string) string {
	var text strings.Builder
	for _, o := range c.orderList {
		if o.key.id.String() != name && o.externalID != name && o.reference != name {
			continue
		}
		fmt.Fprintf(&text, "%s %s, external id %s, reference %s, merchant %s\n", o.kind, o.key.id, o.externalID, o.reference, o.key.merchant)
		h := history{Checker: c, order: o, text: &text, reader: newColumns(), refunds: map[rowKey]orderRow{}, parts: map[string]partRow{}}
		for i := range c.lines {
			for h.commit < len(c.commits) && c.commits[h.commit] <= i {
				h.commit++
				h.entry = rowKey{}
			}
			if l := &c.lines[i]; h.concerns(l) {
				h.write(l)
			}
		}
		h.end()
	}
	return text.String()
}

// history writes the changes of one order.
type history struct {
	*Checker

	order  *order
	text   *strings.Builder
	reader *columns
	commit int
	open   bool     // a line is not ended yet
	entry  rowKey   // that the line is about
	before orderRow // the order's last row

	refunds map[rowKey]orderRow
	parts   map[string]partRow
}

func (h *history) end() {
	if h.open {
		h.text.WriteByte('\n')
	}
	h.open = false
}

const historyTime = "2006-01-02 15:04:05.000"

// linef begins a line; at is in microseconds, 0 if the row has no time.
func (h *history) linef(at int64, format string, args ...any) {
	h.end()
	stamp := strings.Repeat(" ", len(historyTime))
	if at != 0 {
		stamp = timeText(at)
	}
	fmt.Fprintf(h.text, "  commit %-5d %s  ", h.commit+1, stamp)
	h.addf(format, args...)
	h.open = true
}

// addf continues the line.
func (h *history) addf(format string, args ...any) { fmt.Fprintf(h.text, format, args...) }

func timeText(micros int64) string { return time.UnixMicro(micros).UTC().Format(historyTime) }

// concerns reports that a change belongs to the order's history.
func (h *history) concerns(l *line) bool {
	switch l.table {
	case balanceTable, noticeTable, claimTable:
		return false
	default:
		o := h.orderOf(l)
		return l.key.merchant == h.order.key.merchant && o != nil && (o == h.order || o.payin == h.order)
	}
}

func (h *history) write(l *line) {
	thing := tables[l.table].thing
	switch {
	case l.op == rowRewritten:
		h.linef(0, "%s %s is rewritten", thing, l.key.id)
		return
	case l.op == rowDeleted && l.table == attemptTable:
		var r attemptRow
		h.reader.read(l).attempt(&r)
		h.linef(0, "attempt %d to deliver event %d is removed", r.number, h.deliveries[l.key].event.number)
		return
	case l.op == rowDeleted && l.table == deliveryTable:
		h.linef(0, "delivery of event %d is removed", h.deliveries[l.key].event.number)
		return
	case l.op == rowDeleted:
		h.linef(0, "%s %s is deleted", thing, l.key.id)
		return
	}
	switch row := h.reader.read(l); l.table {
	case payinTable:
		h.writePayin(l, row)
	case payoutTable:
		h.writePayout(l, row)
	case refundTable:
		r := h.refunds[l.key]
		row.refund(&r)
		h.refunds[l.key] = r
		if !h.writeOrder(l, &r) {
			h.addf(", refunded %d", r.refunded)
			h.writeState(&r)
		}
		h.addf(", refund %s %q by %s", l.key.id.short(), r.reference, r.origin)
	case partTable:
		h.writePart(l, row)
	case approvalTable:
		var r approvalRow
		row.approval(&r)
		h.linef(r.createdAt, "approval %d: %s by %s, %d needed", r.number, r.action, r.actor, r.needed)
	case sendTable:
		h.writeSend(l, row)
	case postingTable:
		h.writePosting(l, row)
	case eventTable:
		var r eventRow
		row.event(&r)
		h.linef(r.createdAt, "event %d: %s, version %d, %s", r.number, r.kind, r.version, publicEventID(l.key.id))
	case deliveryTable:
		h.writeDelivery(l, row)
	case attemptTable:
		h.writeAttempt(l, row)
	case receiptTable:
		var r receiptRow
		row.receipt(&r)
		h.linef(r.createdAt, "receipt: %d of %d applied, %s payment %s", r.applied, r.amount, r.processor, r.externalID)
	case disputeTable:
		r := h.disputes[l.key].disputeRow
		row.dispute(&r)
		h.linef(r.updatedAt, "dispute of %d: %s, %d taken", r.amount, r.status, r.taken-r.returned)
	case caseTable:
		h.writeCase(l, row)
	}
}

func (h *history) writePayin(l *line, row *columns) {
	r, before := h.before, h.before
	row.payin(&r)
	h.before = r
	if h.writeOrder(l, &r) {
		return
	}
	if r.paid != before.paid {
		h.addf(", paid %d", r.paid)
	}
	if r.refunded != before.refunded {
		h.addf(", refunded %d", r.refunded)
	}
	if r.late {
		h.addf(", late")
	}
	h.writeState(&r)
}

func (h *history) writePayout(l *line, row *columns) {
	r := h.before
	row.payout(&r)
	h.before = r
	if h.writeOrder(l, &r) {
		return
	}
	h.addf(", step %s", r.step)
	if r.returned != 0 {
		h.addf(", returned %d", r.returned)
	}
	if r.lookUps != 0 {
		h.addf(", look-ups %d", r.lookUps)
	}
	if !r.claimedBy.isZero() {
		h.addf(", claimed by %s", r.claimedBy.short())
	}
	h.writeState(&r)
}

// writeOrder writes the beginning of the line of an order; created means that it is complete.
func (h *history) writeOrder(l *line, r *orderRow) (created bool) {
	if l.op != rowAdded {
		h.linef(r.updatedAt, "%s version %d", r.status, r.version)
		return false
	}
	h.linef(r.updatedAt, "%s created: %d cents", r.status, r.amount)
	if r.webhookURL != "" {
		h.addf(", events to %s", r.webhookURL)
	}
	return true
}

func (h *history) writeState(r *orderRow) {
	if r.webhookDisabled {
		h.addf(", events disabled")
	}
	if r.nextAt != 0 {
		h.addf(", due %s", timeText(r.nextAt))
	}
	if r.failure != "" {
		h.addf(", %s", r.failure)
	}
}

func (h *history) writeSend(l *line, row *columns) {
	var r sendRow
	row.send(&r)
	if l.op == rowAdded {
		h.linef(r.createdAt, "send %d: %s by %s", r.number, r.outcome, r.node.short())
		return
	}
	h.linef(r.endedAt, "send %d: %s", r.number, r.outcome)
	if r.evidence != "" {
		h.addf(" (%s)", r.evidence)
	}
}

func (h *history) writePart(l *line, row *columns) {
	name := l.key.id.short() + "/" + strconv.FormatInt(h.partNumber(l), 10)
	r := h.parts[name]
	row.refundPart(&r)
	h.parts[name] = r
	h.linef(0, "part %s of %d of payment %s as %s: %s %s, sends %d", name, r.amount, r.paymentID, r.externalID, r.step, r.outcome, r.sends)
	if !r.claimedBy.isZero() {
		h.addf(", claimed by %s", r.claimedBy.short())
	}
	if r.nextAt != 0 {
		h.addf(", due %s", timeText(r.nextAt))
	}
}

func (h *history) writePosting(l *line, row *columns) {
	var r postingRow
	row.posting(&r)
	if h.entry != l.key {
		h.linef(r.createdAt, "entry %s:", r.kind)
		h.entry = l.key
	}
	h.addf(" %s %+d = %d", r.account, r.amount, r.balanceAfter)
}

func (h *history) writeDelivery(l *line, row *columns) {
	var r deliveryRow
	row.delivery(&r)
	h.linef(r.updatedAt, "delivery of event %d: %s, %d attempts", h.deliveries[l.key].event.number, r.state, r.attempts)
	if r.claimed != 0 {
		h.addf(", claimed")
	}
	if r.nextAt != 0 {
		h.addf(", due %s", timeText(r.nextAt))
	}
}

func (h *history) writeAttempt(l *line, row *columns) {
	var r attemptRow
	row.attempt(&r)
	number := h.deliveries[l.key].event.number
	if r.endedAt == 0 {
		h.linef(r.createdAt, "attempt %d to deliver event %d was interrupted", r.number, number)
	} else {
		h.linef(r.endedAt, "attempt %d to deliver event %d: %d %s", r.number, number, r.status, r.failure)
	}
}

func (h *history) writeCase(l *line, row *columns) {
	r := h.cases[l.key].caseRow
	row.reviewCase(&r)
	if l.op == rowAdded {
		h.linef(r.createdAt, "case opened: %s %d %s", r.kind, r.amount, r.params)
	}
	if r.closedAt != 0 {
		h.linef(r.closedAt, "case closed: %s, %s", r.kind, r.resolution)
	}
}
