package review_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// newAskedDesk is a desk at a bank that pays a repeated transfer twice, and asks before it
// executes one.
func newAskedDesk(g *coretest.Gateway) *desk {
	g.Bank.Profiled.Transfer = processor.Effect{QuietPeriod: time.Minute, Timeout: 5 * time.Second, Consent: true}
	g.Bank.AnswerTransfer = coretest.Unknown
	return newDesk(g)
}

// sent is a payout that was sent without an answer.
func (d *desk) sent(reference string) payment.Payout {
	d.T.Helper()
	p := d.Payout(reference, 10_00)
	d.Send()
	d.LookUp()
	d.Send()
	d.WantPayout(p, payment.PayoutProcessing, payment.StepUnknown)
	return p
}

// asks asks about a transfer of a payout, and expects the consent or its refusal.
func (d *desk) asks(p payment.Payout, transfer string, want bool) {
	d.T.Helper()
	why, err := d.Outgoing.AnswerQuestion(d.T.Context(), coretest.BankName, processor.Question{
		Transfer: transfer, ExternalID: p.ExternalID, Amount: p.Amount, Key: p.Beneficiary.Key(),
	})
	d.Must(err)
	if (why == "") != want {
		d.T.Fatalf("consent to %s: %q", transfer, why)
	}
}

// paid reports that a transfer of a payout was paid.
func (d *desk) paid(p payment.Payout, transfer string) {
	d.T.Helper()
	_, err := d.Outgoing.RecordNotice(d.T.Context(), coretest.BankName, p.ExternalID, processor.TransferReport{
		Lookup: processor.Found, State: processor.TransferPaid, ProcessorID: transfer, EndToEndID: "E" + p.ExternalID[:31], Amount: p.Amount,
	}, nil)
	d.Must(err)
	d.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
}

// prove makes the bank ask about a payout, and pay it.
func (d *desk) prove(reference string) {
	d.T.Helper()
	p := d.sent(reference)
	d.asks(p, "transfer of "+reference, true)
	d.paid(p, "transfer of "+reference)
	d.Pass(time.Second)
}

// notFound is a payout that the bank does not find, with its case: another payout, which was
// paid without a question, has ended the proof.
func (d *desk) notFound() (payment.Payout, store.Case) {
	d.T.Helper()
	p := d.sent("not found")
	d.paid(d.sent("paid without a question"), "t")
	d.Pass(2 * time.Minute)
	d.LookUp()
	d.WantPayout(p, payment.PayoutProcessing, payment.StepReview)
	return p, d.only(store.CasePayoutUnknown)
}

// wantPersons compares how many people must decide to send a payout again.
func (d *desk) wantPersons(v *store.Case, want int) {
	d.T.Helper()
	list, err := d.reviews.Possible(d.T.Context(), v)
	d.Must(err)
	seen := 0
	for _, o := range list {
		switch {
		case o.How == store.ResolvedResend:
			if seen++; o.Persons != want {
				d.T.Errorf("%s takes %d persons, want %d", o.How, o.Persons, want)
			}
		case o.Persons != 2:
			d.T.Errorf("%s takes %d persons", o.How, o.Persons)
		}
	}
	if seen != 1 {
		d.T.Errorf("the resolutions are %+v", list)
	}
}

// One person sends a payout again at an account that is proved to ask, and was so before the
// payout was sent. Nothing else takes one person. Only one of its transfers is executed.
func TestOnePersonResendsWithConsent(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		d := newAskedDesk(g)
		d.prove("before")
		p, v := d.notFound()
		d.wantPersons(&v, 2)
		d.prove("again")
		d.wantPersons(&v, 1)
		if got := d.resolve(request(&v, store.ResolvedResend)); got.Action != store.DecisionResolved || got.Case.Resolution != store.ResolvedResend {
			d.T.Fatalf("the decision: %+v", got)
		}
		d.WantPayout(p, payment.PayoutProcessing, payment.StepQueued)
		d.sendAgain()
		d.WantSends(p, store.SendNotFound, store.SendUnknown)
		d.asks(p, "second", true)
		d.asks(p, "first", false)
		d.paid(p, "second")
		d.WantBalances(coretest.Opening-40_00, 0)
		d.WantCases()
		d.WantProven()
	})
}

// Two people decide if the account was not proved to ask before the payout was sent, is not
// proved to ask now, does not declare it, or cannot be opened.
func TestTwoPersonsResendWithoutProof(t *testing.T) {
	for name, change := range map[string]func(d *desk) (payment.Payout, store.Case){
		"it was not proved before": func(d *desk) (payment.Payout, store.Case) {
			p := d.sent("not found")
			d.Pass(2 * time.Minute)
			d.LookUp()
			v := d.only(store.CasePayoutUnknown)
			d.prove("after")
			return p, v
		},
		"it is not proved now": func(d *desk) (payment.Payout, store.Case) {
			d.prove("before")
			return d.notFound()
		},
		"it does not declare it": func(d *desk) (payment.Payout, store.Case) {
			d.prove("before")
			p, v := d.notFound()
			d.prove("again")
			d.Bank.Profiled.Transfer.Consent = false
			return p, v
		},
		"it cannot be opened": func(d *desk) (payment.Payout, store.Case) {
			d.prove("before")
			p, v := d.notFound()
			d.prove("again")
			d.NoProcessor(coretest.BankName)
			d.reviews = newDesk(d.Gateway).reviews
			return p, v
		},
		"the processors are unknown": func(d *desk) (payment.Payout, store.Case) {
			d.prove("before")
			p, v := d.notFound()
			d.prove("again")
			d.reviews.Processors = nil
			return p, v
		},
	} {
		t.Run(name, func(t *testing.T) {
			coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
				d := newAskedDesk(g)
				p, v := change(d)
				d.wantPersons(&v, 2)
				d.agree(&v, store.ResolvedResend)
				d.WantPayout(p, payment.PayoutProcessing, payment.StepQueued)
			})
		})
	}
}

// The number of people is checked in the commit of the decision: the proof may have ended
// since it was prepared.
func TestProofEndsBeforeTheDecision(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		d := newAskedDesk(g)
		d.prove("before")
		p, v := d.notFound()
		d.prove("again")
		op := d.operation(request(&v, store.ResolvedResend))
		d.paid(d.sent("paid without a question, too"), "t")
		d.Must(d.Writer.Do(d.T.Context(), op))
		if op.Result.Action != store.DecisionProposed {
			d.T.Errorf("the decision: %+v", op.Result)
		}
		d.WantPayout(p, payment.PayoutProcessing, payment.StepReview)
		// A proposal waits for another person, also if the account asks again.
		d.prove("and again")
		r := request(&v, store.ResolvedResend)
		d.refused(r, problem.InvalidState)
		r.Actor = "operator:bia"
		if got := d.resolve(r); got.Action != store.DecisionConfirmed {
			d.T.Errorf("the second person: %+v", got)
		}
	})
}

// A payout whose transfer has our consent may be sent again too: the other one is refused.
func TestResendBesideAConsent(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		d := newAskedDesk(g)
		d.prove("before")
		p := d.sent("no answer")
		d.asks(p, "first", true)
		for range 40 {
			d.Jump(6 * time.Hour)
			d.LookUp()
		}
		v := d.only(store.CasePayoutUnknown)
		d.wantPersons(&v, 1)
		if got := d.resolve(request(&v, store.ResolvedResend)); got.Action != store.DecisionResolved {
			d.T.Fatalf("the decision: %+v", got)
		}
		d.sendAgain()
		d.asks(p, "second", false)
		d.asks(p, "first", true)
		d.paid(p, "first")
		d.WantBalances(coretest.Opening-20_00, 0)
		d.WantProven()
	})
}
