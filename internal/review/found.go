package review

import (
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/outgoing"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
)

func needsFound(v *Resolve, n *store.Needs) {
	n.FoundTransfer(v.opened.Merchant, v.opened.Params["externalId"])
}

// checkFound returns a problem unless the case is about a found transfer that no payout has.
func checkFound(v *Resolve, l *store.Loaded) error {
	f, ok := l.FoundTransfer(v.opened.Merchant, v.opened.Params["externalId"])
	if !ok || !f.AdoptedAt.IsZero() {
		return problem.New(problem.InvalidState, "The transfer has its payout. The case closes by itself.")
	}
	return nil
}

// writeOffFound gives the merchant the money of a found transfer, which the platform bears
// from now on, unless the payout is requested again.
func writeOffFound(v *Resolve, l *store.Loaded, c *store.Changes) error {
	f, _ := l.FoundTransfer(v.opened.Merchant, v.opened.Params["externalId"])
	if f.Amount > 0 { // else all of it came back
		if err := c.Post(f.Merchant, f.ID, ledger.WriteOffFound(l.Balances(f.Merchant)[ledger.Owed], f.Amount)); err != nil {
			return err
		}
	}
	f.WrittenOff = true
	c.SetFoundTransfer(f)
	return nil
}

// dismissFound takes the booking of a second transfer back: it is the payout's only one.
func dismissFound(v *Resolve, l *store.Loaded, c *store.Changes) error {
	f, _ := l.FoundTransfer(v.opened.Merchant, v.opened.Params["externalId"])
	return outgoing.DeclareOnlyTransfer(l, c, f)
}
