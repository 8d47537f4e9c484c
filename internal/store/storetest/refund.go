package storetest

import (
	"time"

	"github.com/porteira/porteira/internal/effect"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

var refundTests = []test{
	{"a refund and its parts keep all their fields, and their changes", func(s *suite) {
		m := s.merchant().ID
		want := filled(payment.Refund{Merchant: m, ID: s.id(), Payin: s.id(), Amount: 1_000_000, RefundedAmount: 1}, 1)
		part := filled(payment.RefundPart{Merchant: m, Refund: want.ID, Number: 1, Payin: want.Payin, Amount: 1_000_000}, 1)
		part.Result = "" // its outcome has it
		s.commit(addRefund(want, []byte{1}, part))
		sameFields(s, "refund", must(s.store.Refund(s.Context(), m, want.ID)), want)
		sameFields(s, "found by id alone", must(s.store.FindRefund(s.Context(), want.ID)), want)
		got, fingerprint, err := s.store.RefundByExternalID(s.Context(), m, want.ExternalID)
		s.must(err)
		s.equal("by its external id", values(got.ID, fingerprint), values(want.ID, []byte{1}))
		stored := s.parts(want)
		s.equal("parts", len(stored), 1)
		sameFields(s, "part", stored[0], part, "CreatedAt", "UpdatedAt")
		sameFields(s, "part, by its external id", must(s.store.RefundPart(s.Context(), m, part.Processor, part.ExternalID)), stored[0])

		changed := filled(payment.Refund{
			Merchant: m, ID: want.ID, Payin: want.Payin, ExternalID: want.ExternalID, Amount: want.Amount, WebhookURL: want.WebhookURL,
			CreatedAt: want.CreatedAt, RefundedAmount: 2,
		}, 1000)
		part = filled(payment.RefundPart{
			Merchant: m, Refund: want.ID, Number: 1, Payin: want.Payin, Receipt: part.Receipt, Processor: part.Processor, PaymentID: part.PaymentID,
			ExternalID: part.ExternalID, Amount: part.Amount, CreatedAt: stored[0].CreatedAt,
		}, 1000)
		part.Result = ""
		s.commit(does(func(n *needs) { n.Refund(m, want.ID) }, func(_ *loaded, c *changes) {
			c.SetRefund(changed)
			c.SetRefundPart(part)
		}))
		sameFields(s, "changed refund", must(s.store.Refund(s.Context(), m, want.ID)), changed, "UpdatedAt")
		sameFields(s, "changed part", s.parts(want)[0], part, "UpdatedAt")
		s.wantError(errorOf(s.store.Refund(s.Context(), m, s.id())), store.ErrNotFound)
		s.wantError(errorOf(s.store.Refund(s.Context(), s.merchant().ID, want.ID)), store.ErrNotFound)
	}},
	{"a refund's external id is unique", func(s *suite) {
		m := s.merchant().ID
		r := payment.Refund{Merchant: m, ID: s.id(), Payin: s.id(), ExternalID: "r", Amount: 1, Version: 1}
		s.commit(addRefund(r, nil))
		r.ID = s.id()
		s.wantError(s.try(addRefund(r, nil)), store.ErrConflict)
		r.ExternalID = "another"
		part := payment.RefundPart{Merchant: m, Refund: r.ID, Number: 1, Payin: r.Payin, Processor: "bank", ExternalID: "p", Amount: 1}
		s.commit(addRefund(r, nil, part))
		other := part
		other.Number = 2
		s.wantError(s.try(does(nil, func(_ *loaded, c *changes) {
			c.AddRefund(payment.Refund{Merchant: m, ID: s.id(), Amount: 1}, nil, other)
		})), store.ErrConflict)
	}},
	{"a refund that changes on a stale version fails its commit", func(s *suite) {
		r := payment.Refund{Merchant: s.merchant().ID, ID: s.id(), Payin: s.id(), ExternalID: "r", Amount: 1, Version: 1}
		s.commit(addRefund(r, nil))
		raise := does(func(n *needs) { n.Refund(r.Merchant, r.ID) }, func(l *loaded, c *changes) {
			v, _ := l.Refund(r.Merchant, r.ID)
			v.Version++
			c.SetRefund(v)
		})
		s.commit(raise, raise) // both are written
		s.equal("version", must(s.store.Refund(s.Context(), r.Merchant, r.ID)).Version, int64(3))
	}},
	{"refunds of a pay-in are loaded with their parts and its receipts, and with those of the same commit", func(s *suite) {
		m := s.merchant()
		p := s.payin(m, "p")
		s.add(p)
		receipt := s.receipt(m, "E"+p.Payin.ExternalID)
		receipt.Payin = p.Payin.ID
		s.receive(receipt)
		load := func(n *needs) { n.RefundsOf(m.ID, p.Payin.ID) }
		r := payment.Refund{Merchant: m.ID, ID: s.id(), Payin: p.Payin.ID, ExternalID: "r", Amount: 1, Version: 1}
		part := payment.RefundPart{Merchant: m.ID, Refund: r.ID, Number: 1, Payin: p.Payin.ID, Receipt: receipt.ID, Processor: "bank", ExternalID: "r", Amount: 1}
		counts := func(want ...any) operation {
			return does(load, func(l *loaded, _ *changes) {
				_, ok := l.Payin(m.ID, p.Payin.ID)
				s.equal("loaded", values(ok, len(l.RefundsOf(m.ID, p.Payin.ID)), len(l.RefundPartsOf(m.ID, p.Payin.ID)), len(l.ReceiptsOf(m.ID, p.Payin.ID))), values(want...))
			})
		}
		s.commit(counts(true, 0, 0, 1))
		s.commit(counts(true, 0, 0, 1), addRefund(r, nil, part), counts(true, 1, 1, 1))
		s.commit(counts(true, 1, 1, 1))
		merchant, id, err := s.store.ReceiptClaim(s.Context(), receipt.Processor, receipt.ExternalID)
		s.must(err)
		s.equal("claim", values(merchant, id), values(m.ID, receipt.ID))
		_, _, err = s.store.ReceiptClaim(s.Context(), receipt.Processor, "nothing")
		s.wantError(err, store.ErrNotFound)
	}},
	{"parts of refunds are due by account and step, and unknown after their node died", func(s *suite) {
		m, node := s.merchant().ID, s.node()
		bank, other := s.Name(), s.Name()+" other"
		now := s.now()
		r := payment.Refund{Merchant: m, ID: s.id(), Payin: s.id(), ExternalID: "r", Amount: 1, Version: 1}
		list := []payment.RefundPart{
			{Processor: bank, Effect: effect.Effect{State: effect.Queued, NextAt: now.Add(-time.Second)}},
			{Processor: bank, Effect: effect.Effect{State: effect.Queued, NextAt: s.later()}},
			{Processor: bank, Effect: effect.Effect{State: effect.Review}},
			{Processor: other, Effect: effect.Effect{State: effect.Accepted, NextAt: now.Add(-time.Minute)}},
			{Processor: other, Effect: effect.Effect{State: effect.Sending, Last: true, Again: true, Lookups: 3}, ClaimedBy: node},
			{Processor: other, Effect: effect.Effect{State: effect.Asking, Again: true}, ClaimedBy: node},
		}
		for i := range list {
			p := &list[i]
			p.Merchant, p.Refund, p.Payin, p.Number, p.ExternalID, p.Amount = m, r.ID, r.Payin, int64(i+1), string(rune('a'+i)), 1
		}
		s.commit(addRefund(r, nil, list...))
		at := s.env.Clock.Now()
		s.equal("accounts to send at", must(s.store.AccountsWithRefunds(s.Context(), at, store.ToSend)), []string{bank})
		s.equal("accounts to ask", must(s.store.AccountsWithRefunds(s.Context(), at, store.ToLookUp)), []string{other})
		var sent, asked []payment.RefundPart
		s.commit(claimParts(bank, store.ToSend, node, &sent), claimParts(other, store.ToLookUp, s.id(), &asked))
		s.equal("claimed", values(len(sent), sent[0].Number, len(asked), asked[0].Number), values(1, int64(1), 1, int64(4)))
		s.equal("released", s.release(node), 3)
		s.commit(claimParts(other, store.ToLookUp, s.id(), &asked), claimParts(other, store.ToSend, s.id(), &sent))
		s.equal("to be looked up", values(len(asked), asked[0].Number, asked[0].Last, asked[0].Again, asked[0].Lookups), values(1, int64(5), true, false, 0))
		s.equal("to be sent", values(len(sent), sent[0].Number, sent[0].Again), values(1, int64(6), true))
	}},
	{"a part scheduled by a clock that was ahead is due now", func(s *suite) {
		r := payment.Refund{Merchant: s.merchant().ID, ID: s.id(), Payin: s.id(), ExternalID: "r", Amount: 1, Version: 1}
		s.commit(addRefund(r, nil, payment.RefundPart{
			Merchant: r.Merchant, Refund: r.ID, Number: 1, Payin: r.Payin, Processor: s.Name(), Amount: 1, Effect: effect.Effect{State: effect.Queued, NextAt: s.now().AddDate(1, 0, 0)},
		}))
		s.write(func(tx *store.AdminTx) error { return tx.RescheduleFuture(s.Context(), s.later(), 0) })
		var claimed []payment.RefundPart
		s.commit(claimParts(s.Name(), store.ToSend, s.id(), &claimed))
		s.equal("claimed", len(claimed), 1)
	}},
}

func addRefund(r payment.Refund, fingerprint []byte, parts ...payment.RefundPart) operation {
	return does(nil, func(_ *loaded, c *changes) { c.AddRefund(r, fingerprint, parts...) })
}

func (s *suite) parts(r payment.Refund) []payment.RefundPart {
	s.Helper()
	return must(s.store.RefundParts(s.Context(), r.Merchant, r.ID))
}

// claimParts claims due parts of an account, and reports them.
func claimParts(account string, queue store.PayoutQueue, node payment.ID, claimed *[]payment.RefundPart) operation {
	due := store.DueRefundParts{Account: account, Queue: queue, Limit: 10}
	return does(func(n *needs) { n.DueRefundParts(due) }, func(l *loaded, c *changes) {
		*claimed = nil
		for _, p := range l.DueRefundParts(due) {
			p.NextAt, p.ClaimedBy = time.Time{}, node
			*claimed = append(*claimed, c.SetRefundPart(p))
		}
	})
}
