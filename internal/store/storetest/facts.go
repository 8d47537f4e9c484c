package storetest

import (
	"time"

	"github.com/porteira/porteira/internal/effect"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

var factTests = []test{
	{"outcomes that are unknown are counted, with the time of the oldest", func(s *suite) {
		m, sent := s.merchant(), s.now().Add(-time.Hour)
		s.equal("before", must(s.store.Unknowns(s.Context())), []store.Unknown{{Subject: "payout"}, {Subject: "refund"}, {Subject: "charge"}, {Subject: "answer"}})
		for i, step := range []payment.PayoutStep{payment.StepUnknown, payment.StepReview, payment.StepAccepted} {
			p := s.payout(m, string(step))
			s.add(p)
			s.commit(setPayout(p, func(v *payment.Payout) {
				v.Status, v.Step, v.SentAt = payment.PayoutProcessing, step, sent.Add(time.Duration(i)*time.Minute)
			}))
		}
		r := payment.Refund{Merchant: m.ID, ID: s.id(), Payin: s.id(), ExternalID: "r", Amount: 1, Version: 1, Status: payment.RefundProcessing}
		s.commit(addRefund(r, nil, payment.RefundPart{Merchant: m.ID, Refund: r.ID, Payin: r.Payin, Number: 1, Processor: "bank", Amount: 1, Effect: effect.Effect{State: effect.Unknown, FirstAt: sent}}))
		s.commit(addCharges(store.Charge{Merchant: m.ID, Payin: s.id(), Number: 1, Account: "bank", State: store.ChargeWanted, MayExist: true, NextAt: s.past(), FirstSentAt: sent}))
		s.equal("unknown", must(s.store.Unknowns(s.Context())), []store.Unknown{
			{Subject: "payout", Count: 2, Since: sent}, {Subject: "refund", Count: 1, Since: sent}, {Subject: "charge", Count: 1, Since: sent}, {Subject: "answer"},
		})
	}},
	{"the first row of each queue is found, at each account", func(s *suite) {
		m, id, at := s.merchant(), s.Name(), s.now().Add(-time.Minute)
		s.write(func(tx *store.AdminTx) error {
			_, err := tx.CreateAccount(s.Context(), store.Account{ID: id, Driver: "sandbox"})
			return err
		})
		s.add(s.payout(m, "due", func(p *payment.Payout) { p.Processor, p.NextAt = id, at }), s.payout(m, "later", func(p *payment.Payout) { p.Processor, p.NextAt = id, s.now() }))
		for _, next := range []time.Time{s.later(), at, s.now()} {
			s.commit(addCharges(store.Charge{Merchant: m.ID, Payin: s.id(), Number: 1, Account: id, State: store.ChargeWanted, NextAt: next}))
		}
		here := func(kind store.WorkKind, now time.Time) (list []store.Oldest) {
			for _, v := range must(s.store.OldestWork(s.Context(), kind, now)) {
				if v.Account == id {
					list = append(list, v)
				}
			}
			return list
		}
		for _, kind := range []store.WorkKind{store.WorkSendPayouts, store.WorkCharges} {
			s.equal(string(kind), here(kind, s.env.Clock.Now()), []store.Oldest{{Account: id, Since: at}})
			s.equal(string(kind)+" before", len(here(kind, at.Add(-time.Second))), 0)
		}
		for _, kind := range []store.WorkKind{
			store.WorkLookUpPayouts, store.WorkSendRefunds, store.WorkLookUpRefunds, store.WorkNotices, store.WorkAnswers,
			store.WorkExpiry, store.WorkApprovals, store.WorkSettlement, store.WorkWebhooks,
		} {
			s.equal(string(kind), len(here(kind, s.later())), 0)
		}
	}},
	{"cases are counted by kind, and closed ones are listed by when they were closed", func(s *suite) {
		m, stopping := s.merchant(), s.id()
		s.commit(does(nil, func(_ *loaded, c *changes) {
			c.OpenCase(store.Case{Merchant: m.ID, Kind: store.CaseEndpoint, Subject: s.id()})
			c.OpenCase(store.Case{Merchant: m.ID, ID: stopping, Kind: store.CaseEndpoint, Subject: m.ID, StopsPayouts: true})
		}))
		s.equal("counted", must(s.store.CountCases(s.Context())), []store.CaseCount{{Kind: store.CaseEndpoint, Open: 2, Stopping: 1}})
		s.commit(does(nil, func(_ *loaded, c *changes) { c.CloseCase(m.ID, stopping, store.ResolvedDismiss) }))
		s.equal("counted later", must(s.store.CountCases(s.Context())), []store.CaseCount{{Kind: store.CaseEndpoint, Open: 1}})
		closed := must(s.store.Cases(s.Context(), m.ID, store.CaseFilter{Closed: true}, 9))
		s.equal("closed", values(len(closed), closed[0].ID), values(1, stopping))
		s.equal("of another kind", len(must(s.store.Cases(s.Context(), m.ID, store.CaseFilter{Kind: store.CaseDamaged}, 9))), 0)
		s.equal("about a subject", len(must(s.store.CasesOf(s.Context(), m.ID, m.ID))), 1)
	}},
	{"what waits to be delivered, balances and records are read", func(s *suite) {
		s.equal("waiting", must(s.store.WebhookBacklog(s.Context())), store.Backlog{})
		s.equal("balances", len(must(s.store.AllBalances(s.Context()))), 0)
		s.write(func(tx *store.AdminTx) error { return tx.SetSetting(s.Context(), store.SettingReading+"b", "2") })
		s.write(func(tx *store.AdminTx) error { return tx.SetSetting(s.Context(), store.SettingReading+"a", "1") })
		s.equal("records", must(s.store.SettingsLike(s.Context(), store.SettingReading)), []string{"1", "2"})
	}},
}
