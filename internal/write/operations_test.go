package write_test

import (
	"testing"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

func TestOperationDecisions(t *testing.T) {
	coretest.EachEngine(t, func(t *testing.T, g *coretest.Gateway) {
		op := write.OpenCase{Case: store.Case{
			ID: g.Env.IDs.NewID(g.Clock.Now()), Merchant: g.Merchant.ID, Kind: store.CaseNotice, Amount: 5, Params: store.Params{"reason": "invalid_payment"},
		}}
		g.WantDecision(op, "+cases notice 5 reason:invalid_payment", "")
		g.WantDecision(op, "", "")
		g.WantDecision(write.SetSetting{Name: "cursor:bank", Value: "1"}, "+settings cursor:bank 1", "")
		g.WantDecision(write.SetSetting{Name: "cursor:bank", Value: "2"}, "settings value:1→2", "")
		g.WantDecision(write.SetSetting{Name: "cursor:bank", Value: "2"}, "", "")
	})
}
