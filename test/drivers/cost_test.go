package drivers

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store/storetest"
)

// A pay-in through the API Pix is one call to the bank between two commits: the order with the
// intent, and the code. A token is fetched for many.
func TestPayinCosts(t *testing.T) {
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			n := &nemesis{}
			g := newGateway(t, engine, newPIXBank, n)
			all := &played{}
			all.payin(g, payment.PIX, "first", payment.PayinPending)
			for _, reference := range []string{"second", "third"} {
				n.points = nil
				if p := all.payin(g, payment.PIX, reference, payment.PayinPending); p.Details.PIX == nil {
					t.Errorf("no code: %+v", p.Payin)
				}
				if want := []string{"commit", "before PUT /v2/cob/*", "after PUT /v2/cob/*", "commit"}; !slices.Equal(n.points, want) {
					t.Errorf("a pay-in is %q, want %q", n.points, want)
				}
			}
			n.points = nil
			g.request(func(ctx context.Context) error {
				_, _, err := g.core.Payins.Create(ctx, g.merchant, payinRequest(payment.PIX, "third"))
				return err
			})
			if !slices.Equal(n.points, []string{"commit"}) {
				t.Errorf("a repeated request is %q, want one commit and no call", n.points)
			}
			g.tick(time.Second)
			if calls := slices.DeleteFunc(n.points, func(p string) bool { return p != "before PUT /v2/cob/*" }); len(calls) > 0 {
				t.Errorf("the workers make charges again: %q", calls)
			}
		})
	}
}
