package notice_test

import (
	"slices"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/review"
	"github.com/porteira/porteira/internal/store"
)

// decide resolves a case by one person or more.
func decide(g *coretest.Gateway, v store.Case, how store.Resolution, actors ...actor.Actor) {
	g.T.Helper()
	reviews := review.New(review.Options{Store: g.Store, Writer: g.Writer, Env: g.Env, Processors: g.Outgoing.Processors,
		Links: func(*payment.Payin) payment.Links { return payment.Links{} }})
	for _, by := range actors {
		_, err := reviews.Resolve(g.T.Context(), review.Request{Case: v.ID, How: how, Actor: by, Reason: "compared", Evidence: "statement"})
		g.Must(err)
	}
}

// onlyCase is the one open case of a kind.
func onlyCase(g *coretest.Gateway, kind store.CaseKind) store.Case {
	g.T.Helper()
	list, err := g.Store.OpenCases(g.T.Context(), 10)
	g.Must(err)
	list = slices.DeleteFunc(list, func(v store.Case) bool { return v.Kind != kind })
	if len(list) != 1 {
		g.T.Fatalf("cases %+v, want one %s", list, kind)
	}
	return list[0]
}

// Two people release a damaged payout, and the processor then lists its transfer as paid: the merchant
// can spend the money again, so its payouts are stopped by a case.
func TestDamagedPayoutIsPaidAfterItsRelease(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Bank.AnswerTransfer = coretest.Unknown
		p := g.Payout("r", 10_00)
		g.Send()
		g.Bank.AnswerTransfer = nil
		g.Damage("payouts", "beneficiary", "external_id = '"+p.ExternalID+"'")
		g.Pass(10 * time.Second)
		g.LookUp()
		g.Jump(2 * time.Minute)
		g.ReadFeeds()
		decide(g, onlyCase(g, store.CaseDamaged), store.ResolvedRelease, "operator:ana", "operator:bia")
		g.WantBalances(coretest.Opening, 0)
		g.Bank.Mu.Lock()
		g.Bank.Pay(processor.TransferRequest{ExternalID: p.ExternalID, Amount: 10_00}, processor.TransferPaid)
		g.Bank.Mu.Unlock()
		for range 12 {
			g.Jump(3 * time.Hour)
			g.ReadFeeds()
			g.Apply()
			g.LookUp()
		}
		g.WantReason(store.CaseContradiction, store.ReasonPaidAfterRelease)
	})
}

// As above with another amount, at a processor that is not idempotent: the account's payouts are stopped
// too, as for a row that is not damaged.
func TestDamagedPayoutIsPaidAfterItsReleaseWithAnotherAmount(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Bank.AnswerTransfer = coretest.Unknown
		p := g.Payout("r", 10_00)
		g.Send()
		g.Bank.AnswerTransfer = nil
		g.Bank.Profiled.Transfer.Repeat = processor.RepeatUnsafe // after the first send, which needs a look-up else
		g.Damage("payouts", "beneficiary", "external_id = '"+p.ExternalID+"'")
		g.Pass(10 * time.Second)
		g.LookUp()
		g.Jump(2 * time.Minute)
		decide(g, onlyCase(g, store.CaseDamaged), store.ResolvedRelease, "operator:ana", "operator:bia")
		g.Bank.Mu.Lock()
		g.Bank.Pay(processor.TransferRequest{ExternalID: p.ExternalID, Amount: 20_00}, processor.TransferPaid)
		g.Bank.Mu.Unlock()
		g.Jump(3 * time.Hour)
		g.ReadFeeds()
		if v := onlyCase(g, store.CaseContradiction); v.Amount != 20_00 || v.StopsAccount != coretest.BankName {
			t.Errorf("case %+v", v)
		}
	})
}

// After a restore an account is not cleared, or a case is opened, while a listed transfer of one of our
// payouts cannot be booked because the payout's row is damaged.
func TestListedTransferOfADamagedPayoutAfterARestore(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.Payout("sent in the lost past", 10_00)
		g.Bank.Mu.Lock()
		g.Bank.Pay(processor.TransferRequest{ExternalID: p.ExternalID, Amount: 10_00}, processor.TransferPaid)
		g.Bank.Mu.Unlock()
		g.Execute("UPDATE payouts SET failure = '{' WHERE external_id = '" + p.ExternalID + "'")
		g.Marker.Epoch += 1000
		g.Must(g.Cluster.Join(t.Context(), g.Marker.Mark, false))
		g.Heartbeat()
		for range 5 {
			g.Jump(10 * time.Minute)
			g.ReadFeeds()
			g.Heartbeat()
		}
		if v := onlyCase(g, store.CaseFeedEntry); !g.Node.Frozen(coretest.BankName) {
			t.Errorf("the account is cleared although %v is not booked", v.Params)
		}
		g.Send()
		g.Execute("UPDATE payouts SET failure = '' WHERE external_id = '" + p.ExternalID + "'")
		decide(g, onlyCase(g, store.CaseFeedEntry), store.ResolvedRetry, "operator:ana")
		for range 3 {
			g.Jump(10 * time.Minute)
			g.ReadFeeds()
			g.Heartbeat()
			g.Send()
			g.LookUp()
		}
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		if n := len(g.Bank.Calls); n != 0 || g.Node.Frozen(coretest.BankName) {
			t.Errorf("the payout, which the processor has listed as paid, was sent %d times", n)
		}
		g.WantCases()
		g.WantProven()
	})
}
