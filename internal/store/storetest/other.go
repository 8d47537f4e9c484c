package storetest

import (
	"fmt"

	"github.com/porteira/porteira/internal/store"
)

var otherTests = []test{
	{"a setting is what it was last set to", settings},
	{"exceptions wait for a person, oldest first", exceptions},
	{"a dispute is unique, and moves from where it was", disputes},
	{"the store answers", answers},
}

func settings(b *bench) {
	read := func() string {
		value, err := b.s.Setting(b.Context(), "a setting")
		b.must(err)
		return value
	}
	equal(b, "unset", read(), "")
	for _, value := range []string{"1h0m0s", "2h0m0s", "", "é"} {
		b.write(func(tx *store.Tx) error {
			if err := tx.SetSetting(b.Context(), "a setting", value); err != nil {
				return err
			}
			got, err := tx.Setting(b.Context(), "a setting")
			equal(b, "within the transaction", got, value)
			return err
		})
		equal(b, "set", read(), value)
	}
}

func exceptions(b *bench) {
	m, subject := b.merchant(), b.id()
	for i, kind := range []string{store.ExceptionOverpaid, store.ExceptionPayoutUnknown, store.ExceptionOverpaid} {
		b.write(func(tx *store.Tx) error {
			return tx.OpenException(b.Context(), store.Exception{Merchant: m.ID, Kind: kind, Subject: subject, Amount: cents(int64(i)), Detail: "do this"})
		})
	}
	open := func() string {
		list, err := b.s.OpenExceptions(b.Context(), 10)
		b.must(err)
		text := ""
		for _, e := range list {
			if e.Merchant != m.ID || e.Subject != subject || e.Detail != "do this" || e.CreatedAt.IsZero() || e.ID.IsZero() {
				b.Errorf("%+v", e)
			}
			text += fmt.Sprintf("%s %d; ", e.Kind, e.Amount)
		}
		return text
	}
	equal(b, "open", open(), "overpaid 0; payout_unknown 1; overpaid 2; ")
	b.write(func(tx *store.Tx) error {
		return tx.CloseExceptions(b.Context(), m.ID, subject, store.ExceptionPayoutUnknown)
	})
	equal(b, "open when one is closed", open(), "overpaid 0; overpaid 2; ")
}

func disputes(b *bench) {
	m := b.merchant()
	d := store.Dispute{Merchant: m.ID, ID: b.id(), Payin: b.id(), Processor: "bank", ExternalID: "D1", Amount: 5, State: "open"}
	insert := func(d store.Dispute) error {
		return b.s.Write(b.Context(), func(tx *store.Tx) error { return tx.InsertDispute(b.Context(), d) })
	}
	move := func(to, was string) error {
		next := d
		next.State = to
		return b.s.Write(b.Context(), func(tx *store.Tx) error { return tx.UpdateDispute(b.Context(), next, was) })
	}
	b.must(insert(d))
	again := d
	again.ID = b.id()
	b.wantError(insert(again), store.ErrConflict)
	b.must(move("won", "open"))
	b.wantError(move("lost", "open"), store.ErrConflict)
	b.write(func(tx *store.Tx) error {
		got, err := tx.Dispute(b.Context(), m.ID, "bank", "D1")
		d.State, d.CreatedAt = "won", got.CreatedAt
		equal(b, "dispute", got, d)
		_, missing := tx.Dispute(b.Context(), m.ID, "bank", "d1")
		b.wantError(missing, store.ErrNotFound)
		return err
	})
}

func answers(b *bench) {
	b.must(b.s.Ping(b.Context()))
	equal(b, "has lanes", b.s.Lanes() >= 1, true)
	equal(b, "has keys", b.s.Keys() != nil, true)
}
