package storetest

import (
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

var disputeTests = []test{
	{"an answer to a dispute keeps all its fields, its changes and its files", func(s *suite) {
		d := s.dispute(s.merchant(), "D")
		d.SubmittedAt = at(7)
		defense := payment.Defense{Text: "é \"quoted\"", Files: []payment.DefenseFile{{Name: "a.pdf", Type: "application/pdf", Size: 2}, {Name: "b.png", Type: "image/png", Size: 3}}}
		sealed := must(s.store.NewDefense(d.Merchant, d.ID, defense, [][]byte{{1, 2}, {3, 4, 5}}, []byte{9}))
		want := filled(payment.DisputeAnswer{Merchant: d.Merchant, Dispute: d.ID, Number: 1, Payin: d.Payin}, 1)
		s.commit(does(func(n *needs) { n.Dispute(d.Merchant, d.Processor, d.ExternalID) }, func(_ *loaded, c *changes) {
			c.AddDispute(d)
			c.AddAnswer(want, sealed)
		}))
		sameFields(s, "answer", must(s.store.DisputeAnswers(s.Context(), d.Merchant, d.ID))[0], want, "CreatedAt", "UpdatedAt")
		got, contents, err := s.store.DefenseFiles(s.Context(), &want)
		s.must(err)
		s.equal("defense", *got, defense)
		s.equal("files", contents, [][]byte{{1, 2}, {3, 4, 5}})
		stored, found, err := s.store.Dispute(s.Context(), d.Merchant, d.ID)
		s.must(err)
		sameFields(s, "dispute", stored, d, "CreatedAt", "UpdatedAt")
		s.equal("with its defense", *found, defense)
		_, _, err = s.store.Dispute(s.Context(), s.merchant().ID, d.ID)
		s.wantError(err, store.ErrNotFound)

		changed := filled(payment.DisputeAnswer{
			Merchant: want.Merchant, Dispute: want.Dispute, Number: 1, Payin: want.Payin, Processor: want.Processor, ExternalID: want.ExternalID, Action: want.Action,
		}, 1000)
		s.commit(does(nil, func(_ *loaded, c *changes) { c.SetAnswer(changed) }))
		sameFields(s, "changed answer", must(s.store.DisputeAnswers(s.Context(), d.Merchant, d.ID))[0], changed, "CreatedAt", "UpdatedAt")
		_, contents, err = s.store.DefenseFiles(s.Context(), &changed)
		s.must(err)
		s.equal("files after a change", contents, [][]byte{{1, 2}, {3, 4, 5}})
	}},
	{"disputes are listed, newest first, by each filter", func(s *suite) {
		m := s.merchant()
		var ids []payment.ID
		for i, status := range []payment.DisputeStatus{payment.DisputeOpen, payment.DisputeLost, payment.DisputeOpen} {
			d := s.dispute(m, string(rune('A'+i)))
			d.Status, d.Kind, d.RespondBy, d.RemindAt = status, payment.KindMED, at(100+i), at(100+i)
			if i == 2 {
				d.Kind, d.RespondBy, d.RemindAt = payment.KindChargeback, time.Time{}, time.Time{}
			}
			ids = append(ids, d.ID)
			s.commit(moveDispute(d, "", "", nil))
		}
		list := func(f store.DisputeFilter, want ...int) {
			s.Helper()
			f.Limit = 5
			var got, wanted []payment.ID
			for _, d := range must(s.store.Disputes(s.Context(), m.ID, f)) {
				got = append(got, d.ID)
			}
			for _, i := range want {
				wanted = append(wanted, ids[i])
			}
			s.equal("list", got, wanted)
		}
		list(store.DisputeFilter{}, 2, 1, 0)
		list(store.DisputeFilter{Statuses: []string{"OPEN"}}, 2, 0)
		list(store.DisputeFilter{Statuses: []string{"OPEN", "LOST"}, Before: ids[2]}, 1, 0)
		list(store.DisputeFilter{Kind: "MED"}, 1, 0)
		list(store.DisputeFilter{RespondBefore: at(101)}, 0)
		list(store.DisputeFilter{Before: ids[1]}, 0)
		list(store.DisputeFilter{Payin: ids[0]})
		due := must(s.store.DisputesToRemind(s.Context(), at(100), 1000))
		mine := 0
		for _, d := range due {
			if d.Merchant == m.ID {
				mine++
			}
		}
		s.equal("due for a case", mine, 1)
	}},
}

// at is a number of seconds after the epoch.
func at(seconds int) time.Time { return time.Unix(int64(seconds), 0).UTC() }
