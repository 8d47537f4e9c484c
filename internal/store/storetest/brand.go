package storetest

import (
	"bytes"
	"fmt"

	"github.com/porteira/porteira/internal/store"
)

var brandTests = []test{
	{"a merchant without a brand shows nothing", brandIsEmpty},
	{"a brand keeps all that it has, and is replaced", brandIsReplaced},
	{"brands are each merchant's own", brandsAreApart},
}

func brandIsEmpty(b *bench) {
	m := b.merchant()
	got, err := b.s.Brand(b.Context(), m.ID)
	b.must(err)
	equal(b, "brand", fmt.Sprint(got), fmt.Sprint(store.Brand{Merchant: m.ID}))
}

func (b *bench) saveBrand(brand store.Brand) {
	b.Helper()
	b.must(b.s.Write(b.Context(), func(tx *store.Tx) error { return tx.SaveBrand(b.Context(), brand) }))
}

func brandIsReplaced(b *bench) {
	m := b.merchant()
	want := store.Brand{
		Merchant: m.ID, Title: "Livraria <b>", Document: "11222333000181", Color: "#00aa77",
		Logo: bytes.Repeat([]byte{0, 1, 255}, 10_000), LogoType: "image/png",
	}
	b.saveBrand(want)
	got, err := b.s.Brand(b.Context(), m.ID)
	b.must(err)
	if got.UpdatedAt.IsZero() {
		b.Error("it does not say when")
	}
	got.UpdatedAt = want.UpdatedAt
	equal(b, "brand", fmt.Sprint(got), fmt.Sprint(want))

	b.saveBrand(store.Brand{Merchant: m.ID, Title: "Outra"})
	got, err = b.s.Brand(b.Context(), m.ID)
	b.must(err)
	if got.Title != "Outra" || got.Document != "" || got.Color != "" || len(got.Logo) != 0 || got.LogoType != "" {
		b.Errorf("of the first something is left: %v", got)
	}
}

func brandsAreApart(b *bench) {
	one, other := b.merchant(), b.merchant()
	b.saveBrand(store.Brand{Merchant: one.ID, Title: "Uma"})
	got, err := b.s.Brand(b.Context(), other.ID)
	b.must(err)
	if got.Title != "" {
		b.Errorf("another merchant shows %q", got.Title)
	}
}
