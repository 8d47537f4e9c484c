package merchant_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// After a restore a new merchant does not get the number of one that the backup lacks,
// whose external ids are at the processors; also after a second restore, of a backup
// older than the first.
func TestNumbersJumpAfterARestore(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		create := func(name string) int64 {
			m, err := g.Merchants.Create(t.Context(), store.Merchant{Name: name, City: "SAO PAULO", Routes: payment.AllRoutes(coretest.BankName)}, "")
			g.Must(err)
			return m.Number
		}
		restore := func() {
			g.Clock.Advance(time.Second)
			g.Marker.Epoch += 1000
			g.Must(g.Cluster.Join(t.Context(), g.Marker.Mark, false))
			g.Clock.Advance(time.Second)
		}
		if n := create("lost by the restore"); n != g.Merchant.Number+1 {
			t.Errorf("number %d after %d", n, g.Merchant.Number)
		}
		g.Execute("DELETE FROM routes WHERE merchant_id IN (SELECT id FROM merchants WHERE name = 'lost by the restore')")
		g.Execute("DELETE FROM merchants WHERE name = 'lost by the restore'")
		restore()
		first := create("first")
		if first <= g.Merchant.Number+1_000_000 || create("second") != first+1 {
			t.Errorf("number %d after a restore, %d before", first, g.Merchant.Number)
		}
		g.Execute("DELETE FROM routes WHERE merchant_id IN (SELECT id FROM merchants WHERE name IN ('first', 'second'))")
		g.Execute("DELETE FROM merchants WHERE name IN ('first', 'second')")
		restore()
		if again := create("after the second restore"); again <= g.Merchant.Number+1_000_000 || again == first || again == first+1 {
			t.Errorf("number %d after the second restore, %d after the first", again, first)
		}
	})
}
