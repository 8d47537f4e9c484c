package notice_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/review"
	"github.com/porteira/porteira/internal/store"
)

// completed is a payout that its processor has paid.
func completed(g *coretest.Gateway, reference string, amount int64) payment.Payout {
	g.T.Helper()
	p := g.Payout(reference, amount)
	g.Send()
	return g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
}

// Money of a payout that is returned is found in the bank's feed if no notice reports
// it, a part first and then the rest, and booked once.
func TestLostNoticeOfReturn(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := completed(g, "r", 10_00)
		g.Bank.Return(p.ExternalID, 4_00)
		g.ReadFeeds()
		g.WantBalances(coretest.Opening-6_00, 0)
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		g.Bank.Return(p.ExternalID, 10_00)
		g.Notify("n", p.ExternalID) // this one has a notice as well
		g.Apply()
		queries := g.Bank.Queries
		g.ReadFeeds()
		if g.Bank.Queries != queries {
			t.Error("a change that is booked led to a query")
		}
		g.WantPayout(p, payment.PayoutReturned, payment.StepDone)
		g.WantBalances(coretest.Opening, 0)
		g.WantCases()
	})
}

// An answer that is older than the feed changes nothing, and the query is
// repeated.
func TestStaleAnswerToReturn(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := completed(g, "r", 10_00)
		before := g.Bank.Report(p.ExternalID)
		g.Bank.Return(p.ExternalID, 10_00)
		g.Bank.AnswerQuery = func(*coretest.Bank, string) processor.TransferReport { return before }
		g.ReadFeeds()
		for range 3 {
			g.Apply()
			g.Pass(time.Second)
		}
		g.WantBalances(coretest.Opening-10_00, 0)
		g.Bank.AnswerQuery = nil
		g.Pass(10 * time.Second)
		g.Apply()
		g.WantPayout(p, payment.PayoutReturned, payment.StepDone)
		g.WantBalances(coretest.Opening, 0)
		g.WantCases()
	})
}

// Finding M13: a return that the bank lists and never confirms gets a case, and delays no
// other.
func TestReturnNeverConfirmed(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		first, other, last := completed(g, "first", 10_00), completed(g, "other", 10_00), completed(g, "last", 5_00)
		g.Bank.Return(first.ExternalID, 10_00) // on one page with the next
		g.Bank.Return(other.ExternalID, 10_00)
		g.Bank.Return(last.ExternalID, 5_00)
		g.Bank.Transfers[first.ExternalID].Returned, g.Bank.Transfers[other.ExternalID].Returned = 0, 0
		g.ReadFeeds()
		g.WantPayout(last, payment.PayoutReturned, payment.StepDone) // at once
		for range 20 {
			g.Apply()
			g.Jump(30 * time.Minute)
			g.ReadFeeds()
		}
		g.WantPayout(first, payment.PayoutCompleted, payment.StepDone)
		g.WantCases(store.CaseContradiction, store.CaseContradiction)
		list, err := g.Store.OpenCases(t.Context(), 10)
		g.Must(err)
		i := slices.IndexFunc(list, func(v store.Case) bool { return v.Subject == first.ID }) // the two end in any order
		if v := list[max(i, 0)]; v.Subject != first.ID || v.Merchant != g.Merchant.ID || v.Amount != 10_00 || v.Params["reason"] != "unconfirmed_change" || v.Params["externalId"] != first.ExternalID {
			t.Errorf("case %+v", v)
		}
	})
}

// A listed dispute is not given up while the processor cannot show the disputes of its charge: the
// answer says so, and its payments are booked.
func TestDisputeOfAnIncompleteAnswer(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.Payin(g.Merchant, "p", "")
		g.Bank.Receive(p.ExternalID, "p 1", p.Amount)
		g.Bank.Dispute(p.ExternalID, "d", p.Amount, processor.DisputeOpen)
		shown := g.Bank.Charges[p.ExternalID].Disputes
		g.Bank.Charges[p.ExternalID].Disputes, g.Bank.Charges[p.ExternalID].Incomplete = nil, errors.New("the list of disputes is down")
		g.ReadFeeds()
		g.WantPayin(p, payment.PayinPaid, p.Amount, 1)
		for range 24 {
			g.Apply()
			g.Jump(time.Hour)
		}
		g.WantCases()
		g.Bank.Charges[p.ExternalID].Disputes, g.Bank.Charges[p.ExternalID].Incomplete = shown, nil
		g.Jump(3 * time.Hour)
		g.Apply()
		g.WantPayin(p, payment.PayinDisputed, p.Amount, 1)
	})
}

// A processor that does not answer for a day does not make a listed return wrong: it is booked
// once it answers. A case about one that was not confirmed in time can be retried.
func TestReturnListedBeforeAnOutage(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p, early := completed(g, "r", 10_00), completed(g, "early", 4_00)
		g.Bank.Return(p.ExternalID, 10_00)
		g.Bank.Return(early.ExternalID, 4_00)
		stale := g.Bank.Report(early.ExternalID)
		stale.Returned = 0
		lagging := func(_ *coretest.Bank, externalID string) processor.TransferReport {
			if externalID == early.ExternalID {
				return stale
			}
			return processor.TransferReport{Cause: errors.New("connection refused")}
		}
		g.Bank.AnswerQuery = lagging
		g.ReadFeeds()
		for range 24 {
			g.Apply()
			g.Jump(time.Hour)
		}
		g.WantCases(store.CaseContradiction) // early: the bank has answered
		g.Bank.AnswerQuery = nil
		g.Jump(3 * time.Hour)
		g.Apply()
		g.WantPayout(p, payment.PayoutReturned, payment.StepDone)
		g.WantPayout(early, payment.PayoutCompleted, payment.StepDone)
		list, err := g.Store.OpenCases(t.Context(), 10)
		g.Must(err)
		reviews := g.Reviews
		_, err = reviews.Resolve(t.Context(), review.Request{Case: list[0].ID, How: store.ResolvedRetry, Actor: "operator:ana", Reason: "the bank shows it"})
		g.Must(err)
		g.Apply()
		g.WantPayout(early, payment.PayoutReturned, payment.StepDone)
		g.WantBalances(coretest.Opening, 0)
		g.WantCases()
	})
}

// An outage that lasts longer than the retries gets a case, which is retried after it.
func TestOutageBeyondTheRetries(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := completed(g, "r", 10_00)
		g.Bank.Return(p.ExternalID, 10_00)
		g.Bank.AnswerQuery = func(*coretest.Bank, string) processor.TransferReport {
			return processor.TransferReport{Cause: errors.New("connection refused")}
		}
		g.ReadFeeds()
		for range 50 {
			g.Apply()
			g.WantCases()
			g.Jump(70 * time.Minute)
		}
		for range 50 {
			g.Jump(3 * time.Hour)
			g.Apply()
		}
		g.WantCases(store.CaseContradiction)
	})
}

// A listed dispute of an order of which nothing is left to dispute gets a case, and leads to
// one query.
func TestListedDisputeWithACase(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.Payin(g.Merchant, "r", "")
		g.Bank.Receive(p.ExternalID, "pay-1", 100_00)
		g.ReadFeeds()
		g.Bank.Dispute(p.ExternalID, "d-1", 100_00, processor.DisputeOpen)
		g.Bank.Dispute(p.ExternalID, "d-2", 100_00, processor.DisputeOpen)
		queries := g.Bank.Queries
		g.ReadFeeds()
		if n := g.Bank.Queries - queries; n > 2 {
			t.Errorf("%d queries about two disputes", n)
		}
		g.WantPayin(p, payment.PayinDisputed, 100_00, 1)
		g.WantCases(store.CaseDispute)
	})
}

// A dispute without a notice is found, and so is its end.
func TestLostNoticeOfDispute(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.Payin(g.Merchant, "r", "")
		g.Bank.Receive(p.ExternalID, "pay-1", 100_00)
		g.ReadFeeds()
		for _, move := range []struct {
			state processor.DisputeState
			want  payment.PayinStatus
		}{
			{processor.DisputeOpen, payment.PayinDisputed},
			{processor.DisputeLost, payment.PayinChargeback},
			{processor.DisputeReversed, payment.PayinPaid},
		} {
			g.Bank.Dispute(p.ExternalID, "d-1", 100_00, move.state)
			g.ReadFeeds()
			g.WantPayin(p, move.want, 100_00, 1)
		}
		g.WantBalances(coretest.Opening+100_00, 0)
		queries := g.Bank.Queries
		forgetCursor(g, processor.FeedChanges)
		g.ReadFeeds()
		if g.Bank.Queries != queries {
			t.Error("a change that is booked led to a query")
		}
		g.WantPayin(p, payment.PayinPaid, 100_00, 1)
	})
}
