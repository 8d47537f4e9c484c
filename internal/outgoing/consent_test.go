package outgoing_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// consents is a test at a bank that pays a repeated transfer twice, and asks before it
// executes one.
func consents(t *testing.T, run func(t *testing.T, g *coretest.Gateway), change ...func(e *env.Env)) {
	t.Helper()
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		askFirst(g)
		run(t, g)
	}, change...)
}

func askFirst(g *coretest.Gateway) {
	g.Bank.Profiled.Transfer = processor.Effect{QuietPeriod: time.Minute, Timeout: 5 * time.Second, Consent: true}
}

// underWay requests a payout and sends it, after the look-up before its first send. The bank
// does not answer, and has not made a transfer yet.
func underWay(g *coretest.Gateway, reference string) payment.Payout {
	g.T.Helper()
	g.Bank.AnswerTransfer = coretest.Unknown
	p := g.Payout(reference, 10_00)
	g.Send()
	g.LookUp()
	g.Send()
	g.WantPayout(p, payment.PayoutProcessing, payment.StepUnknown)
	return p
}

// about is the bank's question about a transfer of a payout.
func about(p payment.Payout, transfer string) processor.Question {
	return processor.Question{Transfer: transfer, ExternalID: p.ExternalID, Amount: p.Amount, Key: p.Beneficiary.Key()}
}

// ask asks, and compares the answer.
func ask(g *coretest.Gateway, q processor.Question, want bool) {
	g.T.Helper()
	why, err := g.Outgoing.AnswerQuestion(g.T.Context(), coretest.BankName, q)
	g.Must(err)
	if (why == "") != want {
		g.T.Errorf("transfer %s: consent %v (%q), want %v", q.Transfer, why == "", why, want)
	}
}

// reports records a state of a transfer of a payout, as a notice does.
func reports(g *coretest.Gateway, p payment.Payout, transfer string, state processor.TransferState) {
	g.T.Helper()
	r := processor.TransferReport{Lookup: processor.Found, State: state, ProcessorID: transfer, Amount: p.Amount, Evidence: "notice"}
	if state == processor.TransferPaid {
		r.EndToEndID = "E" + p.ExternalID[:31]
	}
	known, err := g.Outgoing.RecordNotice(g.T.Context(), coretest.BankName, p.ExternalID, r, nil)
	g.Must(err)
	if !known {
		g.T.Fatal("the notice is about no payout")
	}
}

// prove makes the bank ask about a payout, and pay it.
func prove(g *coretest.Gateway, reference string) {
	g.T.Helper()
	p := underWay(g, reference)
	ask(g, about(p, "transfer of "+reference), true)
	reports(g, p, "transfer of "+reference, processor.TransferPaid)
	g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
	g.Pass(time.Second)
}

// One transfer of a payout gets our consent, as often as the bank asks. No other transfer does,
// neither before the payout has ended nor after.
func TestConsentIsForOneTransfer(t *testing.T) {
	consents(t, func(_ *testing.T, g *coretest.Gateway) {
		p := underWay(g, "r")
		ask(g, about(p, "first"), true)
		ask(g, about(p, "second"), false)
		ask(g, about(p, "first"), true)
		reports(g, p, "first", processor.TransferProcessing)
		ask(g, about(p, "second"), false)
		reports(g, p, "first", processor.TransferPaid)
		ask(g, about(p, "second"), false)
		ask(g, about(p, "first"), true)
	})
}

// The transfer with our consent gets no more consent once another transfer has paid the payout: the
// bank may not have had our answer. Its later failure changes nothing.
func TestConsentEndsWhenAnotherTransferHasPaid(t *testing.T) {
	consents(t, func(_ *testing.T, g *coretest.Gateway) {
		p := underWay(g, "r")
		ask(g, about(p, "first"), true)
		reports(g, p, "second", processor.TransferPaid)
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		ask(g, about(p, "first"), false)
		ask(g, about(p, "second"), false)
		reports(g, p, "first", processor.TransferFailed)
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		g.WantBalances(coretest.Opening-p.Amount, 0)
		g.WantCases()
	})
}

// Only a payout under way, with its amount and its key, gets consent.
func TestConsentIsRefused(t *testing.T) {
	consents(t, func(t *testing.T, g *coretest.Gateway) {
		queued := g.Payout("queued", 10_00)
		ask(g, about(queued, "a"), false)
		canceled, err := g.Payouts.Cancel(t.Context(), g.Merchant.ID, queued.ID)
		g.Must(err)
		ask(g, about(canceled, "a"), false)

		p := underWay(g, "r")
		for name, change := range map[string]func(q *processor.Question){
			"another amount": func(q *processor.Question) { q.Amount++ },
			"another key":    func(q *processor.Question) { q.Key = "mario@example.com" },
			"an unknown id": func(q *processor.Question) {
				q.ExternalID = g.Store.ExternalID(&g.Merchant, payment.OperationPayout, "x")
			},
			"an id of a pay-in":  func(q *processor.Question) { q.ExternalID = g.Payin(g.Merchant, "in", "").ExternalID },
			"another program's":  func(q *processor.Question) { q.ExternalID = "invoice 17" },
			"no id of the bank":  func(q *processor.Question) { q.Transfer = "" },
			"no external id":     func(q *processor.Question) { q.ExternalID = "" },
			"no key, no amount":  func(q *processor.Question) { q.Key, q.Amount = "", 0 },
			"a negative amount":  func(q *processor.Question) { q.Amount = -q.Amount },
			"the key's upper":    func(q *processor.Question) { q.Key = "MARIA@EXAMPLE.COM" },
			"an id with a blank": func(q *processor.Question) { q.ExternalID += " " },
		} {
			q := about(p, "first")
			change(&q)
			t.Run(name, func(t *testing.T) {
				if why, err := g.Outgoing.AnswerQuestion(t.Context(), coretest.BankName, q); err != nil || why == "" {
					t.Errorf("consent to %+v: %v", q, err)
				}
			})
		}
		if why, err := g.Outgoing.AnswerQuestion(t.Context(), "another account", about(p, "first")); err != nil || why == "" {
			t.Errorf("consent to another account: %v", err)
		}
		reports(g, p, "first", processor.TransferFailed)
		g.WantPayout(p, payment.PayoutFailed, payment.StepDone)
		ask(g, about(p, "first"), false)
		ask(g, about(p, "second"), false)
		g.WantBalances(coretest.Opening, 0)

		parked := underWay(g, "parked")
		damage(g, parked)
		ask(g, about(parked, "first"), false)
	})
}

// A payout that is not under way any more gets no consent, until it is sent again.
func TestConsentBetweenSends(t *testing.T) {
	consents(t, func(_ *testing.T, g *coretest.Gateway) {
		prove(g, "proof")
		p := underWay(g, "r")
		g.Pass(2 * time.Minute)
		g.LookUp()
		g.WantPayout(p, payment.PayoutProcessing, payment.StepQueued)
		ask(g, about(p, "first"), false)
		g.Send()
		ask(g, about(p, "first"), true)
		ask(g, about(p, "second"), false)

		other := underWay(g, "another amount")
		wrong := processor.TransferReport{Lookup: processor.Found, State: processor.TransferProcessing, ProcessorID: "x", Amount: 1}
		_, err := g.Outgoing.RecordNotice(g.T.Context(), coretest.BankName, other.ExternalID, wrong, nil)
		g.Must(err)
		g.WantPayout(other, payment.PayoutProcessing, payment.StepReview)
		ask(g, about(other, "x"), false)
	})
}

// Of the questions about many transfers of a payout at once, at two processes, one gets our
// consent.
func TestConsentAtOnce(t *testing.T) {
	consents(t, func(t *testing.T, g *coretest.Gateway) {
		p := underWay(g, "r")
		other := g.Second()
		var given atomic.Int64
		var all sync.WaitGroup
		for i := range 8 {
			process := []*coretest.Gateway{g, other}[i%2]
			all.Go(func() {
				why, err := process.Outgoing.AnswerQuestion(t.Context(), coretest.BankName, about(p, fmt.Sprint("transfer ", i)))
				if err != nil {
					t.Error(err)
				} else if why == "" {
					given.Add(1)
				}
			})
		}
		g.UntilWithin(raceWithin, all.Wait)
		if n := given.Load(); n != 1 {
			t.Errorf("%d transfers got our consent", n)
		}
	})
}

// If the process dies between the commit and the answer, the question is asked again and
// answered again. The same holds after a commit of unknown outcome.
func TestConsentIsDurableBeforeTheAnswer(t *testing.T) {
	for _, when := range []env.Failpoint{env.BeforeCommit, env.AfterCommit} {
		t.Run(string(when), func(t *testing.T) {
			var cuts *atomic.Int64
			consents(t, func(_ *testing.T, g *coretest.Gateway) {
				p := underWay(g, "r")
				cuts.Store(1)
				g.Until(func() { ask(g, about(p, "first"), true) })
				if cuts.Load() != 0 {
					g.T.Error("no commit was cut")
				}
				g.Restart(func(*app.CoreOptions) {})
				ask(g, about(p, "second"), false)
				ask(g, about(p, "first"), true)
			}, func(e *env.Env) { cuts = coretest.CutCommits(e, when) })
		})
	}
}

// At an account that is proved to ask, a payout that was not found is sent again without a person.
// The delayed first transfer asks too late.
func TestConsentLetsAPayoutBeSentAgain(t *testing.T) {
	consents(t, func(_ *testing.T, g *coretest.Gateway) {
		prove(g, "proof")
		p := underWay(g, "r")
		g.Pass(2 * time.Minute)
		g.LookUp()
		g.Send()
		g.WantSends(p, store.SendNotFound, store.SendUnknown)
		g.WantCases()
		ask(g, about(p, "second"), true)
		ask(g, about(p, "first"), false)
		reports(g, p, "first", processor.TransferFailed) // as the bank was refused
		g.WantPayout(p, payment.PayoutProcessing, payment.StepAccepted)
		reports(g, p, "second", processor.TransferPaid)
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		g.WantBalances(coretest.Opening-20_00, 0)
	})
}

// The delayed transfer may ask first, while the second send is under way. The second transfer is
// then refused, which releases nothing: only the first transfer decides.
func TestConsentToADelayedTransfer(t *testing.T) {
	for name, row := range map[string]struct {
		answer processor.TransferAnswer // to the second send
		end    processor.TransferState  // of the first transfer
	}{
		"refused, then paid":   {refused, processor.TransferPaid},
		"refused, then failed": {refused, processor.TransferFailed},
		"failed, then paid": {processor.TransferAnswer{Outcome: processor.Done, Report: processor.TransferReport{
			Lookup: processor.Found, State: processor.TransferFailed, ProcessorID: "second", Amount: 10_00,
		}}, processor.TransferPaid},
		"failed without an id, then failed": {processor.TransferAnswer{Outcome: processor.Done, Report: processor.TransferReport{
			Lookup: processor.Found, State: processor.TransferFailed, Amount: 10_00,
		}}, processor.TransferFailed},
	} {
		t.Run(name, func(t *testing.T) {
			consents(t, func(_ *testing.T, g *coretest.Gateway) {
				prove(g, "proof")
				p := underWay(g, "r")
				g.Pass(2 * time.Minute)
				g.LookUp()
				s := claim(g)
				ask(g, about(p, "first"), true)
				record(g, s, row.answer)
				if got := g.ReadPayout(p); got.Status != payment.PayoutProcessing {
					g.T.Fatalf("the payout is %s after the end of the second transfer", got.Status)
				}
				g.Bank.AnswerQuery = func(b *coretest.Bank, externalID string) processor.TransferReport {
					return processor.TransferReport{Lookup: processor.Found, State: row.end, ProcessorID: "first", EndToEndID: "E" + externalID[:31], Amount: 10_00}
				}
				g.Pass(time.Minute)
				g.LookUp()
				if row.end == processor.TransferPaid {
					g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
					g.WantBalances(coretest.Opening-20_00, 0)
				} else {
					g.WantPayout(p, payment.PayoutFailed, payment.StepDone)
					g.WantBalances(coretest.Opening-10_00, 0)
				}
			})
		})
	}
}

// If a transfer has our consent, its payout is not sent again, even if the transfer is not found: a
// person decides.
func TestConsentedPayoutIsNotSentAgain(t *testing.T) {
	consents(t, func(_ *testing.T, g *coretest.Gateway) {
		p := underWay(g, "r")
		ask(g, about(p, "first"), true)
		calls := len(g.Bank.Calls)
		for range 40 {
			g.Jump(6 * time.Hour)
			g.LookUp()
			g.Send()
		}
		g.WantPayout(p, payment.PayoutProcessing, payment.StepUnknown)
		g.WantReason(store.CasePayoutUnknown, store.ReasonNoAnswer)
		if n := len(g.Bank.Calls); n != calls {
			g.T.Errorf("it was sent %d times more", n-calls)
		}
	})
}

// A payout of an account that is not proved to ask gets a case: of one that never asked, of one
// that did not ask before the payout was sent, and of one that paid without a question, until
// it asks again.
func TestAccountIsProvedToAsk(t *testing.T) {
	consents(t, func(_ *testing.T, g *coretest.Gateway) {
		notFound := func(reference string, step payment.PayoutStep) {
			g.T.Helper()
			p := underWay(g, reference)
			g.Pass(2 * time.Minute)
			g.LookUp()
			g.WantPayout(p, payment.PayoutProcessing, step)
		}
		notFound("never asked", payment.StepReview)
		g.WantReason(store.CasePayoutUnknown, store.ReasonNotIdempotent)
		before := underWay(g, "sent before the proof")
		prove(g, "asked")
		g.Pass(2 * time.Minute)
		g.LookUp()
		g.WantPayout(before, payment.PayoutProcessing, payment.StepReview)
		notFound("sent again", payment.StepQueued)
		unasked := underWay(g, "paid without a question")
		reports(g, unasked, "t", processor.TransferPaid)
		notFound("no proof any more", payment.StepReview)
		prove(g, "asked again")
		notFound("sent again too", payment.StepQueued)

		g.Bank.Profiled.Transfer.Consent = false // the account's setting
		notFound("not declared", payment.StepReview)
	})
}

// After a restore an account gives no consent until its transfers have been read, and none to
// a payout that was sent before: the database may lack our consent to another transfer of it.
// A process that has not noticed the restore gives no answer.
func TestConsentAfterARestore(t *testing.T) {
	consents(t, func(t *testing.T, g *coretest.Gateway) {
		p, given := underWay(g, "r"), underWay(g, "given")
		ask(g, about(given, "first"), true)
		g.Marker.Epoch += 1000
		g.Must(g.Cluster.Join(t.Context(), g.Marker.Mark, false))
		g.Heartbeat()
		ask(g, about(p, "first"), false)
		ask(g, about(given, "first"), false)
		g.ClearAccount()
		ask(g, about(p, "first"), false)
		ask(g, about(given, "first"), true)
		ask(g, about(given, "second"), false)
		g.Pass(2 * time.Minute) // the quiet period, which begins with the restore
		p = underWay(g, "sent afterwards")
		g.Execute("UPDATE payout_sends SET created_at = created_at + 60000000")
		ask(g, about(p, "first"), false) // by a clock that was ahead
		g.Execute("UPDATE payout_sends SET created_at = created_at - 60000000")
		ask(g, about(p, "first"), true)

		g.Execute("UPDATE installation SET epoch = epoch - 500")
		if why, err := g.Outgoing.AnswerQuestion(t.Context(), coretest.BankName, about(p, "first")); err == nil {
			t.Errorf("an answer on a restored database: %q", why)
		}
	})
}

// A process that was killed during a send gives its consent after the next start, until the quiet period
// of the send ends: then a lost past may have sent it again.
func TestConsentAfterAColdStart(t *testing.T) {
	consents(t, func(_ *testing.T, g *coretest.Gateway) {
		p, late := underWay(g, "r"), underWay(g, "late")
		g.ColdStart()
		ask(g, about(p, "first"), true)
		ask(g, about(p, "second"), false)
		g.Jump(3 * time.Minute)
		ask(g, about(late, "first"), false)
		g.Clear()
		ask(g, about(late, "first"), false)
	})
}

// A process that was declared dead gives no answer.
func TestConsentOfADeadProcess(t *testing.T) {
	consents(t, func(t *testing.T, g *coretest.Gateway) {
		p := underWay(g, "r")
		g.Second().DeclareDead(g)
		if why, err := g.Outgoing.AnswerQuestion(t.Context(), coretest.BankName, about(p, "first")); err == nil {
			t.Errorf("an answer of a dead process: %q", why)
		}
	})
}
