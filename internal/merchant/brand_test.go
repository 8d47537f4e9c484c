package merchant_test

import (
	"bytes"
	"image"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/merchant"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
)

// logo is a PNG of a size in pixels.
func logo(t *testing.T, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestUpdateBrand(t *testing.T) {
	var photo bytes.Buffer
	if err := jpeg.Encode(&photo, image.NewGray(image.Rect(0, 0, 8, 8)), nil); err != nil {
		t.Fatal(err)
	}
	small := logo(t, 8, 8)
	padded := append(bytes.Clone(small), make([]byte, merchant.LogoBytesMax-len(small))...)
	table := []struct {
		name string
		in   store.Brand
		want *store.Brand // nil: refused
	}{
		{"nothing", store.Brand{}, &store.Brand{}},
		{"all", store.Brand{Title: " Café ", Color: "#A1B2C3", Document: "52998224725", Logo: small},
			&store.Brand{Title: "Café", Color: "#a1b2c3", Document: "52998224725", Logo: small, LogoType: "image/png"}},
		{"a JPEG", store.Brand{Logo: photo.Bytes()}, &store.Brand{Logo: photo.Bytes(), LogoType: "image/jpeg"}},
		{"a CNPJ", store.Brand{Document: "11222333000181"}, &store.Brand{Document: "11222333000181"}},
		{"60 characters", store.Brand{Title: strings.Repeat("é", 60)}, &store.Brand{Title: strings.Repeat("é", 60)}},
		{"the largest logo", store.Brand{Logo: padded}, &store.Brand{Logo: padded, LogoType: "image/png"}},
		{"1024 pixels", store.Brand{Logo: logo(t, 1024, 1)}, &store.Brand{Logo: logo(t, 1024, 1), LogoType: "image/png"}},
		{"61 characters", store.Brand{Title: strings.Repeat("é", 61)}, nil},
		{"a control character", store.Brand{Title: "a\x07b"}, nil},
		{"not UTF-8", store.Brand{Title: "a\xff"}, nil},
		{"a colour without #", store.Brand{Color: "a1b2c3"}, nil},
		{"a colour name", store.Brand{Color: "red"}, nil},
		{"a colour with more behind it", store.Brand{Color: "#a1b2c3;}"}, nil},
		{"a CPF with a wrong digit", store.Brand{Document: "52998224724"}, nil},
		{"a CPF with punctuation", store.Brand{Document: "529.982.247-25"}, nil},
		{"one byte too many", store.Brand{Logo: append(bytes.Clone(padded), 0)}, nil},
		{"1025 pixels", store.Brand{Logo: logo(t, 1, 1025)}, nil},
		{"no image", store.Brand{Logo: []byte("<svg/>")}, nil},
	}
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		last := store.Brand{}
		for _, row := range table {
			_, err := g.Merchants.Update(t.Context(), g.Merchant.ID, merchant.Update{Brand: &merchant.BrandUpdate{Title: &row.in.Title, Document: &row.in.Document, Color: &row.in.Color, Logo: &row.in.Logo}})
			if row.want != nil {
				last = *row.want
			} else if !problem.Is(err, problem.ValidationFailed) {
				t.Errorf("%s: %v, want validation_failed", row.name, err)
			}
			if row.want != nil && err != nil {
				t.Errorf("%s: %v", row.name, err)
			}
			got, err := g.Store.Brand(t.Context(), g.Merchant.ID)
			g.Must(err)
			if got.Title != last.Title || got.Color != last.Color || got.Document != last.Document || got.LogoType != last.LogoType || !bytes.Equal(got.Logo, last.Logo) {
				t.Errorf("%s: saved %q %q %q %q, %d bytes", row.name, got.Title, got.Color, got.Document, got.LogoType, len(got.Logo))
			}
		}
	})
}
