package review_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/review"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

// All invalid inputs of a decision are named at once, and nothing is recorded.
func TestInvalidInputs(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		_, v := d.unknownPayout()
		for _, row := range []struct {
			change func(r *review.Request)
			kind   problem.Kind
			fields string
		}{
			{func(r *review.Request) { r.Actor, r.Reason, r.Evidence = "", " ", "" }, problem.ValidationFailed, "as reason evidence"},
			{func(r *review.Request) {
				r.Actor, r.Reason = "os:ana", strings.Repeat("a", 2001)
			}, problem.ValidationFailed, "as reason"},
			{func(r *review.Request) { r.Actor, r.Reason = actor.System, "a\xff" }, problem.ValidationFailed, "as reason"},
			{func(r *review.Request) { r.EndToEndID, r.Order = "E1", payment.ID{1} }, problem.ValidationFailed, "end-to-end-id order"},
			{func(r *review.Request) { r.Evidence, r.EndToEndID = "", "" }, problem.ValidationFailed, "evidence end-to-end-id"},
			{func(r *review.Request) { r.How = store.ResolvedRelease }, problem.ValidationFailed, "end-to-end-id"},
			{func(r *review.Request) { r.How = store.ResolvedApply }, problem.InvalidState, ""},
			{func(r *review.Request) { r.How = store.ResolvedByProof }, problem.InvalidState, ""},
			{func(r *review.Request) { r.Case = payment.ID{1} }, problem.NotFound, ""},
		} {
			r := request(&v, store.ResolvedPaid)
			row.change(&r)
			d.refused(r, row.kind)
			_, err := d.reviews.Resolve(t.Context(), r)
			var names []string
			for _, f := range problem.From(err).Fields {
				names = append(names, f.Field)
			}
			if got := strings.Join(names, " "); got != row.fields {
				t.Errorf("fields %q, want %q", got, row.fields)
			}
		}
	})
}

// Of two resolutions of one case at once one wins, in one batch and in concurrent ones.
func TestOneResolutionWins(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		_, v := d.overpaid()
		errs := d.Writer.All(t.Context(), []write.Operation{d.operation(request(&v, store.ResolvedApply)), d.operation(request(&v, store.ResolvedWriteOff))})
		if errs[0] != nil || !problem.Is(errs[1], problem.InvalidState) {
			t.Errorf("in one batch: %v", errs)
		}
		d.wantUnapplied(received+30_00, 0, 0)

		d = newDesk(g.For(t))
		_, v = d.overpaid()
		var won atomic.Int32
		var work sync.WaitGroup
		for i := range 6 {
			work.Go(func() {
				r := request(&v, []store.Resolution{store.ResolvedApply, store.ResolvedWriteOff}[i%2])
				_, err := d.reviews.Resolve(t.Context(), r)
				if err == nil {
					won.Add(1)
				} else if !problem.Is(err, problem.InvalidState) {
					t.Errorf("%v", err)
				}
			})
		}
		work.Wait()
		if won.Load() != 1 {
			t.Errorf("%d won", won.Load())
		}
		d.WantProven()
	})
}

// A decision whose commit was unknown is recorded once.
func TestDecisionAfterUnknownCommit(t *testing.T) {
	var cut *atomic.Int64
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		_, v := d.overpaid()
		cut.Store(1)
		d.Until(func() { d.resolve(request(&v, store.ResolvedApply)) })
		if cut.Load() != 0 {
			t.Error("no commit was unknown")
		}
		d.wantUnapplied(received+30_00, 0, 0)
		list, err := d.Store.Decisions(t.Context(), v.Merchant, v.ID)
		if err != nil || len(list) != 1 {
			t.Errorf("%d decisions, %v", len(list), err)
		}
	}, func(e *env.Env) { cut = coretest.CutCommits(e, env.AfterCommit) })
}

// The processor paid another amount, or reported a failure after the payment.
func TestContradictions(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		d := newDesk(g.For(t))
		p := d.Payout("other amount", 10_00)
		d.Bank.AnswerTransfer = func(b *coretest.Bank, r processor.TransferRequest) processor.TransferAnswer {
			report := b.Pay(r, processor.TransferPaid)
			report.Amount = 9_00
			return processor.TransferAnswer{Outcome: processor.Done, Report: report}
		}
		d.Send()
		v := d.only(store.CaseContradiction)
		d.refused(request(&v, store.ResolvedDismiss), problem.InvalidState) // its money is held
		d.refused(request(&v, store.ResolvedRelease), problem.InvalidState) // a byte of the send may still leave
		d.Jump(time.Minute)
		d.agree(&v, store.ResolvedRelease)
		d.WantPayout(p, payment.PayoutFailed, payment.StepDone)
		d.WantCases()
		d.WantProven()

		d = newDesk(g.For(t))
		d.Bank.AnswerTransfer = nil
		p = d.Payout("failed later", 10_00)
		d.Send()
		d.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		d.Bank.Transfers[p.ExternalID].State = processor.TransferFailed
		d.Notify("failed later", p.ExternalID)
		d.Apply()
		v = d.only(store.CaseContradiction)
		if v.StopsPayouts {
			t.Error("a payment that is booked stops payouts")
		}
		d.agree(&v, store.ResolvedRelease)
		d.WantPayout(p, payment.PayoutReturned, payment.StepDone)
		d.WantBalances(coretest.Opening, 0)
		d.WantCases()
		d.WantProven()
	})
}

// A payout that the processor does not take is given up, as no send had an effect.
func TestWaitingPayoutIsGivenUp(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		busy := true
		d.Bank.AnswerTransfer = func(b *coretest.Bank, r processor.TransferRequest) processor.TransferAnswer {
			if busy {
				return processor.TransferAnswer{Outcome: processor.Later, Evidence: "429"}
			}
			return processor.TransferAnswer{Outcome: processor.Done, Report: b.Pay(r, processor.TransferPaid)}
		}
		p := d.Payout("r", 10_00)
		for range 8 {
			d.Send()
			d.Jump(time.Hour)
		}
		v := d.only(store.CasePayoutWaiting)
		d.resolve(request(&v, store.ResolvedRelease))
		d.WantPayout(p, payment.PayoutFailed, payment.StepDone)
		d.WantBalances(coretest.Opening, 0)
		d.WantCases()
		d.WantProven()
		busy = false
		d.Jump(time.Hour)
		d.Send()
		d.WantBank(8, 0)
		d.refused(request(&v, store.ResolvedRelease), problem.InvalidState)
	})
}

// A payout that waits for its merchant's debt is given up: its money repays the debt.
func TestPayoutThatWaitsForDebtIsGivenUp(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		p := d.Payout("queued", 150_00)
		d.Bank.Pay(processor.TransferRequest{
			ExternalID: d.Store.ExternalID(&d.Merchant, payment.OperationPayout, "lost"), Amount: 900_00,
		}, processor.TransferPaid)
		d.Execute("UPDATE installation SET epoch = epoch - 3")
		d.Heartbeat()
		d.Clear()
		found := d.only(store.CasePayoutFound)
		for range 3 {
			d.Send()
			d.LookUp()
			d.Jump(time.Hour)
		}
		list, err := d.Store.OpenCases(d.T.Context(), 10)
		d.Must(err)
		if len(list) != 2 || list[1].Kind != store.CasePayoutWaiting {
			d.T.Fatalf("cases %+v", list)
		}
		d.resolve(request(&list[1], store.ResolvedRelease))
		d.WantPayout(p, payment.PayoutFailed, payment.StepDone)
		d.WantBalances(100_00, 0)
		if still := d.only(store.CasePayoutFound); still.ID != found.ID {
			d.T.Errorf("open is %+v", still)
		}
		d.WantProven()
		d.refused(request(&list[1], store.ResolvedRelease), problem.InvalidState)
	})
}

// Rows that were given up are processed again; a case about which nothing is to be done
// is dismissed.
func TestRetryAndDismiss(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		t.Run("notice", func(t *testing.T) {
			d := newDesk(g.For(t))
			d.Notify("notice of "+d.Merchant.Name, "unreadable")
			d.Apply()
			v := d.only(store.CaseNotice)
			d.WantDecision(d.operation(request(&v, store.ResolvedRetry)), `
				cases closed_at:-→now resolution:→retry
				+decisions resolved retry operator:ana
				notices applied_at:now→- attempts:1→0 next_at:-→now state:dead_letter→received`, "")
			d.Apply()
			again := d.only(store.CaseNotice)
			d.resolve(request(&again, store.ResolvedDismiss))
			d.WantCases()
			d.WantProven()
		})
		t.Run("damaged payout", func(t *testing.T) {
			d := newDesk(g.For(t))
			p := d.Payout("r", 10_00)
			d.Execute("UPDATE payouts SET beneficiary = substr(beneficiary, 2)")
			d.Send()
			v := d.only(store.CaseDamaged)
			if _, err := d.reviews.Resolve(t.Context(), request(&v, store.ResolvedRetry)); err == nil {
				t.Error("a row that is still damaged was retried")
			}
			d.only(store.CaseDamaged)
			d.refused(request(&v, store.ResolvedDismiss), problem.InvalidState)
			d.restoreBeneficiary(p)
			d.resolve(request(&v, store.ResolvedRetry))
			d.WantPayout(p, payment.PayoutProcessing, payment.StepUnknown) // it is looked up first
			for range 4 {
				d.LookUp()
				d.Send()
				d.Jump(time.Minute)
			}
			d.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
			d.WantCases()
			d.WantProven()
		})
		t.Run("damaged payin", func(t *testing.T) {
			d := newDesk(g.For(t))
			p := d.Payin(d.Merchant, "r", "")
			d.Must(d.Writer.Do(t.Context(), write.OpenCase{Case: store.Case{
				Merchant: d.Merchant.ID, Kind: store.CaseDamaged, Subject: p.ID, Params: store.Params{"table": "payins"},
			}}))
			d.Execute("UPDATE payins SET next_at = 0")
			v := d.only(store.CaseDamaged)
			d.WantDecision(d.operation(request(&v, store.ResolvedRetry)), `
				payins next_at:-→in 1h0m0s
				cases closed_at:-→now resolution:→retry
				+decisions resolved retry operator:ana`, "")
		})
	})
}

// Attempts to cancel a charge end when their case is dismissed.
func TestDismissedCancel(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		p := d.Payin(d.Merchant, "r", "")
		d.Bank.AnswerCancel = func(*coretest.Bank, processor.CancelRequest) processor.CancelAnswer { return processor.CancelAnswer{} }
		_, err := d.Payins.Cancel(t.Context(), p.Merchant, p.ID)
		d.Must(err)
		for range 12 {
			d.Charge()
			d.Jump(8 * time.Hour)
		}
		v := d.only(store.CaseChargeOpen)
		d.resolve(request(&v, store.ResolvedDismiss))
		if c, err := d.Store.ChargeOf(t.Context(), p.Merchant, p.ID); err != nil || c.State != store.ChargeEnded {
			t.Errorf("left to do: %+v, %v", c, err)
		}
		calls := d.Bank.Cancels
		d.Jump(48 * time.Hour)
		d.Charge()
		if d.Bank.Cancels != calls {
			t.Error("the charge is canceled again")
		}
		d.WantCases()
	})
}

// A payout that the processor has accepted is still accepted after its row was repaired: a
// "not found" sends it no second time.
func TestRetryAcceptedPayout(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		d.Bank.AnswerTransfer = func(b *coretest.Bank, r processor.TransferRequest) processor.TransferAnswer {
			return processor.TransferAnswer{Outcome: processor.Done, Report: b.Pay(r, processor.TransferProcessing)}
		}
		p := d.Payout("r", 10_00)
		d.Send()
		d.Execute("UPDATE payouts SET beneficiary = substr(beneficiary, 2)")
		d.Pass(time.Minute)
		d.LookUp()
		v := d.only(store.CaseDamaged)
		d.restoreBeneficiary(p)
		d.resolve(request(&v, store.ResolvedRetry))
		d.WantPayout(p, payment.PayoutProcessing, payment.StepAccepted)
		d.Bank.AnswerQuery = func(*coretest.Bank, string) processor.TransferReport {
			return processor.TransferReport{Lookup: processor.NotFound}
		}
		d.Jump(10 * time.Minute)
		d.LookUp()
		d.Send()
		d.WantBank(1, 1)
		d.WantPayout(p, payment.PayoutProcessing, payment.StepAccepted)
	})
}

// An event that was given up is delivered again.
func TestRetryWebhook(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		p := d.Payin(d.Merchant, "in", "https://shop.example/hook")
		_, err := d.Payins.Cancel(t.Context(), p.Merchant, p.ID)
		d.Must(err)
		d.Deliver()
		events, err := d.Store.Events(t.Context(), d.Merchant.ID, 0, 1)
		d.Must(err)
		d.Must(d.Writer.Do(t.Context(), write.OpenCase{Case: store.Case{
			ID: payment.ID{9}, Merchant: d.Merchant.ID, Kind: store.CaseWebhook, Subject: p.ID, Params: store.Params{"event": payment.PublicEventID(events[0].ID)},
		}}))
		blob := map[string]string{"sqlite": "x'09000000000000000000000000000000'", "postgres": `'\x09000000000000000000000000000000'::bytea`}[d.Engine]
		d.Execute("UPDATE deliveries SET state = 'exhausted', case_id = " + blob)
		v := d.only(store.CaseWebhook)
		changes := d.Decide(d.operation(request(&v, store.ResolvedRetry)))
		if !strings.Contains(changes.Changes, "state:exhausted→pending") || changes.Again != "" {
			t.Errorf("changes %s\nagain %s", changes.Changes, changes.Again)
		}
		d.Deliver()
		d.WantRequests(2)
	})
}

// Each kind of case can be resolved, except one that its own page explains.
func TestEachKindHasAResolution(t *testing.T) {
	t.Parallel()
	for _, kind := range []store.CaseKind{
		store.CaseOverpaid, store.CaseUnmatchedReceipt, store.CasePayoutUnknown, store.CaseContradiction, store.CaseNotice, store.CaseDispute,
		store.CaseWebhook, store.CaseDamaged, store.CasePayoutWaiting, store.CaseCharge, store.CaseChargeOpen, store.CasePayoutFound, store.CasePayinProcessing,
		store.CaseAccountRefused, store.CaseEndpoint, store.CaseAccountCertificate, store.CaseDisputeOpen,
	} {
		reasons := map[store.CaseKind][]store.CaseReason{
			store.CasePayoutUnknown: {store.ReasonNoAnswer, store.ReasonStillProcessing, store.ReasonNotIdempotent, store.ReasonOtherContents},
			store.CaseContradiction: {
				store.ReasonOtherAmount, store.ReasonPaidAfterRelease, store.ReasonReturnedTooMuch, store.ReasonFailedAfterPaid, store.ReasonUnconfirmedChange,
			},
			store.CaseNotice: {store.ReasonInvalidPayment, store.ReasonUnreadable},
		}[kind]
		for _, reason := range append(reasons, "") {
			v := store.Case{Kind: kind, Params: reason.With(nil)}
			if len(review.Possible(&v)) == 0 && (reason != "" || len(reasons) == 0) {
				t.Errorf("%s %s has no resolution", kind, reason)
			}
		}
	}
}

// A proposal whose row was changed in the database counts for nobody: the person who wrote
// it cannot confirm it under the first name.
func TestChangedProposalIsNotConfirmed(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		d := newDesk(g)
		_, v := d.unknownPayout()
		r := request(&v, store.ResolvedRelease)
		d.resolve(r)
		d.Execute("UPDATE decisions SET actor = 'operator:bia'")
		d.refused(r, problem.InvalidState)
	})
}
