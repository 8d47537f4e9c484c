package merchant_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/merchant"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
)

func ptr[T any](v T) *T { return &v }

func TestUpdate(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		other, err := g.Merchants.Create(t.Context(), store.Merchant{Name: "Outra", City: "RECIFE", Routes: payment.AllRoutes(coretest.BankName)}, "")
		g.Must(err)
		got, err := g.Merchants.Update(t.Context(), other.ID, merchant.Update{
			City: ptr(" OLINDA "), ReturnHosts: ptr([]string{"Shop.Example", "shop.example", "[::1]", "192.0.2.1", "loja-ção.example"}),
		})
		g.Must(err)
		if got.Name != "Outra" || got.City != "OLINDA" || !slices.Equal(got.ReturnHosts, []string{"shop.example", "::1", "192.0.2.1", "loja-ção.example"}) ||
			len(got.WebhookHosts) != 0 || len(got.Routes) != len(other.Routes) || got.Number != other.Number {
			t.Errorf("updated: %+v", got)
		}
		got, err = g.Merchants.Update(t.Context(), other.ID, merchant.Update{Name: ptr("Nova"), ReturnHosts: ptr([]string{}), WebhookHosts: ptr([]string{"hooks.example"})})
		g.Must(err)
		if got.Name != "Nova" || len(got.ReturnHosts) != 0 || !slices.Equal(got.WebhookHosts, []string{"hooks.example"}) {
			t.Errorf("updated again: %+v", got)
		}
		many := make([]string, 51)
		for i := range many {
			many[i] = fmt.Sprintf("h%d.example", i)
		}
		invalid := []merchant.Update{{Name: ptr(g.Merchant.Name)}, {Name: ptr(" Platform ")}, {Name: ptr(" ")}, {Name: ptr("a\nb")}, {City: ptr("")}, {City: ptr(strings.Repeat("c", 256))}, {WebhookHosts: &many}}
		for _, host := range []string{
			"", "*", "*.example", "https://shop.example", "shop.example/", "shop.example:443", "a b", "a\x00b", "shop..example", ".example", "-a.example",
			"user@shop.example", "shop.example?", "a\u200bb.example", strings.Repeat("a", 254),
		} {
			invalid = append(invalid, merchant.Update{ReturnHosts: &[]string{host}}, merchant.Update{WebhookHosts: &[]string{"ok.example", host}})
		}
		for _, u := range invalid {
			if _, err := g.Merchants.Update(t.Context(), other.ID, u); !problem.Is(err, problem.ValidationFailed) {
				t.Errorf("%+v: %v", u, err)
			}
		}
		for _, u := range []merchant.Update{{Name: ptr("Brand"), Brand: &merchant.BrandUpdate{Color: ptr("red")}}, {Name: ptr(g.Merchant.Name), Brand: &merchant.BrandUpdate{Title: ptr("B")}}, {City: ptr(""), Brand: &merchant.BrandUpdate{Title: ptr("B")}}} {
			if _, err := g.Merchants.Update(t.Context(), other.ID, u); !problem.Is(err, problem.ValidationFailed) {
				t.Errorf("%+v: %v", u, err)
			}
		}
		wantTitle(t, g, other.ID, "")
		if _, err := g.Merchants.Update(t.Context(), payment.ID{9}, merchant.Update{}); !problem.Is(err, problem.NotFound) {
			t.Errorf("unknown merchant: %v", err)
		}
		kept, err := g.Store.Merchant(t.Context(), other.ID)
		g.Must(err)
		if kept.Name != got.Name || kept.City != got.City || !slices.Equal(kept.WebhookHosts, got.WebhookHosts) {
			t.Errorf("refused updates left %+v", kept)
		}
		got, err = g.Merchants.Update(t.Context(), other.ID, merchant.Update{Name: ptr("Loja Nova"), Brand: &merchant.BrandUpdate{Title: ptr(" Nova ")}})
		g.Must(err)
		if got.Name != "Loja Nova" || got.City != kept.City {
			t.Errorf("updated with a brand: %+v", got)
		}
		wantTitle(t, g, other.ID, "Nova")
		wantTitle(t, g, g.Merchant.ID, "")
	})
}

// The platform's row is no merchant: nobody authenticates as it, and its name stays its own.
func TestThePlatformIsNoMerchant(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		if _, err := g.Merchants.Update(t.Context(), payment.ID{}, merchant.Update{Name: ptr("Foo")}); !problem.Is(err, problem.NotFound) {
			t.Errorf("update: %v", err)
		}
		if _, _, err := g.Merchants.CreateCredential(t.Context(), merchant.NewCredential{}); !problem.Is(err, problem.NotFound) {
			t.Errorf("credential: %v", err)
		}
		for _, name := range []string{"platform", "PLATFORM"} {
			if _, err := g.Merchants.Create(t.Context(), store.Merchant{Name: name, City: "RECIFE", Routes: payment.AllRoutes(coretest.BankName)}, ""); !problem.Is(err, problem.ValidationFailed) {
				t.Errorf("create %s: %v", name, err)
			}
		}
		if m, err := g.Store.MerchantByName(t.Context(), store.PlatformName); err != nil || !m.ID.IsZero() {
			t.Errorf("the platform is %v, %v", m, err)
		}
	})
}

// wantTitle compares the title of a merchant's brand.
func wantTitle(t *testing.T, g *coretest.Gateway, id payment.ID, want string) {
	t.Helper()
	b, err := g.Store.Brand(t.Context(), id)
	g.Must(err)
	if b.Title != want {
		t.Errorf("the title is %q, want %q", b.Title, want)
	}
}
