package outgoing_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/review"
	"github.com/porteira/porteira/internal/store"
)

// damage makes the sealed beneficiary of a payout unreadable.
func damage(g *coretest.Gateway, p payment.Payout) {
	g.T.Helper()
	g.Damage("payouts", "beneficiary", "external_id = '"+p.ExternalID+"'")
}

// A payout that cannot be opened gets a case, and delays no other payout of any merchant.
func TestSendParksADamagedPayout(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		bad := g.Payout("bad", 10_00)
		beside := g.Payout("beside", 10_00)
		damage(g, bad)
		g.Send()
		g.WantPayout(beside, payment.PayoutCompleted, payment.StepDone)
		g.WantBank(1, 1)
		g.WantCases(store.CaseDamaged)
		g.Pass(10 * time.Second)
		g.Send()
		g.WantCases(store.CaseDamaged)
		g.WantBalances(coretest.Opening-20_00, 10_00) // its money stays held
	})
}

// The same for a payout with another value that cannot be decoded. Its columns are not changed, so
// that people can repair them.
func TestLookUpParksADamagedPayout(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		g.Bank.AnswerTransfer = func(b *coretest.Bank, r processor.TransferRequest) processor.TransferAnswer {
			b.Pay(r, processor.TransferPaid)
			return processor.TransferAnswer{}
		}
		bad := g.Payout("bad", 10_00)
		beside := g.Payout("beside", 10_00)
		g.Send()
		damage(g, bad)
		g.Pass(2 * time.Second)
		g.LookUp()
		g.WantPayout(beside, payment.PayoutCompleted, payment.StepDone)
		g.WantCases(store.CaseDamaged)
		g.WantBalances(coretest.Opening-20_00, 10_00)
	})
}

// The same for a payout one of whose other values cannot be decoded. Its columns are not changed, so
// that they can be repaired.
func TestSendParksAPayoutThatCannotBeDecoded(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		bad := g.Payout("bad", 10_00)
		beside := g.Payout("beside", 10_00)
		g.Execute("UPDATE payouts SET failure = '{' WHERE external_id = '" + bad.ExternalID + "'")
		g.Send()
		g.WantPayout(beside, payment.PayoutCompleted, payment.StepDone)
		g.WantBank(1, 1)
		g.WantCases(store.CaseDamaged)
		if _, err := g.Store.Payout(t.Context(), bad.Merchant, bad.ID); err == nil {
			t.Error("the damage is gone")
		}
		g.Execute("UPDATE payouts SET failure = '' WHERE external_id = '" + bad.ExternalID + "'")
		g.WantPayout(bad, payment.PayoutPending, payment.StepReview)
	})
}

// A payout in flight whose amount was changed in the database is ended by no answer, look-up or
// notice: the changed amount would move. Once the row is right again, the payout goes on.
func TestForgedPayoutInFlightIsParked(t *testing.T) {
	unknown, failed := processor.TransferAnswer{}, processor.TransferReport{Lookup: processor.Found, State: processor.TransferFailed}
	for name, of := range map[string]struct {
		answer processor.TransferAnswer
		end    func(g *coretest.Gateway, p payment.Payout)
	}{
		"refusal": {refused, func(*coretest.Gateway, payment.Payout) {}},
		"answer":  {processor.TransferAnswer{Outcome: processor.Done, Report: processor.TransferReport{State: processor.TransferPaid, EndToEndID: "E1"}}, func(*coretest.Gateway, payment.Payout) {}},
		"look-up": {unknown, func(g *coretest.Gateway, _ payment.Payout) {
			g.Bank.AnswerQuery = func(*coretest.Bank, string) processor.TransferReport { return failed }
			g.Pass(2 * time.Second)
			g.LookUp()
		}},
		"notice": {unknown, func(g *coretest.Gateway, p payment.Payout) {
			_, err := g.Outgoing.RecordNotice(g.T.Context(), coretest.BankName, p.ExternalID, failed, nil)
			g.Must(err)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
				p := g.Payout("changed", 10_00)
				s := claim(g)
				set := func(amount string) {
					g.Execute("UPDATE payouts SET amount = " + amount + " WHERE external_id = '" + p.ExternalID + "'")
				}
				set("500")
				record(g, s, of.answer)
				of.end(g, p)
				g.WantPayout(p, payment.PayoutProcessing, payment.StepReview)
				g.WantCases(store.CaseDamaged)
				g.WantBalances(coretest.Opening-10_00, 10_00)
				set("1000")
				g.Bank.AnswerQuery = func(*coretest.Bank, string) processor.TransferReport { return failed }
				g.Must(retryCase(g))
				g.Jump(2 * time.Minute)
				g.LookUp()
				g.WantPayout(p, payment.PayoutFailed, payment.StepDone)
				g.WantBalances(coretest.Opening, 0)
				g.WantProven()
			})
		})
	}
}

// damagedRefund makes the row of a refund, or of its part, unreadable.
var damagedRefund = []string{"UPDATE refunds SET failure = '{'", "UPDATE refund_parts SET taken_from = '{'"}

// A refund with a row, or with a part, that cannot be decoded gets a case and delays no other
// refund of the account. After the repair a person lets it go on, with a look-up.
func TestSendParksADamagedRefund(t *testing.T) {
	for _, damage := range damagedRefund {
		t.Run(damage, func(t *testing.T) {
			coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
				bad := g.Refund(g.PaidPayin("bad", 100_00), "bad", 100_00)
				beside := g.Refund(g.PaidPayin("beside", 100_00), "beside", 100_00)
				g.Execute(damage + refundRow(damage, bad))
				g.Send()
				g.WantRefund(beside, payment.RefundCompleted, 100_00, payment.PayinRefunded, 100_00)
				g.WantCases(store.CaseDamaged)
				g.Pass(10 * time.Second)
				g.Send()
				g.WantCases(store.CaseDamaged)
				wantContinued(g, damage, bad)
			})
		})
	}
}

// The same for a part that must be looked up.
func TestLookUpParksADamagedRefund(t *testing.T) {
	for _, damage := range damagedRefund {
		t.Run(damage, func(t *testing.T) {
			coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
				g.Bank.Refunds.Answer = func(*coretest.Bank, processor.RefundRequest) processor.TransferAnswer {
					return processor.TransferAnswer{Cause: errors.New("timeout")}
				}
				bad := g.Refund(g.PaidPayin("bad", 100_00), "bad", 100_00)
				beside := g.Refund(g.PaidPayin("beside", 100_00), "beside", 100_00)
				g.Send()
				g.Bank.Refunds.Answer = nil
				g.Execute(damage + refundRow(damage, bad))
				work := func() { g.Jump(2 * time.Minute); g.LookUp(); g.Send() }
				work()
				work()
				g.WantRefund(beside, payment.RefundCompleted, 100_00, payment.PayinRefunded, 100_00)
				g.WantCases(store.CaseDamaged)
				wantContinued(g, damage, bad)
			})
		})
	}
}

// refundRow is the condition of a statement about the row of a refund.
func refundRow(statement string, r payment.Refund) string {
	if strings.Contains(statement, "refund_parts") {
		return " WHERE external_id = '" + r.ExternalID + "'"
	}
	return " WHERE reference_id = '" + r.ReferenceID + "'"
}

// wantContinued repairs a refund, and checks that it is completed after its case is resolved.
func wantContinued(g *coretest.Gateway, damage string, r payment.Refund) {
	g.T.Helper()
	if retryCase(g) == nil {
		g.T.Error("a damaged row is processed again")
	}
	g.Execute(strings.Replace(damage, "'{'", "''", 1) + refundRow(damage, r))
	g.Must(retryCase(g))
	g.Jump(2 * time.Minute)
	g.LookUp()
	g.Send()
	g.WantRefund(r, payment.RefundCompleted, r.Amount, payment.PayinRefunded, r.Amount)
	g.WantCases()
	g.WantProven()
}

// retryCase resolves the only case: its row was repaired.
func retryCase(g *coretest.Gateway) error {
	list, err := g.Store.OpenCases(g.T.Context(), 10)
	g.Must(err)
	reviews := g.Reviews
	_, err = reviews.Resolve(g.T.Context(), review.Request{Case: list[0].ID, How: store.ResolvedRetry, Actor: "operator:ana", Reason: "repaired"})
	return err
}
