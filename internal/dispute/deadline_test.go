package dispute_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// A dispute that its processor does not decide has a case after four months, once, whether it can be
// answered or not; it names what is disputed, and closes when the dispute is decided.
func TestDisputeIsOpenForMonths(t *testing.T) {
	const days = 24 * time.Hour
	for name, d := range map[string]processor.Dispute{
		"plain":         open("D", 40_00),
		"of a charge":   {ID: "D", Amount: 40_00, State: processor.DisputeOpen, Current: true},
		"blocked":       {ID: "D", Amount: 40_00, State: processor.DisputeOpen, Blocked: true},
		"with deadline": {ID: "D", Amount: 40_00, State: processor.DisputeOpen, RespondBy: coretest.Start.Add(20 * days)},
	} {
		t.Run(name, func(t *testing.T) {
			coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
				p, d := g.PaidPayin("p", 100_00), d
				report := func(notice string) {
					g.Bank.Disputes(p.ExternalID, d)
					g.Notify(notice, "charge "+p.ExternalID)
					g.Apply()
					g.Run(g.Disputes.Remind)
				}
				report("opened")
				for range 7 {
					g.Jump(17 * days)
					g.Run(g.Disputes.Remind)
				}
				g.WantCases()
				g.Jump(2 * days)
				g.Run(g.Disputes.Remind)
				g.WantCases(store.CaseDisputeOpen)
				list, err := g.Store.OpenCases(g.T.Context(), 1)
				g.Must(err)
				stored, err := g.Store.DisputeByExternalID(g.T.Context(), p.Merchant, coretest.BankName, "D")
				g.Must(err)
				if c := list[0]; c.Subject != stored.ID || c.Amount != 40_00 || c.Params["externalId"] != "D" || c.Params["processor"] != coretest.BankName {
					g.T.Errorf("case %+v", c)
				}
				d.Reason = "new words"
				report("again")
				g.WantCases(store.CaseDisputeOpen)
				d.State = processor.DisputeWon
				report("won")
				g.WantPayin(p, payment.PayinPaid, 100_00, 1)
				g.WantCases()
				g.WantProven()
			})
		})
	}
}
