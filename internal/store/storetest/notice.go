package storetest

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

var noticeTests = []test{
	{"a notice is recorded once, however often it is sent", noticeOnce},
	{"two claimers never share a notice", noticesClaimedOnce},
	{"a notice is delayed, applied or stuck", noticeEnds},
}

func (b *bench) claimNotices(node payment.ID) (list []store.Notice) {
	b.Helper()
	b.write(func(tx *store.Tx) (err error) {
		list, err = tx.ClaimNotices(b.Context(), node, 100)
		return err
	})
	return list
}

func (b *bench) record(processor, id string) (fresh bool) {
	b.Helper()
	b.write(func(tx *store.Tx) (err error) {
		fresh, err = tx.RecordNotice(b.Context(), store.Notice{Processor: processor, ID: id, Headers: "h", Body: []byte("body of " + id)})
		return err
	})
	return fresh
}

func noticeOnce(b *bench) {
	equal(b, "new", b.record("bank", "a"), true)
	equal(b, "again", b.record("bank", "a"), false)
	equal(b, "of another case", b.record("bank", "A"), true)
	equal(b, "of another processor", b.record("other", "a"), true)
	var mu sync.Mutex
	fresh := 0
	b.together(100, func(ctx context.Context, _ int) error {
		var one bool
		err := b.s.Write(ctx, func(tx *store.Tx) (err error) {
			one, err = tx.RecordNotice(ctx, store.Notice{Processor: "bank", ID: "storm", Body: []byte{}})
			return err
		})
		mu.Lock()
		defer mu.Unlock()
		if one {
			fresh++
		}
		return err
	})
	equal(b, "of a hundred at once", fresh, 1)
	list := b.claimNotices(b.id())
	equal(b, "notices", len(list), 4)
	for _, n := range list {
		if n.ID != "storm" && (string(n.Body) != "body of "+n.ID || n.Headers != "h" || n.Tries != 1 || n.State != store.NoticeReceived || n.ReceivedAt.IsZero()) {
			b.Errorf("%+v", n)
		}
	}
}

func noticesClaimedOnce(b *bench) {
	for i := range 40 {
		b.record("bank", fmt.Sprint("one of many ", i))
	}
	var mu sync.Mutex
	claimed := map[string]int{}
	b.together(4, func(ctx context.Context, _ int) error {
		node := b.id()
		for {
			var list []store.Notice
			err := b.s.Write(ctx, func(tx *store.Tx) (err error) {
				list, err = tx.ClaimNotices(ctx, node, 3)
				return err
			})
			if err != nil || len(list) == 0 {
				return err
			}
			mu.Lock()
			for i := range list {
				claimed[list[i].ID]++
			}
			mu.Unlock()
		}
	})
	for _, n := range b.claimNotices(b.id()) {
		claimed[n.ID]++
	}
	equal(b, "claimed", len(claimed), 40)
	for id, times := range claimed {
		equal(b, "claims of "+id, times, 1)
	}
}

func noticeEnds(b *bench) {
	node := b.node()
	b.record("bank", "delayed")
	n := b.claimNotices(node)[0]
	at := b.w.Clock.Now().Add(time.Hour)
	b.write(func(tx *store.Tx) error { return tx.DelayNotice(b.Context(), n, at, "not yet") })
	equal(b, "due before its time", len(b.claimNotices(node)), 0)
	b.write(func(tx *store.Tx) error {
		return tx.DelayNotice(b.Context(), n, b.w.Clock.Now().Add(-time.Second), "not yet")
	})
	list := b.claimNotices(node)
	equal(b, "due at its time", len(list), 1)
	equal(b, "tries", list[0].Tries, 2)

	seen, _ := b.seen(node) // it dies with the notice in hand
	_, err := b.release(seen)
	b.must(err)
	list = b.claimNotices(b.id())
	equal(b, "due after its node died", len(list), 1)
	for i, state := range []string{store.NoticeApplied, store.NoticeStuck} {
		b.write(func(tx *store.Tx) error { return tx.FinishNotice(b.Context(), list[0], state, fmt.Sprint(i)) })
		equal(b, "due when "+state, len(b.claimNotices(b.id())), 0)
	}
	// What came late for it changes nothing.
	b.write(func(tx *store.Tx) error { return tx.DelayNotice(b.Context(), n, b.w.Clock.Now().Add(-time.Second), "") })
	equal(b, "due after the end", len(b.claimNotices(b.id())), 0)
	equal(b, "may come again", b.record("bank", "delayed"), false)
}

var receiptTests = []test{
	{"a payment is booked once, within a call and across", receiptOnce},
	{"a payment is booked once, whichever merchant", receiptAcrossMerchants},
	{"a payment is booked once, by many at the same instant", receiptAtOnce},
	{"a receipt keeps all that it has", receiptRoundTrips},
}

func (b *bench) receipt(m store.Merchant, id string) *payment.Receipt {
	return &payment.Receipt{Merchant: m.ID, ID: b.id(), Processor: "bank", ExternalID: id, Amount: 500, Applied: 300, PaidAt: b.w.Clock.Now()}
}

func (b *bench) claimReceipts(list ...*payment.Receipt) (added []bool) {
	b.Helper()
	b.write(func(tx *store.Tx) (err error) {
		added, err = tx.ClaimReceipts(b.Context(), list)
		return err
	})
	return added
}

func receiptOnce(b *bench) {
	m := b.merchant()
	added := b.claimReceipts(b.receipt(m, "E1"), b.receipt(m, "E2"), b.receipt(m, "E1"), b.receipt(m, "e1"), b.receipt(m, "E2"))
	if !slices.Equal(added, []bool{true, true, false, true, false}) {
		b.Errorf("new are %v", added)
	}
	if added := b.claimReceipts(b.receipt(m, "E1"), b.receipt(m, "E3")); !slices.Equal(added, []bool{false, true}) {
		b.Errorf("new are %v", added)
	}
	other := b.receipt(m, "E1")
	other.Processor = "other"
	equal(b, "of another processor", b.claimReceipts(other)[0], true)
}

func receiptAcrossMerchants(b *bench) {
	one, two := b.merchant(), b.merchant()
	if added := b.claimReceipts(b.receipt(one, "X"), b.receipt(two, "X")); !slices.Equal(added, []bool{true, false}) {
		b.Errorf("new are %v", added)
	}
	booked, err := b.s.HasReceipt(b.Context(), "bank", "X")
	b.must(err)
	equal(b, "is booked", booked, true)
	booked, err = b.s.HasReceipt(b.Context(), "bank", "x")
	b.must(err)
	equal(b, "of another case is booked", booked, false)
}

// The effect stands in the same commit as the claim, so that it happens once.
func receiptAtOnce(b *bench) {
	m := b.merchant()
	b.together(50, func(ctx context.Context, _ int) error {
		r := b.receipt(m, "many")
		return b.s.Write(ctx, func(tx *store.Tx) error {
			added, err := tx.ClaimReceipts(ctx, []*payment.Receipt{r})
			if err != nil || !added[0] {
				return err
			}
			return tx.InsertReceipts(ctx, []*payment.Receipt{r})
		})
	})
	list, err := b.s.Receipts(b.Context(), m.ID, none)
	b.must(err)
	equal(b, "receipts", len(list), 1)
}

func receiptRoundTrips(b *bench) {
	m := b.merchant()
	p := b.payin(m, "r")
	b.storePayins(p)
	r := b.receipt(m, "full")
	r.Payin, r.OrderID, r.EndToEndID, r.Amount = p.ID, p.ExternalID, "E", math.MaxInt64
	b.claimReceipts(r)
	b.write(func(tx *store.Tx) error {
		r.CreatedAt = tx.Now
		return tx.InsertReceipts(b.Context(), []*payment.Receipt{r})
	})
	list, err := b.s.Receipts(b.Context(), m.ID, p.ID)
	b.must(err)
	equal(b, "receipts", fmt.Sprintf("%+v", list), fmt.Sprintf("%+v", []payment.Receipt{*r}))
	for _, payin := range []payment.ID{p.ID, none} {
		theirs, err := b.s.Receipts(b.Context(), b.merchant().ID, payin)
		b.must(err)
		equal(b, "receipts of another merchant", len(theirs), 0)
	}
	over := b.receipt(m, "over")
	over.Applied = over.Amount + 1
	b.refused("more applied than came", b.s.Write(b.Context(), func(tx *store.Tx) error {
		return tx.InsertReceipts(b.Context(), []*payment.Receipt{over})
	}))
}
