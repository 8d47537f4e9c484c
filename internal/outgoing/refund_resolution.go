package outgoing

import (
	"fmt"
	"maps"
	"time"

	"github.com/porteira/porteira/internal/dispute"
	"github.com/porteira/porteira/internal/effect"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/receivable"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/transition"
	"github.com/porteira/porteira/internal/worker"
)

// refundResolution applies a processor's proof about a part of a refund. Its functions are
// pure. The refunds of the pay-in and the balances are loaded.
type refundResolution struct {
	jitter worker.Jitter
	effect processor.Effect // the processor's guarantees for refunds
	links  transition.Links

	contradiction bool // no money moves, as proofs contradict
	next          bool // the next part need not wait any more
}

func (e *Executor) newRefundResolution(account string) refundResolution {
	v := refundResolution{jitter: worker.NewJitter(e.Env.Random), links: e.Links}
	if proc := e.Processors.Find(account); proc != nil {
		v.effect = proc.Profile().Refund
	}
	return v
}

// applyReport applies a report of a refund that exists at the processor.
func (v *refundResolution) applyReport(l *store.Loaded, c *store.Changes, p *payment.RefundPart, r processor.TransferReport) error {
	refund, err := v.start(l, c, p)
	switch {
	case err != nil:
		return err
	case r.Amount != 0 && r.Amount != p.Amount:
		v.contradict(l, c, p, store.ReasonOtherAmount, r.Amount.String())
		return nil
	case r.PaymentID != "" && r.PaymentID != p.PaymentID:
		v.contradict(l, c, p, store.ReasonOtherPayment, worker.Short(r.PaymentID))
		return nil
	}
	if r.ProcessorID != "" {
		p.ProcessorID = worker.Short(r.ProcessorID)
	}
	on := reportEvent(&r)
	switch out := v.take(l, p, effect.Input{On: on, All: true}); {
	case out.Row == "" || out.Action == effect.Contradict && p.Outcome == payment.PartTakenBack:
		return nil // known, or outdated
	case out.Action == effect.Contradict && on == effect.ReportPaid:
		return v.paidAgain(l, c, p, &refund, r)
	case out.Action == effect.Contradict:
		return v.reverse(l, c, p, &refund, r.Failure, r.Evidence)
	case out.Action == effect.Book:
		return v.paid(l, c, p, &refund, r)
	case out.Action == effect.Release:
		return v.failed(l, c, p, r.Failure, r.Evidence)
	case on == effect.ReportFailed: // another send may pay
		*p = c.SetRefundPart(*p)
	default:
		v.accepted(l, c, p, &r)
	}
	return nil
}

// take lets a part take an event. A part after the first one is looked up before its first send: in
// a past that the database lacks the refund may have had other parts.
func (v *refundResolution) take(l *store.Loaded, p *payment.RefundPart, in effect.Input) effect.Out {
	policy := policyOf(v.effect)
	policy.AskFirst = policy.AskFirst || p.Number > 1
	in.Now, in.Wanted, in.Jitter = l.Now(), true, int64(v.jitter)
	if p.Result = effect.ReportFailed; p.Outcome == payment.PartPaid {
		p.Result = effect.ReportPaid
	}
	return take(policy, &p.Effect, &p.ClaimedBy, in)
}

// accepted records that the processor accepted a refund. The result will be reported; a look-up
// finds it if the report is lost.
func (v *refundResolution) accepted(l *store.Loaded, c *store.Changes, p *payment.RefundPart, r *processor.TransferReport) {
	p.Outcome, p.Evidence = payment.RefundPartOutcome(store.SendAccepted), worker.Short(r.Evidence)
	*p = c.SetRefundPart(*p)
	switch known := len(CasesOfPart(l, p, store.CaseRefundUnknown)) > 0; {
	case r.Person && !known:
		openPartCase(c, p, store.CaseRefundUnknown, store.ReasonUnconfirmed)
	case p.Lookups == lookUpsBeforeCase && !known:
		openPartCase(c, p, store.CaseRefundUnknown, store.ReasonStillProcessing)
	}
	v.scheduleNextPart(l, c, p)
}

// scheduleNextPart makes the part due that waits for p.
func (v *refundResolution) scheduleNextPart(l *store.Loaded, c *store.Changes, p *payment.RefundPart) {
	for _, o := range others(l, p) {
		if o.Number == p.Number+1 && o.State == effect.Queued && o.Sends == 0 && o.NextAt.After(l.Now()) {
			o.NextAt = l.Now()
			c.SetRefundPart(o)
			v.next = true
		}
	}
}

// endPart ends the executor's work on a part, and its cases. Each part that waited under these
// cases gets a case of its own, because a person must decide whether the part may still be sent.
func (v *refundResolution) endPart(l *store.Loaded, c *store.Changes, p *payment.RefundPart, outcome payment.RefundPartOutcome, evidence string) {
	p.State, p.NextAt, p.ClaimedBy = effect.Done, time.Time{}, payment.ID{}
	p.Outcome, p.Evidence = outcome, worker.Short(evidence)
	*p = c.SetRefundPart(*p)
	closePartCases(l, c, p, store.CaseRefundUnknown, store.ResolvedByProof)
	closePartCases(l, c, p, store.CaseRefundWaiting, store.ResolvedByProof)
	openWaiting(l, c, p)
	v.scheduleNextPart(l, c, p)
}

// openWaiting opens a case for each part that waited under the case of p.
func openWaiting(l *store.Loaded, c *store.Changes, p *payment.RefundPart) {
	for _, o := range waiting(l, p) {
		openPartCase(c, &o, store.CaseRefundUnknown, store.ReasonOtherPart)
	}
}

// holdOthers makes the unsent parts of a refund wait for the decision about p: the processor may
// have given the money of all parts back with p.
func holdOthers(l *store.Loaded, c *store.Changes, p *payment.RefundPart) {
	for _, o := range others(l, p) {
		if o.State != effect.Review && o.Live() && !o.Possible() {
			o.State, o.NextAt, o.ClaimedBy = effect.Review, time.Time{}, payment.ID{}
			c.SetRefundPart(o)
		}
	}
}

// waiting returns the other parts of a refund that wait for review without a case of their own.
func waiting(l *store.Loaded, p *payment.RefundPart) (list []payment.RefundPart) {
	for _, o := range others(l, p) {
		if o.State == effect.Review && len(CasesOfPart(l, &o, store.CaseRefundUnknown))+len(CasesOfPart(l, &o, store.CaseDamaged)) == 0 {
			list = append(list, o)
		}
	}
	return list
}

// others returns the other parts of a refund.
func others(l *store.Loaded, p *payment.RefundPart) (list []payment.RefundPart) {
	for _, o := range l.RefundParts(p.Merchant, p.Refund) {
		if o.Number != p.Number {
			list = append(list, o)
		}
	}
	return list
}

// paidAgain books a part that was believed to have failed. It takes its money again: from available
// as far as possible, and as debt beyond.
func (v *refundResolution) paidAgain(l *store.Loaded, c *store.Changes, p *payment.RefundPart, r *payment.Refund, report processor.TransferReport) error {
	if err := reapply(l, c, p, r); err != nil {
		return err
	}
	if err := v.markExcess(l, c, p); err != nil {
		return err
	}
	return v.paid(l, c, p, r, report)
}

// paid books a part that reached the payer.
func (v *refundResolution) paid(l *store.Loaded, c *store.Changes, p *payment.RefundPart, r *payment.Refund, report processor.TransferReport) error {
	p.EndToEndID = report.EndToEndID
	v.endPart(l, c, p, payment.PartPaid, report.Evidence)
	on := payment.RefundTrigger(r.Status, others(l, p), payment.EndPaid)
	r.RefundedAmount += p.Amount
	if on == payment.OnComplete {
		r.CompletedAt, r.Failure = l.Now(), nil
	}
	if r.Amount == p.Amount {
		r.EndToEndID = p.EndToEndID
	}
	moved, err := transition.Refund(l, c, r, on, ledger.PayRefund(p.Processor, p.Amount))
	if err == nil && !moved {
		err = fmt.Errorf("outgoing: no cell for %s of a refund that is %s", on, r.Status)
	}
	if err != nil || p.Surplus || p.Amount == p.Unapplied {
		return err
	}
	return v.movePayin(l, c, p, p.Amount-p.Unapplied)
}

// reapply takes the money of a part again that had failed: first from unapplied or written-off
// money of the order, if the part gave that back, then from unsettled money of the order, then from
// available money, and the rest as debt.
func reapply(l *store.Loaded, c *store.Changes, p *payment.RefundPart, r *payment.Refund) error {
	payin, ok := l.Payin(p.Merchant, p.Payin)
	if !ok {
		return store.ErrNotFound
	}
	left := payment.SurplusLeft(&payin, l.ReceiptsOf(p.Merchant, p.Payin), l.RefundPartsOf(p.Merchant, p.Payin))
	onlyUnapplied := p.Unapplied == p.Amount
	var err error
	if p.Unapplied, err = TakeUnapplied(l, c, p, min(p.Unapplied, left)); err != nil {
		return err
	}
	if onlyUnapplied { // others may have its money now
		p.Surplus = p.Unapplied == p.Amount
	}
	p.Took = receivable.Take(l, c, &payin, p.Amount-p.Unapplied)
	of := ledger.Parts{Unapplied: p.Unapplied, Pending: p.Took.Sum()}
	return c.Post(p.Merchant, r.ID, ledger.FindRefund(of, l.Balances(p.Merchant)[ledger.Available], p.Amount))
}

// Unapplied returns the open cases about unapplied money of an order's payment, or of no named
// payment, and their sum in cents. The cases are loaded.
func Unapplied(l *store.Loaded, merchant, payin, receipt payment.ID) (list []store.Case, sum money.Cents) {
	for _, v := range l.OpenCasesAbout(merchant, payin, store.CaseOverpaid) {
		if v.MayBeOf(receipt) {
			list, sum = append(list, v), sum+v.Amount
		}
	}
	return list, sum
}

// TakeUnapplied closes the open cases about unapplied money of a part's payment, up to amount,
// because the payer got that money back, and returns how much the cases had. The rest of the last
// case gets a new case. If the cases do not suffice, written-off money is unapplied again first:
// the platform must not keep money that has left. The disputes of the order are loaded; the caller
// posts the entry.
func TakeUnapplied(l *store.Loaded, c *store.Changes, p *payment.RefundPart, amount money.Cents) (taken money.Cents, err error) {
	_, sum := Unapplied(l, p.Merchant, p.Payin, p.Receipt)
	back := max(min(amount-sum, l.WrittenOff(p.Merchant, p.Payin, p.Receipt)), 0)
	if back > 0 {
		if err := dispute.ReverseWriteOff(c, p.Merchant, p.Payin, p.Receipt, back, store.ReasonGivenBack); err != nil {
			return 0, err
		}
	}
	list, _ := Unapplied(l, p.Merchant, p.Payin, p.Receipt)
	for _, v := range list {
		if taken == amount {
			break
		}
		n := min(v.Amount, amount-taken)
		taken += n
		c.CloseCase(v.Merchant, v.ID, store.ResolvedByProof)
		if rest := v.Amount - n; rest > 0 {
			c.OpenCase(v.Rest(rest))
		}
	}
	if taken == back {
		return taken, nil
	}
	return taken, transition.Unapplied(l, c, p.Merchant, p.Payin, back-taken)
}

// markExcess marks a part that was paid after it failed, and whose money another refund or a
// dispute had taken meanwhile. More was given back than the order was paid, so the pay-in cannot
// show the part. The part gets a case.
func (v *refundResolution) markExcess(l *store.Loaded, c *store.Changes, p *payment.RefundPart) error {
	payin, ok := l.Payin(p.Merchant, p.Payin)
	if !ok {
		return store.ErrNotFound
	}
	left := payment.RefundLeft(&payin, l.ReceiptsOf(p.Merchant, p.Payin), l.RefundPartsOf(p.Merchant, p.Payin), p.Unapplied)
	if p.Surplus || p.Amount-p.Unapplied <= left {
		return nil
	}
	p.Surplus = true
	c.OpenCase(store.Case{
		Merchant: p.Merchant, Kind: store.CaseRefundUnexpected, Subject: p.Payin, Amount: p.Amount - p.Unapplied,
		Params: store.Params{"processor": p.Processor, "externalId": p.ExternalID},
	})
	return nil
}

// movePayin changes the refunded amount of the pay-in, its fee, and its status.
func (v *refundResolution) movePayin(l *store.Loaded, c *store.Changes, p *payment.RefundPart, by money.Cents) error {
	payin, ok := l.Payin(p.Merchant, p.Payin)
	if !ok {
		return store.ErrNotFound
	}
	return receivable.MoveRefunded(l, c, &payin, p, v.links, by)
}

// failed releases the money of a part, on the proof that it will not reach the payer.
func (v *refundResolution) failed(l *store.Loaded, c *store.Changes, p *payment.RefundPart, why *payment.Failure, evidence string) error {
	r, ok := l.Refund(p.Merchant, p.Refund)
	if !ok {
		return store.ErrNotFound
	}
	of, err := releaseSources(l, c, p)
	if err != nil {
		return err
	}
	entry := ledger.ReleaseRefund(of, p.Amount)
	v.endPart(l, c, p, payment.PartFailed, evidence)
	r.Failure = failureOf(why)
	on := payment.RefundTrigger(r.Status, others(l, p), payment.EndFailed)
	moved, err := transition.Refund(l, c, &r, on, entry)
	if err == nil && !moved {
		err = fmt.Errorf("outgoing: no cell for %s of a refund that is %s", on, r.Status)
	}
	if err != nil {
		return err
	}
	return v.reallocate(l, c, p)
}

// failureOf is why a part failed, if the processor does not say.
func failureOf(why *payment.Failure) *payment.Failure {
	if why == nil {
		return &payment.Failure{Code: "refund_failed", Message: "The processor did not pay it."}
	}
	return why
}

// reallocate gives the money of a failed part to other effects: first to refunds that exceeded the
// rest of the order, then to disputes.
func (v *refundResolution) reallocate(l *store.Loaded, c *store.Changes, failed *payment.RefundPart) error {
	payin, ok := l.Payin(failed.Merchant, failed.Payin)
	if !ok {
		return store.ErrNotFound
	}
	if err := v.payAgain(l, c, &payin); err != nil {
		return err
	}
	if err := dispute.ShowRefunds(l, c, &payin, v.links); err != nil {
		return err
	}
	return dispute.TakeMore(l, c, failed.Merchant, failed.Payin, v.links)
}

// payAgain makes an order PAID whose payments reach its amount after a refund failed. The refund
// had completed before the order was paid in full.
func (v *refundResolution) payAgain(l *store.Loaded, c *store.Changes, p *payment.Payin) error {
	if _, legal := payment.PayinTable.Next(p.Status, payment.OnPaidAgain); !legal || p.Lacking() > 0 {
		return nil
	}
	p.Late, p.PaidAt, p.Failure = p.LateAt(l.Now()), l.Now(), nil
	if _, err := transition.Payin(l, c, p, v.links, payment.OnPaidAgain); err != nil {
		return err
	}
	return dispute.ShowBefore(l, c, p, v.links)
}

// releaseSources gives the money of a part back to its receivables, and opens a case about its
// unapplied money. The caller posts the entry.
func releaseSources(l *store.Loaded, c *store.Changes, p *payment.RefundPart) (ledger.Parts, error) {
	of := ledger.Parts{Unapplied: p.Unapplied, Pending: receivable.Restore(l, c, p.Merchant, p.Took)}
	p.Took = nil
	if p.Unapplied == 0 {
		return of, nil
	}
	openOverpaid(c, p)
	return of, transition.Unapplied(l, c, p.Merchant, p.Payin, p.Unapplied)
}

// reverse books the failure of a part that the processor had reported as paid.
func (v *refundResolution) reverse(l *store.Loaded, c *store.Changes, p *payment.RefundPart, r *payment.Refund, why *payment.Failure, evidence string) error {
	of, err := releaseSources(l, c, p)
	if err != nil {
		return err
	}
	entry := ledger.TakeBackRefund(p.Processor, of, l.Balances(p.Merchant)[ledger.Owed], p.Amount)
	v.endPart(l, c, p, payment.PartTakenBack, evidence)
	r.Failure, r.CompletedAt = failureOf(why), time.Time{}
	r.RefundedAmount -= p.Amount
	on := payment.RefundTrigger(r.Status, others(l, p), payment.EndTakenBack)
	moved, err := transition.Refund(l, c, r, on, entry)
	if err == nil && !moved {
		err = fmt.Errorf("outgoing: no cell for %s of a refund that is %s", on, r.Status)
	}
	if err == nil && !p.Surplus && p.Amount > p.Unapplied {
		err = v.movePayin(l, c, p, p.Unapplied-p.Amount)
	}
	if err != nil {
		return err
	}
	return v.reallocate(l, c, p)
}

// openOverpaid opens a case about unapplied money that did not reach its payer.
func openOverpaid(c *store.Changes, p *payment.RefundPart) {
	c.OpenCase(store.Case{Merchant: p.Merchant, Kind: store.CaseOverpaid, Subject: p.Payin, Amount: p.Unapplied, Params: store.OfReceipt(p.Receipt)})
}

// contradict leaves the ledger unchanged and opens a case.
func (v *refundResolution) contradict(l *store.Loaded, c *store.Changes, p *payment.RefundPart, cause store.CaseReason, reported string) {
	if !p.Ended() && p.State != effect.Review {
		p.State, p.NextAt, p.ClaimedBy = effect.Review, time.Time{}, payment.ID{}
		*p = c.SetRefundPart(*p)
	}
	holdOthers(l, c, p)
	v.contradiction = true
	params := store.Params{"processor": p.Processor, "externalId": p.ExternalID, "cause": string(cause), "reported": reported}
	if known := CasesOfPart(l, p, store.CaseRefundUnknown); len(known) == 1 && maps.Equal(known[0].Params, params) {
		return // the first of two people may have decided it
	}
	closePartCases(l, c, p, store.CaseRefundUnknown, store.ResolvedByNewCase)
	c.OpenCase(store.Case{
		Merchant: p.Merchant, Kind: store.CaseRefundUnknown, Subject: p.Refund, Amount: p.Amount, Params: params,
	})
}
