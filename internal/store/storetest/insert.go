package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

var insertTests = []test{
	{"a pay-in keeps all that it has", payinRoundTrips},
	{"a payout keeps all that it has", payoutRoundTrips},
	{"a reference is used once, across calls", referenceAcrossCalls},
	{"a reference is used once, within a call", referenceWithinCall},
	{"a reference is used once, a thousand at the same instant", referenceByAThousand},
	{"a reference is each merchant's own, and each operation's", referencePerMerchant},
	{"references are kept byte for byte", referencesAreBytes},
	{"a transaction that fails leaves nothing", failureLeavesNothing},
	{"a transaction that panics leaves nothing", panicLeavesNothing},
	{"an order is found by whole or cut external id", payinByExternalID},
	{"a payout is found by its whole external id alone", payoutByExternalID},
	{"another merchant's order is not there", foreignOrder},
}

func payinRoundTrips(b *bench) {
	m := b.merchant()
	p := b.payin(m, "full")
	p.ProcessorID, p.WebhookURL = "theirs", "https://example.com/?a=1"
	p.Details = payment.PayinDetails{
		PIX: &payment.PIXDetail{QRCode: "000201", TxID: "t", ExpiresAt: b.now()}, Description: "camisa \u2028 😀",
		Metadata: map[string]string{"a": "b"}, IdempotencyKey: "k", Installments: 3, DueDate: "2026-01-02",
	}
	p.PaidAmount, p.RefundedAmount, p.Fee, p.EndToEndID, p.Late = 900, 5, 7, "E1", true
	p.Failure, p.PaidAt = &payment.Failure{Code: "c", Message: "m \"quoted\""}, b.w.Clock.Now()
	p.Personal.Items = []byte(`[{"title":"x"}]`)
	equal(b, "new", b.storePayins(p)[0], true)
	got, err := b.s.Payin(b.Context(), m.ID, p.ID)
	b.must(err)
	want, err := wire.Payin(&p.Payin, payment.Links{}, p.Personal)
	b.must(err)
	personal, err := b.s.PayinPersonal(b.Context(), m.ID, p.ID)
	b.must(err)
	shown, err := wire.Payin(&got, payment.Links{}, personal)
	b.must(err)
	sameBytes(b, "pay-in", shown, want)
	got.Details.PIX, p.Details.PIX, got.Failure, p.Failure = nil, nil, nil, nil
	equal(b, "pay-in", fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", p.Payin))
	found, err := b.s.FindPayin(b.Context(), p.ID)
	b.must(err)
	equal(b, "found by id alone", found.ID, p.ID)
}

func payoutRoundTrips(b *bench) {
	m := b.merchant()
	p := b.payout(m, "full")
	p.Fee, p.ProcessorID, p.WebhookURL, p.Approval, p.ReturnedAmount = 3, "theirs", "https://example.com", payment.ApprovalRequired, 5
	p.EndToEndID, p.Lookups, p.ClaimedBy, p.Step = "E2", 4, b.id(), payment.StepUnknown
	p.Beneficiary.NormalKey, p.SentAt, p.CompletedAt = "n", b.w.Clock.Now(), b.w.Clock.Now()
	p.Fingerprint = wire.NewFingerprint([]wire.FieldMAC{{Name: "amount", MAC: [16]byte{9}}})
	b.storePayouts(p)
	got, err := b.s.Payout(b.Context(), m.ID, p.ID)
	b.must(err)
	equal(b, "payout", fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", p.Payout))
	got, fingerprint, err := b.s.PayoutByExternalID(b.Context(), m.ID, p.ExternalID)
	b.must(err)
	equal(b, "by external id", got.ID, p.ID)
	sameBytes(b, "fingerprint", fingerprint, p.Fingerprint)
	found, err := b.s.FindPayout(b.Context(), p.ID)
	b.must(err)
	equal(b, "found by id alone", found.ID, p.ID)
}

func referenceAcrossCalls(b *bench) {
	m := b.merchant()
	first, second := b.payin(m, "r"), b.payin(m, "r")
	equal(b, "first is new", b.storePayins(first)[0], true)
	equal(b, "second is new", b.storePayins(second)[0], false)
	equal(b, "the first again is new", b.storePayins(first)[0], false)
	got, fingerprint, err := b.s.PayinByExternalID(b.Context(), m.ID, second.ExternalID)
	b.must(err)
	equal(b, "winner", got.ID, first.ID)
	sameBytes(b, "fingerprint", fingerprint, first.Fingerprint)
}

// One statement for many rows must not fail for a pair of equal ones.
func referenceWithinCall(b *bench) {
	m := b.merchant()
	list := []*store.NewPayin{b.payin(m, "a"), b.payin(m, "b"), b.payin(m, "a"), b.payin(m, "c"), b.payin(m, "a"), b.payin(m, "b")}
	list = append(list, list[3]) // the very same order, twice
	if added := b.storePayins(list...); !slices.Equal(added, []bool{true, true, false, true, false, false, false}) {
		b.Errorf("new are %v", added)
	}
	for i, p := range list[:2] {
		got, err := b.s.Payin(b.Context(), m.ID, p.ID)
		b.must(err)
		equal(b, "reference", got.ReferenceID, string(rune('a'+i)))
	}
	b.write(func(tx *store.Tx) error {
		x, y := b.payout(m, "a"), b.payout(m, "a")
		added, err := tx.InsertPayouts(b.Context(), []*store.NewPayout{x, y})
		if !slices.Equal(added, []bool{true, false}) {
			b.Errorf("new payouts are %v", added)
		}
		return err
	})
	equal(b, "nothing of nothing", len(b.storePayins()), 0)
}

func referenceByAThousand(b *bench) {
	m := b.merchant()
	var fresh atomic.Int32
	b.together(1000, func(ctx context.Context, _ int) error {
		p, added := b.payin(m, "same"), false
		err := b.s.Write(ctx, func(tx *store.Tx) error {
			list, err := tx.InsertPayins(ctx, []*store.NewPayin{p})
			if err != nil || list[0] {
				added = err == nil
				return err
			}
			added = false
			_, _, err = tx.PayinByExternalID(ctx, m.ID, p.ExternalID) // the winner can be read at once
			return err
		})
		if added && err == nil {
			fresh.Add(1)
		}
		return err
	})
	equal(b, "new orders", fresh.Load(), 1)
	list, err := b.s.Payins(b.Context(), m.ID, store.Filter{Limit: 10})
	b.must(err)
	equal(b, "orders", len(list), 1)
}

func referencePerMerchant(b *bench) {
	one, two := b.merchant(), b.merchant()
	if added := b.storePayins(b.payin(one, "r"), b.payin(two, "r")); !slices.Equal(added, []bool{true, true}) {
		b.Errorf("new are %v", added)
	}
	b.storePayouts(b.payout(one, "r"))
}

func referencesAreBytes(b *bench) {
	m := b.merchant()
	references := []string{
		"a", "A", "á", "a\u0301", "ａ", " a", "a ", "é", "e\u0301", "ß", "ss", "😀", "😁", "../etc", "%00", "'; DROP TABLE payins; --",
		"\u202eabc", "ﬁ", "fi", "İ", "i", "\u00ad", strings.Repeat("😀", 128), "\\x00", "$1", "?", "{}", "\"",
	}
	for _, reference := range references {
		p := b.payin(m, reference)
		if !b.storePayins(p)[0] {
			b.Errorf("%q is taken for another", reference)
			continue
		}
		got, err := b.s.Payin(b.Context(), m.ID, p.ID)
		b.must(err)
		equal(b, "reference", got.ReferenceID, reference)
	}
}

var errOnPurpose = errors.New("on purpose")

func failureLeavesNothing(b *bench) {
	m := b.merchant()
	p := b.payin(m, "r")
	err := b.s.Write(b.Context(), func(tx *store.Tx) error {
		if _, err := tx.InsertPayins(b.Context(), []*store.NewPayin{p}); err != nil {
			return err
		}
		tell(tx, m.ID, p.ID, 1, "https://example.com")
		return errOnPurpose
	})
	b.wantError(err, errOnPurpose)
	b.nothingOf(m, p)
}

func panicLeavesNothing(b *bench) {
	m := b.merchant()
	p := b.payin(m, "r")
	func() {
		defer func() {
			if recover() == nil {
				b.Error("the panic is swallowed")
			}
		}()
		_ = b.s.Write(b.Context(), func(tx *store.Tx) error {
			_, err := tx.InsertPayins(b.Context(), []*store.NewPayin{p})
			b.must(err)
			panic(errOnPurpose)
		})
	}()
	b.nothingOf(m, p)
}

// nothingOf wants no trace of an order, and a store that goes on.
func (b *bench) nothingOf(m store.Merchant, p *store.NewPayin) {
	b.Helper()
	_, err := b.s.Payin(b.Context(), m.ID, p.ID)
	b.wantError(err, store.ErrNotFound)
	events, err := b.s.Events(b.Context(), m.ID, 0, 10)
	b.must(err)
	equal(b, "events", len(events), 0)
	equal(b, "the reference is free", b.storePayins(p)[0], true)
}

func payinByExternalID(b *bench) {
	m := b.merchant()
	p := b.payin(m, "r")
	b.storePayins(p, b.payin(m, "other"))
	for _, length := range []int{payment.ExternalIDStaticLength, payment.ExternalIDLength} {
		got, _, err := b.s.PayinByExternalID(b.Context(), m.ID, p.ExternalID[:length])
		b.must(err)
		equal(b, "order", got.ID, p.ID)
	}
	_, _, err := b.s.PayinByExternalID(b.Context(), m.ID, p.ExternalID[:payment.ExternalIDStaticLength-1]+"~")
	b.wantError(err, store.ErrNotFound)
}

func payoutByExternalID(b *bench) {
	m := b.merchant()
	list := []*store.NewPayout{b.payout(m, "r"), b.payout(m, "other"), b.payout(m, "third")}
	b.storePayouts(list...)
	for _, p := range list {
		got, _, err := b.s.PayoutByExternalID(b.Context(), m.ID, p.ExternalID)
		b.must(err)
		equal(b, "payout", got.ID, p.ID)
		b.write(func(tx *store.Tx) error {
			got, _, err := tx.PayoutByExternalID(b.Context(), m.ID, p.ExternalID)
			equal(b, "payout within a transaction", got.ID, p.ID)
			return err
		})
	}
	// No codes carry a part of it: what is not the whole id is another one.
	for _, id := range []string{list[0].ExternalID[:payment.ExternalIDLength-1], list[0].ExternalID + "0", ""} {
		_, _, err := b.s.PayoutByExternalID(b.Context(), m.ID, id)
		b.wantError(err, store.ErrNotFound)
	}
}

func foreignOrder(b *bench) {
	mine, theirs := b.merchant(), b.merchant()
	p, q := b.payin(theirs, "r"), b.payout(theirs, "r")
	b.storePayins(p)
	b.storePayouts(q)
	b.announce(theirs, p.ID, 1, "")
	events, err := b.s.Events(b.Context(), theirs.ID, 0, 1)
	b.must(err)
	for what, read := range map[string]func(of payment.ID) error{
		"pay-in":   func(of payment.ID) error { _, err := b.s.Payin(b.Context(), of, p.ID); return err },
		"personal": func(of payment.ID) error { _, err := b.s.PayinPersonal(b.Context(), of, p.ID); return err },
		"payout":   func(of payment.ID) error { _, err := b.s.Payout(b.Context(), of, q.ID); return err },
		"event":    func(of payment.ID) error { _, err := b.s.Event(b.Context(), of, events[0].ID); return err },
		"external": func(of payment.ID) error {
			_, _, err := b.s.PayinByExternalID(b.Context(), of, p.ExternalID)
			return err
		},
		"locked": func(of payment.ID) error {
			return b.s.Write(b.Context(), func(tx *store.Tx) error { _, err := tx.Payin(b.Context(), of, p.ID); return err })
		},
		"locked payout": func(of payment.ID) error {
			return b.s.Write(b.Context(), func(tx *store.Tx) error { _, err := tx.Payout(b.Context(), of, q.ID); return err })
		},
		"external of payout": func(of payment.ID) error {
			_, _, err := b.s.PayoutByExternalID(b.Context(), of, q.ExternalID)
			return err
		},
	} {
		if err := read(theirs.ID); err != nil {
			b.Errorf("its owner's %s: %v", what, err)
		}
		if err := read(mine.ID); !errors.Is(err, store.ErrNotFound) {
			b.Errorf("another's %s: %v, want that it is not there", what, err)
		}
	}
}
