package endpoint_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// Each change of an endpoint is in the audit, in the same commit, with its author and without
// tokens: neither the secret nor the path of the URL. A request that changes nothing is not.
func TestChangesOfEndpointsAreAudited(t *testing.T) {
	each(t, func(t *testing.T, g hooks) {
		ctx, by := t.Context(), actor.Credential("shop")
		const at = "https://shop.example"
		e, _, err := g.Endpoints.Create(ctx, by, g.Merchant.ID, &wire.EndpointRequest{URL: wire.Some(at + "/hook?token=a"), Events: wire.Some([]string{"*"})})
		g.Must(err)
		change := func(r *wire.EndpointRequest) {
			_, err := g.Endpoints.Change(ctx, by, e.Merchant, e.ID, r)
			g.Must(err)
		}
		change(&wire.EndpointRequest{URL: wire.Some(at + "/hook?token=b")})
		change(&wire.EndpointRequest{URL: wire.Some(at + "/hook?token=b")})
		change(&wire.EndpointRequest{Events: wire.Some([]string{"payin.canceled"})})
		_, _, err = g.Endpoints.Rotate(ctx, by, e.Merchant, e.ID, 0)
		g.Must(err)
		g.Receivers.Always(http.StatusGone)
		g.cancel("a", "")
		g.work()
		g.Must(g.Endpoints.Delete(ctx, by, e.Merchant, e.ID))
		list, err := g.Store.AuditList(ctx, store.AuditFilter{Merchant: &g.Merchant.ID, Limit: 7})
		g.Must(err)
		var got []string
		for i := range list {
			if v := &list[i]; v.Noun == store.NounEndpoint && v.Subject == e.ID.String() {
				got = append(got, strings.Join([]string{string(v.Actor), v.Action, v.Before, v.After}, " "))
			}
		}
		want := []string{
			`credential:shop delete {"description":"","enabled":false,"events":["payin.canceled"],"host":"https://shop.example"} {}`,
			`system change {"enabled":true} {"enabled":false}`,
			`credential:shop rotate secret {} {"secret":"changed"}`,
			`credential:shop change {"events":["*"]} {"events":["payin.canceled"]}`,
			`credential:shop change {} {"url":"changed"}`,
			`credential:shop create {} {"description":"","enabled":true,"events":["*"],"host":"https://shop.example"}`,
		}
		if !slices.Equal(got, want) {
			t.Errorf("the audit has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}
