package outgoing_test

import (
	"errors"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

// payLost makes the bank pay a payout that the restored database lacks, and restores it.
func payLost(g *coretest.Gateway, reference string, amount money.Cents) {
	g.T.Helper()
	g.Bank.Mu.Lock()
	g.Bank.Pay(processor.TransferRequest{
		ExternalID: g.Store.ExternalID(&g.Merchant, payment.OperationPayout, reference), Amount: amount,
	}, processor.TransferPaid)
	g.Bank.Mu.Unlock()
	g.Execute(rewind)
	g.Heartbeat()
}

// work runs the workers for some minutes.
func work(g *coretest.Gateway) {
	g.T.Helper()
	for range 20 {
		g.Send()
		g.LookUp()
		g.Jump(20 * time.Second)
	}
}

// wantLeft fails if more left the bank than the merchant had.
func wantLeft(g *coretest.Gateway, want money.Cents) {
	g.T.Helper()
	var left money.Cents
	for _, t := range g.Bank.Transfers {
		left += t.Request.Amount
	}
	if left != want || left > coretest.Opening {
		g.T.Errorf("%s left, want %s of %s", left.Decimal(), want.Decimal(), coretest.Opening.Decimal())
	}
}

// wantRequest requests a payout and compares the kind of the refusal; "" is none.
func wantRequest(g *coretest.Gateway, reference string, amount int64, kind problem.Kind) payment.Payout {
	g.T.Helper()
	p, _, err := g.Payouts.Request(g.T.Context(), g.Merchant, coretest.PayoutRequest(reference, amount))
	if kind == "" {
		g.Must(err)
	} else if !problem.Is(err, kind) {
		g.T.Fatalf("request: %v, want %s", err, kind)
	}
	return p
}

// Finding H1: money that left in a past that the backup lacks cannot leave again. New
// payouts wait until the processor's transfers are read, and the missing ones are booked.
func TestMoneyThatLeftBeforeARestoreCannotLeaveAgain(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		known := g.Payout("known", 10_00)
		g.Send()
		payLost(g, "lost", 90_000)
		_, _, err := g.Payouts.Request(t.Context(), g.Merchant, coretest.PayoutRequest("next", 95_00))
		if v := problem.From(err); v.Kind != problem.Unavailable || v.RetryAfter <= 0 {
			t.Fatalf("a payout after the restore: %v", err)
		}
		if again := wantRequest(g, "known", 10_00, ""); again.ID != known.ID {
			t.Error("a repeated request is not answered")
		}
		g.Clear()
		g.WantBalances(90_00, 0)
		g.WantCases(store.CasePayoutFound)
		wantRequest(g, "next", 95_000, problem.InsufficientBalance)
		wantRequest(g, "next", 90_00, "")
		work(g)
		wantLeft(g, coretest.Opening)
		g.WantBalances(0, 0)
		g.WantProven()
	})
}

// A payout that is queued in the backup may have been canceled in the lost past, and its money
// used: it waits while the merchant owes money of found transfers.
func TestQueuedPayoutOfABackupWaitsForTheDebt(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		p := g.Payout("queued", 950_00)
		payLost(g, "lost", 900_00)
		g.Send()
		g.WantPayout(p, payment.PayoutPending, payment.StepQueued) // its account is frozen
		g.Clear()
		g.WantBalances(0, 950_00)
		work(g)
		g.WantPayout(p, payment.PayoutProcessing, payment.StepQueued)
		wantLeft(g, 900_00)
		g.WantProven()
	})
}

// Finding H1: the merchant repeats its request, however late: the payout gets the found
// transfer, and no second one is made.
func TestFoundTransferIsAdoptedByItsRequest(t *testing.T) {
	for name, idempotent := range map[string]bool{"idempotent": true, "not idempotent": false} {
		t.Run(name, func(t *testing.T) {
			coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
				if !idempotent {
					g.Bank.Profiled.Transfer.Repeat = processor.RepeatUnsafe
				}
				payLost(g, "lost", 900_00)
				g.Clear()
				g.Jump(8 * 24 * time.Hour)
				p := wantRequest(g, "lost", 900_00, "")
				g.WantCases()
				g.WantBalances(100_00, 900_00)
				work(g)
				g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
				g.WantBalances(100_00, 0)
				wantLeft(g, 900_00)
				g.ReadFeeds()
				g.WantCases()
				g.WantProven()
			})
		})
	}
}

// Money that had come back when a transfer was found, a part or all of it, is not forgotten if the
// look-up of its payout does not show it yet. Found by simulated seeds.
func TestFoundTransferCameBack(t *testing.T) {
	for returned, want := range map[money.Cents]payment.PayoutStatus{300_00: payment.PayoutCompleted, 900_00: payment.PayoutReturned} {
		t.Run(string(want), func(t *testing.T) {
			coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
				payLost(g, "lost", 900_00)
				g.Bank.Return(g.Store.ExternalID(&g.Merchant, payment.OperationPayout, "lost"), returned)
				g.Clear()
				g.WantBalances(100_00+returned, 0)
				if want == payment.PayoutReturned {
					g.WantCases()
				}
				p := wantRequest(g, "lost", 900_00, "")
				g.Bank.AnswerQuery = func(b *coretest.Bank, externalID string) processor.TransferReport {
					r := b.Report(externalID)
					r.Returned = 0
					return r
				}
				work(g)
				g.WantPayout(p, want, payment.StepDone)
				g.WantBalances(100_00+returned, 0)
				g.WantEvents(payment.EventPayoutProcessing, payment.EventPayoutCompleted, payment.EventPayoutReturned)
				g.WantCases()
				g.WantProven()
			})
		})
	}
}

// While the processor refuses the credentials of its account, a found transfer is not looked up: once they
// are accepted, its money that came back is booked at once, and not a day later.
func TestFoundTransferWaitsForCredentials(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		accounts := suspendableAccounts(g)
		payLost(g, "lost", 900_00)
		lost := g.Bank.Transfers[g.Store.ExternalID(&g.Merchant, payment.OperationPayout, "lost")]
		lost.State = processor.TransferProcessing
		g.Clear()
		work(g)
		g.WantBalances(100_00, 0)
		lost.State = processor.TransferFailed
		accounts.refused, g.Bank.AnswerQuery = true, func(*coretest.Bank, string) processor.TransferReport { return processor.TransferReport{} }
		for range 20 {
			g.Jump(12 * time.Hour)
			g.LookUp()
		}
		accounts.refused, g.Bank.AnswerQuery = false, nil
		g.Jump(time.Minute)
		g.LookUp()
		g.WantBalances(coretest.Opening, 0)
	})
}

// Finding H4: a copy of the disk has its marker with it, and a new container has none, so
// the restore is not recognised. A processor that is not idempotent is looked up before
// every first send.
func TestEveryFirstSendIsPrecededByALookUp(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Bank.Profiled.Transfer.Repeat = processor.RepeatUnsafe
		sent, fresh := g.Payout("sent before the copy was started", 10_00), g.Payout("fresh", 20_00)
		pay(g, sent, processor.TransferPaid)
		work(g)
		g.WantPayout(sent, payment.PayoutCompleted, payment.StepDone)
		g.WantPayout(fresh, payment.PayoutCompleted, payment.StepDone)
		g.WantBank(1, 2)
		if g.Bank.Queries != 2 {
			t.Errorf("looked up %d times", g.Bank.Queries)
		}
		g.WantCases()

		late := g.Payout("looked up, not sent", 30_00)
		g.Send()
		g.LookUp()
		pay(g, late, processor.TransferPaid) // by the process of which this disk is a copy
		g.Jump(time.Hour)
		work(g)
		g.WantPayout(late, payment.PayoutCompleted, payment.StepDone)
		g.WantBank(1, 3)
	})
}

// A copy of the disk may be started while a look-up would still count: a look-up of an earlier
// process does not.
func TestLookUpOfAnEarlierProcessDoesNotCount(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Bank.Profiled.Transfer.Repeat = processor.RepeatUnsafe
		p := g.Payout("looked up, not sent", 30_00)
		g.Send()
		g.LookUp()
		pay(g, p, processor.TransferPaid) // by the process of which this disk is a copy
		g.Pass(10 * time.Second)
		g.Restart(nil)
		work(g)
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		g.WantBank(0, 1)
	})
}

// The transaction that claims compares the epoch: a database that was restored since the
// last heartbeat gives no payout away.
func TestClaimOnARestoredDatabase(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.Payout("r", 10_00)
		g.Execute(rewind)
		if _, err := g.Outgoing.Send(t.Context()); !errors.Is(err, write.ErrRestored) {
			t.Errorf("claim: %v, want ErrRestored", err)
		}
		g.WantPayout(p, payment.PayoutPending, payment.StepQueued)
		g.WantBank(0, 0)
	})
}

// If the processor does not list its transfers, an operator lets the payouts continue.
func TestOperatorClearsAnAccount(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		g.Bank.Unlisted = true
		p := g.Payout("r", 10_00)
		g.Execute(rewind)
		g.Heartbeat()
		g.Jump(24 * time.Hour)
		g.ReadFeeds()
		work(g)
		g.WantPayout(p, payment.PayoutPending, payment.StepQueued)
		wantRequest(g, "next", 10_00, problem.Unavailable)
		g.ClearAccount()
		work(g)
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		wantRequest(g, "next", 10_00, "")
	})
}

// Money of a found transfer that comes back is the merchant's again, once.
func TestFoundTransferComesBack(t *testing.T) {
	for name, fail := range map[string]bool{"returned": false, "failed": true} {
		t.Run(name, func(t *testing.T) {
			coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
				payLost(g, "lost", 900_00)
				g.Clear()
				g.WantBalances(100_00, 0)
				id := g.Store.ExternalID(&g.Merchant, payment.OperationPayout, "lost")
				report := g.Bank.Report(id)
				back := money.Cents(300_00)
				if report.Returned = back; fail {
					report.State, report.Returned, back = processor.TransferFailed, 0, 900_00
				}
				for range 2 {
					known, err := g.Outgoing.RecordNotice(t.Context(), coretest.BankName, id, report, nil)
					g.Must(err)
					if !known {
						t.Error("a found transfer is not known")
					}
					g.WantBalances(100_00+back, 0)
				}
				g.WantCases(store.CasePayoutFound)
				g.WantProven()
				wantRequest(g, "lost", 900_00, "")
				g.WantBalances(100_00, 900_00)
				g.WantCases()
				g.WantProven()
			})
		})
	}
}

// A found transfer that was in work when it was listed is looked up until it is final: its
// money is the merchant's again if it fails, also if no notice says so.
func TestFoundTransferFailsLater(t *testing.T) {
	for name, state := range map[string]processor.TransferState{"failed": processor.TransferFailed, "paid": processor.TransferPaid} {
		t.Run(name, func(t *testing.T) {
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				payLost(g, "lost", 900_00)
				lost := g.Bank.Transfers[g.Store.ExternalID(&g.Merchant, payment.OperationPayout, "lost")]
				lost.State = processor.TransferProcessing
				g.Clear()
				work(g)
				g.WantBalances(100_00, 0)
				g.Bank.Mu.Lock()
				lost.State = state
				g.Bank.Mu.Unlock()
				other := g.Second()
				for range 3 {
					g.Jump(24 * time.Hour)
					other.Heartbeat()
					g.LookUp()
					other.LookUp()
				}
				if state == processor.TransferFailed {
					g.WantBalances(coretest.Opening, 0)
				} else {
					g.WantBalances(100_00, 0)
				}
				asked := g.Bank.Queries
				g.Jump(48 * time.Hour)
				g.LookUp()
				if g.Bank.Queries != asked {
					t.Error("a final transfer is looked up again")
				}
				g.WantProven()
			})
		})
	}
}

// Finding H4: a copy of the disk has its marker with it, so nothing shows that the database
// is older than its processor's account. The first transfer that no payout has proves it:
// payouts wait until the list is read, and a request that is repeated late adopts its
// transfer instead of taking the money a second time.
func TestFoundTransferProvesAnOlderCopy(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		g.ReadFeeds()
		g.Bank.Mu.Lock()
		g.Bank.Pay(processor.TransferRequest{
			ExternalID: g.Store.ExternalID(&g.Merchant, payment.OperationPayout, "lost"), Amount: 900_00,
		}, processor.TransferPaid)
		g.Bank.Mu.Unlock()
		g.Pass(time.Minute)
		g.ReadFeeds()
		g.WantBalances(100_00, 0)
		g.WantCases(store.CasePayoutFound)
		wantRequest(g, "next", 10_00, problem.Unavailable)
		g.Clear()
		p := wantRequest(g, "lost", 900_00, "")
		g.WantBalances(100_00, 900_00)
		work(g)
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		g.WantBalances(100_00, 0)
		wantLeft(g, 900_00)
		g.WantCases()
		g.WantProven()
	})
}
