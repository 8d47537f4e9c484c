package review_test

import (
	"errors"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// openOf are the open cases of a kind about a subject, by their cause.
func (d *desk) openOf(kind store.CaseKind) (list []store.Case) {
	d.T.Helper()
	all, err := d.Store.OpenCases(d.T.Context(), 50)
	d.Must(err)
	for _, v := range all {
		if v.Kind == kind {
			list = append(list, v)
		}
	}
	return list
}

// A part of a refund that waits for the decision of two people (other_part) is not sent because one
// person says that its row was repaired.
func TestRetryDamagedRefundInReview(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		r := g.Refund(g.PaidPayin("p", 40_00, 60_00), "r", 100_00)
		g.Bank.RefundAtPanel(r.ExternalID, "before", 99_00) // the processor knows it with other parts
		g.Execute("UPDATE refunds SET failure = '{' WHERE reference_id = 'r'")
		g.Send()
		damaged := d.openOf(store.CaseDamaged)
		if len(damaged) != 2 {
			t.Fatalf("%d damaged parts, want 2: %+v", len(damaged), damaged)
		}
		g.Execute("UPDATE refunds SET failure = '' WHERE reference_id = 'r'")
		first, second := damaged[0], damaged[1]
		if first.Params["externalId"] != r.ExternalID {
			first, second = second, first
		}
		work := func() {
			for range 4 {
				g.Jump(2 * time.Minute)
				g.LookUp()
				g.Send()
			}
		}
		d.resolve(request(&first, store.ResolvedRetry))
		work()
		unknown := d.openOf(store.CaseRefundUnknown)
		if len(unknown) != 1 || unknown[0].Params["cause"] != string(store.ReasonOtherAmount) {
			t.Fatalf("cases %+v, want one of another amount", unknown)
		}
		d.agree(&unknown[0], store.ResolvedPaid) // 99.00 left under this id: it covers the first part
		work()
		unknown = d.openOf(store.CaseRefundUnknown)
		if len(unknown) != 1 || unknown[0].Params["cause"] != string(store.ReasonOtherPart) {
			t.Fatalf("cases %+v, want one of the other part", unknown)
		}
		calls := len(g.Bank.Refunds.Calls)
		d.resolve(request(&second, store.ResolvedRetry)) // by ana alone
		work()
		if n := len(g.Bank.Refunds.Calls) - calls; n != 0 {
			t.Errorf("%d requests after the retry of one person: %+v", n, g.Bank.Refunds.Calls[calls:])
		}
		if got := d.openOf(store.CaseRefundUnknown); len(got) != 1 {
			t.Errorf("the case for two people is closed: %+v", got)
		}
	})
}

// Rule 12: a payout from before a restore is looked up before it is sent, however late: also one whose
// row was damaged and is repaired more than a week after the restore.
func TestRepairedPayoutIsLookedUpAfterARestore(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		g.Bank.Unlisted = true // as if the entry could not be booked, which is only logged for a damaged row
		p := g.Payout("sent in the lost past", 10_00)
		g.Bank.Mu.Lock()
		g.Bank.AnswerTransfer = coretest.Unknown
		g.Bank.Mu.Unlock()
		g.Execute("UPDATE payouts SET failure = '{' WHERE external_id = '" + p.ExternalID + "'")
		g.Marker.Epoch += 1000
		g.Must(g.Cluster.Join(t.Context(), g.Marker.Mark, false))
		g.Heartbeat()
		g.ClearAccount()
		g.Send()
		v := d.only(store.CaseDamaged)
		for range 8 {
			g.Jump(24 * time.Hour)
			g.Heartbeat()
		}
		g.Execute("UPDATE payouts SET failure = '' WHERE external_id = '" + p.ExternalID + "'")
		d.resolve(request(&v, store.ResolvedRetry))
		queries := g.Bank.Queries
		g.Send()
		if n := len(g.Bank.Calls); n != 0 {
			t.Errorf("it was sent %d times after %d look-ups", n, g.Bank.Queries-queries)
		}
		g.WantPayout(p, payment.PayoutProcessing, payment.StepUnknown)
	})
}

// Two people end a payout whose row is damaged. It may have two cases about that, of the index and of
// the executor: none stays that nobody can close.
func TestDamagedPayoutWithTwoCases(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		p := d.Payout("r", 10_00)
		d.damagedCase(p) // as the index opens it
		d.Execute("UPDATE payouts SET beneficiary = substr(beneficiary, 2) WHERE external_id = '" + p.ExternalID + "'")
		d.Send()
		d.Jump(time.Minute)
		list := d.openOf(store.CaseDamaged)
		d.agree(&list[0], store.ResolvedRelease)
		for _, v := range d.openOf(store.CaseDamaged) {
			t.Errorf("still open: %+v", v)
		}
	})
}

// A payout whose row cannot be decoded hides no other of the list (09b84a2 does that for one that cannot
// be decrypted).
func TestUndecodablePayoutHidesNoOther(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		bad := g.Payout("bad", 10_00)
		g.Payout("good", 10_00)
		g.Execute("UPDATE payouts SET failure = '{' WHERE external_id = '" + bad.ExternalID + "'")
		list, err := g.Store.Payouts(t.Context(), bad.Merchant, store.Filter{Limit: 10})
		if err != nil || len(list) != 2 {
			t.Errorf("%d payouts, %v", len(list), err)
		}
	})
}

// Look-ups of a part of a refund that got no answer continue once its damaged row is repaired: its case
// about that parks nothing.
func TestRepairedRefundWithoutAnAnswerIsLookedUp(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		r := g.Refund(g.PaidPayin("p", 100_00), "r", 40_00)
		g.Bank.Refunds.Answer = func(*coretest.Bank, processor.RefundRequest) processor.TransferAnswer {
			return processor.TransferAnswer{Outcome: processor.Unknown}
		}
		g.Bank.Refunds.AnswerQuery = func(*coretest.Bank, string) processor.TransferReport {
			return processor.TransferReport{Cause: errors.New("no answer")}
		}
		for range 12 {
			g.Jump(24 * time.Hour)
			g.LookUp()
			g.Send()
		}
		if list := d.openOf(store.CaseRefundUnknown); len(list) != 1 || list[0].Params["cause"] != string(store.ReasonNoAnswer) {
			t.Fatalf("cases %+v, want one without an answer", list)
		}
		g.Execute("UPDATE refunds SET failure = '{' WHERE reference_id = 'r'")
		for range 4 {
			g.Jump(30 * time.Hour)
			g.LookUp()
			g.Send()
		}
		damaged := d.openOf(store.CaseDamaged)
		if len(damaged) != 1 {
			t.Fatalf("cases %+v, want one of a damaged row", damaged)
		}
		g.Execute("UPDATE refunds SET failure = '' WHERE reference_id = 'r'")
		g.Bank.Refunds.Answer, g.Bank.Refunds.AnswerQuery = nil, nil
		d.resolve(request(&damaged[0], store.ResolvedRetry))
		for range 4 {
			g.Jump(2 * time.Hour)
			g.LookUp()
			g.Send()
		}
		g.WantRefund(r, payment.RefundCompleted, 40_00, payment.PayinPartiallyRefunded, 40_00)
		g.WantCases()
	})
}
