// Package dispute applies the disputes that processors report to their pay-ins.
package dispute

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/receivable"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/transition"
)

// Apply follows a reported dispute of a loaded pay-in: the money is set aside, then returned or
// charged back. A repeated or late state changes nothing. A new dispute gets id. All disputes and
// receivables of the pay-in are loaded.
func Apply(l *store.Loaded, c *store.Changes, p *payment.Payin, links transition.Links, processorName string, id payment.ID, reported processor.Dispute) error {
	if other, known := l.Dispute(p.Merchant, processorName, reported.ID); known && other.Payin != p.ID || reported.Amount <= 0 {
		unexpected(c, p, processorName, &reported)
		return nil
	}
	d, known := Find(l.DisputesOf(p.Merchant, p.ID), processorName, &reported)
	if known && inFavor(&d) && reported.State == processor.DisputeLost { // money left that was returned here
		unexpected(c, p, processorName, &reported)
		return nil
	}
	v, missing, disputed := following{l, c, p, links}, d.Missing(), p.DisputedAmount
	if !known {
		d = payment.Dispute{
			Merchant: p.Merchant, ID: id, Payin: p.ID, Processor: processorName, ExternalID: reported.ID, PaymentID: reported.PaymentID, ReturnID: reported.ReturnID,
			Kind: cmp.Or(reported.Kind, payment.DisputeKindOf(p.Method)), Amount: reported.Amount, Status: payment.DisputeOpen, Version: 1,
		}
		d.CreatedAt, d.UpdatedAt = l.Now(), l.Now()
		update(&d, &reported, l.Now())
		d.RemindAt = NextReminder(&d, l.Now())
		c.AddDispute(d)
	}
	if reported.ReturnID != "" && d.ReturnID != reported.ReturnID {
		d.ReturnID = reported.ReturnID
		c.SetDispute(d)
	}
	if err := v.correctLoss(&d, &reported); err != nil {
		return err
	}
	if err := v.take(&d); err != nil {
		return err
	}
	if err := v.announce(&d, &reported, known); err != nil {
		return err
	}
	for _, on := range path(&d, &reported) {
		if err := v.move(&d, on, reported.Lost); err != nil {
			return err
		}
	}
	v.review(&d, missing)
	if p.DisputedAmount >= disputed {
		return nil
	}
	if err := ShowRefunds(l, c, p, links); err != nil {
		return err
	}
	return v.takeMore()
}

// TakeMore sets aside the money that the disputes of a pay-in lack, after a refund of it failed or
// came back. All rows that Apply needs are loaded.
func TakeMore(l *store.Loaded, c *store.Changes, merchant, payin payment.ID, links transition.Links) error {
	p, ok := l.Payin(merchant, payin)
	if !ok {
		return store.ErrNotFound
	}
	return following{l, c, &p, links}.takeMore()
}

// takeMore sets aside the money that the disputes of the pay-in lack, the oldest dispute first.
func (v following) takeMore() error {
	for _, d := range v.l.DisputesOf(v.p.Merchant, v.p.ID) {
		missing := d.Missing()
		if missing == 0 {
			continue
		}
		if err := v.take(&d); err != nil {
			return err
		}
		v.review(&d, missing)
	}
	return nil
}

// update takes over the fields that a processor may change of a dispute that is not decided.
func update(d *payment.Dispute, r *processor.Dispute, now time.Time) (changed bool) {
	before := *d
	d.Reason, d.Blocked = shortReason(r.Reason), r.Blocked
	if d.RespondBy = r.RespondBy.UTC().Truncate(time.Microsecond); !d.RespondBy.Equal(before.RespondBy) || d.Blocked != before.Blocked {
		d.RemindAt = NextReminder(d, now)
	}
	return d.Reason != before.Reason || d.Blocked != before.Blocked || !d.RespondBy.Equal(before.RespondBy)
}

// reasonMax is the longest reason that is kept, in characters.
const reasonMax = 200

// shortReason is a processor's text without characters that PostgreSQL does not store or a terminal
// interprets.
func shortReason(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	if list := []rune(text); len(list) > reasonMax {
		return string(list[:reasonMax])
	}
	return text
}

// announce writes the event of a new dispute, and of a block that is a dispute now. Other changes
// that the processor reports are stored without an event.
func (v following) announce(d *payment.Dispute, r *processor.Dispute, known bool) error {
	if !known {
		return transition.DisputeEvent(v.l, v.c, d, payment.EventDisputeOpened)
	}
	blocked, respondBy := d.Blocked, d.RespondBy
	if !d.Live() || !update(d, r, v.l.Now()) {
		return nil
	}
	if !d.RespondBy.Equal(respondBy) { // the next one, if there is one, names the new time
		v.c.CloseCases(d.Merchant, d.ID, store.CaseDisputeDeadline, store.ResolvedByNewCase)
	}
	cell, legal := payment.DisputeTable.Next(d.Status, payment.OnDispute)
	if !blocked || d.Blocked || !legal {
		v.c.SetDispute(*d)
		return nil
	}
	d.Version++
	v.c.SetDispute(*d)
	return transition.DisputeEvent(v.l, v.c, d, cell.Event)
}

// path is the triggers between a dispute's status and a later state, because a report may skip
// some. A won dispute is reversed if the merchant gave it up, or if it was lost and the processor
// does not show the loss any more.
func path(d *payment.Dispute, r *processor.Dispute) []payment.Trigger {
	to := r.State
	switch {
	case d.Live() && to == processor.DisputeWon:
		return []payment.Trigger{payment.OnWin}
	case d.Live() && to == processor.DisputeLost:
		return []payment.Trigger{payment.OnLose}
	case d.Live() && to == processor.DisputeReversed:
		return []payment.Trigger{payment.OnLose, payment.OnReverse}
	case d.Status == payment.DisputeLost && (to == processor.DisputeReversed || (d.Accepted || r.Current) && to == processor.DisputeWon):
		return []payment.Trigger{payment.OnReverse}
	default:
		return nil
	}
}

// following is a pay-in whose disputes are followed.
type following struct {
	l     *store.Loaded
	c     *store.Changes
	p     *payment.Payin
	links transition.Links
}

// take sets aside the money that a dispute lacks, as far as there is any: first unsettled money of
// the order, then available money, then debt. The money of a lost dispute is charged back at once.
func (v following) take(d *payment.Dispute) error {
	on := payment.OnDispute
	if _, first := payment.PayinTable.Next(v.p.Status, on); !first {
		on = payment.OnDisputeMore
	}
	more := min(d.Missing(), v.left(d))
	if _, legal := payment.PayinTable.Next(v.p.Status, on); !legal || more <= 0 {
		return nil
	}
	if err := v.reverseWriteOff(d, more); err != nil {
		return err
	}
	took := receivable.Take(v.l, v.c, v.p, more)
	d.Taken, d.Took = d.Taken+more, slices.Concat(d.Took, took)
	v.set(d)
	entry := ledger.OpenDispute(took.Sum(), v.l.Balances(v.p.Merchant)[ledger.Available], more).Of(d.ID)
	if _, err := transition.Payin(v.l, v.c, v.p, v.links, on, entry); err != nil || d.Status != payment.DisputeLost {
		return err
	}
	_, err := transition.Payin(v.l, v.c, v.p, v.links, v.trigger(d, payment.OnLose), ledger.LoseDispute(d.Processor, more).Of(d.ID))
	return err
}

// reverseWriteOff makes written-off surplus unapplied again, with a case, if a dispute has taken
// more of the payment. The platform must not keep money that the merchant pays back.
func (v following) reverseWriteOff(d *payment.Dispute, more money.Cents) error {
	surplus, receipt := more, payment.ID{}
	for _, r := range v.l.ReceiptsOf(v.p.Merchant, v.p.ID) {
		if d.PaymentID != "" && r.Processor == d.Processor && r.ExternalID == d.PaymentID {
			surplus, receipt = r.Amount-r.Applied, r.ID
		}
	}
	amount := min(more, surplus, v.l.WrittenOff(v.p.Merchant, v.p.ID, receipt))
	if amount <= 0 {
		return nil
	}
	v.p.UnappliedAmount += amount
	*v.p = v.c.SetPayin(*v.p)
	return ReverseWriteOff(v.c, v.p.Merchant, v.p.ID, receipt, amount, store.ReasonDisputed)
}

// ReverseWriteOff makes written-off surplus of a payment of a pay-in unapplied again, with a case. The
// caller adds it to the unapplied amount of the pay-in.
func ReverseWriteOff(c *store.Changes, merchant, payin, receipt payment.ID, amount money.Cents, why store.CaseReason) error {
	c.OpenCase(store.Case{Merchant: merchant, Kind: store.CaseOverpaid, Subject: payin, Amount: amount, Params: why.With(store.OfReceipt(receipt))})
	return c.Post(merchant, payin, ledger.BringBackUnapplied(amount))
}

// left is the amount that a dispute can still take: the money received for the order or applied to
// it, but no more than the payment that the dispute names, each less refunds, refunds in flight and
// other disputes.
func (v following) left(d *payment.Dispute) money.Cents {
	l, p := v.l, v.p
	var given, givenOfPayment money.Cents // and is being given, of surplus too
	order := max(l.Received(p.Merchant, p.ID), p.PaidAmount)
	ofPayment, named := money.Cents(0), false
	var receipt payment.ID
	for _, r := range l.ReceiptsOf(p.Merchant, p.ID) {
		if d.PaymentID != "" && r.Processor == d.Processor && r.ExternalID == d.PaymentID {
			ofPayment, receipt, named = r.Amount, r.ID, true
		}
	}
	for _, part := range l.RefundPartsOf(p.Merchant, p.ID) {
		given += part.InUse()
		if part.Receipt == receipt {
			givenOfPayment += part.InUse()
		}
	}
	order -= max(given, p.RefundedAmount+l.Refunding(p.Merchant, p.ID))
	ofPayment -= givenOfPayment
	for _, other := range l.DisputesOf(p.Merchant, p.ID) {
		order -= other.InUse()
		if other.PaymentID == d.PaymentID && other.Processor == d.Processor {
			ofPayment -= other.InUse()
		}
	}
	if named {
		return min(order, ofPayment)
	}
	return order
}

// unexpected opens a case, once, about a dispute that is not followed: it is of another order, or
// has no amount.
func unexpected(c *store.Changes, p *payment.Payin, processorName string, reported *processor.Dispute) {
	c.OpenCase(store.Case{
		ID:       store.CaseID("not followed %s %s %s %d", p.ID, processorName, reported.ID, reported.Amount),
		Merchant: p.Merchant, Kind: store.CaseDispute, Subject: p.ID, Amount: reported.Amount,
		Params: store.Params{"status": string(p.Status)},
	})
}

// review keeps one case open about the money that a dispute lacks; before is the amount that was
// lacking before.
func (v following) review(d *payment.Dispute, before money.Cents) {
	now := d.Missing()
	if now == before {
		return
	}
	if before > 0 {
		v.c.CloseCase(d.Merchant, caseOf(d, before), store.ResolvedByProof)
	}
	if now == 0 {
		return
	}
	params := store.Params{"status": string(v.p.Status)}
	if d.Taken > 0 {
		params = store.ReasonMoreThanReceived.With(store.Params{"reported": d.Amount.String()})
	}
	v.c.OpenCase(store.Case{Merchant: d.Merchant, ID: caseOf(d, now), Kind: store.CaseDispute, Subject: d.Payin, Amount: now, Params: params})
}

// caseOf is the id of the case about an amount that a dispute lacks.
func caseOf(d *payment.Dispute, missing money.Cents) payment.ID {
	return store.CaseID("missing %s %d", d.ID, missing)
}

// move moves a dispute. Its order moves too, if the dispute has money of the order and no other
// dispute decides the order's status. lost is the amount that the payer's bank took of a lost
// dispute; 0 is all of it.
func (v following) move(d *payment.Dispute, on payment.Trigger, lost money.Cents) error {
	cell, legal := payment.DisputeTable.Next(d.Status, on)
	if !legal {
		return nil
	}
	if on == payment.OnLose || on == payment.OnAccept {
		if d.Lost = lost; lost <= 0 {
			d.Lost = d.Amount
		}
		if err := v.returnRest(d); err != nil {
			return err
		}
	}
	had := d.InUse()
	owed := v.l.Balances(v.p.Merchant)[ledger.Owed]
	var entry ledger.Entry
	trigger := v.trigger(d, on)
	if _, legal := payment.PayinTable.Next(v.p.Status, trigger); had > 0 && !legal {
		return nil
	}
	switch on {
	case payment.OnWin:
		entry = ledger.WinDispute(v.restore(d, had), owed, had)
	case payment.OnReverse:
		entry = ledger.ReverseChargeback(d.Processor, v.restore(d, had), owed, had)
	default:
		entry = ledger.LoseDispute(d.Processor, had)
	}
	d.Status, d.Version, d.ClosedAt, d.RemindAt = cell.To, d.Version+1, v.l.Now(), time.Time{}
	d.Accepted = d.Accepted || on == payment.OnAccept
	v.set(d)
	v.c.CloseCases(d.Merchant, d.ID, store.CaseDisputeDeadline, store.ResolvedByProof)
	v.c.CloseCases(d.Merchant, d.ID, store.CaseDisputeOpen, store.ResolvedByProof)
	v.endDefense(d)
	if had > 0 {
		if _, err := transition.Payin(v.l, v.c, v.p, v.links, trigger, entry.Of(d.ID)); err != nil {
			return err
		}
	}
	if err := v.take(d); err != nil { // more may be lost than was disputed
		return err
	}
	return transition.DisputeEvent(v.l, v.c, d, cell.Event)
}

// endDefense ends the work on answers to a decided dispute. An answer in flight is recorded when
// its send ends.
func (v following) endDefense(d *payment.Dispute) {
	answers, _ := v.l.Answers(d.Merchant, d.ID)
	for _, a := range answers {
		if a.Action != payment.AnswerDefend || a.Step == payment.StepDone || !a.ClaimedBy.IsZero() {
			continue
		}
		a.Step, a.NextAt = payment.StepDone, time.Time{}
		v.c.SetAnswer(a)
	}
	if len(answers) > 0 {
		v.c.CloseCases(d.Merchant, d.ID, store.CaseDisputeAnswer, store.ResolvedByProof)
	}
}

// set stores a dispute, and the amount that all disputes have of the order.
func (v following) set(d *payment.Dispute) {
	v.c.SetDispute(*d)
	d.UpdatedAt = v.l.Now()
	v.p.DisputedAmount = 0
	for _, other := range v.l.DisputesOf(v.p.Merchant, v.p.ID) {
		v.p.DisputedAmount += other.InUse()
	}
}

// returnRest returns the money that was set aside and is not lost.
func (v following) returnRest(d *payment.Dispute) error {
	rest := d.InUse() - d.Lost
	if rest <= 0 {
		return nil
	}
	owed := v.l.Balances(v.p.Merchant)[ledger.Owed]
	entry := ledger.WinDispute(v.restore(d, rest), owed, rest)
	d.Returned += rest
	v.set(d)
	_, err := transition.Payin(v.l, v.c, v.p, v.links, payment.OnWinPart, entry.Of(d.ID))
	return err
}

// lossDiffers reports whether the payer's bank took another amount of a lost dispute than was
// charged back. If the merchant gave the dispute up, all of its amount was charged back.
func lossDiffers(d *payment.Dispute, r *processor.Dispute) bool {
	return d.Status == payment.DisputeLost && r.State == processor.DisputeLost && r.Lost > 0 && r.Lost != d.Lost
}

// correctLoss returns money that was charged back of a lost dispute but not lost, or charges back
// money that was lost but not charged back.
func (v following) correctLoss(d *payment.Dispute, r *processor.Dispute) error {
	cell, legal := payment.DisputeTable.Next(d.Status, payment.OnReversePart)
	if !legal || !lossDiffers(d, r) {
		return nil
	}
	var entry ledger.Entry
	rest := max(d.InUse()-r.Lost, 0)
	if rest > 0 {
		owed := v.l.Balances(v.p.Merchant)[ledger.Owed]
		entry = ledger.ReverseChargeback(d.Processor, v.restore(d, rest), owed, rest)
	}
	d.Lost, d.Returned, d.Version = r.Lost, d.Returned+rest, d.Version+1
	v.set(d)
	if rest > 0 {
		if _, err := transition.Payin(v.l, v.c, v.p, v.links, payment.OnReversePart, entry.Of(d.ID)); err != nil {
			return err
		}
	}
	if err := v.take(d); err != nil {
		return err
	}
	return transition.DisputeEvent(v.l, v.c, d, cell.Event)
}

// restore gives money of a dispute back to its receivables, the last one first, and returns how
// much they got: the part of amount that exceeds the dispute's other money.
func (v following) restore(d *payment.Dispute, amount money.Cents) money.Cents {
	var last payment.Takes
	d.Took, last = d.Took.Last(max(amount-(d.InUse()-d.Took.Sum()), 0))
	return receivable.Restore(v.l, v.c, d.Merchant, last)
}

// others counts the other disputes of an order that have money of it.
type others struct{ open, lost int }

func (v following) count(except *payment.Dispute) (n others) {
	for _, d := range v.l.DisputesOf(v.p.Merchant, v.p.ID) {
		switch {
		case d.ID == except.ID || d.InUse() == 0:
		case d.Live():
			n.open++
		default:
			n.lost++
		}
	}
	return n
}

// triggers are the triggers of an ending dispute, by the effect on its order.
type triggers struct{ part, chargedBack, paid, refunded, refundedAll payment.Trigger }

var triggersOf = map[payment.Trigger]triggers{
	payment.OnWin:     {payment.OnWinPart, payment.OnWinChargedBack, payment.OnWin, payment.OnWinRefunded, payment.OnWinRefundedAll},
	payment.OnLose:    {payment.OnLosePart, payment.OnLose, payment.OnLose, payment.OnLose, payment.OnLose},
	payment.OnAccept:  {payment.OnLosePart, payment.OnLose, payment.OnLose, payment.OnLose, payment.OnLose},
	payment.OnReverse: {payment.OnReversePart, payment.OnReversePart, payment.OnReverse, payment.OnReverseRefunded, payment.OnReverseRefundedAll},
}

// trigger picks the trigger of the order of an ending dispute. The order keeps its status while
// another dispute is open, and while it is not paid in full. After the last dispute, a lost one
// charges the order back; otherwise the order returns to its status before the disputes.
func (v following) trigger(d *payment.Dispute, ends payment.Trigger) payment.Trigger {
	on, n, p := triggersOf[ends], v.count(d), v.p
	lost := ends == payment.OnLose || ends == payment.OnAccept
	switch chargedBack := n.lost > 0 || lost; {
	case n.open > 0, !p.PaidInFull(), chargedBack && p.Status == payment.PayinChargeback:
		return on.part
	case chargedBack:
		return on.chargedBack
	case p.RefundedInFull():
		return on.refundedAll
	case p.PartlyRefunded():
		return on.refunded
	default:
		return on.paid
	}
}
