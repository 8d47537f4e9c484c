package store_test

import (
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// answer answers the disputes of the last batch, and claims and changes the answers.
func (v *exercise) answer(count int) {
	v.t.Helper()
	s, m := v.s, v.merchants[0].ID
	needs := func(n *store.Needs) {
		for i := range count {
			n.DisputesOfPayin(m, v.last.payins[i].Payin.ID)
			n.OpenCasesAbout(m, v.last.payins[i].Payin.ID, store.CaseOverpaid)
		}
	}
	v.commit(store.Capacity{}, needs, func(l *store.Loaded, c *store.Changes) {
		for i := range count {
			d := l.DisputesOf(m, v.last.payins[i].Payin.ID)[0]
			defense, err := s.NewDefense(m, d.ID, payment.Defense{Text: "text", Files: []payment.DefenseFile{{Name: "a", Type: "b", Size: 1}}}, [][]byte{{1}}, []byte{2})
			must(v.t, err)
			d.Status, d.SubmittedAt, d.RemindAt = payment.DisputeSubmitted, l.Now(), l.Now()
			c.SetDispute(d)
			c.AddAnswer(payment.DisputeAnswer{
				Merchant: m, Dispute: d.ID, Number: 1, Payin: d.Payin, Processor: "bank", Action: payment.AnswerDefend, Step: payment.StepQueued, NextAt: l.Now(),
			}, defense)
		}
	})
	due := store.DueAnswers{Account: "bank", Limit: 10}
	v.commit(store.Capacity{}, func(n *store.Needs) { needs(n); n.DueAnswers(due) }, func(l *store.Loaded, c *store.Changes) {
		if list := l.DueAnswers(due); len(list) < count {
			v.t.Errorf("%d answers are due", len(list))
		}
		for i := range count {
			d := l.DisputesOf(m, v.last.payins[i].Payin.ID)[0]
			list, _ := l.Answers(m, d.ID)
			if l.Defense(m, d.ID) == nil || len(list) != 1 {
				v.t.Errorf("dispute %d of %d has answers %v", i, count, list)
			}
			l.OpenCasesAbout(m, d.Payin, store.CaseOverpaid)
			l.WrittenOff(m, d.Payin, payment.ID{})
			list[0].ClaimedBy, list[0].NextAt = v.node, time.Time{}
			c.SetAnswer(list[0])
		}
	})
}

// readDisputes reads disputes one by one, and in lists with each filter.
func (v *exercise) readDisputes() {
	t, s, ctx, m := v.t, v.s, v.t.Context(), v.merchants[0].ID
	payin := v.last.payins[0].Payin.ID
	list, err := s.Disputes(ctx, m, store.DisputeFilter{Payin: payin, Limit: 5})
	if err != nil || len(list) == 0 {
		t.Fatalf("disputes %v, %v", list, err)
	}
	_, err = s.DisputesOfPayin(ctx, m, payin)
	must(t, err)
	for _, f := range []store.DisputeFilter{
		{}, {Statuses: []string{string(payment.DisputeOpen)}}, {Statuses: []string{string(payment.DisputeOpen), string(payment.DisputeSubmitted)}}, {Kind: string(payment.KindMED)}, {RespondBefore: v.far}, {Before: payin},
		{Payin: payin, Statuses: []string{string(payment.DisputeWon)}, Before: payin},
	} {
		f.Limit = 5
		_, err = s.Disputes(ctx, m, f)
		must(t, err)
	}
	d := list[0].Dispute
	_, _, err = s.Dispute(ctx, m, d.ID)
	must(t, err)
	_, err = s.FindDispute(ctx, d.ID)
	must(t, err)
	_, err = s.DisputeByExternalID(ctx, m, "bank", d.ExternalID)
	must(t, err)
	answers, err := s.DisputeAnswers(ctx, m, d.ID)
	must(t, err)
	if len(answers) > 0 {
		_, contents, err := s.DefenseFiles(ctx, &answers[0])
		must(t, err)
		if len(contents) != 1 {
			t.Errorf("contents %v", contents)
		}
	}
	_, err = s.DisputesToRemind(ctx, v.far, 5)
	must(t, err)
	_, err = s.AccountsWithAnswers(ctx, v.far)
	must(t, err)
}
