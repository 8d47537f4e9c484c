package checker

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/processor"
)

// finish ends everything in a populated scene.
func (s *scene) finish() {
	s.t.Helper()
	s.send(done(processor.TransferPaid)) // out-new
	s.clock.Advance(time.Minute)
	s.lookUp(found(processor.TransferPaid, 1)) // out-sent
	s.payConsented("out-asked")
	s.must(s.Outgoing.RecordSend(s.ctx, s.claimSendTo(asking), refused)) // out-waiting
	s.clock.Advance(2 * time.Hour)
	_, err := s.Payins.Expire(s.ctx)
	s.must(err)
	s.withLease(func(ctx context.Context) {
		_, err := s.Payins.Charge(ctx)
		s.must(err)
	})
	s.records.Charges[0].Ended = true
	s.deliver(200)
	s.applyNotices()
	s.wantSound()
}

// clone copies records, for a test to change.
func (r *Records) clone() *Records {
	c := &Records{
		Transfers:  append([]BankTransfer(nil), r.Transfers...),
		Payments:   append([]BankPayment(nil), r.Payments...),
		Deliveries: append([]ReceivedDelivery(nil), r.Deliveries...),
		Charges:    append([]BankCharge(nil), r.Charges...),
	}
	for _, o := range r.Orders {
		copied := *o
		c.Orders = append(c.Orders, &copied)
	}
	return c
}

func (r *Records) order(reference string) *ClientOrder {
	for _, o := range r.Orders {
		if o.Reference == reference {
			return o
		}
	}
	return nil
}

// transferOf is the bank's transfer of a payout.
func (r *Records) transferOf(reference string) *BankTransfer {
	for i := range r.Transfers {
		if r.Transfers[i].ExternalID == r.order(reference).ExternalID {
			return &r.Transfers[i]
		}
	}
	return nil
}

// differences are what the other parties' records could say; each breaks at least the
// rule that it names.
var differences = []struct {
	name      string
	final     bool // it is compared at the end
	invariant Invariant
	words     string
	change    func(r *Records)
}{
	{"acknowledged and lost", false, Durability, "does not exist", func(r *Records) {
		r.Orders = append(r.Orders, &ClientOrder{Kind: Payin, Merchant: r.Orders[0].Merchant, Reference: "lost", ID: r.Orders[0].ID})
	}},
	{"another amount was acknowledged", false, Durability, "acknowledged as", func(r *Records) { r.order("in-open").Amount++ }},
	{"another external id was acknowledged", false, Durability, "acknowledged as", func(r *Records) { r.order("out-new").ExternalID = "x" }},
	{"another id was acknowledged", false, Durability, "acknowledged as", func(r *Records) { r.order("out-new").ID = r.order("out-done").ID }},
	{"a cancellation was acknowledged", false, Durability, "cancellation", func(r *Records) { r.order("out-new").Canceled = true }},
	{"a reference with two ids", false, SingleOrder, "was acknowledged as", func(r *Records) {
		r.Orders = append(r.Orders, &ClientOrder{
			Kind: Payout, Merchant: r.Orders[0].Merchant, Reference: "out-new", Amount: 900, WebhookURL: hookURL, ID: r.Orders[0].ID,
		})
	}},
	{"an order that was not requested", false, SingleOrder, "no client requested", func(r *Records) { r.order("in-open").Reference = "other" }},
	{"an amount that was not requested", false, SingleOrder, "no client requested", func(r *Records) {
		o := r.order("in-open")
		o.Amount, o.ID = 1, ""
	}},
	{"a transfer without a payout", false, SingleTransfer, "without a payout", func(r *Records) { r.Transfers[0].ExternalID = "x" }},
	{"two transfers", false, SingleTransfer, "two transfers", func(r *Records) { r.Transfers = append(r.Transfers, *r.transferOf("out-done")) }},
	{"two transfers, of which one has consent", false, SingleTransfer, "two transfers", func(r *Records) {
		for i := range r.Transfers {
			if t := &r.Transfers[i]; t.ExternalID == r.order("out-asked").ExternalID {
				t.State = "paid"
			}
		}
	}},
	{"another transfer than that with consent", false, SingleTransfer, "which had no consent", func(r *Records) {
		t := r.transferOf("out-asked")
		t.State, t.ID = "paid", "T3"
	}},
	{"two transfers without an end", true, SingleTransfer, "two transfers", func(*Records) {}},
	{"another amount was sent", false, SingleTransfer, "the bank sent 2001 of 2000", func(r *Records) { r.transferOf("out-done").Amount++ }},
	{"completed and never sent", false, SingleTransfer, "no transfer", func(r *Records) { r.Transfers = r.Transfers[1:] }},
	{"completed and failed", false, SingleTransfer, "the bank says failed", func(r *Records) { r.transferOf("out-done").State = "failed" }},
	{"completed and in progress", false, SingleTransfer, "the bank says processing", func(r *Records) { r.transferOf("out-done").State = "processing" }},
	{"released and paid", false, SingleTransfer, "the bank says paid", func(r *Records) {
		r.Transfers = append(r.Transfers, BankTransfer{r.order("out-failed").ExternalID, 400, 0, "paid", "E", "t"})
	}},
	{"paid before it was sent", false, SingleTransfer, "was never sent", func(r *Records) {
		r.Transfers = append(r.Transfers, BankTransfer{r.order("out-new").ExternalID, 900, 0, "processing", "E", "t"})
	}},
	{"another end-to-end id", false, SingleTransfer, "end-to-end id", func(r *Records) { r.transferOf("out-done").EndToEndID = "x" }},
	{"paid and in progress forever", true, Progress, "is not final", func(r *Records) { r.transferOf("out-sent").State = "paid" }},
	{"returned and not recorded", true, SingleTransfer, "is returned, the bank says 5", func(r *Records) { r.transferOf("out-done").Returned = 5 }},
	{"a receipt without a payment", false, SingleReceipt, "has no payment", func(r *Records) { r.Payments = r.Payments[1:] }},
	{"a payment of another amount", false, SingleReceipt, "is booked as", func(r *Records) { r.Payments[0].Amount++ }},
	{"a payment of another order", false, SingleReceipt, "is booked as", func(r *Records) { r.Payments[0].ExternalID = r.Payments[1].ExternalID }},
	{"a lost payment", true, Incoming, "is not booked", func(r *Records) { r.Payments = append(r.Payments, BankPayment{"Z", "x", 5, "EZ"}) }},
	{"a charge without a pay-in", false, SingleCharge, "without a pay-in", func(r *Records) { r.Charges[0].ExternalID = "x" }},
	{"two charges", false, SingleCharge, "two charges", func(r *Records) { r.Charges = append(r.Charges, r.Charges[0]) }},
	{"another amount was charged", false, SingleCharge, "the bank charges 7701 of 7700", func(r *Records) { r.Charges[0].Amount++ }},
	{"a charge that was not requested", false, SingleCharge, "never requested", func(r *Records) { r.Charges[0] = BankCharge{r.order("in-open").ExternalID, 5_000, false, "bank"} }},
	{"a delivery without an event", false, Events, "does not exist", func(r *Records) { r.Deliveries[0].EventID = "evt_0" }},
	{"a delivery with another body", false, Events, "was received as", func(r *Records) { r.Deliveries[0].Body = []byte("{}") }},
	{"a delivery to another URL", false, Events, "was sent to", func(r *Records) { r.Deliveries[0].URL = "https://elsewhere.example" }},
	{"a delivery to another merchant", false, Events, "was sent to", func(r *Records) { r.Deliveries[0].Merchant = r.Orders[0].ID }},
	{"a delivery that arrived twice", false, Events, "arrived 2 times, but 1 attempts", func(r *Records) { r.Deliveries = append(r.Deliveries, r.Deliveries[0]) }},
	{"delivered and refused", false, Events, "no receiver accepted it", func(r *Records) { r.Deliveries[0].Answer = 500 }},
	{"delivered and not received", false, Events, "no receiver accepted it", func(r *Records) { r.Deliveries = r.Deliveries[1:] }},
	{"the bank moved more", true, Clearing, "the bank moved", func(r *Records) { r.Payments = append(r.Payments, BankPayment{"Z", "x", 5, "EZ"}) }},
}

// Differences between the gateway's records and the others' are reported.
func TestDifferencesAreReported(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(s *scene) {
		s.populate()
		for _, early := range []bool{true, false} {
			for _, d := range differences {
				// Rules that hold at any time hold at the end, too.
				if d.final && early {
					continue
				}
				r := s.records.clone()
				d.change(r)
				s.restartChecker()
				s.want(d.name, s.checker.Compare(r, d.final), d.invariant, d.words)
			}
			if early {
				s.clock.Advance(time.Second)
				s.deliver(200)
			}
		}
	})
}

// Differences that only the checker's own state can show.
func TestStateIsCompared(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(s *scene) {
		s.populate()
		s.checker.receiptList[0].order = nil
		s.want("a payment without its order", s.checker.Compare(&s.records, false), Incoming, "is not booked for this order")
		o := s.checker.references[orderName{rowID(s.merchant.ID), Payout, "out-done"}]
		o.claimedBy = rowID{1}
		s.want("a claimed order", s.checker.Compare(&s.records, true), Progress, "claimed: true")
		o.claimedBy = rowID{}
		o.events[0].delivery.claimed = 16
		s.want("a claimed delivery", s.checker.Compare(&s.records, true), Progress, "is claimed")
		o = s.checker.references[orderName{rowID(s.merchant.ID), Payin, "in-made"}]
		for _, state := range []string{"wanted", "cancel"} {
			o.charge.state = state
			s.want("work on a charge", s.checker.Compare(&s.records, true), Progress, "its charge is "+state+" at the end")
		}
		for _, status := range []string{"CANCELED", "EXPIRED"} {
			o.status = status
			s.want("a charge that can be paid", s.checker.Compare(&s.records, true), SingleCharge, "can still be paid")
		}
	})
}

// Unfinished work is reported at the end only.
func TestEnd(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(s *scene) {
		s.populate()
		found := s.checker.Compare(&s.records, true)
		for _, words := range []string{"is not final", "is still open", "still to be delivered", "is not applied"} {
			s.want(words, found, Progress, words)
		}
		s.finish()
		for _, v := range s.checker.Compare(&s.records, true) {
			s.t.Errorf("%+v\n%s", v, s.checker.History(v.Order))
		}
	})
}

// A payout that waits for its merchant's debt is finished if its case is open and the
// merchant owes money.
func TestEndOfAPayoutThatWaitsForDebt(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(s *scene) {
		s.populate()
		o := s.checker.references[orderName{rowID(s.merchant.ID), Payout, "out-new"}]
		waiting := &reviewCase{facts: map[string]string{"reason": "debt"}}
		waiting.kind = "payout_waiting"
		o.cases = append(o.cases, waiting)
		reported := func() (n int) {
			for _, v := range s.checker.Compare(&s.records, true) {
				if v.Order == o.key.id.String() {
					n++
				}
			}
			return n
		}
		if reported() == 0 {
			s.t.Error("a payout that waits for a debt that does not exist is not reported")
		}
		s.checker.merchants[rowID(s.merchant.ID)].account("owed").sum = -1
		if n := reported(); n != 0 {
			s.t.Errorf("a payout that waits for a debt is reported %d times", n)
		}
		waiting.closedAt = 1
		if reported() == 0 {
			s.t.Error("a payout without an open case is not reported")
		}
	})
}

// A history is found by each name of an order, and lists what happened to it.
func TestHistory(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(s *scene) {
		s.populate()
		s.finish()
		o := s.records.order("out-sent")
		history := s.checker.History(o.ID)
		if history == "" || history != s.checker.History(o.ExternalID) || history != s.checker.History("out-sent") {
			s.t.Fatalf("not one history:\n%s\n%s\n%s", history, s.checker.History(o.ExternalID), s.checker.History("out-sent"))
		}
		at := 0
		for _, words := range []string{
			"PENDING created: 700 cents, events to https://shop.example/hook", "entry payout_held: available -700 = ", "send 1: intent", "send 1: accepted",
			"COMPLETED version 3, step done", "send 1: paid", "entry payout_paid: held -700 = ", "entry payout_returned: ", "payout.completed, version 3",
			"payout.returned, version 4", "delivered, 1 attempts", "attempt 1 to deliver", ": 200",
		} {
			i := strings.Index(history[at:], words)
			if i < 0 {
				s.t.Fatalf("no %q after the first %d characters of\n%s", words, at, history)
			}
			at += i
		}
		if other := s.checker.History("in-paid"); !strings.Contains(other, "case opened: overpaid 500") || !strings.Contains(other, "receipt: 10000 of 10500 applied") {
			s.t.Errorf("the history of in-paid is\n%s", other)
		}
	})
}
