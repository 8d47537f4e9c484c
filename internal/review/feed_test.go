package review_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// restored is a gateway after a restore, whose backup lacks a transfer of 300.00, of which
// the bank lists an invalid entry, and one of 500.00 behind it.
func (d *desk) restored(entry processor.Unreadable) (lost string) {
	d.T.Helper()
	d.Bank.Unreadable = map[string]*processor.Unreadable{}
	pay := func(reference string, amount money.Cents) string {
		id := d.Store.ExternalID(&d.Merchant, payment.OperationPayout, reference)
		d.Bank.Mu.Lock()
		defer d.Bank.Mu.Unlock()
		d.Bank.Pay(processor.TransferRequest{ExternalID: id, Amount: amount}, processor.TransferPaid)
		return id
	}
	lost = pay("lost", 300_00)
	d.Bank.Unreadable[lost] = &entry
	pay("lost 2", 500_00)
	d.Execute("UPDATE installation SET epoch = epoch - 3")
	d.Heartbeat()
	d.read()
	return lost
}

// read reads the lists several times beyond the quiet period.
func (d *desk) read() {
	d.T.Helper()
	for range 3 {
		d.Jump(2 * time.Minute)
		d.ReadFeeds()
	}
	d.Heartbeat()
}

// caseOf is the only open case of a kind, beside others.
func (d *desk) caseOf(kind store.CaseKind) store.Case {
	d.T.Helper()
	var of []store.Case
	list, err := d.Store.OpenCases(d.T.Context(), 10)
	d.Must(err)
	for _, v := range list {
		if v.Kind == kind {
			of = append(of, v)
		}
	}
	if len(of) != 1 {
		d.T.Fatalf("cases %+v, want one %s", list, kind)
	}
	return of[0]
}

// An invalid entry of the list of transfers stops no other, and has one case. If it may be a
// transfer of ours, payouts wait after a restore until the case is resolved.
func TestUnreadableTransferKeepsTheAccountFrozen(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		lost := d.restored(processor.Unreadable{ID: "1", Cause: processor.InvalidAmount})
		d.wantBorne(500_00, 0, 0)
		v := d.caseOf(store.CaseFeedEntry)
		if v.Params["cause"] != "invalid_amount" {
			t.Errorf("the case has no code of its cause: %v", v.Params)
		}
		wantFrozen(d, true)

		d.resolve(request(&v, store.ResolvedRetry)) // too early
		d.read()
		again := d.caseOf(store.CaseFeedEntry)
		if again.ID == v.ID {
			t.Error("the entry has no new case")
		}
		wantFrozen(d, true)

		delete(d.Bank.Unreadable, lost)
		d.Bank.OnRead = func() { // its cursor is about to move
			d.Bank.OnRead = nil
			d.refused(request(&again, store.ResolvedRetry), problem.InvalidState)
		}
		d.FeedsDue()
		d.read()
		d.resolve(request(&again, store.ResolvedRetry))
		d.read()
		d.wantBorne(200_00, 0, 0)
		wantFrozen(d, false)
		d.WantCases(store.CasePayoutFound, store.CasePayoutFound)
		d.WantProven()
	})
}

// Without a restore the payouts go on, and the list is read again from the entry.
func TestUnreadableTransferIsReadAgain(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		d.ReadFeeds()
		p := d.Payout("r", 60_00)
		d.Bank.Unreadable = map[string]*processor.Unreadable{p.ExternalID: {ID: "1", Cause: "no amount"}}
		d.Bank.Mu.Lock()
		d.Bank.Pay(processor.TransferRequest{ExternalID: p.ExternalID, Amount: p.Amount}, processor.TransferPaid) // by a process of which this disk is a copy
		d.Bank.Mu.Unlock()
		d.read()
		v := d.only(store.CaseFeedEntry)
		wantFrozen(d, false)
		delete(d.Bank.Unreadable, p.ExternalID)
		d.resolve(request(&v, store.ResolvedRetry))
		d.read()
		d.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		d.WantCases()
	})
}

// A person may decide that the entry is nothing of ours: it gets no case again.
func TestUnreadableTransferIsDismissed(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		d.restored(processor.Unreadable{ID: "1", Cause: "no amount"})
		v := d.caseOf(store.CaseFeedEntry)
		d.resolve(request(&v, store.ResolvedDismiss))
		d.Execute("UPDATE feeds SET cursor = '' WHERE feed = 'transfers'") // its list overlaps
		d.read()
		wantFrozen(d, false)
		d.WantCases(store.CasePayoutFound)
	})
}

// An invalid entry with the id of another program concerns nobody here.
func TestUnreadableTransferOfAnotherProgram(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		d.restored(processor.Unreadable{ID: "1", ExternalID: "their-id", Cause: "no amount"})
		wantFrozen(d, false)
		d.WantCases(store.CasePayoutFound)
	})
}

// A listed transfer of ours with an impossible amount is such an entry too.
func TestTransferWithAnInvalidAmount(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		for _, amount := range []money.Cents{0, -1} {
			d := newDesk(g.For(t))
			lost := d.Store.ExternalID(&d.Merchant, payment.OperationPayout, "lost")
			d.Bank.Mu.Lock()
			d.Bank.Pay(processor.TransferRequest{ExternalID: lost, Amount: amount}, processor.TransferPaid)
			d.Bank.Mu.Unlock()
			d.read()
			v := d.only(store.CaseFeedEntry)
			d.resolve(request(&v, store.ResolvedDismiss))
		}
	})
}

// unreadablePayments is a payment of each of n pay-ins, and the cases about those whose entries
// in the list of payments are invalid, oldest first.
func (d *desk) unreadablePayments(n int, invalid ...int) (payins []payment.Payin, cases []store.Case) {
	d.T.Helper()
	d.ReadFeeds()
	d.Bank.Unreadable = map[string]*processor.Unreadable{}
	for i := range n {
		p, id := d.Payin(d.Merchant, fmt.Sprint("in", i), ""), fmt.Sprint("pay", i)
		d.Bank.Receive(p.ExternalID, id, p.Amount)
		if slices.Contains(invalid, i) {
			d.Bank.Unreadable[id] = &processor.Unreadable{ID: id, Cause: processor.InvalidValues}
		}
		payins = append(payins, p)
	}
	d.read()
	cases, err := d.Store.OpenCases(d.T.Context(), 10)
	d.Must(err)
	slices.SortFunc(cases, func(a, b store.Case) int { return cmp.Compare(a.Params["cursor"], b.Params["cursor"]) })
	if len(cases) != len(invalid) {
		d.T.Fatalf("cases %+v, want %d", cases, len(invalid))
	}
	return payins, cases
}

func (d *desk) wantPaid(payins []payment.Payin) {
	d.T.Helper()
	for _, p := range payins {
		if got := d.ReadPayin(p); got.Status != payment.PayinPaid {
			d.T.Errorf("pay-in %s is %s", p.ReferenceID, got.Status)
		}
	}
	d.WantCases()
	d.WantProven()
}

// Of two entries of one list the first is read again before the second one's page is: a case
// that is closed by a retry has its entry read.
func TestTwoEntriesAreReadAgain(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		payins, cases := d.unreadablePayments(4, 0, 3)
		clear(d.Bank.Unreadable) // as after an upgrade
		d.resolve(request(&cases[0], store.ResolvedRetry))
		d.refused(request(&cases[1], store.ResolvedRetry), problem.InvalidState) // it is due
		d.Bank.FeedsDown = map[processor.Feed]bool{processor.FeedPayments: true}
		d.ReadFeeds()
		d.refused(request(&cases[1], store.ResolvedRetry), problem.InvalidState) // it could not be read
		d.Bank.FeedsDown = nil
		d.read()
		d.resolve(request(&cases[1], store.ResolvedRetry))
		d.read()
		d.wantPaid(payins)
	})
}

// After a restore, a list that is read again from its backup on is read to its end first. Then
// an entry that was invalid before the backup is read again too.
func TestEntryOfBeforeARestoreIsReadAgain(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		payins, cases := d.unreadablePayments(1, 0)
		clear(d.Bank.Unreadable)
		d.Execute("UPDATE installation SET epoch = epoch - 3")
		d.Heartbeat()
		d.refused(request(&cases[0], store.ResolvedRetry), problem.InvalidState) // before it is claimed
		d.Bank.FeedsDown = map[processor.Feed]bool{processor.FeedPayments: true}
		d.ReadFeeds()
		d.Jump(time.Second)
		d.refused(request(&cases[0], store.ResolvedRetry), problem.InvalidState)
		d.Bank.FeedsDown = nil
		d.ReadFeeds()
		d.resolve(request(&cases[0], store.ResolvedRetry))
		d.read()
		d.wantPaid(payins)
	})
}

func wantFrozen(d *desk, want bool) {
	d.T.Helper()
	if d.Node.Frozen(coretest.BankName) != want {
		d.T.Fatalf("payouts wait: %v, want %v\n%s", !want, want, d.Log)
	}
}
