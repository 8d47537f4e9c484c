package review_test

import (
	"slices"
	"testing"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/review"
	"github.com/porteira/porteira/internal/store"
)

func (d *desk) wantUnapplied(available, unapplied, writtenOff int64) {
	d.T.Helper()
	b, err := d.Store.Balances(d.T.Context(), d.Merchant.ID)
	d.Must(err)
	if int64(b[ledger.Available]) != available || int64(b[ledger.Unapplied]) != unapplied || int64(b[ledger.WrittenOff]) != writtenOff {
		d.T.Errorf("available %d, unapplied %d, written off %d; want %d, %d, %d",
			b[ledger.Available], b[ledger.Unapplied], b[ledger.WrittenOff], available, unapplied, writtenOff)
	}
	d.WantProven()
}

const received = int64(coretest.Opening) + 100_00 // and 30.00 in unapplied

// Unapplied money becomes available, pays an order, or is written off.
func TestUnappliedMoney(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		t.Run("to available", func(t *testing.T) {
			d := newDesk(g.For(t))
			_, v := d.overpaid()
			d.WantDecision(d.operation(request(&v, store.ResolvedApply)), `
				payins unapplied_amount:3000→0
				cases closed_at:-→now resolution:→apply
				+decisions resolved apply operator:ana
				+postings unapplied_released unapplied -3000
				+postings unapplied_released available 3000`, "")
			d.wantUnapplied(received+30_00, 0, 0)
			d.refused(request(&v, store.ResolvedApply), problem.InvalidState)
		})
		t.Run("write off", func(t *testing.T) {
			d := newDesk(g.For(t))
			_, v := d.overpaid()
			d.agree(&v, store.ResolvedWriteOff)
			d.wantUnapplied(received, 0, 30_00)
			d.WantCases()
		})
		t.Run("a part of an order", func(t *testing.T) {
			d := newDesk(g.For(t))
			_, v := d.overpaid()
			q := d.Payin(d.Merchant, "other", "")
			r := request(&v, store.ResolvedApply)
			r.Order = q.ID
			d.resolve(r)
			d.WantPayin(q, payment.PayinPending, 30_00, 0)
			d.wantUnapplied(received+30_00, 0, 0)
			d.WantEvents(payment.EventPayinPaid, payment.EventPayinOverpaid, payment.EventPayinUnderpaid)
			d.receive(q.ExternalID, 70_00)
			d.WantPayin(q, payment.PayinPaid, 100_00, 1)
			d.WantProven()
		})
		t.Run("all of an expired order, and the rest has a case", func(t *testing.T) {
			d := newDesk(g.For(t))
			p, v := d.overpaid()
			q := d.Payin(d.Merchant, "other", "")
			d.receive(q.ExternalID, 80_00)
			_, err := d.Payins.Cancel(t.Context(), q.Merchant, q.ID)
			d.Must(err)
			r := request(&v, store.ResolvedApply)
			r.Order = q.ID
			rest := d.resolve(r).Rest
			d.WantPayin(q, payment.PayinPaid, 100_00, 1)
			d.wantUnapplied(received+100_00, 10_00, 0)
			got, err := d.Store.Payin(t.Context(), q.Merchant, q.ID)
			d.Must(err)
			if left := d.only(store.CaseOverpaid); left.ID != rest || left.Amount != 10_00 || left.Subject != p.ID || !got.Late {
				t.Errorf("left %+v, want %s; late %v", left, rest, got.Late)
			}
			again := request(&v, store.ResolvedApply)
			again.Case, again.Order = rest, q.ID
			d.refused(again, problem.InvalidState) // it is paid
			again.Order = payment.ID{1}
			d.refused(again, problem.NotFound)
			back := request(&v, store.ResolvedReturn)
			back.Case = rest
			d.resolve(back)
			d.Send()
			d.wantUnapplied(received+100_00, 0, 0)
			d.WantCases()
			if made := d.Bank.Refunds.Calls; len(made) != 1 || made[0].Amount != 10_00 {
				t.Errorf("refunds %+v", made)
			}
		})
	})
}

// Applied money repays debt first.
func TestUnappliedMoneyRepaysDebt(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		_, v := d.overpaid()
		d.Payout("all", received)
		d.Send()
		late := store.Case{Merchant: d.Merchant.ID, Kind: store.CaseNotice}
		var n store.Needs
		n.Balances(late.Merchant)
		d.Must(d.Store.Transact(t.Context(), func(tx *store.Tx) error {
			return tx.Apply(t.Context(), &n, func(l *store.Loaded, c *store.Changes) error {
				return c.Post(late.Merchant, late.Merchant, ledger.PayPayoutLate(coretest.BankName, 0, 20_00, 0))
			})
		}))
		d.resolve(request(&v, store.ResolvedApply))
		b, err := d.Store.Balances(t.Context(), d.Merchant.ID)
		d.Must(err)
		if b[ledger.Available] != 10_00 || b[ledger.Owed] != 0 || b[ledger.Unapplied] != 0 {
			t.Errorf("balances %v", b)
		}
	})
}

// wantUnidentified compares the platform's accounts.
func (d *desk) wantUnidentified(unidentified, writtenOff int64) {
	d.T.Helper()
	b, err := d.Store.Balances(d.T.Context(), payment.ID{})
	d.Must(err)
	if int64(b[ledger.Unidentified]) != unidentified || int64(b[ledger.WrittenOff]) != writtenOff {
		d.T.Errorf("unidentified %d, written off %d; want %d, %d", b[ledger.Unidentified], b[ledger.WrittenOff], unidentified, writtenOff)
	}
	d.WantProven()
}

// Money that names no order is given to a merchant by two people, or written off.
func TestUnmatchedReceipt(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		unknown := d.Store.ExternalID(&d.Merchant, payment.OperationPayin, "never requested")
		d.receive(unknown, 110_00)
		d.wantUnidentified(110_00, 0)
		v := d.only(store.CaseUnmatchedReceipt)
		q := d.Payin(d.Merchant, "in", "")
		r := request(&v, store.ResolvedApply)
		r.Order = q.ID
		d.refused(r, problem.ValidationFailed) // whose is it?
		r.Merchant = payment.ID{9}
		d.refused(r, problem.NotFound)
		r.Merchant = d.Merchant.ID
		d.resolve(r)
		d.wantUnidentified(110_00, 0)
		other := r
		other.Actor, other.Order = "operator:bia", payment.ID{}
		d.refused(other, problem.InvalidState) // not what was proposed
		r.Actor = "operator:bia"
		inputs := "merchant:" + d.Merchant.ID.String() + " order:" + q.ID.String()
		d.WantDecision(d.operation(r), `
			payins next_at:in 1h0m0s→- paid_amount:0→10000 paid_at:-→now status:PENDING→PAID unapplied_amount:0→1000 version:2→3
			cases closed_at:-→now resolution:→apply
			+cases overpaid 1000 receipt:`+v.Subject.String()+`
			+decisions confirmed apply operator:bia `+inputs+`
			+postings unidentified_moved unidentified -11000
			+postings unidentified_moved clearing:bank 11000
			+postings unidentified_arrived clearing:bank -11000
			+postings unidentified_arrived unapplied 11000
			+postings unapplied_applied unapplied -10000
			+postings unapplied_applied available 10000
			+events payin.paid`, "")
		d.wantUnapplied(int64(coretest.Opening)+100_00, 10_00, 0)
		d.wantUnidentified(0, 0)

		d.receive(unknown, 5_00)
		list, err := d.Store.OpenCases(t.Context(), 10)
		d.Must(err)
		i := slices.IndexFunc(list, func(v store.Case) bool { return v.Kind == store.CaseUnmatchedReceipt })
		v = list[i]
		d.agree(&v, store.ResolvedWriteOff)
		d.wantUnidentified(0, 5_00)
		d.wantUnapplied(int64(coretest.Opening)+100_00, 10_00, 0)
	})
}

// Unapplied money that pays the rest of an order does not make it PAID while a dispute has a part of
// it.
func TestUnappliedMoneyPaysADisputedOrder(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		for state, want := range map[processor.DisputeState]payment.PayinStatus{
			processor.DisputeOpen: payment.PayinDisputed, processor.DisputeLost: payment.PayinChargeback, processor.DisputeWon: payment.PayinPaid,
		} {
			t.Run(string(state), func(t *testing.T) {
				d := newDesk(g.For(t))
				_, v := d.overpaid()
				q := d.Payin(d.Merchant, "other", "")
				d.receive(q.ExternalID, 70_00)
				d.Bank.Dispute(q.ExternalID, "D "+d.Merchant.Name, 70_00, state)
				d.Notify("D "+d.Merchant.Name, "charge "+q.ExternalID)
				d.Apply()
				r := request(&v, store.ResolvedApply)
				r.Order = q.ID
				d.resolve(r)
				d.WantPayin(q, want, 100_00, 1)
				taken := int64(70_00)
				if state == processor.DisputeWon {
					taken = 0
				}
				d.wantUnapplied(received+100_00-taken, 0, 0)
			})
		}
	})
}

// Money that came before its order, which a restored backup lacked, is given to it by one person once
// the merchant has repeated the request. Any other owner takes two.
func TestMoneyThatNamesItsOrderTakesOnePerson(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		lost := func(t *testing.T) (*desk, store.Case, review.Request) {
			d := newDesk(g.For(t))
			d.receive(d.Store.ExternalID(&d.Merchant, payment.OperationPayin, "lost"), 100_00)
			v := d.only(store.CaseUnmatchedReceipt)
			r := request(&v, store.ResolvedApply)
			r.Merchant = d.Merchant.ID
			return d, v, r
		}
		wantPersons := func(d *desk, v *store.Case, named *review.Named) {
			d.T.Helper()
			list, err := d.reviews.Possible(d.T.Context(), v)
			d.Must(err)
			persons := 2
			if named != nil {
				persons = 1
			}
			if got := list[0]; got.How != store.ResolvedApply || got.Persons != persons || (got.Named == nil) != (named == nil) || named != nil && *got.Named != *named {
				d.T.Errorf("it can be resolved by %+v, want %d persons, %+v", got, persons, named)
			}
		}
		t.Run("its order", func(t *testing.T) {
			d, v, r := lost(t)
			wantPersons(d, &v, nil)
			p := d.Payin(d.Merchant, "lost", "")
			wantPersons(d, &v, &review.Named{Merchant: d.Merchant.ID, Order: p.ID})
			r.Order = p.ID
			if got := d.resolve(r); got.Action != store.DecisionResolved {
				t.Errorf("it is %s", got.Action)
			}
			d.WantPayin(p, payment.PayinPaid, 100_00, 0)
			d.wantUnapplied(received, 0, 0)
			d.WantCases()
		})
		t.Run("another order, or none", func(t *testing.T) {
			d, v, r := lost(t)
			d.Payin(d.Merchant, "lost", "")
			for _, order := range []payment.ID{d.Payin(d.Merchant, "other", "").ID, {}} {
				r.Order = order
				if got := d.resolve(r); got.Action != store.DecisionProposed {
					t.Errorf("of order %s it is %s", order, got.Action)
				}
				w := request(&v, review.Withdraw)
				d.resolve(w)
			}
			d.agree(&v, store.ResolvedWriteOff)
		})
		t.Run("an order at another account", func(t *testing.T) {
			d := newDesk(g.For(t))
			externalID := d.Store.ExternalID(&d.Merchant, payment.OperationPayin, "lost")
			d.Must(d.Payins.Receive(t.Context(), "other", externalID, processor.ChargeReport{
				Lookup: processor.Found, Payments: []processor.Payment{{ID: "E " + externalID, Amount: 100_00, PaidAt: d.Clock.Now()}},
			}, nil))
			v := d.only(store.CaseUnmatchedReceipt)
			p := d.Payin(d.Merchant, "lost", "")
			wantPersons(d, &v, nil)
			r := request(&v, store.ResolvedApply)
			r.Merchant, r.Order = d.Merchant.ID, p.ID
			if got := d.resolve(r); got.Action != store.DecisionProposed {
				t.Errorf("it is %s", got.Action)
			}
		})
	})
}

// Surplus that was written off and is disputed afterwards is paid by the platform, which has it.
func TestWrittenOffMoneyIsDisputed(t *testing.T) {
	for _, c := range []struct {
		name               string
		disputed           money.Cents
		unapplied, written int64
	}{
		{"all of the payment", 130_00, 30_00, 0},
		{"a part of the surplus", 20_00, 20_00, 10_00},
	} {
		t.Run(c.name, func(t *testing.T) {
			coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
				d := newDesk(g)
				p, v := d.overpaid()
				d.agree(&v, store.ResolvedWriteOff)
				report := func(state processor.DisputeState) {
					d.Bank.Dispute(p.ExternalID, "D", c.disputed, state)
					d.Notify("D "+string(state), "charge "+p.ExternalID)
					d.Apply()
				}
				report(processor.DisputeOpen)
				d.wantUnapplied(received-int64(c.disputed), c.unapplied, c.written)
				d.WantReason(store.CaseOverpaid, store.ReasonDisputed)
				report(processor.DisputeLost)
				v = d.only(store.CaseOverpaid)
				d.resolve(request(&v, store.ResolvedApply))
				d.wantUnapplied(received-int64(c.disputed)+c.unapplied, 0, c.written)
			})
		})
	}
}

// A dispute of the payment that paid the order leaves what was written off of another one.
func TestWrittenOffMoneyOfAnotherPayment(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		p := d.PaidPayin("p", 100_00, 30_00)
		v := d.only(store.CaseOverpaid)
		d.agree(&v, store.ResolvedWriteOff)
		d.Bank.Disputes(p.ExternalID, processor.Dispute{ID: "D", PaymentID: "p 1", Amount: 100_00, State: processor.DisputeOpen})
		d.Notify("D", "charge "+p.ExternalID)
		d.Apply()
		d.wantUnapplied(received-100_00, 0, 30_00)
		d.WantCases()
		d.Bank.Disputes(p.ExternalID, processor.Dispute{ID: "E", PaymentID: "p 2", Amount: 30_00, State: processor.DisputeOpen})
		d.Notify("E", "charge "+p.ExternalID)
		d.Apply()
		d.wantUnapplied(received-130_00, 30_00, 0)
		d.WantCases(store.CaseOverpaid)
	})
}

// Surplus that was written off and is given back at the processor's panel is paid by the platform,
// which has it: the order and the merchant's balance stay as they are.
func TestWrittenOffMoneyIsGivenBackAtThePanel(t *testing.T) {
	for _, c := range []struct {
		name              string
		panel             money.Cents
		written, refunded int64
		status            payment.PayinStatus
	}{
		{"all of it", 30_00, 0, 0, payment.PayinPaid},
		{"a part", 20_00, 10_00, 0, payment.PayinPaid},
		{"with a part of the order", 50_00, 0, 20_00, payment.PayinPartiallyRefunded},
	} {
		t.Run(c.name, func(t *testing.T) {
			coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
				d := newDesk(g)
				p := d.PaidPayin("p", 130_00)
				v := d.only(store.CaseOverpaid)
				d.agree(&v, store.ResolvedWriteOff)
				d.Bank.RefundAtPanel("panel", "p 1", c.panel)
				d.ReadFeeds()
				d.wantUnapplied(received-c.refunded, 0, c.written)
				if got := d.ReadPayin(p); got.Status != c.status || int64(got.RefundedAmount) != c.refunded {
					t.Errorf("it is %s, refunded %d; want %s, %d", got.Status, got.RefundedAmount, c.status, c.refunded)
				}
				d.WantCases()
				d.Bank.EndRefund("panel", processor.TransferFailed) // what came back is to be decided again
				d.ReadFeeds()
				d.wantUnapplied(received, 30_00-c.written, c.written)
				v = d.only(store.CaseOverpaid)
				d.agree(&v, store.ResolvedWriteOff)
				d.wantUnapplied(received, 0, 30_00)
				d.Bank.Disputes(p.ExternalID, processor.Dispute{ID: "D", PaymentID: "p 1", Amount: 130_00, State: processor.DisputeOpen})
				d.Notify("D", "charge "+p.ExternalID)
				d.Apply()
				d.wantUnapplied(received-130_00, 30_00, 0)
			})
		})
	}
}

// A return of surplus that failed, whose money was written off since, and that is paid after all.
func TestWrittenOffMoneyIsReturnedLate(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		d.PaidPayin("p", 130_00)
		v := d.only(store.CaseOverpaid)
		d.resolve(request(&v, store.ResolvedReturn))
		id := ""
		d.Bank.Refunds.Answer = func(_ *coretest.Bank, r processor.RefundRequest) processor.TransferAnswer {
			id = r.ExternalID
			return processor.TransferAnswer{Outcome: processor.Refused}
		}
		d.Send()
		v = d.only(store.CaseOverpaid)
		d.agree(&v, store.ResolvedWriteOff)
		d.wantUnapplied(received, 0, 30_00)
		d.Bank.RefundAtPanel(id, "p 1", 30_00)
		d.ReadFeeds()
		d.wantUnapplied(received, 0, 0)
		d.WantCases()
	})
}

// An order whose first payment was given back at the panel, and whose rest an operator pays from
// unapplied money, takes what was given back too.
func TestUnappliedMoneyPaysTheRestOfAnOrderThatWasGivenBack(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		p := d.PaidPayin("p", 80_00)
		d.Bank.RefundAtPanel("panel", "p 1", 50_00)
		d.ReadFeeds()
		d.PaidPayin("q", 180_00)
		list, err := d.Store.OpenCases(t.Context(), 10)
		d.Must(err)
		i := slices.IndexFunc(list, func(v store.Case) bool { return v.Kind == store.CaseOverpaid })
		r := request(&list[i], store.ResolvedApply)
		r.Order = p.ID
		d.resolve(r)
		d.WantPayin(p, payment.PayinPaid, 150_00, 1)
		if got := d.ReadPayin(p); got.RefundedAmount != 50_00 {
			t.Errorf("%s is refunded", got.RefundedAmount)
		}
		d.WantProven()
	})
}
