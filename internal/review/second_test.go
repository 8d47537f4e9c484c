package review_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// paidAgain is a payout of 10.00 that two people have sent again, and that this send paid under
// an endToEndId of its own.
func (d *desk) paidAgain() payment.Payout {
	d.T.Helper()
	d.ReadFeeds()
	p, v := d.unknownPayout()
	d.agree(&v, store.ResolvedResend)
	d.Bank.AnswerTransfer = func(_ *coretest.Bank, r processor.TransferRequest) processor.TransferAnswer {
		return processor.TransferAnswer{Outcome: processor.Done, Report: processor.TransferReport{
			Lookup: processor.Found, State: processor.TransferPaid, EndToEndID: endToEndID, Amount: r.Amount,
		}}
	}
	d.sendAgain()
	d.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
	d.WantSends(p, store.SendNotFound, store.SendPaid)
	d.wantBorne(coretest.Opening-10_00, 0, 0)
	return p
}

// arrive makes the transfer of the first send of a payout appear at the bank.
func (d *desk) arrive(p *payment.Payout, state processor.TransferState) {
	d.Bank.Mu.Lock()
	defer d.Bank.Mu.Unlock()
	d.Bank.Pay(processor.TransferRequest{ExternalID: p.ExternalID, Amount: p.Amount}, state)
}

// list reads the bank's list of transfers twice, from its beginning.
func (d *desk) list() {
	d.T.Helper()
	for range 2 {
		d.Pass(time.Minute)
		d.Execute("UPDATE feeds SET cursor = ''")
		d.ReadFeeds()
	}
}

// paidTwice is a payout that the bank paid twice, and the case about it.
func (d *desk) paidTwice() (payment.Payout, store.Case) {
	d.T.Helper()
	p := d.paidAgain()
	d.arrive(&p, processor.TransferPaid)
	d.list()
	d.wantBorne(coretest.Opening-20_00, 0, 0)
	got := d.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
	if got.EndToEndID != endToEndID || got.ReturnedAmount != 0 {
		d.T.Errorf("the payout changed: %+v", got)
	}
	d.WantEvents(payment.EventPayoutProcessing, payment.EventPayoutCompleted)
	v := d.only(store.CasePayoutFound)
	if v.Params.Reason() != store.ReasonPaidTwice || v.Params["payout"] != p.ID.String() || v.Amount != 10_00 {
		d.T.Errorf("the case is %+v", v)
	}
	return p, v
}

// Money that left twice for one payout is booked once more, however often it is listed, and two
// persons decide who bears it. What comes back is that one's.
func TestPayoutThatWasPaidTwice(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		for how, want := range map[store.Resolution]struct{ available, writtenOff, returned money.Cents }{
			store.ResolvedAdopt:    {coretest.Opening - 20_00, 0, coretest.Opening - 17_00},
			store.ResolvedWriteOff: {coretest.Opening - 10_00, -10_00, coretest.Opening - 10_00},
		} {
			t.Run(string(how), func(t *testing.T) {
				d := newDesk(g.For(t))
				p, v := d.paidTwice()
				d.agree(&v, how)
				d.wantBorne(want.available, 0, want.writtenOff)
				d.Bank.Return(p.ExternalID, 3_00)
				d.list()
				d.Apply()
				if want.writtenOff != 0 {
					want.writtenOff += 3_00
				}
				d.wantBorne(want.returned, 0, want.writtenOff)
				if got := d.WantPayout(p, payment.PayoutCompleted, payment.StepDone); got.ReturnedAmount != 0 {
					t.Errorf("the payout has %d returned", got.ReturnedAmount)
				}
				d.WantCases()
				d.WantProven()
			})
		}
		t.Run("dismiss", func(t *testing.T) { // the operator mistyped the id of the only transfer
			d := newDesk(g.For(t))
			p, v := d.paidTwice()
			d.agree(&v, store.ResolvedDismiss)
			d.list()
			d.wantBorne(coretest.Opening-10_00, 0, 0)
			d.Bank.Return(p.ExternalID, 3_00)
			d.list()
			d.Apply()
			if got := d.WantPayout(p, payment.PayoutCompleted, payment.StepDone); got.ReturnedAmount != 3_00 {
				t.Errorf("the payout has %d returned", got.ReturnedAmount)
			}
			d.wantBorne(coretest.Opening-7_00, 0, 0)
			d.WantCases()
			d.WantProven()
		})
		t.Run("notice", func(t *testing.T) {
			d := newDesk(g.For(t))
			p := d.paidAgain()
			d.arrive(&p, processor.TransferPaid)
			for _, id := range []string{"n1", "n2"} {
				d.Notify(id, p.ExternalID)
				d.Apply()
			}
			d.wantBorne(coretest.Opening-20_00, 0, 0)
			d.only(store.CasePayoutFound)
			d.WantProven()
		})
	})
}

// A second transfer that came back before it was listed, one at a processor that pays no external
// id twice, and the only transfer of a payout whose endToEndId an operator mistyped change nothing.
func TestPayoutThatWasPaidOnce(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		t.Run("returned", func(t *testing.T) {
			d := newDesk(g.For(t))
			p := d.paidAgain()
			d.arrive(&p, processor.TransferPaid)
			d.Bank.Return(p.ExternalID, p.Amount)
			d.wantNothing(&p)
		})
		t.Run("mistyped", func(t *testing.T) {
			d := newDesk(g.For(t))
			d.ReadFeeds()
			p, v := d.unknownPayout()
			d.agree(&v, store.ResolvedPaid)
			d.arrive(&p, processor.TransferPaid)
			d.wantNothing(&p)
		})
		t.Run("idempotent", func(t *testing.T) { // last, as the bank is the same
			d := newDesk(g.For(t))
			p := d.paidAgain()
			d.Bank.Profiled.Transfer.Repeat = processor.RepeatReturnsFirst
			d.arrive(&p, processor.TransferPaid)
			d.wantNothing(&p)
		})
	})
}

// A failure after the payment is a contradiction, also under another endToEndId: that of the
// payout may be mistyped.
func TestPayoutThatFailedUnderAnotherID(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		p := d.paidAgain()
		d.arrive(&p, processor.TransferFailed)
		d.Notify("n", p.ExternalID)
		d.Apply()
		if v := d.only(store.CaseContradiction); v.Params.Reason() != store.ReasonFailedAfterPaid {
			t.Errorf("the case is %+v", v)
		}
		d.wantBorne(coretest.Opening-10_00, 0, 0)
		d.WantProven()
	})
}

// While a case says that a bank which is not idempotent paid a payout twice, or another amount, no
// payout is sent there, whichever merchant requests it.
func TestSurprisingTransferStopsTheAccount(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		for _, row := range []struct {
			name    string
			arrange func(d *desk) store.Case
			how     store.Resolution
		}{
			{"paid twice", func(d *desk) store.Case { _, v := d.paidTwice(); return v }, store.ResolvedWriteOff},
			{"another amount", func(d *desk) store.Case { return d.paidOtherAmount() }, store.ResolvedDismiss},
		} {
			t.Run(row.name, func(t *testing.T) {
				d := newDesk(g.For(t))
				v := row.arrange(d)
				if got, err := d.Store.StoppedAccounts(t.Context()); err != nil || len(got) != 1 || got[0] != coretest.BankName {
					t.Fatalf("stopped accounts %v, %v", got, err)
				}
				_, accounts := d.Second().Accounts()
				if _, err := accounts.Follow(t.Context()); err != nil || accounts.States(d.Node.Frozen)["stopped"] != 1 {
					t.Errorf("states %v, %v", accounts.States(d.Node.Frozen), err)
				}
				d.Bank.AnswerTransfer, d.Bank.AnswerQuery = nil, nil
				d.Bank.Profiled.Transfer.Repeat = processor.RepeatReturnsFirst
				other := g.For(t)
				q := other.Payout("of another merchant", 1_00)
				other.Send()
				other.WantPayout(q, payment.PayoutPending, payment.StepQueued)
				_, claimed, err := d.Outgoing.Claim(t.Context(), store.Due{Merchant: q.Merchant, Processor: q.Processor}, 10)
				if d.Must(err); claimed != 0 {
					t.Errorf("claimed %d", claimed)
				}
				d.agree(&v, row.how)
				other.Send()
				other.WantPayout(q, payment.PayoutCompleted, payment.StepDone)
				d.WantProven()
			})
		}
	})
}

// paidOtherAmount is the case about a completed payout of which the bank, which is not idempotent,
// reports another amount.
func (d *desk) paidOtherAmount() store.Case {
	d.T.Helper()
	p := d.paidAgain()
	d.report(p, processor.TransferReport{State: processor.TransferPaid, EndToEndID: endToEndID, Amount: p.Amount + 1})
	v := d.only(store.CaseContradiction)
	if v.Params.Reason() != store.ReasonOtherAmount {
		d.T.Errorf("the case is %+v", v)
	}
	return v
}

// A further contradiction of another kind leaves the case that stops the account open. The same one
// again leaves what a person has proposed, or two have decided.
func TestFurtherContradictions(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		p, v := d.unknownPayout()
		d.agree(&v, store.ResolvedResend)
		d.sendAgain()
		other := processor.TransferReport{State: processor.TransferPaid, EndToEndID: endToEndID, Amount: p.Amount + 1}
		d.report(p, other)
		v = d.only(store.CaseContradiction)
		d.Jump(time.Hour)
		r := request(&v, store.ResolvedPaid)
		if got := d.resolve(r); got.Action != store.DecisionProposed {
			t.Fatalf("the first decision: %+v", got)
		}
		d.report(p, other)
		if same := d.only(store.CaseContradiction); same.ID != v.ID {
			t.Errorf("the case was replaced by %+v", same)
		}
		r.Actor = "operator:bia"
		if got := d.resolve(r); got.Action != store.DecisionConfirmed {
			t.Fatalf("the second decision: %+v", got)
		}
		d.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		d.report(p, other) // two people have decided about it
		d.WantCases()
		d.report(p, processor.TransferReport{State: processor.TransferPaid, EndToEndID: endToEndID, Amount: p.Amount + 2})
		d.report(p, processor.TransferReport{State: processor.TransferFailed})
		d.WantCases(store.CaseContradiction, store.CaseContradiction)
		if got, err := d.Store.StoppedAccounts(t.Context()); err != nil || len(got) != 1 {
			t.Errorf("stopped accounts %v, %v", got, err)
		}
		d.WantProven()
	})
}

// A payout whose other case is decided by sending it again keeps that about a contradiction, and waits
// under it if the same contradiction comes again.
func TestContradictionAfterAResend(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		p, unknown := d.unknownPayout()
		other := processor.TransferReport{State: processor.TransferPaid, EndToEndID: endToEndID, Amount: p.Amount + 1}
		d.report(p, other)
		d.WantCases(store.CasePayoutUnknown, store.CaseContradiction)
		d.Jump(time.Hour)
		d.agree(&unknown, store.ResolvedResend)
		d.WantPayout(p, payment.PayoutProcessing, payment.StepQueued)
		d.only(store.CaseContradiction)
		d.report(p, other)
		d.WantPayout(p, payment.PayoutProcessing, payment.StepReview)
		d.only(store.CaseContradiction)
		d.WantProven()
	})
}

// The failure of a late first transfer, by a notice, releases nothing while the second one may pay.
// If all have failed, the money is released.
func TestFailureOfALateTransfer(t *testing.T) {
	for _, last := range []processor.TransferState{processor.TransferPaid, processor.TransferFailed} {
		coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
			d := newDesk(g)
			p, v := d.unknownPayout()
			d.agree(&v, store.ResolvedResend)
			d.sendAgain()
			d.report(p, processor.TransferReport{State: processor.TransferProcessing, ProcessorID: "second"})
			d.WantPayout(p, payment.PayoutProcessing, payment.StepAccepted)
			d.report(p, processor.TransferReport{State: processor.TransferFailed, ProcessorID: "first", Evidence: "first failed"})
			if got := d.WantPayout(p, payment.PayoutProcessing, payment.StepAccepted); got.ProcessorID != "" {
				d.T.Errorf("the transfer %s is looked up alone", got.ProcessorID)
			}
			d.WantBalances(coretest.Opening-10_00, 10_00)
			d.Bank.Pay(processor.TransferRequest{ExternalID: p.ExternalID, Amount: p.Amount}, last)
			d.LookUp()
			if last == processor.TransferPaid {
				d.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
			} else {
				d.WantPayout(p, payment.PayoutFailed, payment.StepDone)
				d.wantBorne(coretest.Opening, 0, 0)
			}
			d.WantCases()
			d.WantProven()
		})
	}
}

// The failure of the second of two transfers, in the answer to its send, releases nothing while
// the first one may still pay: all are looked up.
func TestFailureWhileTheFirstTransferMayPay(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		p, v := d.unknownPayout()
		d.agree(&v, store.ResolvedResend)
		d.Bank.AnswerTransfer = func(b *coretest.Bank, r processor.TransferRequest) processor.TransferAnswer {
			b.Pay(r, processor.TransferPaid) // the first one
			return processor.TransferAnswer{Outcome: processor.Done, Report: processor.TransferReport{
				Lookup: processor.Found, State: processor.TransferFailed, ProcessorID: "second", Amount: r.Amount,
			}}
		}
		d.sendAgain()
		d.WantPayout(p, payment.PayoutProcessing, payment.StepUnknown)
		d.WantBalances(coretest.Opening-10_00, 10_00)
		d.Jump(time.Minute)
		d.LookUp()
		d.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		d.WantCases()
		d.WantProven()
	})
}

// report records a report about a payout.
func (d *desk) report(p payment.Payout, r processor.TransferReport) {
	d.T.Helper()
	r.Lookup = processor.Found
	_, err := d.Outgoing.RecordNotice(d.T.Context(), coretest.BankName, p.ExternalID, r, nil)
	d.Must(err)
}

// The failure of one of two transfers changes nothing if the other one is known to have paid the
// payout. That of the one that paid it, or may have, is a contradiction.
func TestFailureOfOneOfTwoTransfers(t *testing.T) {
	failure := func(id string) processor.TransferReport {
		return processor.TransferReport{State: processor.TransferFailed, ProcessorID: id}
	}
	for _, row := range []struct {
		name        string
		declared    bool // paid, by two people, instead of by a report
		failed      string
		contradicts bool
	}{
		{"the other", false, "first", false},
		{"the one that paid", false, "second", true},
		{"one without an id", false, "", true},
		{"declared paid", true, "first", true},
	} {
		t.Run(row.name, func(t *testing.T) {
			coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
				d := newDesk(g)
				p, v := d.unknownPayout()
				d.agree(&v, store.ResolvedResend)
				d.sendAgain()
				d.WantSends(p, store.SendNotFound, store.SendUnknown)
				if row.declared {
					d.Bank.AnswerQuery = func(*coretest.Bank, string) processor.TransferReport {
						return processor.TransferReport{Lookup: processor.Found, State: processor.TransferProcessing, ProcessorID: "second"}
					}
					for range 20 { // until it opens a case
						d.Jump(24 * time.Hour)
						d.LookUp()
					}
					v = d.only(store.CasePayoutUnknown)
					d.agree(&v, store.ResolvedPaid)
				} else {
					d.report(p, processor.TransferReport{State: processor.TransferPaid, ProcessorID: "second", EndToEndID: endToEndID, Amount: p.Amount})
				}
				d.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
				d.WantCases()
				d.report(p, failure(row.failed))
				if row.contradicts {
					if v := d.only(store.CaseContradiction); v.Params.Reason() != store.ReasonFailedAfterPaid {
						d.T.Errorf("the case is %+v", v)
					}
				} else {
					d.WantCases()
				}
				d.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
				d.wantBorne(coretest.Opening-10_00, 0, 0)
				d.WantProven()
			})
		})
	}
}

// wantNothing fails if a list or a notice about a completed payout of 10.00 changes anything.
func (d *desk) wantNothing(p *payment.Payout) {
	d.T.Helper()
	d.list()
	d.Notify("n", p.ExternalID)
	d.Apply()
	d.wantBorne(coretest.Opening-10_00, 0, 0)
	d.WantPayout(*p, payment.PayoutCompleted, payment.StepDone)
	d.WantCases()
	d.WantProven()
}
