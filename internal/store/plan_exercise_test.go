package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
)

// exercise runs every statement that requests and workers run. Its receivers have
// the names by which TestEveryMethodIsPlanned finds their types: s, tx, n and c.
type exercise struct {
	t    *testing.T
	s    *store.Store
	node payment.ID
	far  time.Time // later than everything

	merchants []store.Merchant
	last      batch
	serial    byte
}

// batch is what one group of orders made.
type batch struct {
	payins     []*store.NewPayin
	payouts    []*store.NewPayout
	deliveries []store.Delivery // claimed
	notices    []store.Notice   // claimed
	cases      []payment.ID
}

func runExercise(t *testing.T, s *store.Store) {
	t.Helper()
	v := &exercise{t: t, s: s, node: payment.ID{7}, far: time.Now().Add(24 * time.Hour)}
	v.setUp()
	for _, count := range []int{1, 2} { // PostgreSQL has a text for one row, and one for many
		v.create(count)
		v.approvePayouts(count)
		v.change(count)
		v.settle(count)
		v.finish(count)
		v.refund(count)
		v.batchPayouts(count)
		v.answer(count)
	}
	v.countPayouts()
	v.useEndpoints()
	v.readRefunds()
	v.readBatches()
	v.openAccount()
	v.redeliver()
	v.administer()
	v.readOrders()
	v.readEvents()
	v.readMerchants()
	v.readWork()
	v.redeliverRanges()
	v.readReceivables()
	write(t, s, func(tx *store.AdminTx) error {
		must(t, tx.RevokeCredential(t.Context(), "k"))
		m := v.merchants[0].ID
		_, err := tx.Unfinished(t.Context(), m)
		must(t, err)
		must(t, tx.CloseMerchant(t.Context(), m))
		return tx.ReopenMerchant(t.Context(), m)
	})
}

func (v *exercise) id() payment.ID {
	v.serial++
	return payment.ID{v.serial}
}

func (v *exercise) commit(capacity store.Capacity, needs func(n *store.Needs), decide func(l *store.Loaded, c *store.Changes)) store.Outcome {
	v.t.Helper()
	s := v.s
	var n store.Needs
	needs(&n)
	out, err := s.Commit(v.t.Context(), &n, capacity, func(l *store.Loaded, c *store.Changes) error {
		decide(l, c)
		return nil
	})
	must(v.t, err)
	return out
}

func (v *exercise) setUp() {
	t, ctx := v.t, v.t.Context()
	for _, name := range []string{"m", "other"} {
		v.merchants = append(v.merchants, createMerchant(t, v.s, name))
	}
	write(t, v.s, func(tx *store.AdminTx) error {
		m := v.merchants[0].ID
		must(t, tx.CreateCredential(ctx, store.Credential{KeyID: "k", Merchant: m, SecretHash: []byte{1}}))
		_, err := tx.ChangeCredential(ctx, "k", func(*store.Credential) error { return nil })
		must(t, err)
		_, err = tx.ChangeMerchant(ctx, m, func(*store.Merchant) error { return nil })
		must(t, err)
		must(t, tx.SaveBrand(ctx, store.Brand{Merchant: m, Title: "M"}))
		tx.Record(store.NounAccount, "install", m, "bank")
		must(t, tx.RegisterNode(ctx, v.node))
		must(t, tx.SetSetting(ctx, "name", "value"))
		_, err = tx.CreateAccount(ctx, store.Account{ID: "bank", Driver: "sandbox"})
		must(t, err)
		_, err = tx.ChangeAccount(ctx, "bank", func(*store.Account) error { return nil })
		must(t, err)
		_, err = tx.ClaimAccountCheck(ctx, "bank", 2, tx.Now)
		must(t, err)
		for range 2 { // one route, and several
			must(t, tx.SetRoutes(ctx, m, payment.OperationPayin, payment.PIX, payment.AllRoutes("bank")))
			must(t, tx.SetRoutes(ctx, m, payment.OperationPayin, payment.PIX, payment.AllRoutes("bank")[:1]))
		}
		_, err = tx.Prices(ctx, m)
		must(t, err)
		_, err = tx.Accounts(ctx)
		must(t, err)
		_, err = tx.Brand(ctx, m)
		must(t, err)
		must(t, tx.AcceptMerchant(ctx, m))
		price := payment.Price{Method: payment.PIX, Range: payment.Range{From: 1, To: 1}}
		must(t, tx.SetPrice(ctx, m, price))
		must(t, tx.SetPrice(ctx, m, price)) // replaces the first
		_, err = tx.Setting(ctx, "name")
		return err
	})
}

func feedKey(i int) store.FeedKey { return store.FeedKey{Account: "bank", Feed: fmt.Sprint(i)} }

// create stores new orders, and what follows from them: count of each kind of row.
// Half of the events' deliveries are claimed, and half of the notices.
func (v *exercise) create(count int) {
	v.t.Helper()
	t, s, m := v.t, v.s, &v.merchants[0]
	var b batch
	var released []*store.NewPayout
	var receipts []*payment.Receipt
	for i := range count {
		name := fmt.Sprintf("%d of %d", i, count)
		b.payins = append(b.payins, expiring(t, s, newPayin(t, s, m, v.id(), name)))
		b.payouts = append(b.payouts, newPayout(t, s, m, v.id(), name))
		released = append(released, newPayout(t, s, m, v.id(), "released "+name))
		receipts = append(receipts, &payment.Receipt{Merchant: m.ID, ID: v.id(), Processor: "bank", ExternalID: name, Amount: 1, Applied: 1})
	}
	capacity := store.Capacity{Node: v.node, Notices: map[string]int{"bank": count}, Deliveries: map[payment.ID]int{m.ID: count}}
	out := v.commit(capacity, func(n *store.Needs) {
		for i := range count {
			n.InsertPayin(b.payins[i])
			n.InsertPayout(b.payouts[i])
			n.InsertPayout(released[i])
			n.Dispute(m.ID, "bank", receipts[i].ExternalID)
			n.DisputesOf(m.ID, b.payins[i].Payin.ExternalID)
			n.FoundTransfer(m.ID, receipts[i].ExternalID)
			n.NewFeed(store.Feed{FeedKey: feedKey(i)})
			n.Feed(feedKey(i))
			n.Balances(v.merchants[i].ID)
			for _, name := range []string{"claimed", "due"} {
				n.InsertNotice(s.NewNotice(store.Notice{Processor: "bank", ID: name + receipts[i].ExternalID}))
			}
		}
		n.Receipts(receipts...)
		n.RefundsIfPaidAgain(m.ID, b.payins[0].Payin.ExternalID, receipts...)
		n.ExpectDeliveries(m.ID, 2*count)
	}, func(l *store.Loaded, c *store.Changes) {
		for i := range count {
			p, q := b.payins[i].Payin, b.payouts[i].Payout
			c.Park(store.DamagedCase(m.ID, p.ID, "payins"), 0)
			c.ReleaseReference(released[i], nil)
			c.AddReceipt(*receipts[i])
			c.AddDispute(payment.Dispute{Merchant: m.ID, ID: c.NewID(), Payin: p.ID, Processor: "bank", ExternalID: receipts[i].ExternalID, Amount: 1, Status: payment.DisputeOpen})
			q.NextAt = l.Now()
			c.SetPayout(q)
			c.AddSend(store.Send{Merchant: m.ID, Payout: q.ID, Number: 1, Node: v.node, Outcome: store.SendIntent})
			c.AddCharge(store.Charge{Merchant: m.ID, Payin: p.ID, Number: 1, Account: "bank", State: store.ChargeWanted, NextAt: l.Now()})
			b.cases = append(b.cases, c.OpenCase(store.Case{Merchant: m.ID, Subject: p.ID, Kind: store.CaseOverpaid}))
			for _, subject := range []payment.ID{p.ID, q.ID} {
				c.AddEvent(payment.Event{Merchant: m.ID, Type: payment.EventPayinPaid, Subject: subject}, []byte("{}"), "https://a.example")
			}
			must(t, c.Post(v.merchants[i].ID, p.ID, ledger.Fund("bank", 5)))
			f, _ := l.Feed(feedKey(i))
			c.SetFeed(f)
			c.AddFoundTransfer(store.FoundTransfer{Merchant: m.ID, ID: c.NewID(), ExternalID: receipts[i].ExternalID, Total: 1, Amount: 1})
		}
		c.SetSetting("name", "value")
		c.DisableURL(m.ID, m.ID, "https://b.example")
	})
	b.deliveries, b.notices = out.Claimed.Deliveries, out.Claimed.Notices
	if len(b.deliveries) != count || len(b.notices) != count || out.Claimed.NoticesDue["bank"] != count {
		t.Fatalf("claimed %+v", out.Claimed)
	}
	v.last = b
}

// needsOrders names a pay-in and a payout, whose references are taken, by each of their keys.
func needsOrders(n *store.Needs, p *store.NewPayin, q *store.NewPayout) {
	m := p.Payin.Merchant
	n.InsertPayin(p)
	n.InsertPayout(q)
	n.Payin(m, p.Payin.ID)
	n.PayinByExternalID(m, p.Payin.ExternalID)
	n.PayinByExternalID(m, p.Payin.ExternalID[:payment.ExternalIDStaticLength])
	n.Payout(m, q.Payout.ID)
	n.PayoutByExternalID(m, q.Payout.ExternalID)
	n.Sends(m, q.Payout.ID)
	n.Sending("bank")
	n.Charge(m, p.Payin.ID)
	n.ChargeByExternalID(m, p.Payin.ExternalID)
}

// change loads the orders of the last batch by each of their keys, and changes them.
func (v *exercise) change(count int) {
	v.t.Helper()
	t, m, b := v.t, v.merchants[0].ID, &v.last
	toSend := store.DuePayouts{Merchant: m, Processor: "bank", Queue: store.ToSend, Limit: count}
	v.commit(store.Capacity{Node: v.node}, func(n *store.Needs) {
		n.ClaimingNode(v.node)
		n.Heartbeat(v.node)
		n.DuePayouts(toSend)
		n.DuePayouts(store.DuePayouts{Merchant: m, Processor: "bank", Queue: store.ToLookUp, Limit: count})
		n.DueDeliveries(m, count)
		n.DueNotices("bank", count)
		n.DueCharges("bank", count)
		n.FollowedCharges("bank", count)
		for i := range count {
			needsOrders(n, b.payins[i], b.payouts[i])
			n.DamagedPayout(m, b.payouts[i].Payout.ID)
			n.Dispute(m, "bank", fmt.Sprintf("%d of %d", i, count))
			n.Delivery(m, b.deliveries[i].ID)
			n.Balances(v.merchants[i].ID)
			n.Case(m, b.cases[i])
			n.FoundTransfer(m, fmt.Sprintf("%d of %d", i, count))
			n.Consent("bank", fmt.Sprintf("%d of %d", i, count))
		}
	}, func(l *store.Loaded, c *store.Changes) {
		c.AuditEndpoint(storetest.Operator, "create", nil, &store.Endpoint{Merchant: m, ID: c.NewID()})
		for i := range count {
			if found, ok := l.Case(m, b.cases[i]); !ok || found.ID != b.cases[i] {
				t.Errorf("case %d of %d was not loaded", i, count)
			}
			c.AddDecision(store.Decision{Merchant: m, ID: c.NewID(), Case: b.cases[i], Action: store.DecisionProposed})
			p, _ := l.Payin(m, b.payins[i].Payin.ID)
			p.Version++
			c.SetPayin(p)
			send := l.Sends(m, b.payouts[i].Payout.ID)[0]
			send.Outcome = store.SendAccepted
			c.SetSend(send)
			d, _ := l.Dispute(m, "bank", fmt.Sprintf("%d of %d", i, count))
			d.Status = payment.DisputeWon
			c.SetDispute(d)
			found, _ := l.FoundTransfer(m, fmt.Sprintf("%d of %d", i, count))
			if l.HasPayout(m, found.ExternalID) {
				t.Error("a payout has the id of a found transfer")
			}
			c.AdoptFoundTransfer(found)
			c.SetFoundTransfer(found)
			c.AddConsent(store.Consent{Account: "bank", ExternalID: fmt.Sprintf("%d of %d", i, count), State: store.ConsentGiven})
			delivery, _ := l.Delivery(m, b.deliveries[i].ID)
			delivery.Case = b.cases[i]
			c.SetDelivery(delivery)
			c.AddAttempt(store.Attempt{Merchant: m, Delivery: delivery.ID, Number: 1})
			must(t, c.Post(v.merchants[i].ID, p.ID, ledger.Fund("bank", 5)))
		}
		v.claimDue(l, c, toSend)
		node, _ := l.Node(v.node)
		node.Heartbeat++
		c.SetNode(node)
		installation := l.Installation()
		installation.Epoch++
		c.SetInstallation(installation)
	})
}

// claimDue claims due rows.
func (v *exercise) claimDue(l *store.Loaded, c *store.Changes, toSend store.DuePayouts) {
	for _, q := range l.DuePayouts(toSend) {
		q.Version, q.Step, q.NextAt = q.Version+1, payment.StepAccepted, l.Now()
		c.Park(store.DamagedCase(q.Merchant, q.ID, "payouts"), 0)
		c.SetPayout(q)
	}
	for _, d := range l.DueDeliveries(toSend.Merchant) {
		d.Claim(v.node, l.Now())
		c.SetDelivery(d)
	}
	for _, notice := range l.DueNotices("bank") {
		notice.ClaimedBy, notice.NextAt = v.node, time.Time{}
		c.SetNotice(notice)
	}
	for _, charge := range append(l.FollowedCharges("bank"), l.DueCharges("bank")...) {
		charge.ClaimedBy, charge.NextAt = v.node, time.Time{}
		c.SetCharge(charge)
	}
}

// finish records the attempts of deliveries once more, as after a process that was
// declared dead, finishes notices, and closes cases.
func (v *exercise) finish(count int) {
	v.t.Helper()
	m, b := v.merchants[0].ID, &v.last
	v.commit(store.Capacity{}, func(n *store.Needs) {
		for i := range count {
			n.Delivery(m, b.deliveries[i].ID)
			n.DeliveryCase(m, b.deliveries[i].ID)
			n.PendingDeliveries(m, b.payins[i].Payin.ID, "https://a.example")
		}
	}, func(l *store.Loaded, c *store.Changes) {
		for i := range count {
			d, _ := l.Delivery(m, b.deliveries[i].ID)
			if !l.HasOpenCase(d) {
				v.t.Errorf("the case of delivery %d of %d is not open", i, count)
			}
			d.State, d.ClaimedBy, d.NextAt, d.Case = store.DeliveryDone, payment.ID{}, time.Time{}, payment.ID{}
			c.SetDelivery(d)
			c.AddAttempt(store.Attempt{Merchant: m, Delivery: d.ID, Number: 1, Status: 200})
			c.CloseCase(m, b.cases[i], store.ResolvedByDelivery)
			c.FinishNotice(b.notices[i])
			c.RetryNotice("bank", b.notices[i].ID)
			c.RetryDeliveries(m, d.EventNumber, b.cases[i])
			c.CloseCases(m, b.payins[i].Payin.ID, store.CaseOverpaid, store.ResolvedByProof)
		}
	})
}

// openAccount posts to one account that exists and one that does not.
func (v *exercise) openAccount() {
	m := v.merchants[0].ID
	write(v.t, v.s, func(tx *store.AdminTx) error {
		var n store.Needs
		n.Balances(m)
		return tx.Apply(v.t.Context(), &n, func(_ *store.Loaded, c *store.Changes) error {
			if c.Len() != 0 {
				v.t.Errorf("%d changes before the first", c.Len())
			}
			return c.Post(m, m, ledger.Fund("other", 5))
		})
	})
}

// redeliver requests events again whose deliveries are due, claimed, removed, and
// of no order.
func (v *exercise) redeliver() {
	t, ctx, m := v.t, v.t.Context(), v.merchants[0].ID
	again := func(tx *store.AdminTx, number int64, subject payment.ID, want int64) {
		t.Helper()
		if n, err := tx.Redeliver(ctx, &payment.Event{Merchant: m, Number: number, Subject: subject}); n != want || err != nil {
			t.Errorf("redelivered %d of event %d, %v, want %d", n, number, err, want)
		}
	}
	payout := v.last.payouts[0].Payout.ID
	write(t, v.s, func(tx *store.AdminTx) error {
		_, err := tx.AllowRemoval(ctx, v.far, time.Hour)
		must(t, err)
		_, err = tx.AllowRemoval(ctx, v.far, time.Hour)
		must(t, err)
		n, err := tx.RemoveDeliveries(ctx, store.OldDeliveries{Merchant: m, Last: tx.NewID()}, v.far)
		if err != nil || n != 3 {
			t.Errorf("removed %d deliveries, %v", n, err)
		}
		again(tx, v.last.deliveries[0].EventNumber, m, 0) // of no order: both tables are looked at
		must(t, tx.ExecOne(ctx, "UPDATE payouts SET webhook_url = 'https://a.example' WHERE id = $1", payout[:]))
		again(tx, v.last.deliveries[0].EventNumber, payout, 1) // removed
		again(tx, v.last.deliveries[0].EventNumber, payout, 1) // due
		again(tx, 2, payout, 0)                                // claimed
		return nil
	})
}

// administer runs what happens when processes start and die.
func (v *exercise) administer() {
	t, s, ctx := v.t, v.s, v.t.Context()
	write(t, s, func(tx *store.AdminTx) error {
		must(t, tx.RescheduleFuture(ctx, tx.Now, time.Hour))
		_, err := tx.Installation(ctx)
		must(t, err)
		must(t, tx.SetInstallation(ctx, store.Installation{Epoch: 9}))
		must(t, tx.BeginHistory(ctx, store.Installation{Epoch: 9, History: 1}))
		must(t, tx.SaveBrand(ctx, store.Brand{Merchant: v.merchants[0].ID, Title: "N"}))
		released, err := tx.ReleaseNode(ctx, store.Node{ID: v.node, Heartbeat: 3})
		if released == 0 {
			t.Error("the node had claimed nothing")
		}
		return err
	})
	_, err := s.AnalyzeGrown(ctx)
	must(t, err)
}

// expiring is a new pay-in with a schedule.
func expiring(t *testing.T, s *store.Store, n *store.NewPayin) *store.NewPayin {
	t.Helper()
	n.Payin.ExpiresAt = time.Unix(1, 0)
	return s.NewPayin(n.Payin, payment.PersonalData{}, n.Fingerprint)
}
