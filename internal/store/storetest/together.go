package storetest

import (
	"errors"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// togetherTests are about what an engine may do for many rows at once: nobody
// may notice.
var togetherTests = []test{
	{"an order's change is seen by who reads it next", changedOrderIsSeen},
	{"the end of a send is seen by who reads it next", endedSendIsSeen},
	{"a closed exception is seen by who looks for it next", closedExceptionIsSeen},
	{"a finished notice is not claimed", finishedNoticeIsSeen},
	{"an order changes twice in one transaction", changedTwice},
	{"a conflict undoes everything, whenever it is found", conflictUndoesAll},
	{"a proof is kept beside sends that end", proofBesideLiveSends},
	{"all exceptions of a kind are closed, of many orders at once", manyExceptionsClose},
	{"orders that were read together show what became of them", aheadShowsChanges},
	{"payouts that were read together show who claimed them", aheadShowsClaims},
	{"an order is found by a part of its external id beside others that were read together", aheadBesidePrefix},
	{"an order that was read before its news ended shows that", aheadShowsEndOfNews},
}

// twoPayins are stored.
func (b *bench) twoPayins(m store.Merchant) (one, two *store.NewPayin) {
	one, two = b.payin(m, "1"), b.payin(m, "2")
	one.WebhookURL, two.WebhookURL = hook, hook
	b.storePayins(one, two)
	return one, two
}

// pays gives an order another amount paid, in its next version.
func (b *bench) pays(tx *store.Tx, p payment.Payin, amount int64) error {
	p.PaidAmount, p.Version = cents(amount), p.Version+1
	return tx.UpdatePayin(b.Context(), &p, p.Version-1)
}

func changedOrderIsSeen(b *bench) {
	m := b.merchant()
	one, two := b.twoPayins(m)
	out, other := b.payout(m, "1"), b.payout(m, "2")
	b.storePayouts(out, other)
	b.write(func(tx *store.Tx) error {
		b.must(b.pays(tx, one.Payin, 1))
		b.must(b.pays(tx, two.Payin, 2))
		p, err := tx.Payin(b.Context(), m.ID, one.ID)
		b.must(err)
		equal(b, "paid of the one", p.PaidAmount, 1)
		b.must(b.pays(tx, p, 3))
		p, _, err = tx.PayinByExternalID(b.Context(), m.ID, one.ExternalID)
		b.must(err)
		equal(b, "paid of the one, by its external id", p.PaidAmount, 3)

		for _, q := range []*store.NewPayout{out, other} {
			changed := q.Payout
			changed.Lookups, changed.Version = 7, 2
			b.must(tx.UpdatePayout(b.Context(), &changed, 1))
		}
		q, err := tx.Payout(b.Context(), m.ID, out.ID)
		b.must(err)
		equal(b, "lookups", q.Lookups, 7)
		q.Lookups, q.Version = 8, 3
		b.must(tx.UpdatePayout(b.Context(), &q, 2))
		q, _, err = tx.PayoutByExternalID(b.Context(), m.ID, out.ExternalID)
		b.must(err)
		equal(b, "lookups, by its external id", q.Lookups, 8)
		return nil
	})
	p, err := b.s.Payin(b.Context(), m.ID, two.ID)
	b.must(err)
	equal(b, "paid of the other", p.PaidAmount, 2)
	q, err := b.s.Payout(b.Context(), m.ID, other.ID)
	b.must(err)
	equal(b, "lookups of the other", q.Lookups, 7)
}

func endedSendIsSeen(b *bench) {
	m, node := b.merchant(), b.id()
	p := b.payout(m, "r")
	b.storePayouts(p)
	b.must(b.insertSends(b.send(p, 1, node)))
	b.write(func(tx *store.Tx) error {
		b.must(tx.EndSend(b.Context(), m.ID, p.ID, store.SendUnknown, "no answer"))
		b.must(tx.EndSend(b.Context(), m.ID, p.ID, store.SendNotSent, "not sent"))
		list, err := tx.Sends(b.Context(), m.ID, p.ID)
		b.must(err)
		equal(b, "outcome", list[0].Outcome, store.SendNotSent)
		// Only because that has ended there is room for another.
		b.must(tx.InsertSends(b.Context(), []store.Send{b.send(p, 2, node)}))
		return tx.EndSend(b.Context(), m.ID, p.ID, store.SendPaid, "paid")
	})
	list, err := b.s.Sends(b.Context(), m.ID, p.ID)
	b.must(err)
	equal(b, "outcome of the first", list[0].Outcome, store.SendNotSent)
	equal(b, "outcome of the second", list[1].Outcome, store.SendPaid)
}

// open are the open exceptions of a merchant.
func (b *bench) open(m store.Merchant) (list []store.Exception) {
	b.Helper()
	all, err := b.s.OpenExceptions(b.Context(), 1000)
	b.must(err)
	for i := range all {
		if all[i].Merchant == m.ID {
			list = append(list, all[i])
		}
	}
	return list
}

func closedExceptionIsSeen(b *bench) {
	m, subject := b.merchant(), b.id()
	e := store.Exception{Merchant: m.ID, Kind: store.ExceptionWebhook, Subject: subject, Detail: "before"}
	b.write(func(tx *store.Tx) error { return tx.OpenException(b.Context(), e) })
	before := b.open(m)[0].ID
	b.announce(m, subject, 1, hook)
	d := b.claimDeliveries(m, b.id(), 1)[0]
	b.write(func(tx *store.Tx) error {
		b.must(tx.CloseExceptions(b.Context(), m.ID, subject, store.ExceptionWebhook))
		e.Detail = "after"
		return tx.GiveUpDelivery(b.Context(), d, before, e)
	})
	left := b.open(m)
	if len(left) != 1 || left[0].Detail != "after" {
		b.Errorf("open are %+v, want the one that was told of after the other was closed", left)
	}
}

func finishedNoticeIsSeen(b *bench) {
	b.record("bank", b.Name())
	b.write(func(tx *store.Tx) error {
		b.must(tx.FinishNotice(b.Context(), store.Notice{Processor: "bank", ID: b.Name()}, store.NoticeApplied, ""))
		list, err := tx.ClaimNotices(b.Context(), b.id(), 10)
		for i := range list {
			if list[i].ID == b.Name() {
				b.Error("a finished notice was claimed")
			}
		}
		return err
	})
}

func changedTwice(b *bench) {
	m := b.merchant()
	one, two := b.twoPayins(m)
	b.write(func(tx *store.Tx) error {
		p := one.Payin
		for i := range 3 {
			b.must(b.pays(tx, p, int64(i+1)))
			p.Version++
		}
		return b.pays(tx, two.Payin, 9)
	})
	for id, want := range map[payment.ID][2]int64{one.ID: {3, 4}, two.ID: {9, 2}} {
		p, err := b.s.Payin(b.Context(), m.ID, id)
		b.must(err)
		equal(b, "paid", p.PaidAmount, cents(want[0]))
		equal(b, "version", p.Version, want[1])
	}
}

func conflictUndoesAll(b *bench) {
	m := b.merchant()
	one, two := b.twoPayins(m)
	another := errors.New("what the work says after it")
	for what, after := range map[string]func(tx *store.Tx) error{
		"nothing more is done": func(*store.Tx) error { return nil },
		"it is read next": func(tx *store.Tx) error {
			_, err := tx.Payin(b.Context(), m.ID, one.ID)
			return err
		},
		"it is read next, and that is an error": func(tx *store.Tx) error {
			_, err := tx.Payin(b.Context(), m.ID, m.ID)
			return err
		},
		"it is read next, and the work fails": func(tx *store.Tx) error {
			_, _ = tx.Payin(b.Context(), m.ID, one.ID)
			return another
		},
		"it is changed again": func(tx *store.Tx) error { return b.pays(tx, two.Payin, 2) },
	} {
		tries := 0
		err := b.s.Write(b.Context(), func(tx *store.Tx) error {
			tries++
			b.must(b.pays(tx, one.Payin, 1))
			b.must(tx.OpenException(b.Context(), store.Exception{Merchant: m.ID, Kind: store.ExceptionOverpaid, Subject: one.ID}))
			stale := two.Payin
			stale.Version = 5
			if err := b.pays(tx, stale, 1); err != nil {
				return err
			}
			return after(tx)
		})
		if !errors.Is(err, store.ErrConflict) {
			b.Errorf("%s: %v, want a conflict", what, err)
		}
		equal(b, what+": tries", tries, 1)
		for _, id := range []payment.ID{one.ID, two.ID} {
			p, err := b.s.Payin(b.Context(), m.ID, id)
			b.must(err)
			equal(b, what+": version", p.Version, 1)
		}
		equal(b, what+": exceptions", len(b.open(m)), 0)
	}
}

// A send that seemed not to have arrived takes its proof, wherever its payout
// stands among others whose sends are live, or have ended for good.
func proofBesideLiveSends(b *bench) {
	m, node := b.merchant(), b.id()
	var list []*store.NewPayout
	for _, word := range []string{"live", "not found", "paid", "live", "not sent", "not found"} {
		p := b.payout(m, word+b.id().String())
		b.storePayouts(p)
		b.must(b.insertSends(b.send(p, 1, node)))
		switch word {
		case "not found":
			b.endSend(p, store.SendNotFound, "asked")
		case "paid":
			b.endSend(p, store.SendPaid, "asked")
		case "not sent":
			b.endSend(p, store.SendNotSent, "asked")
		}
		list = append(list, p)
	}
	outcomes := func() (words []string) {
		for _, p := range list {
			sends, err := b.s.Sends(b.Context(), m.ID, p.ID)
			b.must(err)
			words = append(words, sends[0].Outcome+" "+sends[0].Evidence)
		}
		return words
	}
	end := func(outcome string) {
		b.write(func(tx *store.Tx) error {
			for _, p := range list {
				b.must(tx.EndSend(b.Context(), m.ID, p.ID, outcome, "a notice"))
			}
			return nil
		})
	}
	end(store.SendUnknown) // which proves nothing
	equal(b, "after no proof", strings.Join(outcomes(), ", "),
		"unknown a notice, not_found asked, paid asked, unknown a notice, not_sent asked, not_found asked")
	end(store.SendFailed)
	equal(b, "after a proof", strings.Join(outcomes(), ", "),
		"failed a notice, failed a notice, paid asked, failed a notice, failed a notice, failed a notice")
}

func manyExceptionsClose(b *bench) {
	m, other := b.merchant(), b.merchant()
	subjects := []payment.ID{b.id(), b.id(), b.id()}
	b.write(func(tx *store.Tx) error {
		for _, of := range []store.Merchant{m, other} {
			for _, subject := range subjects {
				for _, kind := range []string{store.ExceptionWebhook, store.ExceptionWebhook, store.ExceptionDispute} {
					b.must(tx.OpenException(b.Context(), store.Exception{Merchant: of.ID, Kind: kind, Subject: subject}))
				}
			}
		}
		return nil
	})
	b.write(func(tx *store.Tx) error {
		for _, subject := range subjects[:2] {
			b.must(tx.CloseExceptions(b.Context(), m.ID, subject, store.ExceptionWebhook))
		}
		return tx.CloseExceptions(b.Context(), other.ID, subjects[0], store.ExceptionDispute)
	})
	equal(b, "open of the one", len(b.open(m)), 3+2)
	equal(b, "open of the other", len(b.open(other)), 9-1)
}

func aheadShowsChanges(b *bench) {
	m := b.merchant()
	one, two := b.twoPayins(m)
	read := func(tx *store.Tx, p *store.NewPayin) payment.Payin {
		q, f, err := tx.PayinByExternalID(b.Context(), m.ID, p.ExternalID)
		b.must(err)
		sameBytes(b, "fingerprint", f, p.Fingerprint)
		return q
	}
	b.write(func(tx *store.Tx) error {
		// One of them twice, and one that is not there.
		b.must(tx.PayinsAhead(b.Context(), m.ID, []string{one.ExternalID, two.ExternalID, one.ExternalID, "none"}))
		b.must(b.pays(tx, read(tx, one), 1))
		b.must(b.pays(tx, read(tx, two), 5))
		b.must(b.pays(tx, read(tx, one), 2))
		equal(b, "paid of the one", read(tx, one).PaidAmount, 2)
		_, _, err := tx.PayinByExternalID(b.Context(), m.ID, "none")
		b.wantError(err, store.ErrNotFound)
		b.must(tx.PayinsAhead(b.Context(), m.ID, []string{two.ExternalID, one.ExternalID}))
		equal(b, "paid of the one, read again", read(tx, one).PaidAmount, 2)
		equal(b, "paid of the other, read again", read(tx, two).PaidAmount, 5)
		return nil
	})
	p, err := b.s.Payin(b.Context(), m.ID, one.ID)
	b.must(err)
	equal(b, "version", p.Version, 3)
}

func aheadShowsClaims(b *bench) {
	m, node := b.merchant(), b.id()
	one, two := b.payout(m, "1"), b.payout(m, "2")
	b.storePayouts(one, two)
	b.write(func(tx *store.Tx) error {
		b.must(tx.PayoutsAhead(b.Context(), m.ID, []payment.ID{one.ID, two.ID, one.ID}))
		p, err := tx.Payout(b.Context(), m.ID, one.ID)
		b.must(err)
		p.Lookups, p.Version = 4, 2
		b.must(tx.UpdatePayout(b.Context(), &p, 1))
		claimed, err := tx.ClaimPayouts(b.Context(), store.Due{Merchant: m.ID, Processor: "bank"}, node, store.ToSend, 10)
		b.must(err)
		equal(b, "claimed", len(claimed), 2)
		for _, id := range []payment.ID{one.ID, two.ID} {
			p, err := tx.Payout(b.Context(), m.ID, id)
			b.must(err)
			equal(b, "claimed by", p.ClaimedBy, node)
			equal(b, "is due", p.NextAt, time.Time{})
		}
		return nil
	})
	p, err := b.s.Payout(b.Context(), m.ID, one.ID)
	b.must(err)
	equal(b, "lookups", p.Lookups, 4)
}

func aheadBesidePrefix(b *bench) {
	m := b.merchant()
	one, two := b.twoPayins(m)
	part := one.ExternalID[:len(one.ExternalID)-4]
	b.write(func(tx *store.Tx) error {
		b.must(tx.PayinsAhead(b.Context(), m.ID, []string{one.ExternalID, part, two.ExternalID}))
		for i, name := range []string{one.ExternalID, part, one.ExternalID, part} {
			p, _, err := tx.PayinByExternalID(b.Context(), m.ID, name)
			b.must(err)
			equal(b, "order", p.ID, one.ID)
			equal(b, "paid before", p.PaidAmount, cents(int64(i)))
			b.must(b.pays(tx, p, int64(i+1)))
		}
		return nil
	})
}

func aheadShowsEndOfNews(b *bench) {
	m := b.merchant()
	one, two := b.twoPayins(m)
	b.write(func(tx *store.Tx) error {
		b.must(tx.PayinsAhead(b.Context(), m.ID, []string{one.ExternalID, two.ExternalID}))
		b.must(b.pays(tx, one.Payin, 1))
		b.must(tx.EndDeliveries(b.Context(), m.ID, one.ID, hook))
		for _, p := range []*store.NewPayin{one, two} {
			q, _, err := tx.PayinByExternalID(b.Context(), m.ID, p.ExternalID)
			b.must(err)
			equal(b, "wants no news", q.WebhookEnded, p == one)
		}
		return nil
	})
}
