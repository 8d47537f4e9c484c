package storetest

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

var merchantTests = []test{
	{"a merchant is found by id, number and name", merchantIsFound},
	{"a name is taken once", merchantNameIsUnique},
	{"merchants made at once get numbers of their own", merchantsAtOnce},
	{"closing happens once", merchantCloses},
	{"the platform is no merchant", platformIsNoMerchant},
	{"a credential keeps all that it has", credentialRoundTrips},
	{"a key id is taken once, and revoked once", credentialIsRevokedOnce},
}

func merchantIsFound(b *bench) {
	m := b.merchant()
	for name, find := range map[string]func() (store.Merchant, error){
		"id":     func() (store.Merchant, error) { return b.s.Merchant(b.Context(), m.ID) },
		"number": func() (store.Merchant, error) { return b.s.MerchantByNumber(b.Context(), m.Number) },
		"name":   func() (store.Merchant, error) { return b.s.MerchantByName(b.Context(), m.Name) },
	} {
		got, err := find()
		b.must(err)
		equal(b, "by "+name, fmt.Sprint(got), fmt.Sprint(m))
	}
	_, err := b.s.Merchant(b.Context(), b.id())
	b.wantError(err, store.ErrNotFound)
	secret, err := b.s.WebhookSecret(b.Context(), m.ID)
	b.must(err)
	equal(b, "secret", secret, "whsec_"+m.Name)
}

func merchantNameIsUnique(b *bench) {
	m := b.merchant()
	err := b.s.Write(b.Context(), func(tx *store.Tx) error {
		_, err := tx.CreateMerchant(b.Context(), m, "")
		return err
	})
	b.wantError(err, store.ErrConflict)
}

// Two transactions read the same greatest number: the loser takes the next.
func merchantsAtOnce(b *bench) {
	const n = 8
	numbers := make([]int64, n)
	b.together(n, func(ctx context.Context, i int) error {
		return b.s.Write(ctx, func(tx *store.Tx) error {
			m, err := tx.CreateMerchant(ctx, store.Merchant{Name: fmt.Sprint("at once ", i), Processor: "bank"}, "")
			numbers[i] = m.Number
			return err
		})
	})
	slices.Sort(numbers)
	equal(b, "distinct numbers", len(slices.Compact(numbers)), n)
}

func merchantCloses(b *bench) {
	m := b.merchant()
	b.write(func(tx *store.Tx) error { return tx.CloseMerchant(b.Context(), m.ID) })
	got, err := b.s.Merchant(b.Context(), m.ID)
	b.must(err)
	if got.ClosedAt.IsZero() {
		b.Error("it is not closed")
	}
	b.wantError(b.s.Write(b.Context(), func(tx *store.Tx) error { return tx.CloseMerchant(b.Context(), m.ID) }), store.ErrConflict)
}

func platformIsNoMerchant(b *bench) {
	list, err := b.s.Merchants(b.Context())
	b.must(err)
	for i := range list {
		if list[i].ID.IsZero() || list[i].Number == 0 {
			b.Errorf("%v is listed", list[i])
		}
	}
	if !slices.IsSortedFunc(list, func(x, y store.Merchant) int { return int(x.Number - y.Number) }) {
		b.Error("merchants are not in the order of their numbers")
	}
	platform, err := b.s.Merchant(b.Context(), none)
	b.must(err)
	if platform.ClosedAt.IsZero() {
		b.Error("the platform takes orders")
	}
}

func credentialRoundTrips(b *bench) {
	m := b.merchant()
	want := store.Credential{
		KeyID: "key " + m.Name, Merchant: m.ID, Label: "loja é", SecretHash: []byte{0, 1}, SecondHash: []byte{2},
		SecondUntil: b.now(), Scopes: []string{store.ScopeRead, store.ScopePayinWrite},
		AllowedIPs: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::/32")},
		ExpiresAt:  b.now().Add(time.Hour),
	}
	b.write(func(tx *store.Tx) error {
		want.CreatedAt = tx.Now
		return tx.CreateCredential(b.Context(), want)
	})
	got, err := b.s.Credential(b.Context(), want.KeyID)
	b.must(err)
	equal(b, "credential", fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want))
	list, err := b.s.Credentials(b.Context(), m.ID)
	b.must(err)
	equal(b, "credentials", fmt.Sprintf("%+v", list), fmt.Sprintf("%+v", []store.Credential{want}))
	theirs, err := b.s.Credentials(b.Context(), b.merchant().ID)
	b.must(err)
	equal(b, "credentials of another merchant", len(theirs), 0)
	_, err = b.s.Credential(b.Context(), "nobody")
	b.wantError(err, store.ErrNotFound)
}

func credentialIsRevokedOnce(b *bench) {
	m := b.merchant()
	create := func(tx *store.Tx) error {
		return tx.CreateCredential(b.Context(), store.Credential{KeyID: m.Name, Merchant: m.ID, SecretHash: []byte{1}})
	}
	revoke := func(tx *store.Tx) error { return tx.RevokeCredential(b.Context(), m.Name) }
	b.write(create)
	b.wantError(b.s.Write(b.Context(), create), store.ErrConflict)
	b.write(revoke)
	b.wantError(b.s.Write(b.Context(), revoke), store.ErrNotFound)
	got, err := b.s.Credential(b.Context(), m.Name)
	b.must(err)
	if got.RevokedAt.IsZero() || got.Merchant != m.ID || got.Merchant == (payment.ID{}) {
		b.Errorf("%+v", got)
	}
}
