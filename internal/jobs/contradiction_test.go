package jobs_test

import (
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// tell has a notice about a payout come in, and the processor say so when asked.
func (g *gateway) tell(p payment.Payout, id string, state processor.TransferState, returned money.Cents) {
	g.t.Helper()
	g.bank.query = func(b *bank, externalID string) processor.TransferReport {
		return processor.TransferReport{Lookup: processor.Found, State: state, Amount: p.Amount, Returned: returned, Evidence: "statement"}
	}
	g.must(g.flow.RecordNotice(g.t.Context(), bankName, id, "", []byte(p.ExternalID)))
	g.run(g.jobs.ApplyNotices)
}

// What a processor says against its own earlier word moves no money: a person
// looks at it.
func TestContradictionsMoveNothing(t *testing.T) {
	t.Run("failed after paid", func(t *testing.T) {
		each(t, func(t *testing.T, g *gateway) {
			p := g.payout("r", 10_00)
			g.submit()
			g.want(p, payment.PayoutCompleted, payment.StepDone)
			g.payout("other", 20_00) // whose hold could be given back in its place
			g.tell(p, "n", processor.TransferFailed, 0)
			g.want(p, payment.PayoutCompleted, payment.StepDone)
			g.wantBalances(opening-30_00, 20_00)
			g.wantExceptions(store.ExceptionContradiction)
		})
	})
	t.Run("paid after failed", func(t *testing.T) {
		each(t, func(t *testing.T, g *gateway) {
			g.bank.transfer = func(*bank, processor.TransferRequest) processor.TransferAnswer {
				return processor.TransferAnswer{Outcome: processor.Refused, Evidence: "AC03"}
			}
			p := g.payout("r", 10_00)
			g.submit()
			g.want(p, payment.PayoutFailed, payment.StepDone)
			g.tell(p, "n", processor.TransferPaid, 0)
			g.want(p, payment.PayoutFailed, payment.StepDone)
			g.wantBalances(opening, 0)
			g.wantExceptions(store.ExceptionContradiction)
		})
	})
	t.Run("another amount", func(t *testing.T) {
		each(t, func(t *testing.T, g *gateway) {
			g.bank.transfer = func(*bank, processor.TransferRequest) processor.TransferAnswer {
				return processor.TransferAnswer{Outcome: processor.Done, Report: processor.TransferReport{State: processor.TransferPaid, Amount: 10_01}}
			}
			p := g.payout("r", 10_00)
			g.submit()
			g.want(p, payment.PayoutProcessing, payment.StepPerson)
			g.wantBalances(opening-10_00, 10_00)
			g.wantExceptions(store.ExceptionContradiction)
		})
	})
	t.Run("more came back than was sent", func(t *testing.T) {
		each(t, func(t *testing.T, g *gateway) {
			p := g.payout("r", 10_00)
			g.submit()
			g.tell(p, "n", processor.TransferPaid, 10_01)
			g.want(p, payment.PayoutCompleted, payment.StepDone)
			g.wantBalances(opening-10_00, 0)
			g.wantExceptions(store.ExceptionContradiction)
		})
	})
}

// A failure that is told again, by the answer and by notices, gives the money
// back once; what is held for another payout stays held.
func TestFailureToldTwiceReleasesOnce(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		g.bank.transfer = func(*bank, processor.TransferRequest) processor.TransferAnswer {
			return processor.TransferAnswer{Outcome: processor.Refused, Evidence: "AC03"}
		}
		p := g.payout("r", 10_00)
		g.submit()
		g.payout("other", 20_00)
		g.tell(p, "1", processor.TransferFailed, 0)
		g.tell(p, "2", processor.TransferFailed, 0)
		g.want(p, payment.PayoutFailed, payment.StepDone)
		g.wantBalances(opening-20_00, 20_00)
		g.wantEvents(payment.EventPayoutProcessing, payment.EventPayoutFailed)
		g.wantExceptions()
	})
}

// A payout that was sent once is never sent with other contents, whatever has
// become of its row: the processor may know its id by the first ones.
func TestChangedPayoutIsNotSentAgain(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		g.bank.transfer = func(*bank, processor.TransferRequest) processor.TransferAnswer {
			return processor.TransferAnswer{Outcome: processor.NotSent, Cause: errDown}
		}
		p := g.payout("r", 10_00)
		g.submit()
		g.want(p, payment.PayoutProcessing, payment.StepQueued)
		g.damage("UPDATE payouts SET amount = 999 WHERE amount = 1000")
		g.bank.transfer = nil
		g.pass(10 * time.Second)
		g.submit()
		g.want(p, payment.PayoutProcessing, payment.StepPerson)
		g.wantPaid(1, 0)
		g.wantExceptions(store.ExceptionPayoutUnknown)
	})
}

// damage changes the database behind the gateway's back.
func (g *gateway) damage(text string) {
	g.t.Helper()
	driver, address := "pgx", g.options.Database
	if g.engine == "sqlite" {
		driver = "sqlite"
	}
	db, err := sql.Open(driver, address)
	g.must(err)
	result, err := db.ExecContext(g.t.Context(), text)
	g.must(err)
	n, err := result.RowsAffected()
	g.must(errors.Join(err, db.Close()))
	if n == 0 {
		g.t.Fatal("nothing was damaged")
	}
}

// What a payout's receiver sent back is available again, once, however often
// and in however many parts it is told.
func TestReturnedMoneyComesBackOnce(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		p := g.payout("r", 10_00)
		g.submit()
		g.tell(p, "1", processor.TransferPaid, 3_00)
		g.tell(p, "2", processor.TransferPaid, 3_00)
		g.want(p, payment.PayoutCompleted, payment.StepDone)
		g.wantBalances(opening-7_00, 0)
		g.pass(time.Second)
		g.tell(p, "3", processor.TransferPaid, 10_00)
		g.tell(p, "4", processor.TransferPaid, 10_00)
		g.want(p, payment.PayoutReturned, payment.StepDone)
		g.wantBalances(opening, 0)
		g.wantEvents(payment.EventPayoutProcessing, payment.EventPayoutCompleted, payment.EventPayoutReturned, payment.EventPayoutReturned)
	})
}
