package outgoing_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// defender is a bank that takes answers to disputes.
type defender struct {
	*coretest.Bank

	calls  []processor.DefenseRequest
	answer processor.TransferAnswer // of the next calls
	keeps  bool                     // an answer that is not done is kept all the same
	has    bool
}

func (d *defender) Defend(ctx context.Context, r processor.DefenseRequest, guard func() error) processor.TransferAnswer {
	if err := errors.Join(ctx.Err(), guard()); err != nil {
		return processor.TransferAnswer{Outcome: processor.NotSent, Cause: err}
	}
	d.calls = append(d.calls, r)
	d.has = d.has || d.answer.Outcome == processor.Done || d.keeps
	return d.answer
}

func (d *defender) QueryDefense(context.Context, processor.DefenseRequest) processor.TransferReport {
	if d.has {
		return processor.TransferReport{Lookup: processor.Found}
	}
	return processor.TransferReport{Lookup: processor.NotFound}
}

// disputed is a dispute of 100.00 that can be defended for ten days.
func disputed(g *coretest.Gateway) payment.Dispute {
	g.T.Helper()
	p := g.PaidPayin("p", 100_00)
	g.Bank.Disputes(p.ExternalID, processor.Dispute{ID: "D", Amount: 100_00, State: processor.DisputeOpen, RespondBy: g.Clock.Now().Add(10 * 24 * time.Hour)})
	g.Notify("disputed", "charge "+p.ExternalID)
	g.Apply()
	return stored(g)
}

func stored(g *coretest.Gateway) payment.Dispute {
	g.T.Helper()
	d, err := g.Store.DisputeByExternalID(g.T.Context(), g.Merchant.ID, coretest.BankName, "D")
	g.Must(err)
	return d
}

func defend(g *coretest.Gateway, d payment.Dispute, text string) error {
	r := &wire.DefenseRequest{
		Text:     wire.Some(text),
		Files:    wire.Some([]wire.FileRequest{{Name: wire.Some("a.pdf"), Type: wire.Some("application/pdf")}}),
		Contents: [][]byte{[]byte("%PDF-1")}, Fingerprint: wire.NewFingerprint([]wire.FieldMAC{{Name: "text", MAC: [16]byte([]byte(text + "                ")[:16])}}),
	}
	_, _, err := g.Disputes.Defend(g.T.Context(), d.Merchant, d.ID, r)
	return err
}

// A page of fifty disputes with defenses costs as many round trips as one of five.
func TestRoundTripsOfDisputes(t *testing.T) {
	g, count := coretest.NewCountingReads(t)
	for i := range 50 {
		id := fmt.Sprint("D", i)
		p := g.PaidPayin(id, 100_00)
		g.Bank.Disputes(p.ExternalID, processor.Dispute{ID: id, Amount: 100_00, State: processor.DisputeOpen, RespondBy: g.Clock.Now().Add(time.Hour)})
		g.Notify(id, "charge "+p.ExternalID)
		g.Apply()
		d, err := g.Store.DisputeByExternalID(t.Context(), g.Merchant.ID, coretest.BankName, id)
		g.Must(err)
		g.Must(defend(g, d, id))
	}
	coretest.WantRoundTrips(t, "disputes", 2, func(n int) int64 {
		return count(func() {
			list, err := g.Store.Disputes(t.Context(), g.Merchant.ID, store.DisputeFilter{Limit: n})
			g.Must(err)
			for i := range list {
				if want := fmt.Sprint("D", 49-i); len(list) != n || list[i].Defense == nil || list[i].Defense.Text != want {
					t.Errorf("%d disputes; the defense of %s is %v", len(list), want, list[i].Defense)
				}
			}
		})
	})
}

// wantAnswer compares the last answer, and the number of calls.
func wantAnswer(g *coretest.Gateway, bank *defender, step payment.PayoutStep, outcome string, calls int) {
	g.T.Helper()
	list, err := g.Store.DisputeAnswers(g.T.Context(), g.Merchant.ID, stored(g).ID)
	g.Must(err)
	if last := list[len(list)-1]; last.Step != step || last.Outcome != outcome || len(bank.calls) != calls {
		g.T.Fatalf("the answer is %s, %q after %d calls, want %s, %q after %d\n%s", last.Step, last.Outcome, len(bank.calls), step, outcome, calls, g.Log)
	}
	g.WantProven()
}

func onDefender(t *testing.T, outcome processor.Outcome, test func(t *testing.T, g *coretest.Gateway, bank *defender)) {
	t.Helper()
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		bank := &defender{Bank: g.Bank, answer: processor.TransferAnswer{Outcome: outcome, Evidence: "answer", Cause: errors.New("answer")}}
		bank.Profiled.Defense = processor.Effect{Repeat: processor.RepeatReturnsFirst, QuietPeriod: time.Minute, Timeout: 5 * time.Second}
		g.Processor(coretest.BankName, bank)
		test(t, g, bank)
	})
}

func TestDefenseIsSent(t *testing.T) {
	onDefender(t, processor.Done, func(t *testing.T, g *coretest.Gateway, bank *defender) {
		d := disputed(g)
		g.Must(defend(g, d, "text"))
		g.Must(defend(g, d, "text"))
		g.Run(g.Outgoing.SendAnswers)
		g.Run(g.Outgoing.SendAnswers)
		wantAnswer(g, bank, payment.StepDone, "taken", 1)
		if call := bank.calls[0]; call.DisputeID != "D" || call.Text != "text" || len(call.Files) != 1 || string(call.Files[0].Content) != "%PDF-1" || call.Accept {
			t.Errorf("sent %+v", call)
		}
		if defend(g, d, "another") == nil {
			t.Error("a second defense was taken")
		}
		g.WantCases()
	})
}

// An unknown outcome is looked up; the answer is sent again only after "not found" beyond the
// quiet period.
func TestDefenseOfUnknownOutcome(t *testing.T) {
	for _, keeps := range []bool{true, false} {
		onDefender(t, processor.Unknown, func(_ *testing.T, g *coretest.Gateway, bank *defender) {
			bank.keeps = keeps
			g.Must(defend(g, disputed(g), "text"))
			g.Run(g.Outgoing.SendAnswers)
			wantAnswer(g, bank, payment.StepUnknown, "unknown", 1)
			g.Jump(10 * time.Second)
			g.Run(g.Outgoing.SendAnswers)
			if keeps {
				wantAnswer(g, bank, payment.StepDone, "taken", 1)
				return
			}
			wantAnswer(g, bank, payment.StepUnknown, "unknown", 1)
			bank.answer.Outcome = processor.Done
			g.Jump(2 * time.Minute)
			g.Run(g.Outgoing.SendAnswers)
			g.Run(g.Outgoing.SendAnswers)
			wantAnswer(g, bank, payment.StepDone, "taken", 2)
			g.WantCases()
		})
	}
}

// A refused answer gets a case; at a bank that takes no answers, each answer gets a case at once.
func TestDefenseOpensACase(t *testing.T) {
	onDefender(t, processor.Refused, func(_ *testing.T, g *coretest.Gateway, bank *defender) {
		g.Must(defend(g, disputed(g), "text"))
		g.Run(g.Outgoing.SendAnswers)
		wantAnswer(g, bank, payment.StepReview, "refused", 1)
		g.WantCases(store.CaseDisputeAnswer)
	})
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		d := disputed(g)
		g.Must(defend(g, d, "text"))
		g.Run(g.Outgoing.SendAnswers)
		wantAnswer(g, &defender{}, payment.StepReview, "", 0)
		g.WantCases(store.CaseDisputeAnswer)
		p, err := g.Store.Payin(g.T.Context(), d.Merchant, d.Payin)
		g.Must(err)
		g.Bank.Disputes(p.ExternalID, processor.Dispute{ID: "D", Amount: 100_00, State: processor.DisputeWon})
		g.Notify("won", "charge "+p.ExternalID)
		g.Apply()
		g.WantCases()
	})
}

// suspendable are accounts that a test suspends.
type suspendable struct {
	processor.Registry

	suspended, refused bool
}

func (s *suspendable) Refused(string) bool { return s.refused }

func (s *suspendable) Allows(id string, use payment.AccountUse) error {
	if s.suspended {
		return processor.NotAllowed(id, payment.AccountSuspended, use)
	}
	return s.Registry.Allows(id, use)
}

// suspendableAccounts are the accounts of a gateway from now on.
func suspendableAccounts(g *coretest.Gateway) *suspendable {
	g.T.Helper()
	accounts := &suspendable{}
	g.Restart(func(o *app.CoreOptions) {
		accounts.Registry = o.Processors.(processor.Registry)
		o.Processors = accounts
	})
	return accounts
}

// A suspended account sends no answers, but looks up the answers that it may have sent. A waiting
// answer has one case, and is sent when the account is resumed.
func TestSuspendedAccountSendsNoAnswers(t *testing.T) {
	onDefender(t, processor.Done, func(_ *testing.T, g *coretest.Gateway, bank *defender) {
		accounts := suspendableAccounts(g)
		d := disputed(g)
		accounts.suspended = true
		g.Must(defend(g, d, "text"))
		for range 3 {
			g.Run(g.Outgoing.SendAnswers)
			wantAnswer(g, bank, payment.StepQueued, "", 0)
			g.WantCases(store.CaseDisputeAnswer)
			g.Jump(time.Minute)
		}
		accounts.suspended, bank.answer.Outcome, bank.keeps = false, processor.Unknown, true
		g.Run(g.Outgoing.SendAnswers)
		wantAnswer(g, bank, payment.StepUnknown, "unknown", 1)
		accounts.suspended = true
		g.Jump(time.Minute)
		g.Run(g.Outgoing.SendAnswers)
		wantAnswer(g, bank, payment.StepDone, "taken", 1)
		g.WantCases()
	})
}

// If the processor refuses the credentials of the account, an answer that waits has one case too, and
// nothing is looked up.
func TestAnswerWaitsForCredentials(t *testing.T) {
	onDefender(t, processor.Unknown, func(_ *testing.T, g *coretest.Gateway, bank *defender) {
		accounts := suspendableAccounts(g)
		d := disputed(g)
		waits := func(step payment.PayoutStep, outcome string, calls int) {
			g.T.Helper()
			accounts.suspended, accounts.refused = true, true
			for range 3 {
				g.Run(g.Outgoing.SendAnswers)
				wantAnswer(g, bank, step, outcome, calls)
				g.WantCases(store.CaseDisputeAnswer)
				g.Jump(time.Minute)
			}
			accounts.suspended, accounts.refused = false, false
		}
		g.Must(defend(g, d, "text"))
		waits(payment.StepQueued, "", 0)
		bank.keeps = true
		g.Run(g.Outgoing.SendAnswers)
		g.Jump(time.Minute)
		waits(payment.StepUnknown, "unknown", 1)
		g.Run(g.Outgoing.SendAnswers)
		wantAnswer(g, bank, payment.StepDone, "taken", 1)
		g.WantCases()
	})
}

// Nor does an account whose refunds and transfers have not been read after a restore.
func TestFrozenAccountSendsNoAnswers(t *testing.T) {
	onDefender(t, processor.Done, func(_ *testing.T, g *coretest.Gateway, bank *defender) {
		d := disputed(g)
		g.Execute("UPDATE installation SET epoch = epoch - 3") // an older copy
		g.Heartbeat()
		g.Must(defend(g, d, "text"))
		g.Run(g.Outgoing.SendAnswers)
		wantAnswer(g, bank, payment.StepUnknown, "", 0)
		g.Jump(time.Minute) // the quiet period
		g.Run(g.Outgoing.SendAnswers)
		wantAnswer(g, bank, payment.StepQueued, "", 0)
		g.WantCases(store.CaseDisputeAnswer)
		g.Clear()
		g.Jump(time.Minute)
		g.Run(g.Outgoing.SendAnswers)
		wantAnswer(g, bank, payment.StepDone, "taken", 1)
		g.WantCases()
	})
}

// An answer that was sent right before the database was restored may appear within the quiet period: until
// that is over, "not found" does not let it be sent a second time.
func TestAnswerOfALostPastAppearsLate(t *testing.T) {
	onDefender(t, processor.Done, func(t *testing.T, g *coretest.Gateway, bank *defender) {
		d := disputed(g)
		g.Must(defend(g, d, "text"))
		g.Execute("UPDATE installation SET epoch = epoch - 3") // an older copy
		g.Heartbeat()
		g.Run(g.Outgoing.SendAnswers)
		g.Jump(10 * time.Second)
		g.Run(g.Outgoing.SendAnswers)
		bank.has = true
		g.Jump(2 * time.Minute)
		g.Clear()
		g.Run(g.Outgoing.SendAnswers)
		wantAnswer(g, bank, payment.StepDone, "taken", 0)
	})
}

// A queued defense is not sent any more once the merchant has given up; giving up is sent, and
// a dispute that is won nevertheless is reversed.
func TestAcceptAfterDefense(t *testing.T) {
	onDefender(t, processor.Done, func(t *testing.T, g *coretest.Gateway, bank *defender) {
		d := disputed(g)
		g.Must(defend(g, d, "text"))
		for range 2 {
			got, _, err := g.Disputes.Accept(t.Context(), d.Merchant, d.ID)
			g.Must(err)
			if got.Status != payment.DisputeLost || !got.Accepted {
				t.Fatalf("it is %+v", got)
			}
		}
		g.Run(g.Outgoing.SendAnswers)
		wantAnswer(g, bank, payment.StepDone, "taken", 1)
		if !bank.calls[0].Accept || bank.calls[0].Text != "" {
			t.Errorf("sent %+v", bank.calls[0])
		}
		g.WantBalances(coretest.Opening, 0)
		p, err := g.Store.Payin(t.Context(), d.Merchant, d.Payin)
		g.Must(err)
		g.Bank.Disputes(p.ExternalID, processor.Dispute{ID: "D", Amount: 100_00, State: processor.DisputeWon})
		g.ReadFeeds()
		if got := stored(g); got.Status != payment.DisputeReversed {
			t.Errorf("it is %s", got.Status)
		}
		g.WantBalances(coretest.Opening+100_00, 0)
		g.WantProven()
	})
}

// A dispute without a defense has one case 7, 3 and 1 days before its deadline, and none after a
// defense, after the deadline or while that is far away.
func TestDeadlines(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		d := disputed(g)
		want := func(days string) {
			t.Helper()
			g.Run(g.Disputes.Remind)
			g.Run(g.Disputes.Remind)
			list, err := g.Store.OpenCases(t.Context(), 5)
			g.Must(err)
			got := ""
			if len(list) > 0 {
				got = list[0].Params["days"]
			}
			if len(list) > 1 || got != days {
				t.Fatalf("cases %+v, want one of %q days", list, days)
			}
		}
		want("")
		g.Jump(3*24*time.Hour + time.Second)
		want("7")
		g.Jump(4 * 24 * time.Hour)
		want("3")
		g.Jump(24 * time.Hour)
		want("3")
		g.Jump(24 * time.Hour)
		want("1")
		moved := processor.Dispute{ID: "D", Amount: 100_00, State: processor.DisputeOpen, RespondBy: d.RespondBy.Add(30 * 24 * time.Hour)}
		p, err := g.Store.Payin(t.Context(), d.Merchant, d.Payin)
		g.Must(err)
		g.Bank.Disputes(p.ExternalID, moved)
		g.Notify("later", "charge "+p.ExternalID)
		g.Apply()
		want("") // the processor has moved the deadline
		g.Jump(29*24*time.Hour - time.Second)
		want("3")
		g.Must(defend(g, d, "text"))
		want("")
		g.WantProven()
	})
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		d := disputed(g)
		g.Jump(10 * 24 * time.Hour)
		g.Run(g.Disputes.Remind)
		g.WantCases()
		if defend(g, d, "text") == nil {
			t.Error("defended after the deadline")
		}
	})
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		disputed(g)
		g.Jump(9 * 24 * time.Hour)
		g.Run(g.Disputes.Remind)
		g.WantCases(store.CaseDisputeDeadline)
		g.Jump(24*time.Hour - time.Second)
		g.Run(g.Disputes.Remind)
		g.WantCases(store.CaseDisputeDeadline)
		g.Jump(time.Second)
		g.Run(g.Disputes.Remind)
		g.WantCases() // it can no longer be defended
		g.WantProven()
	})
}
