package sim

import (
	"fmt"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/test/sim/checker"
)

// verify runs the checks of `porteira verify` on the database, as a gateway sees it: of each
// merchant, and of the platform.
func (s *simulation) verify() {
	n := s.nodes[0]
	if !n.up {
		return
	}
	list, err := n.store.Merchants(s.ctx)
	if err != nil {
		s.fail(err)
		return
	}
	for _, m := range append(list, store.Merchant{ID: payment.ID{}}) {
		proofs, err := n.store.Verify(s.ctx, m.ID)
		if err != nil {
			s.fail(err)
			return
		}
		for _, p := range proofs {
			s.result.Proved += int(p.Count)
			for _, d := range p.Defects {
				s.violate(checker.Verified, m.ID.String(), d.ID, fmt.Sprintf("%s: %s", p.Check, d.Detail))
			}
		}
	}
}
